"""Patterns of Amp rules: globs, JavaScript's expressions, `$HOME`, and what cannot be decided in time."""

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.permissions.rules.pattern import BadRulePattern, literal, read
from tests.strategies import texts

BOMBS = ("/(a+)+$/", "/^(a|a)*$/", "/^(a|aa)+$/", r"/^(\w+\s?)*$/")
LONG = "a" * 20_000 + "!"


def both(pattern: str, text: str, home: str = "") -> bool:
    """Does it match, for rules that allow and for others alike?"""
    made = read(pattern, [home] if home else [])
    strict, loose = (made.matches(text, strictly=strictly) for strictly in (True, False))
    assert strict == loose
    return strict


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        pytest.param("git diff*", "git diff --stat", True, id="star-at-the-end"),
        pytest.param("git diff*", "git diff", True, id="star-is-also-nothing"),
        pytest.param("git diff*", "echo git diff", False, id="the-whole-value"),
        pytest.param("*git*push*", "cd x && git -C . push --force", True, id="stars-in-between"),
        pytest.param("*", "", True, id="only-a-star"),
        pytest.param("*", "two\nlines", True, id="across-lines"),
        pytest.param("a*a", "a", False, id="ends-do-not-overlap"),
        pytest.param("a?c", "abc", False, id="a-question-mark-is-itself"),
        pytest.param("[ab]", "a", False, id="brackets-are-themselves"),
        pytest.param("rm -rf /", "rm -rf /", True, id="plain-text"),
        pytest.param("", "", True, id="nothing-is-nothing"),
        pytest.param("/etc/passwd", "/etc/passwd", True, id="a-path-is-no-expression"),
        pytest.param("/home/me/*", "/home/me/x", True, id="a-path-with-a-star"),
        pytest.param("/^git (status|log|diff)$/", "git status", True, id="documented-expression"),
        pytest.param("/^git (status|log|diff)$/", "git commit", False, id="documented-expression-no"),
        pytest.param("/status/", "git status -s", True, id="expressions-are-searched"),
        pytest.param("/^git status$/", "git status\n", False, id="dollar-is-the-very-end"),
        pytest.param("/^ls .*$/", "ls a\nrm b", False, id="a-dot-is-no-line-end"),
        pytest.param("/^ls .*$/", "ls a\rrm b", False, id="a-dot-is-no-carriage-return"),
        pytest.param("/^ls .*$/s", "ls a\nrm b", True, id="flag-s"),
        pytest.param("/^rm$/m", "ls\nrm", True, id="flag-m"),
        pytest.param("/^RM (-rf)$/i", "rm -RF", True, id="flag-i"),
        pytest.param("/^(É)$/i", "é", True, id="flag-i-beyond-ascii"),
        pytest.param(r"/^[\W]$/i", "s", False, id="flag-i-and-the-long-s"),
        pytest.param(r"/^\d$/", "٣", False, id="digits-are-ascii"),
        pytest.param(r"/^\w$/", "é", False, id="words-are-ascii"),
        pytest.param(r"/^\s$/", "\u2003", True, id="blanks-are-all-blanks"),
        pytest.param(r"/^[\S]$/", "\u2003", False, id="no-blank-in-a-class"),
        pytest.param(r"/\bpush\b/", "git push", True, id="word-boundary"),
        pytest.param(r"/\bpush\b/", "git pushy", False, id="word-boundary-no"),
        pytest.param(r"/^\/etc\//", "/etc/passwd", True, id="escaped-slash"),
        pytest.param(r"/(?<quote>['\"]).*\k<quote>/", "say 'x'", True, id="named-group"),
        pytest.param(r"/^(a)?\1b$/", "b", True, id="a-group-that-did-not-match-is-empty"),
        pytest.param(r"/^\1(a)$/", "a", True, id="a-group-to-come-is-empty"),
        pytest.param("/^find(?!.*(-delete|-exec|-execdir)).*$/", "find . -name x", True, id="lookahead"),
        pytest.param("/^find(?!.*(-delete|-exec|-execdir)).*$/", "find . -delete", False, id="lookahead-no"),
        pytest.param("/(?<=git )push/", "git push", True, id="lookbehind"),
        pytest.param("/(?<!no )push/", "no push", False, id="negative-lookbehind"),
        pytest.param("/^[^]$/", "\n", True, id="empty-negated-class-is-anything"),
        pytest.param("/[]/", "x", False, id="empty-class-is-nothing"),
        pytest.param("/^[[:alpha:]]$/", "b", False, id="no-posix-classes"),
        pytest.param("/^a{,3}$/", "a{,3}", True, id="braces-that-are-no-count"),
        pytest.param("/^(?:a{1e}|x)$/", "ab", False, id="no-fuzzy-counts"),
        pytest.param(r"/^\u0041\x42\cJ\0$/", "AB\n\0", True, id="numbers-of-characters"),
        pytest.param(r"/^\u{1f600}$/u", "\U0001f600", True, id="flag-u"),
        pytest.param(r"/^\p{Lu}$/u", "É", True, id="property"),
        pytest.param("/^[a-]$/", "-", True, id="a-minus-at-the-end"),
    ],
)
def test_a_pattern_reads_as_javascript_and_amp_read_it(pattern, text, expected):
    assert both(pattern, text) is expected


@pytest.mark.parametrize(
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
