"""The front matter of a text: what is read of it, what is not, and that nothing in it does harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.files.frontmatter import MOST_CHARS, FrontMatter, front_matter, is_true
from tests.rows import each_row

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"


@each_row(
    ("text", "values", "body"),
    [
        pytest.param("---\na: 1\n---\nbody\n", {"a": "1"}, "body\n", id="scalars-stay-text"),
        pytest.param(
            "---\na: on\nb: 1.10\nc: 2020-01-01\n---\n", {"a": "on", "b": "1.10", "c": "2020-01-01"}, "", id="no-types"
        ),
        pytest.param("---\na:\nb: ~\nc: ''\n---\n", {"a": None, "b": None, "c": ""}, "", id="empty"),
        pytest.param("---\na: [x, y]\nb:\n  - z\n---\n", {"a": ["x", "y"], "b": ["z"]}, "", id="lists"),
        pytest.param("---\na:\n  b:\n    c: d\n---\n", {"a": {"b": {"c": "d"}}}, "", id="mappings"),
        pytest.param("---\r\na: b\r\n---\r\nbody", {"a": "b"}, "body", id="crlf"),
        pytest.param("---\na: >-\n  two\n  lines\n---\n", {"a": "two lines"}, "", id="folded"),
        pytest.param("---\n---\nbody", {}, "body", id="nothing-in-it"),
        pytest.param("---\na: b\n...\nbody", {"a": "b"}, "body", id="dots-end-it"),
        pytest.param("---\na: !!python/object/apply:os.system [ls]\n---\n", {"a": ["ls"]}, "", id="tags-mean-nothing"),
        pytest.param("---\na: b", {}, "---\na: b", id="no-end"),
        pytest.param("text\n---\na: b\n---\n", {}, "text\n---\na: b\n---\n", id="not-at-the-beginning"),
    ],
)
def test_what_is_read(text, values, body):
    found = front_matter(text)

    assert (found.values, found.body, found.problem) == (values, body, "")


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        pytest.param(BOMB, "it has anchors or aliases", id="bomb"),
        pytest.param("a: " + "[" * 40 + "]" * 40, "it is nested too deeply", id="deep"),
        pytest.param("- a\n- b", "it is no mapping", id="list"),
        pytest.param("a: b: c", "it is no YAML", id="no-yaml"),
        pytest.param("a: " + "x" * MOST_CHARS, f"it is longer than {MOST_CHARS:,} characters", id="long"),
    ],
)
def test_what_is_not_read_is_only_text(header, problem):
    text = f"---\n{header}\n---\nbody"

    assert front_matter(text) == FrontMatter({}, text, problem)


@pytest.mark.parametrize(
    ("header", "values"),
    [
        pytest.param(
            "description: Use it so: then that\nname: x",
            {"description": "Use it so: then that", "name": "x"},
            id="colon",
        ),
        pytest.param("argument-hint: [file] [more]", {"argument-hint": "[file] [more]"}, id="brackets"),
        pytest.param("tools: *\nname: 'quoted'", {"tools": "*", "name": "quoted"}, id="star"),
        pytest.param("a: b: c\n\nno pair\n  indented: x\nd:", {"a": "b: c", "d": None}, id="others-are-left-out"),
    ],
)
def test_a_lenient_reader_takes_what_people_write(header, values):
    assert front_matter(f"---\n{header}\n---\nbody", lenient=True) == FrontMatter(values, "body")


def test_a_lenient_reader_does_not_read_traps_either():
    assert front_matter(f"---\n{BOMB}---\n", lenient=True).problem == "it has anchors or aliases"


@pytest.mark.parametrize("header", ["a: 1\nb: x\na: 2", "a: 1\nb: x: y\na: 2"], ids=["yaml", "lines"])
def test_of_a_key_that_is_written_twice_the_first_counts_and_it_is_told(header):
    found = front_matter(f"---\n{header}\n---\n", lenient=True)

    assert (found.values["a"], found.twice) == ("1", ("a",))


@given(st.text(max_size=300), st.booleans())
def test_no_header_makes_it_fail(header, lenient):
    found = front_matter(f"---\n{header}\n---\nbody", lenient=lenient)

    assert found.body.endswith("body")
    assert all(isinstance(key, str) for key in found.values)


@each_row(
    ("value", "otherwise", "said"),
    [
        ("true", False, True),
        (" Yes ", False, True),
        ("off", True, False),
        ("0", True, False),
        ("perhaps", True, True),
        ("perhaps", False, False),
        (None, True, True),
        (["true"], False, False),
    ],
)
def test_yes_and_no(value, otherwise, said):
    assert is_true(value, otherwise=otherwise) is said
