"""Which machines may be connected to: a name is looked up once, and every address that it has is judged.

Hosts of this machine or of its own network are reached only where the user has named them. One address that leads
inside spoils the others: a name is not half trustworthy.
"""

import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from itertools import zip_longest
from typing import NamedTuple

from ferrule.support.hosts import PORTS, Address, Bad, Target, entries, is_forwarded, leads_inside
from ferrule.support.sandbox.proxy import Resolver
from ferrule.support.web.address import Url, upgraded
from ferrule.support.web.errors import WebError

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

    def is_private(self, where: Target, own: Target | None = None) -> bool:
        """Has the user named this host and this port as their own, or is it a command of the session?"""
        return where == own or any(entry.covers(where) for entry in self._entries) or self.inside(where) is not None

    def inside(self, where: Target) -> Inside | None:
        """The network in which a command of the session listens there; None where none does."""
        if where.host != "localhost" and (where.address is None or str(where.address) not in _LOOPBACKS):
            return None
        inside = self._inside()
        return inside if inside is not None and inside.listens(where.port) else None

    def settled(self, url: Url) -> Url:
        """The address as it is asked for: public hosts are asked over https."""
        return url if self.is_private(url.target) else upgraded(url)

    async def way(self, url: Url, own: Target | None, known: dict[str, tuple[Address, ...]]) -> Way:
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
        found = known.get(where.host) or await self._looked_up(where)
        _judge(url, found, private=private)
        _refuse_forwarded(url, own, found)
        known[where.host] = found
        return Way(url, _in_turns(found), private)

    def judge_literal(self, url: Url, own: Target | None = None) -> None:
        """Raises WebError for an address in the place of a name that leads inside. Nothing is looked up."""
        if url.target.address is not None and self.inside(url.target) is None:
            _judge(url, (url.target.address,), private=self.is_private(url.target, own))

    async def _looked_up(self, where: Target) -> tuple[Address, ...]:
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


def _refuse_forwarded(url: Url, own: Target | None, addresses: Sequence[Address]) -> None:
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
