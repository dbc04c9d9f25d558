"""Schemas and values for the laws of this stage, small enough that they often meet."""

from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from("abc")
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([0.0, 1.0, 2.5, -3.0]),
    st.sampled_from(
        ["", "1", "2.0", "true", "False", "null", "x", "[1]", '["1"]', '{"a": "1"}', '{"b": null}', "[", "{"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
LEAVES: st.SearchStrategy[Any] = st.one_of(
    TYPES.map(lambda kind: {"type": kind}),
    st.lists(TYPES, min_size=1, max_size=3, unique=True).map(lambda kinds: {"type": kinds}),
    st.lists(SCALARS, min_size=1, max_size=3, unique_by=repr).map(lambda choices: {"enum": choices}),
    st.sampled_from([{"$ref": "#/$defs/d"}, {"$ref": "#"}, {"type": "integer", "maximum": 1}, {"minLength": 2}, {}]),
)


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.dictionaries(NAMES, inner, max_size=3)
    return st.one_of(
        inner.map(lambda items: {"type": "array", "items": items}),
        st.tuples(members, st.lists(NAMES, max_size=2, unique=True), st.one_of(st.booleans(), inner)).map(
            lambda made: {"type": "object", "properties": made[0], "required": made[1], "additionalProperties": made[2]}
        ),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"oneOf": branches}),
        st.lists(inner, min_size=1, max_size=2).map(lambda branches: {"allOf": branches}),
    )


SCHEMAS: st.SearchStrategy[dict[str, Any]] = st.tuples(st.recursive(LEAVES, _deeper, max_leaves=6), LEAVES).map(
    lambda made: dict(made[0]) | {"$defs": {"d": made[1]}}
)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 3.0 is 3, but true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
