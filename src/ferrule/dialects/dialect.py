"""A dialect: the faces of one model family and the names that it grew up with."""

from collections.abc import Callable, Mapping

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.core.face import Face


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One model family's tools."""

    name: str
    faces: tuple[Face, ...]
    notes: str = ""
    """The folder, in the workspace, that the family's agents write their notes in; that needs no question."""
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Another name → the name of a face; also for faces that are not here yet."""


def _amp() -> Dialect:
    from ferrule.dialects.families.amp import amp  # a family is loaded when a session speaks it

    return amp()


FAMILIES: Mapping[str, Callable[[], Dialect]] = {"amp": _amp}


def load_dialect(name: str) -> Dialect:
    """A family's dialect by name."""
    family = FAMILIES.get(name)
    if family is None:
        raise ConfigError(f"There is no dialect called {name!r}. The dialects are {', '.join(sorted(FAMILIES))}.")
    return family()
