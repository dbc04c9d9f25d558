"""Which domains a search may bring results from, compared by labels."""

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from ferrule.support.hosts import Bad, target

_PORT = 443


class Domain(NamedTuple):
    """A host and all below it; `*.example.org` means only those below."""

    host: str
    below: bool = False
    is_address: bool = False
    is_cut: bool = False
    """Did it come with a path, which says nothing about hosts?"""

    def covers(self, host: str) -> bool:
        """Is it this host, or one below it? Whole labels are compared."""
        if self.is_address or host == self.host:
            return host == self.host and not self.below
        own = self.host.split(".")
        return host.split(".")[-len(own) :] == own


class Domains(NamedTuple):
    """What is wanted, or what is not."""

    allowed: tuple[Domain, ...] = ()
    blocked: tuple[Domain, ...] = ()

    def lets(self, host: str) -> bool:
        """May results come from it? The host is in the spelling of `hosts.target`."""
        if any(domain.covers(host) for domain in self.blocked):
            return False
        return not self.allowed or any(domain.covers(host) for domain in self.allowed)

    def names(self) -> tuple[list[str], list[str]]:
        """Both lists as names of hosts, for back ends that filter themselves."""
        return [domain.host for domain in self.allowed], [domain.host for domain in self._shut()]

    def worded(self, text: str, most_chars: int) -> str:
        """The query with `site:` terms, for back ends that know no other way; as many as there is room for.

        What a term cannot say is filtered afterwards.
        """
        wanted: list[str] = []
        for domain in self.allowed:
            if len(f"{text} ({' OR '.join([*wanted, f'site:{domain.host}'])})") <= most_chars:
                wanted.append(f"site:{domain.host}")
        if wanted:
            return f"{text} ({' OR '.join(wanted)})" if len(wanted) > 1 else f"{text} {wanted[0]}"
        for domain in self._shut():
            longer = f"{text} -site:{domain.host}"
            text = longer if len(longer) <= most_chars else text
        return text

    def _shut(self) -> list[Domain]:
        """The blocked ones that a back end can be told: for it a host is always blocked with all below it."""
        return [domain for domain in self.blocked if not domain.below]

    def __bool__(self) -> bool:
        return bool(self.allowed or self.blocked)


def domain(written: str) -> Domain:
    """What somebody means by `docs.example.org`, `*.example.org` or `https://example.org/a`. Raises `hosts.Bad`."""
    found = _written().fullmatch(written.strip())
    if found is None:
        raise Bad(f"{written[:253]!r} is not the name of a host.")
    host = target(found["host"], port=_PORT)
    below = bool(found["below"])
    if below and host.address is not None:
        raise Bad(f"{written[:253]!r}: there is nothing below an address.")
    return Domain(host.host, below, host.address is not None, found["rest"] not in {"", "/", "/*"})


@functools.cache
def _written() -> re.Pattern[str]:
    return re.compile(r"(?:https?://)?(?P<below>\*?\.)?(?P<host>[^/?#]+)(?P<rest>(?:[/?#].*)?)", re.IGNORECASE)


def each(written: tuple[str, ...]) -> Iterator[Domain]:
    """One after the other, each once."""
    seen: set[tuple[str, bool]] = set()
    for one in map(domain, written):
        if (one.host, one.below) not in seen:
            seen.add((one.host, one.below))
            yield one
