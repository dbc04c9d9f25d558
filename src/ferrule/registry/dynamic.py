"""Add tools from other sources to a session's registry, and count the prompt tokens of their definitions.

Every change is computed anew from the tools that the registry was built of, in an order of precedence that does
not depend on which source came first: the family's own tools, the user's and the project's over them, then
toolboxes, then servers.

Settings expose or disable tools by globs of names. A face that is known by name alone reads its tool's
description when it is first needed. Tokens are counted by a tokenizer that works offline if one is installed, and
estimated otherwise.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, ValuesView
from functools import cache
from typing import Any, NamedTuple

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.core.services import has_failed, render_outcome
from ferrule.core.tool import AnyTool, Exposure, Face, Tool
from ferrule.registry.entry import Deferred, ExposurePolicy, Ground, Grown, Later, plain_face
from ferrule.registry.foreign import Family, FamilyNames
from ferrule.tools import ON_REQUEST, TOOL_SEARCH, facts_of

_BUILTIN = "builtin:"


class Exposures:
    """What the settings say of tools. A name written out counts before a glob, and the first glob that fits counts."""

    def __init__(self, exposure: Mapping[str, Exposure]) -> None:
        self._exact = exposure
        self._globs = [(_matcher(glob), said) for glob, said in exposure.items()]

    def exposure_of(self, names: Iterable[str]) -> Exposure | None:
        """How a tool of these names is exposed; None where nothing is said."""
        if not self._globs:
            return None
        names = tuple(names)
        exact = next((self._exact[name] for name in names if name in self._exact), None)
        return exact or next((said for fits, said in self._globs if any(map(fits, names))), None)


class Disabled:
    """Which tools a session does not have."""

    def __init__(self, globs: Sequence[str]) -> None:
        self._builtin = [_matcher(glob.removeprefix(_BUILTIN)) for glob in globs]
        self._any = [_matcher(glob) for glob in globs if not glob.startswith(_BUILTIN)]

    def has(self, names: Iterable[str]) -> bool:
        """Is a tool from elsewhere, with these names, one of them?"""
        return any(fits(name) for name in names for fits in self._any)

    def builtin(self, names: Mapping[str, Iterable[str]]) -> frozenset[str]:
        """The built-in tools that are among them: canonical name → every name that a family has for it."""
        found = {tool for tool, known in names.items() if any(fits(name) for name in known for fits in self._builtin)}
        return frozenset(found.union(*(equivalent_tools(tool) for tool in found)))


def find_disabled(
    globs: Sequence[str], tools: Mapping[str, AnyTool | Later], families: Sequence[Family]
) -> frozenset[str]:
    """The tools that the settings take away, in whichever family's words they say so."""
    disabled, names = Disabled(globs), FamilyNames(lambda: families, str)
    given = {name for name, tool in tools.items() if not isinstance(tool, Later) and disabled.has((name,))}
    return disabled.builtin({name: names.of(name) for name, tool in tools.items() if isinstance(tool, Later)}) | given


def equivalent_tools(tool: str) -> frozenset[str]:
    """The built-in tools that do the same as this one, for other families."""
    return frozenset((tool, *facts_of(tool).siblings))


def _matcher(glob: str) -> Callable[[str], bool]:
    from ferrule.files.globs import BadGlob, matcher  # for settings that speak of tools

    try:
        return matcher(glob, dots=True)
    except BadGlob as error:
        raise ConfigError(f"{glob[:80]!r} is no glob for names of tools: {error}") from error


class LateFace(Face, frozen=True, kw_only=True):
    """As its tool describes itself: a session that begins with a thousand tools looks at few of them."""

    described: AnyTool | None = None

    @property  # type: ignore[misc]  # read late, then as good as set
    def schema(self) -> Mapping[str, Any]:
        return {} if self.described is None else self.described.schema

    @property  # type: ignore[misc]  # read late, then as good as set
    def words(self) -> str:
        return "" if self.described is None else self.described.words


def late_faces() -> Callable[[AnyTool, str], LateFace]:
    """Makes the face of a tool under a name, and reads nothing of the tool."""
    replace = msgspec.structs.replace
    pattern = LateFace(tool="", name="", schema={}, words="", says=render_outcome, failed=has_failed)

    def late_face(tool: AnyTool, name: str) -> LateFace:
        # What they have in common is made once: that is most of a face.
        return replace(pattern, tool=tool.name, name=name, described=tool)

    return late_face


BYTES_A_TOKEN = 4
"""About as many for English and code; for code it counts too many rather than too few."""


def count(text: str) -> int:
    """The tokens of a text. Special tokens that are spelled out in it are text like any other."""
    return _counter()[1](text)


def name() -> str:
    """By what they are counted, for whoever reads the numbers."""
    return _counter()[0]


def estimate(text: str | bytes) -> int:
    """The tokens of a text, more or less, without loading anything."""
    raw = text.encode(errors="replace") if isinstance(text, str) else text
    return -(-len(raw) // BYTES_A_TOKEN)


@cache
def _counter() -> tuple[str, Callable[[str], int]]:
    try:
        from splintr import Tokenizer  # an extra; 90 ms that only who counts tokens pays
    except ImportError:
        return f"estimate (bytes / {BYTES_A_TOKEN})", estimate
    tokenizer = Tokenizer.from_pretrained("o200k_base")
    # Half a character cannot be handed over; it counts as a question mark.
    return "o200k_base", lambda text: len(tokenizer.encode_ordinary(text.encode(errors="replace").decode()))


class Cost(NamedTuple):
    """One tool's part of the prompt."""

    name: str
    tokens: int


class Costs:
    """Counts each face once: a definition does not change, and counting loads a tokenizer."""

    def __init__(self, count: Callable[[str], int] | None = None) -> None:
        """`count` gives the tokens of a text; without it they are estimated."""
        self._count = count
        self._known: dict[int, tuple[Face, int]] = {}
        """By the face's identity; the face is kept, so that no other can come to have it."""

    def of(self, face: Face) -> int:
        """The tokens of a face's definition."""
        if self._count is None and isinstance(face, LateFace) and face.described is not None:
            return -(-face.described.definition_chars // BYTES_A_TOKEN)
        known = self._known.get(id(face))
        if known is None:
            raw = encode_definition(face)
            known = self._known[id(face)] = (face, estimate(raw) if self._count is None else self._count(raw.decode()))
        return known[1]

    def keep(self, faces: Iterable[Face]) -> None:
        """Forget all others."""
        kept = {id(face) for face in faces}
        self._known = {key: known for key, known in self._known.items() if key in kept}

    def each(self, faces: Iterable[Face]) -> list[Cost]:
        """Every face with its tokens, the dearest first."""
        return sorted((Cost(face.name, self.of(face)) for face in faces), key=lambda cost: (-cost.tokens, cost.name))


def encode_definition(face: Face) -> bytes:
    """A definition as JSON, without the copy that whoever changes it would need."""
    shown = {"name": face.name, "description": face.words, "inputSchema": face.schema}
    return as_json({**shown, "grammar": face.grammar} if face.grammar else shown)


def as_json(value: Any) -> bytes:
    """A value as JSON. Raises `TypeError`, `ValueError` or `RecursionError` where it cannot be one."""
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except NotImplementedError as error:
        raise TypeError(str(error)) from error


def _plain(value: Any) -> Any:
    """For schemas whose parts nobody may change."""
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} is not JSON")


_DEEPEST = 200
"""Levels of a schema; those that people write have a dozen."""
_NAME = re.compile(r"[^\s/\\]{1,128}")
PREFIXES = {"toolbox": "tb__", "mcp": "mcp__"}
"""Of tools that never stand in another's place, in the order in which they get their names."""


class Came(NamedTuple):
    """The tools that are accepted, by name, and what is said of the others."""

    own: dict[str, AnyTool]
    """The user's and the project's."""
    elsewhere: dict[str, AnyTool]
    """Those of toolboxes and servers."""
    warnings: dict[str, str]
    """Each with the source that it is about."""

    def every(self) -> dict[str, AnyTool]:
        return {**self.own, **self.elsewhere}


class ToolAcceptor:
    """What the names of a session leave for others to take."""

    def __init__(self, ground: Ground, disable: Disabled | None) -> None:
        """`disable` are the tools that the settings switch off, if any."""
        self._ground = ground
        self._disable = disable
        self._looked: dict[int, tuple[AnyTool, str]] = {}
        """What is wrong with a tool's description, by its identity: it is looked at once."""

    def accept(self, sources: Mapping[str, tuple[AnyTool, ...]]) -> Came:
        own: dict[str, AnyTool] = {}
        elsewhere: dict[str, AnyTool] = {}
        warnings: dict[str, str] = {}
        brought = [(source, tool) for source, tools in sources.items() for tool in tools]
        self._looked = {id(tool): self._looked.get(id(tool)) or (tool, _flaw(tool)) for _, tool in brought}
        for source, tool in sorted(brought, key=lambda one: _rank(one[1])):
            if self._disable is not None and self._disable.has((tool.name, tool.short or tool.name)):
                continue
            fault = self._looked[id(tool)][1] or self._fault(tool, own, elsewhere)
            if fault:
                origin = f" ({tool.origin})" if tool.origin else ""
                warnings[f"The tool {tool.name[:128]!r}{origin} is left out: {fault}."] = source
            elif is_far(tool):
                elsewhere[tool.name] = tool
            else:
                own[tool.name] = tool
        return Came(own, elsewhere, warnings)

    def _fault(self, tool: AnyTool, own: Mapping[str, AnyTool], elsewhere: Mapping[str, AnyTool]) -> str:
        """Why a tool cannot be taken; empty where it can."""
        name, ground = tool.name, self._ground
        # A name is shown to people too: nothing in it may steer a screen, or turn its letters round.
        if not _NAME.fullmatch(name) or not name.isprintable():
            return "it needs a name of up to 128 printable characters without blanks and slashes"
        if is_far(tool):
            if not name.startswith(PREFIXES[tool.source]):
                return f"names of its kind begin with {PREFIXES[tool.source]}"
            if name in own or name in elsewhere or name in ground.names or name in ground.tools:
                return "another tool has that name; change one of the two"
            return ""
        if name.startswith(tuple(PREFIXES.values())):
            return "names that begin so belong to servers and toolboxes"
        if facts_of(name).reserved:
            return f"no other tool can be called {name}; give it another name"
        if any(behind in ground.given for behind in self.behind(name)):
            return "the program that runs this session has a tool of that name"
        return ""

    def behind(self, name: str) -> frozenset[str]:
        """The tools of the session that a name means: what one of the user's own tools takes the place of."""
        ground = self._ground
        faces = [ground.names[name], *ground.older.get(name, ())] if name in ground.names else []
        behind = {face.tool for face in faces} | ({name} if name in ground.tools else set())
        # Another family's tool for the same is no way around what took this one's place.
        alike = {
            one
            for tool in behind
            for one in equivalent_tools(tool)
            if one in ground.tools and one not in ground.answers
        }
        return frozenset(behind | alike)


def check_tools(tools: Iterable[AnyTool]) -> tuple[AnyTool, ...]:
    """The tools of a source, once it is certain that they are tools."""
    every = tuple(tools)
    for one in every:
        given: object = one
        if not isinstance(given, Tool):
            raise ConfigError(f"A source brings tools, not {given!r:.80}.")
    return every


def _flaw(tool: AnyTool) -> str:
    """Why no model can be told of a tool; empty where one can."""
    if tool.definition_chars:
        return ""  # it came as JSON, and was looked at when it was listed
    given: tuple[object, ...] = (tool.name, tool.words, tool.short, tool.schema)
    if not all(isinstance(text, str) for text in given[:3]) or not isinstance(given[3], Mapping):
        return "its name and its description must be texts, and its schema an object"
    try:
        as_json((tool.name, tool.words, tool.schema))
    except (TypeError, ValueError, RecursionError) as error:
        return f"its description cannot be written as JSON ({error})"
    # How deep JSON may be differs from one Python to the next.
    return "" if _is_shallow(tool.schema) else f"its schema is more than {_DEEPEST} levels deep as JSON"


def _is_shallow(schema: object) -> bool:
    level = [schema]
    for _ in range(_DEEPEST):
        within = (one.values() if isinstance(one, Mapping) else one for one in level)
        level = [inner for one in within if isinstance(one, ValuesView | list | tuple) for inner in one]
        if not level:
            return True
    return False


def is_far(tool: AnyTool) -> bool:
    return tool.source in PREFIXES


def _rank(tool: AnyTool) -> int:
    return list(PREFIXES).index(tool.source) if is_far(tool) else -1


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
ROOM_CHARS = 2_000
"""For all names together: a list of everything would cost what deferring was to spare."""
_MORE_CHARS = len(" and 1,000 more; ")
_REST_CHARS = len("; and 100,000 tools of 1,000 more sources")


def summarize_tools(named: Iterable[tuple[str, str]], room: int = ROOM_CHARS) -> str:
    """`github: search_code, create_issue and 212 more; slack: post`, of pairs of a group and a name."""
    groups: dict[str, list[str]] = {}
    for group, name in named:
        groups.setdefault(group, []).append(name)
    said: list[str] = []
    for at, (group, names) in enumerate(groups.items()):
        # What one group leaves of its part of the room, the others share.
        left = len(groups) - at
        part = _part(group, names, room // left)
        if len(part) + (_REST_CHARS if left > 1 else 0) > room:
            rest = sum(map(len, list(groups.values())[at:]))
            said.append(f"and {rest:,} tools of {left:,} more sources")
            break
        said.append(part)
        room -= len(part) + len("; ")
    return "; ".join(said)


def _part(group: str, names: list[str], room: int) -> str:
    head = f"{group[:64]}: "
    whole = head + ", ".join(names)
    if len(whole) <= room:
        return whole
    shown = _sample(names, room - len(head) - _MORE_CHARS) or names[:1]
    return f"{head}{', '.join(shown)} and {len(names) - len(shown):,} more" if len(shown) < len(names) else whole


def _sample(names: Sequence[str], room: int) -> list[str]:
    """As many names as there is room for: of every kind one, then of every kind another, each kind together."""
    kinds = _kinds(names)
    taken: dict[str, int] = dict.fromkeys(kinds, 0)
    most = max(map(len, kinds.values()))
    for number in range(most):
        having = [kind for kind, some in kinds.items() if len(some) > number]
        costs = {kind: len(kinds[kind][number]) + len(", ") for kind in having}
        if number == 0 and sum(costs.values()) > room:
            # Not even one of each: those that are told of are spread over all.
            fitting = max(1, int(room * len(having) / sum(costs.values())))
            having = [having[at * len(having) // fitting] for at in range(fitting)]
        for kind in having:
            if costs[kind] > room:
                return [name for kind, some in kinds.items() for name in some[: taken[kind]]]
            taken[kind] += 1
            room -= costs[kind]
    return [name for kind, some in kinds.items() for name in some[: taken[kind]]]


def _kinds(names: Sequence[str]) -> dict[str, list[str]]:
    """The names by the first word in which they differ: most servers begin a name with what the tool is about."""
    words = [_WORD.findall(name.lower() if name.isupper() else name) or [name] for name in names]
    shortest = min(map(len, words))
    same = next((at for at in range(shortest) if len({some[at].lower() for some in words}) > 1), 0)
    kinds: dict[str, list[str]] = {}
    for name, some in zip(names, words, strict=True):
        kinds.setdefault(some[same].lower(), []).append(name)
    return kinds


_SHORT = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Growth:
    """The sources of a session, and what has been loaded of them."""

    def __init__(self, ground: Ground, showing: ExposurePolicy) -> None:
        self.sources: Mapping[str, tuple[AnyTool, ...]] = {}
        self.offered: dict[str, bool] = {}
        self.loaded: dict[str, Face] = {}
        self.callable = showing.for_people
        """May deferred tools be called without having been loaded?"""
        self._ground = ground
        self._showing = showing
        self._exposures = Exposures(showing.exposure)
        self._accepting = ToolAcceptor(ground, Disabled(showing.disable) if showing.disable else None)
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
        return {**self.sources, source: check_tools(tools)}

    def offer(self, tool: str, *, offered: bool) -> bool:
        """Remember whether a tool is of use; does that change anything?"""
        if tool not in ON_REQUEST:
            raise ConfigError(f"Only {', '.join(ON_REQUEST)} can be offered, not {tool}.")
        before, self.offered[tool] = self.offered.get(tool, None if tool == TOOL_SEARCH else False), offered
        return before is not offered

    def grow(self, sources: Mapping[str, tuple[AnyTool, ...]] | None = None) -> Grown:
        """Everything as the sources make it now; with others, these are the session's from here on."""
        if sources is None:
            sources = self.sources
        ground, came = self._ground, self._accepting.accept(sources)
        every = came.every()
        longer = _longer(came.elsewhere)
        faces = {name: self._face(tool, self._display_name(tool, every, longer)) for name, tool in every.items()}
        exposed = self._find_exposures(every, faces)
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

    def _display_name(self, tool: AnyTool, every: Mapping[str, AnyTool], longer: Mapping[str, Sequence[str]]) -> str:
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

    def _find_exposures(self, every: Mapping[str, AnyTool], faces: Mapping[str, Face]) -> dict[str, Exposure]:
        """How each tool from elsewhere is exposed: by the settings, by itself, or by what all servers' tools cost."""
        said = {name: tool.exposure for name, tool in every.items()}
        for name, tool in every.items() if self._showing.exposure else ():
            called = dict.fromkeys((name, faces[name].name, tool.short or name))
            said[name] = self._exposures.exposure_of(called) or tool.exposure
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
            if is_free and self._exposure_of(face) == "deferred":
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

    def _exposure_of(self, face: Face) -> Exposure | None:
        return self._exposures.exposure_of((face.name, face.tool, *face.aliases)) if self._showing.exposure else None

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
                if self._is_offered(face.tool, grown) and self._exposure_of(face) != "hidden":
                    self._put(grown, face)
            elif self._exposure_of(face) in {None, "direct"}:
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
                if self._exposure_of(face) != "hidden":
                    self._put(grown, face)

    def _is_offered(self, tool: str, grown: Grown) -> bool:
        return tool not in grown.replaced and self.offered.get(tool, tool == TOOL_SEARCH and bool(grown.deferred))

    def _put(self, grown: Grown, face: Face) -> None:
        """Advertise a tool that is not always there; the one that searches tells what there is to be found."""
        if face.tool == TOOL_SEARCH and grown.deferred:
            names = summarize_tools((one.group, one.short) for one in grown.deferred.values())
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
