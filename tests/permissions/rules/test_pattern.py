"""Patterns of Amp rules: globs, JavaScript's expressions, `$HOME`, and what cannot be decided in time."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.permissions.rules.pattern import BadRulePattern, literal, read
from tests.rows import each_kept_row, each_row
from tests.strategies import texts

BOMBS = ("/(a+)+$/", "/^(a|a)*$/", "/^(a|aa)+$/", r"/^(\w+\s?)*$/")
LONG = "a" * 20_000 + "!"


def both(pattern: str, text: str, home: str = "") -> bool:
    """Does it match, for rules that allow and for others alike?"""
    made = read(pattern, [home] if home else [])
    strict, loose = (made.matches(text, strictly=strictly) for strictly in (True, False))
    assert strict == loose
    return strict


@each_kept_row
def test_a_pattern_reads_as_javascript_and_amp_read_it(pattern, text, expected):
    assert both(pattern, text) is expected


@each_row(
    "pattern",
    [
        *("/(/", "/)/", "/a**/", "/a++/", "/*a/", "/(?>a)/", "/(?P<x>a)/", "/(?i)a/", "/(?#x)/", "/(?R)/", "/[b-a]/"),
        *(r"/\1/", r"/\k<x>/", "/[/", "/(a/", r"/^a\/", "/a{2,1}/", r"/\u{110000}/u", r"/\ud83d/", r"/\q/", "/(^)/v"),
        *("/(?<x>a)(?<x>b)/", "/(^)*?*/", "/(?<=a)*/", "/" + "(" * 60 + ")" * 60 + "/"),
        *("/(a{60000}){60000}/", "/((a{999}){999}){999}/", "/(x)" + "a" * 10_001 + "/"),
    ],
)
def test_a_bad_expression_is_refused_when_it_is_read(pattern):
    with pytest.raises(BadRulePattern):
        read(pattern)


@pytest.mark.parametrize("bomb", BOMBS)
def test_an_expression_that_takes_too_long_counts_against_the_call(bomb):
    pattern = read(bomb)

    assert not pattern.matches(LONG, strictly=True)
    assert pattern.matches(LONG, strictly=False)


def test_after_many_bombs_an_honest_expression_still_answers():
    for number in range(20):
        assert read(f"/(a+)+{number}$/").matches(LONG, strictly=False)

    assert both("/^git status$/", "git status")
    assert not both("/^git status$/", "git push")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        pytest.param("$HOME/*", "/home/me/x", True, id="glob"),
        pytest.param("${HOME}/*", "/home/me/x", True, id="braces"),
        pytest.param("$HOMER/*", "/home/me/x", False, id="another-variable"),
        pytest.param("/^$HOME\\/\\.ssh/", "/home/me/.ssh/id", True, id="expression"),
        pytest.param("/^$HOME$/", "/home/me", True, id="expression-to-the-end"),
        pytest.param(r"/^\$HOME/", "$HOME/x", True, id="escaped"),
    ],
)
def test_home_stands_for_the_users_folder(pattern, text, expected):
    assert both(pattern, text, "/home/me/") is expected


def test_what_the_home_folder_is_called_is_no_pattern():
    assert both("$HOME/x", "/h*/x", "/h*")
    assert not both("$HOME/x", "/home/x", "/h*")
    assert not both("/^$HOME$/", "/hxx", "/h.x")


def test_both_names_of_the_home_folder_count():
    pattern = read("$HOME/*", ["/home/me", "/data/me"])

    assert pattern.matches("/data/me/x", strictly=True)
    assert pattern.matches("/home/me/x", strictly=True)


def test_home_without_a_home_folder_is_refused():
    with pytest.raises(BadRulePattern, match="no home folder"):
        read("$HOME/*")


@pytest.mark.parametrize("path", ["/srv/sim", "/data/img", "/home/me/", "/a/b/s"])
def test_a_path_that_looks_like_an_expression_allows_only_what_both_readings_allow(path):
    pattern = read(path)

    assert not pattern.matches(f"/else/where{path}", strictly=True)
    assert not pattern.matches("srv data home/me a/b", strictly=True)
    assert pattern.matches(path, strictly=False)


def test_a_path_whose_expression_would_be_a_bad_one_is_a_path():
    assert read("/home/guy").kind == "glob"


def test_the_name_of_a_tool_is_never_taken_for_a_path():
    assert read("/bash/i", of_paths=False).matches("Bash", strictly=True)


@pytest.mark.parametrize("pattern", ["/^(?!Bash)/", "/[^B]ash/", r"/\S/", "/(?<!x)y/", r"/\Bx/"])
def test_an_expression_says_whether_it_negates(pattern):
    assert read(pattern).negates
    assert not read("/^(?:Bash|Read)$/").negates


@given(st.text("ab*/", max_size=12), st.text("ab/", max_size=16))
def test_a_glob_is_what_a_slow_reading_says(pattern, text):
    try:
        made = read(pattern)
    except BadRulePattern:  # between slashes it is an expression, such as `/*/`
        assert pattern[0] == pattern[-1] == "/"
        return
    if made.kind == "glob":
        assert made.matches(text, strictly=True) == bool(re.fullmatch(pattern.replace("*", ".*"), text))
        assert made.matches(text, strictly=True) == fnmatchcase(text, pattern)


@given(texts, texts)
def test_a_literal_expression_matches_itself_and_nothing_else(one, other):
    pattern = read(f"/^{literal(one)}$/")

    assert pattern.matches(one, strictly=True)
    assert pattern.matches(other, strictly=True) == (one == other)


@given(st.text(r"ab()[]{}|*+?^$.\/-<>=!:,01ukxdwsbBPpLi", max_size=24), st.text("ab01\n-", max_size=20))
def test_any_expression_is_refused_or_answers(body, text):
    try:
        pattern = read(f"/{body}/")
    except BadRulePattern:
        return
    if pattern.matches(text, strictly=True):
        assert pattern.matches(text, strictly=False)
