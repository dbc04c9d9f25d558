"""From events to the screen: what is printed, in which order, and what is live meanwhile."""

import pytest
from tests.rows import each_row

from ferrule import agent as told
from ferrule.agent import Spent
from ferrule.cli.talk.events import ChatTranscript, Prose, TerminalPicture
from ferrule.cli.talk.text import fit_line, plain, wrap_lines
from ferrule.core import call as calls
from ferrule.core.call import Failure, Reply
from ferrule.wire import ModelResponse, Usage

T = "T-main"
CHILD = "T-child"


class Stage:
    """Plays events on a clock of its own, and keeps what was printed."""

    def __init__(self):
        self.now = 100.0
        self.lines = ChatTranscript(lambda: self.now)
        self.printed = []

    def play(self, *events):
        for event in events:
            if isinstance(event, int | float):
                self.now += event
                continue
            for piece in self.lines.feed(event):
                if isinstance(piece, Prose):
                    self.printed += ["~" * piece.dim + row for row in piece.source.rstrip().split("\n")]
                elif isinstance(piece, TerminalPicture):
                    self.printed.append(f"[{piece.image}]")
                else:
                    self.printed.append(plain(fit_line(piece, 70)))
        return self

    @property
    def screen(self):
        live = [plain(fit_line(row, 70)) for row in self.lines.live()]
        return "\n".join([*self.printed, "--", *([self.lines.open_block] if self.lines.open_block else []), *live])


def began(**more):
    values = {"prompt": "p", "model": "m", "dialect": "claude", "cwd": "/w", "tools": (), "permission_mode": "default"}
    return told.Began(thread=T, **{**values, **more})


def spoke(text):
    return told.Spoke(thread=T, text=text)


def turn_ended(thread=T, turns=1, tokens=100):
    said = ModelResponse(id="", model="m", parts=(), reason="end")
    return told.TurnEnded(thread=thread, said=said, spent=Spent(turns, Usage(tokens, 0)))


def called(kind, key, name, thread=T, **more):
    return told.Called(thread=thread, call=kind(id=key, name=name, at=0.0, **more))


def prepared(key, name, thread=T, **values):
    return called(calls.Prepared, key, name, thread, input=values, arguments=values, touches=())


def started(key, name, thread=T):
    return called(calls.Started, key, name, thread)


def done(key, name, thread=T, status="done", result="ok", error=None, files=(), took=0.0, **more):
    reply = Reply(
        id=key, name=name, status=status, result=result, error=error, track_files=files, started=1.0, ended=1.0 + took
    )
    return called(calls.Done, key, name, thread, reply=reply, **more)


def ended(reason="end", error="", **more):
    spent = Spent(1, Usage(1200, 30))
    return told.Ended(thread=T, reason=reason, text="", spent=spent, total=spent, error=error, **more)


SCREENS = {
    "words-then-an-end": (
        [began(), spoke("One.\n\nTwo"), spoke(" more.\n"), turn_ended(), ended()],
        "One.\n\nTwo more.\n--",
    ),
    "unfinished-words-are-live": (
        [began(), spoke("One.\n\nTwo"), 2.0],
        "One.\n--\nTwo\n⠋ writing · 2.0s",
    ),
    "a-call-from-its-name-to-its-end": (
        [began(), told.Calling(thread=T, id="a", name="Read"), 1.5],
        "--\n  • Read  1.5s  …\n⠴ working · 1.5s",
    ),
    "parallel-calls-stand-together": (
        [
            began(),
            spoke("Look:"),
            turn_ended(),
            prepared("a", "Read", path="/w/src/a.py"),
            prepared("b", "Bash", command="make  test"),
            started("a", "Read"),
            started("b", "Bash"),
            3.0,
            called(calls.Progress, "b", "Bash", message="12 of 40"),
        ],
        "Look:\n--\n  • Read src/a.py  3.0s\n  • Bash make test  3.0s  12 of 40\n⠋ working · 3.0s",
    ),
    "what-a-command-has-printed-so-far-stands-below-it": (
        [
            began(),
            prepared("a", "Bash", command="make"),
            started("a", "Bash"),
            called(calls.Progress, "a", "Bash", message="cc b.c", rows=("cc a.c", "cc b.c")),
        ],
        "--\n  • Bash make\n    cc a.c\n    cc b.c\n⠋ working · 0.0s",
    ),
    "several-commands-share-the-rows": (
        [
            began(),
            *(
                called(calls.Progress, key, "Bash", message="9", rows=tuple(f"{key}{number}" for number in range(10)))
                for key in "abcde"
            ),
        ],
        "--\n" + "".join(f"  • Bash  …\n    {key}8\n    {key}9\n" for key in "abcde") + "⠋ working · 0.0s",
    ),
    "ends-in-the-order-of-their-ends": (
        [
            began(),
            prepared("a", "Read", path="/w/a"),
            prepared("b", "Bash", command="false"),
            started("a", "Read"),
            started("b", "Bash"),
            done("b", "Bash", result="x\n<exit_code>1</exit_code>", took=2.5),
            done("a", "Read", result="1\n2\n3"),
        ],
        "  ✗ Bash false  exit 1 · 2.5s\n  ✓ Read a  3 lines\n--\n⠋ thinking · 0.0s",
    ),
    "a-command-is-shown-itself-and-what-the-model-says-of-it-beside-it": (
        [
            began(),
            prepared("a", "Bash", command="git log; touch SNEAKY", description="List files"),
            done("a", "Bash", exit_code=0),
            prepared("b", "Bash", command="make", description="Build"),
            done("b", "Bash", status="error", error=Failure("Exit code 2\nbad"), exit_code=2),
            prepared("c", "Bash", command="make test", description="Test it"),
        ],
        (
            "  ✓ Bash git log; touch SNEAKY  (List files)  exit 0\n"
            "  ✗ Bash make  (Build)  exit 2\n"
            "--\n  • Bash make test  (Test it)\n⠋ working · 0.0s"
        ),
    ),
    "the-end-of-what-a-command-printed-stands-below-it": (
        [
            began(),
            prepared("a", "Bash", command="make"),
            done("a", "Bash", result="Exit code 2\nfatal: no", exit_code=2, output="cc x.c\nfatal: no\n"),
        ],
        "  ✗ Bash make  exit 2\n    cc x.c\n    fatal: no\n--\n⠋ thinking · 0.0s",
    ),
    "what-the-model-says-of-a-command-gives-way-to-the-command": (
        [
            began(),
            prepared("a", "Bash", command="git log --oneline --all -- src tests", description="List " * 9),
            done("a", "Bash", exit_code=0),
        ],
        ("  ✓ Bash git log --oneline --all -- src tests  (List List Lis…  exit 0\n--\n⠋ thinking · 0.0s"),
    ),
    "a-todo-is-told-by-its-subject": (
        [began(), prepared("a", "TaskCreate", subject="Write it", description="Under Unreleased."), done("a", "Task")],
        "  ✓ TaskCreate Write it  ok\n--\n⠋ thinking · 0.0s",
    ),
    "a-failure-says-why": (
        [
            began(),
            prepared("a", "Read", path="nothing"),
            done("a", "Read", status="error", error=Failure("There is no nothing.\nmore")),
        ],
        "  ✗ Read nothing\n    There is no nothing.\n    more\n--\n⠋ thinking · 0.0s",
    ),
    "a-call-that-waits-for-the-person-is-in-the-question": (
        [began(), prepared("a", "Edit", path="a"), called(calls.Blocked, "a", "Edit", question="?")],
        "--",
    ),
    "an-edit-shows-what-changed": (
        [began(), prepared("a", "Edit", path="a", old="x\ny", new="x\nz"), done("a", "Edit", files=("/w/a",))],
        "  ✓ Edit a  +1 -1\n     x\n    -y\n    +z\n--\n⠋ thinking · 0.0s",
    ),
    "an-edit-has-line-numbers-where-the-file-is-known": (
        [
            began(),
            prepared("a", "Edit", path="a", old="4", new="four"),
            done(
                "a", "Edit", files=("/w/a",), edits=(calls.FileEdit("/w/a", "1\n2\n3\n4\n5\n", "1\n2\n3\nfour\n5\n"),)
            ),
        ],
        "  ✓ Edit a  +1 -1\n    1   1\n    2   2\n    3   3\n    4 - 4\n    4 + four\n    5   5\n--\n⠋ thinking · 0.0s",
    ),
    "a-file-that-is-too-large-to-be-told-shows-what-was-asked-for": (
        [
            began(),
            prepared("a", "Edit", path="a", old="x", new="y"),
            done("a", "Edit", files=("/w/a",), edits=(calls.FileEdit("/w/a", left_out="too-large"),)),
        ],
        "  ✓ Edit a  +1 -1\n    -x\n    +y\n--\n⠋ thinking · 0.0s",
    ),
    "a-long-edit-is-cut": (
        [
            began(),
            prepared("a", "Write", path="a", content="\n".join(map(str, range(32)))),
            done("a", "Write", files=("/w/a",)),
        ],
        "  ✓ Write a  +32\n"
        + "".join(f"    +{number}\n" for number in range(20))
        + "    … 12 more lines, /diff shows all\n--\n⠋ thinking · 0.0s",
    ),
    "thinking-is-folded": (
        [began(), told.Thought(thread=T, text="**First look.\nThen act."), 2.0, spoke("Hi\n")],
        "  ✻ Thought for 2.0s: First look.\n--\nHi\n\n⠋ writing · 2.0s",
    ),
    "thinking-goes-on": (
        [began(), told.Thought(thread=T, text="First\nSecond thing")],
        "--\n  ✻ Second thing\n⠋ thinking · 0.0s",
    ),
    "what-a-repetition-voids": (
        [began(), spoke("Half a"), told.Retrying(thread=T, why="It is overloaded.", seconds=2.0, attempt=1)],
        "  ↻ Asking again in 2.0s (try 1): It is overloaded.\n--\n⠋ waiting for the model · 0.0s",
    ),
    "what-a-repetition-voids-that-was-printed": (
        [began(), spoke("A.\n\nB"), told.Retrying(thread=T, why="cut", seconds=2.0, attempt=2)],
        "A.\n\n  ↻ Asking again in 2.0s (try 2): cut. What it said above is void.\n--\n⠋ waiting for the model · 0.0s",
    ),
    "an-answer-after-a-repetition": (
        [began(), told.Retrying(thread=T, why="cut", seconds=2.0, attempt=1), spoke("Now")],
        "  ↻ Asking again in 2.0s (try 1): cut.\n--\nNow\n⠋ writing · 0.0s",
    ),
    "a-warning-and-a-report": (
        [
            began(),
            told.Warned(thread=T, sentence="Beware."),
            called(calls.Reported, "", "", sentence="A hook says no."),
        ],
        "  ! Beware.\n  ! A hook says no.\n--\n⠋ thinking · 0.0s",
    ),
    "compacted": (
        [began(), told.Compacted(thread=T, kind="summary", before_tokens=150_000, after_tokens=9_000)],
        "  The conversation was summed up: 150.0k → 9.0k tokens.\n--\n⠋ thinking · 0.0s",
    ),
    "interrupted": (
        [began(), spoke("Half"), prepared("a", "Bash", command="sleep"), ended("interrupted")],
        "Half\n\n  ✗ Bash sleep  stopped\n\n  Interrupted. Say what to do otherwise, or “go on”.\n--",
    ),
    "a-limit": (
        [began(), ended("turns")],
        "  The limit of turns was met (loop.turns). Say “go on” to continue.\n--",
    ),
    "an-error-says-what-to-do": (
        [began(), ended("error", "The key is refused. Set another.")],
        (
            "  ✗ The key is refused. Set another.\n"
            "    The conversation is as it was: say it again, or use /model for an…\n--"
        ),
    ),
    "a-long-run-says-what-it-took": (
        [began(), 75.0, spoke("Done."), ended()],
        "Done.\n\n  1m 15s · 1.2k in, 30 out\n--",
    ),
    "a-helper-at-work": (
        [
            began(),
            prepared("a", "Task", description="find the bug"),
            started("a", "Task"),
            told.ChildBegan(thread=T, child=CHILD, call_id="a", name="Explore", description="find the bug", model="m"),
            told.Spoke(thread=CHILD, text="hidden"),
            turn_ended(CHILD, turns=3, tokens=12_400),
            prepared("c", "Grep", CHILD, pattern="TODO", path="/w/src"),
            4.0,
        ],
        (
            "--\n  • Task find the bug  4.0s\n"
            '    └ Explore f…  3 answers · 12.4k tokens · 4.0s · Grep "TODO" in src\n'
            "⠋ working · 4.0s"
        ),
    ),
    "a-helper-that-is-done": (
        [
            began(),
            prepared("a", "Task", description="find the bug"),
            told.ChildBegan(thread=T, child=CHILD, call_id="a", name="Explore", description="", model="m"),
            prepared("c", "Grep", CHILD, pattern="x"),
            done("c", "Grep", CHILD),
            told.ChildEnded(thread=T, child=CHILD, reason="end", spent=Spent(2, Usage(900, 100), seconds=12.0)),
            done("a", "Task", result="found it", took=12.5),
        ],
        "  ✓ Task find the bug  found it · 12s\n    └ ✓ Explore  2 answers · 1.0k tokens · 12s\n--\n⠋ thinking · 0.0s",
    ),
    "a-helper-in-the-background": (
        [
            began(),
            prepared("a", "Task", description="d"),
            told.ChildBegan(thread=T, child=CHILD, call_id="a", name="Bash", description="d", model="m"),
            done("a", "Task", result="left running"),
            told.ChildEnded(thread=T, child=CHILD, reason="turns", spent=Spent(50, Usage(10, 10), seconds=9.0)),
        ],
        "  ✓ Task d  left running\n  └ ✗ Bash d  50 answers · 20 tokens · 9.0s · stopped: turns\n--\n⠋ thinking · 0.0s",
    ),
    "what-steers-a-screen-is-written-out": (
        [
            began(),
            prepared("a\x1b", "Ba\x1b[2Jsh", command="x\x1b]0;t\x07\ny"),
            done("a\x1b", "Ba\x1b[2Jsh", status="error", error=Failure("\x1b[31mred\x9b1m\u202e")),
        ],
        "  ✗ Bash x ↵ y  red\n--\n⠋ thinking · 0.0s",
    ),
}


@each_row("name", SCREENS)
def test_events_become_a_screen(name):
    events, screen = SCREENS[name]

    assert Stage().play(*events).screen == screen


@pytest.mark.parametrize("width", [60, 80, 140])
def test_advice_is_never_cut_off(width):
    message = "127.0.0.1 is not fetched from, because it is private: the user can add it to web.private_hosts."
    stage = Stage().play(began(), prepared("a", "WebFetch", url=f"http://127.0.0.1/{'x' * 90}"))

    pieces = stage.lines.feed(done("a", "WebFetch", status="error", error=Failure(message)))
    rows = [plain(row) for row in wrap_lines(pieces, width)]

    assert message in " ".join(" ".join(rows).split())
    assert all(len(row) <= width for row in rows)


@pytest.mark.parametrize(("failed", "rows"), [(9, "… 1 more line"), (10, "… 2 more lines")])
def test_advice_that_is_too_long_says_how_many_lines_are_missing(failed, rows):
    message = "\n".join(f"reason {number}" for number in range(failed))
    stage = Stage().play(began(), prepared("a", "Edit", path="a.py"))

    shown = plain(stage.lines.feed(done("a", "Edit", status="error", error=Failure(message)))[-1])
    assert shown.strip() == rows


def test_of_a_reply_to_a_call_about_nothing_no_lines_are_counted():
    stage = Stage().play(began(), prepared("a", "EnterPlanMode"), prepared("b", "Read", path="a.py"))
    stage.play(done("a", "EnterPlanMode", result="one\ntwo"), done("b", "Read", result="one\ntwo"))

    assert "  ✓ EnterPlanMode\n  ✓ Read a.py  2 lines" in stage.screen


def test_what_was_typed_meanwhile_is_queued_until_the_model_hears_it():
    stage = Stage().play(began(), prepared("a", "Bash", command="make"))
    stage.lines.queued.append("also this")
    assert "  ↳ queued: also this" in stage.screen

    stage.play(done("a", "Bash"), told.Steered(thread=T, text="also this"))

    assert stage.screen == "  ✓ Bash make  ok\n\n> also this\n--\n⠋ thinking · 0.0s"


def test_what_a_question_has_shown_is_not_shown_again():
    stage = Stage().play(began(), prepared("a", "Edit", path="a", old="x", new="y"))
    stage.lines.mark_seen("a")

    stage.play(done("a", "Edit", files=("/w/a",)))

    assert stage.printed == ["  ✓ Edit a  +1 -1"]


def test_a_call_that_was_refused_at_once_names_its_file():
    refused = Failure("Refusing to read env file.", "reading-secret-file", "/w/sub/.env")
    stage = Stage().play(began(), done("a", "Read", status="error", error=refused))

    assert stage.printed == ["  ✗ Read sub/.env  Refusing to read env file."]


def test_what_a_command_had_printed_stays_when_it_is_interrupted():
    stopped = Failure("The call was cancelled.")
    stage = Stage().play(began(), prepared("a", "Bash", command="make test"))
    stage.play(called(calls.Progress, "a", "Bash", message="two", rows=("one", "two")))

    stage.play(done("a", "Bash", status="cancelled", result=None, error=stopped))
    assert stage.printed == ["  ✗ Bash make test  interrupted", "    one", "    two"]
    assert stage.lines.wholes == [("Bash make test", "one\ntwo", None)]


def test_thinking_can_be_shown_whole():
    stage = Stage()
    stage.lines.whole_thinking = True

    stage.play(began(), told.Thought(thread=T, text="First.\nSecond."), spoke("Hi.\n\n"))

    assert stage.printed == ["~First.", "~Second.", "", "Hi."]


def test_only_some_of_many_calls_are_live():
    stage = Stage().play(began(), *(prepared(str(number), "Read", path=str(number)) for number in range(12)))

    assert "    … and 4 more" in stage.screen
    assert len(stage.lines.live()) == 10


def test_after_the_end_nothing_is_live():
    stage = Stage().play(began(), prepared("a", "Read", path="a"), ended("interrupted"))

    assert stage.lines.live() == []
    assert not stage.lines.is_running


def test_a_helper_in_the_background_goes_on_after_the_end_and_its_end_is_told():
    stage = Stage().play(
        began(),
        prepared("a", "Task", description="d"),
        told.ChildBegan(thread=T, child=CHILD, call_id="a", name="Explore", description="d", model="m"),
        told.Began(thread=CHILD, prompt="", model="m", dialect="claude", cwd="/c", tools=(), permission_mode="default"),
        done("a", "Task", result="left running"),
        ended(),
    )
    assert [plain(row) for row in stage.lines.live()] == ["    └ Explore d  0.0s · thinking"]

    end = Spent(2, Usage(10, 10), seconds=9.0)
    stage.play(
        told.Ended(thread=CHILD, reason="end", text="", spent=end, total=end),
        told.ChildEnded(thread=T, child=CHILD, reason="end", spent=end),
    )

    assert stage.printed[-1] == "  └ ✓ Explore d  2 answers · 20 tokens · 9.0s"
    assert stage.lines.live() == []


def test_words_and_the_calls_of_a_helper_after_them_are_parted():
    stage = Stage().play(
        began(),
        spoke("Look."),
        told.Calling(thread=T, id="a", name="Task"),
        told.ChildBegan(thread=T, child=CHILD, call_id="a", name="Explore", description="", model="m"),
        told.Ended(thread=CHILD, reason="end", text="", spent=Spent(), total=Spent()),
        told.ChildEnded(thread=T, child=CHILD, reason="end", spent=Spent(1)),
        done("a", "Task"),
    )

    assert stage.printed == ["Look.", "", "  ✓ Task  ok", "    └ ✓ Explore  1 answer · 0 tokens · 0.0s"]


def test_a_hook_is_no_call_and_leaves_no_row():
    stage = Stage().play(
        called(calls.HookRun, "h1", "SessionStart:startup", hook="SessionStart"),
        called(calls.HookRun, "h1", "SessionStart:startup", hook="SessionStart", ended=True, exit_code=1),
        began(),
        spoke("Hi.\n"),
        turn_ended(),
        ended(),
    )

    assert stage.screen == "Hi.\n--"
