"""Check arguments against a schema, mend near misses, and turn them into the struct that a tool takes.

Examples are "5" for the number 5, and a string of JSON for an object. A value that fits its schema is never
changed. A change is kept if it makes the value fit, or at least gives it the requested type, so that the remaining
complaint is not about its quotes. Validators are made without fetching anything.

The steps are: the advertised schema, canonical names, final form, struct. Building a validator and importing its
library wait for the first call, so that neither slows down the start.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec

from ferrule.arguments import (
    ArgumentObject,
    Path,
    describe_value,
    examine,
    format_names,
    format_path,
    quote_name,
    quote_text,
    receive,
)
from ferrule.core.errors import BadArguments, ConfigError, near
from ferrule.core.tool import AnyTool, Args, Context, Face, as_it_came

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator, ValidatorMap


def judge(schema: dict[str, Any]) -> "Validator":
    """A validator for the schema.

    Raises ConfigError where it is not a schema, or refers to anything but its own parts: nothing is fetched.
    """
    import jsonschema_rs  # 20 ms; only a call that is validated pays for it

    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = str(getattr(error, "message", error)).splitlines()[0][:200]
        raise ConfigError(f"The tool's schema cannot be used: {reason}") from error


def judge_parts(schema: dict[str, Any]) -> "ValidatorMap":
    """Validators for the schema and for each of its parts, by JSON pointer. Raises ConfigError, as above."""
    import jsonschema_rs  # as above

    judge(schema)  # the map leaves out in silence what cannot be built; this says why
    # Masked, because its messages would otherwise repeat whole values, which nobody reads.
    return jsonschema_rs.validator_map_for(schema, retriever=_refuse, mask="the value")


def local_target(root: dict[str, Any], reference: object) -> tuple[Any, str] | None:
    """The part that a local reference names, with its pointer; None where it cannot be known from here."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")) or "%" in reference:
        return None
    found: Any = root
    for key in reference.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901 - the same key, unescaped
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isascii() and key.isdigit() and int(key[:6]) < len(found):
            found = found[int(key[:6])]
        else:
            return None
        if isinstance(found, dict) and "$id" in found:
            return None  # references inside it are relative to another base
    return found, reference


def _refuse(uri: str) -> Any:
    raise ValueError(f"a schema may refer only to its own parts, not to {uri[:100]}")


LIMIT_NOTES = 20

_MAY_NAME_MORE = (
    *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"),
    *("patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
)


class FittedArguments(NamedTuple):
    """Arguments that fit, and one sentence for everything that was mended or left out."""

    values: dict[str, Any]
    notes: tuple[str, ...] = ()


class Schema:
    """One advertised JSON Schema, which must not be changed afterwards."""

    def __init__(self, advertised: Mapping[str, Any]) -> None:
        self.advertised = dict(advertised)

    def fit(self, raw: dict[str, Any] | str | ArgumentObject) -> FittedArguments:
        """The arguments as the schema wants them; parameters that it does not know are left out and noted.

        Raises BadArguments, with one line per bad parameter, and ConfigError where the schema itself is bad.
        """
        came = raw if isinstance(raw, ArgumentObject) else receive(raw)
        unknown = (
            [name for name in came.values if name not in self._schema_names] if self._schema_names is not None else []
        )
        if not unknown and not came.has_whole_floats and self._validator.is_valid(came.values):
            return FittedArguments(came.values, came.notes)
        return self._mend(came, unknown)

    def _mend(self, came: ArgumentObject, unknown: list[str]) -> FittedArguments:
        values, notes, has_whole_floats = came
        for name in unknown:
            del values[name]
        if unknown:
            notes += tuple(unknown_notes(self.advertised, unknown))
            if not has_whole_floats and self._validator.is_valid(values):
                return FittedArguments(values, notes)
        parts = judge_parts(self.advertised)
        mended = coerce(values, self.advertised, parts)
        # What was unpacked from a string may nest deeper than what was examined before.
        examine(mended.value)
        if not parts["#"].is_valid(mended.value):
            errors = parts["#"].iter_errors(mended.value)
            raise BadArguments("\n".join(lines(self.advertised, mended.value, errors, unknown)))
        more = len(mended.notes) - LIMIT_NOTES
        cut = (f"{more} more values were mended in the same way.",) if more > 0 else ()
        return FittedArguments(mended.value, notes + mended.notes[:LIMIT_NOTES] + cut)

    @cached_property
    def _validator(self) -> "Validator":
        return judge(self.advertised)

    @cached_property
    def _schema_names(self) -> frozenset[str] | None:
        """All names that the schema knows; None where it allows others itself or may name more elsewhere."""
        properties, required = self.advertised.get("properties"), self.advertised.get("required")
        if not isinstance(properties, dict) or any(keyword in self.advertised for keyword in _MAY_NAME_MORE):
            return None
        return frozenset(properties).union(required if isinstance(required, list) else ())


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


LIMIT_LINES = 20
LIMIT_ERRORS = 200
LIMIT_COMPARED = 50

_TYPES = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_PROBLEMS = {
    "enum": "must be one of {choices}, not {given}",
    "const": "must be {expected}, not {given}",
    "minimum": "must be at least {limit}, not {given}",
    "maximum": "must be at most {limit}, not {given}",
    "exclusiveMinimum": "must be more than {limit}, not {given}",
    "exclusiveMaximum": "must be less than {limit}, not {given}",
    "minItems": "has too few items: {size}, at least {limit} needed",
    "maxItems": "has too many items: {size}, at most {limit} allowed",
    "minLength": "has too few characters: {size}, at least {limit} needed",
    "maxLength": "has too many characters: {size}, at most {limit} allowed",
    "minProperties": "has too few members: {size}, at least {limit} needed",
    "maxProperties": "has too many members: {size}, at most {limit} allowed",
    "multipleOf": "must be a multiple of {step}, not {given}",
    "pattern": "must match the pattern {pattern}, not {given}",
    "format": "must be in the format {form}, not {given}",
    "uniqueItems": "must not hold the same item twice",
    "falseSchema": "must not be given",
    "oneOf": "must fit exactly one of the forms that the schema allows, but fits several",
}


class Misfit(NamedTuple):
    """One thing wrong with the parameter at `path`."""

    path: Path
    problem: str
    kind: str = ""


def lines(
    schema: dict[str, Any], values: Any, errors: Iterable["ValidationError"], unknown: Iterable[str] = ()
) -> list[str]:
    """One line per bad parameter. `unknown` are names that the schema does not know, put aside."""
    found = [misfit for error in islice(errors, LIMIT_ERRORS) for misfit in _misfits(schema, values, error)]
    takes = _takes(schema)
    found += [Misfit((name,), f"unknown parameter; {takes}", "unknown") for name in unknown]
    found = _merge_misspelled(found)
    by_path: dict[Path, list[Misfit]] = {}
    for misfit in sorted(found, key=lambda misfit: _position(schema, misfit.path)):
        by_path.setdefault(misfit.path, []).append(misfit)
    out = [_line(path, misfits) for path, misfits in islice(by_path.items(), LIMIT_LINES)]
    if len(by_path) > LIMIT_LINES:
        out.append(f"… and {len(by_path) - LIMIT_LINES} more.")
    return out or ["The arguments do not fit the tool's schema."]


def unknown_notes(schema: dict[str, Any], unknown: list[str]) -> Iterator[str]:
    """One sentence for each name that the schema does not know and that is left out."""
    for name in unknown[:LIMIT_LINES]:
        yield f"{quote_name(name)}: unknown parameter, ignored; {_takes(schema)}."
    if len(unknown) > LIMIT_LINES:
        yield f"{len(unknown) - LIMIT_LINES} more unknown parameters, ignored."


def nearest(name: str, others: Iterable[str]) -> str | None:
    """The one that was probably meant: the same but for case and punctuation, or else much alike."""
    others = [other for other in others if len(other) <= 100][:LIMIT_COMPARED]
    for other in others:
        if _letters(other) == _letters(name):
            return other
    by_letters = {_letters(other): other for other in reversed(others)}
    close = near(_letters(name[:100]), by_letters, most=1)
    return by_letters[close[0]] if close else None


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum()) or name


def _line(path: Path, misfits: list[Misfit]) -> str:
    # A wrong type explains the rest.
    chosen = [misfit for misfit in misfits if misfit.kind == "type"][:1] or misfits[:3]
    text = "; ".join(dict.fromkeys(misfit.problem for misfit in chosen))
    return f"{format_path(path)}: {text}{'' if text.endswith('?') else '.'}"


def _merge_misspelled(found: list[Misfit]) -> list[Misfit]:
    """A missing parameter and an unknown one that looks like it become one line."""
    out = list(found)
    for missing in [misfit for misfit in found if misfit.kind == "required"]:
        *holder, name = missing.path
        strange = {
            str(other.path[-1]): other for other in out if other.kind == "unknown" and [*other.path[:-1]] == holder
        }
        meant = nearest(str(name), strange)
        if meant is not None:
            question = f"{missing.problem}; did you mean {quote_text(str(name))} for {quote_text(meant)}?"
            out[out.index(missing)] = missing._replace(problem=question)
            out.remove(strange[meant])
    return out


def _misfits(schema: dict[str, Any], values: Any, error: "ValidationError") -> Iterator[Misfit]:
    path, kind = tuple(error.instance_path), error.kind
    details = kind.as_dict()
    if kind.name == "required":
        yield Misfit((*path, details["property"]), "required, but missing", "required")
    elif kind.name in {"additionalProperties", "unevaluatedProperties"} and "unexpected" in details:
        yield from _unknown_misfits(schema, error, details["unexpected"])
    elif kind.name == "falseSchema" and error.schema_path[-1:] == ["additionalProperties"]:
        # The validator names nothing where the schema has no properties at all.
        yield from _unknown_misfits(schema, error, list(_at(values, error.instance_path)))
    elif kind.name in {"anyOf", "oneOf"} and details.get("context") and not _fits_several(details["context"]):
        yield from _unfit_alternatives(schema, values, error, details["context"])
    elif kind.name == "type":
        yield Misfit(path, _describe_type_error(details["types"], error), "type")
    else:
        yield Misfit(path, _problem(kind.name, details, error.instance, path), kind.name)


def _unknown_misfits(schema: dict[str, Any], error: "ValidationError", names: list[str]) -> Iterator[Misfit]:
    holder = _at(schema, error.schema_path[:-1])
    takes = _takes(holder) if not error.instance_path else f"it takes {_names(holder)}"
    for name in names:
        yield Misfit((*error.instance_path, name), f"unknown parameter; {takes}", "unknown")


def _fits_several(context: list[list["ValidationError"]]) -> bool:
    return any(not branch for branch in context)


def _unfit_alternatives(
    schema: dict[str, Any], values: Any, error: "ValidationError", branches: list[list["ValidationError"]]
) -> Iterator[Misfit]:
    """The complaints of the branch that the value comes nearest to."""
    path = error.instance_path
    mistyped = [[own for own in branch if own.kind.name == "type" and own.instance_path == path] for branch in branches]
    close = [branch for branch, own in zip(branches, mistyped, strict=True) if not own]
    if not close:
        types = [kind for own in mistyped for kind in own[0].kind.as_dict()["types"]]
        yield Misfit(tuple(path), _describe_type_error(list(dict.fromkeys(types)), error), "type")
        return
    if len(close) > 1 and all(own.kind.name == "required" for branch in close for own in branch):
        names = dict.fromkeys(quote_name(own.kind.as_dict()["property"]) for branch in close for own in branch)
        yield Misfit(tuple(path), f"one of {format_names(names)} is required, but missing", "alternatives")
        return
    for own in min(close, key=len):
        yield from _misfits(schema, values, own)


def _describe_type_error(types: list[str], error: "ValidationError") -> str:
    wanted = " or ".join(_TYPES.get(kind, kind) for kind in types)
    return f"must be {wanted}, not {describe_value(error.instance, tuple(error.instance_path))}"


def _problem(name: str, details: dict[str, Any], value: Any, path: Path) -> str:
    words = _PROBLEMS.get(name, "does not meet {keyword} of the schema")
    return words.format(
        keyword=quote_text(name),
        given=describe_value(value, path),
        choices=format_names(describe_value(choice) for choice in details.get("options", ())),
        expected=describe_value(details.get("expected_value")),
        limit=describe_value(details.get("limit")),
        size=len(value) if isinstance(value, str | list | dict) else 0,
        step=describe_value(details.get("multiple_of")),
        pattern=quote_text(str(details.get("pattern"))),
        form=quote_text(str(details.get("format"))),
    )


def _takes(schema: dict[str, Any]) -> str:
    return f"this tool takes {_names(schema)}"


def _names(schema: dict[str, Any]) -> str:
    return format_names(quote_name(name) for name in _properties(schema)) or "no parameters"


def _properties(schema: Any) -> dict[str, Any]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _at(root: Any, path: list[str | int]) -> dict[str, Any]:
    """The object at that place; empty where there is none."""
    for key in path:
        try:
            root = root[key]
        except (KeyError, IndexError, TypeError):
            return {}
    return root if isinstance(root, dict) else {}


def _position(root: dict[str, Any], path: Path) -> tuple[int, ...]:
    """Sorts like the schema: properties in its order, strangers after them, items by their index."""
    out: list[int] = []
    part: Any = root
    for key in path:
        target = local_target(root, part.get("$ref")) if isinstance(part, dict) else None
        part = target[0] if target else part
        if isinstance(key, int):
            out.append(key)
            part = part.get("items") if isinstance(part, dict) else None
        else:
            names = list(_properties(part))
            out.append(names.index(key) if key in names else len(names))
            part = _properties(part).get(key)
    return tuple(out)


_WHERE = re.compile(r" - at `\$\.?([^`]*)`$")

_KINDS = {"int": "a whole number", "float": "a number with a fraction", "str": "text", "bool": "true or false"}


class Understood(Context, Protocol):
    """A context that remembers the arguments in their final form."""

    input: dict[str, Any]


class Arguments:
    """The schemas of the faces, compiled when they are first used."""

    def __init__(self) -> None:
        self._schemas: dict[int, tuple[Face, Schema]] = {}
        """By the face's identity; the face is kept, so that no other can come to have it."""

    def receive(self, face: Face, raw: dict[str, Any] | str) -> ArgumentObject:
        """The arguments as an object. A face that takes free text has all of a text that is no JSON."""
        if face.text_param and isinstance(raw, str) and not raw.lstrip().startswith(("{", '"', "```json")):
            raw = {face.text_param: raw}
        return receive(raw)

    def understand(self, face: Face, spoken: Face, tool: AnyTool, came: ArgumentObject, ctx: Understood) -> Args:
        """The tool's arguments, said in the words of `spoken` and answered in those of `face`.

        Every repair is a note. Raises `BadArguments`, one line per bad parameter.
        """
        known = self._schemas.get(id(spoken))
        if known is None:
            is_foreign = _is_raw(tool) or not hasattr(tool.args, "__struct_fields__")
            schema = spoken.taken
            known = self._schemas[id(spoken)] = (spoken, Schema(_open(schema) if is_foreign else schema))
        fitted = known[1].fit(came)
        for note in fitted.notes:
            ctx.note(note)
        for name in spoken.unused:
            if name in fitted.values and name not in spoken.schema.get("properties", ()):
                ctx.note(f"{name}: has no effect in this session.")
        values = face.completed(spoken.heard(fitted.values))
        args = _convert_args(values, tool, spoken)
        if face.preprocess is not as_it_came:  # it may look at values, so they are the tool's before and after
            values = face.preprocess(values, ctx)
            args = _convert_args(values, tool, spoken)
        # Rules speak of the arguments themselves, not of what they are handed on in.
        ctx.input = values["values"] if _is_raw(tool) else values
        return args


def _is_raw(tool: AnyTool) -> bool:
    return getattr(tool.args, "raw", False)


def _open(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema that is not ours: what it does not forbid is let through, as it says of itself."""
    return schema if "unevaluatedProperties" in schema else {"additionalProperties": True, **schema}


def _convert_args(values: dict[str, Any], tool: AnyTool, spoken: Face) -> Args:
    try:
        return msgspec.convert(values, tool.args, strict=False)
    except msgspec.ValidationError as error:
        raise BadArguments(_error_line(spoken, str(error))) from error


def _error_line(face: Face, message: str) -> str:
    """A conversion error as one line that speaks the caller's parameter names."""
    where = _WHERE.search(message)
    path = where.group(1) if where else ""
    what = message[: where.start()] if where else message
    head = re.split(r"[.\[]", path, maxsplit=1)[0]
    shown = face.shown_param(head)
    for kind, words in _KINDS.items():
        what = what.replace(f"`{kind} | null`", words).replace(f"`{kind}`", words)
    return f"{shown}{path[len(head) :]}: {what[:1].lower()}{what[1:]}."
