"""The forms that a file of servers may have: Claude Code's, Amp's, and a bare map of names and servers."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ferrule.core.errors import ConfigError

CLAUDE, AMP = "mcpServers", "amp.mcpServers"
ALLOWED = "amp.mcpPermissions"


class Form(NamedTuple):
    """What a file says, before any entry is looked at."""

    servers: Mapping[str, Any]
    allowed: Any = None
    """What stands under `amp.mcpPermissions`; None where nothing does."""


def parsed(text: str, source: str) -> Any:
    """A JSON value in which no key is there twice; comments are allowed. Raises `ConfigError`."""
    try:
        return _strict(text)
    except (ValueError, RecursionError):
        pass
    # For files with comments, and for good words about what is wrong with the others.
    from ferrule.permissions.rules.amp import without_comments
    from ferrule.permissions.rules.ampline import parse_json

    try:
        return parse_json(without_comments(text))
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}.") from None


def strictly_parsed(text: str, source: str) -> Any:
    """The same for a file that is to be written anew: comments would be lost. Raises `ConfigError`."""
    try:
        return _strict(text)
    except (ValueError, RecursionError):
        parsed(text, source)  # says what is wrong, if anything is
        raise ConfigError(f"{source} has comments, which would be lost. Change it by hand.") from None


def form_of(value: Any, source: str, *, bare: bool = False) -> Form:
    """The servers of a file; `bare` is for files that may be a map of servers alone. Raises `ConfigError`."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{source}: an object with {CLAUDE} is expected.")
    key = place(value)
    if not key and bare and value and all(isinstance(one, Mapping) for one in value.values()):
        return Form(value)
    servers = value.get(key, {}) if key else {}
    if not isinstance(servers, Mapping):
        raise ConfigError(f"{source}: {key} is an object of names and servers.")
    return Form(servers, value.get(ALLOWED))


def place(value: Mapping[str, Any]) -> str:
    """The key under which a file has its servers; empty where it has none."""
    return next((key for key in (CLAUDE, AMP) if key in value), "")


def _strict(text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            # Whoever looks at the file sees the first of them, and a parser takes the last.
            raise ValueError("a key is there twice")
        return found

    return json.loads(text, object_pairs_hook=once)
