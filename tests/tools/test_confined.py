"""Commands through the engine in every way of confining them: what they say, how they end, and what they leave."""

import asyncio
import contextlib
import os
import signal
import sys

import pytest
from tests.tools.confined import (
    CONFINED,
    LIMIT_SECONDS,
    SPAWNED,
    WAYS,
    eventually,
    lives,
    living,
    new_mark,
    nothing_is_left,
    opened,
    placeholders,
    processes,
    said,
)

from ferrule import Call

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls of other systems have tests of their own")
every_way = pytest.mark.parametrize("use", WAYS)
every_wall = pytest.mark.parametrize("use", CONFINED)
by_the_spawner = pytest.mark.parametrize("use", SPAWNED)

LEFT = "Processes that the command left running were stopped."
STRAY = (
    "import os, resource, sys\n"
    "if os.fork(): os._exit(0)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "resource.prlimit(0, 10, (1, resource.prlimit(0, 10)[1]))\n"
    "os.closerange(0, 64)\n"
    "open('up', 'w').close()\n"
    "os.execve('/bin/sleep', ['sleep', sys.argv[1]], {})\n"
)
"""Leaves its group and its session, and drops whatever it could be known by; its parents end."""


@every_way
async def test_the_output_and_the_exit_code_come_back(use, tmp_path):
    async with opened(tmp_path, use) as engine:
        good = await engine.call("Bash", command="echo out; echo err >&2")
        bad = await engine.call("Bash", command="echo out; exit 3")
        killed = await engine.call("Bash", command="echo out; kill -TERM $$")

    assert (good.ok, said(good), good.notes) == (True, "out\nerr", ())
    assert (bad.ok, said(bad)) == (False, "Exit code 3\nout")
    assert said(killed).startswith("Exit code 143\nout")
    assert placeholders(tmp_path / "work") == []


@every_way
async def test_who_leaves_nothing_is_not_said_to(use, tmp_path):
    """What surrounds a command may end a moment after it."""
    async with opened(tmp_path, use) as engine:
        for _ in range(15):
            reply = await engine.call("Bash", command="true")
            assert (reply.ok, reply.notes) == (True, ())
            assert placeholders(tmp_path / "work") == []


@every_way
@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sleep {mark} >/dev/null 2>&1 & true", id="job"),
        pytest.param("sleep {mark} & echo said", id="holds-the-pipe"),
        pytest.param(
            "setsid env -i sh -c '(: > up; exec sleep {mark}) &' & until [ -e up ]; do sleep 0.01; done",
            id="session-of-its-own",
        ),
        pytest.param("trap '' TERM; (trap '' TERM; sleep {mark}; sleep {mark}) & true", id="deaf"),
    ],
)
async def test_what_it_leaves_running_is_ended_with_it(use, command, tmp_path):
    mark = new_mark()
    async with opened(tmp_path, use) as engine:
        reply = await engine.call("Bash", command=command.format(mark=mark))
        nothing_is_left(tmp_path, mark)

    assert reply.ok
    # With bubblewrap everything ends with the command by itself: nothing is left that could be stopped.
    assert reply.notes in ([(LEFT,)] if use != "bubblewrap" else [(LEFT,), ()])


@every_wall
async def test_what_hides_from_every_mark_is_ended_too(use, tmp_path):
    mark = new_mark()
    async with opened(tmp_path, use) as engine:
        command = f'{sys.executable} -c "{STRAY}" {mark}; until [ -e up ]; do sleep 0.01; done; echo $?'
        reply = await engine.call("Bash", command=command)
        nothing_is_left(tmp_path, mark)

    assert said(reply) == "0"


@every_way
async def test_it_is_stopped_when_its_time_is_up_or_it_is_silent(use, tmp_path):
    mark = new_mark()
    command = f"echo begun; setsid sleep {mark} & sleep {mark}"
    async with opened(tmp_path, use, dialect="amp", seconds=0.5) as engine:
        late = await engine.call("Bash", cmd=command)
        nothing_is_left(tmp_path, mark)
    async with opened(tmp_path, use, dialect="amp", quiet_seconds=0.5) as engine:
        silent = await engine.call("Bash", cmd=command)
        nothing_is_left(tmp_path, mark)

    assert "The command was stopped after 0.5 seconds (shell.seconds)." in late.notes
    assert "The command was stopped after 0.5 seconds without output (shell.quiet_seconds)." in silent.notes
    assert all("begun" in str(reply) for reply in (late, silent))


@every_way
@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_call_leaves_nothing(use, times, tmp_path):
    mark = new_mark()
    async with opened(tmp_path, use) as engine:
        call = asyncio.create_task(engine.call("Bash", command=f"trap '' TERM; sleep {mark} & sleep {mark}; wait"))
        await eventually(lambda: len(living(mark)) >= 2)
        for _ in range(times):
            call.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([call], timeout=LIMIT_SECONDS)
        await eventually(lambda: not living(mark))
        await eventually(lambda: not placeholders(tmp_path / "work"))
        again = await engine.call("Bash", command="echo again")

    assert said(again) == "again"


@every_way
async def test_the_folder_carries_over(use, tmp_path):
    async with opened(tmp_path, use) as engine:
        await engine.call("Bash", command="mkdir -p 'a b/c'; cd 'a b/c'")
        there = await engine.call("Bash", command="pwd; echo x > here; ls /proc/self/fd | wc -l")
        back = await engine.call("Bash", command="cd /; env")

    assert said(there).splitlines()[0] == str(tmp_path / "work/a b/c")
    assert (tmp_path / "work/a b/c/here").read_text() == "x\n"
    assert back.notes == (f"Shell cwd was reset to {tmp_path / 'work'}",)
    assert "CARRIED" not in said(back)
    assert "BASH_ENV" not in said(back)


@every_way
@pytest.mark.parametrize(
    ("limit", "command", "note"),
    [
        pytest.param(
            {"memory_mb": 512},
            f"{sys.executable} -c 'bytearray(600 << 20)'",
            "It needed more than 512 MB of memory.",
            id="memory",
        ),
        pytest.param(
            {"open_files": 32},
            f"{sys.executable} -c 'kept = [open(\"/dev/null\") for _ in range(64)]'",
            "It opened more than 32 files at once.",
            id="files",
        ),
        pytest.param(
            {"file_mb": 1},
            "head -c 3000000 /dev/zero > large",
            "It wrote a file that would have become larger than 1 MB.",
            id="size",
        ),
    ],
)
async def test_limits_hold(use, limit, command, note, tmp_path):
    async with opened(tmp_path, use, **limit) as engine:
        fine = await engine.call("Bash", command="echo fine")
        reply = await engine.call("Bash", command=command)

    assert (said(fine), reply.ok) == ("fine", False)
    assert note in reply.notes, reply


@every_way
async def test_twenty_run_at_once(use, tmp_path):
    async with opened(tmp_path, use) as engine:
        replies = await engine.run([Call("Bash", {"command": f"echo {number}"}) for number in range(20)])
        assert placeholders(tmp_path / "work") == []

    assert [said(reply) for reply in replies] == [str(number) for number in range(20)]
    assert {reply.notes for reply in replies} == {()}


def its_process(spawner):
    assert spawner._state.process is not None
    return spawner._state.process


@by_the_spawner
async def test_the_spawner_outlives_its_commands_and_is_in_none_of_them(use, tmp_path):
    from ferrule.sandbox import spawner
    from ferrule.sandbox.cell import descendants
    from ferrule.system.tasks import Tasks

    marks = [new_mark() for _ in range(3)]
    async with opened(tmp_path, use) as engine:
        pid = its_process(spawner).pid
        for mark in marks:
            await engine.call("Bash", command=f"sleep {mark} & sleep {mark}", run_in_background=True)
        await eventually(lambda: all(len(living(mark)) >= 2 for mark in marks))
        tasks = engine._services[Tasks].list()
        commands = {found for mark in marks for found in living(mark)} | {task.pid for task in tasks}
        keepers = {pid, *descendants(pid)} - commands
        for task, mark in zip(tasks, marks, strict=True):
            found = set(task.running._tree.find())
            assert found | {task.pid} >= set(living(mark))
            assert found.isdisjoint(keepers)
            assert found.isdisjoint(commands - set(living(mark)) - {task.pid})
        await engine.call("TaskStop", task_id=tasks[0].id)
        assert [len(living(mark)) >= 2 for mark in marks] == [False, True, True]
        assert (lives(pid), its_process(spawner).pid) == (True, pid)
    assert [living(mark) for mark in marks] == [[], [], []]
    assert lives(pid)


@by_the_spawner
async def test_a_spawner_that_a_command_had_to_start_is_not_of_that_command(use, tmp_path):
    import resource

    from ferrule.sandbox import spawner
    from ferrule.sandbox.cell import descendants

    async with opened(tmp_path, use) as engine:
        first = its_process(spawner)
        for pid in (first.pid, *descendants(first.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        first.wait(LIMIT_SECONDS)
        reply = await engine.call("Bash", command="echo up")
        second = its_process(spawner).pid

        def is_unmarked() -> bool:
            around = {pid for pid in (second, *descendants(second)) if pid in set(processes())}
            with contextlib.suppress(ProcessLookupError):  # it ended while this looked
                return {resource.prlimit(pid, 10)[0] for pid in around} == {resource.getrlimit(10)[1]}
            return False

        assert said(reply) == "up"
        await eventually(is_unmarked)  # what surrounded the command, and has its mark, may end a moment after it
