"""A patch is read strictly but for what surely means the same, and its hunks go to one place each, never on a guess."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.patches import codex_patch, is_sayable, update
from tests.rows import each_row

from ferrule.files.patch import LIMIT_CHARACTERS, LIMIT_LISTED, Hunk, Malformed, Placed, Section, Unplaced, parse, place
from ferrule.files.replace import explain_unplaced
from ferrule.files.text import TextFile, splice
from ferrule.files.text import parse as parse_file

LINES = st.lists(
    st.sampled_from(["a", "b", "c", "", "  a", "\tb", "x = 1", "é", "}", "*** End Patch", "@@ a"]), max_size=12
)


def patch_of(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def hunks_of(*rows: str) -> tuple[Hunk, ...]:
    return parse(patch_of("*** Update File: f", *rows)).sections[0].hunks


def outcome(text: str, *rows: str) -> Placed | Unplaced:
    return place(parse_file(text.encode()), hunks_of(*rows))


def patched(raw: bytes, *rows: str) -> bytes:
    file = parse_file(raw)
    placed = place(file, hunks_of(*rows))
    assert isinstance(placed, Placed), placed
    return splice(file, placed.splices)


def unplaced(text: str, *rows: str) -> Unplaced:
    found = outcome(text, *rows)
    assert isinstance(found, Unplaced), found
    return found


def report(text: str, *rows: str) -> str:
    return explain_unplaced(parse_file(text.encode()), unplaced(text, *rows), changed_since_read=False)


def test_every_kind_of_section_is_read():
    parsed = parse(
        patch_of(
            "*** Add File: new/a.py",
            "+one",
            "+",
            "+++two",
            "*** Delete File: old.py",
            "*** Update File: here.py",
            "*** Move to: there.py",
            "@@ class A:",
            "@@     def f(self):",
            " stay",
            "-go",
            "+come",
            "@@",
            "-last",
            "*** End of File",
        )
    )

    assert parsed.notes == ()
    assert parsed.sections == (
        Section("add", "new/a.py", 2, lines=("one", "", "++two")),
        Section("delete", "old.py", 6),
        Section(
            "update",
            "here.py",
            7,
            "there.py",
            hunks=(
                Hunk(9, ("class A:", "    def f(self):"), (" stay", "-go", "+come"), at_end=False),
                Hunk(14, (), ("-last",), at_end=True),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("text", "note"),
    [
        pytest.param(patch_of("*** Update File: f", "@@", " a", "-b", "+c").rstrip("\n"), "", id="no-final-newline"),
        pytest.param(
            "\n \n" + patch_of("*** Update File: f", "@@", " a", "-b", "+c", "") + "\n\n", "", id="blank-around"
        ),
        pytest.param(
            "*** Begin Patch  \n*** Update File:   f \n@@ \n a\n-b\n+c\n*** End Patch\t\n",
            "",
            id="blanks-after-markers",
        ),
        pytest.param(
            patch_of("*** Update File: f", "@@", " a", "-b", "+c").replace("\n", "\r\n"), "CR LF", id="carriage-returns"
        ),
    ],
)
def test_what_surely_means_the_same_is_forgiven(text: str, note: str):
    parsed = parse(text)

    assert [(section.path, *(hunk.rows for hunk in section.hunks)) for section in parsed.sections] == [
        ("f", (" a", "-b", "+c"))
    ]
    assert [note in one for one in parsed.notes] == ([True] if note else [])


@pytest.mark.parametrize(
    ("first", "last", "notes"),
    [
        pytest.param("<<'EOF'", "EOF", ["here-document"], id="quoted"),
        pytest.param('<<"PATCH"', "PATCH", ["here-document"], id="double-quoted"),
        pytest.param("<<EOF", "EOF", ["here-document"], id="bare"),
        pytest.param("apply_patch <<'EOF'", "EOF", ["here-document"], id="with-the-command"),
        pytest.param("```", "```", ["code fence"], id="fence"),
        pytest.param("```diff", "```", ["code fence"], id="fence-with-language"),
        pytest.param("```\n<<'EOF'", "EOF\n```", ["code fence", "here-document"], id="both"),
    ],
)
def test_a_wrapping_is_left_out_and_noted(first: str, last: str, notes: list[str]):
    inner = patch_of("*** Update File: f", "@@", " a", "-b", "+c")
    parsed = parse(f"{first}\n{inner}{last}\n")

    assert [section.hunks[0].rows for section in parsed.sections] == [(" a", "-b", "+c")]
    assert parsed.sections[0].line == 2 + len(first.splitlines())
    assert len(parsed.notes) == len(notes)
    assert all(word in note for word, note in zip(notes, parsed.notes, strict=True))


def test_an_empty_line_inside_of_a_hunk_is_an_empty_line_of_context():
    parsed = parse(patch_of("*** Update File: f", "@@", " a", "", "-b"))

    assert parsed.sections[0].hunks[0].rows == (" a", " ", "-b")
    assert "empty lines of context" in parsed.notes[0]


def test_empty_lines_between_hunks_and_sections_set_them_apart():
    parsed = parse(
        patch_of(
            "",
            "*** Update File: f",
            "",
            "@@",
            "-a",
            "",
            "@@",
            "-b",
            "",
            "",
            "*** Add File: g",
            "+x",
            "",
            "*** Delete File: h",
            "",
        )
    )

    assert [section.kind for section in parsed.sections] == ["update", "add", "delete"]
    assert [hunk.rows for hunk in parsed.sections[0].hunks] == [("-a",), ("-b",)]
    assert parsed.notes == ()


def test_an_empty_line_before_the_end_of_the_file_is_context():
    assert hunks_of("@@", "-a", "", "*** End of File") == (Hunk(3, (), ("-a", " "), at_end=True),)


def test_a_first_hunk_needs_no_header_and_an_added_file_no_lines():
    parsed = parse(patch_of("*** Update File: f", " a", "+b", "*** Add File: g"))

    assert parsed.sections[0].hunks == (Hunk(3, (), (" a", "+b"), at_end=False),)
    assert parsed.sections[1] == Section("add", "g", 5)


@each_row(
    ("text", "line", "expected"),
    [
        pytest.param("", 1, "*** Begin Patch", id="nothing"),
        pytest.param("\n\n", 1, "*** Begin Patch", id="blank"),
        pytest.param("hello\n*** End Patch\n", 1, "*** Begin Patch", id="no-begin"),
        pytest.param("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", 1, "*** Begin Patch", id="unified-diff"),
        pytest.param("*** Begin Patch\n*** Delete File: f\n", 2, "cut off", id="no-end"),
        pytest.param("*** Begin Patch\n*** Add File: f\n+a\n*** End", 4, "cut off", id="half-an-end"),
        pytest.param("*** Begin Patch\n", 1, "cut off", id="begin-only"),
        pytest.param(
            "<<'EOF'\n*** Begin Patch\n*** Delete File: f\n*** End Patch\n", 1, "*** Begin", id="heredoc-unclosed"
        ),
        pytest.param(patch_of(), 2, "*** Add File", id="no-sections"),
        pytest.param(patch_of("*** Rename File: f"), 2, "*** Update File", id="unknown-section"),
        pytest.param(patch_of("text"), 2, "*** Update File", id="text-for-a-section"),
        pytest.param(patch_of("*** Delete File: f", "-a"), 3, "a deletion takes no lines", id="lines-after-deletion"),
        pytest.param(patch_of("*** Delete File:"), 2, "a path", id="no-path"),
        pytest.param(patch_of("*** Update File: f", "*** Move to: "), 3, "a path", id="no-goal"),
        pytest.param(patch_of("*** Add File: f", "+a", "b"), 4, "begins with +", id="added-line-without-sign"),
        pytest.param(
            patch_of("*** Add File: f", "+a", "", "+b"), 4, "begins with +", id="added-empty-line-without-sign"
        ),
        pytest.param(patch_of("*** Add File: f", "@@", "+a"), 3, "begins with +", id="hunk-in-added-file"),
        pytest.param(patch_of("*** Update File: f"), 3, "a change", id="no-change"),
        pytest.param(patch_of("*** Update File: f", "@@"), 4, "after @@", id="empty-hunk"),
        pytest.param(patch_of("*** Update File: f", "@@ a", "", "*** Delete File: g"), 5, "after @@", id="anchor-only"),
        pytest.param(patch_of("*** Update File: f", "*** End of File"), 3, "a change", id="end-of-nothing"),
        pytest.param(patch_of("*** Update File: f", "@@", "-a", "b"), 5, "begins with +, - or a blank", id="no-sign"),
        pytest.param(patch_of("*** Update File: f", "@@", "\ta"), 4, "begins with +, - or a blank", id="tab-for-blank"),
        pytest.param(patch_of("*** Update File: f", "@@a", "-a"), 3, '"@@ " and a line', id="header-without-blank"),
        pytest.param(patch_of("*** Update File: f", "@@ -1,2 +1,3 @@", "-a"), 3, "line numbers", id="line-numbers"),
        pytest.param(patch_of("*** Update File: f", "-a", "*** Move to: g"), 4, "*** Update File", id="late-move"),
        pytest.param(
            patch_of("*** Update File: f", "@@ a", "+b", ""), 5, "leave it out", id="empty-line-after-additions"
        ),
        pytest.param(
            patch_of("*** Delete File: f", "*** End Patch", "*** Begin Patch", "*** Delete File: g"),
            3,
            "*** Update File",
            id="two-patches",
        ),
        pytest.param("x" * (LIMIT_CHARACTERS + 1), 1, "several patches", id="too-long"),
    ],
)
def test_anything_else_is_an_error_with_its_line(text: str, line: int, expected: str):
    with pytest.raises(Malformed) as caught:
        parse(text)

    assert caught.value.line == line
    assert f"line {line}: expected " in str(caught.value)
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 400


@given(
    st.lists(
        st.sampled_from(
            [
                "*** Begin Patch",
                "*** End Patch",
                "*** Update File: f",
                "*** Add File: g",
                "@@",
                "@@ a",
                "+a",
                "-a",
                " a",
                "",
                "*** End of File",
                "```",
                "x",
            ]
        ),
        max_size=12,
    )
)
def test_any_text_is_a_patch_or_an_error_of_one_line(lines: list[str]):
    text, line = "\n".join(lines), 0
    try:
        sections = parse(text).sections
    except Malformed as error:
        line, sections = error.line, ()

    assert bool(sections) != (1 <= line <= max(1, len(lines)))


def test_a_patch_of_ten_megabytes_is_read():
    body = [f"+line {number}" for number in range(600_000)]
    parsed = parse(patch_of("*** Add File: f", *body))

    assert len(parsed.sections[0].lines) == len(body)


CLASSES = """\
class A:
    def f(self):
        return 1

    def g(self):
        return 1


class B:
    def f(self):
        return 1
"""


@each_row(
    ("before", "rows", "after"),
    [
        pytest.param(b"a\nb\nc\n", ["@@", " a", "-b", "+B", " c"], b"a\nB\nc\n", id="replaced"),
        pytest.param(b"a\nb\nc\n", ["@@", " a", "+x", " b"], b"a\nx\nb\nc\n", id="inserted"),
        pytest.param(b"a\nb\nc\n", ["@@", "-b"], b"a\nc\n", id="removed"),
        pytest.param(b"a\nb\nc\n", ["@@", "+x", " a"], b"x\na\nb\nc\n", id="at-the-beginning"),
        pytest.param(b"a\nb\n", ["@@", "-a", "-b"], b"", id="everything-removed"),
        pytest.param(b"", ["@@", "+a", "+b"], b"a\nb\n", id="into-an-empty-file"),
        pytest.param(b"a\nb\n", ["@@", "+c", "*** End of File"], b"a\nb\nc\n", id="appended"),
        pytest.param(b"a\nb\nc\nd\n", ["@@", "-a", "+b", "-b", "+a", " c"], b"b\na\nc\nd\n", id="mixed-signs"),
        pytest.param(b"x\na\nx\nb\n", ["@@", "-a", "@@", "-x"], b"x\nb\n", id="after-the-hunk-before"),
        pytest.param(b"x\ny\nx\n", ["@@", "-x", "+z", "*** End of File"], b"x\ny\nz\n", id="end-of-file-decides"),
        pytest.param(b"a\nb\n", ["@@ a", "+x"], b"a\nx\nb\n", id="added-behind-the-anchor"),
        pytest.param(b"a\nb", ["@@ b", "+x"], b"a\nb\nx", id="added-behind-the-last-line"),
        pytest.param(b"  a\nb\n", ["@@ a", "+x"], b"  a\nx\nb\n", id="anchor-without-its-indentation"),
        pytest.param(b"a  \nb\n", ["@@ a", "-b"], b"a  \n", id="anchor-without-blanks-at-its-end"),
        pytest.param(
            b"def f():\n    x\n",
            ["@@ def f():", " def f():", "-    x", "+    y"],
            b"def f():\n    y\n",
            id="anchor-repeated-as-context",
        ),
        pytest.param(b"h\na\nb\nc\nd\n", ["@@ h", "-a", "@@ h", "-c"], b"h\nb\nd\n", id="one-anchor-for-two-hunks"),
        pytest.param(
            CLASSES.encode(),
            ["@@ class B:", "@@     def f(self):", "-        return 1", "+        return 2"],
            CLASSES[::-1].replace("1", "2", 1)[::-1].encode(),
            id="class-then-method",
        ),
        pytest.param(
            CLASSES.encode(),
            ["@@ class A:", "@@ def f(self):", "-        return 1", "+        return 2"],
            CLASSES.replace("1", "2", 1).encode(),
            id="inside-goes-before-behind",
        ),
        pytest.param(
            CLASSES.encode(),
            ["@@ class A:", "@@ def f(self):", "+        pass"],
            CLASSES.replace("self):\n", "self):\n        pass\n", 1).encode(),
            id="added-inside-goes-before-behind",
        ),
        pytest.param(b"a  \nb\t\nc\n", ["@@", " a", "-b", "+B", " c"], b"a  \nB\nc\n", id="trailing-blanks"),
        pytest.param(
            b"    a\n      b\n", ["@@", " a", "-  b", "+  c", "+d"], b"    a\n      c\n    d\n", id="indentation"
        ),
        pytest.param(
            b"\tif x:\n\t\ty\n", ["@@", "     if x:", "-        y", "+        z"], b"\tif x:\n\t\tz\n", id="tabs"
        ),
        pytest.param(b"a \nb\n", ["@@", "-a", "-b", "+a", "+c"], b"a \nc\n", id="what-goes-and-comes-again-stays"),
        pytest.param(b"a\nb\n", ["@@", " a", "-b", "+b"], b"a\nb\n", id="nothing-changed"),
        pytest.param(b"a\n$x\n", ["@@", "-$x", "+$& \\1"], b"a\n$& \\1\n", id="literal"),
    ],
)
def test_a_hunk_that_fits_one_place_goes_there(before: bytes, rows: list[str], after: bytes):
    assert patched(before, *rows) == after


@each_row(
    ("before", "rows", "after"),
    [
        pytest.param(b"a\r\nb\r\nc\r\n", [" a", "-b", "+x", "+y", " c"], b"a\r\nx\r\ny\r\nc\r\n", id="crlf"),
        pytest.param(b"a\r\nb\r\n", [" a", "+x"], b"a\r\nx\r\nb\r\n", id="crlf-inserted"),
        pytest.param(b"a\nb\r\nc\n", ["-b", "+x", "+y"], b"a\nx\r\ny\r\nc\n", id="mixed-takes-the-replaced-line's"),
        pytest.param(b"a\r\nb\nc\n", ["-a", "-b", "+x", "+y", " c"], b"x\r\ny\nc\n", id="mixed-line-by-line"),
        pytest.param(
            b"a\r\nb\nc\n", [" a", "+x", " b", "+y"], b"a\r\nx\r\nb\ny\nc\n", id="mixed-takes-the-line-before's"
        ),
        pytest.param(b"a\r\nb", ["-b", "+x", "+y"], b"a\r\nx\r\ny", id="crlf-without-final-newline"),
        pytest.param(b"a\rb\rc", ["-b", "+x", "+y"], b"a\rx\ry\rc", id="cr-only"),
        pytest.param(b"a\nb", [" a", "-b", "+x"], b"a\nx", id="no-final-newline-replaced"),
        pytest.param(b"a\nb", [" a", "-b"], b"a", id="no-final-newline-removed"),
        pytest.param(b"a\nb", ["-a", "-b"], b"", id="no-final-newline-all-removed"),
        pytest.param(b"a\nb", [" b", "+x", "+y"], b"a\nb\nx\ny", id="no-final-newline-appended"),
        pytest.param(b"a\nb", ["+x", "*** End of File"], b"a\nb\nx", id="no-final-newline-end-of-file"),
        pytest.param(b"a\nb\nc", ["-b", "@@", "-c"], b"a", id="no-final-newline-two-hunks-removed"),
        pytest.param(b"a\nb\nc", ["-b", "+x", "@@", "-c"], b"a\nx", id="no-final-newline-two-hunks"),
        pytest.param(b"a", ["-a", "+x", "+y"], b"x\ny", id="one-line-without-any-end"),
        pytest.param(b"\xef\xbb\xbfa\nb\n", ["-a", "+x"], b"\xef\xbb\xbfx\nb\n", id="utf-8-mark-before-the-first-line"),
        pytest.param(b"\xff\xfea\0\n\0b\0\n\0", ["-b", "+\xe9"], b"\xff\xfea\0\n\0\xe9\0\n\0", id="utf-16"),
        pytest.param(b"caf\xe9\nb\n", ["-b", "+\xfc"], b"caf\xe9\n\xfc\n", id="latin-1"),
        pytest.param("“a”\nb\n".encode(), [" “a”", "-b", "+x"], "“a”\nx\n".encode(), id="curly-quotes"),
        pytest.param(
            b"a\fb\nc\x0bd\n\xe2\x80\xa8e\n", ["-a\fb", "+x"], b"x\nc\x0bd\n\xe2\x80\xa8e\n", id="other-breaks"
        ),
    ],
)
def test_line_ends_encoding_and_final_newline_stay_as_they_were(before: bytes, rows: list[str], after: bytes):
    assert patched(before, "@@", *rows) == after


@each_row(
    ("text", "rows", "lines", "words"),
    [
        pytest.param("x\ny\nx\n", ["@@", "-x"], (1, 3), "lines 1, 3", id="two-places"),
        pytest.param("a\na\na\n", ["@@", " a", "-a"], (1, 2), "lines 1, 2", id="overlapping"),
        pytest.param("x\na\nb\na\nb\n", ["@@ x", " a", "-b"], (2, 4), "lines 2, 4", id="both-behind-the-anchor"),
        pytest.param("x\na\nx\na\n", ["@@ x", "-a"], (2, 4), "lines 2, 4", id="anchor-twice"),
        pytest.param(
            "x\na\nx\nb\n", ["@@ x", "+c"], (1, 3), "lines 1, 3", id="added-behind-an-anchor-that-is-there-twice"
        ),
        pytest.param("h\n  a\n  a\nk\n", ["@@ h", "-  a"], (2, 3), "2 (in h), 3 (in h)", id="both-inside"),
        pytest.param("f:\n  a\ng:\n  a\n", ["@@", "-  a"], (2, 4), "2 (in f:), 4 (in g:)", id="says-what-they-are-in"),
        pytest.param("x \ny\nx\t\n", ["@@", "-x"], (1, 3), "lines 1, 3", id="on-a-looser-rung"),
        pytest.param("  x\ny\n    x\n", ["@@", "-x", "+z"], (1, 3), "lines 1, 3", id="on-the-loosest-rung"),
    ],
)
def test_two_places_are_one_too_many(text: str, rows: list[str], lines: tuple[int, ...], words: str):
    found = unplaced(text, *rows)
    told = report(text, *rows)

    assert (found.reason, found.lines, found.complete) == ("ambiguous", lines, True)
    assert "the hunk at line 3 of the patch fits 2 places" in told
    assert words in told
    assert "@@" in told
    assert "Nothing was changed." in told


def test_a_stricter_rung_decides_alone():
    assert patched(b"x \nx\n", "@@", "-x", "+y") == b"x \ny\n"
    assert unplaced("x\n  x\nx\n", "@@", "-x").lines == (1, 3)


@each_row(
    ("text", "rows", "reason", "words"),
    [
        pytest.param("a\nb\n", ["@@", "+c"], "nowhere", "does not say where", id="added-without-a-place"),
        pytest.param(
            "def f(x):\n    pass\n",
            ["@@ def g(x):", "-    pass"],
            "no-anchor",
            "closest text is at line 1",
            id="no-anchor",
        ),
        pytest.param(
            "def f(x):\n    pass\n",
            ["@@ def f", "-    pass"],
            "no-anchor",
            "parts of longer lines",
            id="half-an-anchor",
        ),
        pytest.param(
            "total = price + tax\n", ["@@", "-total = price - tax"], "absent", "closest text is at line 1", id="absent"
        ),
        pytest.param("total = price + tax\n", ["@@", "-total = price"], "absent", "whole lines", id="half-a-line"),
        pytest.param("", ["@@", "-a"], "absent", "The file is empty", id="empty-file"),
        pytest.param("a\nb\n", ["@@", " ", "+x"], "absent", "no empty lines", id="no-empty-line"),
        pytest.param(
            "a\nb\n",
            ["@@", "-b", "@@", "-a"],
            "elsewhere",
            "It fits line 1, but has to stand after line 2",
            id="out-of-order",
        ),
        pytest.param("a\nb\n", ["@@ b", "-a"], "elsewhere", "after its @@ line 'b'", id="before-its-anchor"),
        pytest.param(
            "a\nb\n", ["@@", "-b", "@@ a", "+c"], "elsewhere", "has to stand after line 2", id="anchor-passed"
        ),
        pytest.param(
            "a\nb\n", ["@@", "-a", "*** End of File"], "elsewhere", "at the end of the file", id="not-at-the-end"
        ),
        pytest.param("say “a”\n", ["@@", '-say "a"'], "absent", "U+201C", id="quotes-are-not-the-same"),
        pytest.param("\ta\n  b\n", ["@@", " a", "-b"], "absent", "old text", id="two-shifts"),
        pytest.param(
            "\tif x:\n\t\ty\n",
            ["@@", " if x:", "-  y", "+   z"],
            "unshiftable",
            "fits line 1 but for its indentation",
            id="unshiftable",
        ),
    ],
)
def test_a_hunk_without_a_place_says_why(text: str, rows: list[str], reason: str, words: str):
    assert unplaced(text, *rows).reason == reason
    assert words in report(text, *rows)
    assert "Nothing was changed." in report(text, *rows)


def naive(text: list[str], old: list[str], start: int) -> list[int]:
    return [at for at in range(start, len(text) - len(old) + 1) if text[at : at + len(old)] == old]


@given(LINES, st.data())
def test_what_is_exactly_there_decides_alone(text: list[str], data: st.DataObject):
    assume(text)
    start = data.draw(st.integers(0, len(text) - 1))
    old = text[start : data.draw(st.integers(start + 1, len(text)))]
    found = outcome("".join(f"{line}\n" for line in text), "@@", *(f" {line}" for line in old), "+new")

    places = naive(text, old, 0)
    if len(places) == 1:
        end = "\n".join([*text[: start + len(old)], "new", *text[start + len(old) :], ""])
        assert isinstance(found, Placed)
        assert splice(parse_file("".join(f"{line}\n" for line in text).encode()), found.splices).decode() == end
    else:
        assert isinstance(found, Unplaced)
        assert found.lines == tuple(at + 1 for at in places)


def formed(lines: list[str], end: str, *, closed: bool, encoding: str, mark: bytes) -> bytes:
    text = end.join(lines) + (end if closed and lines else "")
    return mark + text.encode(encoding)


@given(
    LINES,
    LINES,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from([("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16-le", b"\xff\xfe"), ("cp1252", b"")]),
    st.integers(0, 3),
)
def test_a_patch_of_two_texts_makes_the_one_of_the_other(old, new, end, closed, form, context):
    before, after = (formed(side, end, closed=closed, encoding=form[0], mark=form[1]) for side in (old, new))
    assume(before != after and is_sayable(before, after))
    parsed = parse(codex_patch({"f": before}, {"f": after}, context=context))

    assert patched_file(parse_file(before), parsed.sections[0].hunks) == after


def patched_file(file: TextFile, hunks: tuple[Hunk, ...]) -> bytes:
    placed = place(file, hunks)
    assert isinstance(placed, Placed), placed
    assert placed.loose == ()
    return splice(file, placed.splices)


@given(LINES, LINES, st.lists(st.sampled_from(["\n", "\r\n"]), min_size=12, max_size=12), st.booleans())
def test_in_a_mixed_file_every_kept_line_keeps_its_end(old, new, ends, closed):
    assume(old and old != new)
    text = "".join(line + end for line, end in zip(old, ends, strict=False))
    text = text if closed else text.removesuffix(ends[len(old) - 1])
    assume(closed or old[-1])
    before = parse_file(text.encode())
    rows = update(old, new)
    after = patched_file(before, hunks_of(*rows)).decode()

    assert after.replace("\r\n", "\n") == "\n".join(new) + ("\n" if closed and new else "")
    assert set(after.replace("\r\n", "").replace("\n", "")) <= set("".join(new))
    if "\r\n" not in text:
        assert "\r\n" not in after


@given(LINES, LINES)
def test_bytes_outside_of_the_splices_never_change(old, new):
    assume(old != new)
    text = "".join(f"{line}\r\n" if number % 2 else f"{line}\n" for number, line in enumerate(old))
    file = parse_file(text.encode())
    placed = place(file, hunks_of(*update(old, new)))

    assert isinstance(placed, Placed)
    assert [s.start for s in placed.splices] == sorted(s.start for s in placed.splices)
    rest, done = "", 0
    for start, end, part in placed.splices:
        rest += text[done:start] + part
        done = end
    assert splice(file, placed.splices).decode() == rest + text[done:]


def test_a_thousand_hunks_in_a_hundred_thousand_lines_cost_no_more_than_the_two_together():
    lines = [f"line {number}" if number % 10 else "    return None" for number in range(100_000)]
    rows: list[str] = []
    for at in range(50, 100_000, 100):
        rows += ["@@", f" {lines[at - 1]}", f"-{lines[at]}", "+    return 1", f" {lines[at + 1]}"]
    file = parse_file("".join(f"{line}\n" for line in lines).encode())
    hunks = hunks_of(*rows)
    placed = place(file, hunks, limit_steps=10 * len(rows))

    assert len(hunks) == 1000
    assert isinstance(placed, Placed)
    assert len(placed.splices) == 1000


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(["@@", *["-x"] * 500], id="everywhere"),
        pytest.param(["@@", *[" x"] * 500, "-y"], id="nearly-everywhere"),
        pytest.param(["@@ x", *["-x"] * 50], id="behind-an-anchor-that-is-everywhere"),
        pytest.param(["@@ x", "@@ x", "@@ x", "+y"], id="added-behind-anchors-that-are-everywhere"),
    ],
)
def test_a_file_that_repeats_itself_is_given_up_in_time(rows: list[str]):
    file = parse_file(b"x\n" * 50_000)
    found = place(file, hunks_of(*rows), limit_steps=3_000_000)

    assert isinstance(found, Unplaced)
    assert found.reason in ("ambiguous", "repetitive", "absent")
    assert len(found.lines) <= LIMIT_LISTED
    assert "Nothing was changed." in explain_unplaced(file, found, changed_since_read=False)
