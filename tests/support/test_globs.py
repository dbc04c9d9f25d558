"""Globs: a table of what matches, a reference to agree with, and patterns made to be slow."""

import fnmatch
import glob
import itertools
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.files.globs import BadGlob, escape, exclude_names, expand, literal_prefix, matcher, names_hidden, select
from tests.rows import each_row

TREE = (
    "a.json",
    ".hidden.json",
    "src/a.ts",
    "src/b.js",
    "src/deep/er/c.ts",
    "src/Deep/d.ts",
    "src/.cache/e.ts",
    "src/.cache/f/g.ts",
    "lib/x[1].py",
    "lib/y{2}.py",
    "lib/tests/test_z.py",
    ".github/workflows/ci.yml",
)


@each_row(
    ("pattern", "expected"),
    [
        pytest.param("*.json", {"a.json"}, id="star-stays-in-the-root"),
        pytest.param("**/*.json", {"a.json"}, id="any-depth-includes-none"),
        pytest.param("**/*.ts", {"src/a.ts", "src/deep/er/c.ts", "src/Deep/d.ts"}, id="not-into-hidden"),
        pytest.param("src/*.ts", {"src/a.ts"}, id="one-directory"),
        pytest.param("src/**/*.ts", {"src/a.ts", "src/deep/er/c.ts", "src/Deep/d.ts"}, id="below-a-directory"),
        pytest.param("src/[a-z]*/*/*.ts", {"src/deep/er/c.ts"}, id="class-in-a-directory"),
        pytest.param("src/[!a-z]*/*.ts", {"src/Deep/d.ts"}, id="negated-class"),
        pytest.param("src/[^a-z]*/*.ts", {"src/Deep/d.ts"}, id="negated-class-caret"),
        pytest.param("**/*.{ts,js}", {"src/a.ts", "src/b.js", "src/deep/er/c.ts", "src/Deep/d.ts"}, id="braces"),
        pytest.param("{src/{a,b}.*,*.json}", {"src/a.ts", "src/b.js", "a.json"}, id="nested-braces-with-slashes"),
        pytest.param("**/*test*", {"lib/tests/test_z.py"}, id="test-in-the-name"),
        pytest.param("src/?.ts", {"src/a.ts"}, id="question-mark"),
        pytest.param("lib/x\\[1\\].py", {"lib/x[1].py"}, id="escaped-brackets"),
        pytest.param("lib/y\\{2\\}.py", {"lib/y{2}.py"}, id="escaped-braces"),
        pytest.param("lib/x[[]1].py", {"lib/x[1].py"}, id="bracket-in-a-class"),
        pytest.param(".*.json", {".hidden.json"}, id="literal-dot"),
        pytest.param("[.]hidden.json", set(), id="class-is-not-a-literal-dot"),
        pytest.param("?hidden.json", set(), id="question-mark-is-not-a-literal-dot"),
        pytest.param("**/.cache/**", {"src/.cache/e.ts", "src/.cache/f/g.ts"}, id="named-hidden-directory"),
        pytest.param(".github/**/*.yml", {".github/workflows/ci.yml"}, id="hidden-prefix"),
        pytest.param("src/**", {"src/a.ts", "src/b.js", "src/deep/er/c.ts", "src/Deep/d.ts"}, id="everything-below"),
        pytest.param("src/", {"src/a.ts", "src/b.js", "src/deep/er/c.ts", "src/Deep/d.ts"}, id="trailing-slash"),
        pytest.param("./src//a.ts", {"src/a.ts"}, id="untidy-slashes"),
        pytest.param("**/**/c.ts", {"src/deep/er/c.ts"}, id="repeated-any-depth"),
        pytest.param("src/**.ts", {"src/a.ts"}, id="two-stars-in-a-name-are-one"),
        pytest.param("src", set(), id="a-directory-is-no-file"),
        pytest.param("", set(), id="empty"),
        pytest.param("/src/a.ts", set(), id="absolute"),
        pytest.param("src/{a.ts", set(), id="unclosed-brace-is-plain"),
        pytest.param("src/[a.ts", set(), id="unclosed-bracket-is-plain"),
    ],
)
def test_which_paths_match(pattern, expected):
    assert set(filter(matcher(pattern), TREE)) == expected


def test_with_dots_wildcards_match_hidden_names():
    assert set(filter(matcher("**/*.ts", dots=True), TREE)) == {path for path in TREE if path.endswith(".ts")}
    assert matcher("*", dots=True)(".hidden.json")


def test_case_can_be_ignored():
    assert matcher("**/D.TS", ignore_case=True)("src/Deep/d.ts")
    assert not matcher("**/D.TS")("src/Deep/d.ts")


def test_a_range_around_the_slash_does_not_match_the_slash():
    assert not matcher("a[+-9]b")("a/b")
    assert not matcher("a[!x]b")("a/b")


def test_a_name_may_hold_line_breaks_and_broken_characters():
    assert matcher("**/*.py")("a\nb/c\n.py")
    assert matcher("*.py")("\udcff.py")


@each_row(
    ("pattern", "hidden"),
    [
        pytest.param("**/*.py", False, id="none"),
        pytest.param(".github/**", True, id="directory"),
        pytest.param("src/.env", True, id="file"),
        pytest.param("src/{a,.b}/c", True, id="in-braces"),
        pytest.param("\\.env", True, id="escaped"),
        pytest.param("[.]env", False, id="class"),
        pytest.param("../x", False, id="parent"),
        pytest.param("./x", False, id="itself"),
        pytest.param("a.b/c.d", False, id="dot-inside"),
    ],
)
def test_whether_a_pattern_names_hidden_files(pattern, hidden):
    assert names_hidden(pattern) is hidden


@each_row(
    ("pattern", "prefix"),
    [
        pytest.param("*.py", "", id="none"),
        pytest.param("src/*.py", "src", id="one"),
        pytest.param("src/deep/**/*.py", "src/deep", id="two"),
        pytest.param("src/a.ts", "src", id="the-file-itself-is-not-part"),
        pytest.param("src/{a,b}/c/*.ts", "src", id="braces"),
        pytest.param("src/{a/x,a/y}/*.ts", "src/a", id="common-part-of-braces"),
        pytest.param("src/[ab]/c.ts", "src", id="class"),
        pytest.param("a\\*b/*.ts", "a*b", id="escaped-wildcard"),
        pytest.param("src/../x/*.ts", "src", id="stops-at-the-parent"),
        pytest.param("src/", "src", id="trailing-slash"),
    ],
)
def test_the_directories_that_a_pattern_names(pattern, prefix):
    assert literal_prefix(pattern) == prefix


def test_too_many_braces_are_refused_before_they_are_expanded():
    with pytest.raises(BadGlob, match="512"):
        matcher("{a,b}" * 12)
    with pytest.raises(BadGlob, match="32 braces"):
        matcher("{" * 4000)
    with pytest.raises(BadGlob, match=r"long patterns|characters of patterns"):
        matcher("{a,b}" * 9 + "*a" * 1900)
    with pytest.raises(BadGlob, match="characters"):
        matcher("a" * 5000)


def test_braces_stand_for_each_of_their_parts():
    assert expand("a{b,c{d,e}}f") == ("abf", "acdf", "acef")
    assert expand("a{b}c") == ("abc",)
    assert expand("a{,b}") == ("a", "ab")


def _fits(names: list[str], parts: list[str]) -> bool:
    if not names:
        return not parts
    if names[0] == "**":
        if not parts or parts[0].startswith("."):
            return len(names) > 1 and _fits(names[1:], parts)
        return (len(names) == 1 and len(parts) == 1) or _fits(names[1:], parts) or _fits(names, parts[1:])
    return bool(parts) and _name_fits(names[0], parts[0]) and _fits(names[1:], parts[1:])


def _name_fits(name: str, part: str) -> bool:
    if part.startswith(".") and not name.startswith("."):
        return False
    return fnmatch.fnmatchcase(part, name)


NAMES = st.sampled_from(
    ["**", "*", "?", "a", "b", ".a", ".*", "*a", "a*b", "[ab]", "[!a]*", "*?*", "a*a*", "*a*b", "??", "*.a", "a.*b"]
)
PARTS = st.sampled_from(["a", "b", "ab", "aab", "aba", "abab", ".a", ".b", ".ab", "a.a", "a.ab", "b.a"])


@given(st.lists(NAMES, min_size=1, max_size=6), st.lists(PARTS, min_size=1, max_size=6))
def test_matching_agrees_with_a_simple_definition(names, parts):
    assert matcher("/".join(names))("/".join(parts)) == _fits(names, parts)


@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=3), min_size=1, max_size=3), st.lists(PARTS, min_size=1, max_size=5)
)
def test_braces_match_what_any_of_their_parts_matches(alternatives, parts):
    pattern = "{" + ",".join("/".join(names) for names in alternatives) + "}"

    assert matcher(pattern)("/".join(parts)) == any(_fits(names, parts) for names in alternatives)


@given(st.text("ab.*?[]!-", max_size=8), st.text("ab.-]", min_size=1, max_size=6))
def test_one_name_agrees_with_fnmatch(pattern, name):
    # fnmatch lets wildcards match a leading dot, and takes `.` for a name like any other.
    if pattern not in {"", ".", "**"}:
        assert matcher(pattern, dots=True)(name) == fnmatch.fnmatchcase(name, pattern)


@each_row(
    "pattern",
    [
        "**/*.ts",
        "*.json",
        "src/**/*.ts",
        "**",
        "src/*",
        "**/.cache/*",
        ".*",
        "*/*",
        "**/[a-d].ts",
        "src/**/e*/*",
        "**/?.ts",
    ],
)
def test_a_real_tree_agrees_with_the_standard_library(tmp_path, pattern):
    for path in TREE:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    found = glob.glob(pattern, root_dir=tmp_path, recursive=True)
    files = {path.replace(os.sep, "/") for path in found if os.path.isfile(tmp_path / path)}

    assert set(filter(matcher(pattern), TREE)) == files


NAMED = st.lists(st.text("ab*?[]{}\\!,^-", min_size=1, max_size=6), min_size=1, max_size=3).map("/".join)


@given(NAMED, NAMED)
def test_an_escaped_path_matches_itself_and_nothing_else(path, other):
    matches = matcher(escape(path))

    assert matches(path)
    assert matches(other) == (other == path)


SLOW = (
    ("**/**/**/**/*a*a*a*[b]", "/".join(["a" * 50] * 40)),
    ("**/a/**/a/**/a/**/a/**/a/**/[b]", "a/" * 1000 + "c"),
    ("*a*a*a*a*a*a*a*a*a*a*a*a*[b]", "a" * 5000),
    ("**/*?*?*?*?*?*?*?*[x]", "a/" * 300 + "a" * 2000),
    ("**/?*/**/?*/**/?*/**/?*/**/[z]z", "a/" * 1000 + "c"),
    ("{a*,*a}{a*,*a}{a*,*a}{a*,*a}{a*,*a}{a*,*a}[b]", "a" * 2000),
    ("**/*/*/*/*/*/*/**/*/*/*/*/**/[z]", "a/" * 500 + "a"),
)


def test_patterns_made_to_be_slow_are_not():
    script = "import sys\nfrom ferrule.files.globs import matcher\nassert not matcher(sys.argv[1])(sys.argv[2])\n"
    for pattern, path in SLOW:
        # A matcher that backtracks needs longer than anyone waits; the bound only ends the wait.
        subprocess.run([sys.executable, "-c", script, pattern, path], check=True, timeout=60)


def test_every_subset_of_stars_in_a_name_agrees_with_fnmatch():
    for stars in itertools.product(["", "*"], repeat=5):
        pattern = "".join(a + b for a, b in zip(stars, ["a", "b", "a", "b", ""], strict=True))
        for name in map("".join, itertools.product("ab", repeat=6)):
            assert matcher(pattern)(name) == fnmatch.fnmatchcase(name, pattern)


@given(st.sets(st.text("ab", min_size=1, max_size=4), max_size=3), st.text("abcAB.", max_size=6))
def test_spared_names_alone_are_left_out(spared, end):
    path = ".env." + end
    patterns = exclude_names("**/.env.*", {".env." + one for one in spared})
    matched = any(matcher(one, ignore_case=True)(path) for one in patterns)

    assert matched == (end.lower() not in spared)


@pytest.mark.parametrize("pattern", ["**/*.env", "**/.ssh/**", "a[b]*", "{a,b}*", "plain", "*", ".env.?*"])
def test_a_pattern_that_cannot_be_divided_stays_whole(pattern):
    assert exclude_names(pattern, {".env.example", "x.env"}) == [pattern]


def test_names_that_the_pattern_does_not_match_change_nothing():
    assert exclude_names(".env.*", {"readme", ".env"}) == [".env.*"]


@given(
    st.sampled_from(["**/*.py", "**/*", "**/*.{py,ts}", "**/*x", "*.py", "a/**/*.py", "**/*.p[y]", "**/.*", "**/*\\*"]),
    st.lists(st.lists(st.text("ab.xpy*", min_size=1, max_size=4), min_size=1, max_size=3).map("/".join)),
)
def test_selecting_many_is_matching_each(pattern, paths):
    matches = matcher(pattern)

    assert select(pattern, paths) == [path for path in paths if matches(path)]
