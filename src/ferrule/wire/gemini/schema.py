"""JSON Schema in the words of Gemini's own `Schema`, for backends that do not take `parametersJsonSchema`.

`Schema` knows a part of OpenAPI 3.0. References are written out where they stand, what it has other words for is put
into them, and the rest is left out: the engine still checks every call against the whole schema.
"""

from collections.abc import Mapping
from typing import Any

from ferrule.wire.cleanup import LIMIT_DEPTH, listed, named, required_of, takes_null, types_of
from ferrule.wire.content import json_text
from ferrule.wire.shape import WireError

_WORDS = ("title", "description", "pattern")
_NUMBERS = (
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
)
_FORMATS = {
    "string": {"date-time", "enum"},
    "integer": {"int32", "int64"},
    "number": {"float", "double"},
}
LIMIT_NODES = 5_000
"""References written out may double a schema with every level; this is where that ends."""


def subset(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema as Gemini's own."""
    return _Writer(schema).write(schema, ())


class _Writer:
    """One schema on its way; it holds what references point into."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def write(self, schema: Any, behind: tuple[str, ...], depth: int = 0) -> dict[str, Any]:
        """`behind` are the references that led here."""
        self._nodes += 1
        if depth > LIMIT_DEPTH or self._nodes > LIMIT_NODES:
            raise WireError("A schema is too large once its references are written out.")
        if not isinstance(schema, Mapping):
            return {}
        if isinstance(reference := schema.get("$ref"), str):
            return self._resolved(schema, reference, behind, depth)
        schema = self._merged(schema, behind, depth)
        out = {key: schema[key] for key in _WORDS if isinstance(schema.get(key), str)}
        out |= {key: schema[key] for key in _NUMBERS if _is_number(schema.get(key))}
        kinds = [kind for kind in types_of(schema) or _guessed(schema) if kind != "null"]
        if takes_null(schema):
            out["nullable"] = True
        _bounds(schema, kinds, out)
        branches = self._branches(schema, behind, depth)
        if len(kinds) > 1 and not branches:
            return {**out, "anyOf": [self.write({**schema, "type": kind}, behind, depth + 1) for kind in kinds]}
        if branches:
            out["anyOf"] = branches
        if len(kinds) == 1:
            self._typed(schema, kinds[0], out, behind, depth)
        return out

    def _resolved(
        self, schema: Mapping[str, Any], reference: str, behind: tuple[str, ...], depth: int
    ) -> dict[str, Any]:
        words = {key: schema[key] for key in ("description", "title") if key in schema}
        if reference in behind:
            # A schema that contains itself has no end; the model still hears what kind of value stands here.
            return {"type": "OBJECT", **words}
        target = self._target(reference)
        rest = {key: value for key, value in schema.items() if key not in {"$ref", "$defs", "definitions"}}
        return {**self.write({**target, **rest}, (*behind, reference), depth + 1), **words}

    def _target(self, reference: str) -> Mapping[str, Any]:
        if not reference.startswith("#"):
            raise WireError(
                f"A schema refers to {reference!r}, and only references inside of the schema can be followed."
            )
        found: Any = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            raise WireError(f"A schema refers to {reference!r}, which is not in it.")
        return found

    def _merged(self, schema: Mapping[str, Any], behind: tuple[str, ...], depth: int) -> Mapping[str, Any]:
        """`allOf` as one schema: members and demands of all of them."""
        together = listed(schema, "allOf")
        if depth > LIMIT_DEPTH:
            raise WireError("A schema is too large once its references are written out.")
        merged = {key: value for key, value in schema.items() if key != "allOf"} if together else schema
        for one in together:
            part, seen = self._followed(one, behind)
            part = self._merged(part, seen, depth + 1)
            both = {
                "properties": {**named(part, "properties"), **named(merged, "properties")},
                "required": list(dict.fromkeys([*required_of(merged), *required_of(part)])),
            }
            merged = {**part, **merged, **{key: value for key, value in both.items() if value}}
        return merged

    def _followed(self, schema: Any, behind: tuple[str, ...]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """What a schema refers to, with its own words on top, and the references that led there."""
        part = schema if isinstance(schema, Mapping) else {}
        while isinstance(reference := part.get("$ref"), str):
            own = {key: value for key, value in part.items() if key != "$ref"}
            if reference in behind:
                return own, behind
            behind = (*behind, reference)
            part = {**self._target(reference), **own}
        return part, behind

    def _branches(self, schema: Mapping[str, Any], behind: tuple[str, ...], depth: int) -> list[dict[str, Any]]:
        given = [one for key in ("anyOf", "oneOf") for one in listed(schema, key)]
        valued = [one for one in given if not (isinstance(one, Mapping) and types_of(one) == ("null",))]
        return [self.write(one, behind, depth + 1) for one in valued]

    def _typed(
        self, schema: Mapping[str, Any], kind: str, out: dict[str, Any], behind: tuple[str, ...], depth: int
    ) -> None:
        out["type"] = kind.upper()
        form = schema.get("format")
        if isinstance(form, str) and form in _FORMATS.get(kind, ()):
            out["format"] = form
        _values(schema, kind, out)
        if kind == "array":
            out["items"] = self._items(schema, behind, depth)
        properties = named(schema, "properties")
        if kind == "object" and properties:
            out["properties"] = {name: self.write(about, behind, depth + 1) for name, about in properties.items()}
            out["propertyOrdering"] = list(properties)
            if required := [name for name in required_of(schema) if name in properties]:
                out["required"] = required

    def _items(self, schema: Mapping[str, Any], behind: tuple[str, ...], depth: int) -> dict[str, Any]:
        items = schema.get("items")
        several = listed(schema, "items") or listed(schema, "prefixItems")
        if several:
            written = [self.write(one, behind, depth + 1) for one in several]
            distinct = [one for at, one in enumerate(written) if one not in written[:at]]
            return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        # An array must say what is in it.
        return self.write(items, behind, depth + 1) or {"type": "STRING"}


def _guessed(schema: Mapping[str, Any]) -> tuple[str, ...]:
    if "properties" in schema:
        return ("object",)
    if "items" in schema or "prefixItems" in schema:
        return ("array",)
    values = _allowed(schema)
    return ("string",) if values and all(isinstance(value, str) for value in values) else ()


def _bounds(schema: Mapping[str, Any], kinds: list[str], out: dict[str, Any]) -> None:
    """Exclusive bounds as inclusive ones: exactly for whole numbers, and nearly for others."""
    for key, bound, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
        value = schema.get(key)
        if _is_number(value) and bound not in out:
            out[bound] = value + step if kinds == ["integer"] and isinstance(value, int) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _allowed(schema: Mapping[str, Any]) -> list[Any]:
    return [schema["const"]] if "const" in schema else listed(schema, "enum")


def _values(schema: Mapping[str, Any], kind: str, out: dict[str, Any]) -> None:
    """The values that are allowed. Only strings can be listed; others are told in the description."""
    values = _allowed(schema)
    if not values:
        return
    spoken = [value for value in values if value is not None]
    if kind == "string" and all(isinstance(value, str) and value for value in spoken):
        out["enum"] = spoken
        return
    told = "One of: " + ", ".join(json_text(value) for value in values) + "."
    out["description"] = " ".join(filter(None, (out.get("description"), told)))
