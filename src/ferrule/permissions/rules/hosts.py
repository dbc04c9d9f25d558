"""Match host names and web addresses against rules, by whole labels and never by the end of a text.

`*.h` stands for every name below `h` and not for `h` itself; any other `*` stays within its label. A name that
holds a blank, a control character, a backslash, a user's name or anything else that no host has is covered by no
rule that allows and by every rule that denies. Numbers are addresses, in any notation.

Web addresses are compared by the host that is connected to, not by their spelling. An allow rule matches only the
one address that is meant. Another spelling of an address does not escape a deny rule, and neither do capitals,
the usual port or a non-ASCII name in the rule itself.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple
from urllib.parse import unquote

from ferrule.permissions.rules import Always, Rule, Subject, Wildcard
from ferrule.permissions.rules.pattern import RulePattern, read
from ferrule.sandbox.web_address import WebError, parse_url
from ferrule.tools import facts_of

_ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
_LONGEST_NAME = 253
_LONGEST_LABEL = 63
# The older and the newer standard spell names with these differently; the last two are invisible.
_DISPUTED = frozenset("ßςẞ\u200c\u200d")


class BadHost(ValueError):  # noqa: N818 - the state
    """No host has such a name."""


class Hosts(NamedTuple):
    """The condition of a rule about hosts."""

    labels: tuple[Wildcard, ...]
    below: bool = False
    """Does it stand for the names below these labels?"""
    anything: bool = False

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        if strictly:
            return bool(subject.hosts) and all(self.covers(host) for host in subject.hosts)
        # Where a page is fetched and nobody could say from which host, a rule that denies cannot rule it out.
        unknown = not subject.hosts and subject.group == "WebFetch"
        return unknown or any(self.touches(host) for host in subject.hosts)

    def covers(self, host: str) -> bool:
        """Is the name certainly one of these?"""
        try:
            return all(map(self._speaks_of, spellings(host)))
        except BadHost:
            return False

    def touches(self, host: str) -> bool:
        """May the name be one of these?"""
        try:
            return any(map(self._speaks_of, spellings(host)))
        except BadHost:
            return True

    def _speaks_of(self, name: str) -> bool:
        if self.anything:
            return True
        if ":" in name:
            return not self.below and self.labels == (Wildcard(((name,),)),)
        labels = name.split(".")
        if self.below:
            if len(labels) <= len(self.labels) or labels[-1].isdigit():
                return False  # nothing is below an address
            labels = labels[-len(self.labels) :]
        return len(labels) == len(self.labels) and all(
            pattern.matches(label) for pattern, label in zip(self.labels, labels, strict=True)
        )


def asks_of_all(rule: Rule, tool: str) -> bool:
    """Does the rule ask about a fetch from any host: `WebFetch`, `WebFetch(domain:*)`?"""
    if rule.action != "ask" or facts_of(tool).rules != "WebFetch" or "*" in rule.tool:
        return False
    return isinstance(rule.condition, Always) or (isinstance(rule.condition, Hosts) and rule.condition.anything)


def names_hosts(condition: object) -> bool:
    """Is it about hosts by their names, or by a part of them that is no `*`?"""
    if not isinstance(condition, Hosts) or condition.anything:
        return False
    return any(label.exact for label in condition.labels)


def hosts(pattern: str, *, wide: bool = False) -> Hosts:
    """The condition that a pattern of names stands for. With `wide`, a `*` alone is every host.

    Raises: BadHost.
    """
    if pattern == "*" and wide:
        return Hosts((), anything=True)
    below = pattern.startswith("*.")
    rest = pattern[2:] if below else pattern
    if "*" not in rest:
        (name, *others) = spellings(rest)
        if others:
            raise BadHost(f"{rest} is spelled in two ways; write it as xn--….")
        return Hosts(tuple(Wildcard(((label,),)) for label in name.split(".")), below)
    labels = rest.lower().removesuffix(".").split(".")
    return Hosts(tuple(map(_label, labels)), below)


def spellings(host: str) -> list[str]:
    """The names in lower-case ASCII that a host may stand for; more than one where the standards differ.

    Raises: BadHost.
    """
    host = host.lower()
    if host.startswith("[") or host.count(":") > 1:
        return [_six(host)]
    name, colon, port = host.partition(":")
    if colon and not (port.isascii() and port.isdigit()):
        raise BadHost(f"{host!r} is no name of a host.")
    found = [_ascii(name)]
    if _DISPUTED & set(name):
        found.append(_raw(name))
    return [_address(one) for one in map(_check_name, found)]


def _ascii(name: str) -> str:
    if name.isascii():
        return name
    if len(name) > _LONGEST_NAME:
        raise BadHost(f"A host's name has at most {_LONGEST_NAME} characters.")
    try:  # the codec brings large tables; only names that are not ASCII pay for it
        return name.encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise BadHost(f"{name!r} is no name of a host.") from error


def _raw(name: str) -> str:
    """The name with its letters encoded just as they are."""
    return ".".join(
        label if label.isascii() else f"xn--{label.encode('punycode').decode('ascii').lower()}"
        for label in name.split(".")
    )


def _check_name(name: str) -> str:
    name = name.removesuffix(".")
    sound = all(0 < len(label) <= _LONGEST_LABEL and set(label) <= _ALPHABET for label in name.split("."))
    if not sound or len(name) > _LONGEST_NAME:
        raise BadHost(f"{name!r} is no name of a host.")
    return name


def _address(name: str) -> str:
    """An address in four decimal numbers, however it is written: `0x7f.1` and `2130706433` are 127.0.0.1."""
    parts = name.split(".")
    last = parts[-1]
    if not (last.isdigit() or last.startswith("0x")):
        return name
    try:
        numbers = [_number(part) for part in parts]
    except ValueError as error:
        raise BadHost(f"{name!r} is no address.") from error
    *heads, tail = numbers
    room = 256 ** (4 - len(heads))
    if len(parts) > 4 or any(number > 255 for number in heads) or tail >= room:
        raise BadHost(f"{name!r} is no address.")
    whole = sum(number << (8 * (3 - at)) for at, number in enumerate(heads)) + tail
    return ".".join(str(whole >> shift & 255) for shift in (24, 16, 8, 0))


def _number(part: str) -> int:
    if not part.isalnum():
        raise ValueError(part)
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") and part != "0" else 10)


def _six(host: str) -> str:

    inner = host
    if host.startswith("["):
        inner, bracket, port = host[1:].partition("]")
        if not bracket or (port and not (port.startswith(":") and port[1:].isdigit())):
            raise BadHost(f"{host!r} is no address.")
    try:
        if "%" in inner:
            raise BadHost(f"{host!r} names an interface of one machine.")
        address = IPv6Address(inner)
    except AddressValueError as error:
        raise BadHost(f"{host!r} is no address.") from error
    return str(address.ipv4_mapped or address)


def _label(label: str) -> Wildcard:
    if "*" not in label:
        return Wildcard(((_check_name(_ascii(label)),),))
    parts = label.split("*")
    if not all(set(part) <= _ALPHABET for part in parts):
        raise BadHost(f"{label!r} is no part of a host's name.")
    return Wildcard((tuple(parts),))


_SCHEMES = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
# Browsers take any slashes and none behind the scheme, and leave out a user's name and characters for new lines.
_LOOSE = r"(?is)(https?|wss?|ftp):[\\/]*(?:[^\\/?#]*@)?([^\\/?#]*)(.*)"
_WRITTEN = r"(?is)(https?|wss?|ftp)://([^/*?#]+)((?:/.*)?)"


def is_address(value: str) -> bool:
    """May it be one, to whoever is lenient?"""
    return re.match(_LOOSE, _remove_line_breaks(value)) is not None


def normalize_address(value: str) -> str:
    """The address that is connected to; empty where none would be."""
    try:
        return str(parse_url(value.strip()))
    except WebError:
        return ""


def lenient_addresses(value: str) -> list[str]:
    """Where a lenient reader would go; empty where `meant` is all that anybody reads in it."""
    return (
        [form for form in _address_forms(_remove_line_breaks(value)) if "://" in form][1:]
        if not normalize_address(value)
        else []
    )


def address_forms(value: str) -> list[str]:
    """All that a rule that refuses may call the address, in small letters."""
    return list(dict.fromkeys(form.lower() for form in _address_forms(_remove_line_breaks(value))))


def canonical_pattern(pattern: RulePattern) -> RulePattern:
    """The pattern with the host that it names spelled as it is connected to."""
    named = _canonical_texts(pattern.text) if pattern.kind == "glob" else ()
    return pattern._replace(text=named[0]) if len(named) == 1 else pattern


def lowercase_patterns(pattern: RulePattern) -> list[RulePattern]:
    """The pattern for `spelled`: capitals count for nothing."""
    if pattern.kind == "glob":
        return [pattern._replace(text=one) for one in lowercase_forms(pattern.text)]
    body, _, flags = pattern.text.rpartition("/")
    return [pattern if "i" in flags else read(f"{body}/{flags}i", pattern.homes, of_paths=False)]


def lowercase_forms(text: str) -> list[str]:
    """A text with stars for `spelled`: in small letters, and with the host as it is connected to."""
    return list(dict.fromkeys((text.lower(), *_canonical_texts(text.lower()))))


@lru_cache(maxsize=256)
def _canonical_texts(text: str) -> tuple[str, ...]:
    """What a pattern is with the host that it names as it is connected to; more than one where standards differ."""
    found = re.fullmatch(_WRITTEN, text)
    if found is None:
        return ()
    scheme, authority, rest = found[1].lower(), found[2], found[3]
    try:
        names = spellings(_without_port(authority))
    except BadHost:
        return ()
    return tuple(f"{scheme}://{_add_brackets(name)}{_port(scheme, authority)}{rest or '/'}" for name in names)


def _address_forms(value: str) -> Iterator[str]:
    yield value
    found = re.fullmatch(_LOOSE, value)
    if found is None:
        return
    scheme, authority, rest = found[1].lower(), found[2], found[3].replace("\\", "/")
    address = normalize_address(value) or normalize_address(f"{scheme}://{authority}{rest}")
    if address:
        rest = re.sub(r"^https?://[^/]*", "", address)
    path = rest.partition("#")[0]
    path = path if path.startswith("/") else f"/{path}"
    try:
        names = spellings(unquote(_without_port(authority)))
    except BadHost:
        names = [authority]
    schemes = {"http": ("http", "https"), "ws": ("ws", "wss")}.get(scheme.rstrip("s"), (scheme,))
    hosts = [host for name in names for host in dict.fromkeys((_add_brackets(name), _unicode(name)))]
    port = _port(scheme, authority)
    for host in hosts:
        for tail in dict.fromkeys((path, unquote(path), *([""] if path == "/" else []))):
            yield f"{host}{port}{tail}"
            for one in schemes:
                yield f"{one}://{host}{port}{tail}"
                if not port:
                    yield f"{one}://{host}:{_SCHEMES[one]}{tail}"


def _remove_line_breaks(value: str) -> str:
    return re.sub(r"[\t\r\n]", "", value).strip()


def _without_port(authority: str) -> str:
    return re.sub(r":\d*$", "", authority) if not authority.endswith("]") else authority


def _port(scheme: str, authority: str) -> str:
    """The port where it is not the usual one."""
    found = re.search(r":(\d+)$", authority)
    return f":{int(found[1])}" if found and str(int(found[1])) not in {_SCHEMES[scheme], "0"} else ""


def _add_brackets(name: str) -> str:
    return f"[{name}]" if ":" in name else name


def _unicode(name: str) -> str:
    """The name as people write it."""
    if "xn--" not in name:
        return _add_brackets(name)
    try:
        return ".".join(
            label.removeprefix("xn--").encode().decode("punycode") if label.startswith("xn--") else label
            for label in name.split(".")
        )
    except UnicodeError:
        return name
