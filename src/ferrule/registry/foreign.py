"""Understand calls in any family's words: which tool a name means, and which names come near."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from ferrule.core.errors import ToolFailure, UnknownTool, near
from ferrule.core.tool import AnyTool, Face, copy_json
from ferrule.tools import ON_REQUEST


class Family(NamedTuple):
    """What has to be known of another family to understand its calls."""

    name: str
    faces: Sequence[Face]
    aliases: Mapping[str, str]


class ForeignFace(NamedTuple):
    """A face and the family whose it is."""

    family: str
    face: Face


class ForeignCall(NamedTuple):
    """A call understood: who answers it, in whose words its arguments are, and what to say about that."""

    face: Face
    tool: AnyTool
    spoken: Face
    values: dict[str, Any]
    note: str = ""


NAMES: Mapping[str, Sequence[str]] = {
    "path": ("path", "file_path", "filePath", "relative_path", "absolute_path", "file", "filename", "dir_path"),
    "old": ("old", "old_string", "oldString", "oldText", "old_str", "before", "needle", "search"),
    "new": ("new", "new_string", "newString", "newText", "new_str", "after", "repl", "replace"),
    "content": ("content", "contents", "file_text", "text"),
    "command": ("command", "cmd"),
    "cwd": ("cwd", "workdir", "dir_path", "working_dir", "working_directory", "directory"),
}
"""Canonical parameter → what families here and elsewhere call it."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}


def fits(face: Face, values: Mapping[str, Any], *, forgiving: bool) -> bool:
    """Could these be arguments in this face's words? By names and, roughly, types; a forgiving one mends strings."""
    schema = face.taken
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return True
    for name, value in values.items():
        about = properties.get(name)
        # Nothing, where nothing is needed, fits whatever is asked for.
        if about is None or (value is not None and not _is_of(value, about, forgiving=forgiving)):
            return False
    # A loop, for this is asked about every call.
    for name in schema.get("required", ()):  # noqa: SIM110
        if values.get(name) is None:
            return False
    return True


def _is_of(value: Any, schema: Any, *, forgiving: bool) -> bool:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(kind, str) or (forgiving and isinstance(value, str)):
        return True
    if kind == "array" and (names := member_names(value)):
        known = schema.get("items", {}).get("properties")
        return known is None or names <= known.keys()
    return isinstance(value, _TYPES.get(kind, (object,)))


def member_names(value: Any) -> frozenset[str]:
    """The names in the first of several objects: families name those differently too."""
    first = value[0] if isinstance(value, list | tuple) and value else None
    return frozenset(first) if isinstance(first, dict) else frozenset()


def same_meaning(face: Face, canonical: str) -> str | None:
    """The face's name for a canonical parameter, where nothing but the name differs."""
    if canonical in face.per or canonical in face.shift:
        return None
    shown = next((shown for shown, name in face.params.items() if name == canonical), canonical)
    return shown if shown in face.schema.get("properties", ()) else None


class ForeignFaces:
    """The faces of all other families by name and by tool; they are loaded when a call needs them."""

    def __init__(
        self, families: Callable[[], Sequence[Family]], known: Collection[str], own: Sequence[Face] = ()
    ) -> None:
        """`known` are the tools whose calls may come in other words, `own` the session's faces."""
        self._load = families
        self._known = known
        self._own = own
        self._sayable: dict[str, list[str]] = {}

    def without(self, tools: Collection[str]) -> "ForeignFaces":
        """The same, as if these tools were not here."""
        own = [face for face in self._own if face.tool not in tools]
        return ForeignFaces(lambda: self._families, frozenset(self._known).difference(tools), own)

    @cached_property
    def _families(self) -> Sequence[Family]:
        return self._load()

    @cached_property
    def _by_name(self) -> dict[str, list[ForeignFace]]:
        out: dict[str, list[ForeignFace]] = {}
        for family in self._families:
            by_name = {face.name: face for face in family.faces}
            for face in family.faces:
                for name in (face.name, *face.aliases):
                    out.setdefault(name, []).append(ForeignFace(family.name, face))
            for alias, name in family.aliases.items():
                if name in by_name:
                    out.setdefault(alias, []).append(ForeignFace(family.name, by_name[name]))
        return out

    @cached_property
    def _by_tool(self) -> dict[str, list[ForeignFace]]:
        out: dict[str, list[ForeignFace]] = {}
        for family in self._families:
            for face in family.faces:
                if face.tool in self._known:
                    out.setdefault(face.tool, []).append(ForeignFace(family.name, face))
        return out

    def find_by_name(self, name: str) -> list[ForeignFace]:
        """Faces of that name whose tools are here."""
        return [one for one in self._by_name.get(name, ()) if one.face.tool in self._known]

    def behind(self, name: str) -> str | None:
        """The tool that some family calls by that name, whether it is here or not."""
        return next((one.face.tool for one in self._by_name.get(name, ())), None)

    def find_by_tool(self, tool: str) -> Sequence[ForeignFace]:
        """Faces of a tool, in the order of the families."""
        return self._by_tool.get(tool, ())

    def borrow_face(self, tool: str) -> Face | None:
        """A face for a tool that the session's family has none for: one that calls it by its own name, else any."""
        faces = [one.face for one in self.find_by_tool(tool)]
        return next((face for face in faces if face.name == tool), faces[0] if faces else None)

    def meaning(self, tool: AnyTool, key: str) -> str | None:
        """The canonical parameter that a name of whatever family stands for, where only the name differs."""
        fields = tool.args.__struct_fields__
        theirs = [one.face for one in self.find_by_tool(tool.name) if key in one.face.schema.get("properties", ())]
        meant = {face.params.get(key, key) for face in theirs}
        # What one family counts in other units than the next has no meaning without a family.
        if any(canonical in face.per or canonical in face.shift for face in theirs for canonical in meant):
            return None
        known = [canonical for canonical in meant if canonical in fields and canonical != key]
        if len(known) == 1:
            return known[0]
        if key in self.sayable(tool):
            return key
        return next((canonical for canonical, names in NAMES.items() if key in names and canonical in fields), None)

    def sayable(self, tool: AnyTool) -> list[str]:
        """The canonical parameters that some family lets its callers give. The others are the engine's to fill in."""
        if tool.name not in self._sayable:
            said = set(tool.extras)
            own = (face for face in self._own if face.tool == tool.name)
            for face in (*own, *(one.face for one in self.find_by_tool(tool.name))):
                said.update(face.said_as, (face.params.get(name, name) for name in face.schema.get("properties", ())))
            self._sayable[tool.name] = [field for field in tool.args.__struct_fields__ if field in said]
        return self._sayable[tool.name]


def own_words(tool: AnyTool, sayable: Sequence[str] = ()) -> Face:
    """The canonical tool's own names, as a face: they are understood in every session too."""
    fields = tool.args.__struct_fields__
    required = fields[: len(fields) - len(tool.args.__struct_defaults__)]
    schema = {
        "type": "object",
        "properties": {field: {} for field in fields if field in sayable or field in required},
        "required": list(required),
    }
    return Face(tool=tool.name, name=tool.name, schema=schema, words="")


POLICIES = ("read_first",)
"""What a session asks of every call of a kind. It holds for other families' tools of that kind as well."""

MEANINGS = ("in_turn",)
"""What belongs to a family's words, and not to whoever answers them."""

_OPEN = ("oneOf", "anyOf", "allOf", "$ref", "patternProperties")
"""With these a schema may name more than its properties, so that whoever reads it keeps what it does not know."""


class _Guess(NamedTuple):
    """A face that a call may be in the words of, and whose it is where it is another family's."""

    spoken: Face
    family: str = ""
    renamed: Mapping[str, str] = {}
    """Names of the call → what this face calls them."""
    unknown: Sequence[str] = ()


class CallInterpreter:
    """Tries whose words a call is in, and remembers what it found."""

    def __init__(
        self,
        faces: Sequence[Face],
        answers: Mapping[str, Face],
        older: Mapping[str, Sequence[Face]],
        foreign: ForeignFaces,
        load: Callable[[str], AnyTool],
        *,
        without: Collection[str] = (),
    ) -> None:
        """`answers` gives the face that answers a tool's calls; `older` the older arrangements behind a name.

        `without` names the tools whose place another has taken: no words may lead to them.
        """
        self._faces = [face for face in faces if face.tool not in without]
        self._answers = answers
        self._older = {name: [face for face in some if face.tool not in without] for name, some in older.items()}
        self._foreign = foreign.without(without) if without else foreign
        self._load = load
        self._policy = {key: any(face.fill.get(key, False) for face in faces) for key in POLICIES}
        self._known: dict[tuple[Any, ...], tuple[ForeignCall, Mapping[str, str]]] = {}
        """By names and types: what was heard, but for the values, and the names that have to be changed for it."""
        self._made: dict[tuple[str, ...], Face] = {}
        """Faces that had to be made; each once, for their schemas are compiled by identity."""

    def hear(self, name: str, meant: Face, values: dict[str, Any], *, is_own: bool) -> ForeignCall:
        """The call; `meant` is what the name means here, by this family's own use of it or by another's."""
        key = (name, *values, *map(_kind, values.values()))
        if key in self._known:
            heard, renamed = self._known[key]
            return heard._replace(values={renamed.get(one, one): value for one, value in values.items()})
        guess = self._guess(name, meant, values, is_own=is_own)
        heard = self._interpret_guess(name, meant, guess, values, is_own=is_own)
        # Names that nobody knows are without number.
        if not guess.unknown:
            self._known[key] = heard._replace(values={}), guess.renamed
        return heard

    def _guess(self, name: str, meant: Face, values: Mapping[str, Any], *, is_own: bool) -> _Guess:
        """Whose words these are: all of them, else all of them with some mending, else as many as can be."""
        guesses = list(self._guesses(name, meant, is_own=is_own))
        if is_own and values.keys() <= meant.taken.get("properties", {}).keys():
            # Nothing in it is foreign: where something is missing or wrong, this family's words say so.
            guesses = [guess for guess in guesses if not guess.family]
        else:
            guesses.append(_Guess(self._plain(meant.tool)))
        # A string may stand for anything, but not before all who take a string were tried.
        for forgiving in (False, True):
            for guess in guesses:
                if fits(guess.spoken, values, forgiving=forgiving):
                    return guess
        loose = [self._loose(guess, values) for guess in guesses]
        whole = [guess for guess in loose if _is_whole(guess, values)]
        return min(whole, key=lambda guess: len(guess.unknown), default=self._loose(_Guess(meant), values))

    def _guesses(self, name: str, meant: Face, *, is_own: bool) -> Iterator[_Guess]:
        """In whose words it may be: this family's by name, others' by name, and then whoever has the tool."""
        mine = meant if is_own else None
        if is_own:
            yield _Guess(meant)
            yield from map(_Guess, self._older.get(name, ()))
        named = self._foreign.find_by_name(name)
        yield from (_Guess(self._in_own_units(mine, one), one.family) for one in named)
        yield from (_Guess(face) for face in self._faces if face.tool == meant.tool and face is not mine)
        seen = {id(one.face) for one in named}
        rest = (one for one in self._foreign.find_by_tool(meant.tool) if id(one.face) not in seen)
        yield from (_Guess(self._in_own_units(mine, one), one.family) for one in rest)

    def _in_own_units(self, own: Face | None, other: ForeignFace) -> Face:
        """Another family's face, with this one's units where the two share a name: then the session's own counts."""
        face = other.face
        if own is None or own.tool != face.tool:
            return face
        shared = {
            own.params.get(name, name)
            for name in own.schema.get("properties", ())
            if name in face.schema.get("properties", ()) and own.params.get(name, name) == face.params.get(name, name)
        }
        per, shift = _over(face.per, own.per, shared), _over(face.shift, own.shift, shared)
        if per == face.per and shift == face.shift:
            return face
        key = (own.name, other.family, face.name)
        if key not in self._made:
            self._made[key] = msgspec.structs.replace(face, per=per, shift=shift)
        return self._made[key]

    def _plain(self, name: str) -> Face:
        """The canonical words of a tool."""
        if (name,) not in self._made:
            tool = self._load(name)
            self._made[(name,)] = own_words(tool, self._foreign.sayable(tool))
        return self._made[(name,)]

    def _loose(self, guess: _Guess, values: Mapping[str, Any]) -> _Guess:
        """The guess with the names that have to be changed for it, and those that it cannot place."""
        known = guess.spoken.taken.get("properties", {})
        tool = self._load(guess.spoken.tool)
        renamed: dict[str, str] = {}
        unknown: list[str] = []
        for key in values:
            if key in known:
                continue
            canonical = self._foreign.meaning(tool, key)
            shown = same_meaning(guess.spoken, canonical) if canonical else None
            if shown is None or shown in values or shown in renamed.values():
                unknown.append(key)
            else:
                renamed[key] = shown
        return guess._replace(renamed=renamed, unknown=unknown)

    def _interpret_guess(
        self, name: str, meant: Face, guess: _Guess, values: dict[str, Any], *, is_own: bool
    ) -> ForeignCall:
        spoken, _, renamed, unknown = guess
        is_mine = is_own and self._is_mine(name, meant, spoken)
        face = spoken if is_mine else self._answer_face(meant, guess)
        tool = self._load(spoken.tool)
        known = {renamed.get(key, key): value for key, value in values.items()}
        # Canonical words under a canonical name are everybody's.
        is_plain = name == meant.tool and spoken is self._made.get((name,))
        notes = [] if (is_mine or is_plain) and not renamed else [self._note(name, face, tool, guess, values)]
        if unknown and any(keyword in spoken.schema for keyword in _OPEN):
            known = {key: value for key, value in known.items() if key not in unknown}
            notes.append(f"{', '.join(unknown)[:200]}: unknown, and ignored.")
        return ForeignCall(face, tool, spoken, known, " ".join(filter(None, notes)))

    def _is_mine(self, name: str, meant: Face, spoken: Face) -> bool:
        """Is it what the name means in this family, now or in older days?"""
        return spoken is meant or any(spoken is older for older in self._older.get(name, ()))

    def _answer_face(self, meant: Face, guess: _Guess) -> Face:
        """The face that answers: this family's own, else the other's with this session's policy."""
        spoken, family = guess.spoken, guess.family
        own = self._answers.get(spoken.tool)
        answering = own or (spoken if family else meant)
        fill = {key: spoken.fill[key] for key in MEANINGS if key in spoken.fill}
        if own is None:
            fields = self._load(spoken.tool).args.__struct_fields__
            fill.update((key, value) for key, value in self._policy.items() if key in fields)
        if all(answering.fill.get(key) == value for key, value in fill.items()):
            return answering
        key = ("answer", answering.name, family, spoken.name)
        if key not in self._made:
            self._made[key] = msgspec.structs.replace(answering, fill={**answering.fill, **fill})
        return self._made[key]

    def _note(self, name: str, face: Face, tool: AnyTool, guess: _Guess, values: Mapping[str, Any]) -> str:
        spoken, family, renamed, unknown = guess
        if family and face.tool not in self._answers:
            if name in ON_REQUEST:
                return ""  # every family has these under that name, where there is a use for them
            return f"{name} is a tool of the {family} dialect, and was run as that."
        fields, properties = tool.args.__struct_fields__, face.schema.get("properties", ())
        pairs, fixed = {}, []
        for key in values:
            given = renamed.get(key, key)
            canonical = spoken.params.get(given, given)
            # What `lift` rearranges has no single name.
            if key in unknown or given in spoken.unused or canonical not in fields:
                continue
            shown = face.shown_param(canonical)
            if canonical in face.fill:
                fixed.append(key)
            elif shown != key and shown in properties:
                pairs[key] = shown
        if unknown and not pairs and not fixed:
            return ""  # what is wrong with it is said by whoever reads it
        said = _explain_translation(name, face, pairs)
        has = "has" if len(fixed) == 1 else "have"
        return f"{said} {', '.join(fixed)} {has} no effect in this session." if fixed else said


def _kind(value: Any) -> object:
    """What has to be known of a value to tell whose words it is in."""
    return (member_names(value) or list) if isinstance(value, list) else type(value)


def _over(theirs: Mapping[str, int], mine: Mapping[str, int], shared: set[str]) -> dict[str, int]:
    kept = {name: count for name, count in theirs.items() if name not in shared}
    return {**kept, **{name: count for name, count in mine.items() if name in shared}}


def _is_whole(guess: _Guess, values: Mapping[str, Any]) -> bool:
    """Is everything there that the face requires?"""
    given = {guess.renamed.get(key, key) for key in values}
    return given.issuperset(guess.spoken.schema.get("required", ()))


def _explain_translation(name: str, face: Face, renamed: Mapping[str, str]) -> str:
    called = face.aliases[0] if face.aliases and not face.shown else face.name
    pairs = ", ".join(f"{key} as {shown}" for key, shown in renamed.items())
    if name != called:
        return f"{name} was understood as {called}: {pairs}." if pairs else f"{name} was understood as {called}."
    return f"{name} was given parameters of another dialect: {pairs or 'they were understood'}."


class FamilyNames:
    """Made when a rule is first looked at: it takes all families."""

    def __init__(self, families: Callable[[], Sequence[Family]], canonical: Callable[[str], str]) -> None:
        """`canonical` gives the tool behind a name of this session; the name itself where it knows none."""
        self._families = families
        self._canonical = canonical

    @cached_property
    def _faces(self) -> dict[str, list[Face]]:
        """By canonical tool."""
        out: dict[str, list[Face]] = {}
        for family in self._families():
            for face in family.faces:
                out.setdefault(face.tool, []).append(face)
        return out

    @cached_property
    def _tools(self) -> dict[str, str]:
        """Every name → its canonical tool. What a family calls its own tool counts before what others allow for it."""
        own = {face.name: tool for tool, faces in self._faces.items() for face in faces if face.shown}
        older = {face.name: tool for tool, faces in self._faces.items() for face in faces}
        aliases: dict[str, str] = {}
        for tool, faces in self._faces.items():
            for face in faces:
                aliases.update(dict.fromkeys(face.aliases, tool))
        for family in self._families():
            for alias, name in family.aliases.items():
                if name in older:
                    aliases.setdefault(alias, own.get(name, older[name]))
        return {**aliases, **older, **own, **{tool: tool for tool in self._faces}}

    def tool(self, name: str) -> str | None:
        """The canonical tool that a name means in any family, and in this session."""
        known = self._tools.get(name)
        if known is not None:
            return known
        here = self._canonical(name)
        return here if here != name else None

    def kin(self, tool: str) -> str | None:
        """The built-in tool that one from elsewhere stands for, by its name in any family; None where it is its own.

        What denies the one denies the other, whoever took whose name.
        """
        if tool in self._faces:
            return None
        known = self.tool(tool)
        return known if known != tool else None

    def of(self, tool: str) -> frozenset[str]:
        """All names of a canonical tool, or of one from elsewhere its own."""
        return self._every.get(tool) or frozenset((tool,))

    @cached_property
    def _every(self) -> dict[str, frozenset[str]]:
        out: dict[str, set[str]] = {}
        for name, tool in self._tools.items():
            out.setdefault(tool, {tool}).add(name)
        return {tool: frozenset(names) for tool, names in out.items()}

    def values(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments in canonical names, each under every name that a family gives it, in that family's unit."""
        out = dict(given)
        for face in self._faces.get(tool, ()):
            for name in face.schema.get("properties", ()):
                meant = face.params.get(name, name)
                if meant in given and name not in out:
                    out[name] = _in_unit(given[meant], face.per.get(meant, 1))
        return out

    def parameters(self, tool: str, meant: str) -> frozenset[str]:
        """Every name of one canonical parameter."""
        names = {meant}
        for face in self._faces.get(tool, ()):
            names.update(name for name in face.schema.get("properties", ()) if face.params.get(name, name) == meant)
        return frozenset(names)


def _in_unit(value: Any, per: int) -> Any:
    return value * per if per != 1 and isinstance(value, (int, float)) and not isinstance(value, bool) else value


_NAME_CHARS = 128
"""How much of an unknown name is looked at and said back; no model API takes a longer one."""
_LISTED = 60
"""How many tools are named where none is near."""
_WORDS_CHARS = 2_000
_SCHEMA_CHARS = 60_000


def unknown(
    name: str,
    *,
    known: Mapping[str, Face],
    shown: Collection[str],
    instead: str | None,
    behind: str | None,
    disabled: Collection[str],
    longer: Sequence[str],
) -> UnknownTool:
    """`instead` is what an alias says to call, and `behind` the tool that is not here; `disabled` are switched off.

    `longer` are the whole names of servers' tools that are called so.
    """
    said = name[:_NAME_CHARS]
    if name in disabled or behind in disabled:
        return UnknownTool(
            f"{said} is switched off in this session by the setting tools.disable. The tools are {format_names(shown)}."
        )
    if len(longer) == 1:
        return UnknownTool(f"{said} is called {longer[0]} here. Call it by that name.")
    if longer:
        return UnknownTool(f"{said} may mean {' or '.join(longer[:8])}. Call the one that you mean by its whole name.")
    if instead is not None:
        return UnknownTool(f"{said} means {instead}, which is not among this session's tools: {format_names(shown)}.")
    if behind is not None:
        return UnknownTool(
            f"{said} is a tool that this version does not have yet. The tools are {format_names(shown)}."
        )
    meant = dict.fromkeys(known[one].name for one in near(said, known))
    hint = f" Did you mean {' or '.join(meant)}?" if meant else f" The tools are {format_names(shown)}."
    return UnknownTool(f"There is no tool called {said!r}.{hint}")


def not_loaded(name: str, face: Face, misfit: str = "") -> ToolFailure:
    """The whole definition, so that the next try works; `misfit` is what was wrong with the arguments."""
    schema = msgspec.json.encode(copy_json(face.schema)).decode()
    if len(schema) > _SCHEMA_CHARS:
        schema = f"(too long to show; its parameters are {', '.join(face.schema.get('properties', ()))[:2_000]})"
    words = face.words if len(face.words) <= _WORDS_CHARS else f"{face.words[:_WORDS_CHARS]}…"
    misfit = f"{misfit}\n" if misfit else ""
    also = "" if name == face.name else f", which is called {face.name} here,"
    return ToolFailure(
        f"{misfit}{name}{also} had not been loaded, so that its parameters were not known. It is loaded now.\n"
        f"Description: {words}\nParameters, as JSON Schema: {schema}\n"
        f"Call {face.name} again, with arguments that fit.",
        code="not-loaded",
    )


def format_names(names: Iterable[str]) -> str:
    """Names of tools in a sentence, and not a thousand of them."""
    every = list(names)
    more = f" and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more
