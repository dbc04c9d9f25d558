"""What is allowed on the way to a page, and what comes back from it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Allowances(NamedTuple):
    """The settings, as plain values."""

    private_hosts: tuple[str, ...] = ()
    robots: bool = True
    user_agent: str = ""
    proxy: str = ""
    seconds: float = 30.0
    most_bytes: int = 10 << 20
    hops: int = 10
    cache_seconds: float = 900.0


class Got(NamedTuple):
    """A page, whatever its status."""

    url: str
    """As it was asked for."""
    address: str
    """Where it came from, after redirects."""
    status: int
    media_type: str
    """In lower case, without parameters; empty where nothing was said."""
    charset: str
    body: bytes
    is_cached: bool = False
    why_partial: str = ""
    """Why this is not all of it, as a sentence."""
    headers: Mapping[str, str] = _NOTHING
    """By their names in lower case."""
    is_private: bool = False
    """Did it come from a host of the user's own network, or by way of one? A command of the session may be one."""


class Redirected(NamedTuple):
    """A redirect to another host, which was not followed."""

    url: str
    to: str
    status: int
    is_private: bool = False
    """Is the host that redirects one of the user's own network?"""
