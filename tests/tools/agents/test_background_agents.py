"""Agents of the background, by the same tools as commands of the background: read, waited for, listed and stopped."""

import asyncio

import pytest
from tests.crew import Crew

from ferrule import Call, Engine

TASK = {"description": "A look", "prompt": "Find it.", "subagent_type": "Explore", "run_in_background": True}
YES = lambda question: question.kind == "call"  # noqa: E731 - somebody who lets everything run


@pytest.fixture
def crew():
    return Crew()


@pytest.fixture
async def claude(tmp_path, crew):
    async with asyncio.timeout(60), Engine(tmp_path, dialect="claude", subagents=crew, ask=YES) as engine:
        yield engine


async def left(engine):
    """One that works in the background, by its id."""
    reply = await engine.call("Task", **TASK)
    assert reply.ok, reply
    return "a00001"


def told(status, task_status, output):
    return {
        "retrieval_status": status,
        "task": {
            "task_id": "a00001",
            "task_type": "local_agent",
            "status": task_status,
            "description": "A look",
            "output": output,
        },
    }


async def test_one_that_still_works_is_not_ready(claude):
    name = await left(claude)
    reply = await claude.call("TaskOutput", task_id=name, block=False, timeout=1000)

    assert reply.result == told("not_ready", "running", "")


async def test_the_time_may_be_over_first(claude):
    name = await left(claude)
    reply = await claude.call("TaskOutput", task_id=name, block=True, timeout=1)

    assert reply.result == told("timeout", "running", "")


async def test_its_end_is_waited_for(claude, crew):
    name = await left(claude)
    waiting = asyncio.create_task(claude.call("TaskOutput", task_id=name, block=True, timeout=60_000))
    await asyncio.sleep(0)
    crew.end(name)

    assert (await waiting).result == told("success", "completed", "Found it.")


@pytest.mark.parametrize(
    ("news", "status", "output"),
    [
        pytest.param(
            {"status": "failed", "text": "Half.", "why": "The limit of 3 turns was met.", "reason": "turns"},
            "failed",
            "Half.\n\n(It was stopped before it was done: The limit of 3 turns was met.)",
            id="a-limit",
        ),
        pytest.param(
            {"status": "failed", "text": "", "why": "No key.", "reason": "error"},
            "failed",
            "(It was stopped before it was done: No key.)",
            id="no-model",
        ),
        pytest.param({"status": "stopped", "text": "Half."}, "killed", "Half.", id="stopped"),
        pytest.param({"text": "x" * 100_000}, "completed", None, id="very-long"),
    ],
)
async def test_it_may_end_like_this(claude, crew, news, status, output):
    name = await left(claude)
    crew.end(name, **news)
    reply = await claude.call("TaskOutput", task_id=name, block=True, timeout=1000)
    task = reply.result["task"]

    assert task["status"] == status
    assert task["output"] == output if output is not None else len(task["output"]) < 31_000


async def test_only_some_of_its_lines_are_given_where_that_is_asked_for(claude, crew):
    name = await left(claude)
    crew.end(name, text="one\ntwo\nthree\n")
    some = await claude.call("shell_output", task_id=name, only="t", lines=1)

    assert some.result["task"]["output"] == "three\n"


async def test_its_words_cannot_be_waited_for(claude):
    name = await left(claude)
    reply = await claude.call("shell_output", task_id=name, until="done")

    assert reply.error is not None
    assert reply.error.message == "until: a00001 is an agent; only its end can be waited for."


async def test_it_is_stopped_once(claude):
    name = await left(claude)
    first = await claude.call("TaskStop", task_id=name)
    second = await claude.call("TaskStop", task_id=name)

    assert first.result == {
        "message": "Successfully stopped task: a00001 (A look)",
        "task_id": "a00001",
        "task_type": "local_agent",
        "command": "A look",
    }
    assert second.error is not None
    assert second.error.error_code == "not-running"
    assert second.error.message == "There is nothing to stop: the agent a00001 (A look) has ended."


@pytest.mark.parametrize("name", ["TaskOutput", "TaskStop"])
async def test_who_names_nobody_gets_the_names_of_all(claude, name):
    more = {"block": False, "timeout": 0} if name == "TaskOutput" else {}
    before = await claude.call(name, task_id="a9", **more)
    await left(claude)
    after = await claude.call(name, task_id="a9", **more)

    assert before.error is not None
    assert before.error.message == "There is no task with task_id a9. This session has no tasks."
    assert after.error is not None
    assert after.error.message == "There is no task with task_id a9. There are: a00001 (A look, running)."


async def test_nothing_can_be_typed_into_it(claude):
    name = await left(claude)
    reply = await claude.call("shell_write", task_id=name, chars="x\n")

    assert reply.error is not None
    assert reply.error.error_code == "is-agent"


async def test_it_is_listed_beside_the_commands(tmp_path, crew):
    async with asyncio.timeout(60), Engine(tmp_path, dialect="gemini", subagents=crew, ask=YES) as engine:
        await engine.run([Call("run_shell_command", {"command": "echo hi; sleep 300", "is_background": True})])
        await engine.call("Task", **TASK)
        crew.end("a00001", status="failed")
        listed = await engine.call("list_background_processes")

    first, second = listed.text.splitlines()
    assert first.startswith("- [PID ")
    assert second == "- [Agent a00001] Failed: `A look`"


@pytest.mark.parametrize(
    ("news", "status", "timed_out"),
    [
        pytest.param(None, {}, True, id="at-work"),
        pytest.param({}, {"a00002": {"completed": "Found it."}}, False, id="done"),
        pytest.param(
            {"status": "failed", "why": "No key."},
            {"a00002": {"errored": "Found it.\n\n(It was stopped before it was done: No key.)"}},
            False,
            id="failed",
        ),
        pytest.param({"status": "stopped"}, {"a00002": "shutdown"}, False, id="stopped"),
    ],
)
@pytest.mark.parametrize("targets", [["a00001", "a00002"], ["a00002", "a00002"], ["a00002"]], ids=len)
async def test_codex_waits_for_the_first_of_some(tmp_path, crew, targets, news, status, timed_out):
    async with asyncio.timeout(60), Engine(tmp_path, dialect="codex", subagents=crew) as engine:
        for name in ("one", "two"):
            await engine.call("spawn_agent", message="x", task_name=name)
        seconds = 0.001 if news is None else 60
        waiting = asyncio.create_task(engine.call("wait_agent", targets=targets, timeout_ms=seconds * 1000))
        await asyncio.sleep(0)
        if news is not None:
            crew.end("a00002", **news)
        reply = await waiting

    assert reply.result == {"status": status, "timed_out": timed_out}


async def test_codex_waits_for_all_where_it_names_nobody(tmp_path, crew):
    async with asyncio.timeout(60), Engine(tmp_path, dialect="codex", subagents=crew) as engine:
        nobody = await engine.call("wait_agent")
        await engine.call("spawn_agent", message="x", task_name="y")
        waiting = asyncio.create_task(engine.call("wait_agent", timeout_ms=60_000))
        while not crew.waiting:
            await asyncio.sleep(0)
        crew.end("a00001")
        reply = await waiting

    assert nobody.result == {"status": {}, "timed_out": False}
    assert reply.result == {"status": {"a00001": {"completed": "Found it."}}, "timed_out": False}


async def test_codex_closes_one_and_one_that_has_ended_stays_as_it_was(tmp_path, crew):
    async with asyncio.timeout(60), Engine(tmp_path, dialect="codex", subagents=crew) as engine:
        for name in ("one", "two"):
            await engine.call("spawn_agent", message="x", task_name=name)
        crew.end("a00002")
        first = await engine.call("close_agent", target="a00001")
        second = await engine.call("close_agent", target="a00002")

    assert first.result == {"status": "shutdown"}
    assert second.result == {"status": {"completed": "Found it."}}


async def test_who_waits_and_is_stopped_stops_no_agent(tmp_path, crew):
    async with asyncio.timeout(60), Engine(tmp_path, dialect="codex", subagents=crew) as engine:
        await engine.call("spawn_agent", message="x", task_name="y")
        waiting = asyncio.create_task(engine.run([Call("wait_agent", {"timeout_ms": 60_000})]))
        while not crew.waiting:
            await asyncio.sleep(0)
        engine.cancel()
        (reply,) = await waiting

    assert reply.status == "cancelled"
    assert crew.list()[0].status == "running"
    assert crew.waiting == 0
