"""The list to choose from: what fits, what is shown of it at any width, which keys choose, and the numbered one."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from tests.rows import each_row

from ferrule.cli.talk import screen
from ferrule.cli.talk.keyboard import Keyboard
from ferrule.cli.talk.picker import Picker, PickerRow, Scope, pick_by_number
from ferrule.cli.talk.text import line, plain, wide

UP, DOWN, PAGE_UP, PAGE_DOWN, ESC, ENTER = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~", "\x1b", "\r"


def row(value, search="", detail=""):
    return PickerRow(value, line(("give", f"{value} is a row")), search, detail)


COLOURS = [row(name) for name in ("red", "green", "blue", "grey")]
MANY = [row(f"n{number}") for number in range(100)]


async def other_rows():
    return [row("black"), row("blue")]


OTHER = Scope("all folders", "this folder", other_rows)


async def until(is_so):
    limit = asyncio.get_running_loop().time() + 20
    while not is_so():
        assert asyncio.get_running_loop().time() < limit
        await asyncio.sleep(0.005)


def headed(board):
    """The heading of the list that is open."""
    return board.picker.heading() if board.picker is not None else None


async def picked(monkeypatch, rows, *keys, text="", before="", stays_open=False, **options):
    """What is chosen by keys that come one after the other, and what is in the input then."""
    monkeypatch.setattr(screen, "_output", DummyOutput)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        board = Keyboard()
        board._presses._clock = lambda: 0.0
        board.input.text = text
        sent: list[str] = []
        board.on_line = sent.append
        board.application.ttimeoutlen = board.application.timeoutlen = 0.01
        chosen: list[str | None] = []

        async def talk():
            if before:
                pipe.send_text(before)
                await until(lambda: board.input.text == before)
            picking = asyncio.ensure_future(board.pick("Which?", rows, **options))
            await until(lambda: board.picker is not None)
            for key in keys:
                heading = headed(board)
                pipe.send_text(key)
                await asyncio.sleep(0.02)  # an escape is one only when nothing follows it
                if key == "\t":
                    await until(lambda was=heading: headed(board) != was)
            await asyncio.wait({picking}, timeout=0.3 if stays_open else 20)
            chosen.append(picking.result() if picking.done() else "(open)")
            picking.cancel()
            await asyncio.wait({picking})
            return 0

        await board.run_chat(talk)
    return chosen[0], board.input.text, sent


@pytest.mark.parametrize(
    ("keys", "chosen"),
    [
        pytest.param([ENTER], "red", id="the-first"),
        pytest.param([DOWN, DOWN, ENTER], "blue", id="down"),
        pytest.param([DOWN, DOWN, UP, ENTER], "green", id="up"),
        pytest.param([UP, ENTER], "red", id="above-the-first"),
        pytest.param([PAGE_DOWN, ENTER], "grey", id="page"),
        pytest.param([PAGE_DOWN, PAGE_UP, ENTER], "red", id="page-back"),
        pytest.param(["gr", DOWN, ENTER], "grey", id="typed"),
        pytest.param(["GREY", ENTER], "grey", id="upper-case"),
        pytest.param(["row bl", ENTER], "blue", id="two-words"),
        pytest.param(["xyz", ENTER], "(open)", id="nothing-fits"),
        pytest.param(["xyz", ENTER, "\x15", ENTER], "red", id="the-filter-is-emptied"),
        pytest.param([ESC], None, id="esc"),
        pytest.param(["gr", "\x03"], None, id="ctrl-c"),
        pytest.param(["\x04"], None, id="ctrl-d"),
    ],
)
async def test_keys_move_filter_choose_and_go_back(monkeypatch, keys, chosen):
    stays_open = chosen == "(open)"

    assert await picked(monkeypatch, COLOURS, *keys, text="a draft", stays_open=stays_open) == (chosen, "a draft", [])


async def test_tab_shows_the_other_rows_and_the_first_ones_again(monkeypatch):
    assert (await picked(monkeypatch, COLOURS, "\t", ENTER, other=OTHER))[0] == "black"
    assert (await picked(monkeypatch, COLOURS, "bl", "\t", DOWN, ENTER, other=OTHER))[0] == "blue"
    assert (await picked(monkeypatch, COLOURS, "\t", "\t", ENTER, other=OTHER))[0] == "red"


async def test_the_list_begins_where_the_caller_says(monkeypatch):
    assert (await picked(monkeypatch, COLOURS, ENTER, at="grey"))[0] == "grey"
    assert (await picked(monkeypatch, COLOURS, ENTER, query="blue"))[0] == "blue"


async def test_a_key_that_was_typed_ahead_does_not_choose(monkeypatch):
    assert (await picked(monkeypatch, COLOURS, ENTER, before="x", stays_open=True))[:2] == ("(open)", "x")


async def test_a_question_waits_until_the_list_is_closed(monkeypatch):
    monkeypatch.setattr(screen, "_output", DummyOutput)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        board = Keyboard()
        board.application.ttimeoutlen = board.application.timeoutlen = 0.01
        answers: list[str | None] = []

        async def talk():
            picking = asyncio.ensure_future(board.pick("Which?", [row("yes"), row("no")]))
            await asyncio.sleep(0.03)
            asking = asyncio.ensure_future(board.key("Allow it?", [("y", "es"), ("n", "o")]))
            for key in ("n", ENTER):
                await asyncio.sleep(0.03)
                pipe.send_text(key)
            answers.append(await picking)
            assert not asking.done()
            await asyncio.sleep(0.6)
            pipe.send_text("y")
            answers.append(await asking)
            return 0

        await board.run_chat(talk)

    assert answers == ["no", "y"]


WORDS = st.text(st.sampled_from("ab 三é\u200d👩\x1b\n\t"), max_size=150)


@given(
    names=st.lists(WORDS, max_size=30),
    width=st.sampled_from([20, 60, 80, 140]),
    most=st.integers(1, 15),
    moves=st.lists(st.integers(-20, 20), max_size=5),
)
@settings(max_examples=100, deadline=None)
def test_what_is_shown_has_room_and_has_the_marked_row(names, width, most, moves):
    rows = [PickerRow(str(at), line(("cyan", "3h  "), ("give", name)), detail=name) for at, name in enumerate(names)]
    picker = Picker("Which?", rows)
    for move in moves:
        picker.move(move)
        shown = picker.lines(width, most)

        assert len(shown) <= max(most, 1)
        assert all(wide(plain(one)) <= width and not {"\x1b", "\n"} & set(plain(one)) for one in shown)
        assert sum(plain(one).startswith("  → ") for one in shown) == bool(names)


def test_a_long_list_scrolls_with_the_marked_row():
    picker = Picker("Which?", MANY)
    first = [plain(one) for one in picker.lines(80, 13)]
    picker.page(1)
    picker.page(1)
    second = [plain(one) for one in picker.lines(80, 13)]

    assert (first[0], first[-1], len(first)) == ("  → n0 is a row", "    n11 is a row", 12)
    assert (second[0], second[-1]) == ("    n11 is a row", "  → n22 is a row")


def test_what_is_said_of_the_marked_row_stands_below_the_list():
    picker = Picker("Which?", [row("a", detail="the first letter"), row("b", detail="the second one")])
    picker.move(1)

    assert [plain(one) for one in picker.lines(80, 8)] == ["    a is a row", "  → b is a row", "    the second one"]


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (60, "  ↑↓ · Enter · tab all folders · esc back"),
        (80, "  type to search · ↑↓ move · Enter takes it · tab all folders · esc goes back"),
    ],
)
def test_the_keys_are_said_in_as_many_words_as_there_is_room_for(width, words):
    assert plain(Picker("Which?", COLOURS, other=OTHER).keys(width)) == words


class Typed:
    """A terminal on which whole lines are typed."""

    def __init__(self, *said):
        self.said = list(said)
        self.shown: list[str] = []

    def print_lines(self, *lines):
        self.shown += [plain(one) for one in lines]

    async def words(self, offer):
        self.shown.append(offer)
        return self.said.pop(0)


@each_row(
    ("said", "chosen"),
    [
        (["3"], "blue"),
        ([""], None),
        ([None], None),
        (["gr", "2"], "grey"),
        (["9", "1"], "red"),
        (["xyz", "1"], "red"),
        (["*", "1"], "black"),
        (["*", "*", "1"], "red"),
    ],
)
async def test_on_a_terminal_that_can_do_little_a_number_chooses_and_words_search(said, chosen):
    assert await pick_by_number(Typed(*said), "Which?", COLOURS, other=OTHER) == chosen


async def test_the_numbered_list_says_what_can_be_typed_and_what_was_wrong():
    typed = Typed("+", "101", "xyz", "100")
    value = await pick_by_number(typed, "Which?", MANY)

    assert value == "n99"
    assert typed.shown[:2] == ["", "   1  n0 is a row"]
    assert typed.shown[16:20] == [
        "  a number takes one, words search, + shows 85 more, an empty line goes back",
        *("Which?", "", "  16  n15 is a row"),
    ]
    assert "  There is no number 101: they go from 1 to 100." in typed.shown
    assert "  Nothing fits “xyz”: other words, or a number." in typed.shown
