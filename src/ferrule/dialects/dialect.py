"""A dialect: the faces of one model family and the names that it grew up with."""

import importlib
from collections.abc import Mapping

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.core.face import Face

FAMILIES = ("amp", "claude", "wayland", "ah", "codex", "gemini", "opencode", "pi")
"""In the order in which their words are tried when a call is not in those of the session."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One model family's tools."""

    name: str
    faces: tuple[Face, ...]
    notes: str = ""
    """The folder, in the workspace, that the family's agents write their notes in; that needs no question."""
    protects: str = ""
    """The environment variable with folders, between colons, that no call of a session may write in."""
    short_names: bool = False
    """Is a tool of a server shown under its own name, as long as no other tool has that?"""
    defers: bool = False
    """Are tools of servers deferred also where they are few?"""
    deferred: tuple[str, ...] = ()
    """Names of faces that are found by a search and not advertised, as long as the settings say nothing else."""
    asks_programs: bool = False
    """Is every program in a folder of tools a tool, also one that nothing describes? It is asked."""
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Another name → the name of a face; also for faces that are not here yet."""


_loaded: dict[str, Dialect] = {}


def load_dialect(name: str) -> Dialect:
    """A family's dialect by name; it is read once, when somebody first speaks it."""
    if name not in FAMILIES:
        raise ConfigError(f"There is no dialect called {name!r}. The dialects are {', '.join(sorted(FAMILIES))}.")
    found = _loaded.get(name)
    if found is None:
        found = _loaded[name] = importlib.import_module(f"ferrule.dialects.families.{name}").dialect()
    return found
