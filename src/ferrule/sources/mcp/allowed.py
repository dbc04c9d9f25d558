"""Which servers may be used at all: `amp.mcpPermissions`, a list of which the first entry that matches decides.

An entry is `{"matches": {"url": glob} | {"command": glob, "args": glob}, "action": "allow" | "reject"}`; the arguments
are matched as one text. A list that cannot be understood rejects everything: it might have rejected anything.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ferrule.core.errors import ConfigError
from ferrule.permissions.rules.wildcard import Wildcard
from ferrule.sources.mcp.forms import ALLOWED as KEY
from ferrule.sources.mcp.server import Layer, Server

_MOST = 10_000
_PARTS = frozenset({"url", "command", "args"})


class Allowed(NamedTuple):
    """One entry of such a list."""

    source: str
    layer: Layer
    matches: tuple[tuple[str, str], ...]
    """Part of a server → glob; one without any is about every server."""
    is_allowed: bool

    def covers(self, server: Server) -> bool:
        if not self.matches:
            return True
        parts = {"url": server.url} if server.url else {"command": server.command, "args": " ".join(server.args)}
        return all(
            name in parts and Wildcard((tuple(glob.split("*")),)).matches(parts[name]) for name, glob in self.matches
        )


def read_allowed(entries: Any, *, source: str, layer: Layer) -> tuple[Allowed, ...]:
    """The entries of one file. Raises `ConfigError`."""
    if not isinstance(entries, list) or len(entries) > _MOST:
        raise ConfigError(f"{source}: {KEY} is a list of at most {_MOST:,} entries")
    return tuple(_entry(entry, number, source, layer) for number, entry in enumerate(entries, start=1))


def _entry(entry: Any, number: int, source: str, layer: Layer) -> Allowed:
    where = f"{source}: {KEY}, entry {number}"
    if not isinstance(entry, Mapping) or entry.keys() - {"matches", "action"}:
        raise ConfigError(f"{where} is an object of matches and action")
    matches, action = entry.get("matches", {}), entry.get("action")
    if action not in {"allow", "reject"}:
        raise ConfigError(f"{where}: the action is allow or reject")
    if not isinstance(matches, Mapping) or matches.keys() - _PARTS:
        raise ConfigError(f"{where}: matches has url, or command and args")
    if not all(isinstance(glob, str) for glob in matches.values()):
        raise ConfigError(f"{where}: what matches holds are texts with * for any characters")
    return Allowed(source, layer, tuple(matches.items()), action == "allow")


def rejecting(server: Server, entries: Iterable[Allowed]) -> Allowed | None:
    """The entry that keeps a server out. The user's own come first; one of a project may reject, and never allow."""
    own = [one for one in entries if one.layer != "project"]
    foreign = [one for one in entries if one.layer == "project"]
    for several in (own, foreign):
        found = next((one for one in several if one.covers(server)), None)
        if found is not None and not found.is_allowed:
            return found
    return None
