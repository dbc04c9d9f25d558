"""Keys, as a terminal sends them: what each one does, and that no sequence of them leaves the input inconsistent."""

import asyncio
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from ferrule.cli.talk import screen
from ferrule.cli.talk.events import ChatTranscript
from ferrule.cli.talk.keyboard import Keyboard, expand_paste
from ferrule.cli.talk.status import Live
from ferrule.cli.talk.text import BLANK, line
from ferrule.settings import TerminalSettings

ESC, CUT = "\x1b", "\x1b["


async def heard():
    """Wait until a key is read and no other can follow it: step by step, so that a late loop keeps their order."""
    for _ in range(4):
        await asyncio.sleep(0.015)


async def pressed(monkeypatch, *keys, running=False, text="", settings=None):
    """What came of keys that came one after the other, each read on its own."""
    monkeypatch.setattr(screen, "_output", DummyOutput)
    did: list[str] = []

    def note(what):
        did.append(what)
        return what

    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        board = Keyboard()
        board.input.text = text
        board.on_line = lambda line: did.append(f"sent {line}")
        board.on_interrupt = lambda: running and note("interrupted") == "interrupted"
        board.on_rewind = lambda: did.append("rewind")
        board.on_mode = lambda: note("mode")
        board.on_background = lambda: note("background") if running else ""
        board.working = lambda: running
        if settings is not None:
            board.adopt(settings, "/home/me/shop")
        board.application.ttimeoutlen = board.application.timeoutlen = 0.01

        async def talk():
            for key in keys:
                pipe.send_text(key)
                await heard()
            return 0

        await board.run_chat(talk)
    return board, did


@pytest.mark.parametrize(
    ("keys", "running", "did"),
    [
        pytest.param([ESC], True, ["interrupted"], id="esc-interrupts"),
        pytest.param([ESC, ESC], False, ["rewind"], id="esc-esc-rewinds"),
        pytest.param([ESC], False, [], id="esc-once-does-nothing"),
        pytest.param([ESC, "x", ESC], False, [], id="esc-key-esc-is-not-twice"),
        pytest.param([ESC, "\x1b[A", ESC, ESC], False, ["rewind"], id="esc-arrow-esc-esc"),
        pytest.param(["\x1b[Z"], False, ["mode"], id="shift-tab"),
        pytest.param(["\x1b[Z"], True, ["mode"], id="shift-tab-while-it-works"),
        pytest.param(["\x02"], True, ["background"], id="ctrl-b"),
        pytest.param(["a", "\x1b\r", "b", "\r"], False, ["sent a\nb"], id="esc-enter"),
        pytest.param(["a", "\n", "b", "\r"], False, ["sent a\nb"], id="ctrl-j"),
        pytest.param(["\x1b[A", "\x1b[I", "\x1b[O"], True, [], id="an-arrow-and-focus-stop-nothing"),
    ],
)
async def test_a_key_does_what_it_says(monkeypatch, keys, running, did):
    assert (await pressed(monkeypatch, *keys, running=running))[1] == did


async def test_another_key_between_two_ctrl_c_keeps_the_chat_open(monkeypatch):
    board, _ = await pressed(monkeypatch, "\x03", "x", "\x03", "\x03", "y")

    assert (board.hint, board.input.text) == ("", "y")


async def test_ctrl_b_moves_the_cursor_where_nothing_runs(monkeypatch):
    board, _ = await pressed(monkeypatch, "ab", "\x02", "x")

    assert board.input.text == "axb"


async def test_the_terminal_says_whether_it_is_looked_at(monkeypatch):
    assert (await pressed(monkeypatch))[0].is_focused is None
    assert (await pressed(monkeypatch, "\x1b[O"))[0].is_focused is False
    assert (await pressed(monkeypatch, "\x1b[O", "\x1b[I"))[0].is_focused is True


async def test_ctrl_g_opens_the_editor(monkeypatch, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf " and more" >> "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", str(editor))
    board, _ = await pressed(monkeypatch, "words", "\x07", *[""] * 20)

    assert board.input.text == "words and more"


@pytest.mark.parametrize(
    ("name", "text", "before", "into"),
    [
        pytest.param("a.png", "{path}", "", "@{path} ", id="a-picture"),
        pytest.param("a b.png", "'{path}'", "see ", '@"{path}" ', id="quoted"),
        pytest.param("a.png", "file://{path}\n", "see", " @{path} ", id="an-address"),
        pytest.param("a.txt", "{path}", "", "{path}", id="no-picture"),
        pytest.param("a.png", "{path}\nmore", "", "{path}\nmore", id="more-than-a-path"),
        pytest.param("a.png", "{path}", "!ls ", "{path}", id="in-a-command"),
    ],
)
def test_a_dragged_picture_is_mentioned(tmp_path, name, text, before, into):
    path = tmp_path / name
    path.touch()

    assert expand_paste(text.format(path=path), before) == into.format(path=path)


KEYS = [
    "a", " ", "/", "@", "!", "é", "三", "\r", "\n", "\t", "\x7f", ESC, "\x1b\r", "\x1b[A",
    "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[Z",
    "\x01", "\x02", "\x05", "\x0b", "\x12", "\x15", "\x17", "\x19", "\x03", "\x1b[I", "\x1b[O",
    CUT, "\x1b[200~x\ny\x1b[201~",
]  # fmt: skip


@given(keys=st.lists(st.sampled_from(KEYS), max_size=25), running=st.booleans())
@settings(max_examples=40, deadline=None)
def test_any_keys_leave_the_input_consistent(keys, running):
    async def check():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(screen, "_output", DummyOutput)
            sent: list[str] = []
            with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
                board = Keyboard()
                board.on_line = sent.append
                board.on_interrupt = lambda: running

                async def talk():
                    for key in keys:
                        pipe.send_text(key)
                        await asyncio.sleep(0)
                    await asyncio.sleep(0.01)
                    return 0

                await board.run_chat(talk)
                assert 0 <= board.input.cursor_position <= len(board.input.text)
                assert all(line.strip() for line in sent)
                assert "\x1b" not in board.input.text

    asyncio.run(check())


def test_escape_waits_longer_over_a_network(monkeypatch):
    monkeypatch.setattr(screen, "_output", DummyOutput)
    monkeypatch.setitem(os.environ, "SSH_CONNECTION", "1")

    assert Keyboard().application.ttimeoutlen > 0.1


VIM = TerminalSettings(keys="vim", title=False, notify="off")


@pytest.mark.parametrize(
    ("keys", "running", "did", "left"),
    [
        pytest.param(["one two", ESC, "b", "d", "w", "\r"], False, ["sent one "], "", id="it-edits-and-sends"),
        pytest.param(["one", ESC, "0", "x", "i", "T", "\r", "b"], False, ["sent Tne"], "b", id="then-letters-write"),
        pytest.param([ESC], True, ["interrupted"], "", id="esc-interrupts-with-an-empty-input"),
        pytest.param(["a", ESC], True, [], "a", id="esc-leaves-insertion-first"),
        pytest.param(["a", ESC, ESC], True, ["interrupted"], "a", id="esc-in-normal-mode-interrupts"),
        pytest.param([ESC, ESC, ESC], False, ["rewind"], "", id="esc-esc-in-normal-mode-rewinds"),
        pytest.param(["ab", ESC, "d", ESC, "x"], False, [], "a", id="esc-takes-an-operator-back"),
        pytest.param(["a", "\x02"], True, ["background"], "a", id="ctrl-b-is-as-always"),
    ],
)
async def test_vim_keys_edit_and_esc_still_stops(monkeypatch, keys, running, did, left):
    board, seen = await pressed(monkeypatch, *keys, running=running, settings=VIM)

    assert (seen, board.input.text) == (did, left)


async def test_with_vim_keys_a_question_is_answered_from_normal_mode_too(monkeypatch):
    monkeypatch.setattr(screen, "_output", DummyOutput)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        board = Keyboard()
        board.adopt(VIM, "/home/me/shop")
        board.application.ttimeoutlen = board.application.timeoutlen = 0.01
        answers = []

        async def talk():
            for before in ([], [ESC]):  # the second one in the middle of the question
                for key in ("a", ESC):
                    pipe.send_text(key)
                    await heard()
                board._presses.on_send()
                asked = asyncio.ensure_future(board.key("Sure?", [("y", "es"), ("n", "o")]))
                await heard()
                for key in (*before, "y"):
                    pipe.send_text(key)
                    await heard()
                answers.append(await asyncio.wait_for(asked, 30))
            return 0

        await board.run_chat(talk)

    assert answers == ["y", "y"]


async def test_words_that_are_typed_to_an_open_question_are_no_answer(monkeypatch):
    monkeypatch.setattr(screen, "_output", DummyOutput)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        board = Keyboard()

        async def talk():
            asked = asyncio.ensure_future(board.key("Allow it?", [("y", "es"), ("a", "lways"), ("n", "o")]))
            await heard()
            pipe.send_text("play it")
            await heard()
            typed, is_answered = board.input.text, asked.done()
            await asyncio.sleep(0.55)  # so long a pause makes the next key an answer
            pipe.send_text("n")

            assert (typed, is_answered, await asked) == ("play it", False, "n")
            return 0

        await board.run_chat(talk)


async def test_a_question_has_one_blank_row_above_it_and_nothing_that_seems_to_work(monkeypatch):
    board, _ = await pressed(monkeypatch)
    clock = iter(range(10))
    live = Live(ChatTranscript(lambda: 0.0), lambda *_: [], lambda: next(clock), colour=False)
    live.is_asked = lambda: board.asks
    board.live = live.rows

    def rows():
        return "".join(text for _, text, *_ in board._live_text()).split("\n")

    with live.show_activity("starting x"):
        working = rows()
        board.offer = (line("  Start it?"),)
        board.print_lines(line("Shown."))
        asked = rows()
        board.print_lines(BLANK)
        asked_behind_a_blank_row = rows()

    assert [row[2:] for row in working if row] == ["starting x · 1.0s"]
    assert asked == ["", "  Start it?", ""]
    assert asked_behind_a_blank_row == ["  Start it?", ""]
