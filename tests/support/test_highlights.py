"""Which lines of a long output matter, and how few of many are held."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.system.highlights import (
    HEAD,
    Highlight,
    Highlights,
    OutputHighlights,
    block,
    gap,
    insert_highlights,
    together,
    weight,
)
from tests.rows import each_row

DATA = Path(__file__).parent.parent / "data"


@each_row(
    ("line", "expected"),
    [(row[2:], int(row[0])) for row in (DATA / "output_lines.txt").read_text("utf-8").splitlines()],
)
def test_a_line_matters_as_the_usual_tools_mean_it(line: str, expected: int) -> None:
    found = Highlights()
    found.feed(f"before\n{line}\nafter\n")

    assert weight(line) == expected
    assert [one.line for one in found.collect().lines] == ([2] if expected else [])


LINE = st.sampled_from(["plain", "error: a", "warning: b", "3 passed", ""]) | st.text(max_size=5)
LINES = st.lists(LINE, max_size=60)


@given(LINES, st.lists(st.integers(1, 7)))
def test_however_the_output_is_cut_into_pieces_the_same_lines_are_found(lines: list[str], sizes: list[int]) -> None:
    text = "\n".join(line.replace("\n", "") for line in lines)
    pieces, at = [], 0
    for size in sizes:
        pieces.append(text[at : at + size])
        at += size
    pieced, whole = Highlights(), Highlights()
    for piece in (*pieces, text[at:]):
        pieced.feed(piece)
        pieced._flush()  # as if each had been much
    whole.feed(text)

    assert pieced.collect() == whole.collect()
    assert whole.collect().newlines == text.count("\n")
    for one in whole.collect().lines:
        assert text.split("\n")[one.line - 1].strip() == one.text


def test_of_very_many_lines_the_first_and_the_last_are_held() -> None:
    found = Highlights()
    for number in range(1, 100_001):
        found.feed(f"error: {number}\n")
    held = [one.line for one in found.collect().lines]

    assert len(held) < 100
    assert (held[0], held[-1]) == (1, 100_000)


def test_behind_much_output_only_the_end_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.system.highlights._COUNTED_CHARS", 50_000)
    monkeypatch.setattr("ferrule.system.highlights._RECENT_CHARS", 1000)
    found = Highlights()
    for number in range(200_000):
        found.feed("error: in the middle\n" if number == 100_000 else f"{number}\n")
    found.feed("error: at the end\n")

    assert found.collect() == OutputHighlights([Highlight(3, 0, "error: at the end")], None)
    just_behind = Highlights()
    for text in ("1\n" * 25_001, "2\n", "error: late\n"):
        just_behind.feed(text)
    assert just_behind.collect() == OutputHighlights([Highlight(3, 0, "error: late")], None)
    assert block(found.collect().lines, [], chars=200) == f"{HEAD}\nlater: error: at the end"


def test_behind_very_many_such_lines_the_end_is_looked_at_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.system.highlights._WEIGHED", 10)
    monkeypatch.setattr("ferrule.system.highlights._WAITING_CHARS", 100)
    found = Highlights()
    for number in range(1, 5001):
        found.feed(f"error: {number}\n")
    found.feed("error: the last")

    *_, before, last = found.collect("!").lines
    assert (before, last) == (Highlight(3, 5000, "error: 5000"), Highlight(3, 5001, "error: the last!"))
    assert found.collect().newlines == 5000


def test_what_is_shown_is_not_said_again_and_a_line_only_once() -> None:
    lines = [Highlight(3, at, text) for at, text in enumerate(("error: a", "error: b", "error: b", "error: c"), 1)]

    assert block(lines, ["x", "  error: c"], chars=500) == f"{HEAD}\n1: error: a\n2: error: b"
    assert block(lines, ["error: a", "error: b", "error: c"], chars=500) == ""
    assert block(lines, [], chars=len(HEAD) + 3) == ""


def test_the_second_end_gives_the_room() -> None:
    text = f"{'a' * 500}{gap(9)}{'b' * 500}"
    found = OutputHighlights([Highlight(3, 7, "error: x")], 20)
    out = insert_highlights(text, 9, lambda: found)

    assert len(out) == len(text)
    assert out == f"{'a' * 500}{gap(9)}{HEAD}\n7: error: x\n\n{'b' * (500 - len(HEAD) - len('7: error: x') - 3)}"
    assert insert_highlights(text, 0, lambda: found) == text


def test_errors_that_are_kept_apart_are_said_to_be_errors() -> None:
    assert together(
        [OutputHighlights([Highlight(1, 2, "warning: a")], 3), OutputHighlights([Highlight(3, 1, "error: b")], 4)]
    ) == OutputHighlights([Highlight(1, 2, "warning: a"), Highlight(3, 1, "stderr: error: b")], 7)
