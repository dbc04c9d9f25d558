"""A registry that grows: what tools from elsewhere make of the names that a session began with.

Every change is worked out anew from what the registry was built of, in an order of precedence that does not depend on
who came first: the family's own tools, the user's and the project's over them, then toolboxes, then servers.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.core.face import Face
from ferrule.core.tool import AnyTool, Exposure, Tool
from ferrule.registry.cost import Costs
from ferrule.registry.entry import ON_REQUEST, SEARCH, Showing, plain_face
from ferrule.registry.exposure import Disabled, Exposures, kindred
from ferrule.registry.ground import Deferred, Ground, Grown
from ferrule.registry.told import told

_NAME = re.compile(r"[^\s\x00-\x1f\x7f/\\]{1,128}")
_SHORT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PREFIXES = {"toolbox": "tb__", "mcp": "mcp__"}
"""Of tools that never stand in another's place, in the order in which they get their names."""
_CONFINED = frozenset({"shell", "shell_session", "skill"})
"""Names by which the policy knows whose commands run in the sandbox: nothing from elsewhere may bear one."""


class _Came(NamedTuple):
    """The tools that are accepted, by name, and what is said of the others."""

    own: dict[str, AnyTool]
    """The user's and the project's."""
    elsewhere: dict[str, AnyTool]
    """Those of toolboxes and servers."""
    warnings: tuple[str, ...]

    def every(self) -> dict[str, AnyTool]:
        return {**self.own, **self.elsewhere}


class Growth:
    """The sources of a session, and what has been loaded of them."""

    def __init__(self, ground: Ground, showing: Showing) -> None:
        self.sources: Mapping[str, tuple[AnyTool, ...]] = {}
        self.offered: dict[str, bool] = {}
        self.loaded: dict[str, Face] = {}
        self.callable = False
        """May deferred tools be called without having been loaded?"""
        self._ground = ground
        self._showing = showing
        self._exposures = Exposures(showing.exposure)
        self._disabled = Disabled(showing.disable)
        self._made: dict[tuple[str, str], Face] = {}
        """By tool and shown name: an unchanged tool keeps its face, for schemas are compiled by identity."""
        self._searching: Face | None = None
        self._costs = Costs()

    def keep(self, name: str, tool: AnyTool) -> None:
        """Remember a built-in tool that has been loaded."""
        if name in self._ground.tools:
            self._ground.tools[name] = tool

    def offer(self, tool: str, *, offered: bool) -> bool:
        """Remember whether a tool is of use; does that change anything?"""
        if tool not in ON_REQUEST:
            raise ConfigError(f"Only {', '.join(ON_REQUEST)} can be offered, not {tool}.")
        before, self.offered[tool] = self.offered.get(tool), offered
        return before is not offered

    def grown(self, sources: Mapping[str, tuple[AnyTool, ...]] | None = None) -> Grown:
        """Everything as the sources make it now; with others, these are the session's from here on."""
        if sources is None:
            sources = self.sources
        ground, came = self._ground, self._accepted(sources)
        every = came.every()
        longer = _longer(came.elsewhere)
        faces = {name: self._face(tool, self._called(tool, every, longer)) for name, tool in every.items()}
        always = {key: face for key, face in self._made.items() if key[0] in ON_REQUEST}
        self._made = {**always, **{(name, face.name): face for name, face in faces.items()}}
        exposed = self._exposed(every, faces)
        replaced = {tool: faces[name] for name in came.own for tool in self._behind(name)}
        names = {name: replaced.get(face.tool, face) for name, face in ground.names.items()}
        names.update((tool, face) for tool, face in replaced.items() if tool not in names)
        for name, face in faces.items():
            names[name] = names[face.name] = face
        grown = Grown(
            tools={**ground.tools, **every},
            names=names,
            shown={},
            own={*ground.own, *every, *(face.name for face in faces.values())},
            given=ground.given.union(every),
            answers={**ground.answers, **replaced, **faces},
            kin={**ground.kin, **{name: self._stands_for(name) for name in came.own if self._behind(name)}},
            replaced=replaced,
            waiting={},
            deferred={},
            longer=longer,
            warnings=came.warnings,
        )
        self._defer(grown, every, exposed)
        self._show(grown, every, exposed)
        self.sources = sources
        return grown

    def _accepted(self, sources: Mapping[str, tuple[AnyTool, ...]]) -> _Came:
        own: dict[str, AnyTool] = {}
        elsewhere: dict[str, AnyTool] = {}
        warnings: list[str] = []
        brought = [tool for tools in sources.values() for tool in tools]
        for tool in sorted(brought, key=lambda tool: tuple(_PREFIXES).index(tool.source) if _is_far(tool) else -1):
            if self._disabled.has((tool.name, tool.short) if tool.short else (tool.name,)):
                continue
            fault = self._fault(tool, own, elsewhere)
            if fault:
                origin = f" ({tool.origin})" if tool.origin else ""
                warnings.append(f"The tool {tool.name[:128]!r}{origin} is left out: {fault}.")
            elif _is_far(tool):
                elsewhere[tool.name] = tool
            else:
                own[tool.name] = tool
        return _Came(own, elsewhere, tuple(warnings))

    def _fault(self, tool: AnyTool, own: Mapping[str, AnyTool], elsewhere: Mapping[str, AnyTool]) -> str:
        """Why a tool cannot be taken; empty where it can."""
        name, ground = tool.name, self._ground
        if not _NAME.fullmatch(name):
            return "it needs a name of up to 128 characters without blanks and slashes"
        if _is_far(tool):
            if not name.startswith(_PREFIXES[tool.source]):
                return f"names of its kind begin with {_PREFIXES[tool.source]}"
            if name in own or name in elsewhere or name in ground.names or name in ground.tools:
                return "another tool has that name; change one of the two"
            return ""
        if name.startswith(tuple(_PREFIXES.values())):
            return "names that begin so belong to servers and toolboxes"
        if name in _CONFINED:
            return f"no other tool can be called {name}; give it another name"
        if any(behind in ground.given for behind in self._behind(name)):
            return "the program that runs this session has a tool of that name"
        return ""

    def _behind(self, name: str) -> frozenset[str]:
        """The tools of the session that a name means: what one of the user's own tools takes the place of."""
        ground = self._ground
        faces = [ground.names[name], *ground.older.get(name, ())] if name in ground.names else []
        behind = {face.tool for face in faces} | ({name} if name in ground.tools else set())
        # Another family's tool for the same is no way around what took this one's place.
        alike = {one for tool in behind for one in kindred(tool) if one in ground.tools and one not in ground.answers}
        return frozenset(behind | alike)

    def _stands_for(self, name: str) -> str:
        face = self._ground.names.get(name)
        return self._ground.kin.get(face.tool, face.tool) if face is not None else name

    def _called(self, tool: AnyTool, every: Mapping[str, AnyTool], longer: Mapping[str, Sequence[str]]) -> str:
        """What a tool is shown as. A server's may not take a name that means something else in any family:
        what rules say about that would speak about it.
        """
        short, ground = tool.short, self._ground
        if not self._showing.short_names or tool.source != "mcp" or not _SHORT.fullmatch(short):
            return tool.name
        is_free = (
            len(longer[short]) == 1
            and not short.startswith(tuple(_PREFIXES.values()))
            and not any(short in known for known in (every, ground.names, ground.tools, ground.taken))
            and not ground.foreign(short)
        )
        return short if is_free else tool.name

    def _face(self, tool: AnyTool, name: str) -> Face:
        made, before = plain_face(tool, name), self._made.get((tool.name, name))
        same = before is not None and (before.words, before.schema, before.lift) == (made.words, made.schema, made.lift)
        return before if before is not None and same else made

    def _exposed(self, every: Mapping[str, AnyTool], faces: Mapping[str, Face]) -> dict[str, Exposure]:
        """How each tool from elsewhere is exposed: by the settings, by itself, or by what all servers' tools cost."""
        said = {
            name: self._exposures.said(dict.fromkeys((name, faces[name].name, tool.short or name))) or tool.exposure
            for name, tool in every.items()
        }
        dear = self._showing.defers
        if not dear:
            whole = (
                faces[name] for name, tool in every.items() if tool.source == "mcp" and said[name] in {None, "direct"}
            )
            dear = sum(map(self._costs.of, whole)) > self._showing.defer_tokens
        usual: Mapping[str, Exposure] = {"mcp": "deferred" if dear else "direct"}
        return {name: said[name] or usual.get(tool.source, "direct") for name, tool in every.items()}

    def _defer(self, grown: Grown, every: Mapping[str, AnyTool], exposed: Mapping[str, Exposure]) -> None:
        """Take the deferred tools out of the names that can be called."""
        if self._showing.exposure:
            for face in self._ground.faces:
                is_free = face.shown and face.tool not in grown.replaced and face.tool not in ON_REQUEST
                if is_free and self._said(face) == "deferred":
                    called = tuple(name for name, known in grown.names.items() if known.tool == face.tool)
                    grown.deferred.setdefault(face.tool, Deferred(face, called, "built in", face.name))
        stood_for: dict[str, list[str]] = {}
        for name, face in grown.names.items():
            stood_for.setdefault(face.tool, []).append(name)
        for name, tool in every.items():
            if exposed[name] == "deferred":
                grown.deferred[name] = Deferred(
                    grown.answers[name], tuple(stood_for[name]), _group(tool), tool.short or name
                )
        self.loaded = {
            name: grown.deferred[name].face
            for name, face in self.loaded.items()
            if name in grown.deferred and _same(face, grown.deferred[name].face)
        }
        for name, one in grown.deferred.items():
            if name not in self.loaded and not self.callable:
                grown.waiting.update((called, grown.names.pop(called)) for called in one.names)
        grown.own.difference_update(grown.waiting)

    def _said(self, face: Face) -> Exposure | None:
        return self._exposures.said((face.name, face.tool, *face.aliases)) if self._showing.exposure else None

    def _show(self, grown: Grown, every: Mapping[str, AnyTool], exposed: Mapping[str, Exposure]) -> None:
        """What is advertised: the family's own, then the others, then what was loaded, so that little moves."""
        ground, shown = self._ground, grown.shown
        for face in ground.faces:
            if not face.shown:
                continue
            stands = grown.replaced.get(face.tool)
            if stands is not None:
                if exposed[stands.tool] == "direct":
                    shown[stands.name] = stands
            elif face.tool in ON_REQUEST:
                if self._is_offered(face.tool, grown) and self._said(face) != "hidden":
                    self._put(grown, face)
            elif self._said(face) in {None, "direct"}:
                shown[face.name] = face
        self._show_plainly(grown)
        shown.update((grown.answers[name].name, grown.answers[name]) for name in every if exposed[name] == "direct")
        shown.update((face.name, face) for face in self.loaded.values())

    def _show_plainly(self, grown: Grown) -> None:
        """Those that are not always there, where the family has no face for them."""
        faced = {face.tool for face in self._ground.faces}
        for tool in ON_REQUEST:
            if tool in self._ground.tools and tool not in faced and self._is_offered(tool, grown):
                face = self._ground.borrowed(tool) or self._face(self._ground.load(tool), tool)
                self._made[tool, face.name] = face
                if self._said(face) != "hidden":
                    self._put(grown, face)

    def _is_offered(self, tool: str, grown: Grown) -> bool:
        return tool not in grown.replaced and self.offered.get(tool, tool == SEARCH and bool(grown.deferred))

    def _put(self, grown: Grown, face: Face) -> None:
        """Advertise a tool that is not always there; the one that searches tells what there is to be found."""
        if face.tool == SEARCH and grown.deferred:
            names = told((one.group, one.short) for one in grown.deferred.values())
            face = msgspec.structs.replace(face, words=f"{face.words}\n\nTools to be found: {names}.")
            face = self._searching = self._searching if self._searching == face else face
        grown.shown[face.name] = grown.answers[face.tool] = face
        for name, known in grown.names.items():
            if known.tool == face.tool:
                grown.names[name] = face
        grown.names.setdefault(face.tool, face)
        if grown.names.setdefault(face.name, face) is face:
            grown.own.add(face.name)


def checked(tools: Iterable[AnyTool]) -> tuple[AnyTool, ...]:
    """The tools of a source, once it is certain that they are tools."""
    every = tuple(tools)
    for one in every:
        given: object = one
        if not isinstance(given, Tool):
            raise ConfigError(f"A source brings tools, not {given!r:.80}.")
    return every


def _is_far(tool: AnyTool) -> bool:
    return tool.source in _PREFIXES


def _longer(tools: Mapping[str, AnyTool]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for name, tool in tools.items():
        if tool.source == "mcp" and tool.short:
            out.setdefault(tool.short, []).append(name)
    return out


def _group(tool: AnyTool) -> str:
    """The server that a tool is from; for others the kind of their source."""
    if tool.source != "mcp":
        return tool.source
    return tool.name.removeprefix(_PREFIXES["mcp"]).partition("__")[0]


def _same(one: Face, other: Face) -> bool:
    """Does a model that knows the one know how to call the other?"""
    return one is other or (one.schema == other.schema and one.words == other.words)
