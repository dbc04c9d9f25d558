"""The tools of an engine by every name that they answer to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.core.errors import ConfigError, UnknownTool
from ferrule.core.face import Face
from ferrule.core.tool import EMPTY_SCHEMA, AnyTool
from ferrule.registry.foreign import Family, Foreign, Heard, fits, own_words

if TYPE_CHECKING:
    from ferrule.registry.hearing import Hearing

_NAME_CHARS = 128
"""How much of an unknown name is looked at and said back; no model API takes a longer one."""


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


class Registry:
    """Built once, from written lists: a name that is given twice is an error at once."""

    def __init__(
        self,
        tools: Iterable[AnyTool | Later],
        faces: Iterable[Face],
        aliases: Mapping[str, str],
        foreign: Callable[[], Sequence[Family]] = tuple,
    ) -> None:
        """`foreign` gives the other families, when a call is not in this one's words."""
        self._tools: dict[str, AnyTool | Later] = {}
        self._faces: list[Face] = []
        self._shown: dict[str, Face] = {}
        self._names: dict[str, Face] = {}
        self._older: dict[str, list[Face]] = {}
        self._kin: dict[str, str] = {}
        """The tool of an older arrangement → the tool of the face whose name it shares."""
        self._aliases: dict[str, str] = {}
        """Names of tools that may or may not be here → the name to say instead."""
        for tool in tools:
            if tool.name in self._tools:
                raise ConfigError(f"Two tools are called {tool.name}.")
            self._tools[tool.name] = tool
        self._promised: set[str] = set()
        """The family's own names for tools that are not here."""
        self._given = {name for name, tool in self._tools.items() if not isinstance(tool, Later)}
        for face in faces:
            if face.tool in self._tools and not self._describes_itself(face.tool):
                self._add(face)
            else:
                self._promised.add(face.name)
        faced = {face.tool for face in self._names.values()}
        # A built-in tool that the family does not know is not advertised; a tool that the user gave is.
        for tool in self._tools.values():
            if tool.name not in faced and not isinstance(tool, Later):
                self._add(plain_face(tool))
        self._rename(aliases)
        self._answers: dict[str, Face] = {}
        """The face in whose words a tool's calls are answered, whatever words they came in."""
        for face in (*self._shown.values(), *self._faces):
            self._answers.setdefault(face.tool, face)
        self._own = frozenset(self._names)
        # A canonical name passes through wherever the family does not use the word for something else.
        for face in tuple(self._shown.values()):
            self._names.setdefault(face.tool, face)
        self._foreign = Foreign(foreign, self._tools.keys() - self._given, self._faces)
        self._guests: dict[str, Face] = {}
        """Names of other families, as far as they were used → the face that answers."""

    def _add(self, face: Face) -> None:
        self._faces.append(face)
        if face.shown:
            self._shown[face.name] = face
        self._claim(face.name, face)
        for alias in face.aliases:
            if face.shown or alias not in self._names:
                self._claim(alias, face)
            else:
                # An older arrangement of what another face is called; the arguments tell them apart.
                self._older.setdefault(alias, []).append(face)
                self._kin[face.tool] = self._names[alias].tool

    def _rename(self, aliases: Mapping[str, str]) -> None:
        for alias, name in aliases.items():
            if name in self._names:
                self._claim(alias, self._names[name])
            else:
                self._aliases[alias] = name

    def _claim(self, name: str, face: Face) -> None:
        taken = self._names.get(name)
        if taken is not None and taken is not face:
            if taken.name == face.name == name:
                raise ConfigError(f"Two tools are called {name}.")
            raise ConfigError(f"The name {name} means both {taken.name} and {face.name}.")
        self._names[name] = face

    def _describes_itself(self, name: str) -> bool:
        """Was the tool given with a schema of its own? Then no family's face says what it takes."""
        tool = self._tools[name]
        return not isinstance(tool, Later) and tool.schema is not EMPTY_SCHEMA

    def _load(self, name: str) -> AnyTool:
        tool = self._tools[name]
        if isinstance(tool, Later):
            tool = self._tools[name] = tool.load()
        return tool

    def resolve(self, name: str) -> Registered:
        """The tool that a name means: to this family, else to another. An unknown name is answered with the nearest."""
        face = self._names.get(name) or self._abroad(name)
        if face is not None:
            return Registered(face, self._load(face.tool))
        if name in self._aliases:
            raise UnknownTool(
                f"{name} means {self._aliases[name]}, which is not among this session's tools: {self._list()}."
            )
        if name in self._promised or self._foreign.promised(name):
            raise UnknownTool(f"{name} is a tool that this version does not have yet. The tools are {self._list()}.")
        from ferrule.support.near import near  # only a mistake pays for it

        meant = dict.fromkeys(self._names[known].name for known in near(name[:_NAME_CHARS], self._names))
        hint = f" Did you mean {' or '.join(meant)}?" if meant else f" The tools are {self._list()}."
        raise UnknownTool(f"There is no tool called {name[:_NAME_CHARS]!r}.{hint}")

    def _abroad(self, name: str) -> Face | None:
        """The face that answers to another family's name, or to a canonical one."""
        found = self._guests.get(name)
        if found is None and name not in self._promised:
            found = self._guest(name)
            if found is not None:
                self._guests[name] = found
        return found

    def _guest(self, name: str) -> Face | None:
        named = self._foreign.named(name)
        if named:
            return self._answers.get(named[0].face.tool, named[0].face)
        if name not in self._tools:
            return None
        having = self._foreign.having(name)
        return having[0].face if having else own_words(self._load(name))

    def hear(self, name: str, values: dict[str, Any]) -> Heard:
        """The call that a name and its arguments make, in whichever family's words it comes. Raises `UnknownTool`.

        Where two families give one name two meanings, this one's own counts, if the arguments fit it at all.
        """
        is_own = name in self._own
        face = self._names[name] if is_own else self.resolve(name).face
        # A tool that the user gave means what the user says, whatever others call by that name.
        if face.tool in self._given or (is_own and fits(face, values, forgiving=False)):
            return Heard(face, self._load(face.tool), face, values)
        return self._hearing.hear(name, face, values, is_own=is_own)

    @cached_property
    def _hearing(self) -> "Hearing":
        from ferrule.registry.hearing import Hearing  # for calls that are not in this family's words

        return Hearing(self._faces, self._answers, self._older, self._foreign, self._load)

    def _list(self) -> str:
        return ", ".join(self._shown)

    def shown(self) -> Sequence[Face]:
        """What is advertised, in the order of the dialect."""
        return tuple(self._shown.values())

    def knows(self, name: str) -> bool:
        """Is it a name of a tool here?"""
        return name in self._names or self._abroad(name) is not None

    def canonical(self, name: str) -> str:
        """The canonical tool behind any name; the name itself where nothing is known of it.

        An older arrangement of a tool counts as that tool: whoever may use the one may use the other.
        """
        face = self._names.get(name) or self._abroad(name)
        return self._kin.get(face.tool, face.tool) if face else name


def plain_face(tool: AnyTool) -> Face:
    """The face of a tool that no family knows: as the tool describes itself."""
    return Face(tool=tool.name, name=tool.name, schema=tool.schema, words=tool.words)
