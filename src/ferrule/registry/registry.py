"""The tools of an engine by every name that they answer to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ferrule.core.errors import ConfigError, UnknownTool
from ferrule.core.face import Face
from ferrule.core.tool import AnyTool

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

    def __init__(self, tools: Iterable[AnyTool | Later], faces: Iterable[Face], aliases: Mapping[str, str]) -> None:
        self._tools: dict[str, AnyTool | Later] = {}
        self._shown: dict[str, Face] = {}
        self._names: dict[str, Face] = {}
        self._aliases: dict[str, str] = {}
        """Names of tools that may or may not be here → the name to say instead."""
        for tool in tools:
            if tool.name in self._tools:
                raise ConfigError(f"Two tools are called {tool.name}.")
            self._tools[tool.name] = tool
        for face in faces:
            if face.tool in self._tools:
                self._add(face)
        faced = {face.tool for face in self._names.values()}
        for tool in self._tools.values():
            if tool.name not in faced:
                self._add(plain_face(self._load(tool.name)))
        for alias, name in aliases.items():
            if name in self._names:
                self._claim(alias, self._names[name])
            else:
                self._aliases[alias] = name
        # A canonical name passes through wherever no family uses the word for something else.
        for face in tuple(self._shown.values()):
            self._names.setdefault(face.tool, face)

    def _add(self, face: Face) -> None:
        if face.shown:
            self._shown[face.name] = face
        self._claim(face.name, face)
        for alias in face.aliases:
            self._claim(alias, face)

    def _claim(self, name: str, face: Face) -> None:
        taken = self._names.get(name)
        if taken is not None and taken is not face:
            if taken.name == face.name == name:
                raise ConfigError(f"Two tools are called {name}.")
            raise ConfigError(f"The name {name} means both {taken.name} and {face.name}.")
        self._names[name] = face

    def _load(self, name: str) -> AnyTool:
        tool = self._tools[name]
        if isinstance(tool, Later):
            tool = self._tools[name] = tool.load()
        return tool

    def resolve(self, name: str) -> Registered:
        """The tool that a name means; an unknown name is answered with the nearest ones."""
        face = self._names.get(name)
        if face is not None:
            return Registered(face, self._load(face.tool))
        if name in self._aliases:
            raise UnknownTool(
                f"{name} means {self._aliases[name]}, which is not among this session's tools: {self._list()}."
            )
        from ferrule.support.near import near  # only a mistake pays for it

        meant = dict.fromkeys(self._names[known].name for known in near(name[:_NAME_CHARS], self._names))
        hint = f" Did you mean {' or '.join(meant)}?" if meant else f" The tools are {self._list()}."
        raise UnknownTool(f"There is no tool called {name[:_NAME_CHARS]!r}.{hint}")

    def _list(self) -> str:
        return ", ".join(self._shown)

    def shown(self) -> Sequence[Face]:
        """What is advertised, in the order of the dialect."""
        return tuple(self._shown.values())

    def knows(self, name: str) -> bool:
        """Is it a name of a tool here?"""
        return name in self._names

    def canonical(self, name: str) -> str:
        """The canonical tool behind any name; the name itself where nothing is known of it."""
        face = self._names.get(name)
        return face.tool if face else name


def plain_face(tool: AnyTool) -> Face:
    """The face of a tool that no family knows: as the tool describes itself."""
    return Face(tool=tool.name, name=tool.name, schema=tool.schema, words=tool.words)
