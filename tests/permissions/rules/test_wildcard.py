"""Texts with stars: a table of what matches, a plain reference to agree with, and patterns made to be slow."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.permissions.rules import wildcard
from tests.rows import each_row

TABLE = [
    pytest.param("npm run build", "npm run build", True, id="exact"),
    pytest.param("npm run build", "npm run build --watch", False, id="exact-is-no-beginning"),
    pytest.param("npm run build", "npm run", False, id="exact-is-no-end"),
    pytest.param("*", "", True, id="star-takes-nothing"),
    pytest.param("*", "anything at all", True, id="star-takes-everything"),
    pytest.param("ls *", "ls", True, id="a-word-may-end"),
    pytest.param("ls *", "ls -la", True, id="a-word-and-more"),
    pytest.param("ls *", "lsof", False, id="no-longer-word"),
    pytest.param("ls*", "lsof", True, id="without-a-blank-any-continuation"),
    pytest.param("ls*", "ls", True, id="without-a-blank-nothing-more"),
    pytest.param("ls:*", "ls", True, id="colon-star-ends-a-word"),
    pytest.param("ls:*", "ls -la", True, id="colon-star-and-more"),
    pytest.param("ls:*", "lsof", False, id="colon-star-no-longer-word"),
    pytest.param("npm run test:*", "npm run test:unit", False, id="colon-star-is-no-colon"),
    pytest.param("npm run test:* x", "npm run test:unit x", True, id="elsewhere-the-colon-is-literal"),
    pytest.param("npm run test:* x", "npm run test unit x", False, id="elsewhere-it-is-not-a-blank"),
    pytest.param("git:push", "git push", False, id="a-colon-is-no-blank"),
    pytest.param("* install", "npm install", True, id="star-first"),
    pytest.param("* install", "npm install x", False, id="star-first-fixes-the-end"),
    pytest.param("* install", "install", False, id="star-first-needs-its-blank"),
    pytest.param("git * main", "git push origin main", True, id="star-in-the-middle-over-blanks"),
    pytest.param("git * main", "git checkout main", True, id="star-in-the-middle"),
    pytest.param("git * main", "git main", False, id="middle-does-not-overlap"),
    pytest.param("git * main", "git push main --force", False, id="middle-fixes-the-end"),
    pytest.param("* --version", "node --version", True, id="version"),
    pytest.param("* --version", "node --version; rm x", False, id="version-and-no-more"),
    pytest.param("git * main *", "git push origin main", True, id="two-stars-and-a-word"),
    pytest.param("git * main *", "git push origin mainly", False, id="two-stars-and-a-longer-word"),
    pytest.param("a**b", "axxb", True, id="two-stars-are-one"),
    pytest.param("ab*ba", "aba", False, id="head-and-tail-do-not-overlap"),
    pytest.param("*a\nb*", "xa\nby", True, id="lines"),
    pytest.param(r"find . -name \*.py", "find . -name *.py", True, id="escaped-star"),
    pytest.param(r"find . -name \*.py", "find . -name x.py", False, id="escaped-star-is-literal"),
    pytest.param(r"echo \\*", "echo \\x", True, id="escaped-backslash"),
    pytest.param(r"f\(x\)", "f(x)", True, id="escaped-parentheses"),
    pytest.param(r"a\b", r"a\b", True, id="other-backslashes-are-literal"),
    pytest.param("  ls *  ", "ls -l", True, id="blanks-around"),
    pytest.param("rm [a-z]?", "rm xy", False, id="no-other-wildcards"),
    pytest.param("LS *", "ls -l", False, id="case-counts"),
]


@each_row(("pattern", "text", "expected"), TABLE)
def test_a_pattern_matches_like_this(pattern, text, expected):
    assert wildcard(pattern).matches(text) is expected


@each_row(("pattern", "text", "expected"), [row for row in TABLE if row.values[2]])
def test_a_wide_reading_takes_all_that_the_narrow_one_takes(pattern, text, expected):
    assert wildcard(pattern, wide=True).matches(text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param("git  push", "git push", id="runs-of-blanks"),
        pytest.param("git\tpush *", "git push x", id="tabs"),
        pytest.param(r"find \*.py", r"find \a.py", id="backslash-and-star"),
    ],
)
def test_only_a_wide_reading_guesses(pattern, text):
    assert wildcard(pattern, wide=True).matches(text)
    assert not wildcard(pattern).matches(text)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("ls", True), (r"ls \*", True), ("ls *", False), ("ls:*", False), ("*", False), ("ls:x", True)],
)
def test_a_pattern_without_a_star_is_exact(pattern, expected):
    assert wildcard(pattern).exact is expected


def reference(pattern: str, text: str) -> bool:
    """The same in the words of a regular expression."""
    pattern = pattern.strip()
    if pattern.endswith(":*"):
        pattern = (pattern[:-2] + " *").lstrip()
    expression = re.sub(r"\\([*\\()])|(\*+)|(.)", _piece, pattern, flags=re.DOTALL)
    if expression.endswith(r"\ .*"):
        expression = expression.removesuffix(r"\ .*") + r"(?:\ .*)?"
    return re.fullmatch(expression, text, re.DOTALL) is not None


def _piece(found: re.Match[str]) -> str:
    escaped, stars, plain = found.groups()
    return ".*" if stars else re.escape(escaped or plain)


@given(st.text("ab *:\\(", max_size=8), st.text("ab :*\\(", max_size=10))
def test_matching_agrees_with_a_plain_reference(pattern, text):
    assert wildcard(pattern).matches(text) is reference(pattern, text)


@given(st.lists(st.text("ab ", max_size=3), min_size=1, max_size=5), st.data())
def test_whatever_stands_for_the_stars_matches(runs, data):
    pattern = "*".join(["x", *runs, "y"])
    filled = "".join(run + data.draw(st.text("abc ", max_size=3)) for run in ["x", *runs]) + "y"

    assert wildcard(pattern).matches(filled)


def test_a_pattern_made_to_be_slow_is_not():
    """Half a million characters and a hundred stars: trying places twice would not end within any test's time."""
    assert not wildcard("*a" * 100 + "b").matches("a" * 500_000)
    assert wildcard("*a" * 100).matches("a" * 500_000)
