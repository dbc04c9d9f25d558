"""`ferrule run` with signals, and with readers that go away: nothing is left running, the conversation stays whole."""

import os
import signal
import sqlite3
import subprocess

import pytest
from tests.agent.stage import check_valid, words
from tests.cli.recordings import FERRULE, lines_of, lives, recording, start, until, written
from tests.cli.talk.terminals import Pty

from ferrule.agent.threads import resume
from ferrule.models.cues import calls, hangs, said
from ferrule.tools.threads.store import ThreadStore

pytestmark = pytest.mark.usefixtures("unconfined")


def nap(number):
    """A number of seconds by which the command can be found among all processes."""
    return f"3{number}.{os.getpid()}"


def waiting(folder, number):
    """A recording whose second call says that it runs, and then does not end."""
    done = ("Bash", {"command": "true"})
    slow = ("Bash", {"command": f"echo $$ > pid; sleep {nap(number)}; true"})
    return recording(folder / "c.jsonl", calls(done, text="I begin."), calls(slow, text="I wait."), said("Never."))


def turns_in(folder):
    store = ThreadStore(os.path.join(os.environ["FERRULE_STATE"], "threads"))
    thread = store.load(store.latest(str(folder)) or "")
    assert thread is not None
    store.close()
    with sqlite3.connect(os.path.join(os.environ["FERRULE_STATE"], "threads", "threads.db")) as database:
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    database.close()
    return resume(thread.items).history.turns


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def goes_on(place, tmp_path):
    path = recording(tmp_path / "more.jsonl", said("Going on."))
    done = subprocess.run(
        [*FERRULE, "run", "Go on.", "--continue", "--replay", path],
        cwd=place,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Going on.\n", b"")
    check_valid(turns_in(place))


def test_ctrl_c_stops_the_calls_and_the_conversation_goes_on(place, tmp_path):
    path = waiting(tmp_path, 1)
    child = start(["run", "Wait.", "--replay", path, "--yes", "--output", "stream-json"], place)
    until(lambda: written(place / "pid"), child)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)

    assert (child.returncode, err) == (130, b"")
    lines = lines_of(out)
    assert (lines[-1]["type"], lines[-1]["reason"], lines[-1]["is_error"]) == ("result", "interrupted", True)
    answered = [block for line in lines if line["type"] == "user" for block in line["message"]["content"]]
    assert [block.get("tool_use_id") or block["text"] for block in answered] == [
        "c1",
        "c2",
        "[Request interrupted by user for tool use]",
    ]
    assert not lives(nap(1))
    check_valid(turns_in(place))
    goes_on(place, tmp_path)


def test_ctrl_c_while_the_model_speaks_keeps_what_it_said(place, tmp_path):
    path = recording(tmp_path / "c.jsonl", hangs("I say this and"))
    child = start(["run", "Speak.", "--replay", path, "--output", "stream-json", "--partial"], place)
    heard = b""
    while b'"text":"and"' not in heard:
        heard = child.stdout.readline()
        assert heard
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)

    assert (child.returncode, err) == (130, b"")
    assert lines_of(out)[-1]["result"] == "I say this and"
    goes_on(place, tmp_path)


def test_ctrl_c_at_a_terminal_says_so(place, tmp_path):
    terminal = Pty(80, 24)
    try:
        terminal.start(["run", "Wait.", "--replay", waiting(tmp_path, 2), "--yes"], place, NO_COLOR="1")
        terminal.wait("I wait")
        until(lambda: written(place / "pid"))
        terminal.press("C-c")
        shown = terminal.wait("answers, ")
        assert terminal.ended() == 130
    finally:
        terminal.close()
    assert "■ Bash echo $$ > pid" in shown
    assert "ferrule: Interrupted. Go on with --continue." in shown
    assert "Traceback" not in shown
    assert not lives(nap(2))
    goes_on(place, tmp_path)


def test_ctrl_c_at_a_question_ends_the_run(place, tmp_path):
    path = recording(tmp_path / "c.jsonl", calls(("Bash", {"command": "touch made"})), said("Never."))
    terminal = Pty(80, 24)
    try:
        terminal.start(["run", "Make.", "--replay", path], place, NO_COLOR="1")
        terminal.wait(r"\[n\]o: ")
        terminal.press("C-c")
        shown = terminal.wait("Go on with --continue")
        assert terminal.ended() == 130
    finally:
        terminal.close()
    assert "Traceback" not in shown
    assert not (place / "made").exists()
    goes_on(place, tmp_path)


def test_ctrl_c_before_the_work_has_begun_ends_it(place, tmp_path):
    with open(os.environ["FERRULE_SETTINGS"], "a", encoding="utf-8") as file:
        file.write(f'[[hooks.SessionStart]]\ncommand = "echo x > begun; sleep {nap(9)}; true"\n')
    path = recording(tmp_path / "c.jsonl", said("Never."))
    child = start(["run", "Go.", "--replay", path], place)
    until(lambda: written(place / "begun"), child)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)

    assert (child.returncode, out, err) == (130, b"", b"Interrupted.\n")
    assert not lives(nap(9))


def test_two_signals_leave_the_conversation_whole(place, tmp_path):
    with open(os.environ["FERRULE_SETTINGS"], "a", encoding="utf-8") as file:
        file.write(f'[[hooks.SessionEnd]]\ncommand = "echo x > ending; sleep {nap(8)}; true"\n')
    path = waiting(tmp_path, 7)
    child = start(["run", "Wait.", "--replay", path, "--yes"], place)
    until(lambda: written(place / "pid"), child)
    child.send_signal(signal.SIGTERM)
    until(lambda: written(place / "ending"), child)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=60)

    assert (child.returncode, out) == (143, b"I wait.\n")
    assert b"Interrupted" in err
    assert not lives(nap(7))
    assert not lives(nap(8))
    turns = turns_in(place)
    check_valid(turns)
    assert words(turns[-2]) == "I wait."


STUBBORN = "trap '' TERM INT; echo $$ > pid; while :; do sleep {}; done"


def test_ctrl_c_twice_ends_at_once(place, tmp_path):
    slow = ("Bash", {"command": STUBBORN.format(nap(3))})
    path = recording(tmp_path / "c.jsonl", calls(slow), said("Never."))
    child = start(["run", "Wait.", "--replay", path, "--yes"], place)
    until(lambda: written(place / "pid"), child)
    for _ in range(3):
        child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)

    assert child.returncode == 130
    assert b"Interrupted." in err
    assert b"Traceback" not in err
    assert not lives(nap(3))
    check_valid(turns_in(place))


def test_ctrl_c_while_it_waits_for_a_line_ends_it(place, tmp_path):
    path = recording(tmp_path / "c.jsonl", said("One."))
    options = ["--replay", path, "--input", "stream-json", "--output", "stream-json"]
    child = start(["run", *options], place, stdin=subprocess.PIPE)
    child.stdin.write(b'{"type":"user","message":{"role":"user","content":"1?"}}\n')
    child.stdin.flush()
    while b'"result"' not in child.stdout.readline():
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    child.wait(timeout=60)

    assert child.returncode == 130
    assert child.stderr.read() == b"Interrupted.\n"
    child.communicate()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("lines", [False, True], ids=["task", "lines"])
def test_a_signal_that_ends_it_leaves_nothing_running(place, tmp_path, name, lines):
    number = getattr(signal, name)
    path = waiting(tmp_path, 40 + number + lines)
    given = ["--input", "stream-json"] if lines else ["Wait."]
    stdin = subprocess.PIPE if lines else subprocess.DEVNULL
    child = start(["run", *given, "--replay", path, "--yes", "--output", "stream-json"], place, stdin=stdin)
    if lines:  # and standard input stays open
        child.stdin.write(b'{"type":"user","message":{"role":"user","content":"Wait."}}\n')
        child.stdin.flush()
    until(lambda: written(place / "pid"), child)
    child.send_signal(number)
    child.wait(timeout=60)

    assert child.returncode == 128 + number
    assert child.stderr.read() == b""
    child.communicate()
    assert not lives(nap(40 + number + lines))
    turns = turns_in(place)
    check_valid(turns)
    assert "I wait." in [words(turn) for turn in turns]


@pytest.mark.parametrize("options", [["--output", "stream-json"], ["--verbose"]], ids=["lines", "text"])
def test_when_nobody_reads_any_more_it_ends_quietly(place, tmp_path, options):
    number = 5 + len(options)
    begin = ("Bash", {"command": "echo go > begun; while ! test -e closed; do sleep 0.02; done"})
    slow = ("Bash", {"command": f"sleep {nap(number)}; true"})
    path = recording(tmp_path / "c.jsonl", calls(begin, text="I begin."), calls(slow, text="On."), said("Never."))
    err = subprocess.STDOUT if "--verbose" in options else subprocess.PIPE
    child = start(["run", "Wait.", "--replay", path, "--yes", *options], place, stderr=err)
    until(lambda: written(place / "begun"), child)
    child.stdout.close()
    (place / "closed").touch()

    assert child.wait(timeout=60) == 1  # the work was not done
    if child.stderr is not None:
        assert child.stderr.read() == b""
        child.stderr.close()
    assert not lives(nap(number))
    check_valid(turns_in(place))


@pytest.mark.parametrize(("name", "times"), [("SIGINT", 2), ("SIGTERM", 1)])
def test_a_reader_who_is_stuck_holds_up_no_signal(place, tmp_path, name, times):
    wait = ("Bash", {"command": f"echo x > begun; sleep {nap(60 + times)}; true"})
    path = recording(tmp_path / "c.jsonl", calls(wait, text="x" * 300_000), said("Never."))
    child = start(["run", "Wait.", "--replay", path, "--yes", "--output", "stream-json"], place)
    until(lambda: written(place / "begun"), child)  # although nobody reads
    number = getattr(signal, name)
    child.send_signal(number)
    until(lambda: not lives(nap(60 + times)))
    for _ in range(times - 1):
        child.send_signal(number)

    assert child.wait(timeout=60) == 128 + number
    child.communicate()
    check_valid(turns_in(place))


def test_an_output_that_does_not_wait_gets_all_of_it(place, tmp_path):
    path = recording(tmp_path / "c.jsonl", said("x" * 300_000))
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    child = start(["run", "Say.", "--replay", path, "--output", "json"], place, stdout=writer)
    os.close(writer)
    with open(reader, "rb") as file:
        (line,) = lines_of(file.read())
    assert len(line["result"]) == 300_000
    assert child.communicate(timeout=60) == (None, b"")
    assert child.returncode == 0


def test_a_full_disk_behind_standard_output_is_said(place, tmp_path):
    if not os.path.exists("/dev/full"):
        print("There is no /dev/full here: nothing stands in for a full disk.")
        return
    path = recording(tmp_path / "c.jsonl", said("Much."))
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*FERRULE, "run", "Say.", "--replay", path],
            cwd=place,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
