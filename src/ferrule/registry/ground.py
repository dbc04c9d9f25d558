"""What a registry is built of, and what it is after tools have come from elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ferrule.core.face import Face
from ferrule.core.tool import AnyTool
from ferrule.registry.entry import Later


class Ground(NamedTuple):
    """What the registry was built of."""

    faces: Sequence[Face]
    names: Mapping[str, Face]
    older: Mapping[str, Sequence[Face]]
    answers: Mapping[str, Face]
    kin: Mapping[str, str]
    own: frozenset[str]
    given: frozenset[str]
    tools: dict[str, AnyTool | Later]
    taken: frozenset[str]
    """Names that the family uses for what is not here."""
    foreign: Callable[[str], bool]
    """Is it a name of a tool in another family?"""
    borrowed: Callable[[str], Face | None]
    """Another family's face of a tool that this one has none for."""
    load: Callable[[str], AnyTool]


class Deferred(NamedTuple):
    """A tool that a search can find."""

    face: Face
    names: tuple[str, ...]
    """All that it is called by."""
    group: str
    """Where it comes from, in a word."""
    short: str
    """Its name beside that of the group."""


class Grown(NamedTuple):
    """The registry as it is from now on."""

    tools: dict[str, AnyTool | Later]
    names: dict[str, Face]
    shown: dict[str, Face]
    own: set[str]
    given: frozenset[str]
    answers: dict[str, Face]
    kin: dict[str, str]
    replaced: dict[str, Face]
    """Built-in tools that another stands in the place of → its face."""
    waiting: dict[str, Face]
    """Names of deferred tools that are not loaded."""
    deferred: dict[str, Deferred]
    longer: dict[str, list[str]]
    """Short names of servers' tools → the whole names."""
    loaded: dict[str, Face]
    """Deferred tools that are advertised by now."""
    warnings: dict[str, str]
    """Sentences about tools that were left out → the source that brought them."""
