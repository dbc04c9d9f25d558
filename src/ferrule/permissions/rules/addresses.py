"""Addresses of the web as rules compare them: by what is connected to, and not by how they are spelled.

Who may go there is decided by the one address that is meant. Who may not is not let through by another spelling of it,
nor is the rule escaped because whoever wrote it chose capitals, the usual port or a name that is not ASCII.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote

from ferrule.permissions.rules.hosts import BadHost, spellings
from ferrule.permissions.rules.pattern import Pattern, read

_SCHEMES = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
# Browsers take any slashes and none behind the scheme, and leave out a user's name and characters for new lines.
_LOOSE = r"(?is)(https?|wss?|ftp):[\\/]*(?:[^\\/?#]*@)?([^\\/?#]*)(.*)"
_WRITTEN = r"(?is)(https?|wss?|ftp)://([^/*?#]+)((?:/.*)?)"


def is_address(value: str) -> bool:
    """May it be one, to whoever is lenient?"""
    return re.match(_LOOSE, _joined(value)) is not None


def meant(value: str) -> str:
    """The address that is connected to; empty where none would be."""
    from ferrule.support.web.address import parsed  # for rules about the web
    from ferrule.support.web.errors import WebError

    try:
        return str(parsed(value.strip()))
    except WebError:
        return ""


def goes_to(value: str) -> list[str]:
    """Where a lenient reader would go; empty where `meant` is all that anybody reads in it."""
    return [form for form in _spelled(_joined(value)) if "://" in form][1:] if not meant(value) else []


def spelled(value: str) -> list[str]:
    """All that a rule that refuses may call the address, in small letters."""
    return list(dict.fromkeys(form.lower() for form in _spelled(_joined(value))))


def plainly(pattern: Pattern) -> Pattern:
    """The pattern with the host that it names spelled as it is connected to."""
    named = _plainly(pattern.text) if pattern.kind == "glob" else ()
    return pattern._replace(text=named[0]) if len(named) == 1 else pattern


def widely(pattern: Pattern) -> list[Pattern]:
    """The pattern for `spelled`: capitals count for nothing."""
    if pattern.kind == "glob":
        return [pattern._replace(text=one) for one in smaller(pattern.text)]
    body, _, flags = pattern.text.rpartition("/")
    return [pattern if "i" in flags else read(f"{body}/{flags}i", pattern.homes, of_paths=False)]


def smaller(text: str) -> list[str]:
    """A text with stars for `spelled`: in small letters, and with the host as it is connected to."""
    return list(dict.fromkeys((text.lower(), *_plainly(text.lower()))))


@lru_cache(maxsize=256)
def _plainly(text: str) -> tuple[str, ...]:
    """What a pattern is with the host that it names as it is connected to; more than one where standards differ."""
    found = re.fullmatch(_WRITTEN, text)
    if found is None:
        return ()
    scheme, authority, rest = found[1].lower(), found[2], found[3]
    try:
        names = spellings(_without_port(authority))
    except BadHost:
        return ()
    return tuple(f"{scheme}://{_bracketed(name)}{_port(scheme, authority)}{rest or '/'}" for name in names)


def _spelled(value: str) -> Iterator[str]:
    yield value
    found = re.fullmatch(_LOOSE, value)
    if found is None:
        return
    scheme, authority, rest = found[1].lower(), found[2], found[3].replace("\\", "/")
    address = meant(value) or meant(f"{scheme}://{authority}{rest}")
    if address:
        rest = re.sub(r"^https?://[^/]*", "", address)
    path = rest.partition("#")[0]
    path = path if path.startswith("/") else f"/{path}"
    try:
        names = spellings(unquote(_without_port(authority)))
    except BadHost:
        names = [authority]
    schemes = {"http": ("http", "https"), "ws": ("ws", "wss")}.get(scheme.rstrip("s"), (scheme,))
    hosts = [host for name in names for host in dict.fromkeys((_bracketed(name), _unicode(name)))]
    port = _port(scheme, authority)
    for host in hosts:
        for tail in dict.fromkeys((path, unquote(path), *([""] if path == "/" else []))):
            yield f"{host}{port}{tail}"
            for one in schemes:
                yield f"{one}://{host}{port}{tail}"
                if not port:
                    yield f"{one}://{host}:{_SCHEMES[one]}{tail}"


def _joined(value: str) -> str:
    return re.sub(r"[\t\r\n]", "", value).strip()


def _without_port(authority: str) -> str:
    return re.sub(r":\d*$", "", authority) if not authority.endswith("]") else authority


def _port(scheme: str, authority: str) -> str:
    """The port where it is not the usual one."""
    found = re.search(r":(\d+)$", authority)
    return f":{int(found[1])}" if found and str(int(found[1])) not in {_SCHEMES[scheme], "0"} else ""


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _unicode(name: str) -> str:
    """The name as people write it."""
    if "xn--" not in name:
        return _bracketed(name)
    try:
        return ".".join(
            label.removeprefix("xn--").encode().decode("punycode") if label.startswith("xn--") else label
            for label in name.split(".")
        )
    except UnicodeError:
        return name
