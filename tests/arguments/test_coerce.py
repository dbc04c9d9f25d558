"""Near misses: what is mended, what is left alone, and the laws that hold for every schema and value."""

import copy
import math
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.arguments.schema import Coerced, coerce, judge, judge_parts
from ferrule.core.errors import ConfigError
from tests.arguments.strategies import NAMES, SCHEMAS, VALUES, same
from tests.rows import each_row

INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
STRING = {"type": "string"}
BOOLEAN = {"type": "boolean"}
INTEGERS = {"type": "array", "items": INTEGER}
STRINGS = {"type": "array", "items": STRING}
TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": INTEGER, "next": {"$ref": "#/$defs/node"}},
            "required": ["value"],
        }
    },
    "$ref": "#/$defs/node",
}


def mend(value: Any, schema: dict[str, Any]) -> Coerced:
    return coerce(value, schema, judge_parts(schema))


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@each_row(
    ("value", "schema", "mended", "notes"),
    [
        pytest.param("5", INTEGER, 5, ['read "5" as the number 5'], id="integer"),
        pytest.param(" -5 ", INTEGER, -5, ['read " -5 " as the number -5'], id="integer-in-blanks"),
        pytest.param("5.0", INTEGER, 5, ['read "5.0" as the number 5'], id="integer-with-a-point"),
        pytest.param("5", NUMBER, 5, ['read "5" as the number 5'], id="whole-number"),
        pytest.param("5.5", NUMBER, 5.5, ['read "5.5" as the number 5.5'], id="number"),
        pytest.param("1e3", NUMBER, 1000.0, ['read "1e3" as the number 1000.0'], id="exponent"),
        pytest.param("true", BOOLEAN, True, ['read "true" as true'], id="true"),
        pytest.param("False", BOOLEAN, False, ['read "False" as false'], id="false-in-capitals"),
        pytest.param(5, STRING, "5", ['read 5 as the text "5"'], id="number-for-text"),
        pytest.param(1.5, STRING, "1.5", ['read 1.5 as the text "1.5"'], id="fraction-for-text"),
        pytest.param("[1, 2]", INTEGERS, [1, 2], ["read a string of JSON as an array"], id="array"),
        pytest.param('{"a": 1}', _object(a=INTEGER), {"a": 1}, ["read a string of JSON as an object"], id="object"),
        pytest.param("x", STRINGS, ["x"], ['took "x" as an array of one item'], id="one-item"),
        pytest.param(7, INTEGERS, [7], ["took 7 as an array of one item"], id="one-number"),
        pytest.param(
            "[a-z].py",
            STRINGS,
            ["[a-z].py"],
            ['took "[a-z].py" as an array of one item'],
            id="bracket-that-is-no-array",
        ),
        pytest.param("null", {"type": ["integer", "null"]}, None, ['read "null" as null'], id="null"),
        pytest.param("5", {"type": ["null", "integer"]}, 5, ['read "5" as the number 5'], id="list-of-types"),
        pytest.param("5", {"anyOf": [{"type": "null"}, INTEGER]}, 5, ['read "5" as the number 5'], id="any-of"),
        pytest.param("5", {"oneOf": [BOOLEAN, INTEGER]}, 5, ['read "5" as the number 5'], id="one-of"),
        pytest.param("5", {"allOf": [INTEGER, {"minimum": 1}]}, 5, ['read "5" as the number 5'], id="all-of"),
        pytest.param("2", {"enum": [1, 2]}, 2, ['read "2" as the number 2'], id="enum-of-numbers"),
        pytest.param(2, {"enum": ["1", "2"]}, "2", ['read 2 as the text "2"'], id="enum-of-texts"),
        pytest.param("true", {"const": True}, True, ['read "true" as true'], id="const"),
        pytest.param(
            "5", {"$ref": "#/$defs/n", "$defs": {"n": INTEGER}}, 5, ['read "5" as the number 5'], id="reference"
        ),
        pytest.param(
            "5", {"type": "integer", "maximum": 3}, 5, ['read "5" as the number 5'], id="right-type-though-too-large"
        ),
    ],
)
def test_a_near_miss_is_mended_and_noted(value: Any, schema: dict[str, Any], mended: Any, notes: list[str]) -> None:
    coerced = mend(value, schema)

    assert coerced == Coerced(mended, tuple(f"The arguments: {note}." for note in notes))
    assert type(coerced.value) is type(mended)


@each_row(
    ("value", "schema"),
    [
        pytest.param("five", INTEGER, id="word"),
        pytest.param("5.5", INTEGER, id="fraction"),
        pytest.param(5.5, INTEGER, id="fraction-as-a-number"),
        pytest.param("", INTEGER, id="empty"),
        pytest.param("٥", INTEGER, id="digit-of-another-script"),
        pytest.param("1_000", INTEGER, id="underscore"),
        pytest.param("0x10", INTEGER, id="hexadecimal"),
        pytest.param("9" * 5000, INTEGER, id="endless-digits"),
        pytest.param("1e999", NUMBER, id="overflow"),
        pytest.param("NaN", NUMBER, id="not-a-number"),
        pytest.param("inf", NUMBER, id="infinity"),
        pytest.param(True, INTEGER, id="boolean-for-a-number"),
        pytest.param(1, BOOLEAN, id="number-for-a-boolean"),
        pytest.param("yes", BOOLEAN, id="yes"),
        pytest.param(True, STRING, id="boolean-for-text"),
        pytest.param(None, STRING, id="null-for-text"),
        pytest.param(["a"], STRING, id="array-for-text"),
        pytest.param({"a": 1}, STRING, id="object-for-text"),
        pytest.param("{", _object(a=INTEGER), id="broken-object"),
        pytest.param("[1]", _object(a=INTEGER), id="array-for-an-object"),
        pytest.param('{"a": NaN}', _object(a=NUMBER), id="object-with-nan"),
        pytest.param('{"a": "\\ud800"}', _object(a=STRING), id="object-with-half-a-character"),
        pytest.param("[" * 100 + "]" * 100, {"type": "array"}, id="deep-array"),
        pytest.param("[" * 50_000, {"type": "array"}, id="very-deep-array"),
        pytest.param({"a": 1}, {"type": "array", "items": {"type": "object"}}, id="one-object-is-not-wrapped"),
        pytest.param("x", {"type": "array"}, id="unknown-items-are-not-wrapped"),
        pytest.param("5", {"oneOf": [INTEGER, NUMBER]}, id="one-of-that-would-fit-twice"),
        pytest.param("x", {"anyOf": [INTEGER, BOOLEAN]}, id="any-of-without-a-fit"),
        pytest.param("5", {"not": STRING}, id="not"),
        pytest.param("5", {"if": STRING, "then": INTEGER}, id="condition"),
    ],
)
def test_what_is_no_near_miss_is_left_alone(value: Any, schema: dict[str, Any]) -> None:
    assert mend(value, schema) == Coerced(value, ())


def test_members_and_items_are_mended_by_their_own_schemas() -> None:
    schema = _object(
        edits={"type": "array", "items": _object(old=STRING, count=INTEGER)},
        env={"type": "object", "additionalProperties": STRING},
        pair={"type": "array", "prefixItems": [INTEGER, BOOLEAN]},
    )
    value = {"edits": [{"old": "a", "count": 1}, {"old": 2, "count": "3"}], "env": {"A": 1}, "pair": ["1", "true"]}

    assert mend(value, schema) == Coerced(
        {"edits": [{"old": "a", "count": 1}, {"old": "2", "count": 3}], "env": {"A": "1"}, "pair": [1, True]},
        (
            'edits[1].old: read 2 as the text "2".',
            'edits[1].count: read "3" as the number 3.',
            'env.A: read 1 as the text "1".',
            'pair[0]: read "1" as the number 1.',
            'pair[1]: read "true" as true.',
        ),
    )


def test_what_is_unpacked_from_a_string_is_mended_too() -> None:
    assert mend({"ids": '["1", 2]'}, _object(ids=INTEGERS)) == Coerced(
        {"ids": [1, 2]},
        ("ids: read a string of JSON as an array.", 'ids[0]: read "1" as the number 1.'),
    )


def test_null_for_an_optional_parameter_is_not_given() -> None:
    schema = _object(a=INTEGER, b=INTEGER, c={"type": ["integer", "null"]}) | {"required": ["b"]}

    assert mend({"a": None, "b": None, "c": None}, schema) == Coerced(
        {"b": None, "c": None}, ("a: null was taken as not given.",)
    )


def test_a_whole_float_becomes_an_integer_only_where_one_is_meant() -> None:
    coerced = mend({"a": 3.0, "b": 3.0, "c": 3.0}, _object(a=INTEGER, b=NUMBER))

    assert [type(coerced.value[name]) for name in "abc"] == [int, float, float]
    assert coerced.notes == ()


def test_references_that_go_in_circles_end() -> None:
    value = {"value": "1", "next": {"value": "2", "next": {"value": 3}}}

    assert mend(value, TREE).value == {"value": 1, "next": {"value": 2, "next": {"value": 3}}}
    for schema in (
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}, INTEGER]},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    ):
        assert mend("x", schema).value == "x"


def test_a_schema_that_branches_at_every_level_ends() -> None:
    branch = {"type": "array", "items": {"$ref": "#"}}
    value: Any = "x"
    for _ in range(10):
        value = [value]

    assert mend(value, {"anyOf": [branch, branch, INTEGER]}).value == value


def test_references_with_a_base_of_their_own_are_not_guessed() -> None:
    schema = {
        "properties": {
            "a": {"$id": "https://example.test/a", "properties": {"b": {"$ref": "#/$defs/n"}}, "$defs": {"n": STRING}}
        },
        "$defs": {"n": INTEGER},
    }

    assert mend({"a": {"b": "5"}}, schema).value == {"a": {"b": "5"}}


def test_secrets_are_hidden_in_notes() -> None:
    notes = mend(
        {"api_key": 12345, "accessToken": 67890, "max_tokens": "7"},
        _object(api_key=STRING, accessToken=STRING, max_tokens=INTEGER),
    ).notes

    assert notes == (
        "api_key: read (hidden) as the text (hidden).",
        "accessToken: read (hidden) as the text (hidden).",
        'max_tokens: read "7" as the number 7.',
    )


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"type": "nonsense"}, id="unknown-type"),
        pytest.param({"pattern": "("}, id="broken-pattern"),
        pytest.param({"$ref": "#/nowhere"}, id="reference-to-nothing"),
        pytest.param({"$ref": "file:///etc/passwd"}, id="reference-to-a-file"),
        pytest.param({"$ref": "https://example.test/x"}, id="reference-to-a-host"),
        pytest.param({"$schema": "https://example.test/x"}, id="unknown-dialect"),
        pytest.param({"description": "\ud800"}, id="half-a-character"),
    ],
)
def test_a_bad_schema_is_a_configuration_error_of_one_line(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^The tool's schema cannot be used: ") as caught:
        judge(schema)

    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 300


@settings(deadline=None, max_examples=400)
@given(SCHEMAS, VALUES)
def test_a_value_that_fits_is_never_changed(schema: dict[str, Any], value: Any) -> None:
    before = copy.deepcopy(value)
    coerced = mend(value, schema)

    assert same(value, before)
    if jsonschema_rs.is_valid(schema, value):
        assert same(coerced.value, value)
        assert coerced.notes == ()


@settings(deadline=None, max_examples=400)
@given(SCHEMAS, VALUES)
def test_coercing_twice_changes_nothing_more(schema: dict[str, Any], value: Any) -> None:
    once = mend(value, schema)
    twice = mend(once.value, schema)

    # What still does not fit is refused, so nothing hangs on what a second repair would make of it.
    if jsonschema_rs.is_valid(schema, once.value):
        assert same(twice.value, once.value)
        assert twice.notes == ()


def _in_quotes(value: Any) -> Any:
    """What a careless caller sends: every scalar as text."""
    if isinstance(value, dict):
        return {name: _in_quotes(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_in_quotes(item) for item in value]
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


@given(
    st.dictionaries(NAMES, st.integers(-(10**12), 10**12)),
    st.lists(st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: 1e-30 < math.fabs(number) < 1e30)),
    st.lists(st.booleans()),
)
def test_scalars_in_quotes_are_all_recovered(
    integers: dict[str, int], numbers: list[float], booleans: list[bool]
) -> None:
    value = {"integers": integers, "numbers": numbers, "booleans": booleans}
    schema = _object(
        integers={"type": "object", "additionalProperties": INTEGER},
        numbers={"type": "array", "items": NUMBER},
        booleans={"type": "array", "items": BOOLEAN},
    )
    coerced = mend(_in_quotes(value), schema)

    assert coerced.value == value
    assert len(coerced.notes) == len(integers) + len(numbers) + len(booleans)
