"""The conversation at a real terminal: typed, seen, asked, interrupted, steered, resized, left and resumed."""

import json
import os
import re
import signal
import time

import pytest
from tests.cli.talk.terminals import Pty, open_terminal

HEADER = {"ferrule": "conversation", "version": 1, "model": "claude-opus-4-5", "wire": "anthropic", "piece": 8}
READ = {"use": "Read", "input": {"file_path": "${workspace}/app.py"}}
GREP = {"use": "Grep", "input": {"pattern": "add"}}
READY = r"^> *\n  (default|acceptEdits|plan mode)"
EDIT = {"use": "Edit", "input": {"file_path": "${workspace}/app.py", "old_string": "a - b", "new_string": "a + b"}}


def script(folder, *cues):
    """A recorded conversation as a file."""
    path = folder / "script.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (HEADER, *cues)))
    return str(path)


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "app.py").write_text("def add(a, b):\n    return a - b\n")
    return folder


@pytest.fixture
def terminal():
    opened = []

    def start(arguments, cwd, columns=100, rows=30, kind=open_terminal, **environment):
        one = kind(columns, rows)
        opened.append(one)
        one.start(["chat", *arguments], cwd, **environment)
        return one

    yield start
    for one in opened:
        one.close()


def submit(terminal, text):
    """Type a line, see it, and send it."""
    terminal.type(text)
    terminal.wait(re.escape(text[-10:]))
    terminal.press("Enter")


def test_a_task_is_typed_and_its_answer_calls_and_question_are_seen(tmp_path, project, terminal, unconfined):
    path = script(
        tmp_path,
        {"parts": [{"thinking": "A look first."}, {"text": "I'll *look*:\n\n- read\n- fix\n\n"}, READ, GREP]},
        {"parts": [EDIT]},
        {"text": "Fixed: `a + b`.\n\n```python\nreturn a + b\n```"},
        {"text": "Bye."},
    )
    one = terminal(["--replay", path], project)
    shown = one.wait(READY)
    assert "Ferrule" in shown
    assert "/help" in shown

    submit(one, "fix it")
    shown = one.wait(r"\[t\]ell the model why not")
    assert "✻ Thought for" in shown
    assert "I'll look:" in shown
    assert " • read" in shown
    assert "✓ Read app.py  2 lines" in shown
    assert '✓ Grep "add"' in shown
    assert "? Edit: write app.py" in shown
    assert "2 -     return a - b" in shown
    assert "a - b" in (project / "app.py").read_text()

    one.press("Enter")  # is no answer
    one.type("xy")  # nor are words, in which a letter may be one: they are the next message
    one.wait("> xy$")
    one.press("C-u")
    time.sleep(0.6)  # so long a pause makes the next key an answer
    one.type("y")
    shown = one.wait("Fixed: a . b.")
    assert "→ yes" in shown
    assert "✓ Edit app.py  +1 -1" in shown
    assert "a + b" in (project / "app.py").read_text()

    for command, pattern in (
        ("/diff", r"^ *\+ +return a \+ b$"),
        ("/undo", "Undone: edit of app.py"),
        ("/hlep", "Did you mean /help"),
        ("/help", "esc Enter, ctrl-J"),
        ("/cost", "answers  3"),
    ):
        submit(one, command)
        one.wait(pattern)
    assert "a - b" in (project / "app.py").read_text()

    one.press("C-c")
    one.wait("Press ctrl-C again to leave")
    one.press("C-c")
    assert one.ended() == 0


def test_a_no_with_words_reaches_the_model_and_typed_ahead_keys_do_not_answer(tmp_path, project, terminal):
    path = script(
        tmp_path,
        {"text": "Wait.", "pause": 0.2, "parts": [READ, EDIT]},
        {"expect": "use a plus sign", "text": "I see."},
    )
    one = terminal(["--replay", path], project)
    one.wait(READY)
    submit(one, "fix it")
    one.wait("working")  # a key that is read together with Enter makes a paste of both
    # The user is in the middle of a sentence when the question comes: its letters are no answers.
    for _ in range(400):
        if "Allow it?" in one.screen():
            break
        one.type("y")
        time.sleep(0.03)
    one.type("ny")
    one.wait(r"n\s*y$")
    one.wait("To answer, pause for a moment")
    assert "a - b" in (project / "app.py").read_text()
    one.press("C-u")
    one.wait(r"^> *$")
    answer_when_quiet(one, "t", "What should the model know")
    one.type("use a plus sign")
    one.press("Enter")
    shown = one.wait("I see.")
    assert "→ no: use a plus sign" in shown
    assert "✗ Edit app.py" in shown
    one.press("C-d")
    assert one.ended() == 0


def written(path):
    """Wait until a command has written its file."""
    limit = time.monotonic() + 30
    while not path.exists() or not path.read_text().strip():
        assert time.monotonic() < limit, f"{path} was not written."
        time.sleep(0.03)


def answer_when_quiet(terminal, key, pattern):
    """Press a key until it is heard: right after other keys it is taken for one more of them."""
    for _ in range(20):
        time.sleep(0.6)  # the pause that the screen waits for
        terminal.type(key)
        time.sleep(0.1)
        # A stream holds only the cells that changed, so that the words themselves may not be in it.
        if not terminal.is_real or re.search(pattern, terminal.screen()):
            return
        terminal.press("C-u")
    raise AssertionError(terminal.screen())


def test_ctrl_c_stops_the_answer_and_the_commands_and_the_conversation_goes_on(tmp_path, project, terminal, unconfined):
    path = script(
        tmp_path,
        {"text": "This never ends", "hang": True},
        {"parts": [{"use": "Bash", "input": {"command": "echo $$ > pid; exec sleep 600"}}]},
        {"text": "Third answer."},
    )
    one = terminal(["--replay", path, "--yes"], project)
    one.wait(READY)
    submit(one, "begin")
    one.wait("This never ends")
    one.press("C-c")
    one.wait("Interrupted")

    submit(one, "run it")
    one.wait("• Bash echo")
    written(project / "pid")
    one.press("C-c")
    shown = one.wait("✗ Bash echo .* interrupted")
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "pid").read_text()), 0)

    submit(one, "and now")
    shown = one.wait("Third answer")
    assert shown.count("Interrupted.") == 2
    one.press("C-d")
    assert one.ended() == 0
    assert "Traceback" not in one.screen()


def test_what_is_typed_while_it_works_steers_it_and_a_resize_leaves_no_rubbish(tmp_path, project, terminal, unconfined):
    words = "a long sentence that has to be wrapped in a narrow terminal and not in a wide one, " * 2
    path = script(
        tmp_path,
        {"text": words, "parts": [{"use": "Bash", "input": {"command": "until [ -e go ]; do sleep 0.05; done"}}]},
        {"expect": "mind the docs", "text": "The docs too."},
    )
    one = terminal(["--replay", path, "--yes"], project)
    one.wait(READY)
    submit(one, "begin")
    one.wait("• Bash until .* [0-9]")
    one.resize(44, 24)
    one.wait("^  • Bash until")
    submit(one, "mind the docs")
    one.wait("↳ queued: mind the docs")
    (project / "go").touch()
    one.wait("The docs too")
    one.wait("queued", gone=one.is_real)
    one.resize(100, 30)
    if one.is_real:
        shown = one.wait(r"^  default \+ yes · .*context")
        assert shown.count("✓ Bash until") == 1
        assert shown.count("• Bash until") == 0
        assert shown.count("> mind the docs") == 1
        assert shown.count("context") == 1
    one.press("C-d")
    assert one.ended() == 0


def test_a_conversation_is_left_and_resumed(tmp_path, project, terminal):
    path = script(tmp_path, {"text": "The answer is **42**."})
    one = terminal(["--replay", path], project)
    one.wait(READY)
    one.paste("What\tis\nthe answer?" + "\nto it" * 60)
    one.wait("to it")
    one.press("Enter")
    shown = one.wait("The answer is 42")
    assert "… 22 more rows" in shown
    submit(one, "/exit")
    assert one.ended() == 0

    more = script(tmp_path, {"text": "Still 42."})
    other = terminal(["--replay", more, "--continue"], project)
    shown = other.wait("The answer is 42")
    assert "> What    is" in shown
    submit(other, "sure?")
    other.wait("Still 42")
    submit(other, "/clear")
    other.wait("A new conversation")
    submit(other, "/resume")
    other.wait(r"Which conversation\?(.*\n)*.*→ ")
    other.press("Enter")
    other.wait("(?s)A new conversation.*Still 42")
    other.press("C-d")
    assert other.ended() == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_gives_the_terminal_back_and_leaves_nothing_running(tmp_path, project, terminal, unconfined, name):
    path = script(tmp_path, {"parts": [{"use": "Bash", "input": {"command": "echo $$ > pid; exec sleep 600"}}]})
    one = terminal(["--replay", path, "--yes"], project)
    one.wait(READY)
    submit(one, "begin")
    one.wait("• Bash echo")
    written(project / "pid")

    one.signal(getattr(signal, name))

    assert one.ended() == 128 + getattr(signal, name)
    assert "Traceback" not in one.screen()
    with pytest.raises(ProcessLookupError):
        os.kill(int((project / "pid").read_text()), 0)


def test_a_terminal_that_can_do_little_is_talked_to_in_lines(tmp_path, project, terminal):
    path = script(
        tmp_path, {"text": "# Look\n\nat **this**", "parts": [READ]}, *[{"parts": [EDIT]}] * 2, {"text": "Done."}
    )
    one = terminal(["--replay", path], project, kind=Pty, TERM="dumb")
    one.wait("^> $")
    one.type("fix it\n")
    one.wait(r"\[n\]o .*: $")
    one.press("C-c")
    one.wait("Interrupted")
    one.type("go on\n")
    one.wait(r"go on(.*\n)*.*\[n\]o .*: $")
    one.type("y\n")
    shown = one.wait(r"Done\.\s+> $")
    one.press("C-c")
    one.wait("Press ctrl-C again to leave")
    one.type("\x04")

    assert one.ended() == 0
    assert "Look\n\nat this" in shown
    assert "a + b" in (project / "app.py").read_text()
    assert b"\x1b" not in one._raw


@pytest.mark.parametrize("size", [pytest.param((40, 12), id="narrow"), pytest.param((200, 60), id="wide")])
def test_it_fits_every_terminal(tmp_path, project, terminal, size):
    code = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(80)) + "```\n\nEnd of it."
    path = script(tmp_path, {"text": code, "parts": [READ, EDIT]}, {"text": "ok"})
    one = terminal(["--replay", path], project, *size, NO_COLOR="1")
    one.wait(READY)
    submit(one, "go")
    shown = one.wait(r"\[t\]ell the model why not")

    assert "line_0 = 0" in shown
    assert "line_79 = 79" in shown
    if one.is_real:
        assert shown.count("line_40 = 40") == 1
    one.type("n")
    one.wait("→ no")
    one.press("C-d")
    assert one.ended() == 0


def test_plan_mode_stays_on_when_a_command_opens_the_session_again(tmp_path, project, terminal):
    path = script(tmp_path, {"text": "Hello."})
    one = terminal(["--replay", path, "--dialect", "amp"], project)
    one.wait(READY)
    submit(one, "/plan")
    one.wait("Plan mode is on")

    submit(one, "/resume T-nobody")
    one.wait("There is no conversation with the id T-nobody")
    submit(one, "/dialect gemini")
    one.wait(r"plan mode .*· gemini")
    submit(one, "/clear")
    one.wait(r"/clear\n(.*\n)*> *\n  plan mode .*· gemini")

    submit(one, "/plan")
    one.wait("Plan mode is off; the permission mode is default")
    submit(one, "/dialect amp")
    one.wait(r"default .*· amp")
    one.press("C-d")
    assert one.ended() == 0


def test_what_went_wrong_is_read_to_its_end_in_a_narrow_terminal(tmp_path, project, terminal):
    words = "The key in SOME_API_KEY is refused; set that variable to a key that is valid for this host."
    path = script(tmp_path, {"fail": {"kind": "wrong-key", "message": words}})
    one = terminal(["--replay", path], project, columns=40)
    one.wait(READY)
    submit(one, "hello")
    shown = one.wait("use /model")

    assert words in " ".join(shown.split())


def test_a_question_can_be_interrupted_and_left(tmp_path, project, terminal):
    path = script(tmp_path, {"parts": [READ, EDIT]}, {"parts": [EDIT]})
    one = terminal(["--replay", path], project)
    one.wait(READY)
    submit(one, "fix it")
    one.wait(r"\[t\]ell the model why not")
    one.press("C-c")
    one.wait("Interrupted")

    submit(one, "once more")
    one.wait(r"once more\n(.*\n)*.*\[t\]ell the model why not")
    one.press("C-d")
    assert one.ended() == 0
    assert "a - b" in (project / "app.py").read_text()


def test_what_the_model_has_not_heard_goes_back_into_the_input(tmp_path, project, terminal, unconfined):
    path = script(
        tmp_path,
        {"parts": [{"use": "Bash", "input": {"command": "echo $$ > pid; exec sleep 600"}}]},
        {"text": "Second answer."},
    )
    one = terminal(["--replay", path, "--yes"], project)
    one.wait(READY)
    submit(one, "begin")
    one.wait("• Bash echo")
    written(project / "pid")
    submit(one, "/hlep")
    one.wait("Did you mean /help")
    submit(one, "/plan")
    one.wait("/plan can be used when the agent is done")
    submit(one, "/permissions")
    one.wait("The permission mode is default")
    submit(one, "/etc/hosts is odd")
    one.wait("queued: /etc/hosts is odd")
    one.type("half")
    one.press("C-c")

    one.wait("Interrupted")
    shown = one.wait(r"> /etc/hosts is odd\n *half")
    if one.is_real:
        assert "queued" not in shown
    one.press("Enter")
    one.wait("Second answer")
    one.press("C-d")
    assert one.ended() == 0


def test_what_was_typed_before_is_looked_for(tmp_path, project, terminal):
    path = script(tmp_path, {"text": "One."}, {"text": "Two."})
    one = terminal(["--replay", path], project)
    one.wait(READY)
    submit(one, "the needle in it")
    one.wait("One.")
    submit(one, "something else")
    one.wait("Two.")

    one.press("C-r")
    one.wait("typed before:")
    one.type("Needle")
    one.wait(r"Two\.(.*\n)*.*the needle in it")
    one.press("Enter")
    one.wait("typed before", gone=one.is_real)
    one.press("C-e")
    one.type(" again")
    one.wait("again$")
    one.press("C-r")
    one.press("C-c")  # ends the search, not the line
    one.wait("typed before", gone=one.is_real)
    one.press("C-u", "C-d")
    assert one.ended() == 0


def test_a_write_of_another_session_is_not_undone_unasked(tmp_path, project, terminal):
    path = script(tmp_path, {"parts": [READ]}, {"parts": [EDIT]}, {"text": "Done."})
    first = terminal(["--replay", path, "--yes"], project)
    first.wait(READY)
    submit(first, "fix it")
    first.wait("Done.")
    other = terminal(["--replay", path], project)
    other.wait(READY)

    submit(other, "/undo")
    other.wait("Undo it all the same")
    other.press("C-c")
    other.wait("Nothing was undone")
    submit(other, "/cost please")
    other.wait("/cost takes nothing behind it")
    assert "a + b" in (project / "app.py").read_text()
    submit(other, "/undo")
    other.wait(r"takes nothing(.*\n)*.*Undo it all the same")
    other.type("y")
    other.wait("Undone: edit of app.py")

    assert "a - b" in (project / "app.py").read_text()
    for one in (first, other):
        one.press("C-d")
        assert one.ended() == 0


def test_plan_mode_begins_with_its_task(tmp_path, project, terminal):
    path = tmp_path / "script.jsonl"
    cues = {**HEADER, "prices": [5, 25, 0.5, 6.25]}, {"expect": "find the bug", "text": "I look."}
    path.write_text("".join(json.dumps(row) + "\n" for row in cues))
    one = terminal(["--replay", str(path)], project)
    one.wait(READY)
    submit(one, "/cost")
    one.wait("cost +nothing yet")
    submit(one, "/plan find the bug")
    one.wait("Plan mode is on")
    one.wait("I look.")
    one.wait("^  plan mode")
    one.press("C-d")
    assert one.ended() == 0


def test_what_is_sent_while_the_conversation_is_summed_up_is_seen_to_wait(tmp_path, project, terminal):
    path = script(tmp_path, {"text": "One."}, {"hang": True}, {"text": "Two."})
    one = terminal(["--replay", path], project)
    one.wait(READY)
    submit(one, "begin")
    one.wait("One.")
    submit(one, "/compact")
    one.wait("summing the conversation up")
    submit(one, "go on then")
    one.wait("queued: go on then")
    one.press("C-c")
    one.wait("Stopped: the conversation is as it was")
    one.wait("Two.")
    one.press("C-d")
    assert one.ended() == 0


def test_the_whole_output_of_the_last_call_is_a_key_away(tmp_path, project, terminal, unconfined):
    bash = {"use": "Bash", "input": {"command": "seq 1 200", "description": "Count"}}
    path = script(tmp_path, {"parts": [bash]}, {"text": "Counted."}, {"text": "Yes."})
    one = terminal(["--replay", path, "--yes"], project, rows=20, PAGER="less")
    one.wait(READY)

    submit(one, "count")
    shown = one.wait("Counted")
    assert "✓ Bash seq 1 200  (Count)  exit 0" in shown
    assert "… 190 more lines" in shown

    one.press("C-o")
    shown = one.wait(r"^Bash seq 1 200$")
    assert "\n2\n" in shown
    one.type("q")
    one.wait(READY)
    submit(one, "all of it?")
    one.wait("Yes")
