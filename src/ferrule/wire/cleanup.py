"""Schemas made fit for APIs that take less than all of JSON Schema. Nothing here changes the schema that it is given.

A schema is walked as one: the names under `properties` are parameters and never keywords, and what stands in `enum`,
`const`, `default` or `examples` is data. Parts that stay as they are, are not copied.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ferrule.wire.shape import WireError

Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]

LIMIT_DEPTH = 100
"""No tool needs more, and a schema that is deeper is an attack."""

MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords that hold schemas by name."""
LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
"""Keywords that hold several schemas."""
ONES = (
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
)
"""Keywords that hold one schema."""
_HOLDERS = frozenset((*MAPS, *LISTS, *ONES))
_COMBINED = frozenset(
    ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "dependentSchemas", "dependencies")
)
"""Keywords by which other schemas speak about the same object."""

_OPTIONAL = (
    "optional",
    "if not specified",
    "defaults to",
    "set to true to",
    "set to false to",
    "if provided",
    "when provided",
    "can be omitted",
    "not required",
)
"""Words by which a description takes back what `required` says."""
_OPTIONAL_IN_CHAT = (*_OPTIONAL, "only provide if")

_NOT_STRICT = frozenset(
    (
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "oneOf",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "contains",
        "minContains",
        "maxContains",
        "uniqueItems",
        "prefixItems",
        "minLength",
        "maxLength",
        "default",
    )
)
"""What strict mode refuses."""


def changed(schema: Mapping[str, Any], change: Change, depth: int = 0) -> Mapping[str, Any]:
    """The schema with `change` done to every schema in it, the inner ones first."""
    if depth > LIMIT_DEPTH:
        raise WireError(f"A schema may be nested at most {LIMIT_DEPTH} levels deep.")
    inner = {key: value for key, value in schema.items() if key in _HOLDERS}
    new = {key: _changed_under(key, value, change, depth + 1) for key, value in inner.items()}
    if any(new[key] is not inner[key] for key in inner):
        schema = {**schema, **new}
    return change(schema)


def _changed_under(key: str, value: Any, change: Change, depth: int) -> Any:
    if key in MAPS and isinstance(value, Mapping):
        members = {name: _changed_one(member, change, depth) for name, member in value.items()}
        return members if any(members[name] is not value[name] for name in value) else value
    if isinstance(value, list):
        listed = [_changed_one(member, change, depth) for member in value]
        return listed if any(new is not old for new, old in zip(listed, value, strict=True)) else value
    return _changed_one(value, change, depth)


def _changed_one(value: Any, change: Change, depth: int) -> Any:
    # `true` and `false` are schemas too, and have nothing to change.
    return changed(value, change, depth) if isinstance(value, Mapping) else value


def loosened(schema: Mapping[str, Any], *, chat: bool) -> Mapping[str, Any]:
    """A foreign tool's schema with `required` as it is meant, and without keywords that OpenAI's APIs stumble over."""
    phrases = _OPTIONAL_IN_CHAT if chat else _OPTIONAL
    return changed(schema, lambda one: _loosened(one, phrases))


def _loosened(schema: Mapping[str, Any], phrases: tuple[str, ...]) -> Mapping[str, Any]:
    unwanted = {key for key in ("strict", "format") if key in schema and (key == "strict" or schema[key] == "uri")}
    required = schema.get("required")
    if isinstance(required, list):
        kept = truly_required(schema, phrases)
        if kept != required:
            schema = {**schema, "required": kept}
        if not kept:
            unwanted.add("required")
    return {key: value for key, value in schema.items() if key not in unwanted} if unwanted else schema


def truly_required(schema: Mapping[str, Any], phrases: tuple[str, ...] = _OPTIONAL_IN_CHAT) -> list[str]:
    """The required parameters that nothing else in their schema calls optional."""
    described = named(schema, "properties")
    return [name for name in required_of(schema) if not _is_optional(described.get(name), phrases)]


def _is_optional(about: Any, phrases: tuple[str, ...]) -> bool:
    if not isinstance(about, Mapping):
        return False
    if "default" in about or takes_null(about) or "boolean" in types_of(about):
        return True
    said = about.get("description")
    return isinstance(said, str) and any(phrase in said.lower() for phrase in phrases)


def listed(schema: Mapping[str, Any], key: str) -> list[Any]:
    """What a keyword lists; nothing where it holds something else, since schemas come from anywhere."""
    value = schema.get(key)
    return value if isinstance(value, list) else []


def named(schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """What a keyword holds by name; nothing where it holds something else."""
    value = schema.get(key)
    return value if isinstance(value, Mapping) else {}


def required_of(schema: Mapping[str, Any]) -> list[str]:
    return [name for name in listed(schema, "required") if isinstance(name, str)]


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,)
    return tuple(member for member in kind if isinstance(member, str)) if isinstance(kind, list) else ()


def takes_null(schema: Mapping[str, Any]) -> bool:
    """Does a schema itself, or one of its alternatives, allow null?"""
    if schema.get("nullable") is True or "null" in types_of(schema):
        return True
    branches = [member for key in ("anyOf", "oneOf") for member in listed(schema, key)]
    return any(isinstance(branch, Mapping) and "null" in types_of(branch) for branch in branches)


def closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Objects with named members take no others, unless they say otherwise.

    An object that several schemas describe together stays open: each of them names only some of its members.
    """
    has_definitions = not {"$defs", "definitions"}.isdisjoint(schema)
    done: Mapping[str, Any] = _closed(schema, shared=has_definitions and _shares_definitions(schema, 0), depth=0)
    return done


def _closed(schema: Any, *, shared: bool, depth: int) -> Any:
    if depth > LIMIT_DEPTH:
        raise WireError(f"A schema may be nested at most {LIMIT_DEPTH} levels deep.")
    if not isinstance(schema, Mapping):
        return schema
    new: dict[str, Any] = {}
    for key in ("items", "additionalProperties", "contains"):
        if isinstance(schema.get(key), Mapping):
            new[key] = _closed(schema[key], shared=shared, depth=depth + 1)
    for key in ("properties", "patternProperties", *(() if shared else ("$defs", "definitions"))):
        if isinstance(schema.get(key), Mapping):
            new[key] = {name: _closed(one, shared=shared, depth=depth + 1) for name, one in schema[key].items()}
    for key in ("anyOf", "oneOf", "prefixItems", "items"):
        if isinstance(schema.get(key), list) and (key not in _COMBINED or not _names_members(schema)):
            new[key] = [_closed(one, shared=shared, depth=depth + 1) for one in schema[key]]
    if _names_members(schema) and not _COMBINED & schema.keys() and not _says_otherwise(schema):
        new["additionalProperties"] = False
    return {**schema, **new} if new else schema


def _names_members(schema: Mapping[str, Any]) -> bool:
    return isinstance(schema.get("properties"), Mapping)


def _says_otherwise(schema: Mapping[str, Any]) -> bool:
    return any(key in schema for key in ("additionalProperties", "unevaluatedProperties", "patternProperties"))


def _shares_definitions(schema: Any, depth: int) -> bool:
    """May a definition be only one of several that describe the same object?"""
    if depth > LIMIT_DEPTH:
        raise WireError(f"A schema may be nested at most {LIMIT_DEPTH} levels deep.")
    if isinstance(schema, list):
        return any(_shares_definitions(one, depth) for one in schema if isinstance(one, Mapping))
    if not isinstance(schema, Mapping):
        return False
    if "allOf" in schema or ("$ref" in schema and (_names_members(schema) or len(_COMBINED & schema.keys()) > 1)):
        return True
    held = ((key, value) for key, value in schema.items() if key in _HOLDERS)
    return any(
        _shares_definitions(list(value.values()) if key in MAPS and isinstance(value, Mapping) else value, depth + 1)
        for key, value in held
    )


def allows_strict(schema: Mapping[str, Any]) -> bool:
    """Could this schema, once closed, be sent in strict mode? Every member is required there, at any depth."""
    refused: list[Mapping[str, Any]] = []

    def look(one: Mapping[str, Any]) -> Mapping[str, Any]:
        if not _is_strict(one):
            refused.append(one)
        return one

    changed(schema, look)
    return not refused and schema.get("type") == "object" and not {"anyOf", "$ref"} & schema.keys()


def _is_strict(schema: Mapping[str, Any]) -> bool:
    if _NOT_STRICT & schema.keys():
        return False
    if "object" not in types_of(schema) and "properties" not in schema:
        return True
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or schema.get("additionalProperties", False) is not False:
        return False
    return set(properties) == set(required_of(schema))
