"""What people see of `ferrule run`: the answer, and one line for each thing that is done meanwhile."""

import io
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.recordings import recording
from tests.cli.talk.terminals import Pty
from tests.rows import each_row

from ferrule.agent import (
    Began,
    Called,
    ChildBegan,
    ChildEnded,
    Compacted,
    Ended,
    Retrying,
    Spent,
    Spoke,
    TurnEnded,
    Warned,
)
from ferrule.cli.render import TranscriptPrinter, cut, seconds, width
from ferrule.core.call import Done, Failure, Prepared, Reply, Reported
from ferrule.core.content import Text
from ferrule.models.cues import calls, said
from ferrule.wire import ModelResponse, Usage

T = "T-11111111-2222-3333-4444-555555555555"
BEGAN = Began(thread=T, prompt="x", model="m", dialect="claude", cwd="/home/me/it", tools=(), permission_mode="default")
SPENT = Spent(2, Usage(1200, 34), 0.0123, 2.34)


class Screen(io.StringIO):
    """A terminal, as far as a stream can be one."""

    def isatty(self):
        return True


def call(given_, text="ok", *, thread=T, name="Read", status="done", took=0.0, started=5.0, notes=()):
    failure = None if status == "done" else Failure(text)
    reply = Reply(id="c1", name=name, status=status, result=text, error=failure, started=started, ended=5.0 + took)
    reply = msgspec.structs.replace(reply, notes=notes)
    prepared = Prepared(id="c1", name=name, at=0.0, input=given_, arguments=given_, touches=())
    return (
        Called(thread=thread, call=prepared),
        Called(thread=thread, call=Done(id="c1", name=name, at=0.0, reply=reply)),
    )


def ended(reason="end", text="Done.", error=""):
    return Ended(thread=T, reason=reason, text=text, spent=SPENT, total=SPENT, error=error)


def told(*events, is_live=False, shows_work=True, err=None):
    out, err = io.StringIO(), err or io.StringIO()
    shown = TranscriptPrinter(is_live=is_live, shows_work=shows_work, out=out, err=err)
    for event in (BEGAN, *events):
        shown.put(event)
    return out.getvalue(), err.getvalue()


@each_row(
    ("events", "line"),
    [
        pytest.param(call({"path": "/home/me/it/a/b.py"}), "  ✓ Read a/b.py", id="a path from here"),
        pytest.param(call({"path": "/etc/passwd"}), "  ✓ Read /etc/passwd", id="a path from elsewhere"),
        pytest.param(call({"command": "make\ntest"}, name="Bash", took=0.31), "  ✓ Bash make test  0.3 s", id="time"),
        pytest.param(call({"path": "a"}, took=0.09), "  ✓ Read a", id="no time worth a word"),
        pytest.param(
            call({"command": "x"}, "Exit code 1\nF.\n===", name="Bash", status="error", took=75),
            "  ✗ Bash x: Exit code 1  1 min 15 s",
            id="why in one line",
        ),
        pytest.param(
            call({"path": "x"}, "\n\nNot /home/me/it/x\n", status="error"), "  ✗ Read x: Not x", id="paths in errors"
        ),
        pytest.param(call({}, "No.", status="error"), "  ✗ Read No.", id="about nothing"),
        pytest.param(call({"path": "x"}, "No.", status="rejected-by-user"), "  ⊘ Read x: No.", id="refused"),
        pytest.param(call({}, "No.", status="rejected-by-user", started=0.0), "  ⊘ Read No.", id="never begun"),
        pytest.param(call({"path": "x"}, "Stop.", status="cancelled"), "  ■ Read x: Stop.", id="cancelled"),
        pytest.param(
            call({}, "3 checks in 1.1 s: 2 passed, 1 failed.\n✓ ruff", name="Check"),
            "  ✗ Check 3 checks in 1.1 s: 2 passed, 1 failed",
            id="checks that failed",
        ),
        pytest.param(
            call({}, "1 check in 0.1 s: 1 passed.\n✓ ruff", name="Check"),
            "  ✓ Check 1 check in 0.1 s: 1 passed",
            id="checks that passed",
        ),
        pytest.param(
            call({"path": "a.py"}, name="Edit", notes=("Other.", "New errors after the edit (ty):\n  2:5: Not so.")),
            "  ✓ Edit a.py\n    New errors after the edit (ty):\n      2:5: Not so.",
            id="new errors",
        ),
        pytest.param(call({"limit": 3, "other": "words"}), "  ✓ Read words", id="about anything"),
        pytest.param(call({"path": "\x1b]0;evil\x07a\x1b[2J\u202eb"}), "  ✓ Read ab", id="nothing steers"),
        pytest.param(
            call({"path": "x"}, "\x1b[31mred\x9b2J", status="error"), "  ✗ Read x: red", id="nothing steers in errors"
        ),
        pytest.param(
            [Retrying(thread=T, why="Busy.", seconds=2.0, attempt=1)], "  … Busy. Asked again in 2 s.", id="again"
        ),
        pytest.param(
            [Retrying(thread=T, why="the host is overloaded (HTTP 529)", seconds=0.2, attempt=1)],
            "  … The host is overloaded (HTTP 529). Asked again.",
            id="again at once",
        ),
        pytest.param(
            [Compacted(thread=T, kind="outputs", before_tokens=9000, after_tokens=100)],
            "  … Old outputs were left out: 9,000 → 100 tokens.",
            id="smaller",
        ),
        pytest.param([Warned(thread=T, sentence="Look\x1b[1m out.")], "warning: Look out.", id="warning"),
        pytest.param(
            [Called(thread=T, call=Reported(id="", name="", at=0.0, sentence="Hear."))], "warning: Hear.", id="a hook's"
        ),
    ],
)
def test_each_thing_is_a_line(events, line):
    assert told(*events) == ("", f"{line}\n")


def test_a_model_that_says_nothing_at_all_is_told_of():
    assert told(ended(text=" \n"), shows_work=False) == ("", "warning: The model ended without a word.\n")


def test_that_a_model_is_asked_again_is_shown_also_where_the_work_is_not():
    again = Retrying(thread=T, why="the host failed (HTTP 500)", seconds=4.0, attempt=1)

    assert told(again, shows_work=False) == ("", "  … The host failed (HTTP 500). Asked again in 4 s.\n")


@pytest.mark.parametrize(
    ("reason", "error", "line"),
    [
        pytest.param("end", "", "", id="done"),
        pytest.param("turns", "", "ferrule: Stopped: the limit of turns was met. Go on with --continue.\n", id="turns"),
        pytest.param("loop", "", "ferrule: Stopped: the model made the same call again and again.\n", id="loop"),
        pytest.param("error", "It \x1b[2Jbroke.", "ferrule: It broke.\n", id="error"),
        pytest.param("hook", "", "ferrule: A hook did not let the task through.\n", id="hook"),
        pytest.param("interrupted", "", "ferrule: Interrupted. Go on with --continue.\n", id="interrupted"),
    ],
)
def test_the_end_says_why_and_what_it_took(reason, error, line):
    out, err = told(ended(reason, "So far\x07.", error))
    assert out == "So far.\n"
    assert err == f"{line}\n2 answers, 1,234 tokens, $0.0123, 2.3 s, thread T-11111111\n"
    assert told(ended(reason, "So.", error), shows_work=False) == ("So.\n", line)


def test_a_terminal_sees_the_answer_as_it_comes_and_apart_from_the_work():
    err = out = io.StringIO()
    shown = TranscriptPrinter(is_live=True, shows_work=True, out=out, err=err)
    turn = TurnEnded(thread=T, said=ModelResponse(id="m", model="m", parts=(Text("x"),), reason="end"), spent=SPENT)
    events: list[Any] = [BEGAN, Spoke(thread=T, text="I **look"), Spoke(thread=T, text="**.\x1b[2J"), turn]
    events += [*call({"path": "a"}), Spoke(thread=T, text="It is"), Spoke(thread=T, text=" so.\n"), turn, ended()]
    for event in events:
        shown.put(event)
    assert out.getvalue() == (
        "I **look**.\n  ✓ Read a\n\nIt is so.\n\n2 answers, 1,234 tokens, $0.0123, 2.3 s, thread T-11111111\n"
    )


def child(name, thread, parent=T):
    model = "small" if parent != T else "m"
    return ChildBegan(thread=parent, child=thread, call_id="t", name="Explore", description=name, model=model)


def test_subagents_stand_inside_and_say_whose_a_line_is_where_several_work():
    one = Spent(1, Usage(10, 5), None, 0.5)
    _, err = told(
        child("Find it", "T-a"),
        *call({"path": "a"}, thread="T-a"),
        child("Deeper", "T-b", "T-a"),
        *call({"path": "b"}, thread="T-b"),
        Spoke(thread="T-b", text="not shown"),
        ChildEnded(thread="T-a", child="T-b", reason="turns", spent=one),
        ChildEnded(thread=T, child="T-a", reason="end", spent=SPENT),
        *call({"description": "Find it"}, name="Task"),
    )
    assert err.splitlines() == [
        "  ┌ Explore: Find it",
        "  │ ✓ Read a",
        "  │ ┌ Explore: Deeper (small)",
        "  │ │ Deeper: ✓ Read b",
        "  │ └ Deeper: 1 answer, 15 tokens, 0.5 s, out of turns",
        "  └ Find it: 2 answers, 1,234 tokens, $0.0123, 2.3 s",
        "  ✓ Task Find it",
    ]


def test_calls_of_two_conversations_may_have_one_id():
    first, last = call({"path": "main"}), call({"path": "inner"}, thread="T-a")
    _, err = told(child("x", "T-a"), first[0], last[0], last[1], first[1])
    assert "│ ✓ Read inner" in err
    assert "  ✓ Read main" in err


@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [
        pytest.param({"TERM": "xterm"}, True, id="a terminal"),
        pytest.param({"TERM": "xterm", "NO_COLOR": "1"}, False, id="NO_COLOR"),
        pytest.param({"TERM": "dumb"}, False, id="a dumb one"),
    ],
)
def test_colour_depends_on_where_the_line_goes(monkeypatch, environment, is_coloured):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in told(*call({"path": "a"}), err=Screen())[1]) == is_coloured
    assert "\x1b" not in told(*call({"path": "a"}))[1]


@given(st.text(max_size=300), st.text(max_size=300), st.integers(30, 200), st.sampled_from(["done", "error"]))
def test_no_line_is_wider_than_the_terminal_or_steers_it(about, why, columns, status):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("NO_COLOR", "1")
        _, err = told(*call({"path": about}, why, status=status, took=12.5), err=Screen())
    assert err.endswith("\n")
    assert "\n" not in err[:-1]
    assert width(err[:-1]) <= max(columns, 50)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", err[:-1])


@given(st.text(max_size=40), st.integers(1, 40))
def test_what_is_cut_has_room(text, room):
    assert width(cut(text, room)) <= room or text == cut(text, room)


@pytest.mark.parametrize(
    ("took", "said_"), [(0.14, "0.1 s"), (59.94, "59.9 s"), (60, "1 min 00 s"), (3725, "62 min 05 s")]
)
def test_times_are_short(took, said_):
    assert seconds(took) == said_


def test_at_a_terminal_text_and_tool_lines_come_in_their_order(tmp_path):
    place = tmp_path / "work"
    place.mkdir()
    (place / "a.txt").write_text("one\n")
    path = recording(
        tmp_path / "c.jsonl",
        calls(("Read", {"file_path": "${workspace}/a.txt"}), text="I look \x1b[2Jat it."),
        said("It says **one**."),
    )
    terminal = Pty(60, 24)
    try:
        terminal.start(["run", "What?", "--replay", path], place)
        terminal.wait("2 answers, ")
        assert terminal.ended() == 0
        shown = terminal.screen()
        raw = terminal._raw
    finally:
        terminal.close()
    assert re.search(
        r"^I look at it\.\n  ✓ Read a\.txt.*\n\nIt says \*\*one\*\*\.\n\n"
        r"2 answers, 0 tokens, [\d.]+ s, thread T-\w{8}\n",
        shown,
    )
    assert b"\x1b[2J" not in raw
    assert b"\x1b[32m" in raw
