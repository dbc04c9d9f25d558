"""`ferrule run --input stream-json`: messages come in as lines, before it works, while it works, and after."""

import json
import subprocess
from typing import Any

import pytest
from tests.cli.recordings import FERRULE, lines_of, lives, recording, start, until, written

from ferrule.models.cues import calls, said

pytestmark = pytest.mark.usefixtures("unconfined")
OPTIONS = ["--input", "stream-json", "--output", "stream-json", "--yes"]


def message(*texts):
    content = [{"type": "text", "text": text} for text in texts]
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}}).encode() + b"\n"


def play(path, given, cwd):
    return subprocess.run(
        [*FERRULE, "run", "--replay", path, *OPTIONS],
        input=given,
        cwd=cwd,
        capture_output=True,
        timeout=60,
        check=False,
    )


def results(lines):
    return [line["result"] for line in lines if line["type"] == "result"]


def test_every_line_is_a_prompt_and_the_end_of_input_is_the_end(tmp_path):
    path = recording(tmp_path / "c.jsonl", said("One.", expect="first"), said("Two.", expect="second"))
    done = play(path, message("first") + b"\n  \n" + message("the", "second"), tmp_path)

    assert (done.returncode, done.stderr) == (0, b"")
    lines = lines_of(done.stdout)
    assert results(lines) == ["One.", "Two."]
    assert [line["type"] for line in lines].count("system") == 1


def test_the_last_line_needs_no_newline(tmp_path):
    path = recording(tmp_path / "c.jsonl", said("One.", expect="first"))
    assert results(lines_of(play(path, message("first").rstrip(b"\n"), tmp_path).stdout)) == ["One."]


def test_a_line_that_comes_while_it_works_reaches_the_model(tmp_path):
    wait = ("Bash", {"command": "echo x > begun; while ! test -e told; do sleep 0.02; done"})
    path = recording(tmp_path / "c.jsonl", calls(wait), said("Blue it is.", expect="make it blue"))
    child = start(["run", "--replay", path, *OPTIONS], tmp_path, stdin=subprocess.PIPE)
    child.stdin.write(message("Make it red."))
    child.stdin.flush()
    until(lambda: written(tmp_path / "begun"), child)
    child.stdin.write(message("No, make it blue."))
    child.stdin.close()
    child.stdin = None
    # It has to have read the line before the call ends; the end of its input does not end it.
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.5)
    (tmp_path / "told").touch()
    out, err = child.communicate(timeout=60)

    assert (child.returncode, err) == (0, b"")
    lines = lines_of(out)
    assert results(lines) == ["Blue it is."]
    (steered,) = [line for line in lines if line.get("isReplay")]
    assert steered["message"]["content"] == [{"type": "text", "text": "No, make it blue."}]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'"x"', id="a word"),
        pytest.param(b"\xff", id="no UTF-8"),
        pytest.param(b'{"type":"assistant","message":{"content":"x"}}', id="not of the user"),
        pytest.param(b'{"type":"user","message":{"content":[{"type":"image"}]}}', id="a picture"),
        pytest.param(b'{"type":"user","message":{"content":[3]}}', id="a number"),
        pytest.param(b'{"type":"user","message":{"content":3}}', id="only a number"),
        pytest.param(b'{"type":"user","message":{"content":""}}', id="nothing"),
        pytest.param(b"[" * 100_000, id="very deep"),
    ],
)
def test_a_wrong_line_is_wrong_use(tmp_path, wrong):
    path = recording(tmp_path / "c.jsonl", said("Never."))
    done = play(path, wrong + b"\n", tmp_path)

    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Line 1 of standard input is" in done.stderr
    assert b"a bug" not in done.stderr


def test_a_wrong_line_stops_the_work(tmp_path):
    slow = ("Bash", {"command": "echo x > begun; sleep 377.25; true"})
    path = recording(tmp_path / "c.jsonl", calls(slow), said("Never."))
    child = start(["run", "--replay", path, *OPTIONS], tmp_path, stdin=subprocess.PIPE)
    child.stdin.write(message("Wait."))
    child.stdin.flush()
    until(lambda: written(tmp_path / "begun"), child)
    child.stdin.write(b"nonsense\n")
    child.stdin.flush()
    child.wait(timeout=60)  # although its input stays open

    assert child.returncode == 2
    out, err = child.communicate()
    assert b"Line 2 of standard input is no message" in err
    assert lines_of(out)[-1]["reason"] == "interrupted"
    assert not lives("sleep 377.25")


def test_no_line_at_all_is_wrong_use(tmp_path):
    done = play(recording(tmp_path / "c.jsonl", said("Never.")), b"\n", tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"There is no task" in done.stderr


def test_the_last_prompt_decides_the_exit_code(tmp_path):
    path = recording(tmp_path / "c.jsonl", said("One."))
    done = play(path, message("first") + message("second"), tmp_path)

    assert done.returncode == 1
    assert "The recording is at its end" in lines_of(done.stdout)[-1]["errors"][0]


def test_lines_of_a_file_are_read_too(tmp_path):
    (tmp_path / "lines").write_bytes(message("first") + message("x" * 300_000))
    path = recording(tmp_path / "c.jsonl", said("One."), said("Two.", expect="x" * 300_000))
    with open(tmp_path / "lines", "rb") as file:
        child = start(["run", "--replay", path, *OPTIONS], tmp_path, stdin=file)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (0, b"")
    assert len(results(lines_of(out))) >= 1


def test_the_pieces_of_an_answer_are_those_of_the_messages_api(tmp_path):
    path = recording(
        tmp_path / "c.jsonl",
        calls(("Bash", {"command": "true"}), text="I look at it.", thinking="Hm, well."),
        said("Done so."),
    )
    done = subprocess.run(
        [*FERRULE, "run", "Go.", "--replay", path, "--yes", "--output", "stream-json", "--partial"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    lines = lines_of(done.stdout)
    messages: list[Any] = []
    texts: dict[Any, Any] = {}
    for line in lines:
        if line["type"] == "assistant":
            kept = [block for block in line["message"]["content"] if block["type"] != "thinking"]
            assert [block for block in messages[-1] if block["type"] != "thinking"] == kept
        if line["type"] != "stream_event":
            continue
        event = line["event"]
        match event["type"]:
            case "message_start":
                messages.append([])
            case "content_block_start":
                assert event["index"] == len(messages[-1])
                messages[-1].append(event["content_block"])
                texts[event["index"]] = ""
            case "content_block_delta":
                texts[event["index"]] += next(value for key, value in event["delta"].items() if key != "type")
            case "content_block_stop":
                block = messages[-1][event["index"]]
                whole = texts[event["index"]]
                key, value = ("input", json.loads(whole)) if block["type"] == "tool_use" else (block["type"], whole)
                block[key] = value
    kinds = [line["event"]["type"] for line in lines if line["type"] == "stream_event"]
    assert kinds.count("message_start") == kinds.count("message_stop") == kinds.count("message_delta") == 2
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 4
    assert [block["type"] for block in messages[0]] == ["thinking", "text", "tool_use"]
