"""Commands that are left running, in every way of confining them: read, typed into, stopped, and ended in the end."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools.confined import (
    LIMIT_SECONDS,
    LONG_MS,
    WAYS,
    eventually,
    living,
    new_mark,
    nothing_is_left,
    opened,
    placeholders,
    said,
)

from ferrule.system.tree import Roster

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls of other systems have tests of their own")
every_way = pytest.mark.parametrize("use", WAYS)

ENGINE = """
import asyncio, sys
from ferrule import Engine, Settings
from ferrule.settings import SandboxSettings

async def main(folder, use, mark):
    settings = Settings(sandbox=SandboxSettings(use=use))
    async with Engine(f"{folder}/work", dialect="claude", settings=settings, state=f"{folder}/state",
                      ask=lambda question: question.kind == "call") as engine:
        task = f"setsid env -i sleep {mark} & (trap '' TERM; sleep {mark}; sleep {mark}) & wait"
        reply = await engine.call("Bash", command=task, run_in_background=True)
        print(reply.ok, flush=True)
        print(await engine.call("Bash", command=f"touch second; sleep {mark}"), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""
"""Leaves a task running, and runs a command."""


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


async def left(engine, command):
    reply = await engine.call("Bash", command=command, run_in_background=True)
    assert reply.ok, reply
    return found(r"ID: (b\w+)", reply.result)


async def read(engine, task_id):
    reply = await engine.call("TaskOutput", task_id=task_id, block=True, timeout=LONG_MS)
    return reply.result["task"]


@every_way
async def test_a_task_is_started_read_and_listed_as_it_was_written(use, tmp_path):
    mark, roster = new_mark(), Roster(str(tmp_path / "state/processes"))
    command = f"echo begun; until [ -e go ]; do sleep 0.01; done; echo over; : {mark}; exit 3"
    async with opened(tmp_path, use) as engine:
        task_id = await left(engine, command)
        await eventually(lambda: [entry.task for entry in roster.entries()] == [task_id])
        entry = roster.entries()[0]
        (tmp_path / "work/go").touch()
        end = await read(engine, task_id)
        assert placeholders(tmp_path / "work") == []

    assert (entry.command, entry.cwd) == (command, str(tmp_path / "work"))
    assert (end["output"], end["status"], end["exitCode"]) == ("begun\nover\n", "failed", 3)
    assert roster.entries() == []


@every_way
async def test_what_is_waited_for_has_no_id_until_it_becomes_a_task(use, tmp_path):
    mark, roster = new_mark(), Roster(str(tmp_path / "state/processes"))
    async with opened(tmp_path, use) as engine:
        call = asyncio.create_task(
            engine.call("Bash", command=f"echo up; cat /dev/zero >/dev/null; : {mark}", timeout=900)
        )
        await eventually(roster.entries)
        before = roster.entries()[0].task
        reply = await call
        after = roster.entries()[0].task

    assert before == ""
    assert after
    assert after in said(reply)


@every_way
async def test_a_task_is_stopped_with_all_that_it_has_started(use, tmp_path):
    mark = new_mark()
    async with opened(tmp_path, use) as engine:
        task_id = await left(engine, f"setsid env -i sleep {mark} & (trap '' TERM; sleep {mark}; sleep {mark}) & wait")
        await eventually(lambda: len(living(mark)) >= 2)
        reply = await engine.call("TaskStop", task_id=task_id)
        nothing_is_left(tmp_path, mark)

    assert reply.ok


@every_way
async def test_closing_the_engine_leaves_no_process_and_no_placeholder(use, tmp_path):
    mark = new_mark()
    async with opened(tmp_path, use) as engine:
        for _ in range(5):
            await left(engine, f"setsid sleep {mark} & (trap '' TERM; sleep {mark}; sleep {mark}) & wait")
        call = asyncio.create_task(engine.call("Bash", command=f"sleep {mark}; true"))
        await eventually(lambda: len(living(mark)) >= 11)
    await asyncio.wait([call], timeout=LIMIT_SECONDS)

    nothing_is_left(tmp_path, mark)
    assert list((tmp_path / "state/processes").iterdir()) == []


@every_way
async def test_a_terminal_is_typed_into(use, tmp_path):
    async with opened(tmp_path, use, dialect="codex") as engine:
        command = "[ -t 0 ] && [ -t 1 ] && echo terminal; read word; echo got $word; cat"
        begun = await engine.call("exec_command", cmd=command, tty=True, yield_time_ms=400)
        number = int(found(r"session ID (\d+)", said(begun)))
        heard = said(begun)
        heard += said(await engine.call("write_stdin", session_id=number, chars="word\n", yield_time_ms=400))
        for _ in range(50):
            if "got word" in heard:
                break
            heard += said(await engine.call("write_stdin", session_id=number, yield_time_ms=100))
        end = said(await engine.call("write_stdin", session_id=number, chars="\x04", yield_time_ms=LONG_MS))
        assert placeholders(tmp_path / "work") == []

    assert "terminal" in heard
    assert "got word" in heard
    assert "exited with code 0" in end


@every_way
async def test_control_c_reaches_the_command_through_its_terminal(use, tmp_path):
    mark = new_mark()
    async with opened(tmp_path, use, dialect="codex") as engine:
        begun = await engine.call("exec_command", cmd=f"trap 'exit 9' INT; sleep {mark}", tty=True, yield_time_ms=300)
        number = int(found(r"session ID (\d+)", said(begun)))
        await eventually(lambda: living(mark))
        end = said(await engine.call("write_stdin", session_id=number, chars="\x03", yield_time_ms=LONG_MS))
        nothing_is_left(tmp_path, mark)

    assert "exited with code 9" in end


@every_way
async def test_twenty_tasks_at_once(use, tmp_path):
    async with opened(tmp_path, use) as engine:
        ids = [await left(engine, f"until [ -e go ]; do sleep 0.05; done; echo {number}") for number in range(20)]
        (tmp_path / "work/go").touch()
        ends = [await read(engine, task_id) for task_id in ids]
        assert placeholders(tmp_path / "work") == []

    assert [end["output"] for end in ends] == [f"{number}\n" for number in range(20)]
    assert {end["exitCode"] for end in ends} == {0}


@every_way
async def test_a_killed_engine_leaves_nothing_that_the_next_one_does_not_end(use, tmp_path):
    mark = new_mark()
    (tmp_path / "work").mkdir()
    argv = [sys.executable, "-c", ENGINE, str(tmp_path), use, mark]
    async with opened(tmp_path, use, state=tmp_path / "another"):
        pass  # or this machine cannot do it
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as engine:
        try:
            assert engine.stdout is not None
            assert engine.stdout.readline() == "True\n"
            await eventually((tmp_path / "work/second").exists)
            await eventually(lambda: len(living(mark)) >= 4)
        finally:
            os.kill(engine.pid, signal.SIGKILL)
            engine.wait(LIMIT_SECONDS)
    if use != "none":
        await eventually(lambda: not living(mark))
    async with opened(tmp_path, use) as following:
        await eventually(lambda: not living(mark))
        reply = await following.call("Bash", command="echo next")

    assert said(reply) == "next"
    nothing_is_left(tmp_path, mark)
    assert list(Path(tmp_path / "state/processes").iterdir()) == []
