"""The tools of an engine by every name that they answer to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ferrule.core.errors import ConfigError
from ferrule.core.tool import AnyTool, Face
from ferrule.registry.entry import (
    USUAL,
    Elsewhere,
    ExposurePolicy,
    Ground,
    Later,
    Registered,
    claim,
    describes_itself,
    plain_face,
)
from ferrule.registry.foreign import CallInterpreter, Family, ForeignCall, ForeignFaces, fits, own_words
from ferrule.tools import ON_REQUEST, TOOL_SEARCH

if TYPE_CHECKING:
    from ferrule.registry.dynamic import Growth
    from ferrule.registry.search import ToolCatalog


__all__ = ["ExposurePolicy", "Later", "Registered", "Registry", "plain_face"]


class Registry(Elsewhere):
    """Built from written lists, where a name that is given twice is an error at once. Others bring tools later."""

    def __init__(
        self,
        tools: Iterable[AnyTool | Later],
        faces: Iterable[Face],
        aliases: Mapping[str, str],
        foreign: Callable[[], Sequence[Family]] = tuple,
        showing: ExposurePolicy = USUAL,
    ) -> None:
        """`foreign` gives the other families, when a call is not in this one's words."""
        super().__init__()
        self._showing = showing
        self._families = foreign
        self._tools = {}
        self._faces: list[Face] = []
        self._shown: dict[str, Face] = {}
        self._names: dict[str, Face] = {}
        self._older: dict[str, list[Face]] = {}
        self._kin: dict[str, str] = {}
        """The tool of an older arrangement, or one in a built-in's place → the tool whose name it shares."""
        self._aliases: dict[str, str] = {}
        """Names of tools that may or may not be here → the name to say instead."""
        self._disabled: frozenset[str] = frozenset()
        self._promised: dict[str, str] = {}
        """The family's own names for tools that are not here → the tool."""
        faces = tuple(faces)
        self._gather(tools, faces, aliases)
        self._given = frozenset(name for name, tool in self._tools.items() if not isinstance(tool, Later))
        self._face(faces)
        self._rename(aliases)
        self._answers: dict[str, Face] = {}
        """The face in whose words a tool's calls are answered, whatever words they came in."""
        advertised = [face for face in self._faces if face.shown]
        for face in (*advertised, *self._faces):
            self._answers.setdefault(face.tool, face)
        self._own = set(self._names)
        # A canonical name passes through wherever the family does not use the word for something else.
        for face in advertised:
            self._names.setdefault(face.tool, face)
        self._foreign = ForeignFaces(foreign, self._tools.keys() - self._given, self._faces)
        self._guests: dict[str, Face] = {}
        """Names of other families, as far as they were used → the face that answers."""
        if showing.exposure:
            self._grow()

    def _gather(self, tools: Iterable[AnyTool | Later], faces: Sequence[Face], aliases: Mapping[str, str]) -> None:
        for tool in tools:
            if tool.name in self._tools:
                raise ConfigError(f"Two tools are called {tool.name}.")
            self._tools[tool.name] = tool
        if self._showing.disable:
            from ferrule.registry.dynamic import find_disabled  # for who switches tools off

            families = [Family("", faces, aliases), *self._families()]
            self._disabled = find_disabled(self._showing.disable, self._tools, families)
            self._tools = {name: tool for name, tool in self._tools.items() if name not in self._disabled}

    def _face(self, faces: Iterable[Face]) -> None:
        for face in faces:
            if face.tool in self._tools and not describes_itself(self._tools[face.tool]):
                self._add(face)
            else:
                self._promised[face.name] = face.tool
        faced = {face.tool for face in self._names.values()}
        # A built-in tool that the family does not know is not advertised; a tool that the user gave is.
        for tool in self._tools.values():
            if tool.name not in faced and not isinstance(tool, Later):
                self._add(plain_face(tool))

    def _add(self, face: Face) -> None:
        self._faces.append(face)
        if face.shown and face.tool not in ON_REQUEST:
            self._shown[face.name] = face
        claim(self._names, face.name, face)
        for alias in face.aliases:
            if face.shown or alias not in self._names:
                claim(self._names, alias, face)
            else:
                # An older arrangement of what another face is called; the arguments tell them apart.
                self._older.setdefault(alias, []).append(face)
                self._kin[face.tool] = self._names[alias].tool

    def _rename(self, aliases: Mapping[str, str]) -> None:
        for alias, name in aliases.items():
            if name in self._names:
                claim(self._names, alias, self._names[name])
            else:
                self._aliases[alias] = name

    def _load(self, name: str) -> AnyTool:
        tool = self._tools[name]
        if isinstance(tool, Later):
            tool = self._tools[name] = tool.load()
        return tool

    def resolve(self, name: str) -> Registered:
        """The tool that a name means: to this family, else to another. An unknown name is answered with the nearest.

        A deferred tool is loaded by that: whoever knows its name can call it. Raises `ToolFailure`.
        """
        face = self._names.get(name)
        if face is None:
            face = self._find_face(name)
        return Registered(face, self._load(face.tool))

    def _find_face(self, name: str) -> Face:
        """The face behind a name that is not this session's own, or was put off."""
        face = self._beyond(name)
        waiting = self._waiting.get(name)
        if face is not None and waiting is None:
            return face
        from ferrule.registry.foreign import not_loaded, unknown  # only a mistake pays for it

        if waiting is not None and self.permits(waiting):
            self.load([waiting.tool])
            return waiting
        longer = self._longer.get(name, ())
        if len(longer) == 1 and (waiting := self._waiting.get(longer[0])) is not None and self.permits(waiting):
            self.load([waiting.tool])
            raise not_loaded(name, waiting)
        behind = self._promised.get(name) or self._foreign.behind(name)
        raise unknown(
            name,
            known={**self._waiting, **self._names},
            shown=[shown for shown, its in self._shown.items() if self.permits(its)],
            instead=self._aliases.get(name),
            behind=behind,
            disabled=self._disabled,
            longer=longer,
        )

    def is_waiting(self, name: str) -> bool:
        """Is it a deferred tool that is not loaded, so that the model does not know its parameters?"""
        if name in self._names:
            return False
        self.settle()
        return name in self._waiting

    def _beyond(self, name: str) -> Face | None:
        self.settle()
        return self._names.get(name) or self._waiting.get(name) or self._abroad(name)

    def _abroad(self, name: str) -> Face | None:
        """The face that answers to another family's name, or to a canonical one."""
        found = self._guests.get(name)
        if found is None and name not in self._promised:
            found = self._guest(name)
            if found is not None:
                self._guests[name] = found
        return found

    def _guest(self, name: str) -> Face | None:
        named = self._foreign.find_by_name(name)
        if named:
            return self._answers.get(named[0].face.tool, named[0].face)
        if name not in self._tools:
            return None
        having = self._foreign.find_by_tool(name)
        return having[0].face if having else own_words(self._load(name))

    def hear(self, name: str, values: dict[str, Any]) -> ForeignCall:
        """The call that a name and its arguments make, in whichever family's words it comes. Raises `UnknownTool`.

        Where two families give one name two meanings, this one's own counts, if the arguments fit it at all.
        """
        is_own = name in self._own
        face = self._names[name] if is_own else self.resolve(name).face
        # A tool that the user gave means what the user says, whatever others call by that name.
        if face.tool in self._given or (is_own and fits(face, values, forgiving=False)):
            return ForeignCall(face, self._load(face.tool), face, values)
        return self._hearing.hear(name, face, values, is_own=is_own)

    @cached_property
    def _hearing(self) -> "CallInterpreter":
        return CallInterpreter(
            self._faces, self._answers, self._older, self._foreign, self._load, without=self._replaced
        )

    def visible_faces(self) -> Sequence[Face]:
        """What is advertised, in the order of the dialect; what came later stands behind it."""
        self.settle()
        return tuple(self._shown.values())

    def face_of(self, tool: str) -> Face | None:
        """How a built-in tool is shown to this family, whether it is or not; another family's face where it has none.

        None where the session has no such tool.
        """
        if tool not in self._tools:
            return None
        own = next((face for face in self._faces if face.tool == tool and face.shown), None)
        return own or self._foreign.borrow_face(tool)

    def knows(self, name: str) -> bool:
        """Is it a name of a tool here?"""
        return name in self._names or self._beyond(name) is not None

    def canonical(self, name: str) -> str:
        """The canonical tool behind any name; the name itself where nothing is known of it.

        An older arrangement of a tool counts as that tool: whoever may use the one may use the other. So does what
        stands in a built-in tool's place: what rules say about that binds it.
        """
        face = self._names.get(name) or self._beyond(name)
        return self._kin.get(face.tool, face.tool) if face else name

    @cached_property
    def _growth(self) -> "Growth":
        from ferrule.registry.dynamic import Growth

        ground = Ground(
            faces=tuple(self._faces),
            names=dict(self._names),
            older=self._older,
            answers=dict(self._answers),
            kin=dict(self._kin),
            own=frozenset(self._own),
            given=self._given,
            tools=dict(self._tools),
            taken=frozenset((*self._promised, *self._aliases)),
            foreign=lambda name: self._foreign.behind(name) is not None,
            borrowed=self._foreign.borrow_face,
            load=self._load,
        )
        return Growth(ground, self._showing)

    def bring(self, source: str, tools: Iterable[AnyTool]) -> list[str]:
        """The tools of a source, in place of what it brought before; sentences about those that could not be taken.

        What the user's own tools share a name with, they replace; tools of toolboxes and servers replace nothing.
        """
        known = self._warnings
        self._grow(self._growth.with_more(source, tools))
        # Also about others whose names it took.
        return [said for said, about in self._warnings.items() if about == source or said not in known]

    def drop(self, source: str) -> None:
        """Let go of what a source has brought; what it stood in the place of is there again."""
        if source in self._growth.sources:
            self._grow({name: tools for name, tools in self._growth.sources.items() if name != source})

    def offer(self, tool: str, offered: bool) -> None:  # noqa: FBT001 - the whole of what is said
        """Advertise one of the tools that are not always of use, or no longer; a call is understood either way."""
        is_said = offered or tool == TOOL_SEARCH or tool not in ON_REQUEST or "_growth" in self.__dict__
        if is_said and self._growth.offer(tool, offered=offered):
            self._grow()

    def load_all(self) -> None:
        """Let every deferred tool be called at once, for people: they need no schema first."""
        self._growth.callable = True
        self._grow()

    def load(self, tools: Iterable[str]) -> None:
        """Advertise these deferred tools from now on, and let them be called."""
        new = [tool for tool in tools if tool in self.deferred and tool not in self._growth.loaded]
        for tool in new:
            face, names = self.deferred[tool].face, self.deferred[tool].names
            self._growth.loaded[tool] = self._shown[face.name] = face
            self._names.update((name, self._waiting.pop(name)) for name in names if name in self._waiting)
            self._own.update(names)
        if new:
            self._tell_changed()

    @cached_property
    def catalog(self) -> "ToolCatalog":
        """What `tool_search` looks in."""
        from ferrule.registry.search import ToolCatalog  # for sessions that search

        return ToolCatalog(self)

    def _grow(self, sources: Mapping[str, tuple[AnyTool, ...]] | None = None) -> None:
        """Become what the sources make of it, all at once, so that nothing is half done."""
        before = tuple(self._shown.values())
        for name, tool in self._tools.items():
            if name not in self._replaced and not isinstance(tool, Later):
                self._growth.keep(name, tool)
        grown = self._growth.grow(sources)
        self._tools, self._names, self._shown, self._own = grown.tools, grown.names, grown.shown, grown.own
        self._given, self._answers, self._kin, self._replaced = grown.given, grown.answers, grown.kin, grown.replaced
        self._waiting, self._deferred, self._longer = grown.waiting, grown.deferred, grown.longer
        self._warnings = grown.warnings
        self._guests.clear()
        self.__dict__.pop("_hearing", None)
        if before != tuple(self._shown.values()):
            self._tell_changed()
