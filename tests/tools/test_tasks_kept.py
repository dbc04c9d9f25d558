"""The tasks of a session by themselves: how they are named, found, told of once, forgotten and ended."""

import asyncio
import os

import pytest

from ferrule.system.command import Launch, start
from ferrule.system.tasks import Tasks


@pytest.fixture
async def tasks():
    made = Tasks(most=3)
    yield made
    await made.close()


def started(tasks, tmp_path, command, **more):
    running = start(Launch(argv=["/bin/sh", "-c", command], cwd=str(tmp_path), env=dict(os.environ)))
    return tasks.add(running, tasks.new_id(), command=command, cwd=str(tmp_path), **more)


async def over(task):
    async with asyncio.timeout(30):
        await task.running.wait()
        await task.watch


async def test_a_task_is_found_by_its_id_its_number_and_its_process(tasks, tmp_path):
    one, other = started(tasks, tmp_path, "sleep 300"), started(tasks, tmp_path, "sleep 301")

    for task in (one, other):
        assert tasks.get(task.id) is tasks.get(number=task.number) is tasks.get(pid=task.pid) is task
    assert list(tasks.list()) == [one, other]
    assert [tasks.get("b0"), tasks.get(number=9), tasks.get(pid=1), tasks.get()] == [None] * 4


async def test_ids_are_short_clear_and_never_the_same(tasks):
    made = {tasks.new_id() for _ in range(1000)}

    assert len(made) == 1000
    assert all(len(one) == 7 and one[0] == "b" and set(one).isdisjoint("ilou") for one in made)


@pytest.mark.parametrize(
    ("command", "status", "sentence"),
    [
        pytest.param("true", "completed", "Task {id} (true) ended with exit code 0.", id="well"),
        pytest.param("exit 7", "failed", "Task {id} (exit 7) ended with exit code 7.", id="badly"),
    ],
)
async def test_the_end_of_a_task_is_told_once(tasks, tmp_path, command, status, sentence):
    task = started(tasks, tmp_path, command)
    await over(task)
    told = [task.describe_end() for task in tasks.take_ended()]

    assert (task.status, told) == (status, [sentence.format(id=task.id)])
    assert list(tasks.take_ended()) == []


async def test_a_task_that_was_stopped_is_no_news(tasks, tmp_path):
    task = started(tasks, tmp_path, "sleep 300")
    stopped = [await tasks.stop(task), await tasks.stop(task)]

    assert stopped == [True, False]
    assert (task.status, task.describe_end()) == ("killed", f"Task {task.id} (sleep 300) was stopped.")
    assert list(tasks.take_ended()) == []


async def test_what_a_task_needed_is_taken_back_once_when_it_has_ended(tasks, tmp_path):
    calls = []
    ended = started(tasks, tmp_path, "true", done=lambda: calls.append("ended"))
    await over(ended)
    stopped = started(tasks, tmp_path, "sleep 300", done=lambda: calls.append("stopped"))
    await tasks.stop(stopped)
    started(tasks, tmp_path, "sleep 300", done=lambda: calls.append("closed"))
    await tasks.close()

    assert calls == ["ended", "stopped", "closed"]


async def test_only_so_many_run_at_once_and_those_that_ended_do_not_count(tasks, tmp_path):
    had_room = []
    for _ in range(3):
        had_room.append(tasks.has_room)
        last = started(tasks, tmp_path, "sleep 300")
    full = tasks.has_room
    await tasks.stop(last)

    assert (had_room, full, tasks.has_room) == ([True] * 3, False, True)


async def test_of_many_that_ended_those_are_forgotten_first_that_were_told_of(tasks, tmp_path):
    told = started(tasks, tmp_path, "true")
    await over(told)
    tasks.take_ended()
    untold = [started(tasks, tmp_path, "true") for _ in range(70)]
    for task in untold:
        await over(task)
    newest = started(tasks, tmp_path, "true")
    await over(newest)

    kept = list(tasks.list())
    assert told not in kept
    assert kept == [*untold[-63:], newest]


async def test_a_label_is_short_and_one_line(tasks, tmp_path):
    long = started(tasks, tmp_path, f"true {'x' * 200}\ntrue")
    named = started(tasks, tmp_path, "true", description="Build  the\nthing")

    assert len(long.label) == 80
    assert "\n" not in long.label
    assert named.label == "Build the thing"
