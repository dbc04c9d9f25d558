"""The whole output of the last call, in a pager."""

import sys

import pytest
from tests.cli.talk.test_talk_lines import Stage, began, called, done, prepared

from ferrule.cli.talk import pager
from ferrule.core import events as calls


def test_the_last_call_is_kept_whole_with_its_whole_command():
    command = f"seq 99; {'true; ' * 60}touch SNEAKY"
    output = "".join(f"{number}\n" for number in range(99))
    stage = Stage().play(began())

    stage.play(prepared("a", "Bash", command=command), done("a", "Bash", exit_code=0, output=output))
    assert stage.lines.whole == (f"Bash {command}", output, None)

    stage.play(prepared("b", "Read", path="/w/a"), done("b", "Read", result="1\n2\n"))
    assert stage.lines.whole == ("Read a", "1\n2\n", None)


def test_while_a_command_prints_it_is_what_can_be_seen_whole():
    stage = Stage().play(began(), prepared("a", "Read", path="/w/a"), done("a", "Read", result="1\n2\n"))
    stage.play(prepared("b", "Bash", command="make test"))
    stage.play(called(calls.Progress, "b", "Bash", message="two", rows=("one", "two")))

    assert stage.lines.whole == ("Bash make test\n\nIt still runs. The last that it has printed:", "one\ntwo", None)


def test_a_pager_gets_all_pieces_and_nothing_that_steers_the_terminal(tmp_path):
    code = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"

    pager.show(["a\x1b[2J\n", "b\x1b[31mc\n"], [sys.executable, "-c", code, str(tmp_path / "out")])

    assert (tmp_path / "out").read_text() == "a\nb\x1b[31mc\n"


def test_a_pager_that_is_left_early_is_no_error():
    pager.show(("x" * 100_000 for _ in range(20)), [sys.executable, "-c", ""])


@pytest.mark.parametrize(
    ("chosen", "command"),
    [
        pytest.param(f"{sys.executable} -x", [sys.executable, "-x"], id="the-users-own"),
        pytest.param("no-such-pager", [], id="missing"),
    ],
)
def test_the_users_pager_is_used(chosen, command, monkeypatch):
    monkeypatch.setenv("PAGER", chosen)

    assert pager.pager() == command
