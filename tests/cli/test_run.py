"""`ferrule run` as a program sees it: what it prints where, and how it ends."""

import contextlib
import io
import json
import os
import re
import socket
import subprocess
from typing import Any

import pytest
from tests.agent.stage import check_valid, results, words
from tests.agent.test_attachments import PDF, PNG
from tests.cli.recordings import FERRULE, lines_of, lives, recording, start, until, written

from ferrule.agent.threads import resume
from ferrule.cli.main import run
from ferrule.models.cues import calls, fails, hangs, read, repeats, said
from ferrule.tools.threads import Item
from ferrule.tools.threads.store import ThreadStore
from ferrule.wire import Usage

READ = ("Read", {"file_path": "${workspace}/a.py"})
LONG = said("And so on", reason="length")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A workspace, which is where we are."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FERRULE_MODEL", raising=False)
    return folder


def settings(text):
    with open(os.environ["FERRULE_SETTINGS"], "w", encoding="utf-8") as file:
        file.write(text)


def threads():
    return ThreadStore(os.path.join(os.environ["FERRULE_STATE"], "threads"))


BROKEN = '<tool_call>{"name": "Read", "arguments": {"file_path": '


@pytest.mark.parametrize(
    ("cues", "options", "reason", "subtype", "code"),
    [
        pytest.param([said("Done.")], [], "end", "success", 0, id="done"),
        pytest.param([fails("wrong-key", "No.")], [], "error", "error_during_execution", 1, id="the model fails"),
        pytest.param([said("No.", reason="refused")], [], "refused", "error_during_execution", 3, id="refused"),
        pytest.param(
            [said(BROKEN), said(BROKEN)],
            [],
            "undone",
            "error_during_execution",
            1,
            id="nothing was done",
        ),
        pytest.param([calls(READ)], ["--max-turns", "1"], "turns", "error_max_turns", 4, id="turns"),
        pytest.param(
            [calls(READ, usage=Usage(90, 20))], ["--max-tokens", "100"], "tokens", "error_max_tokens", 4, id="tokens"
        ),
        pytest.param(
            [calls(READ, usage=Usage(10**6, 20))],
            ["--max-cost", "0.5"],
            "cost",
            "error_max_budget_usd",
            4,
            id="money",
        ),
        pytest.param([hangs("I")], ["--max-seconds", "0.1"], "time", "error_max_seconds", 4, id="time"),
        pytest.param([calls(READ)] * 20, [], "loop", "error_loop", 4, id="the same again and again"),
        pytest.param([LONG], [], "length", "error_max_output_tokens", 4, id="too long"),
    ],
)
def test_every_end_has_its_exit_code_and_its_subtype(place, capsys, cues, options, reason, subtype, code):
    path = recording(place.parent / "c.jsonl", *cues, prices=(3.0, 15.0, 0.3, 3.75))

    assert run(["run", "Go.", "--replay", path, "--output", "json", *options]) == code
    out, _ = capsys.readouterr()
    (line,) = lines_of(out)
    assert (line["type"], line["reason"], line["subtype"]) == ("result", reason, subtype)
    assert line["is_error"] == (code != 0)


def test_a_hook_that_stops_a_prompt_is_a_refusal(place, capsys):
    settings('[[hooks.UserPromptSubmit]]\ncommand = "echo Not today. >&2; exit 2"\n')
    path = recording(place.parent / "c.jsonl", said("Never said."))

    assert run(["run", "Go.", "--replay", path]) == 3
    said_ = capsys.readouterr()
    assert said_.out == ""
    assert "Not today." in said_.err


@pytest.mark.parametrize(
    ("arguments", "words_"),
    [
        pytest.param(["Go."], "No model is chosen", id="no model"),
        pytest.param(["Go.", "--model", "nowhere:x"], "No host of models is called 'nowhere'", id="unknown host"),
        pytest.param(["Go.", "--model", "anthropic:claude-x"], "ANTHROPIC_API_KEY is not set", id="missing key"),
        pytest.param(["Go.", "--replay", "/nowhere.jsonl"], "cannot be read", id="no recording"),
        pytest.param(["Go.", "--replay", "a.py"], "a.py, line 1: this is no", id="no recording but a program"),
        pytest.param(["Go.", "--replay", "."], "cannot be read", id="a folder"),
        pytest.param(["Go.", "--resume", "T-1", "--continue"], "not both", id="resume and continue"),
        pytest.param(["Go.", "--resume"], "--resume needs the id of a conversation", id="resume nothing"),
        pytest.param(["Go.", "-r"], "--resume needs the id of a conversation", id="resume nothing, in short"),
        pytest.param(["Go.", "--replay", "x", "--model", "y:z"], "not both", id="replay and model"),
        pytest.param(["", "--replay", "x"], "The task is empty", id="no words"),
        pytest.param([" \n", "--replay", "x"], "The task is empty", id="only blanks"),
        pytest.param(["Go.", "--output", "xml"], "'xml' is not one of", id="no such output"),
        pytest.param(["Go.", "--max-turns", "0"], "max-turns", id="no turns at all"),
        pytest.param(["Go.", "--max-cost", "nan"], "nan is no number of that", id="no number of dollars"),
        pytest.param(["Go.", "--max-seconds", "inf"], "inf is no number of that", id="no end of seconds"),
        pytest.param(["Go.", "--yes", "--deny"], "Give --yes or --deny, not both", id="yes and no"),
        pytest.param(["- tidy up"], "stands at the end, behind --", id="a task like an option"),
        pytest.param(["--nosuch=a b"], "No such option '--nosuch'", id="no such option"),
        pytest.param(["Go.", "--permission-prompt-tool", "stdio"], "needs --input stream-json", id="nobody to ask"),
        pytest.param(["Go.", "--partial"], "--partial needs", id="pieces of what"),
        pytest.param(["Go.", "--input", "stream-json"], "takes no TASK", id="task and lines"),
        pytest.param(["--input", "stream-json"], "needs --output stream-json", id="lines in, text out"),
        pytest.param(["Go.", "--workspace", "nowhere", "--model", "scripted:x"], "nowhere", id="no such folder"),
    ],
)
def test_wrong_use_is_said_in_words_with_exit_code_2(place, capsys, monkeypatch, arguments, words_):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    assert run(["run", *arguments]) == 2
    said_ = capsys.readouterr()
    assert said_.out == ""
    assert words_ in said_.err
    assert "a bug" not in said_.err


@pytest.mark.parametrize("arguments", [pytest.param([], id="nothing"), pytest.param(["-"], id="a dash")])
def test_the_task_comes_from_standard_input(place, arguments):
    path = recording(place.parent / "c.jsonl", said("Heard.", expect="größer"))

    done = subprocess.run(
        [*FERRULE, "run", *arguments, "--replay", path],
        input="Mach es größer.\n".encode(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"Heard.\n")
    assert done.stderr == b""


@pytest.mark.parametrize("is_file", [False, True], ids=["a pipe", "a file"])
def test_what_is_piped_in_belongs_to_the_task(place, tmp_path, is_file):
    path = recording(tmp_path / "c.jsonl", said("Heard.", expect="Review this.\n\n+ 1\n- 2\n"))
    (tmp_path / "diff").write_bytes(b"+ 1\n- 2\n")
    with open(tmp_path / "diff", "rb") as file:
        given: dict[str, Any] = {"stdin": file} if is_file else {"input": b"+ 1\n- 2\n"}
        done = subprocess.run(
            [*FERRULE, "run", "Review this.", "--replay", path], **given, capture_output=True, timeout=60, check=False
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"Heard.\n", b"")


@pytest.mark.parametrize("kind", ["socket", "pipe"])
def test_standard_input_that_nobody_writes_into_is_left_alone(place, tmp_path, monkeypatch, capsys, kind):
    monkeypatch.setattr("ferrule.cli.options._PATIENCE_SECONDS", 0.01)
    path = recording(tmp_path / "c.jsonl", said("Heard.", expect="Go."))
    ours, theirs = (end.detach() for end in socket.socketpair()) if kind == "socket" else os.pipe()
    with open(ours, "rb"), open(theirs, "wb") as other, open(os.dup(ours), encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert run(["run", "Go.", "--replay", path]) == 0
        assert not other.closed
    said_ = capsys.readouterr()
    assert said_.out == "Heard.\n"
    assert "Nothing has come on standard input" in said_.err


@pytest.mark.parametrize("output", ["text", "json"])
def test_what_still_works_in_the_background_is_named_when_it_is_stopped(place, tmp_path, capsys, output):
    shell = ("Bash", {"command": "sleep 377.5", "run_in_background": True, "description": "Wait long"})
    asked = {"description": "Look", "prompt": "Look.", "subagent_type": "Explore", "run_in_background": True}
    path = recording(tmp_path / "c.jsonl", calls(shell, ("Task", asked)), hangs(prompt="Look."), said("Begun."))

    assert run(["run", "Go.", "--replay", path, "--yes", "--output", output]) == 0
    said_ = capsys.readouterr()
    assert said_.out.endswith("Begun.\n" if output == "text" else "}\n")
    assert re.search(
        r"warning: Still at work in the background, and stopped with the session: "
        r"the Explore agent a\w+ \(Look\), the command b\w+ \(sleep 377\.5\)\.",
        said_.err,
    )
    assert not lives("sleep 377.5")


def test_an_id_that_several_conversations_begin_with_is_asked_about(place, tmp_path, capsys):
    path = recording(tmp_path / "c.jsonl", said("Once."))
    with contextlib.closing(threads()) as store:
        for number in (1, 2):
            thread = f"T-aaaaaaaa-0000-0000-0000-00000000000{number}"
            store.begin(thread, workspace=str(place))
            store.append(thread, [Item("note", "", b"{}")])
    assert run(["run", "Go.", "--resume", "T-aaaaaaaa", "--replay", path]) == 2
    assert "'T-aaaaaaaa' is the beginning of several ids: T-aaaaaaaa-" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "words_"), [pytest.param(b"", "empty", id="empty"), pytest.param(b"\xff\n", "UTF-8", id="no text")]
)
def test_what_is_no_task_on_standard_input_is_wrong_use(place, given, words_):
    path = recording(place.parent / "c.jsonl", said("Never."))
    done = subprocess.run(
        [*FERRULE, "run", "--replay", path], input=given, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert words_ in done.stderr.decode()


def test_a_pipe_gets_the_last_message_and_nothing_else(place, capsys):
    path = recording(place.parent / "c.jsonl", calls(READ, text="I look."), said("It is **1**.\n"))

    assert run(["run", "What is x?", "--replay", path]) == 0
    assert capsys.readouterr() == ("It is **1**.\n", "")


def test_verbose_shows_the_work_on_standard_error(place, capsys):
    path = recording(place.parent / "c.jsonl", calls(READ), repeats("It"), said("It is 1."))

    assert run(["run", "What is x?", "--replay", path, "--verbose"]) == 0
    out, err = capsys.readouterr()
    assert out == "It is 1.\n"
    assert "✓ Read a.py\n" in err
    assert "The stream was cut. Asked again.\n" in err
    assert "\x1b" not in err


def test_a_failed_prompt_does_not_print_the_answer_to_an_earlier_one(place, capsys):
    assert run(["run", "One?", "--replay", recording(place.parent / "1.jsonl", said("First."))]) == 0
    capsys.readouterr()
    path = recording(place.parent / "2.jsonl", fails("overloaded", "It is busy. Try again later."))

    assert run(["run", "Two?", "--continue", "--replay", path]) == 1
    assert capsys.readouterr() == ("", "ferrule: It is busy. Try again later.\n")


def test_what_would_ask_is_refused_where_nobody_can_be_asked(place, capsys):
    write = ("Write", {"file_path": "${workspace}/b.py", "content": "y"})
    path = recording(place.parent / "c.jsonl", calls(write), said("I may not."))

    assert run(["run", "Write.", "--replay", path, "--json"]) == 3
    out, err = capsys.readouterr()
    (line,) = lines_of(out)
    (denied,) = line["permission_denials"]
    assert err == (
        "refused: Write b.py: nobody could be asked. --permission-mode acceptEdits allows edits, and --yes all that "
        "would ask.\n"
    )
    assert line["changed_files"] == []
    assert (denied["tool_name"], denied["tool_use_id"]) == ("Write", "c1")
    assert denied["tool_input"]["content"] == "y"
    assert not (place / "b.py").exists()
    capsys.readouterr()
    assert run(["run", "Write.", "--replay", path, "--yes", "--json"]) == 0
    out, err = capsys.readouterr()
    assert (err, lines_of(out)[0]["changed_files"]) == ("", ["b.py"])
    assert (place / "b.py").exists()


def test_a_conversation_goes_on_by_its_short_name(place, capsys):
    assert run(["run", "One?", "--replay", recording(place.parent / "1.jsonl", said("1")), "--output", "json"]) == 0
    (first,) = lines_of(capsys.readouterr().out)
    path = recording(place.parent / "2.jsonl", said("2"))

    for name in (first["session_id"], first["session_id"][:10]):
        assert run(["run", "More?", "--resume", name, "--replay", path, "--output", "json"]) == 0
        (line,) = lines_of(capsys.readouterr().out)
        assert line["session_id"] == first["session_id"]
    store = threads()
    turns = resume(store.load(first["session_id"]).items).history.turns
    store.close()
    assert [words(turn) for turn in turns] == ["One?", "1", "More?", "2", "More?", "2"]


def test_nothing_to_go_on_with_is_said(place, capsys):
    path = recording(place.parent / "c.jsonl", said("x"))
    assert run(["run", "More?", "--continue", "--replay", path]) == 2
    assert "There is no conversation to go on with" in capsys.readouterr().err


def test_what_was_recorded_plays_again_with_the_same_calls(place, capsys):
    write = ("Write", {"file_path": "${workspace}/b.py", "content": "y = 2\n"})
    cues = [calls(READ, write, text="I look."), said("Written.", expect={"c1": "x = 1"})]
    path, own = recording(place.parent / "c.jsonl", *cues), str(place.parent / "own.jsonl")
    told = []
    for options in (["--replay", path, "--record", own], ["--replay", own]):
        (place / "b.py").unlink(missing_ok=True)
        assert run(["run", "Do.", *options, "--output", "stream-json", "--yes"]) == 0
        lines = lines_of(capsys.readouterr().out)
        told.append([line["message"]["content"] for line in lines if "message" in line])
        assert lines[-1]["result"] == "Written."
        assert (place / "b.py").read_text() == "y = 2\n"
    assert told[0][0] == told[1][0]
    assert sorted(map(json.dumps, told[0][1:])) == sorted(map(json.dumps, told[1][1:]))
    assert read(own).prompts == ("Do.",)


def test_after_kill_9_in_a_call_it_goes_on(place, unconfined):
    wait = ("Bash", {"command": "echo $$ > pid; exec sleep 300"})
    path = recording(place.parent / "1.jsonl", calls(wait, text="I wait."))
    child = start(["run", "Wait.", "--replay", path, "--yes"], place)
    try:
        until(lambda: written(place / "pid"), child)
        store = threads()
        # The turn with the call is written a moment after it began.
        until(lambda: len(store.load(store.latest(str(place))).items) >= 2 if store.latest(str(place)) else False)
    finally:
        child.kill()
        child.communicate(timeout=60)
        subprocess.run(["kill", "-9", (place / "pid").read_text().strip()], capture_output=True, check=False)
    again = recording(place.parent / "2.jsonl", said("Going on."))

    assert run(["run", "And now?", "--continue", "--replay", again]) == 0
    turns = resume(store.load(store.latest(str(place))).items).history.turns
    store.close()
    check_valid(turns)
    assert [words(turn) for turn in turns if words(turn)] == ["Wait.", "I wait.", "And now?", "Going on."]
    assert results(turns[2])[0].failed


@pytest.mark.parametrize(
    ("closed", "code", "words_"),
    [
        pytest.param(">&-", 2, "Standard output is closed", id="output"),
        pytest.param("<&-", 2, "Standard input is closed", id="input"),
        pytest.param("2>&-", 0, "", id="errors"),
    ],
)
def test_what_is_closed_is_said_where_it_can_be(place, closed, code, words_):
    path = recording(place.parent / "c.jsonl", said("Said."))
    task = "" if closed == "<&-" else "Go."
    line = f'exec "$0" -m ferrule run {task} --replay "$1" {closed}'
    done = subprocess.run(["sh", "-c", line, FERRULE[0], path], capture_output=True, timeout=60, check=False)
    assert done.returncode == code
    assert words_ in done.stderr.decode()
    assert b"a bug" not in done.stderr


def test_a_terminal_of_another_age_gets_what_it_can_show(place):
    path = recording(place.parent / "c.jsonl", calls(READ), said("größer ✓"))
    done = subprocess.run(
        [*FERRULE, "run", "Go.", "--verbose", "--replay", path],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"gr??er ?\n")
    assert b"? Read a.py" in done.stderr


def test_the_examples_of_the_help_work(place, capsys):
    assert run(["run", "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 100
    path = recording(place.parent / "c.jsonl", said("Well."))
    examples = re.findall(r"^    (.*ferrule run .*)$", shown.split("Examples:")[1].split("Options:")[0], re.MULTILINE)
    assert len(examples) >= 6
    subprocess.run(["git", "init", "-q"], check=True)
    (place / "shot.png").write_bytes(PNG)
    (place / "design.pdf").write_bytes(PDF)
    script = ["set -e", 'ferrule() { "$PYTHON" -m ferrule "$@"; }', *examples]
    done = subprocess.run(
        ["sh", "-c", re.sub(r"--model \S+", "", "\n".join(script))],
        env={**os.environ, "PYTHON": FERRULE[0], "FERRULE_MODEL": f"scripted:{path}"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b"Well.") >= len(examples)


def test_half_of_a_character_breaks_nothing(place, capsys):
    broken = ("Write", {"file_path": "${workspace}/b.py", "content": "\ud800"})
    path = place.parent / "c.jsonl"
    cues = [{"text": "\ud83d half", "parts": [{"use": broken[0], "input": broken[1]}]}, {"text": "And \udc00."}]
    header = '{"ferrule":"conversation","version":1,"model":"claude-test"}\n'
    path.write_text(header + "\n".join(map(json.dumps, cues)))
    for output in ("text", "json", "stream-json"):
        partial = ["--partial"] if output == "stream-json" else []
        assert run(["run", "Go.", "--replay", str(path), "--yes", "--output", output, *partial]) == 0
        assert capsys.readouterr().out
    assert run(["run", "Go.", "--continue", "--replay", recording(place.parent / "2.jsonl", said("On."))]) == 0
    assert capsys.readouterr() == ("On.\n", "")


def test_a_state_folder_that_cannot_be_written_costs_a_warning(place, capsys, monkeypatch):
    path = recording(place.parent / "c.jsonl", calls(READ), said("Done."))
    (place.parent / "state").write_text("a file, where a folder belongs")
    monkeypatch.setenv("FERRULE_STATE", str(place.parent / "state"))

    assert run(["run", "Go.", "--replay", path]) == 0
    out, err = capsys.readouterr()
    assert out == "Done.\n"
    assert "This conversation is not kept any more." in err


def test_a_conversation_that_nobody_can_claim_does_not_go_on(place, capsys):
    path = recording(place.parent / "c.jsonl", said("One."), said("Two."))
    assert run(["run", "Go.", "--replay", path]) == 0
    claims = os.path.join(os.environ["FERRULE_STATE"], "threads", "open")
    os.rmdir(claims)
    with open(claims, "w", encoding="utf-8"):
        pass

    assert run(["run", "Go on.", "--replay", path, "--continue"]) == 2
    assert "cannot go on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        pytest.param(["--image", "a.png", "--file", "c.txt"], 0, "", id="shown"),
        pytest.param(
            ["--image", "c.txt"],
            2,
            "This is none: Document c.txt",
            id="no picture",
        ),
        pytest.param(["--file", "gone.pdf"], 2, "gone.pdf is not there", id="not there"),
        pytest.param(["--file", "d.bin"], 2, "d.bin is none of these: PNG, JPEG", id="nothing that a model takes"),
    ],
)
def test_a_task_comes_with_pictures_and_files(place, capsys, options, code, sentence):
    for name, raw in (("a.png", PNG), ("c.txt", b"words"), ("d.bin", b"\0\1")):
        (place / name).write_bytes(raw)

    assert run(["run", "What is it?", "--replay", recording(place / "r.jsonl", said("A square.")), *options]) == code
    assert sentence in capsys.readouterr().err
    if not code:
        stored = threads()
        first = resume(stored.load(stored.list()[0].id).items).history.turns[0]
        stored.close()
        assert [getattr(part, "title", "") for part in first.parts] == ["", "a.png", "c.txt"]


def test_a_task_that_is_piped_in_needs_no_option(place):
    path = recording(place.parent / "c.jsonl", said("Done.", expect="The task"))
    done = subprocess.run(
        [*FERRULE, "run"],
        input=b"The task\n",
        env={**os.environ, "FERRULE_MODEL": f"scripted:{path}"},
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"Done.\n", b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this machine has no device that is full")
@pytest.mark.parametrize("words", [["version"], ["run", "x", "--replay", "../c.jsonl"]])
def test_an_output_that_is_full_is_told_once_and_is_a_failure(place, words):
    recording(place.parent / "c.jsonl", said("Done."))
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*FERRULE, *words], stdout=full, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, check=False
        )

    assert (done.returncode, done.stderr) == (1, b"ferrule: No space left on device: standard output\n")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        pytest.param(["run", "fix", "it"], 'A task of several words stands in quotes: ferrule run "', id="run"),
        pytest.param(["chat", "fix", "it"], 'A task of several words stands in quotes: ferrule chat "', id="chat"),
        pytest.param(["run", "x", "--max-cost", "much"], "'much' is not a valid number", id="no number"),
        pytest.param(["run", "-"], "Standard input is empty, so there is no task", id="nothing is piped in"),
        pytest.param(["run"], "Standard input is empty, so there is no task", id="nothing at all"),
        pytest.param(["permissions", "test", "Bash"], "What Bash would touch is not said: give --c", id="no command"),
    ],
)
def test_wrong_use_says_what_to_write(place, capsys, monkeypatch, words, advice):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    assert run(words) == 2
    assert advice in capsys.readouterr().err
