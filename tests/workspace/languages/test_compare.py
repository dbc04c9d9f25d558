"""Which errors are new after an edit: not those that moved, not those that stayed on a line that was rewritten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.tools.lsp import Problem
from ferrule.tools.lsp.diagnostics import news


def errors(text: str) -> list[Problem]:
    """Every `!` is one: it says what stands behind it up to a blank, as the protocol counts lines."""
    lines = text.replace("\r\n", "\n").split("\n")
    return [
        Problem("/a", number, word[1:], at + 1)
        for number, line in enumerate(lines, 1)
        for at, word in ((line.index(word), word) for word in line.split() if word.startswith("!"))
    ]


def new(old: str, now: str) -> list[tuple[int, str]]:
    return [(one.line, one.message) for one in news(errors(old), errors(now), old, now)]


@each_row(
    ("old", "now", "found"),
    [
        pytest.param("a\n!x\n", "a\n!x\n", [], id="nothing-changed"),
        pytest.param("a\n!x\n", "a\nb\nc\n!x\n", [], id="moved-down"),
        pytest.param("a\nb\nc\n!x\n", "!x\n", [], id="moved-up"),
        pytest.param("!x\na\n", "a\n    !x\n", [], id="carried-elsewhere-and-indented"),
        pytest.param("f(1) !x\n", "f(2) !x\n", [], id="its-line-was-rewritten"),
        pytest.param("a\r\n!x\r\n", "b\r\na\r\n!x\r\n", [], id="crlf"),
        pytest.param("a\r\n!x\r\n", "b\na\n!x\n", [], id="from-crlf-to-lf"),
        pytest.param("a\n", "a\n!x\n", [(2, "x")], id="came"),
        pytest.param("!x\n", "!y\n", [(1, "y")], id="one-fixed-and-one-made"),
        pytest.param("!x\na\nb\nc\n", "x\na\nb\nc !x\n", [(4, "x")], id="fixed-here-and-the-same-made-there"),
        pytest.param("!x\n!x\n", "!x\n!x\n!x\n", [(3, "x")], id="one-more-of-the-same"),
        pytest.param("a !x\nb\n", "a !x\nb !x\n", [(2, "x")], id="the-same-on-another-line"),
        pytest.param("", "!x\n!y\n", [(1, "x"), (2, "y")], id="a-new-file"),
        pytest.param("!x\n", "", [], id="all-gone"),
    ],
)
def test_new_is_what_the_old_ones_do_not_account_for(old, now, found):
    assert new(old, now) == found


@pytest.mark.parametrize(
    ("field", "value"),
    [pytest.param("message", "other", id="message"), ("code", "E2"), ("source", "other")],
)
def test_another_word_is_another_error(field, value):
    old = Problem("/a", 1, "x", 1, code="E1", source="s")

    assert news([old], [old._replace(**{field: value})], "a", "a") == (old._replace(**{field: value}),)


def test_a_line_that_a_message_names_may_move_too():
    old = Problem("/a", 1, "already defined on line 12")

    assert news([old], [old._replace(message="already defined on line 14")], "a", "a") == ()


def test_an_error_about_the_whole_file_stays_the_same():
    about = Problem("/a", 0, "no such module")

    assert news([about], [about], "a\n", "b\n") == ()


LINES = st.lists(st.sampled_from(["", "a", "b", "  c", "f(1) !x", "f(2) !x", "!y", "d !x !y"]), max_size=12)


@given(LINES, st.lists(st.tuples(st.integers(0, 12), LINES), max_size=3), st.sampled_from(["\n", "\r\n"]))
def test_lines_that_come_around_errors_make_only_their_own_new(before, inserted, end):
    after = list(before)
    for at, lines in inserted:
        after[at:at] = lines
    old, now = end.join(before), end.join(after)

    found = [message for _, message in new(old, now)]

    came = [one.message for _, lines in inserted for one in errors("\n".join(lines))]
    assert sorted(found) == sorted(came)


@given(LINES, st.lists(st.integers(0, 11), max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_lines_that_go_make_nothing_new(before, gone, end):
    after = [line for at, line in enumerate(before) if at not in gone]

    assert new(end.join(before), end.join(after)) == []


@given(
    st.lists(st.tuples(st.text("ab \t", max_size=4), st.booleans()), min_size=1, max_size=10),
    st.lists(st.tuples(st.integers(0, 10), st.text("ab\n", max_size=4)), max_size=4),
)
def test_an_error_belongs_to_its_line_and_not_to_what_stands_there(lines, inserted):
    """Here errors are on chosen lines: whether another line reads the same does not matter."""
    marked = [(text, is_wrong) for text, is_wrong in lines]
    for at, text in inserted:
        marked[at:at] = [(line, False) for line in text.split("\n")]

    def all_of(rows):
        return [Problem("/a", number, "x", 1) for number, (_, is_wrong) in enumerate(rows, 1) if is_wrong]

    old, now = "\n".join(text for text, _ in lines), "\n".join(text for text, _ in marked)
    assert news(all_of(lines), all_of(marked), old, now) == ()


def test_a_place_that_a_message_names_may_have_moved_too():
    """As compilers do: `previous definition at a.c:3:5`."""
    old = [Problem("/a", 9, "`f` was defined at src/a.c:3:5")]
    now = [Problem("/a", 9, "`f` was defined at src/a.c:4:5")]
    text = "x\n" * 9

    assert news(old, now, text, text) == ()
