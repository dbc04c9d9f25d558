"""The title and the calls to somebody who is away: which bytes, when, and none on a plain terminal."""

import os
import re
import time

import pytest
from tests.cli.test_chat_tmux import EDIT, READ, answer_when_quiet, script
from tests.rows import each_row

from ferrule.cli.talk.screen import BELL, FOCUS_OFF, FOCUS_ON, Notifier, has_title, notification, short, title
from ferrule.settings import TerminalSettings

OSC9 = "\x1b]9;A question\x07"
OSC777 = "\x1b]777;notify;Ferrule;A question\x07"


@each_row(
    ("way", "environment", "sequence"),
    [
        pytest.param("off", {"TERM_PROGRAM": "iTerm.app"}, "", id="off"),
        pytest.param("bell", {"TERM_PROGRAM": "iTerm.app"}, BELL, id="bell"),
        pytest.param("osc9", {}, OSC9, id="osc9"),
        pytest.param("osc777", {}, OSC777, id="osc777"),
        pytest.param("auto", {"TERM": "xterm-256color"}, BELL, id="unknown"),
        pytest.param("auto", {"TERM_PROGRAM": "WezTerm"}, OSC9, id="wezterm"),
        pytest.param("auto", {"TERM": "xterm-kitty"}, OSC9, id="kitty"),
        pytest.param("auto", {"LC_TERMINAL": "iTerm2"}, OSC9, id="iterm-over-ssh"),
        pytest.param("auto", {"TERM": "foot"}, OSC777, id="foot"),
        pytest.param("auto", {"TERM": "tmux-256color", "TMUX": "/tmp/x"}, BELL, id="tmux-around-something-unknown"),
        pytest.param(
            "auto",
            {"TERM": "tmux-256color", "TMUX": "/tmp/x", "KITTY_WINDOW_ID": "1"},
            f"\x1bPtmux;\x1b{OSC9}\x1b\\{BELL}",
            id="tmux-around-kitty",
        ),
        pytest.param("osc9", {"TMUX": "/tmp/x"}, f"\x1bPtmux;\x1b{OSC9}\x1b\\", id="tmux-as-told"),
        pytest.param("osc9", {"STY": "1.pts"}, f"\x1bP{OSC9}\x1b\\", id="screen"),
    ],
)
def test_the_way_follows_from_the_setting_and_the_terminal(way, environment, sequence):
    assert notification("A question", way, environment) == sequence


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("run `make`\nand more", "run `make` and more", id="lines"),
        pytest.param("a\x1b]2;evil\x07b\x1b\\c", "abc", id="sequences"),
        pytest.param("a\x9cb\x07c", "abc", id="ends-of-sequences"),
        pytest.param("a\u202eb", "ab", id="direction"),
        pytest.param("x" * 99, "x" * 59 + "…", id="length"),
    ],
)
def test_nothing_ends_the_sequence_that_it_stands_in(text, shown):
    assert short(text, 60) == shown
    assert title(text) == f"\x1b]2;{shown}\x07"


def test_a_separator_in_a_text_separates_nothing():
    assert notification("a;b", "osc777", {}) == "\x1b]777;notify;Ferrule;a,b\x07"


@pytest.mark.parametrize(("term", "has"), [("linux", False), ("vt220", False), ("xterm", True), ("screen", True)])
def test_a_console_has_no_title(term, has):
    assert has_title({"TERM": term}) is has


class Scene:
    """A notifier whose clock a test moves, in a terminal that keeps what is written."""

    def __init__(self, *, can_write=True, **settings):
        self.now = 100.0
        self.wrote: list[str] = []
        self.can_write = can_write
        self.notifier = Notifier(self._write, lambda: self.now, environment={"TERM": "xterm"})
        self.notifier.begin(TerminalSettings(**{"notify": "osc9", **settings}), "/home/me/shop")
        self.wrote.clear()

    def _write(self, sequence):
        if self.can_write:
            self.wrote.append(sequence)
        return self.can_write

    def at(self, seconds, state, *, focused=None, pressed=100.0, subject=""):
        """What is written when this goes on so many seconds later."""
        self.now += seconds
        before = len(self.wrote)
        self.notifier.update(state, is_focused=focused, pressed_at=pressed, subject=subject)
        return self.wrote[before:]


def test_the_title_has_the_folder_and_what_goes_on_and_is_given_back():
    scene = Scene(notify="off")
    shown = [scene.at(1, state) for state in ("idle", "working", "working", "asks", "working", "done")]

    assert shown == [
        [title("ferrule · shop")],
        [title("working · shop")],
        [],
        [title("asks · shop")],
        [title("working · shop")],
        [title("done · shop")],
    ]
    scene.notifier.end(scene.wrote.append)
    assert scene.wrote[-1] == "\x1b]2;\x07\x1b[23;2t"


def test_nobody_who_looks_is_called():
    scene = Scene(title=False)
    shown = [scene.at(40, state, focused=True) for state in ("working", "asks", "working", "done")]

    assert shown == [[], [], [], []]
    assert scene.at(999, "done", focused=False) == []  # it was seen when it came


def test_somebody_who_looks_elsewhere_is_called_once_and_at_once():
    scene = Scene(title=False)
    scene.at(0, "working", focused=False)
    shown = [
        scene.at(1, "asks", focused=False, subject="run `make`"),
        scene.at(1, "asks", focused=False, subject="run `make`"),
        scene.at(60, "working", focused=False),
        scene.at(5, "done", focused=False),
        scene.at(5, "done", focused=False),
    ]

    assert shown == [["\x1b]9;shop asks: run `make`\x07"], [], [], ["\x1b]9;shop is done after 1m 07s\x07"], []]


def test_the_end_of_a_short_run_calls_nobody():
    scene = Scene(title=False, notify_seconds=30)
    scene.at(0, "working", focused=False)

    assert scene.at(29, "done", focused=False) == []


def test_a_terminal_that_does_not_say_is_looked_at_until_no_key_was_pressed_for_long():
    scene = Scene(title=False, notify_seconds=30)
    scene.at(0, "working")
    shown = [
        scene.at(10, "asks", pressed=105.0),
        scene.at(24, "asks", pressed=105.0),
        scene.at(1, "asks", pressed=105.0),
    ]

    assert shown == [[], [], ["\x1b]9;shop asks\x07"]]


def test_a_key_after_the_question_means_that_it_was_seen():
    scene = Scene(title=False, notify_seconds=30)
    scene.at(0, "working")
    scene.at(10, "asks")

    assert [scene.at(5, "asks", pressed=112.0), scene.at(99, "asks", pressed=112.0)] == [[], []]


def test_a_run_that_asks_before_its_work_is_seen_begins_with_the_question():
    scene = Scene(title=False, notify_seconds=30)
    scene.now = 5_000.0
    scene.at(0, "asks", focused=True)

    assert scene.at(5, "done", focused=False) == []


def test_what_cannot_be_written_now_is_written_later():
    scene = Scene()
    scene.can_write = False
    scene.at(1, "asks", focused=False)
    scene.can_write = True

    assert scene.at(1, "asks", focused=False) == ["\x1b]9;shop asks\x07", title("asks · shop")]


@pytest.fixture
def shop(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "app.py").write_text("return a - b\n")
    return folder


def arrives(terminal, raw):
    """Wait until these bytes were written."""
    limit = time.monotonic() + 30
    while raw not in terminal.raw():
        assert time.monotonic() < limit, terminal.raw()
        time.sleep(0.03)


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is a thing of POSIX")
def test_a_terminal_gets_a_title_a_call_and_everything_back(tmp_path, shop, terminal, unconfined):
    settings = tmp_path / "settings.toml"
    settings.write_text('[chat]\nnotify = "osc9"\n')
    path = script(tmp_path, {"parts": [READ]}, {"parts": [EDIT]}, {"text": "Fixed."})
    one = terminal(["--replay", path], shop, FERRULE_SETTINGS=str(settings), TMUX="", STY="")
    one.wait("context 100% left")
    arrives(one, b"\x1b]2;ferrule \xc2\xb7 shop\x07")
    assert one.raw().index(b"\x1b[22;2t") < one.raw().index(b"\x1b]2;")
    assert FOCUS_ON.encode() in one.raw()
    one.type("fix it")
    one.type("\r")
    arrives(one, b"\x1b]2;asks \xc2\xb7 shop\x07")
    one.type("\x1b[O")  # only now the terminal says that nobody looks: the question was seen
    answer_when_quiet(one, "y", "Fixed.")
    arrives(one, b"\x1b]2;done \xc2\xb7 shop\x07")
    one.type("\x04")

    assert one.ended() == 0
    assert b"\x1b]9;" not in one.raw()
    assert one.raw().count(b"\x1b]2;\x07\x1b[23;2t") == 1
    assert one.raw().rindex(FOCUS_OFF.encode()) > one.raw().rindex(FOCUS_ON.encode())


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is a thing of POSIX")
def test_a_question_calls_somebody_who_looks_elsewhere(tmp_path, shop, terminal, unconfined):
    settings = tmp_path / "settings.toml"
    settings.write_text('[chat]\nnotify = "osc777"\ntitle = false\n')
    wait = {"use": "Bash", "input": {"command": "until [ -e go ]; do sleep 0.05; done"}}
    path = script(tmp_path, {"parts": [READ, wait]}, {"parts": [EDIT]}, {"text": "Fixed."})
    one = terminal(["--replay", path, "--allowed-tools", "Bash"], shop, FERRULE_SETTINGS=str(settings), TMUX="", STY="")
    one.wait("context 100% left")
    one.type("fix it")
    one.type("\r")
    one.wait("until")
    one.type("\x1b[O")
    (shop / "go").touch()
    arrives(one, b"\x1b]777;notify;Ferrule;shop asks: Edit: write app.py\x07")

    assert b"\x1b]2;" not in one.raw()
    assert one.raw().count(b"\x1b]777;") == 1


@pytest.mark.skipif(os.name != "posix", reason="a pseudo-terminal is a thing of POSIX")
def test_a_dumb_terminal_gets_not_one_escape(tmp_path, shop, terminal, unconfined):
    settings = tmp_path / "settings.toml"
    settings.write_text('[chat]\nnotify = "osc9"\ntheme = "light"\nnotify_seconds = 0\n')
    path = script(tmp_path, {"parts": [READ]}, {"parts": [EDIT]}, {"text": "**Fixed.**\n\n```python\nx = 1\n```"})
    one = terminal(["--replay", path], shop, FERRULE_SETTINGS=str(settings), TERM="dumb", COLORFGBG="0;15")
    one.wait(r"lists\s+commands")
    one.type("fix it\n")
    one.wait("Allow it")
    one.type("y\n")
    one.wait("x = 1")
    one.type("/exit\n")

    assert one.ended() == 0
    assert re.findall(rb"[\x1b\x07]", one.raw()) == []
    assert "go on" in one.screen()
