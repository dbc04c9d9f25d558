"""What a command has printed, below its row."""

import pytest
from tests.rows import each_row

from ferrule.cli.talk.events import render_output
from ferrule.cli.talk.text import plain, wrap_lines

NUMBERS = "".join(f"{number}\n" for number in range(30))


def shown(output, **more):
    return [plain(row).strip() for row in render_output(output, **more)]


@each_row(
    ("output", "failed", "lines", "rows"),
    [
        pytest.param("\n\n", False, 2, [], id="nothing"),
        pytest.param("one\n\ntwo\n", False, 3, ["one", "", "two"], id="all-of-a-short-one"),
        pytest.param(
            "one\ntwo\n\n\n", False, 4, ["one", "two"], id="blank-lines-at-the-end-are-none-that-are-left-out"
        ),
        pytest.param(NUMBERS, False, 30, ["… 20 more lines", *map(str, range(20, 30))], id="the-end-of-a-long-one"),
        pytest.param(NUMBERS, False, 20_000, ["… 19,990 more lines", *map(str, range(20, 30))], id="true-counts"),
        pytest.param(NUMBERS, True, 30, ["… 10 more lines", *map(str, range(10, 30))], id="more-of-a-failure"),
        pytest.param(
            f"error: bad\n0 errors\n{NUMBERS}",
            True,
            32,
            ["error: bad", "… 11 more lines", *map(str, range(10, 30))],
            id="the-errors-above",
        ),
        pytest.param("a\x1b[2Jb\n", False, 1, ["ab"], id="nothing-steers-the-screen"),
    ],
)
def test_the_last_lines_are_shown_and_of_a_failure_its_errors(output, failed, lines, rows):
    assert shown(output, failed=failed, lines=lines) == rows


def test_the_end_of_a_long_error_is_not_cut_off():
    output = "error: " + "far " * 30 + "end\n" + "fine " * 30 + "\n"
    shown = [plain(row) for row in wrap_lines(render_output(output + NUMBERS, failed=True), 60)]
    below = [plain(row) for row in wrap_lines(render_output(output, failed=True), 60)]

    assert " ".join(shown).split()[:32] == ["error:", *["far"] * 30, "end"]
    assert shown[-1].strip() == "29"
    assert below[-1].endswith("fine …")
    assert max(map(len, shown + below)) <= 60


def test_errors_are_red_wherever_they_stand():
    styles = [row[0][0] for row in render_output("fine\nerror: bad\n", failed=True)]

    assert styles == ["dim", "red"]
