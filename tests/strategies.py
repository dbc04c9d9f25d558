"""Shared hypothesis strategies: texts, paths, and the canonical arguments of a face."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from ferrule.core.tool import Face

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
"""Any text that can be written as UTF-8."""

names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=20)
"""A file's name, with whatever an operating system lets stand in it."""

paths = st.lists(names, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))

wild_paths = st.binary(min_size=1, max_size=20).map(lambda raw: "/" + raw.decode(errors="surrogateescape"))
"""Paths as an operating system gives them: bytes that need not be text."""

_OF_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "string": texts,
    "boolean": st.booleans(),
    "number": st.integers(1, 10_000),
    "integer": st.integers(1, 10_000),
    "object": st.dictionaries(texts, texts, max_size=2),
}


def fitting(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit a JSON Schema of the kind that tools have."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema.get("type", "string")
    if kind == "array":
        items = fitting(schema.get("items", {}))
        return st.lists(items, min_size=schema.get("minItems", 0), max_size=schema.get("maxItems", 3))
    if kind == "object" and "properties" in schema:
        required = set(schema.get("required", ()))
        values = {name: fitting(about) for name, about in schema["properties"].items()}
        return st.fixed_dictionaries(
            {name: value for name, value in values.items() if name in required},
            optional={name: value for name, value in values.items() if name not in required},
        )
    if kind in ("number", "integer"):
        return st.integers(max(1, schema.get("minimum", 1)), min(10_000, schema.get("maximum", 10_000)))
    return _OF_TYPE[kind]


def advertised_arguments(face: Face) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments in the family's own names: every required parameter, and any of the others."""
    if "oneOf" in face.schema:
        forms = [fitting({**face.schema, "required": form["required"]}) for form in face.schema["oneOf"]]
        return st.one_of(forms).map(lambda values: _one_form(face.schema["oneOf"], values))
    arguments: st.SearchStrategy[dict[str, Any]] = fitting(face.schema)
    return arguments


def _one_form(forms: list[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Only one of the names of which the schema wants one."""
    names = [name for form in forms for name in form["required"]]
    kept = next(name for name in names if name in values)
    return {name: value for name, value in values.items() if name == kept or name not in names}
