"""A registry that grows: what tools from elsewhere make of the names that a session began with.

Every change is worked out anew from what the registry was built of, in an order of precedence that does not depend on
who came first: the family's own tools, the user's and the project's over them, then toolboxes, then servers.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.core.face import Face
from ferrule.core.tool import AnyTool, Exposure
from ferrule.registry.accepting import PREFIXES, Accepting, checked
from ferrule.registry.cost import Costs
from ferrule.registry.entry import ON_REQUEST, SEARCH, Showing, plain_face
from ferrule.registry.exposure import Disabled, Exposures
from ferrule.registry.ground import Deferred, Ground, Grown
from ferrule.registry.late import late_faces
from ferrule.registry.told import told

_SHORT = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Growth:
    """The sources of a session, and what has been loaded of them."""

    def __init__(self, ground: Ground, showing: Showing) -> None:
        self.sources: Mapping[str, tuple[AnyTool, ...]] = {}
        self.offered: dict[str, bool] = {}
        self.loaded: dict[str, Face] = {}
        self.callable = showing.for_people
        """May deferred tools be called without having been loaded?"""
        self._ground = ground
        self._showing = showing
        self._exposures = Exposures(showing.exposure)
        self._accepting = Accepting(ground, Disabled(showing.disable) if showing.disable else None)
        self._made: dict[tuple[str, str], tuple[AnyTool, Face]] = {}
        """By tool and shown name: an unchanged tool keeps its face, for schemas are compiled by identity."""
        self._late = late_faces()
        self._plain: dict[str, Face] = {}
        self._searching: Face | None = None
        self._costs = Costs()

    def keep(self, name: str, tool: AnyTool) -> None:
        """Remember a built-in tool that has been loaded."""
        if name in self._ground.tools:
            self._ground.tools[name] = tool

    def with_more(self, source: str, tools: Iterable[AnyTool]) -> Mapping[str, tuple[AnyTool, ...]]:
        """The sources, with these tools in the place of what this one brought before."""
        return {**self.sources, source: checked(tools)}

    def offer(self, tool: str, *, offered: bool) -> bool:
        """Remember whether a tool is of use; does that change anything?"""
        if tool not in ON_REQUEST:
            raise ConfigError(f"Only {', '.join(ON_REQUEST)} can be offered, not {tool}.")
        before, self.offered[tool] = self.offered.get(tool, None if tool == SEARCH else False), offered
        return before is not offered

    def grown(self, sources: Mapping[str, tuple[AnyTool, ...]] | None = None) -> Grown:
        """Everything as the sources make it now; with others, these are the session's from here on."""
        if sources is None:
            sources = self.sources
        ground, came = self._ground, self._accepting.accepted(sources)
        every = came.every()
        longer = _longer(came.elsewhere)
        faces = {name: self._face(tool, self._called(tool, every, longer)) for name, tool in every.items()}
        exposed = self._exposed(every, faces)
        replaced = {tool: faces[name] for name in came.own for tool in self._accepting.behind(name)}
        names = {name: replaced.get(face.tool, face) for name, face in ground.names.items()}
        names.update((tool, face) for tool, face in replaced.items() if tool not in names)
        for name, face in faces.items():
            names[name] = names[face.name] = face
        also = {alias: faces[name] for name, tool in every.items() for alias in tool.aliases if alias not in names}
        names.update(also)
        grown = Grown(
            tools={**ground.tools, **every},
            names=names,
            shown={},
            own={*ground.own, *every, *also, *(face.name for face in faces.values())},
            given=ground.given.union(every),
            answers={**ground.answers, **replaced, **faces},
            kin={**ground.kin, **{name: self._stands_for(name) for name in came.own if self._accepting.behind(name)}},
            replaced=replaced,
            waiting={},
            deferred={},
            longer=longer,
            loaded={},
            warnings=came.warnings,
        )
        self._defer(grown, every, exposed)
        self._show(grown, every, exposed)
        # Only now: what raised before this has changed nothing.
        self.sources, self.loaded = sources, grown.loaded
        self._made = {(name, face.name): (every[name], face) for name, face in faces.items()}
        self._costs.keep(faces.values())
        return grown

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
            and not short.startswith(tuple(PREFIXES.values()))
            and not any(short in known for known in (every, ground.names, ground.tools, ground.taken))
            and not ground.foreign(short)
        )
        return short if is_free else tool.name

    def _face(self, tool: AnyTool, name: str) -> Face:
        before = self._made.get((tool.name, name))
        if before is not None and before[0] is tool:
            return before[1]
        made = self._late(tool, name) if tool.definition_chars else plain_face(tool, name)
        if before is not None and _same(before[1], made) and before[1].lift is made.lift:
            return before[1]
        return made

    def _exposed(self, every: Mapping[str, AnyTool], faces: Mapping[str, Face]) -> dict[str, Exposure]:
        """How each tool from elsewhere is exposed: by the settings, by itself, or by what all servers' tools cost."""
        said = {name: tool.exposure for name, tool in every.items()}
        for name, tool in every.items() if self._showing.exposure else ():
            called = dict.fromkeys((name, faces[name].name, tool.short or name))
            said[name] = self._exposures.said(called) or tool.exposure
        dear = self._showing.defers
        if not dear:
            whole = (
                faces[name] for name, tool in every.items() if tool.source == "mcp" and said[name] in {None, "direct"}
            )
            dear = sum(map(self._costs.of, whole)) > self._showing.defer_tokens
        usual: Mapping[str, Exposure] = {"mcp": "deferred" if dear else "direct"}
        return {name: said[name] or usual.get(tool.source, "direct") for name, tool in every.items()}

    def _defer(self, grown: Grown, every: Mapping[str, AnyTool], exposed: Mapping[str, Exposure]) -> None:
        """Find the deferred tools, and all names that each has."""
        stood_for: dict[str, list[str]] = {}
        for name, face in grown.names.items():
            stood_for.setdefault(face.tool, []).append(name)
        for face in self._ground.faces if self._showing.exposure else ():
            is_free = face.shown and face.tool not in grown.replaced and face.tool not in ON_REQUEST
            if is_free and self._said(face) == "deferred":
                grown.deferred[face.tool] = Deferred(face, tuple(stood_for[face.tool]), "built in", face.name)
        for name, tool in every.items():
            if exposed[name] == "deferred":
                grown.deferred[name] = Deferred(
                    grown.answers[name],
                    tuple(stood_for[name]),
                    _group(tool),
                    tool.short if _SHORT.fullmatch(tool.short) else name,
                )
        self._wait(grown)

    def _wait(self, grown: Grown) -> None:
        """Those that are not loaded cannot be called; a tool that has changed is not loaded any more."""
        for name, known in self.loaded.items():
            if name in grown.deferred and _same(known, grown.deferred[name].face):
                grown.loaded[name] = grown.deferred[name].face
        for name, one in grown.deferred.items():
            if name not in grown.loaded and not self.callable:
                for called in one.names:
                    grown.waiting[called] = grown.names.pop(called)
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
        shown.update((face.name, face) for face in grown.loaded.values())

    def _show_plainly(self, grown: Grown) -> None:
        """Those that are not always there, where the family has no face for them."""
        faced = {face.tool for face in self._ground.faces}
        for tool in ON_REQUEST:
            if tool in self._ground.tools and tool not in faced and self._is_offered(tool, grown):
                if tool not in self._plain:
                    self._plain[tool] = self._ground.borrowed(tool) or plain_face(self._ground.load(tool))
                face = self._plain[tool]
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
    return tool.name.removeprefix(PREFIXES["mcp"]).partition("__")[0]


def _same(one: Face, other: Face) -> bool:
    """Does a model that knows the one know how to call the other?"""
    return one is other or (one.schema == other.schema and one.words == other.words)
