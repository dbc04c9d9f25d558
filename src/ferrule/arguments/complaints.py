"""What does not fit a schema, said to the caller: one line for each bad parameter, in the schema's order."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.arguments.input import Path, describe_value, format_names, format_path, quote_name, quote_text
from ferrule.arguments.schema import local_target
from ferrule.core.suggest import near

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError


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
