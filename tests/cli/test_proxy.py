"""`ferrule proxy` from outside: what it says, what it refuses, programs behind it, signals, logs and its table."""

import contextlib
import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.recordings import FERRULE, LIMIT_SECONDS, lines_of, recording, start, until, written
from tests.cli.talk.terminals import Pty

from ferrule.cli.main import run
from ferrule.cli.proxy import line, summary
from ferrule.models.cues import said
from ferrule.serve.proxy.records import Record, RequestRecords

TOKEN = "the-token-of-the-tests-0123456789"
ASKS = """
import json, os, sys, urllib.request
body = {"model": "asked", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}]}
headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
request = urllib.request.Request(url, json.dumps(body).encode(), headers)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(json.load(opener.open(request, timeout=20))["content"][0]["text"])
print("FERRULE_PROXY_TOKEN" in os.environ)
sys.exit(3)
"""
"""A program that asks once, as any client does."""


@pytest.fixture
def talk(tmp_path):
    answers = [said(f"Answer {number}.") for number in range(5)]
    return recording(tmp_path / "talk.jsonl", *answers, prices=[1.0, 2.0, 0.1, 1.25])


def finished(arguments, cwd, **environment):
    return subprocess.run(
        [*FERRULE, "proxy", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
        env={**os.environ, **environment},
    )


def ask(port, path="/v1/messages", token=TOKEN, method="POST", **more):
    """The status and the body of an answer."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    body = {"model": "asked", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}], **more}
    line.request(method, path, json.dumps(body) if method == "POST" else None, {"x-api-key": token})
    with contextlib.closing(line):
        response = line.getresponse()
        return response.status, json.loads(response.read())


@contextlib.contextmanager
def serving(arguments, cwd, **environment):
    """A proxy that stays, with its port; it is ended by whoever uses it, or killed."""
    child = start(
        ["proxy", "--listen", "127.0.0.1:0", *arguments],
        cwd,
        env={**os.environ, "FERRULE_PROXY_TOKEN": TOKEN, **environment},
        text=True,
    )
    try:
        greeting = [child.stderr.readline() for _ in range(8)]
        assert greeting[0].startswith("Listening at http://127.0.0.1:"), greeting
        yield child, int(greeting[0].split(":")[2].split(".")[0]), "".join(greeting)
    finally:
        child.kill()
        child.communicate()


WRONG = [
    (["--bogus"], "No such option '--bogus'"),
    (["--listen", "nonsense"], "'nonsense' is no address: write HOST:PORT"),
    (["--listen", "127.0.0.1:99999"], "is no address"),
    (["--map", "no-equals"], "is no rule: write PATTERN=HOST:MODEL"),
    (["--map", "claude-*="], "is no rule"),
    (["--map", "=ollama:m"], "is no rule"),
    (["--map", "a=nohost"], "The proxy cannot use 'nohost': No host is known"),
    (["--map", "a=ollama:m,nohost"], "The proxy cannot use 'nohost'"),
    (["--model", "nohost"], "No host is known for the model 'nohost'"),
    (["--model", "openai:gpt-6"], "openai:gpt-6 cannot be asked: openai:gpt-6 needs a key"),
    (["--model", "scripted:/nowhere.jsonl"], "cannot be read: No such file"),
    (["--profile", "night"], "There is no profile 'night' under proxy.profiles; there are: none."),
    (["--token", "short"], "The token is too weak"),
    (["--token", "with blanks in it, and long"], "The token is too weak"),
    (["--log", "/nowhere/log"], "/nowhere/log cannot be written: No such file"),
    (["--record", "/nowhere/tape"], "/nowhere/tape cannot be recorded into"),
    (["--json", "--", "true"], "use --log FILE"),
    (["--", "no-such-program-at-all"], "There is no program 'no-such-program-at-all' on PATH"),
    (["--", "true"], "No model is chosen"),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_wrong_input_is_told_in_a_sentence(arguments, words, capsys):
    assert run(["proxy", "--listen", "127.0.0.1:0", *arguments]) == 2

    told = capsys.readouterr()
    assert words in told.err
    assert "Traceback" not in told.err
    assert told.out == ""
    assert told.err.count("nohost") <= 3


def test_help_names_every_option_and_shows_examples(capsys):
    assert run(["proxy", "--help"]) == 0

    text = capsys.readouterr().out
    for word in (
        "--listen",
        "--model",
        "--map",
        "--profile",
        "--token",
        "--name",
        "--record",
        "--log",
        "--json",
        "--quiet",
    ):
        assert word in text
    assert "ferrule proxy --model" in text
    assert "127.0.0.1:8790" in text


def test_an_address_that_is_taken_says_so_and_what_to_do(capsys, talk):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["proxy", "--model", f"scripted:{talk}", "--listen", f"127.0.0.1:{port}"]) == 2

    message = capsys.readouterr().err
    assert f"Cannot listen at 127.0.0.1:{port}: Address already in use." in message
    assert "Port 0 takes any that is free." in message


def test_a_program_asks_with_a_token_of_its_own_and_its_exit_code_is_ours(tmp_path, talk):
    log = tmp_path / "log.jsonl"
    done = finished(["--model", f"scripted:{talk}", "--log", str(log), "--", sys.executable, "-c", ASKS], tmp_path)

    assert done.stdout == "Answer 0.\nFalse\n"
    assert done.returncode == 3
    assert done.stderr.startswith("1 request, ")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    (record,) = lines_of(log.read_bytes())
    assert (record["status"], record["requested"], record["model"]) == (200, "asked", f"scripted:{talk}")
    assert "Hello." not in log.read_text()
    assert "Answer 0." not in log.read_text()


@pytest.mark.parametrize(
    ("script", "code"),
    [("kill -TERM $$", 143), ("kill -INT $$", 130), ("exit 0", 0), ("exit 77", 77)],
)
def test_the_exit_code_is_that_of_a_shell(tmp_path, talk, script, code):
    assert finished(["--model", f"scripted:{talk}", "--", "sh", "-c", script], tmp_path).returncode == code


def test_ctrl_c_is_the_programs_to_understand(tmp_path, talk):
    ready = tmp_path / "ready"
    script = f"trap 'echo asked once more; kill $!' INT; sleep 30 & echo > {ready}; wait; exit 5"
    child = start(
        ["proxy", "--model", f"scripted:{talk}", "--", "sh", "-c", script], tmp_path, start_new_session=True, text=True
    )
    until(lambda: written(ready), child)
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=LIMIT_SECONDS)

    assert "asked once more" in out
    assert child.returncode == 5, err


def test_a_proxy_that_is_ended_ends_its_program(tmp_path, talk):
    pid = tmp_path / "pid"
    script = f"trap '' TERM; echo $$ > {pid}; while :; do sleep 0.1; done"
    child = start(["proxy", "--model", f"scripted:{talk}", "--", "sh", "-c", script], tmp_path)
    until(lambda: written(pid), child)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=LIMIT_SECONDS)

    assert child.returncode == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_proxy_that_stays_says_how_to_reach_it_and_ends_with_ctrl_c(tmp_path, talk):
    with serving(["--model", f"scripted:{talk}"], tmp_path) as (child, port, greeting):
        status, answer = ask(port)
        wrong, _ = ask(port, token="wrong")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=LIMIT_SECONDS)

    assert f"export ANTHROPIC_BASE_URL=http://127.0.0.1:{port}\n" in greeting
    assert f"export OPENAI_BASE_URL=http://127.0.0.1:{port}/v1\n" in greeting
    assert "export OPENAI_API_KEY=$FERRULE_PROXY_TOKEN\n" in greeting
    assert TOKEN not in greeting + out + err
    assert f"Models: scripted:{talk}" in greeting
    assert (status, wrong) == (200, 401)
    assert answer["content"][0]["text"] == "Answer 0."
    assert child.returncode == 130
    assert out == ""
    row, last = err.splitlines()[0], err.splitlines()[-3:]
    assert "200 · anthropic asked → scripted:" in row
    assert any(one.startswith("1 request, ") for one in last)
    assert "Traceback" not in err


def test_a_token_that_is_made_is_shown_once_and_needed(tmp_path, talk):
    with serving(["--model", f"scripted:{talk}"], tmp_path, FERRULE_PROXY_TOKEN="") as (_, port, greeting):
        token = greeting.split("OPENAI_API_KEY=")[1].split("\n")[0]
        assert len(token) > 40
        assert (ask(port)[0], ask(port, token=token)[0]) == (401, 200)


def test_lines_of_json_are_all_that_standard_output_has(tmp_path, talk):
    with serving(["--model", f"scripted:{talk}", "--json"], tmp_path) as (child, port, _):
        ask(port)
        ask(port, model="x" * 3)
        child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=LIMIT_SECONDS)

    assert [(row["number"], row["status"], row["requested"]) for row in lines_of(out)] == [
        (1, 200, "asked"),
        (2, 200, "xxx"),
    ]
    assert child.returncode == 143
    assert err == ""


def test_a_reader_that_goes_away_keeps_nobody_from_an_answer(tmp_path, talk):
    with serving(["--model", f"scripted:{talk}", "--json"], tmp_path) as (child, port, _):
        child.stdout.close()
        statuses = [ask(port)[0] for _ in range(3)]
        child.send_signal(signal.SIGTERM)
        child.stdout = None
        err = child.stderr.read()
        child.wait(LIMIT_SECONDS)

    assert statuses == [200, 200, 200]
    assert err.count("standard output cannot be written any more") == 1
    assert "Traceback" not in err


def test_a_log_is_added_to(tmp_path, talk):
    log = tmp_path / "log.jsonl"
    for _ in range(2):
        finished(["--model", f"scripted:{talk}", "--log", str(log), "--", sys.executable, "-c", ASKS], tmp_path)

    assert [row["number"] for row in lines_of(log.read_bytes())] == [1, 1]


def test_rules_of_the_command_line_and_of_profiles_decide_who_answers(tmp_path, talk):
    other = recording(tmp_path / "other.jsonl", *[said("The other one.")] * 3)
    settings = tmp_path / "settings.toml"
    settings.write_text(
        f'[proxy]\nsmall = "scripted:{talk}"\n[proxy.profiles.night.models]\n"*" = "scripted:{other}"\n'
    )
    given = {"FERRULE_SETTINGS": str(settings)}

    with serving(["--profile", "night", "--map", f"mine-*=scripted:{talk}"], tmp_path, **given) as (_, port, _):
        texts = [ask(port, model=name)[1]["content"][0]["text"] for name in ("claude-haiku-5", "mine-1")]
        listed = ask(port, "/v1/models", method="GET")[1]["data"]

    assert texts == ["The other one.", "Answer 0."]
    assert {row["id"] for row in listed} == {f"scripted:{other}", f"scripted:{talk}"}


def test_a_model_that_cannot_be_asked_is_warned_about(tmp_path, talk):
    done = finished(["--map", f"*=scripted:{talk}", "--map", "a=openai:gpt-6", "--", "true"], tmp_path)

    assert done.returncode == 0
    assert done.stderr.startswith("warning: openai:gpt-6: openai:gpt-6 needs a key")


def test_other_machines_are_warned_about(tmp_path, talk):
    child = start(["proxy", "--model", f"scripted:{talk}", "--listen", "0.0.0.0:0"], tmp_path, text=True)
    try:
        said_first = [child.stderr.readline() for _ in range(2)]
    finally:
        child.kill()
        child.communicate()

    assert "warning: 0.0.0.0 can be reached from other machines, and nothing is encrypted" in said_first[1]


def test_what_is_recorded_is_played_to_the_same_program(tmp_path, talk):
    tape = tmp_path / "tape.jsonl"
    first = finished(["--model", f"scripted:{talk}", "--record", str(tape), "--", sys.executable, "-c", ASKS], tmp_path)
    again = finished(["--model", f"scripted:{tape}", "--", sys.executable, "-c", ASKS], tmp_path)

    assert first.stdout == again.stdout == "Answer 0.\nFalse\n"
    assert stat.S_IMODE(tape.stat().st_mode) == 0o600


def test_the_variable_for_clients_does_not_lead_the_proxy_to_itself(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    child = start(
        ["proxy", "--listen", f"127.0.0.1:{port}", "--map", "*=anthropic:claude-opus-5-5", "--token", TOKEN],
        tmp_path,
        text=True,
        env={**os.environ, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": TOKEN},
    )
    try:
        assert child.stderr.readline().startswith("Listening")
        status, answer = ask(port)
    finally:
        child.kill()
        child.communicate()

    assert status == 404
    assert "leads back to this proxy" in answer["error"]["message"]


def test_a_terminal_shows_a_table_whatever_clients_call_themselves(tmp_path, talk):
    terminal = Pty(120, 30)
    arguments = ["proxy", "--listen", "127.0.0.1:0", "--model", f"scripted:{talk}"]
    terminal.start(arguments, tmp_path, FERRULE_PROXY_TOKEN=TOKEN)
    try:
        greeting = terminal.wait(r"Models: .*")
        port = int(greeting.split("http://127.0.0.1:")[1].split(".")[0])
        ask(port, model="[/red]odd[bold]\x1b[31m")
        shown = terminal.wait(r"1 request, ")
        assert "[/red]odd" in shown
        assert ask(port)[0] == 200
        terminal.wait(r"2 requests, ")
    finally:
        terminal.close()


def record(**values):
    return Record(number=1, at=0.0, api="anthropic", **values)


def test_a_line_tells_of_repetitions_failures_and_what_was_left_out():
    told = line(
        record(
            requested="claude-opus-5-5",
            model="openai:gpt-6",
            status=502,
            error="server",
            retries=2,
            tried=("up:a",),
            dropped=("top_k",),
            cost=0.25,
            first_ms=12.4,
            ms=2500.0,
            input=1234,
        )
    )

    words = "502 · anthropic claude-opus-5-5 → openai:gpt-6 · 1,234 in (0 cached), 0 out · $0.2500 · first byte 12 ms"
    assert words in told
    assert told.endswith("2.5 s · 2 retries · after up:a · left out: top_k · server")


def test_the_sum_counts_one_request_as_one():
    records = RequestRecords()
    assert summary(records).startswith("0 requests, ")
    records.end(records.begin("gemini", ""))
    assert summary(records).startswith("1 request, ")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('[proxy.models]\n"a" = "ollama:m"\n"b" = "ollama:n"\n', "`ferrule proxy` can run; 2 rules in the settings"),
        ('[proxy]\nsmall = "openai:gpt-6"\n', "openai:gpt-6: openai:gpt-6 needs a key"),
    ],
)
def test_the_doctor_says_whether_the_proxy_can_run(settings, words, capsys):
    Path(os.environ["FERRULE_SETTINGS"]).write_text(settings)

    assert run(["doctor"]) == 0

    row = next(one for one in capsys.readouterr().out.splitlines() if one[6:].startswith("proxy"))
    assert " ".join(words.split()) in " ".join(row.split())
