"""The match ladder: one place or all of them, nothing changed around them, and no guess between places."""

import re
import textwrap

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.files.match import Ambiguous, EditMatch, Missing, find
from ferrule.files.text import Splice, TextFile, parse, splice

ENDS = st.sampled_from(["\n", "\r\n"])
BLANKS = st.sampled_from(["", "", " ", "\t", "  "])
WORDS = st.sampled_from(["a", "b", "aa", "ab", "", "é", "x\ry", "}", "foo", "bar baz"])
SNIPPETS = st.text(st.sampled_from("ab \t\r\n}"), max_size=8)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, str]:
    """A short text in which much repeats, and an old text that was cut out of it and then perhaps loosened."""
    count = draw(st.integers(0, 6))
    text = "".join(draw(BLANKS) + draw(WORDS) + draw(BLANKS) + draw(ENDS) for _ in range(count))
    text += draw(BLANKS) + draw(WORDS)
    start = draw(st.integers(0, len(text)))
    old = text[start : draw(st.integers(start, len(text)))] or draw(SNIPPETS.filter(bool))
    if draw(st.booleans()):
        old = old.replace("\r\n", "\n")
    if draw(st.booleans()):
        old = "\n".join(line.rstrip(" \t") + draw(BLANKS) for line in old.split("\n")) or "a"
    return text, old


def text_file(text: str) -> TextFile:
    return parse(text.encode())


def edited(text: str, old: str, new: str, *, everywhere: bool = False) -> str:
    file = text_file(text)
    outcome = find(file, old, new, everywhere=everywhere)
    assert isinstance(outcome, EditMatch), outcome
    return splice(file, outcome.splices).decode()


def occurrences(text: str, old: str) -> list[int]:
    """Where `old` stands, overlapping, without halves of CR LF; written with patterns, unlike the ladder."""
    starts = [match.start() for match in re.finditer(f"(?={re.escape(old)})", text)]
    half = {match.start() + 1 for match in re.finditer("\r\n", text)}
    return [start for start in starts if start not in half and start + len(old) not in half]


def unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def unblanked(text: str) -> str:
    return re.sub(r"[ \t]+$", "", unix(text), flags=re.MULTILINE)


@given(cases(), SNIPPETS, st.booleans())
@example(("a  \nb  \nb  \n", "   \nb   "), "x", True)
def test_bytes_outside_of_the_places_never_change(case: tuple[str, str], new: str, everywhere: bool):
    text, old = case
    file = text_file(text)
    outcome = find(file, old, new, everywhere=everywhere)
    if not isinstance(outcome, EditMatch):
        return
    raw = splice(file, outcome.splices)

    kept, done = [], 0
    for start, end, _ in outcome.splices:
        kept.append(text[done:start].encode())
        done = end
    kept.append(text[done:].encode())
    assert raw.startswith(kept[0])
    assert raw.endswith(kept[-1])
    assert len(raw) == sum(map(len, kept)) + sum(len(part.new.encode()) for part in outcome.splices)


@given(cases(), SNIPPETS)
def test_only_one_place_is_ever_found_unless_everywhere_is_meant(case: tuple[str, str], new: str):
    text, old = case
    outcome = find(text_file(text), old, new, everywhere=False)

    match outcome:
        case EditMatch():
            assert len(outcome.lines) == 1
            assert len(outcome.splices) <= 1
        case Ambiguous():
            assert len(outcome.lines) > 1
            assert list(outcome.lines) == sorted(outcome.lines)


@given(cases(), SNIPPETS)
@example(("a\r\nb", "\n"), "x")
@example(("aaa", "aa"), "x")
@example(("a\r\n", "a\r"), "x")
def test_what_is_exactly_there_decides_alone(case: tuple[str, str], new: str):
    text, old = case
    starts = occurrences(text, old)
    outcome = find(text_file(text), old, new, everywhere=False)

    if len(starts) == 1:
        assert isinstance(outcome, EditMatch)
        assert outcome.rung == "exact"
    elif starts:
        mark = "\n" if "\n" in text else "\r"
        assert outcome == Ambiguous("exact", tuple(text.count(mark, 0, start) + 1 for start in starts))
    else:
        assert isinstance(outcome, Missing) or outcome.rung != "exact"


@given(cases(), st.text(st.sampled_from("ab$\\ \t{}&"), max_size=6))
def test_a_unique_exact_text_is_plainly_replaced(case: tuple[str, str], new: str):
    text, old = case
    if not len(occurrences(text, old)) == 1 == text.count(old):
        return

    assert edited(text, old, new).encode() == text.encode().replace(old.encode(), new.encode())


@given(cases(), SNIPPETS.map(lambda new: new.replace("\r", "")))
def test_a_loose_place_reads_as_if_the_looseness_were_not_there(case: tuple[str, str], new: str):
    text, old = (part.replace("x\ry", "xy") for part in case)
    file = text_file(text)
    outcome = find(file, old, new, everywhere=False)
    if not isinstance(outcome, EditMatch) or outcome.rung not in {"line-endings", "trailing-blanks"}:
        return
    simple = unix if outcome.rung == "line-endings" else unblanked
    *_, last = unix(old).split("\n")
    stop = r"(?=\n|\Z)" if simple(last) != last else ""
    starts = [match.start() for match in re.finditer(f"(?={re.escape(simple(old))}{stop})", simple(text))]
    # At its edges a text may stand inside a line, where the file keeps its own blanks.
    new = f"{unix(old).split(chr(10))[0]}\n{new}\n{last}"
    outcome = find(file, old, new, everywhere=False)
    assert isinstance(outcome, EditMatch)

    start = starts.pop()
    assert not starts
    expected = simple(text)[:start] + simple(new) + simple(text)[start + len(simple(old)) :]
    assert simple(splice(file, outcome.splices).decode()) == simple(expected)


@given(st.lists(st.sampled_from(["a", "b", "  c ", "", "d\t"]), min_size=2, max_size=8), st.data())
def test_a_crlf_file_edited_with_lf_text_stays_crlf(lines: list[str], data: st.DataObject):
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start + 1, len(lines)))
    old = "\n".join(lines[start:end])
    new = data.draw(st.lists(st.sampled_from(["x", "", "y "]), max_size=4).map("\n".join))
    text = "\r\n".join(lines) + "\r\n"
    file = text_file(text)
    outcome = find(file, old, new, everywhere=True)
    if not isinstance(outcome, EditMatch):
        return

    assert not re.search(r"\r(?!\n)|(?<!\r)\n", splice(file, outcome.splices).decode())


@given(cases())
def test_an_edit_can_be_taken_back_by_the_opposite_edit(case: tuple[str, str]):
    text, old = case
    text, old = text.replace("\r", ""), old.replace("\r", "") or "a"
    file = text_file(text)
    outcome = find(file, old, "<unique>", everywhere=False)
    if not isinstance(outcome, EditMatch) or outcome.rung != "exact":
        return

    assert edited(edited(text, old, "<unique>"), "<unique>", old) == text


@given(cases(), st.sampled_from(["<1>", "<1>\n<2>\n", "\n<1>"]), st.booleans())
def test_the_reported_lines_hold_the_new_text(case: tuple[str, str], new: str, everywhere: bool):
    # A lone CR ends lines once the last LF is gone; that is not the question here.
    text, old = (part.replace("x\ry", "xy") for part in case)
    file = text_file(text)
    outcome = find(file, old, new, everywhere=everywhere)
    if not isinstance(outcome, EditMatch):
        return
    lines = unix(splice(file, outcome.splices).decode()).split("\n")

    for first, last in outcome.lines:
        assert "<1>" in "".join(lines[first - 1 : last])
        assert last - first == new.rstrip("\n").count("\n")


BODY = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["a()", "b = 1", "if c:", "return d", ""])), min_size=1, max_size=7
).filter(lambda lines: any(text for _, text in lines))


def block(lines: list[tuple[int, str]], unit: str) -> str:
    return "".join(unit * level + text + "\n" if text else "\n" for level, text in lines)


@given(BODY, BODY, st.sampled_from(["  ", "    ", "\t", "   "]), st.integers(1, 3))
def test_a_shift_carries_the_new_text_along(old: list[tuple[int, str]], new: list[tuple[int, str]], unit: str, by: int):
    deep = textwrap.indent(block(old, unit), unit * by)
    text = f"<begin>\n{deep}<end>\n"
    file = text_file(text)
    outcome = find(file, block(old, unit), block(new, unit), everywhere=False)
    if not isinstance(outcome, EditMatch) or outcome.rung != "indentation":
        return

    expected = f"<begin>\n{textwrap.indent(block(new, unit), unit * by)}<end>\n"
    assert splice(file, outcome.splices).decode() == expected
    back = find(
        text_file(f"<begin>\n{block(old, unit)}<end>\n"),
        deep,
        textwrap.indent(block(new, unit), unit * by),
        everywhere=False,
    )
    if isinstance(back, EditMatch):
        plain = text_file(f"<begin>\n{block(old, unit)}<end>\n")
        assert splice(plain, back.splices).decode() == f"<begin>\n{block(new, unit)}<end>\n"


@given(BODY, BODY, st.sampled_from([2, 4, 8]), st.integers(0, 2), st.booleans())
def test_tabs_for_spaces_carry_the_new_text_along(
    old: list[tuple[int, str]], new: list[tuple[int, str]], width: int, by: int, file_has_tabs: bool
):
    mine, theirs = (" " * width, "\t") if file_has_tabs else ("\t", " " * width)
    text = f"<begin>\n{textwrap.indent(block(old, theirs), theirs * by)}<end>\n"
    file = text_file(text)
    outcome = find(file, block(old, mine), block(new, mine), everywhere=False)
    levels = {level for level, line in old if line}
    assume(len(levels) > 1 or (by == 0 and all(level in levels for level, line in new if line)))

    assert isinstance(outcome, EditMatch)
    expected = f"<begin>\n{textwrap.indent(block(new, theirs), theirs * by)}<end>\n"
    assert splice(file, outcome.splices).decode() == expected


@each_row(
    ("text", "old", "new", "expected"),
    [
        pytest.param(
            "\tf(\n\t\ta,\n\t)\n", "f(\n    a,\n)\n", "f(\n    b,\n)\n", "\tf(\n\t\tb,\n\t)\n", id="deeper-with-tabs"
        ),
        pytest.param(
            "\ta\n\tb\n",
            "    a\n    b\n",
            "    if a:\n        b\n",
            "\tif a:\n\t\tb\n",
            id="one-level-of-spaces-shown-by-the-new-text",
        ),
        pytest.param(
            "if x:\n  a\n  b\n",
            "\ta\n\tb\n",
            "\tif a:\n\t\tb\n",
            "if x:\n  if a:\n    b\n",
            id="one-level-of-tabs-shown-by-the-file",
        ),
        pytest.param(
            "\t/*\n\t * a\n\t */\n",
            "    /*\n     * a\n     */\n",
            "    /*\n     * b\n     * c\n     */\n",
            "\t/*\n\t * b\n\t * c\n\t */\n",
            id="comments-aligned-behind-tabs",
        ),
        pytest.param(
            "  a\n\n  b\n", "a\n   \nb", "a\n\nx\n \nb", "  a\n\n  x\n\n  b\n", id="blank-lines-have-no-indentation"
        ),
        pytest.param(
            "    a \r\n    b\r\n",
            "a\nb\n",
            "a\nx\nb\n",
            "    a \r\n    x\r\n    b\r\n",
            id="with-other-line-ends-and-trailing-blanks",
        ),
        pytest.param("  a\n  b", "a\nb", "a\nx", "  a\n  x", id="no-newline-at-the-end-of-the-file"),
        pytest.param("  a\n  b\n  c\n", "a\nb\n", "", "  c\n", id="whole-lines-taken-out"),
        pytest.param("  a\n  b  \n  c\n", "a\nb", "", "\n  c\n", id="lines-emptied"),
        pytest.param("\t\ta\n\t\tb\n", "\ta\n\tb\n", "\ta\n\t\tx\n\tb\n", "\t\ta\n\t\t\tx\n\t\tb\n", id="tabs-deeper"),
        pytest.param(
            "a\nb\n",
            "    a\n    b\n",
            "    a\n        x\n    b\n",
            "a\n    x\nb\n",
            id="a-file-without-any-indentation",
        ),
        pytest.param(
            "x:\n  y\na\nb\n",
            "    a\n    b\n",
            "    a\n      c\n    b\n",
            "x:\n  y\na\n  c\nb\n",
            id="kind-known-from-the-rest-of-the-file",
        ),
    ],
)
def test_indentation_is_the_files(text: str, old: str, new: str, expected: str):
    assert edited(text, old, new) == expected


@each_row(
    ("text", "old", "new"),
    [
        pytest.param("a\n  b\n", "  a\n    b\n", "x\n  a\n    b\n", id="left-of-the-margin"),
        pytest.param("\ta\n\tb\n", "a\nb\n", "a:\n    b\n", id="spaces-of-unknown-width-among-tabs"),
        pytest.param("  a\n  b\n", "a\nb\n", "a:\n\tb\n", id="tabs-among-spaces"),
        pytest.param(
            "\t\ta\n\t\tb\n", "    a\n    b\n", "    if a:\n        b\n", id="one-level-deeper-or-half-as-wide"
        ),
        pytest.param("  x\n    a\n    b\n", "\ta\n\tb\n", "\tif a:\n\t\tb\n", id="a-tab-for-two-levels-of-the-file"),
        pytest.param("\tx\n  y\na\nb\n", "    a\n    b\n", "    if a:\n      b\n", id="a-file-with-both-kinds"),
        pytest.param("\ta\n\t\tb\n", "    a\n        b\n", "    a\n      c\n", id="half-a-level"),
        pytest.param("x:\n\ty\na\nb\n", "    a\n    b\n", "    a\n        c\n", id="spaces-in-a-file-with-tabs"),
    ],
)
def test_new_text_that_cannot_be_shifted_is_refused(text: str, old: str, new: str):
    assert find(text_file(text), old, new, everywhere=False) == Missing("unshiftable")


@each_row(
    ("text", "old"),
    [
        pytest.param("  a\n   b\n", "a\n  b\n", id="two-shifts"),
        pytest.param("  a\n  b\n", "a\n b\n", id="levels-joined"),
        pytest.param("\ta\n\t\tb\n", "  a\n      b\n", id="two-widths"),
        pytest.param("\ta\n    b\n", "  a\n  b\n", id="two-kinds"),
        pytest.param("  a\n  b", "a\nb\n", id="a-final-newline-that-is-not-there"),
        pytest.param("  a\n  bc\n", "a\nb", id="half-a-line"),
        pytest.param("  \n\n", "\n    \n", id="nothing-but-blanks"),
        pytest.param("\n\n", " \n", id="a-blank-line"),
        pytest.param("a b\n", "a \n", id="trailing-blanks-inside-a-line"),
    ],
)
def test_what_no_single_shift_explains_is_a_miss(text: str, old: str):
    assert find(text_file(text), old, "x\n", everywhere=False) == Missing()


@each_row(
    ("text", "old", "new", "expected"),
    [
        pytest.param("a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n", id="spelled-out-ends-are-literal"),
        pytest.param("a\nb\nc\n", "a\nb\n", "a\r\nb\r\n", "a\r\nb\r\nc\n", id="and-the-other-way-round"),
        pytest.param("a\nb\nc\n", "a\nb\n", "a\r\nB\r\n", "a\nB\nc\n", id="but-not-with-another-change"),
        pytest.param("a\r\nb\r\n", "\r\nb", "\nb", "a\nb\r\n", id="so-a-file-can-be-converted"),
        pytest.param("a\rb\r\nc", "a\rb", "a\nb", "a\r\nb\r\nc", id="a-cr-that-ends-no-line-says-nothing-of-ends"),
        pytest.param("a\n", "a", "a\r\nb", "a\nb\n", id="crlf-in-the-new-text-of-an-lf-file"),
        pytest.param("a", "a", "a\r\nb\n", "a\nb\n", id="no-line-end-in-the-file"),
        pytest.param("a\rb", "b", "x\ny\r\nz", "a\rx\ry\rz", id="a-file-with-cr"),
        pytest.param(
            "a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nx\nc\ny\n", "a\r\nx\nc\r\ny\n", id="each-line-keeps-its-end"
        ),
        pytest.param("a\r\nb\nc", "a\nb\nc", "x\ny\nz\nu", "x\r\ny\nz\nu", id="further-lines-take-the-last-end"),
        pytest.param(
            "a\nb\r\nc\n", "b\nc", "b\nnew\nc", "a\nb\r\nnew\r\nc\n", id="an-inserted-line-takes-the-end-before-it"
        ),
        pytest.param(
            "a \nb  \nc\t\n", "a\nb\nc\n", "x\nb\ny\n", "x\nb  \ny\n", id="an-equal-line-in-the-middle-keeps-its-blanks"
        ),
        pytest.param("a\n \na", "a\n\na", "x\ny\n", "x\ny\n", id="an-empty-end-is-not-a-blank-line"),
        pytest.param("a  \nb  c\n", "a\nb", "a\nx", "a  \nx  c\n", id="ends-inside-a-line"),
        pytest.param("a  \nb  \n", "a\nb", "a\nx", "a  \nx  \n", id="blanks-behind-the-text-stay"),
        pytest.param("a  \nb  \n", "a\nb ", "a\nx", "a  \nx\n", id="blanks-that-the-text-has-go"),
        pytest.param("u  \na\t\n", "\na\n", "\nx\n", "u  \nx\n", id="blanks-before-the-text-stay"),
        pytest.param("a\x0b\nb\u2028c\n", "b\u2028c", "x", "a\x0b\nx\n", id="nothing-else-ends-a-line"),
    ],
)
def test_line_ends_and_blanks_are_the_files(text: str, old: str, new: str, expected: str):
    assert edited(text, old, new) == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        pytest.param("aaaa", "aa", "b", "bb", id="places-do-not-overlap"),
        pytest.param("a\r\na\r\n", "a\n", "b\n", "b\r\nb\r\n", id="line-endings"),
        pytest.param("a \nb\na\t\nb\n", "a\nb", "a\nx", "a \nx\na\t\nx\n", id="trailing-blanks"),
        pytest.param("  a\n    b\n\ta\n\t  b\n", "a\n  b\n", "c\n", "  c\n\tc\n", id="each-place-with-its-own-shift"),
        pytest.param("  a\n  a\n", "a\n", "b\n", "  b\n  b\n", id="neighbours"),
        pytest.param("    a\n  a\n", "      a\n", "      b\n", "    b\n  b\n", id="shifted-neighbours"),
        pytest.param("a  \nb  \nb  \n", "   \nb   ", "   \nx", "a  \nx\nx\n", id="neighbours-with-blanks-between"),
    ],
)
def test_everywhere_takes_every_place_of_the_first_rung_that_has_one(text: str, old: str, new: str, expected: str):
    assert edited(text, old, new, everywhere=True) == expected


@pytest.mark.parametrize(
    ("text", "old", "new", "lines"),
    [
        pytest.param("a\nb\nc\n", "b", "x", (2, 2), id="one-line"),
        pytest.param("a\nb\nc\n", "b\n", "x\ny\n", (2, 3), id="whole-lines"),
        pytest.param("a\nb\nc\n", "b\n", "", (2, 2), id="taken-out"),
        pytest.param("a\nb\n", "b\n", "", (1, 1), id="taken-out-at-the-end"),
        pytest.param("a\n", "a\n", "", (1, 1), id="everything-taken-out"),
        pytest.param("a \nb\nc\n", "a\nb\nc", "a\nx\nc", (1, 3), id="the-whole-place-though-only-its-middle-changes"),
    ],
)
def test_the_lines_of_the_new_text_are_told(text: str, old: str, new: str, lines: tuple[int, int]):
    outcome = find(text_file(text), old, new, everywhere=False)

    assert isinstance(outcome, EditMatch)
    assert outcome.lines == (lines,)


def test_an_edit_that_is_only_loosely_another_text_changes_nothing():
    assert find(text_file("a\nb\n"), "a \nb", "a\nb", everywhere=False) == EditMatch("trailing-blanks", (), ((1, 2),))


def test_a_loose_place_is_narrowed_to_what_changes():
    outcome = find(text_file("a  \nb\nc\t\n"), "a\nb\nc", "a\nx\nc", everywhere=False)

    assert outcome == EditMatch("trailing-blanks", (Splice(4, 6, "x\n"),), ((1, 3),))


def test_an_empty_old_text_has_no_place():
    assert find(text_file("a"), "", "b", everywhere=True) == Missing("empty")


# These take seconds; were any of the steps quadratic, they would take hours.
@pytest.mark.parametrize(
    ("text", "old", "everywhere", "rung", "reason"),
    [
        pytest.param("\n" * 1_000_000, "\n" * 10_000 + "x", False, None, "absent", id="blank-lines-then-a-word"),
        pytest.param("\n" * 1_000_000, "\n" * 10_000, False, "exact", None, id="blank-lines"),
        pytest.param("\r\n" * 1_000_000, "\n" * 10_000, False, "line-endings", None, id="blank-lines-with-crlf"),
        pytest.param("\r\n" * 1_000_000, "\n\r" * 5_000 + "\n", False, None, "repetitive", id="halves-of-crlf"),
        pytest.param("  x\n" * 500_000, "x\n" * 10_000, False, "indentation", None, id="equal-lines"),
        pytest.param(
            "  x\n x\n" * 250_000, "x\n" * 10_000, False, None, "repetitive", id="lines-that-no-shift-explains"
        ),
        pytest.param(
            ("  x\n" * 9_999 + " x\n") * 50, "x\n" * 10_000, True, None, "repetitive", id="or-only-at-the-end"
        ),
        pytest.param("a" * 5_000_000, "a" * 1_000_000, False, "exact", None, id="one-letter"),
        pytest.param("a" * 2_000_000, "a", True, None, "repetitive", id="more-places-than-an-edit-has"),
        pytest.param("a" + " " * 5_000_000 + "b", "a\nb", False, None, "absent", id="a-long-run-of-blanks"),
    ],
)
def test_repetitive_texts_end_in_good_time(text: str, old: str, everywhere: bool, rung: str | None, reason: str | None):
    outcome = find(text_file(text), old, "y", everywhere=everywhere)

    if isinstance(outcome, Missing):
        assert outcome.reason == reason
    else:
        assert isinstance(outcome, Ambiguous)
        assert outcome.rung == rung
        assert not outcome.complete


def test_many_places_on_one_long_line_are_cheap():
    assert edited("ab" * 200_000, "a", "\n", everywhere=True) == "\nb" * 200_000


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        pytest.param("a\r\nb\r\nc\r\n", "a\r\nb\r\n", "A\nB\n", "A\r\nB\r\nc\r\n", id="spelled-in-old-alone"),
        pytest.param("a\r\nb\r\nc\r\n", "a\r\nb\r\n", "a\nb\n", "a\nb\nc\r\n", id="nothing-but-line-ends"),
        pytest.param("a\nb\r\nc\n", "a\nb\r\nc", "A\nB\nC\nD", "A\nB\r\nC\r\nD\n", id="mixed"),
        pytest.param("a\r\nb\r\n", "a\r\n", "x\ny\n", "x\r\ny\r\nb\r\n", id="more-lines"),
        pytest.param("a\rb\r", "a\rb", "A\nB", "A\rB\r", id="old-macs"),
    ],
)
def test_line_ends_are_meant_only_where_nothing_else_changes(text, old, new, expected):
    assert edited(text, old, new) == expected
