"""Commands that are left running: they survive between calls, are read, waited for, typed into and stopped."""

import asyncio
import os
import re
from pathlib import Path

import pytest

from ferrule import Call, Engine, Settings
from ferrule.dialects import FAMILIES
from ferrule.settings import ShellSettings
from ferrule.system.tree import Roster

YES = lambda question: question.kind == "call"  # noqa: E731 - somebody who lets everything run and opens no folder
TWO_STEPS = "mkfifo go on; echo one; read word < go; echo two $word; read word < on; exit $word"
"""Goes on when it is told to."""


class Bounded(Engine):
    """An engine whose messages end: what goes on running must not keep a test from failing."""

    async def run(self, calls, *, approved=()):
        async with asyncio.timeout(60):
            return await super().run(calls, approved=approved)


@pytest.fixture
async def claude(tmp_path):
    async with Bounded(tmp_path, dialect="claude", ask=YES) as engine:
        yield engine


@pytest.fixture
async def codex(tmp_path):
    async with Bounded(tmp_path, dialect="codex", ask=YES) as engine:
        yield engine


def found(pattern, text):
    """What stands in a text where a pattern has parentheses."""
    match = re.search(pattern, text)
    assert match is not None, text
    return match[1]


def failure(reply):
    """What a failed call says went wrong."""
    assert reply.error is not None, reply
    return reply.error


async def left(engine, command, **more):
    """The id of a command that goes on."""
    reply = await engine.call("Bash", command=command, run_in_background=True, **more)
    assert reply.ok, reply
    return found(r"ID: (b\w+)", reply.result)


async def tell(folder, word, name="go"):
    """Let a command that reads a word go on."""
    async with asyncio.timeout(20):
        while True:
            try:
                descriptor = os.open(Path(folder) / name, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # it does not read yet
                await asyncio.sleep(0)
                continue
            os.write(descriptor, f"{word}\n".encode())
            os.close(descriptor)
            return


async def printed(engine, task_id, pattern):
    """What a task has printed when it has printed this."""
    reply = await engine.call("shell_output", task_id=task_id, until=pattern, seconds=20)
    assert reply.ok, reply
    return reply.result["task"]["output"]


async def ended(engine, task_id):
    reply = await engine.call("TaskOutput", task_id=task_id, block=True, timeout=20_000)
    assert reply.result["retrieval_status"] == "success"
    return reply.result["task"]


def alive(folder):
    """Processes that work in the folder."""
    out = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/cwd").startswith(os.path.realpath(folder)):
                out.append(name)
        except OSError:
            continue
    return out


async def test_a_task_goes_on_between_calls_and_tells_what_is_new(claude, tmp_path):
    task_id = await left(claude, TWO_STEPS, description="Count")
    first = await printed(claude, task_id, "one")
    news = (await claude.call("BashOutput", bash_id=task_id)).result
    nothing = (await claude.call("BashOutput", bash_id=task_id)).result
    not_ready = (await claude.call("TaskOutput", task_id=task_id, block=False, timeout=0)).result
    await tell(tmp_path, "more")
    second = await printed(claude, task_id, "two")
    newer = (await claude.call("BashOutputTool", bash_id=task_id)).result
    await tell(tmp_path, "3", "on")
    end = await ended(claude, task_id)

    assert (first, second) == ("one\n", "one\ntwo more\n")
    assert (news["task"]["output"], nothing["task"]["output"], newer["task"]["output"]) == ("", "", "")
    assert (not_ready["retrieval_status"], not_ready["task"]["status"]) == ("not_ready", "running")
    assert end == {
        "task_id": task_id,
        "task_type": "local_bash",
        "status": "failed",
        "description": "Count",
        "output": "one\ntwo more\n",
        "exitCode": 3,
    }


async def test_who_asks_only_for_news_gets_each_of_it_once(claude, tmp_path):
    task_id = await left(claude, TWO_STEPS)
    got = []
    for word, name in (("more", "go"), ("0", "on")):
        news = ""
        for _ in range(200):
            news = (await claude.call("BashOutput", bash_id=task_id, block=True, timeout=100)).result["task"]["output"]
            if news:
                break
        got.append(news)
        await tell(tmp_path, word, name)
    await ended(claude, task_id)

    assert got == ["one\n", "two more\n"]


async def test_a_wait_ends_with_its_time_and_the_task_goes_on(claude):
    task_id = await left(claude, "mkfifo go; read word < go")
    reply = await claude.call("TaskOutput", task_id=task_id, block=True, timeout=100)

    assert (reply.result["retrieval_status"], reply.result["task"]["status"]) == ("timeout", "running")


async def test_whoever_forgets_how_to_wait_waits_as_usual(claude):
    task_id = await left(claude, "echo hi")
    reply = await claude.call("TaskOutput", task_id=task_id)

    assert (reply.result["retrieval_status"], reply.result["task"]["output"]) == ("success", "hi\n")


async def test_a_task_is_stopped_with_all_that_it_started(claude, tmp_path):
    task_id = await left(claude, "sleep 301 & setsid sleep 302 & trap '' TERM; echo up; while :; do sleep 303; done")
    await printed(claude, task_id, "up")
    reply = await claude.call("KillShell", shell_id=task_id)
    again = await claude.call("TaskStop", task_id=task_id)
    seen = await claude.call("TaskOutput", task_id=task_id, block=True, timeout=1000)

    assert reply.result["task_id"] == task_id
    assert alive(tmp_path) == []
    assert (again.status, failure(again).error_code) == ("error", "not-running")
    assert failure(again).message.startswith("There is nothing to stop: Task ")
    assert failure(again).message.endswith(" was stopped.")
    assert seen.result["task"]["status"] == "killed"
    assert seen.result["task"]["exitCode"] in (137, 143)  # what confines it may have ended before it


async def test_a_command_that_runs_out_of_its_time_goes_on_as_a_task(claude, tmp_path):
    command = "mkfifo go; echo so far; read word < go; echo $word"
    reply = await claude.call("Bash", command=command, timeout=700, description="Wait")
    task_id = found(r"with ID: (b\w+)", reply.result)
    await tell(tmp_path, "later")
    end = await ended(claude, task_id)

    assert reply.status == "done"
    assert reply.result.startswith("Command did not complete within its 0.7s timeout and was moved to the background")
    assert reply.result.endswith("Output so far:\nso far")
    assert (end["status"], end["output"], end["description"]) == ("completed", "so far\nlater\n", "Wait")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sleep 60", id="it-only-sleeps"),
        pytest.param("true git; exec sleep 60", id="it-works-with-git"),
        pytest.param("sleep 60\necho 'x", id="it-cannot-be-read"),
    ],
)
async def test_some_commands_are_stopped_when_their_time_is_up(claude, tmp_path, command):
    reply = await claude.call("Bash", command=command, timeout=200)

    assert (reply.status, failure(reply).message) == ("error", "Command timed out after 0.2s")
    assert alive(tmp_path) == []


async def test_no_family_but_claude_leaves_a_command_running_for_its_time(tmp_path):
    async with Bounded(tmp_path, dialect="wayland", ask=YES) as engine:
        reply = await engine.call("Bash", command="true; exec sleep 60", timeout=200)

    assert failure(reply).message == "Command timed out after 200ms"


async def test_closing_the_engine_ends_every_task(tmp_path):
    async with Bounded(tmp_path, dialect="claude", ask=YES) as engine:
        await left(engine, "trap '' TERM; setsid sleep 301 & sleep 302")
        await left(engine, "sleep 303")
        assert len(alive(tmp_path)) >= 2

    assert alive(tmp_path) == []


async def test_cancelling_calls_leaves_tasks_alone(claude, tmp_path):
    task_id = await left(claude, TWO_STEPS)
    await printed(claude, task_id, "one")
    waiting = asyncio.create_task(claude.call("TaskOutput", task_id=task_id, block=True, timeout=60_000))
    await asyncio.sleep(0)
    claude.cancel()
    reply = await waiting
    await tell(tmp_path, "more")

    assert reply.status == "cancelled"
    assert await printed(claude, task_id, "two") == "one\ntwo more\n"


async def test_two_hundred_tasks_run_at_once(claude, tmp_path):
    (tmp_path / "all").mkdir()
    os.mkfifo(tmp_path / "go")
    replies = await claude.run(
        [
            Call("Bash", {"command": f"echo {n}; read word < go; echo $word {n}", "run_in_background": True})
            for n in range(200)
        ]
    )
    ids = [found(r"ID: (b\w+)", reply.result) for reply in replies]
    running = [await claude.call("TaskOutput", task_id=one, block=False, timeout=0) for one in ids]
    descriptor = os.open(tmp_path / "go", os.O_RDWR)
    try:
        os.write(descriptor, b"x\n" * 200)
        ends = [await ended(claude, one) for one in ids]
    finally:
        os.close(descriptor)

    assert len(set(ids)) == 200
    assert {reply.result["task"]["status"] for reply in running} == {"running"}
    assert [end["output"].splitlines()[0] for end in ends] == [str(n) for n in range(200)]
    assert {end["status"] for end in ends} == {"completed"}


async def test_there_is_a_most_of_tasks(tmp_path):
    settings = Settings(shell=ShellSettings(background_max=1))
    async with Bounded(tmp_path, dialect="claude", ask=YES, settings=settings) as engine:
        task_id = await left(engine, "mkfifo go; read word < go")
        second = await engine.call("Bash", command="sleep 300", run_in_background=True)
        late = await engine.call("Bash", command="true; exec sleep 300", timeout=200)
        await engine.call("TaskStop", task_id=task_id)
        third = await engine.call("Bash", command="sleep 300", run_in_background=True)

    assert failure(second).error_code == "too-many-tasks"
    assert failure(second).message == "1 tasks run already (shell.background_max). Stop one of them first."
    assert failure(late).message == "Command timed out after 0.2s"
    assert third.ok


async def test_reading_a_task_does_not_wait_for_a_command_that_runs(claude, tmp_path):
    task_id = await left(claude, "echo here; mkfifo mine; read word < mine")
    await printed(claude, task_id, "here")
    slow = asyncio.create_task(claude.call("Bash", command="mkfifo go; echo > ready; read word < go"))
    async with asyncio.timeout(20):
        while not (tmp_path / "ready").exists():
            await asyncio.sleep(0)
    reply = await claude.call("TaskOutput", task_id=task_id, block=False, timeout=0)
    await tell(tmp_path, "on")
    await slow

    assert reply.result["task"]["output"] == "here\n"


@pytest.mark.parametrize(
    ("values", "output"),
    [
        pytest.param({"filter": "^b"}, "b1\nb2\n", id="lines-that-match"),
        pytest.param({"filter": "zzz"}, "", id="no-line-matches"),
        pytest.param({"filter": "1$"}, "a1\nb1\n", id="ends-of-lines"),
    ],
)
async def test_only_some_lines_are_wanted(claude, values, output):
    task_id = await left(claude, r"printf 'a1\nb1\na2\nb2\n'")
    reply = await claude.call("BashOutput", bash_id=task_id, block=True, timeout=20_000, **values)

    assert reply.result["task"]["output"] == output


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"filter": "("}, "filter: is no regular expression:", id="no-expression"),
        pytest.param({"filter": "x" * 1001}, "filter: has more than 1,000 characters.", id="too-long"),
        pytest.param({"filter": "(a|a)+$"}, "filter: takes too long to look for; write it simpler.", id="for-ever"),
    ],
)
async def test_expressions_that_cannot_be_used_say_so(claude, values, message):
    task_id = await left(claude, f"echo {'a' * 60}b")
    reply = await claude.call("BashOutput", bash_id=task_id, block=True, timeout=20_000, **values)

    assert failure(reply).error_code == "bad-pattern"
    assert failure(reply).message.startswith(message)


async def test_waiting_for_an_expression_that_takes_for_ever_ends(claude):
    task_id = await left(claude, f"echo {'a' * 60}b; mkfifo go; read word < go")
    reply = await claude.call("shell_output", task_id=task_id, until="(a|a)+$", seconds=20)

    assert failure(reply).message == "until: takes too long to look for; write it simpler."


async def test_a_long_output_is_shown_by_its_ends_and_kept_whole(claude):
    reply = await claude.call("Bash", command="seq 100000 150000", run_in_background=True)
    task_id = found(r"ID: (b\w+)", reply.result)
    output = (await ended(claude, task_id))["output"]
    stored = await claude.output(reply.output_id)

    assert len(output) < 31_000
    assert output.startswith("100000\n")
    assert output.endswith("150000\n")
    assert "characters are not shown here" in output
    assert stored.read(0, 10_000_000).text == "".join(f"{n}\n" for n in range(100_000, 150_001))


async def test_an_unknown_task_is_answered_with_those_that_there_are(claude):
    nothing = await claude.call("TaskStop", task_id="b1")
    task_id = await left(claude, "sleep 300", description="Rest a while")
    unknown = await claude.call("TaskOutput", task_id="b1", block=False, timeout=0)

    assert failure(nothing).message == "There is no task with task_id b1. This session has no tasks."
    assert failure(unknown).message == (
        f"There is no task with task_id b1. There are: {task_id} (Rest a while, running)."
    )
    assert {failure(nothing).error_code, failure(unknown).error_code} == {"unknown-task"}


async def test_a_command_that_says_nothing_for_long_is_stopped_where_that_is_set(tmp_path):
    settings = Settings(shell=ShellSettings(quiet_seconds=0.3))
    async with Bounded(tmp_path, ask=YES, settings=settings) as engine:
        reply = await engine.call("Bash", cmd="echo first; sleep 60")
        busy = await engine.call("Bash", cmd="for n in 1 2 3 4 5 6; do echo $n; sleep 0.1; done")

    assert reply.result.endswith("<output>first\n</output>\n<exit_code>143</exit_code>")
    assert reply.notes == ("The command was stopped after 0.3 seconds without output (shell.quiet_seconds).",)
    assert busy.result.endswith("<output>1\n2\n3\n4\n5\n6\n</output>\n<exit_code>0</exit_code>")


async def test_a_session_comes_back_and_goes_on(codex, tmp_path):
    begun = await codex.call("exec_command", cmd=TWO_STEPS, yield_time_ms=700)
    number = int(found(r"session ID (\d+)", begun.result))
    await tell(tmp_path, "more")
    looked = await codex.call("write_stdin", session_id=number, yield_time_ms=700)
    await tell(tmp_path, "4", "on")
    end = await codex.call("write_stdin", session_id=number, chars="", yield_time_ms=20_000)
    typed = await codex.call("write_stdin", session_id=number, chars="x")

    assert begun.result.endswith(f"Process running with session ID {number}\nOutput:\none\n")
    assert looked.result.endswith(f"Process running with session ID {number}\nOutput:\ntwo more\n")
    assert end.result.endswith("Process exited with code 4\nOutput:\n")
    assert failure(typed).error_code == "not-running"
    assert failure(typed).message.endswith("ended with exit code 4.")


async def test_a_session_that_ends_in_time_is_none(codex):
    reply = await codex.call("exec_command", cmd="echo hi; exit 3", workdir=".", yield_time_ms=20_000)

    assert re.fullmatch(r"Wall time: [\d.]+ seconds\nProcess exited with code 3\nOutput:\nhi\n", reply.result)


async def test_an_interpreter_is_typed_into(codex):
    begun = await codex.call("exec_command", cmd="python3 -i -q", tty=True, yield_time_ms=300)
    number = int(found(r"session ID (\d+)", begun.result))
    said = (await codex.call("write_stdin", session_id=number, chars="print(6 * 7)\n")).result
    for _ in range(100):
        if "42\n" in said:
            break
        said += (await codex.call("write_stdin", session_id=number, yield_time_ms=100)).result
    end = await codex.call("write_stdin", session_id=number, chars="\x04", yield_time_ms=20_000)

    assert "42\n" in said
    assert "Process exited with code 0" in end.result


@pytest.mark.usefixtures("asking")
async def test_what_is_typed_is_asked_about_and_looking_and_interrupting_is_not(tmp_path):
    asked = []

    def ask(question):
        asked.append((question.name, question.input.get("chars")))
        return True

    async with Bounded(tmp_path, dialect="codex", ask=ask) as engine:
        begun = await engine.call("exec_command", cmd="trap 'exit 9' INT; cat", tty=True, yield_time_ms=300)
        number = int(found(r"session ID (\d+)", begun.result))
        await engine.call("write_stdin", session_id=number, chars="rm -rf x\n")
        await engine.call("write_stdin", session_id=number, yield_time_ms=10)
        end = await engine.call("write_stdin", session_id=number, chars="\x03", yield_time_ms=20_000)

    assert "Process exited with code" in end.result
    assert asked == [("exec_command", None), ("write_stdin", "rm -rf x\n")]


async def test_a_command_without_a_terminal_cannot_be_typed_into(codex):
    begun = await codex.call("exec_command", cmd="mkfifo go; read word < go", yield_time_ms=300)
    number = int(found(r"session ID (\d+)", begun.result))
    reply = await codex.call("write_stdin", session_id=number, chars="x\n")
    nobody = await codex.call("write_stdin", session_id=99, chars="x\n")

    assert failure(reply).error_code == "no-stdin"
    assert failure(reply).message == (
        "mkfifo go; read word < go reads nothing: it was started without a terminal."
        " Start it again with one to type into it."
    )
    assert failure(nobody).message.startswith(f"There is no task with session_id 99. There are: {number} (mkfifo go;")


async def test_a_session_shows_as_much_as_was_asked_for(codex):
    reply = await codex.call("exec_command", cmd="seq 1 5000", max_output_tokens=100, yield_time_ms=20_000)
    stored = await codex.output(reply.output_id)

    assert "Original token count: " in reply.result
    assert len(reply.result) < 700
    assert reply.result.endswith("5000\n")
    assert stored.read(0, 10_000_000).text == "".join(f"{n}\n" for n in range(1, 5001))


async def test_gemini_goes_by_processes(tmp_path):
    async with Bounded(tmp_path, dialect="gemini", ask=YES) as engine:
        begun = await engine.call("run_shell_command", command=TWO_STEPS, is_background=True, delay_ms=500)
        pid = int(found(r"Background PIDs: (\d+)", begun.result))
        listed = await engine.call("list_background_processes")
        await tell(tmp_path, "more")
        await tell(tmp_path, "2", "on")
        read = await engine.call("read_background_output", pid=pid, lines=1, delay_ms=20_000)
        over = await engine.call("list_background_processes")

    assert begun.result.startswith(f"Command: {TWO_STEPS}\nDirectory: {os.path.realpath(tmp_path)}\nOutput: one\n")
    assert listed.result == f"- [PID {pid}] Running: `{TWO_STEPS}`"
    assert read.result == f"[PID {pid}] Exited (exit code 2)\nOutput:\ntwo more\n"
    assert over.result == f"- [PID {pid}] Exited (exit code 2): `{TWO_STEPS}`"


@pytest.mark.parametrize("family", FAMILIES)
async def test_every_session_understands_how_any_family_leaves_reads_and_stops_a_command(tmp_path, family):
    async with Bounded(tmp_path, dialect=family, ask=YES) as engine:
        begun = await engine.call("Bash", command="echo hello; sleep 300", run_in_background=True)
        (task,) = engine._services._one("Tasks").list()
        found = await engine.call("shell_output", task_id=task.id, until="hello", seconds=20)
        by_id = await engine.call("TaskOutput", task_id=task.id, block=False, timeout=0)
        by_pid = await engine.call("read_background_output", pid=task.pid)
        by_number = await engine.call("write_stdin", session_id=task.number, yield_time_ms=1)
        listed = await engine.call("list_background_processes")
        stopped = await engine.call("TaskStop", task_id=task.id)

    assert begun.ok, begun
    assert task.id in begun.result or f"session ID {task.number}" in begun.result
    assert [reply.status for reply in (found, by_id, by_pid, by_number, listed, stopped)] == ["done"] * 6
    assert all("hello" in reply.text for reply in (found, by_id, by_pid))
    assert task.status == "killed"


async def test_a_task_can_be_stopped_by_its_number_or_its_process(tmp_path):
    async with Bounded(tmp_path, dialect="codex", ask=YES) as engine:
        for _ in range(2):
            await engine.call("exec_command", cmd="sleep 300", yield_time_ms=250)
        one, other = engine._services._one("Tasks").list()
        replies = [await engine.call("TaskStop", pid=one.pid), await engine.call("TaskStop", number=other.number)]

    assert [reply.ok for reply in replies] == [True, True]
    assert (one.status, other.status) == ("killed", "killed")


async def test_a_command_outlives_the_session_only_if_that_was_asked_for_and_allowed(tmp_path):
    asked = []

    def ask(question):
        asked.append((question.input.get("detach"), question.input.get("outside")))
        return True

    values = {"command": "echo up; exec sleep 300", "detach": True}
    async with Bounded(tmp_path, dialect="claude", ask=ask) as engine:
        confined = await engine.call("shell", **values)
        reply = await engine.call("shell", **values, outside=True)
        entries = [one for one in engine._services._one("Roster").entries() if one.detached]
    roster = Roster(os.path.join(engine.state, "processes"))
    name = re.search(r"as task (b\w+) \(process (\d+)\)", reply.result)
    assert name is not None
    living = [one for one in roster.entries() if one.task == name[1]]
    stopped = [roster.stop(one) for one in living]

    assert failure(confined).error_code == "bad-arguments"
    assert asked == [(True, True)]
    assert [one.task for one in entries] == [one.task for one in living] == [name[1]]
    assert stopped == [True]
    assert alive(tmp_path) == []


async def test_nobody_to_ask_means_that_nothing_outlives_the_session(tmp_path):
    async with Bounded(tmp_path, dialect="claude") as engine:
        reply = await engine.call("shell", command="ls", detach=True, outside=True)

    assert reply.status == "rejected-by-user"
