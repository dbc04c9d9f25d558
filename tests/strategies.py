"""Shared hypothesis strategies: texts, paths, and the canonical arguments of a face."""

from typing import Any

from hypothesis import strategies as st

from ferrule.core.face import Face

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
    "number": st.integers(0, 10_000),
    "array": st.lists(st.integers(1, 10_000), min_size=2, max_size=2),
}


def advertised_arguments(face: Face) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments in the family's own names: every required parameter, and any of the others."""
    properties = face.schema["properties"]
    values = {name: _OF_TYPE[about["type"]] for name, about in properties.items()}
    required = set(face.schema.get("required", ()))
    return st.fixed_dictionaries(
        {name: value for name, value in values.items() if name in required},
        optional={name: value for name, value in values.items() if name not in required},
    )


def canonical_arguments(face: Face) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments as the tool behind a face takes them, with what the face fills in."""
    properties = face.schema["properties"]
    values = {face.params.get(name, name): _OF_TYPE[about["type"]] for name, about in properties.items()}
    return st.fixed_dictionaries({}, optional=values).map(lambda given: {**given, **face.fill})
