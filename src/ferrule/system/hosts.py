"""Which hosts and which addresses may be reached: names compared by labels, addresses by what they lead to.

An empty list lets nothing through. What is compared is what is resolved, in the same spelling.
"""

import functools
import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

Address = IPv4Address | IPv6Address

PORTS = (80, 443)
"""Those that a host of the list may be reached at when the list does not say."""
_LONGEST = 253


class Bad(ValueError):  # noqa: N818 - the state of a name, as a message quotes it
    """No name of a host."""


class NetworkEndpoint(NamedTuple):
    """What somebody wants to connect to."""

    host: str
    """In lower case and ASCII, without a dot at the end; an address in its shortest form."""
    port: int
    address: Address | None = None
    """Where the host is given as an address."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class HostEntry(NamedTuple):
    """One line of the list."""

    host: str
    below: bool
    """Is any host below this one meant, and not it itself?"""
    ports: tuple[int, ...]
    address: bool

    def covers(self, target: NetworkEndpoint) -> bool:
        if target.port not in self.ports or self.address != (target.address is not None):
            return False
        return target.host.endswith("." + self.host) if self.below else target.host == self.host


def entries(lines: Iterable[str]) -> tuple[HostEntry, ...]:
    """The list as it is compared. Raises `Bad` for a line that nobody can mean."""
    return tuple(map(_entry, lines))


def target(authority: str, *, port: int | None = None) -> NetworkEndpoint:
    """What `host:port` means; without a port in it, `port`. Raises `Bad`."""
    found = _authority().fullmatch(authority)
    if "@" in authority:
        # It is not repeated: what stands before the sign may be a password.
        raise Bad("The name of a host has no user's name and no password before it.")
    if found is None and re.search(r"[^:]:[0-9]{6,}\Z", authority) is None:
        raise Bad(f"{authority[:_LONGEST]!r} is not the name of a host.")
    written = found["port"] if found is not None else ""
    number = int(written) if written else port
    if number is None:
        raise Bad(f"{authority[:_LONGEST]!r} has no port.")
    if found is None or not 0 < number < 1 << 16:
        raise Bad(f"{authority[:_LONGEST]!r} has a port that there is not: they are 1 to 65535.")
    host, address = _host(found["six"] or found["host"], six=found["six"] is not None)
    return NetworkEndpoint(host, number, address)


def leads_inside(address: Address, *, private: bool = False) -> str:
    """Why this address is not one of the public internet, or nothing.

    `private` lets the networks of a house or a company through, and this machine, but not what no program is meant to
    reach: the address at which a cloud tells its machines their secrets, and those that are no single machine.
    """
    for each in _unwrap_address(address):
        if any(each in network for network in _networks(_NEVER) if network.version == each.version):
            return f"{address} is a link-local, metadata or group address"
        if not private and (
            not each.is_global
            or any(each in network for network in _networks(_INSIDE) if network.version == each.version)
            or (each.version == 6 and each not in _networks(("2000::/3",))[0])
        ):
            return f"{address} is a private or reserved address"
    return ""


_NEVER = (
    "0.0.0.0/8",
    "169.254.0.0/16",
    "100.100.100.200/32",
    "168.63.129.16/32",
    "192.0.0.192/32",
    "224.0.0.0/3",
    "::/128",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
    "fd00:42::42/128",
    "fd00:ec2::/32",
    "fd20:ce::/32",
)
"""Also where private networks are allowed."""
_INSIDE = (
    "192.0.0.0/24",
    "192.88.99.0/24",
    "198.18.0.0/15",
    "64:ff9b:1::/48",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
)
"""What `is_global` lets through in some versions of Python and should not."""
_CARRIES = {"64:ff9b::/96": 0, "64:ff9b:1::/48": 0, "::ffff:0:0:0/96": 0, "::/96": 0, "2002::/16": 80}
"""Networks of addresses that carry one of version 4, and how many bits are behind it."""


@functools.cache
def _networks(written: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(IPv6Network(each) if ":" in each else IPv4Network(each) for each in written)


def _unwrap_address(address: Address) -> list[Address]:
    """The address, and those that it carries: a gateway on the way may take them out."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    number = int(address)
    found: list[Address] = []
    for network, behind in zip(_networks(tuple(_CARRIES)), _CARRIES.values(), strict=True):
        if address in network and number > 1:
            found.append(IPv4Address(number >> behind & 0xFFFFFFFF))
    if address.teredo is not None:
        found += address.teredo
    if number >> 32 & 0xFFFFFFFF in {0x00005EFE, 0x02005EFE}:  # ISATAP
        found.append(IPv4Address(number & 0xFFFFFFFF))
    if address in _networks(("64:ff9b:1::/48",))[0]:
        # A gateway of one's own may also read it in the middle, with eight bits of nothing in between.
        found.append(IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF))
    # Only the gateway that everybody has is public by what it carries.
    well_known = address in _networks(("64:ff9b::/96",))[0]
    return found if well_known else [address, *found]


def _entry(line: str) -> HostEntry:
    text = line.strip()
    below = text.startswith("*.")
    name = text.removeprefix("*.")
    if "*" in name:
        raise Bad(f"{line!r} in the list of hosts: a star stands only before the first dot, as in *.example.org.")
    if "/" in name and "@" not in name:
        raise Bad(f"{line[:_LONGEST]!r} in the list of hosts: an entry is `host` or `host:port`, as localhost:8000.")
    bare = ":" in name and not name.startswith("[") and name.count(":") > 1
    found = target(f"[{name}]" if bare else name, port=PORTS[0])
    if below and found.address is not None:
        raise Bad(f"{line!r} in the list of hosts: there is nothing below an address.")
    given = not bare and re.search(r":[0-9]+\Z", name.rpartition("]")[2]) is not None
    return HostEntry(found.host, below, (found.port,) if given else PORTS, found.address is not None)


@functools.cache
def _authority() -> re.Pattern[str]:
    # No user part, no blank, no control character, no backslash, no percent sign: nothing that two readers of an
    # address have ever read in two ways.
    return re.compile(
        r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\x00-\x20\x7f-\x9f@:/\\?#%\[\]*]+))(?::(?P<port>[0-9]{1,5}))?"
    )


@functools.cache
def _label() -> re.Pattern[str]:
    return re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")


def _host(written: str, *, six: bool) -> tuple[str, Address | None]:
    if six:
        try:
            address: Address = IPv6Address(written)
        except ValueError as error:
            raise Bad(f"{written!r} is not an address.") from error
        return str(address), address
    name = written if written.isascii() else _ascii(written[: _LONGEST + 1])
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > _LONGEST or not all(_label().fullmatch(label) for label in labels):
        raise Bad(f"{written[:_LONGEST]!r} is not the name of a host.")
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        # A resolver reads 127.1, 0x7f000001 and 2130706433 as addresses. Only the plain writing passes.
        try:
            address = ip_address(name)
        except ValueError as error:
            raise Bad(f"{written!r} is not an address in its usual form.") from error
        return str(address), address
    return name, None


def _ascii(written: str) -> str:
    try:
        return written.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise Bad(f"{written[:_LONGEST]!r} is not the name of a host.") from error


FORWARDED: set[int] = set()
"""Ports of this machine's loopback behind which commands of a session answer: nothing there is to be trusted."""


def is_forwarded(host: str, port: int) -> bool:
    """Does a command of a session, and no program of the user's, answer there?"""
    return port in FORWARDED and host in {"localhost", "127.0.0.1", "::1", "[::1]", "0.0.0.0"}  # noqa: S104 - compared
