"""Unified diffs: what git makes of them, and what they cost."""

import itertools
import os
import subprocess
import tempfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ferrule.files.diff import DiffChange, changes, diff, diff_of_splices

PIECES = st.sampled_from(["a", "b", "a\n", "b\n", "x y\n", "\n", "c\r\n", "\r\n", "\t", "é→\n", "\u2028", "\f\n", "\r"])
TEXTS = st.lists(PIECES, max_size=24).map("".join)
SPARSE = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d", ""]), max_size=60).map("".join)
NUMBERED = "".join(f"line {number}\n" for number in range(1, 21))


def applied(patch: str, name: str, before: str | None) -> str | None:
    """What `git apply` makes of a folder in which the file has the text `before`."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        if before is not None:
            with open(path, "wb") as file:
                file.write(before.encode())
        if patch:
            command = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
            environment = {
                **os.environ,
                "GIT_CEILING_DIRECTORIES": os.path.dirname(folder),
                "LC_ALL": "C.UTF-8",
            }
            ran = subprocess.run(
                command,
                input=patch.encode(),
                cwd=folder,
                env=environment,
                capture_output=True,
                timeout=60,
                check=False,
            )
            assert ran.returncode == 0, (ran.stderr.decode(), patch)
        if not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return file.read().decode()


def spliced(before: str, splices: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, new in splices:
        parts += (before[done:start], new)
        done = end
    return "".join(parts) + before[done:]


@st.composite
def texts_and_splices(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, str]]]:
    before = draw(TEXTS)
    cuts = sorted(draw(st.lists(st.integers(0, len(before)), max_size=8).filter(lambda found: len(found) % 2 == 0)))
    return before, [(start, end, draw(TEXTS)) for start, end in zip(cuts[::2], cuts[1::2], strict=True)]


@settings(max_examples=150, deadline=None)
@given(before=st.none() | TEXTS, after=st.none() | TEXTS)
@example(before="", after=None)
@example(before=None, after="")
@example(before="", after="a")
@example(before="a\r\nb\r\n", after="a\nb\r\n")
def test_git_turns_before_into_after(before: str | None, after: str | None):
    patch = diff("some file.txt", before, after)

    assert applied(patch, "some file.txt", before) == after


@settings(max_examples=150, deadline=None)
@given(texts_and_splices())
@example(("ab", [(0, 1, "x"), (2, 2, "y")]))
@example(("a\nb\n", [(0, 2, ""), (2, 4, "c\n")]))
@example(("a\nb", [(1, 2, ""), (3, 3, "\n")]))
def test_git_does_what_the_splices_do(case: tuple[str, list[tuple[int, int, str]]]):
    before, splices = case

    assert applied(diff_of_splices("f", before, splices), "f", before) == spliced(before, splices)


@given(before=SPARSE, after=SPARSE)
def test_changes_lead_from_the_one_sequence_to_the_other(before: str, after: str):
    one, other = before.split("\n"), after.split("\n")
    found = changes(one, other)

    made, done = [], 0
    for start, end, new_start, new_end in found:
        made += one[done:start] + other[new_start:new_end]
        done = end
    assert made + one[done:] == other
    assert all(a.end < b.start or a.new_end < b.new_start for a, b in itertools.pairwise(found))


@given(texts_and_splices())
def test_a_diff_of_splices_changes_the_same_lines_as_a_diff_of_the_whole_texts(
    case: tuple[str, list[tuple[int, int, str]]],
):
    before, splices = case
    after = spliced(before, splices)

    assert bool(diff_of_splices("f", before, splices)) == (before != after) == bool(diff("f", before, after))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            NUMBERED,
            NUMBERED.replace("line 10\n", "line ten\n"),
            "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n"
            "-line 10\n+line ten\n line 11\n line 12\n line 13\n",
            id="three-lines-of-context",
        ),
        pytest.param(
            None,
            "a\nb",
            "diff --git a/f b/f\nnew file mode 100644\n--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"
            "\\ No newline at end of file\n",
            id="a-new-file",
        ),
        pytest.param(
            "a\n",
            None,
            "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",
            id="a-deleted-file",
        ),
        pytest.param(None, "", "diff --git a/f b/f\nnew file mode 100644\n", id="a-new-empty-file"),
        pytest.param(
            "a",
            "a\n",
            "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n",
            id="a-final-newline-added",
        ),
        pytest.param("a\n", "a\n", "", id="nothing-changed"),
        pytest.param(None, None, "", id="never-there"),
    ],
)
def test_a_diff_reads_as_git_writes_it(before: str | None, after: str | None, expected: str):
    assert diff("f", before, after) == expected


def test_changes_far_apart_make_two_hunks_and_near_ones_make_one():
    far = NUMBERED.replace("line 2\n", "").replace("line 19\n", "x\n")
    near = NUMBERED.replace("line 6\n", "").replace("line 13\n", "x\n")

    assert [line for line in diff("f", NUMBERED, far).split("\n") if line.startswith("@@")] == [
        "@@ -1,5 +1,4 @@",
        "@@ -16,5 +15,5 @@",
    ]
    assert diff("f", NUMBERED, near).count("@@ -") == 1


@pytest.mark.parametrize(
    "name",
    ['quo"te', "tab\tname", "back\\slash", "new\nline", "ünïcode", "two  blanks ", "nbsp\u00a0"],
)
def test_git_understands_unusual_names(name: str):
    assert applied(diff(name, "a\n", "b\n"), name, "a\n") == "b\n"
    assert applied(diff(name, None, "b\n"), name, None) == "b\n"


def test_a_name_that_is_not_unicode_is_written_as_its_bytes():
    assert diff("\udcff", "a\n", "b\n").startswith('diff --git "a/\\377" "b/\\377"\n')


def test_long_texts_with_little_in_common_become_one_change():
    before = [str(number) for number in range(30_000)]
    after = [str(-number) for number in range(1, 30_000)]

    assert changes(before, after) == [DiffChange(0, 30_000, 0, 29_999)]


def test_many_edits_are_found_one_by_one_in_long_texts():
    before = [f"line {number}" if number % 7 else "" for number in range(5000)]
    after = [line.replace("line", "LINE") if number % 9 == 0 else line for number, line in enumerate(before)]

    found = changes(before, after)

    assert sum(one.new_end - one.new_start for one in found) == sum(map(str.__ne__, before, after))


def test_few_edits_are_found_in_long_texts():
    before = [str(number) for number in range(100_000)]
    after = [*before[:10], "new", *before[10:50_000], *before[50_002:]]

    assert changes(before, after) == [DiffChange(10, 10, 10, 11), DiffChange(50_000, 50_002, 50_001, 50_001)]


def test_a_million_splices_on_one_line_of_many_megabytes_are_one_change():
    before = "a " * 1_000_000
    splices = [(start, start + 1, "b") for start in range(0, len(before), 2)]

    assert diff_of_splices("f", before, splices).count("\n@@ -1 +1 @@\n") == 1
