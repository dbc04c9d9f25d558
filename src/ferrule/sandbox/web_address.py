"""Parse a web address once, and decide which machines may be connected to for it.

Two parsers of one address must not disagree, so the address that is judged is the one that is connected to.
Nothing is repaired before the path: blanks, control characters, backslashes, a user's name and unusual ways to
write a number are refused, and everything after that is ASCII.

A name is looked up once, and every address that it has is judged. Hosts of this machine or of its own network are
reached only if the user has named them. One inner address spoils the others: a name is not half trustworthy.
"""

import functools
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from itertools import zip_longest
from typing import Literal, NamedTuple
from urllib.parse import quote

from ferrule.sandbox.proxy import Resolver
from ferrule.system.hosts import PORTS, Address, Bad, NetworkEndpoint, entries, is_forwarded, leads_inside, target

Code = Literal[
    "bad-address",
    "private-address",
    "no-such-host",
    "unreachable",
    "tls",
    "too-large",
    "timed-out",
    "too-many-redirects",
    "robots",
    "bad-answer",
    "no-package",
    "no-key",
    "wrong-key",
    "quota",
    "refused",
]


_QUOTED = 300
"""So much of an address is repeated."""


class WebError(Exception):
    """A page cannot be had; `message` is whole sentences, the last of them the `remedy` where a user has one."""

    def __init__(self, message: str, code: Code, *, remedy: str = "") -> None:
        self.message = f"{message} {remedy}".rstrip()
        super().__init__(self.message)
        self.code: Code = code
        self._told = message
        self._remedy = remedy

    def after(self, place: str, to: str, *, is_own: bool) -> "WebError":
        """The same where a redirect from `place` has led `to` it.

        What the user could do about it is said only where it `is_own`, a place of the user's own network.
        """
        told = f"{_truncate(place)} redirects to {_truncate(to)}: {self._told}"
        if isinstance(self, CutOff):
            return CutOff(told)
        return WebError(told, self.code, remedy=self._remedy if is_own else "")


class CutOff(WebError):  # noqa: N818 - the state of a body
    """The other side broke off in the middle of a body. What came before is sound."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "bad-answer")


def _truncate(address: str) -> str:
    return address if len(address) <= _QUOTED else f"{address[:_QUOTED]}…"


def no_package() -> WebError:
    """What is said where the packages for the web are not installed."""
    return WebError("Pages of the web need more packages: pip install 'ferrule[web]'.", "no-package")


_PORTS = {"http": 80, "https": 443}
_MOST_CHARACTERS = 8192
_ADDRESS_QUOTED = 200
"""So much of an address that is refused is repeated."""
_DISPUTED = frozenset("ßςẞ")
"""The older and the newer standard take names with these for two hosts."""
_PLAIN = "/%:@!$&'()*+,;=~-._[]|"
"""What stays as it is in a path. Everything else is written with a percent sign."""


class Url(NamedTuple):
    """An address of http or https, in one spelling."""

    scheme: str
    target: NetworkEndpoint
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


def parse_url(text: str) -> Url:
    """What an address means. Raises WebError."""
    _refuse_unreadable(text)
    found = _whole().fullmatch(text)
    if found is None:
        raise WebError(
            f"{_quote(text)} is not an address that begins with https:// or http://.{_offer(text)}", "bad-address"
        )
    scheme = found["scheme"].lower()
    if scheme not in _PORTS:
        raise WebError(
            f"{_quote(text)} is not a page of the web: only https and http are fetched, not {scheme[:40]}.",
            "bad-address",
        )
    if "@" in found["authority"]:
        # It is not repeated: what stands before the sign may be a password.
        raise WebError("An address with a user's name or a password before the host is not fetched.", "bad-address")
    if not _DISPUTED.isdisjoint(found["authority"]):
        raise WebError(f"{_quote(text)} names a host that is spelled in two ways; write it as xn--….", "bad-address")
    try:
        where = target(found["authority"], port=_PORTS[scheme])
    except Bad as error:
        raise WebError(f"{_quote(text)} cannot be fetched: {error}", "bad-address") from error
    return Url(scheme, where, _path(found["path"], found["question"] or ""))


def join_url(url: Url, reference: str) -> Url:
    """Where a redirect leads from here. Raises WebError."""
    # Sites write blanks into the paths of redirects, and every browser reads them so. In a host they stay refused.
    text = reference.strip(" ").replace(" ", "%20")
    _refuse_unreadable(text)
    if text.startswith("//"):
        return parse_url(f"{url.scheme}:{text}")
    if _scheme().match(text):
        return parse_url(text)
    text = text.partition("#")[0]
    here = url.path.partition("?")[0]
    path, mark, question = text.partition("?")
    if not path:
        return url._replace(path=_path(here, mark + question)) if mark else url
    if not path.startswith("/"):
        path = here[: here.rindex("/") + 1] + path
    return url._replace(path=_path(path, mark + question))


def upgrade_url(url: Url) -> Url:
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
            f"{_quote(text)} has a blank, a control character or an invisible character {where}.", "bad-address"
        )
    if "\\" in text:
        raise WebError(f"{_quote(text)} has a backslash in it, which programs read in two ways.", "bad-address")


def _is_unreadable(text: str) -> bool:
    return not text.isprintable() or any(character.isspace() for character in text)


def _offer(text: str) -> str:
    """What may be meant by the name of a host alone."""
    whole = f"https://{text.lstrip('/')}"
    try:
        host = parse_url(whole).target.host
    except WebError:
        return ""
    return f" Write {_quote(whole)} if that is meant." if "." in host or host == "localhost" else ""


def _path(path: str, question: str) -> str:
    return _remove_dot_segments(_ascii(path)) + _ascii(question, "?")


def _ascii(text: str, more: str = "") -> str:
    try:
        encoded = quote(text, safe=_PLAIN + more)
    except UnicodeEncodeError as error:
        raise WebError("The address has half of a character in it.", "bad-address") from error
    return _lonely_percent().sub("%25", encoded)


def _remove_dot_segments(path: str) -> str:
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


def _quote(text: str) -> str:
    return ascii(text[:_ADDRESS_QUOTED]) + ("…" if len(text) > _ADDRESS_QUOTED else "")


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


_LOOPBACKS = frozenset({"127.0.0.1", "::1"})
_MOST_ADDRESSES = 64
_TRIED = 6
_INNER_NAMES = (
    *("localhost", "localdomain", "local", "internal", "intranet", "lan", "corp", "home", "private", "svc"),
    *("home.arpa", "in-addr.arpa", "ip6.arpa"),
)
"""Names that belong to no public host. Through a proxy nothing else shows where they lead."""
# Other services listen there, and a page's address must not make us speak to them (as in every browser).
_OTHER_PORTS = frozenset(
    (
        *(1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104),
        *(109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 138, 139, 143, 161, 179, 389, 427, 445, 465, 512, 513),
        *(514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723),
        *(2049, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679),
        *(6697, 10080, 11211, 27017),
    )
)


class Inside(NamedTuple):
    """The network of the session's commands, as far as pages go."""

    listens: Callable[[int], bool]
    """Does a command of the session listen on this port?"""
    connect: Callable[[int], Awaitable[socket.socket]]
    """A connection to it. Raises OSError."""


class Way(NamedTuple):
    """A page, and the judged addresses at which it may be had."""

    url: Url
    addresses: tuple[Address, ...]
    """The best first; none where a proxy looks the name up."""
    is_private: bool
    """Has the user named this host as one of their own network?"""
    inside: Inside | None = None
    """Where it is a command of the session that answers."""


class Reach:
    """What may be reached. Raises WebError for a list of hosts that nobody can mean."""

    def __init__(
        self,
        private_hosts: Sequence[str],
        resolver: Resolver,
        *,
        is_proxied: bool,
        inside: Callable[[], Inside | None] = lambda: None,
    ) -> None:
        """`inside` gives the network of the session's commands, where there is one."""
        try:
            self._entries = entries(private_hosts)
        except Bad as error:
            raise WebError(f"The setting web.private_hosts cannot be used: {error}", "bad-address") from error
        self._resolver = resolver
        self._is_proxied = is_proxied
        self._inside = inside

    def is_private(self, where: NetworkEndpoint, own: NetworkEndpoint | None = None) -> bool:
        """Has the user named this host and this port as their own, or is it a command of the session?"""
        return where == own or any(entry.covers(where) for entry in self._entries) or self.inside(where) is not None

    def inside(self, where: NetworkEndpoint) -> Inside | None:
        """The network in which a command of the session listens there; None where none does."""
        if where.host != "localhost" and (where.address is None or str(where.address) not in _LOOPBACKS):
            return None
        inside = self._inside()
        return inside if inside is not None and inside.listens(where.port) else None

    def upgrade_public(self, url: Url) -> Url:
        """The address as it is asked for: public hosts are asked over https."""
        return url if self.is_private(url.target) else upgrade_url(url)

    async def way(self, url: Url, own: NetworkEndpoint | None, known: dict[str, tuple[Address, ...]]) -> Way:
        """How to get to a page; `own` is the one host and port that may be private beside those of the settings.

        A name that is in `known` is not looked up: a second answer could be another one. Raises WebError.
        """
        where = url.target
        # What the user has configured is a program of theirs: no command of the session stands in for it.
        if where != own and (inside := self.inside(where)) is not None:
            return Way(url, (), is_private=True, inside=inside)
        private = self.is_private(where, own)
        if not private and where.port in _OTHER_PORTS:
            raise WebError(f"{url} is not fetched: port {where.port} is for other services.", "bad-address")
        if where.address is not None:
            _judge(url, (where.address,), private=private)
            _refuse_forwarded(url, own, (where.address,))
            return Way(url, (where.address,), private)
        if self._is_proxied:
            if not private and _is_inner(where.host):
                raise _inside(url, f"{where.host} is no public name", can_be_named=True)
            return Way(url, (), private)
        found = known.get(where.host) or await self._resolve_host(where)
        _judge(url, found, private=private)
        _refuse_forwarded(url, own, found)
        known[where.host] = found
        return Way(url, _in_turns(found), private)

    def judge_literal(self, url: Url, own: NetworkEndpoint | None = None) -> None:
        """Raises WebError for an address in the place of a name that leads inside. Nothing is looked up."""
        if url.target.address is not None and self.inside(url.target) is None:
            _judge(url, (url.target.address,), private=self.is_private(url.target, own))

    async def _resolve_host(self, where: NetworkEndpoint) -> tuple[Address, ...]:
        try:
            written = list(await self._resolver(where.host, where.port))
            found = tuple(dict.fromkeys(ip_address(each) for each in written[:_MOST_ADDRESSES]))
        except (OSError, UnicodeError, ValueError) as error:
            raise WebError(
                f"There is no host {where.host}, or its name cannot be looked up from here.", "no-such-host"
            ) from error
        if not found or len(written) > _MOST_ADDRESSES:
            raise WebError(f"The host {where.host} has no address that can be used.", "no-such-host")
        return found


def _judge(url: Url, addresses: Sequence[Address], *, private: bool) -> None:
    never = _first(addresses, private=True)
    why = never or _first(addresses, private=private)
    if why:
        raise _inside(url, why, can_be_named=not never)


def _refuse_forwarded(url: Url, own: NetworkEndpoint | None, addresses: Sequence[Address]) -> None:
    """Raises WebError where a command of a session answers in the place of what the user has configured."""
    if url.target == own and any(is_forwarded(str(address), url.target.port) for address in addresses):
        raise WebError(
            f"{url.authority} is not asked: a command of a session answers there, and no program of the user's.",
            "private-address",
        )


def _first(addresses: Sequence[Address], *, private: bool) -> str:
    """Why one of them is not connected to; nothing where all may be."""
    for address in addresses:
        scope = getattr(address, "scope_id", None)
        why = f"{address} is for one network card only" if scope else leads_inside(address, private=private)
        if why:
            return why
    return ""


def _inside(url: Url, why: str, *, can_be_named: bool) -> WebError:
    entry = url.target.host if url.target.port in PORTS else str(url.target)
    own = "No command of this session listens there. " if _is_loopback(url) else ""
    return WebError(
        f"{url.authority} is not fetched from, because {why}.",
        "private-address",
        remedy=f'{own}Where it is meant, the user can add "{entry}" to web.private_hosts.' if can_be_named else "",
    )


def _is_loopback(url: Url) -> bool:
    return url.target.host == "localhost" or str(url.target.address) in _LOOPBACKS


def _is_inner(host: str) -> bool:
    return "." not in host or host.endswith(tuple("." + name for name in _INNER_NAMES)) or host in _INNER_NAMES


def _in_turns(found: Sequence[Address]) -> tuple[Address, ...]:
    """Both kinds in turns, as the resolver ordered them: where one kind leads nowhere, the other is next."""
    first = [address for address in found if address.version == found[0].version]
    second = [address for address in found if address.version != found[0].version]
    mixed = (address for pair in zip_longest(first, second) for address in pair if address is not None)
    return tuple(mixed)[:_TRIED]
