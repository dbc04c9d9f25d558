"""Hearing: in whose words a call is that is not in this session's, and what is to be said about it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ferrule.core.face import Face
from ferrule.core.tool import AnyTool
from ferrule.registry.entry import ON_REQUEST
from ferrule.registry.foreign import Abroad, Foreign, Heard, fits, member_names, own_words, same_meaning

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


class Hearing:
    """Tries whose words a call is in, and remembers what it found."""

    def __init__(
        self,
        faces: Sequence[Face],
        answers: Mapping[str, Face],
        older: Mapping[str, Sequence[Face]],
        foreign: Foreign,
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
        self._known: dict[tuple[Any, ...], tuple[Heard, Mapping[str, str]]] = {}
        """By names and types: what was heard, but for the values, and the names that have to be changed for it."""
        self._made: dict[tuple[str, ...], Face] = {}
        """Faces that had to be made; each once, for their schemas are compiled by identity."""

    def hear(self, name: str, meant: Face, values: dict[str, Any], *, is_own: bool) -> Heard:
        """The call; `meant` is what the name means here, by this family's own use of it or by another's."""
        key = (name, *values, *map(_kind, values.values()))
        if key in self._known:
            heard, renamed = self._known[key]
            return heard._replace(values={renamed.get(one, one): value for one, value in values.items()})
        guess = self._guess(name, meant, values, is_own=is_own)
        heard = self._heard(name, meant, guess, values, is_own=is_own)
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
        named = self._foreign.named(name)
        yield from (_Guess(self._in_own_units(mine, one), one.family) for one in named)
        yield from (_Guess(face) for face in self._faces if face.tool == meant.tool and face is not mine)
        seen = {id(one.face) for one in named}
        rest = (one for one in self._foreign.having(meant.tool) if id(one.face) not in seen)
        yield from (_Guess(self._in_own_units(mine, one), one.family) for one in rest)

    def _in_own_units(self, own: Face | None, other: Abroad) -> Face:
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

    def _heard(self, name: str, meant: Face, guess: _Guess, values: dict[str, Any], *, is_own: bool) -> Heard:
        spoken, _, renamed, unknown = guess
        is_mine = is_own and self._is_mine(name, meant, spoken)
        face = spoken if is_mine else self._answering(meant, guess)
        tool = self._load(spoken.tool)
        known = {renamed.get(key, key): value for key, value in values.items()}
        # Canonical words under a canonical name are everybody's.
        is_plain = name == meant.tool and spoken is self._made.get((name,))
        notes = [] if (is_mine or is_plain) and not renamed else [self._note(name, face, tool, guess, values)]
        if unknown and any(keyword in spoken.schema for keyword in _OPEN):
            known = {key: value for key, value in known.items() if key not in unknown}
            notes.append(f"{', '.join(unknown)[:200]}: unknown, and ignored.")
        return Heard(face, tool, spoken, known, " ".join(filter(None, notes)))

    def _is_mine(self, name: str, meant: Face, spoken: Face) -> bool:
        """Is it what the name means in this family, now or in older days?"""
        return spoken is meant or any(spoken is older for older in self._older.get(name, ()))

    def _answering(self, meant: Face, guess: _Guess) -> Face:
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
        said = _understood(name, face, pairs)
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


def _understood(name: str, face: Face, renamed: Mapping[str, str]) -> str:
    called = face.aliases[0] if face.aliases and not face.shown else face.name
    pairs = ", ".join(f"{key} as {shown}" for key, shown in renamed.items())
    if name != called:
        return f"{name} was understood as {called}: {pairs}." if pairs else f"{name} was understood as {called}."
    return f"{name} was given parameters of another dialect: {pairs or 'they were understood'}."
