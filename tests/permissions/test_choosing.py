"""Choices as a form, and the answers in what a host gives back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.services import Choice, Option
from ferrule.permissions import OWN_WORDS, parse_answers, schema_of
from tests.rows import each_row

ONE = Choice(question="Which?", header="Pick", options=(Option("Red", "warm"), Option("Blue")))
SOME = Choice(
    question="Some?", options=(Option("a"), Option("b"), Option("a, b"), Option("Yes, please")), multiple=True
)
TEXT = Choice(question="Why?", kind="text", placeholder="a word", id="why")
FIXED = Choice(question="Fixed?", options=(Option("x"), Option("y")), free=False)


def test_the_form_has_a_place_for_every_answer_and_for_own_words():
    assert schema_of([ONE, SOME, TEXT, FIXED]) == {
        "type": "object",
        "properties": {
            "Which?": {
                "type": "string",
                "enum": ["Red", "Blue"],
                "title": "Pick",
                "description": "Which?\n- Red: warm\n- Blue",
            },
            "Which? (in your own words)": {
                "type": "string",
                "title": "Pick",
                "description": "Which? An answer that is not among these.",
            },
            "Some?": {
                "type": "array",
                "items": {"type": "string", "enum": ["a", "b", "a, b", "Yes, please"]},
                "description": "Some?\n- a\n- b\n- a, b\n- Yes, please",
            },
            "Some? (in your own words)": {
                "type": "string",
                "description": "Some? An answer that is not among these.",
            },
            "why": {"type": "string", "description": "Why? (a word)"},
            "Fixed?": {"type": "string", "enum": ["x", "y"], "description": "Fixed?\n- x\n- y"},
        },
    }


@each_row(
    ("choice", "value", "own", "said"),
    [
        pytest.param(ONE, "Red", None, ("Red",), id="label"),
        pytest.param(ONE, " bLUE ", None, ("Blue",), id="in-other-letters"),
        pytest.param(ONE, "green", None, ("green",), id="own-words"),
        pytest.param(ONE, "Red", "neither", ("neither",), id="both"),
        pytest.param(ONE, ["Red", "Blue"], None, ("Red",), id="more-than-was-asked"),
        pytest.param(ONE, "", "  ", (), id="nothing"),
        pytest.param(ONE, {"a": 1}, None, (), id="no-answer"),
        pytest.param(ONE, 3, None, ("3",), id="number"),
        pytest.param(SOME, ["a", "b"], None, ("a", "b"), id="list"),
        pytest.param(SOME, ["b", "b", 7, None, "c"], "d", ("b", "c", "d"), id="list-with-anything"),
        pytest.param(SOME, "b, a", None, ("b", "a"), id="commas"),
        pytest.param(SOME, "a, b", None, ("a, b",), id="a-label-with-a-comma"),
        pytest.param(SOME, "yes, please,a", None, ("Yes, please", "a"), id="such-a-label-among-others"),
        pytest.param(SOME, "a, b, c", None, ("a, b, c",), id="own-words-with-commas"),
        pytest.param(TEXT, "because, well", None, ("because, well",), id="text"),
        pytest.param(FIXED, "z", "z", (), id="not-one-of-them"),
        pytest.param(FIXED, "Y", None, ("y",), id="one-of-them"),
        pytest.param(
            Choice(question="Sure?", kind="yesno", options=(Option("Yes"), Option("No"))), False, None, ("No",), id="no"
        ),
    ],
)
def test_an_answer_is_heard_like_this(choice, value, own, said):
    values = {choice.key: value, OWN_WORDS.format(choice.key): own}

    assert parse_answers([choice], values) == ({choice.key: said} if said else {})


@given(
    st.dictionaries(
        st.sampled_from(["Which?", "Some?", "why", "x"]),
        st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists),
    )
)
def test_whatever_a_host_gives_back_is_texts_or_nothing(values: Any):
    said = parse_answers([ONE, SOME, TEXT, FIXED], values)

    assert said.keys() <= {"Which?", "Some?", "why"}
    assert all(texts and all(texts) for texts in said.values())


def test_many_commas_take_no_time():
    assert parse_answers([SOME], {"Some?": "a, " * 3_000}) == {"Some?": (("a, " * 3_000).strip(),)}
