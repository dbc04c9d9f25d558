"""Arguments of tools whose schemas are not ours: whatever fits the schema reaches the tool as it came."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.arguments.schema import Arguments
from ferrule.core.errors import BadArguments
from ferrule.core.tool import Raw
from ferrule.registry.entry import plain_face
from tests.registry.brought import Brought
from tests.strategies import texts

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": texts,
    "integer": st.integers(-(2**53), 2**53),
    "number": st.floats(allow_nan=False, allow_infinity=False, width=32),
    "boolean": st.booleans(),
    "null": st.none(),
    "array": st.lists(st.integers(0, 9) | texts, max_size=3),
    "object": st.dictionaries(texts, st.none() | texts, max_size=2),
}
kinds = st.sampled_from(sorted(SCALARS))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def described(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """A schema for one value, of the kinds that servers write, and a value that fits it."""
    form = draw(st.sampled_from(["one", "union", "anyOf", "nullable", "any", "enum"]))
    some = draw(st.lists(kinds, min_size=1, max_size=3, unique=True))
    value = draw(SCALARS[some[0]])
    schemas: dict[str, dict[str, Any]] = {
        "one": {"type": some[0]},
        "union": {"type": some},
        "anyOf": {"anyOf": [{"type": kind} for kind in reversed(some)]},
        "nullable": {"anyOf": [{"type": some[0]}, {"type": "null"}], "default": None},
        "any": {"description": "Whatever.", "format": "made-up", "x-unknown": True},
        "enum": {"enum": [value, "other"]},
    }
    return schemas[form], draw(json_values) if form == "any" else value


@st.composite
def fitting(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    rows = draw(st.dictionaries(texts, described(), max_size=4))
    given_names = [name for name in rows if draw(st.booleans())]
    schema: dict[str, Any] = {"type": "object", "properties": {name: row[0] for name, row in rows.items()}}
    schema["required"] = [name for name in given_names if draw(st.booleans())]
    values = {name: rows[name][1] for name in given_names}
    more = draw(st.sampled_from(["unsaid", True, False, "described"]))
    if more is not False:
        extra = draw(st.dictionaries(texts.filter(lambda name: name not in rows), st.integers(0, 9), max_size=2))
        values.update(extra)
    if more != "unsaid":
        schema["additionalProperties"] = {"type": "integer"} if more == "described" else more
    return schema, values


class Remembered:
    """As much of a context as arguments need."""

    def __init__(self) -> None:
        self.input: dict[str, Any] = {}
        self.notes: list[str] = []

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)


def received(schema: dict[str, Any], values: dict[str, Any]) -> tuple[Raw, Remembered]:
    arguments, tool, ctx = Arguments(), Brought("far", schema=schema), Remembered()
    face = plain_face(tool)
    came = arguments.receive(face, values)
    args = arguments.understand(face, face, tool, came, ctx)  # type: ignore[arg-type]
    assert isinstance(args, Raw)
    return args, ctx


@given(fitting())
def test_whatever_fits_the_schema_reaches_the_tool_unchanged_and_rules_see_it_so(pair):
    schema, values = pair
    args, ctx = received(schema, dict(values))

    assert args.values == ctx.input == values
    assert ctx.notes == []
    assert plain_face(Brought("far", schema=schema)).advertised({"values": values}) == values


def test_what_a_schema_forbids_is_refused_or_left_out():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    with pytest.raises(BadArguments, match="n: required"):
        received(schema, {"m": 1})
    assert received(schema, {"n": "7"})[0].values == {"n": 7}


def test_a_schema_may_forbid_names_that_no_part_of_it_knows():
    schema = {
        "type": "object",
        "allOf": [{"properties": {"n": {"type": "integer"}}}],
        "unevaluatedProperties": False,
    }

    assert received(schema, {"n": 1})[0].values == {"n": 1}
    with pytest.raises(BadArguments):
        received(schema, {"n": 1, "m": 2})
