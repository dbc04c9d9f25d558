"""At a terminal: questions, what they show, and signals that end the program."""

import os
import pty
import signal
import subprocess
import sys
import time

import pytest

FERRULE = [sys.executable, "-m", "ferrule"]


def at_terminal(arguments, answers, cwd, stdin=None):
    """Run the program on a pseudo-terminal and type the answers; the exit code and the screen."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        if stdin is not None:
            os.dup2(os.open(stdin, os.O_RDONLY), 0)
        os.execv(FERRULE[0], [*FERRULE, *arguments])
    screen = b""
    waiting = list(answers)
    deadline = time.monotonic() + 60
    try:
        while time.monotonic() < deadline:
            try:
                piece = os.read(terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            screen += piece
            if waiting and screen.rstrip(b" ").endswith(b"[n]o:"):
                os.write(terminal, waiting.pop(0).encode())
                screen += b"|"
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    return os.waitstatus_to_exitcode(status), screen.decode(errors="replace").replace("\r\n", "\n")


def test_an_edit_shows_what_it_would_change_before_it_is_allowed(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    code, screen = at_terminal(
        ["call", "edit_file", '{"path": "a.txt", "old_str": "one", "new_str": "1\\u001b[31m"}'], ["y\n"], tmp_path
    )

    assert code == 0
    shown = (
        "edit_file: write a.txt\n  1 - one\n  1 + 1\\x1b[31m\n  2   two\n"
        "  edit_file writes a.txt, and no rule covers it.\n"
    )
    assert f"{shown}Allow it? [y]es, [n]o: " in screen
    assert (tmp_path / "a.txt").read_text() == "1\x1b[31m\ntwo\n"


def test_an_answer_that_is_none_is_told_what_can_be_answered(tmp_path):
    code, screen = at_terminal(["call", "create_file", '{"path": "a", "content": "x"}'], ["a\n", "n\n"], tmp_path)

    assert code == 3
    assert "\nAnswer with y or n.\nAllow it? [y]es, [n]o: " in screen


def test_a_no_at_the_terminal_is_a_refusal(tmp_path):
    code, screen = at_terminal(["call", "create_file", '{"path": "a", "content": "x"}'], ["?\n", "n\n"], tmp_path)

    assert code == 3
    assert "(new file, 2 bytes)" in screen
    assert not (tmp_path / "a").exists()


def test_what_is_too_long_for_the_question_can_be_shown_whole(tmp_path):
    content = "\\n".join(f"line {number}" for number in range(40))
    call = f'{{"path": "a", "content": "{content}"}}'

    code, screen = at_terminal(["call", "create_file", call], ["s\n", "y\n"], tmp_path)

    first, _, rest = screen.partition("[s]how all")
    assert code == 0
    assert "… 17 more lines" in first
    assert "line 39" not in first
    assert "line 39" in rest


def test_a_deletion_shows_the_file_that_would_go(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")

    code, screen = at_terminal(["call", "delete_file", '{"path": "a"}'], ["n\n"], tmp_path)

    assert code == 3
    assert "delete_file: delete a" in screen
    assert "2 - two" in screen


def test_a_folder_outside_can_be_opened_at_the_terminal(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "other.txt").write_text("outside\n")

    code, screen = at_terminal(["call", "Read", '{"path": "../other.txt"}'], ["y\n"], tmp_path / "work")

    assert code == 0
    assert "1: outside" in screen


def test_calls_from_a_file_still_ask_at_the_terminal(tmp_path):
    (tmp_path / "calls").write_text(
        '{"name": "create_file", "input": {"path": "a", "content": "x"}}\n'
        '{"name": "create_file", "input": {"path": "b", "content": "x"}}\n'
    )

    code, _ = at_terminal(["exec"], ["a\n"], tmp_path, stdin=tmp_path / "calls")

    assert code == 0
    assert (tmp_path / "a").exists()
    assert (tmp_path / "b").exists()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_that_ends_the_program_ends_its_commands(tmp_path, name):
    number = getattr(signal, name)
    nap = f"333.{os.getpid()}{number}"
    child = subprocess.Popen(
        [*FERRULE, "call", "Bash", f'{{"cmd": "echo $$ > pid; sleep {nap}; true"}}', "--yes"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(number)

    assert child.wait(timeout=60) == 128 + number
    lives = subprocess.run(["ps", "-e", "-o", "args="], capture_output=True, text=True, check=True).stdout
    assert f"sleep {nap}" not in lives


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        pytest.param(["call", "Read", "-"], b"\xff", 2, "not UTF-8", id="bytes"),
        pytest.param(["call", "Read", "-"], b"[" * 100_000, 2, "", id="deep"),
        pytest.param(["exec"], b"[" * 100_000, 2, "", id="deep-lines"),
        pytest.param(["exec"], b"{oops\n{}\n", 2, "line 2", id="every-wrong-line"),
        pytest.param(["exec"], b'{"name":"Read","id":"a"}\n{"name":"Read","id":"a"}\n', 2, "taken", id="same-id"),
        pytest.param(["exec", "--plan"], b'{"name":"Raed"}\n', 2, "Read", id="plan-of-nothing"),
        pytest.param(["exec"], b'{"name":"glob","id":7,"input":{"filePattern":"*"}}', 0, '"id":"7"', id="number-as-id"),
    ],
)
def test_odd_input_is_one_clear_answer(tmp_path, arguments, stdin, code, said):
    done = subprocess.run(
        [*FERRULE, *arguments], input=stdin, capture_output=True, cwd=tmp_path, timeout=60, check=False
    )

    assert done.returncode == code
    assert said.encode() in done.stdout + done.stderr
    assert b"bug" not in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_full_disk_behind_standard_output_is_told(tmp_path):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*FERRULE, "tools"], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, timeout=60, check=False
        )

    assert done.returncode == 1
    assert b"bug" not in done.stderr


def test_doctor_notices_a_state_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [*FERRULE, "doctor"],
        env={**os.environ, "FERRULE_STATE": str(tmp_path / "file")},
        capture_output=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert b"FAIL  store" in done.stdout
