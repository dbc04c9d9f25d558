"""JSON as small models write it: what can be read is read, and what cannot is refused with a reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.wire.text_calls import LooseError, read
from tests.rows import each_row

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON, st.text())
def test_json_is_read_as_it_is_whatever_follows(value, more):
    text = json.dumps([value]) + more

    assert read(text)[:2] == ([value], len(text) - len(more))


@each_row(
    ("text", "value"),
    [
        pytest.param("{'a': 'b'}", {"a": "b"}, id="single-quotes"),
        pytest.param("{'a': 'it's'}", {"a": "it's"}, id="an-apostrophe"),
        pytest.param('{"a": [1, 2,], }', {"a": [1, 2]}, id="trailing-commas"),
        pytest.param('{"a": True, "b": None, "c": false}', {"a": True, "b": None, "c": False}, id="constants"),
        pytest.param('{"a": "x\ny"}', {"a": "x\ny"}, id="a-line-end-in-a-text"),
        pytest.param("{a: 1, b-c: -2.5e1}", {"a": 1, "b-c": -25.0}, id="names-without-quotes"),
        pytest.param('{"a": "\\d+\\.x"}', {"a": "\\d+\\.x"}, id="a-backslash-that-escapes-nothing"),
        pytest.param("{'a': '\\u00e9\\ud83d\\ude00\\n'}", {"a": "é😀\n"}, id="escapes"),
        pytest.param('{"a": """two\n"lines" """}', {"a": 'two\n"lines" '}, id="three-quotes"),
        pytest.param('{"a": {"b": "c"', {"a": {"b": "c"}}, id="braces-are-missing"),
        pytest.param('{"a": "print("hi")", "b": "x"}', {"a": 'print("hi")', "b": "x"}, id="quotes-in-code"),
        pytest.param('{"a": "s = {"k": 1}\n"}', {"a": 's = {"k": 1}\n'}, id="an-object-in-code"),
    ],
)
def test_what_small_models_write_is_read(text, value):
    assert read(text).value == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param('{"a": "b', "no end", id="a-text-without-an-end"),
        pytest.param('{"a" "b"}', "colon", id="no-colon"),
        pytest.param('{"a": 1 "b": 2}', "comma", id="no-comma"),
        pytest.param("{1: 2}", "name", id="no-name"),
        pytest.param('{"a": nothing}', "where a value belongs", id="no-value"),
        pytest.param('{"a": ', "stops in the middle", id="nothing-behind-the-colon"),
        pytest.param("[" * 100_000, "nested", id="too-deep"),
    ],
)
def test_what_cannot_be_read_says_why(text, why):
    with pytest.raises(LooseError, match=why):
        read(text)


@given(st.text(alphabet="{}[]'\":,\\ntrue1 \n<`", max_size=60))
def test_whatever_comes_either_is_a_value_or_an_error(text):
    try:
        found = read(text)
    except LooseError:
        return

    assert 0 < found.end <= len(text)
