"""Matchers: which calls a hook is told of."""

import pytest

from ferrule.hooks import BadMatcher, check, covers
from tests.rows import each_row


@each_row(
    ("matcher", "names", "expected"),
    [
        pytest.param("", ["Bash"], True, id="empty"),
        pytest.param("*", ["Bash"], True, id="star"),
        pytest.param("", [], True, id="no-names"),
        pytest.param("Bash", ["Bash"], True, id="a-name"),
        pytest.param("Bash", ["BashOutput"], False, id="not-a-beginning"),
        pytest.param("Bash", ["NotBash"], False, id="not-an-end"),
        pytest.param("bash", ["Bash"], False, id="letters-count"),
        pytest.param("Edit|Write", ["Write"], True, id="one-of-two"),
        pytest.param("Edit|Write", ["MultiEdit"], False, id="the-whole-name"),
        pytest.param("Edit|Write", ["apply_patch", "edit", "Edit"], True, id="any-of-its-names"),
        pytest.param("Notebook.*", ["NotebookEdit"], True, id="an-expression"),
        pytest.param("Notebook.*", ["MyNotebook"], False, id="an-expression-covers-the-whole"),
        pytest.param("mcp__.*", ["mcp__memory__write"], True, id="every-server"),
        pytest.param("mcp__.*__write.*", ["mcp__memory__write_all"], True, id="of-any-server"),
        pytest.param("mcp__memory", ["mcp__memory__write"], False, id="a-server-alone"),
        pytest.param("^Edit$", ["Edit"], True, id="anchors"),
        pytest.param("Edit|Note.*", ["Edit"], True, id="the-first-of-two"),
        pytest.param("E|Edit.", ["Edit"], False, id="neither-of-two"),
        pytest.param("(?i)bash", ["Bash"], True, id="flags"),
    ],
)
def test_a_matcher_covers_a_whole_name(matcher, names, expected):
    check(matcher)

    assert covers(matcher, names) is expected


@each_row(
    "matcher", ["(", "[a", "*Edit", "a{2,1}", "x" * 2001, "(?P<n", "\\", "(a{60000}){60000}", "((a{99}){99}){0,99}"]
)
def test_what_is_no_expression_is_said(matcher):
    with pytest.raises(BadMatcher, match=r"it (is no regular expression|has more than|repeats something)"):
        check(matcher)


def test_in_doubt_a_hook_is_told():
    assert covers("([a-z]*)" * 6 + r"\6\5[A-Z]", ["a" * 200])
    assert covers("(", ["Bash"])
