"""Define the entries of a registry: tools, faces of self-describing tools, and the tools that a session shows.

The registry is described both as it was built and as it is after tools from other sources have been added.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ferrule.core.errors import ConfigError
from ferrule.core.services import has_failed, render_outcome
from ferrule.core.tool import EMPTY_SCHEMA, AnyTool, Exposure, Face, Facts, Values, as_it_is
from ferrule.tools import facts_of


class ExposurePolicy(NamedTuple):
    """What the settings and the dialect say of the tools that a session has and shows."""

    disable: Sequence[str] = ()
    """Globs of tools that it does not have; `builtin:NAME` means only the built-in one."""
    exposure: Mapping[str, Exposure] = MappingProxyType({})
    """A name, or a glob of names → how a tool is exposed."""
    short_names: bool = False
    """Is a server's tool shown under its short name, as long as that means nothing else?"""
    defers: bool = False
    """Are servers' tools deferred also where they are few?"""
    defer_tokens: int = 10_000
    """They are deferred when all of them together cost more than this."""
    for_people: bool = False
    """May deferred tools be called without having been loaded? A person needs no schema first."""


USUAL = ExposurePolicy()


class Elsewhere:
    """The part of a registry that is about tools from elsewhere. They may not be here yet: few sessions need any."""

    _tools: "dict[str, AnyTool | Later]"

    def __init__(self) -> None:
        self.on_changed: Callable[[], object] | None = None
        """Told when what is advertised has changed."""
        self.before_search: Callable[[], Awaitable[object]] | None = None
        """Awaited before a search: whoever knows of tools that were never listed brings them."""
        self.permits: Callable[[Face], bool] = lambda _: True
        """May the session use it at all? What it may not use is not found either."""
        self.definitions_follow = False
        """Is the model shown what is advertised anew before each of its turns? Then no search repeats it."""
        self.changes = 0
        """How often what is advertised has changed."""
        self._replaced: Mapping[str, Face] = {}
        self._waiting: dict[str, Face] = {}
        self._longer: Mapping[str, Sequence[str]] = {}
        self._warnings: Mapping[str, str] = {}
        self._deferred: Mapping[str, Deferred] = {}
        self._put_off: Callable[[], object] | None = None

    def put_off(self, bring: Callable[[], object]) -> None:
        """Have `bring` called before anybody looks at more than names that are known: it may replace none of them."""
        self._put_off = bring

    def settle(self) -> None:
        """Bring now what was put off. It is no news: nobody has seen the registry without it."""
        bring, self._put_off = self._put_off, None
        if bring is not None:
            told, self.on_changed = self.on_changed, None
            try:
                bring()
            finally:
                self.on_changed = told

    def _tell_changed(self) -> None:
        self.changes += 1
        if self.on_changed is not None:
            self.on_changed()

    def guidance(self, face: Face) -> str:
        """What a tool wants known in a system prompt. Built-in ones say all in their words: none is loaded for it."""
        tool = self._tools.get(face.tool)
        return "" if tool is None or isinstance(tool, Later) else tool.guidance.strip()

    def facts(self, face: Face) -> Facts:
        """Return what is true of a tool of ours; what stands in its place is taken for it. Loads none of them."""
        tool = self._tools.get(face.tool)
        if tool is None or isinstance(tool, Later) or tool.source != "builtin":
            return facts_of(face.tool)
        return tool.facts

    def subagent_types(self, face: Face) -> tuple[str, ...] | None:
        """The subagents that may use a tool; None means all. Built-in ones are for all: none is loaded for it."""
        tool = self._tools.get(face.tool)
        return None if tool is None or isinstance(tool, Later) else tool.subagent_types

    @property
    def deferred(self) -> "Mapping[str, Deferred]":
        """The tools that a search can find, those that are loaded among them."""
        self.settle()
        return self._deferred


class Later(NamedTuple):
    """A tool that is loaded when it is first called: a session pays for the tools that it uses."""

    name: str
    load: Callable[[], AnyTool]


class Registered(NamedTuple):
    """A tool with the face that it shows: its spec, its function and its execution profile in one."""

    face: Face
    tool: AnyTool

    def spec(self) -> dict[str, Any]:
        """The whole definition, for people and programs; a model is shown `face.definition()`."""
        out = {**self.face.definition(), "source": self.tool.source}
        if not self.tool.timed:
            out["meta"] = {"disableTimeout": True}
        if self.face.aliases:
            out["aliases"] = list(self.face.aliases)
        return out


def claim(names: dict[str, Face], name: str, face: Face) -> None:
    """Give a face a name that no other has. Raises `ConfigError` where one does."""
    taken = names.get(name)
    if taken is not None and taken is not face:
        if taken.name == face.name == name:
            raise ConfigError(f"Two tools are called {name}.")
        raise ConfigError(f"The name {name} means both {taken.name} and {face.name}.")
    names[name] = face


def describes_itself(tool: AnyTool | Later) -> bool:
    """Was the tool given with a schema of its own? Then no family's face says what it takes."""
    return not isinstance(tool, Later) and tool.schema is not EMPTY_SCHEMA


def plain_face(tool: AnyTool, name: str = "") -> Face:
    """The face of a tool that no family knows: as the tool describes itself, and shown under its name or this one."""
    # Arguments that are not ours to know are handed on as they came.
    raw = getattr(tool.args, "raw", False)
    return Face(
        tool=tool.name,
        name=name or tool.name,
        schema=tool.schema,
        words=tool.words,
        lift=_wrap_values if raw else as_it_is,
        lower=_unwrap_values if raw else as_it_is,
        says=render_outcome,
        failed=has_failed,
    )


def _wrap_values(values: Values) -> Values:
    return {"values": values}


def _unwrap_values(values: Values) -> Values:
    inner: Values = values["values"]
    return inner


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
