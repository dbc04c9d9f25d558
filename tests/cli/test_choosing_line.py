"""What a model asks a person, answered by numbers or in own words."""

import json
import os
import pty
import sys
import time

import pytest
from tests.rows import each_row

from ferrule.cli.prompts import choose
from ferrule.core.services import Choice, Option
from ferrule.permissions import Question

COLOURS = (Option("Red", "warm"), Option("Blue"))
ONE = Choice(question="Which?", header="Pick", options=COLOURS)
SOME = Choice(question="Some?", options=(*COLOURS, Option("Green")), multiple=True)
TEXT = Choice(question="Why?", id="why", kind="text", placeholder="a word")
SURE = Choice(question="Sure?", kind="yesno", options=(Option("Yes"), Option("No")))
NUMBERS = Choice(question="How many?", options=(Option("2"), Option("4"), Option("0")), multiple=True)
FIXED = Choice(question="Fixed?", options=COLOURS, free=False)


async def chosen(choices, *lines):
    """The answer, and all that was shown."""
    shown: list[str] = []
    typed = iter(lines)

    async def line(offer):
        shown.append(offer)
        return next(typed, None)

    question = Question(kind="choose", call_id="1", name="x", summary="x asks", touches=(), choices=tuple(choices))
    return await choose(question, shown.append, line), shown


@each_row(
    ("choice", "lines", "value"),
    [
        pytest.param(ONE, ["2"], "Blue", id="number"),
        pytest.param(ONE, ["blue"], "Blue", id="name"),
        pytest.param(ONE, ["something else"], "something else", id="own-words"),
        pytest.param(ONE, ["0", "my own"], "my own", id="own-words-asked-for"),
        pytest.param(ONE, ["0", "", "1"], "Red", id="no-words-after-all"),
        pytest.param(ONE, ["0", "7"], "7", id="a-number-as-own-words"),
        pytest.param(
            ONE,
            [
                "3",
                "-1",
            ],
            "-1",
            id="not-a-number-of-theirs",
        ),
        pytest.param(ONE, ["1,2"], "1,2", id="one-only"),
        pytest.param(SOME, ["1, 3"], ["Red", "Green"], id="several"),
        pytest.param(SOME, ["3,1,3,"], ["Green", "Red"], id="in-this-order-and-once"),
        pytest.param(SOME, ["2,0", "and more"], ["Blue", "and more"], id="several-and-own-words"),
        pytest.param(SOME, ["1,9", "2"], ["Blue"], id="several-and-one-too-many"),
        pytest.param(SOME, [",", "2"], [","], id="a-comma"),
        pytest.param(TEXT, ["0"], "0", id="text"),
        pytest.param(SURE, ["y"], "Yes", id="yes"),
        pytest.param(SURE, ["NO"], "No", id="no"),
        pytest.param(SURE, ["perhaps"], "perhaps", id="neither"),
        pytest.param(NUMBERS, ["2"], ["4"], id="the-number-of-an-answer-that-is-a-number"),
        pytest.param(NUMBERS, ["4"], ["4"], id="a-number-that-is-only-an-answer"),
        pytest.param(NUMBERS, ["3"], ["0"], id="nought-by-its-number"),
        pytest.param(FIXED, ["green", "0", "1"], "Red", id="no-own-words-here"),
    ],
)
async def test_a_line_is_read_like_this(choice, lines, value):
    answer, _ = await chosen([choice], *lines)

    assert (answer.allow, answer.values) == (True, {choice.key: value})


async def test_this_is_shown():
    _, shown = await chosen([ONE, SOME, TEXT, SURE], "1", "9", "1", "x", "y")

    assert shown == [
        "\nThe model asks you. An empty line leaves a question open; ! answers nothing at all.",
        "",
        "  [Pick] Which?",
        "    1. Red - warm",
        "    2. Blue",
        "  A number, or 0 or text for your own words: ",
        "",
        "  Some?",
        "    1. Red - warm",
        "    2. Blue",
        "    3. Green",
        "  1-3, several with commas between them, or 0 or text for your own words: ",
        "  The answers are 1 to 3. Type 0 to answer in your own words.",
        "  1-3, several with commas between them, or 0 or text for your own words: ",
        "",
        "  Why?",
        "  Your answer (a word): ",
        "",
        "  Sure?",
        "    1. Yes",
        "    2. No",
        "  A number, or 0 or text for your own words: ",
    ]


async def test_a_question_can_be_left_open():
    answer, _ = await chosen([ONE, TEXT, SURE], "", "because", "")

    assert answer.values == {"why": "because"}


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(("1", "!"), id="no"),
        pytest.param(("1",), id="end-of-input"),
        pytest.param(("1", "0"), id="end-of-input-in-own-words"),
        pytest.param(("", ""), id="nothing-answered"),
    ],
)
async def test_nothing_is_answered_where_the_person_does_not_want_to(lines):
    answer, _ = await chosen([ONE, SOME], *lines)

    assert (answer.allow, answer.values) == (False, None)


async def test_a_model_cannot_steer_the_screen():
    evil = Choice(
        question="a\x1b[2J\n\u202eb",
        header="\x07",
        options=(Option("\x1b[1m", "\x9b"), Option("x")),
        placeholder="\x1b",
    )
    _, shown = await chosen([evil, Choice(question="t", placeholder="\x1b]")], "2", "x")

    assert all(line.removeprefix("\n").isprintable() for line in shown)
    assert shown[2:4] == ["  [\\x07] a\\x1b[2J", "  \\u202eb"]


def test_a_person_at_a_terminal_chooses(tmp_path):
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    question = {"question": "Which?", "header": "Colour", "options": options, "multiSelect": True}
    call = json.dumps({"questions": [question]})
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(
            sys.executable, [sys.executable, "-m", "ferrule", "call", "--dialect", "claude", "AskUserQuestion", call]
        )
    screen, waiting = b"", [b"9\n", b"2,0\n", b"and green\n"]
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            try:
                piece = os.read(terminal, 65_536)
            except OSError:
                break
            if not piece:
                break
            screen += piece
            if waiting and screen.endswith(b"own words: "):
                os.write(terminal, waiting.pop(0))
                screen += b"|"
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    shown = screen.decode().replace("\r\n", "\n")

    assert os.waitstatus_to_exitcode(status) == 0, shown
    assert "  [Colour] Which?\n    1. Red - warm\n    2. Blue - cold\n" in shown
    assert "The answers are 1 to 2. Type 0 to answer in your own words." in shown
    assert '- "Which?": Blue, and green' in shown
