"""Where the parts of a JSON text stand: as a decoder sees them, and without trusting anybody's depth or length."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ferrule.files.notebook import MOST_DEEP, MOST_PARTS, BadJson, Json, Span

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)
STYLES = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 1, "\t"]),
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from([None, (" ,", " : "), (",", ":")]),
    }
)
PLAIN = ["true", "false", "null", "NaN", "Infinity", "-Infinity", "1.5e-3", '"a"', '"a":', '"\\n"', "[]", "{}"]
SCRAPS = st.lists(st.sampled_from([*'[]{},:"\\ \n01-.eEua\x01é', "+1", "00e9", *PLAIN]), max_size=12).map("".join)


def rebuilt(text: Json, span: Span) -> object:
    """The value, put together of its parts."""
    if text.is_object(span):
        return {one.name: rebuilt(text, one.value) for one in text.members(span)}
    if text.is_array(span):
        return [rebuilt(text, one) for one in text.items(span)]
    return json.loads(text.bytes_of(span))


@given(VALUES, STYLES)
def test_the_parts_make_the_whole(value, style):
    raw = json.dumps(value, **style).encode(errors="backslashreplace")

    text = Json(raw)

    assert repr(rebuilt(text, text.root)) == repr(json.loads(raw))


@given(SCRAPS)
@example('{"a":1,}')
@example("[1,]")
@example("[,1]")
@example('{"a" 1}')
@example('{"a":}')
@example("[1 2]")
@example("[}")
@example('{"a":[}')
@example("01")
@example("1.")
@example("-")
@example('"\\u12"')
@example('"\\x"')
@example('"\n"')
@example("")
@example(" ")
@example("1 1")
@example("nul")
@example("[1]]")
def test_what_a_decoder_refuses_is_refused(text):
    try:
        json.loads(text)
    except json.JSONDecodeError:
        with pytest.raises(BadJson):
            Json(text.encode())
    else:
        assert Json(text.encode()).root == Span(len(text) - len(text.lstrip()), len(text.rstrip().encode()))


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        pytest.param(b'{"a": 1,\n "b": x}', "line 2, at byte 7", id="place"),
        pytest.param(b'{"a": [1,\n', "ends too early, in line 2", id="end"),
        pytest.param(b'"\xff"', "not UTF-8: byte 1 ", id="encoding"),
        pytest.param(b"[" * (MOST_DEEP + 1), "nested more than", id="deep-arrays"),
        pytest.param(b'{"a":' * (MOST_DEEP + 1), "nested more than", id="deep-objects"),
        pytest.param(b"[" * 5_000_000, "nested more than", id="very-deep"),
    ],
)
def test_a_refusal_says_where_and_why(raw, words):
    with pytest.raises(BadJson, match=words):
        Json(raw)


def test_depth_up_to_the_limit_is_fine():
    raw = b"[" * MOST_DEEP + b"1" + b"]" * MOST_DEEP

    assert Json(raw).root == Span(0, len(raw))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"[" + b"1," * 300_000 + b"1]", id="numbers"),
        pytest.param(b"[" + b"[]," * 300_000 + b"1]", id="empty-arrays"),
        pytest.param(b"{" + b'"a":{},' * 300_000 + b'"a":1}', id="members"),
        pytest.param(b'"' + b"\\n" * 2_000_000 + b'"', id="escapes"),
    ],
)
def test_long_rows_are_passed_over(raw):
    assert Json(raw).root == Span(0, len(raw))


@pytest.mark.parametrize(
    ("raw", "walk"),
    [
        pytest.param(b"[" + b"1," * MOST_PARTS + b"1]", Json.items, id="items"),
        pytest.param(b"{" + b'"a":1,' * MOST_PARTS + b'"a":1}', Json.members, id="members"),
    ],
)
def test_more_parts_than_anybody_needs_are_not_told_apart(raw, walk):
    text = Json(raw)

    with pytest.raises(BadJson, match="parts side by side"):
        walk(text, text.root)


def test_a_name_that_comes_twice_is_given_twice():
    text = Json(b'{"a": 1, "\\u0061": 2}')

    found = text.members(text.root)

    assert [(one.name, text.bytes_of(one.value)) for one in found] == [("a", b"1"), ("a", b"2")]


@given(st.lists(st.text(max_size=6), max_size=6), STYLES)
@example(["x\n"] * 5_000, {})
@example([], {"indent": 1})
def test_a_text_may_come_as_a_list_of_lines(lines, style):
    raw = json.dumps(lines, **style).encode(errors="backslashreplace")

    text = Json(raw)

    assert text.text(text.root) == "".join(lines)


@pytest.mark.parametrize("raw", [b"1", b"null", b"{}", b'["a", 1]', b'[["a"]]', b'[1, "a"]', b'["a", []]'])
def test_what_is_no_text_is_not_taken_for_one(raw):
    text = Json(raw)

    assert text.text(text.root) is None


def test_looking_into_a_large_box_gives_what_a_search_would():
    rows = [[{"n": [number, [str(number)] * 40]}] * 3 for number in range(60)]
    raw = json.dumps({"rows": rows, "more": [rows]}).encode()
    text = Json(raw)

    assert rebuilt(text, text.root) == json.loads(raw)
