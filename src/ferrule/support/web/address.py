"""The address of a page, taken apart once: what is judged is what is connected to.

Two readers of one address must not read two things. So nothing is repaired before the path: blanks, control characters,
backslashes, a user's name and unusual ways to write a number are refused, and everything after that is ASCII.
"""

import functools
import re
from typing import NamedTuple
from urllib.parse import quote

from ferrule.support.hosts import Bad, Target, target
from ferrule.support.web.errors import WebError

_PORTS = {"http": 80, "https": 443}
_MOST_CHARACTERS = 8192
_QUOTED = 200
"""So much of an address that is refused is repeated."""
_DISPUTED = frozenset("ßςẞ")
"""The older and the newer standard take names with these for two hosts."""
_PLAIN = "/%:@!$&'()*+,;=~-._[]|"
"""What stays as it is in a path. Everything else is written with a percent sign."""


class Url(NamedTuple):
    """An address of http or https, in one spelling."""

    scheme: str
    target: Target
    path: str
    """With the question after it; it begins with a slash and is ASCII."""

    @property
    def authority(self) -> str:
        """The host, with the port where it is not the usual one."""
        if self.target.port != _PORTS[self.scheme]:
            return str(self.target)
        return f"[{self.target.host}]" if ":" in self.target.host else self.target.host

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return self.origin + self.path


def parsed(text: str) -> Url:
    """What an address means. Raises WebError."""
    _refuse_unreadable(text)
    found = _whole().fullmatch(text)
    if found is None:
        raise WebError(
            f"{_shown(text)} is not an address that begins with https:// or http://.{_offer(text)}", "bad-address"
        )
    scheme = found["scheme"].lower()
    if scheme not in _PORTS:
        raise WebError(
            f"{_shown(text)} is not a page of the web: only https and http are fetched, not {scheme[:40]}.",
            "bad-address",
        )
    if "@" in found["authority"]:
        # It is not repeated: what stands before the sign may be a password.
        raise WebError("An address with a user's name or a password before the host is not fetched.", "bad-address")
    if not _DISPUTED.isdisjoint(found["authority"]):
        raise WebError(f"{_shown(text)} names a host that is spelled in two ways; write it as xn--….", "bad-address")
    try:
        where = target(found["authority"], port=_PORTS[scheme])
    except Bad as error:
        raise WebError(f"{_shown(text)} cannot be fetched: {error}", "bad-address") from error
    return Url(scheme, where, _path(found["path"], found["question"] or ""))


def joined(url: Url, reference: str) -> Url:
    """Where a redirect leads from here. Raises WebError."""
    # Sites write blanks into the paths of redirects, and every browser reads them so. In a host they stay refused.
    text = reference.strip(" ").replace(" ", "%20")
    _refuse_unreadable(text)
    if text.startswith("//"):
        return parsed(f"{url.scheme}:{text}")
    if _scheme().match(text):
        return parsed(text)
    text = text.partition("#")[0]
    here = url.path.partition("?")[0]
    path, mark, question = text.partition("?")
    if not path:
        return url._replace(path=_path(here, mark + question)) if mark else url
    if not path.startswith("/"):
        path = here[: here.rindex("/") + 1] + path
    return url._replace(path=_path(path, mark + question))


def upgraded(url: Url) -> Url:
    """The same page over a connection that nobody on the way can read, where it names no port of its own."""
    if url.scheme != "http" or url.target.port != _PORTS["http"]:
        return url
    return url._replace(scheme="https", target=url.target._replace(port=_PORTS["https"]))


def same_host(one: Url, other: Url) -> bool:
    """Is it the same name, at the usual ports or the same one?"""
    ports = {one.target.port, other.target.port}
    return one.target.host == other.target.host and (len(ports) == 1 or ports <= set(_PORTS.values()))


def same_site(one: Url, other: Url) -> bool:
    """Is it the same host to a reader: the same name but for `www.`, at the usual ports or the same one?"""
    return same_host(_without_www(one), _without_www(other))


def _without_www(url: Url) -> Url:
    return url._replace(target=url.target._replace(host=url.target.host.removeprefix("www.")))


def _refuse_unreadable(text: str) -> None:
    if len(text) > _MOST_CHARACTERS:
        raise WebError(f"The address is longer than {_MOST_CHARACTERS} characters.", "bad-address")
    if _is_unreadable(text):
        host, where = _host().match(text), "in it; write it with a percent sign, as %20"
        if host is not None and _is_unreadable(host[0]):
            where = "in or before its host, where none can be; leave it out"
        raise WebError(
            f"{_shown(text)} has a blank, a control character or an invisible character {where}.", "bad-address"
        )
    if "\\" in text:
        raise WebError(f"{_shown(text)} has a backslash in it, which programs read in two ways.", "bad-address")


def _is_unreadable(text: str) -> bool:
    return not text.isprintable() or any(character.isspace() for character in text)


def _offer(text: str) -> str:
    """What may be meant by the name of a host alone."""
    whole = f"https://{text.lstrip('/')}"
    try:
        host = parsed(whole).target.host
    except WebError:
        return ""
    return f" Write {_shown(whole)} if that is meant." if "." in host or host == "localhost" else ""


def _path(path: str, question: str) -> str:
    return _undotted(_ascii(path)) + _ascii(question, "?")


def _ascii(text: str, more: str = "") -> str:
    try:
        encoded = quote(text, safe=_PLAIN + more)
    except UnicodeEncodeError as error:
        raise WebError("The address has half of a character in it.", "bad-address") from error
    return _lonely_percent().sub("%25", encoded)


def _undotted(path: str) -> str:
    """Without steps up and nowhere: a site's rules are about the path that is meant."""
    kept: list[str] = []
    parts = path.split("/")[1:]
    for number, part in enumerate(parts, 1):
        plain = part.lower().replace("%2e", ".")
        if plain == "..":
            del kept[-1:]
        if plain not in {".", ".."}:
            kept.append(part)
        elif number == len(parts):
            kept.append("")
    return "/" + "/".join(kept)


def _shown(text: str) -> str:
    return ascii(text[:_QUOTED]) + ("…" if len(text) > _QUOTED else "")


@functools.cache
def _whole() -> re.Pattern[str]:
    return re.compile(
        r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<question>\?[^#]*)?(?:#.*)?"
    )


@functools.cache
def _host() -> re.Pattern[str]:
    return re.compile(r"[^/?#]*://[^/?#]*")


@functools.cache
def _scheme() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@functools.cache
def _lonely_percent() -> re.Pattern[str]:
    return re.compile(r"%(?![0-9A-Fa-f]{2})")
