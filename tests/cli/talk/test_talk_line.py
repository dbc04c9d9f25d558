"""Lines: cut and wrapped by columns, painted, and never able to steer the screen."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ferrule.cli.talk import text as module
from ferrule.cli.talk.text import (
    BLANK,
    Spaced,
    UnbrokenLine,
    cut,
    diff_lines,
    fit_line,
    harmless,
    line,
    paint_lines,
    plain,
    rows_of,
    sentence,
    whole_rows,
    wide,
    wrap_lines,
    wrap_text,
)

TEXTS = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=60)


@given(TEXTS, st.integers(1, 30))
def test_what_is_cut_fits(text, width):
    assert wide(cut(text, width)) <= width


@given(TEXTS, st.integers(2, 30))
def test_what_is_wrapped_fits_and_loses_nothing_but_blanks(text, width):
    rows = wrap_text(text, width)

    assert all(wide(row) <= width for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("parts", "width", "shown"),
    [
        pytest.param(["ab", ("give", "cdefghijklmnop"), "yz"], 14, "abcdefghijk…yz", id="what-gives-way-is-cut-first"),
        pytest.param(["ab", ("give", "cdefghijklmnop"), "wxyz"], 8, "abcdefg…", id="but-some-of-it-stays"),
        pytest.param(["ab", "cd"], 3, "ab…", id="the-last-is-cut"),
        pytest.param(["日本語"], 5, "日本…", id="wide-characters"),
        pytest.param(["ab"], 2, "ab", id="it-fits"),
    ],
)
def test_a_line_is_fitted(parts, width, shown):
    assert plain(fit_line(line(*parts), width)) == shown


@pytest.mark.parametrize(
    ("row", "rows"),
    [
        pytest.param("47 + one two 48 - three", ["47 + one two 48", "     - three"], id="below-its-text"),
        pytest.param("+one two three four", ["+one two three", " four"], id="without-a-number"),
        pytest.param("one two three four", ["one two three", "four"], id="no-diff"),
        pytest.param("12 + " + "x" * 13, ["12 + " + "x" * 10, "     xxx"], id="a-long-word"),
    ],
)
def test_the_rest_of_a_long_row_of_a_diff_does_not_look_like_another_row(row, rows):
    assert [plain(one) for one in whole_rows([row], "  ", 18)] == [f"  {one}" for one in rows]


def test_a_whole_line_breaks_at_blanks_that_leave_no_gap_in_its_next_row():
    whole = UnbrokenLine(line("one two three", ("dim", "  four")))
    rows = [plain(row) for row in wrap_lines([whole], 13)]

    assert rows == ["one two three", "      four"]


@given(TEXTS, st.integers(14, 40))
def test_a_sentence_takes_as_many_rows_as_it_needs(text, width):
    assume(wide(plain(line(text))) < 50)  # written out, a text may take more rows than a sentence gets
    rows = [plain(row) for row in wrap_lines([sentence(("red", "  ✗ "), f"{text}.")], width)]

    assert all(wide(row) <= width for row in rows)
    assert all(row.startswith("    ") for row in rows[1:])
    assert "".join("".join(rows).split()) == "".join(plain(line(f"✗{text}.")).split())


def test_a_sentence_without_end_is_cut_behind_twelve_rows():
    rows = [plain(row) for row in wrap_lines([sentence("  " + "word " * 500)], 40)]

    assert len(rows) == 12
    assert rows[-1].endswith("…")
    assert all(row.startswith("  word") and wide(row) <= 40 for row in rows)


def test_a_line_is_one_line_and_steers_nothing():
    assert plain(line("a\nb\tc\x1b[2Jd\x07\u202e")) == "a b    cd"


@pytest.mark.parametrize(
    ("colour", "steer", "text"),
    [
        pytest.param(True, True, "\x1b[1;31mx\x1b[0m\n", id="colour"),
        pytest.param(False, True, "\x1b[1mx\x1b[0m\n", id="no-colour"),
        pytest.param(False, False, "x\n", id="dumb"),
    ],
)
def test_a_line_is_painted_as_the_terminal_wants_it(colour, steer, text):
    assert paint_lines([line(("bold red", "x"))], colour=colour, steer=steer) == text


def test_only_colour_passes():
    assert harmless("\x1b[31ma\x1b[0m\x1b[2J\x1b]0;x\x07\x1b[?1049hb\x01") == "\x1b[31ma\x1b[0mb"


def test_parts_stay_whole_in_several_rows():
    parts = [line("Allow?"), line(" [y]es"), line(" [a]lways"), line(" [n]o")]

    assert [plain(row) for row in rows_of(parts, 14, "  ")] == ["Allow? [y]es", "   [a]lways", "   [n]o"]


def test_blank_lines_do_not_follow_each_other():
    spaced, one = Spaced(), line("x")

    assert spaced.rows([one, BLANK, BLANK]) == [one, BLANK]
    assert spaced.rows([BLANK, one]) == [one]
    spaced.wrote("text\n\n")
    assert spaced.rows([BLANK, one]) == [one]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("می‌خواهم", "می‌خواهم", id="a-word-that-is-written-with-a-joiner"),
        pytest.param("👩\u200d👧", "👩\u200d👧", id="an-emoji-of-two"),
        pytest.param("rm\u200d -r", "rm\\u200d -r", id="hidden-in-a-command"),
        pytest.param("é\u200d\u200dé", "é\\u200d\\u200dé", id="more-than-one"),
        pytest.param("日\u200b本", "日\\u200b本", id="no-joiner"),
    ],
)
def test_joiners_stay_where_they_belong(text, shown):
    assert plain(line(text)) == shown


def test_a_word_without_end_is_measured_once(monkeypatch):
    measured = []

    def counting(text):
        measured.append(len(text))
        return wide(text)

    monkeypatch.setattr(module, "wide", counting)

    assert len(wrap_text("x" * 50_000, 50)) == 1000
    assert sum(measured) < 200_000


@pytest.mark.parametrize(
    ("rows", "apart"),
    [
        pytest.param(["4 - return a - b", "4 + return a + b"], ["-", "+"], id="numbered"),
        pytest.param(["-return a - b", "+return a + b"], ["-", "+"], id="plain"),
        pytest.param(["- one = 1", "- two = 2", "+ one = 3", "+ two = 4"], ["1", "2", "3", "4"], id="line-by-line"),
        pytest.param(["- one = 1", "+ one = 3", "+ two = 4"], [], id="not-as-many"),
        pytest.param(["-import os", "+x = [y for y in z]"], [], id="nothing-in-common"),
        pytest.param(["+only new", " same"], [], id="no-pair"),
    ],
)
def test_the_words_of_a_changed_line_that_differ_stand_out(rows, apart):
    lines = diff_lines(rows)

    assert [plain(one) for one in lines] == [f"    {row}" for row in rows]
    assert [text for one in lines for style, text in one if "reverse" in style] == apart
    assert [text for one in whole_rows(rows, "", 80) for style, text in one if "reverse" in style] == apart
