"""The whole output of the last call, in a pager."""

import sys

import pytest
from tests.cli.talk.test_talk_lines import Stage, began, called, done, prepared

from ferrule.cli.talk import screen
from ferrule.core import call as calls


def test_the_last_calls_are_kept_whole_with_their_whole_commands():
    command = f"seq 99; {'true; ' * 60}touch SNEAKY"
    output = "".join(f"{number}\n" for number in range(99))
    stage = Stage().play(began())

    stage.play(prepared("a", "Bash", command=command), done("a", "Bash", exit_code=0, output=output))
    assert stage.lines.wholes == [(f"Bash {command}", output, None)]

    stage.play(prepared("b", "Read", path="/w/a"), done("b", "Read", result="1\n2\n"))
    assert stage.lines.wholes == [("Read a", "1\n2\n", None), (f"Bash {command}", output, None)]

    for number in range(30):
        stage.play(prepared("c", "Read", path=f"/w/{number}"), done("c", "Read", result="x"))
    assert [one.head for one in stage.lines.wholes] == [f"Read {number}" for number in range(29, 9, -1)]


def test_while_a_command_prints_it_is_what_can_be_seen_whole():
    stage = Stage().play(began(), prepared("a", "Read", path="/w/a"), done("a", "Read", result="1\n2\n"))
    stage.play(prepared("b", "Bash", command="make test"))
    stage.play(called(calls.Progress, "b", "Bash", message="two", rows=("one", "two")))

    runs = ("Bash make test\n\nIt still runs. The last that it has printed:", "one\ntwo", None)
    assert stage.lines.wholes == [runs, ("Read a", "1\n2\n", None)]


def test_a_row_that_leaves_lines_out_says_what_shows_them():
    stage, output = Stage().play(began()), "".join(f"{number}\n" for number in range(99))
    for at, expands in enumerate((True, False)):
        stage.lines.expands = expands
        stage.play(prepared(str(at), "Bash", command="seq"), done(str(at), "Bash", exit_code=0, output=output))

    found = [row.strip() for row in stage.printed if "more lines" in row]
    assert found == ["… 89 more lines, ctrl-O shows all", "… 89 more lines"]


def test_a_pager_gets_all_pieces_and_nothing_that_steers_the_terminal(tmp_path):
    code = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.read())"

    screen.show(["a\x1b[2J\n", "b\x1b[31mc\n"], [sys.executable, "-c", code, str(tmp_path / "out")])

    assert (tmp_path / "out").read_text() == "a\nb\x1b[31mc\n"


def test_a_pager_that_is_left_early_is_no_error():
    screen.show(("x" * 100_000 for _ in range(20)), [sys.executable, "-c", ""])


@pytest.mark.parametrize(
    ("chosen", "command"),
    [
        pytest.param(f"{sys.executable} -x", [sys.executable, "-x"], id="the-users-own"),
        pytest.param("no-such-pager", [], id="missing"),
    ],
)
def test_the_users_pager_is_used(chosen, command, monkeypatch):
    monkeypatch.setenv("PAGER", chosen)

    assert screen.pager() == command
