"""Mend near misses in arguments by their schema, and build the validators for it.

Examples are "5" for the number 5, and a string of JSON for an object. A value that fits its schema is never
changed. A change is kept if it makes the value fit, or at least gives it the requested type, so that the remaining
complaint is not about its quotes. Validators are made without fetching anything.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from ferrule.arguments.input import Path, describe_value, examine, format_path
from ferrule.arguments.schema import local_target
from ferrule.core.errors import BadArguments

if TYPE_CHECKING:
    from jsonschema_rs import ValidatorMap


C = TypeVar("C", list[Any], dict[str, Any])

HOPS_LIMIT = 100
STEPS_LIMIT = 20_000
"""Schemas may refer to themselves in many ways at once; past these limits a value is left as it is."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}(\.0*)?")
_NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,3})?")
_SCALARS = frozenset({"string", "integer", "number", "boolean"})
_WHOLE_FLOAT_LIMIT = 2.0**63


class Coerced(NamedTuple):
    """A value, and one sentence for each repair that made it what it is."""

    value: Any
    notes: tuple[str, ...] = ()


class _ValuePlace(NamedTuple):
    """Where a value stands in the arguments, and which part of the schema is read for it."""

    pointer: str = "#"
    path: Path = ()
    hops: int = 0

    def inside(self, *keys: str | int, path: Path = ()) -> "_ValuePlace":
        steps = "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)
        return _ValuePlace(self.pointer + steps, self.path + path, self.hops + 1)


def coerce(value: Any, schema: dict[str, Any], validators: "ValidatorMap") -> Coerced:
    """The value with its near misses mended. `validators` is what `judge_parts` gave for the schema."""
    return _Mender(schema, validators).mend(value, schema, _ValuePlace())


class _Mender:
    """One run over one value."""

    def __init__(self, root: dict[str, Any], validators: "ValidatorMap") -> None:
        self._root = root
        self._validators = validators
        self._steps_left = STEPS_LIMIT

    def mend(self, value: Any, schema: Any, place: _ValuePlace) -> Coerced:
        if not isinstance(schema, dict) or place.hops > HOPS_LIMIT or not self._steps_left:
            return Coerced(value)
        if place.pointer != "#" and "$id" in schema:
            return Coerced(value)
        self._steps_left -= 1
        if "$ref" in schema:
            target = local_target(self._root, schema["$ref"])
            if target is None:
                return Coerced(value)
            return self.mend(value, target[0], _ValuePlace(target[1], place.path, place.hops + 1))
        types = _types(schema)
        if types and not _is_of(value, types):
            return self._retype(value, schema, types, place)
        value = _whole(value, types)
        notes: tuple[str, ...] = ()
        for step in (self._members, self._items, self._all, self._any):
            value, more = step(value, schema, place)
            notes += more
        return Coerced(value, notes)

    def _fits(self, value: Any, place: _ValuePlace) -> bool:
        validator = self._validators.get(place.pointer)
        return validator is None or validator.is_valid(value)

    def _retype(self, value: Any, schema: dict[str, Any], types: tuple[str, ...], place: _ValuePlace) -> Coerced:
        first: Coerced | None = None
        for kind in types:
            for guess, note in self._guesses(value, kind, schema, place):
                mended = self.mend(guess, schema, place._replace(hops=place.hops + 1))
                mended = Coerced(mended.value, (f"{format_path(place.path)}: {note}.", *mended.notes))
                if self._fits(mended.value, place):
                    return mended
                # Unpacked text that does not fit is worth a word about its inside; an array of the caller's one
                # value is not: the complaint would be about something that the caller never wrote.
                if guess != [value]:
                    first = first or mended
        return first or Coerced(value)

    def _guesses(self, value: Any, kind: str, schema: dict[str, Any], place: _ValuePlace) -> Iterator[tuple[Any, str]]:
        """What the value may have been meant as, if this type is wanted, and how to say so."""
        given = describe_value(value, place.path)
        if isinstance(value, str):
            guess = _read(value, kind)
            if guess is not None:
                yield guess[0], _describe_change(given, guess[0], place.path)
        elif kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
            yield str(value), f"read {given} as the text {describe_value(str(value), place.path)}"
        if kind == "array" and isinstance(value, str | int | float) and self._holds_scalars(schema):
            yield [value], f"took {given} as an array of one item"

    def _holds_scalars(self, schema: dict[str, Any]) -> bool:
        items = schema.get("items")
        if isinstance(items, dict) and "$ref" in items:
            target = local_target(self._root, items["$ref"])
            items = target[0] if target else None
        types = _types(items) if isinstance(items, dict) else ()
        return bool(types) and _SCALARS.issuperset(types)

    def _members(self, value: Any, schema: dict[str, Any], place: _ValuePlace) -> Coerced:
        if not isinstance(value, dict):
            return Coerced(value)
        properties = _of(dict, schema.get("properties"))
        required = _of(list, schema.get("required"))
        others = schema.get("additionalProperties")
        out: dict[str, Any] = {}
        notes: tuple[str, ...] = ()
        for name, member in value.items():
            mended = Coerced(member)
            if name in properties:
                here = place.inside("properties", name, path=(name,))
                if member is None and name not in required and not self._fits(None, here):
                    notes += (f"{format_path(here.path)}: null was taken as not given.",)
                    continue
                mended = self.mend(member, properties[name], here)
            elif "patternProperties" not in schema:
                mended = self.mend(member, others, place.inside("additionalProperties", path=(name,)))
            out[name] = mended.value
            notes += mended.notes
        same = len(out) == len(value) and all(out[name] is member for name, member in value.items())
        return Coerced(value if same else out, notes)

    def _items(self, value: Any, schema: dict[str, Any], place: _ValuePlace) -> Coerced:
        if not isinstance(value, list | tuple):
            return Coerced(value)
        # A list under `items` is how older drafts wrote `prefixItems`.
        keyword = "items" if isinstance(schema.get("items"), list) else "prefixItems"
        prefix = _of(list, schema.get(keyword))
        mended: list[Coerced] = []
        for index, item in enumerate(value):
            if index < len(prefix):
                mended.append(self.mend(item, prefix[index], place.inside(keyword, index, path=(index,))))
            else:
                mended.append(self.mend(item, schema.get("items"), place.inside("items", path=(index,))))
        notes = tuple(note for one in mended for note in one.notes)
        same = all(one.value is item for one, item in zip(mended, value, strict=True))
        return Coerced(value if same else [one.value for one in mended], notes)

    def _all(self, value: Any, schema: dict[str, Any], place: _ValuePlace) -> Coerced:
        notes: tuple[str, ...] = ()
        for index, branch in enumerate(_of(list, schema.get("allOf"))):
            value, more = self.mend(value, branch, place.inside("allOf", index))
            notes += more
        return Coerced(value, notes)

    def _any(self, value: Any, schema: dict[str, Any], place: _ValuePlace) -> Coerced:
        notes: tuple[str, ...] = ()
        for keyword in ("anyOf", "oneOf"):
            value, more = self._alternative(value, schema, keyword, place)
            notes += more
        return Coerced(value, notes)

    def _alternative(self, value: Any, schema: dict[str, Any], keyword: str, place: _ValuePlace) -> Coerced:
        """The first branch that the value fits, or else the first that a mended value fits."""
        branches = [
            (branch, place.inside(keyword, index)) for index, branch in enumerate(_of(list, schema.get(keyword)))
        ]
        for branch, here in branches:
            if self._fits(value, here):
                return self.mend(value, branch, here)
        for branch, here in branches:
            mended = self.mend(value, branch, here)
            fitting = [1 for _, other in branches if self._fits(mended.value, other)]
            if len(fitting) == 1 or (fitting and keyword == "anyOf"):
                return mended
        return Coerced(value)


def _of(kind: type[C], value: object) -> C:
    """The keyword's value where it has the shape that the keyword needs: not every part has been checked."""
    return value if isinstance(value, kind) else kind()


def _types(schema: dict[str, Any]) -> tuple[str, ...]:
    """The types that the schema asks for, in its order; those of its choices where it names none."""
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return (kinds,)
    if isinstance(kinds, list):
        return tuple(kind for kind in kinds if isinstance(kind, str))
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(choices, list):
        return ()
    return tuple(dict.fromkeys(_type(choice) for choice in choices))


def _type(value: Any) -> str:
    if value is None:
        return "null"
    for python, name in (
        (bool, "boolean"),
        (str, "string"),
        (int, "integer"),
        (float, "number"),
        (dict, "object"),
    ):
        if isinstance(value, python):
            return name
    return "array"


def _is_of(value: Any, types: tuple[str, ...]) -> bool:
    kind = _type(value)
    if kind == "integer":
        return "integer" in types or "number" in types
    return kind in types or (kind == "number" and "integer" in types and value.is_integer())


def _whole(value: Any, types: tuple[str, ...]) -> Any:
    """3.0 as 3 where an integer is meant: one number in JSON, so this is no repair, but two in Python."""
    if isinstance(value, float) and "integer" in types and "number" not in types:
        return int(value) if abs(value) < _WHOLE_FLOAT_LIMIT else value
    return value


def _read(text: str, kind: str) -> tuple[Any] | None:
    """What the text says as a value of that type, in a tuple because it may be null."""
    text = text.strip(" \t\r\n")
    if kind == "integer" and _INTEGER.fullmatch(text):
        return (int(text.partition(".")[0]),)
    if kind == "number" and _INTEGER.fullmatch(text) and "." not in text:
        return (int(text),)
    if kind == "number" and _NUMBER.fullmatch(text):
        number = float(text)
        return None if number in (float("inf"), float("-inf")) else (number,)
    if kind == "boolean" and text.lower() in {"true", "false"}:
        return (text.lower() == "true",)
    if kind == "null" and text == "null":
        return (None,)
    if (kind == "array" and text.startswith("[")) or (kind == "object" and text.startswith("{")):
        return _unpack_json(text)
    return None


def _unpack_json(text: str) -> tuple[Any] | None:
    try:
        value = msgspec.json.decode(text)
        examine(value)
    except (msgspec.DecodeError, RecursionError, BadArguments):
        return None
    return (value,)


def _describe_change(given: str, value: Any, path: Path) -> str:
    if isinstance(value, dict | list):
        return f"read a string of JSON as {'an object' if isinstance(value, dict) else 'an array'}"
    if isinstance(value, bool) or value is None:
        return f"read {given} as {describe_value(value)}"
    return f"read {given} as the number {describe_value(value, path)}"
