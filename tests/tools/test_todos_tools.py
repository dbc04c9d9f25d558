"""The tools about todos, through the whole flow, in the words of the families that have them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from ferrule import Call, Engine, Question
from ferrule.tools.todos import Todos
from ferrule.tools.todos.tools import MOST_DESCRIPTION_CHARS, MOST_SUBJECT_CHARS


def asked(question: Question) -> bool:
    raise AssertionError(question)


@asynccontextmanager
async def session(tmp_path: Path, dialect: str, **rest: Any) -> AsyncIterator[Engine]:
    """An engine with a list of its own, and nobody who may be asked about it."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    todos = Todos(str(tmp_path / "todos"), "T-1")
    async with Engine(work, dialect=dialect, ask=asked, **rest) as engine:
        engine._services.put(Todos, todos)
        yield engine
    await todos.close()


async def said(engine: Engine, name: str, /, **values: Any) -> Any:
    reply = await engine.call(name, **values)
    assert reply.ok, reply
    return reply.result


async def test_the_tasks_of_claude_read_as_the_seed_has_them(tmp_path):
    async with session(tmp_path, "claude") as engine:
        for subject in ("Look", "Fix", "Tell"):
            made = await said(engine, "TaskCreate", subject=subject, description=f"{subject} at it")
        begun = await said(
            engine, "TaskUpdate", taskId="1", status="in_progress", owner="ada", activeForm="Looking", metadata={"x": 1}
        )
        chained = await said(engine, "TaskUpdate", taskId="2", addBlocks=["3"], addBlockedBy=["1"])
        one = await said(engine, "TaskGet", taskId="1")
        two = await said(engine, "TaskGet", taskId="2")
        none = await said(engine, "TaskGet", taskId="9")
        listed = await said(engine, "TaskList")
        deleted = await said(engine, "TaskUpdate", taskId="3", status="deleted")
        left = await said(engine, "TaskList")

    assert made == {"task": {"id": "3", "subject": "Tell"}}
    assert begun == {
        "success": True,
        "taskId": "1",
        "updatedFields": ["status", "activeForm", "owner", "metadata"],
        "statusChange": {"from": "pending", "to": "in_progress"},
    }
    assert chained == {"success": True, "taskId": "2", "updatedFields": ["blocks", "blockedBy"]}
    assert one["task"] == {
        "id": "1",
        "subject": "Look",
        "description": "Look at it",
        "status": "in_progress",
        "blocks": ["2"],
        "blockedBy": [],
        "activeForm": "Looking",
        "owner": "ada",
        "metadata": {"x": 1},
    }
    assert (two["task"]["blocks"], two["task"]["blockedBy"], none) == (["3"], ["1"], {"task": None})
    assert listed == {
        "tasks": [
            {"id": "1", "subject": "Look", "status": "in_progress", "owner": "ada", "blockedBy": []},
            {"id": "2", "subject": "Fix", "status": "pending", "blockedBy": ["1"]},
            {"id": "3", "subject": "Tell", "status": "pending", "blockedBy": ["2"]},
        ]
    }
    assert deleted == {
        "success": True,
        "taskId": "3",
        "updatedFields": ["deleted"],
        "statusChange": {"from": "pending", "to": "deleted"},
    }
    assert [task["id"] for task in left["tasks"]] == ["1", "2"]


async def test_deleted_is_accepted_and_not_advertised(tmp_path):
    async with session(tmp_path, "claude") as engine:
        (face,) = [face for face in engine.registry.visible_faces() if face.name == "TaskUpdate"]
        reply = await engine.call("TaskUpdate", taskId="1", status="removed")

    assert face.definition()["inputSchema"]["properties"]["status"]["enum"] == ["pending", "in_progress", "completed"]
    assert reply.text.startswith('status: must be one of "pending", "in_progress", "completed", "deleted"')


async def test_a_list_of_amp_does_everything_in_one_tool(tmp_path):
    async with session(tmp_path, "amp") as engine:
        first = await said(engine, "task_list", action="create", title="Look", repoURL="https://example.org/x")
        second = await said(engine, "task_list", action="create", title="Fix", dependsOn=["1"], parentID="1")
        waiting = await said(engine, "task_list", action="list", ready=True)
        done = await said(engine, "task_list", action="update", taskID="1", status="completed", description="seen")
        open_ones = await said(engine, "task_list", action="list")
        completed = await said(engine, "task_list", action="list", status="completed")
        here = await said(engine, "task_list", action="list", repoURL="https://example.org/y")
        parts = await said(engine, "task_list", action="list", parentID="#1", status="open")
        got = await said(engine, "task_list", action="get", taskID="1")
        await said(engine, "task_list", action="create", title="More")
        short = await said(engine, "task_list", action="list", limit=1.0)
        long = await said(engine, "task_list", action="list", limit=1e300)
        again = await said(engine, "task_list", action="update", taskID="1", status="open", dependsOn=[])
        gone = await said(engine, "task_list", action="delete", taskID="1")

    assert first == {
        "task": {
            "id": "1",
            "title": "Look",
            "status": "open",
            "repoURL": "https://example.org/x",
            "ready": True,
        }
    }
    assert second["task"] == {
        "id": "2",
        "title": "Fix",
        "status": "open",
        "parentID": "1",
        "dependsOn": ["1"],
        "ready": False,
    }
    assert [task["id"] for task in waiting["tasks"]] == ["1"]
    assert (done["task"]["status"], done["task"]["description"]) == ("completed", "seen")
    assert open_ones["tasks"] == [{**second["task"], "ready": True}]
    assert [task["id"] for task in completed["tasks"]] == ["1"]
    assert (here, [task["id"] for task in parts["tasks"]]) == ({"tasks": []}, ["2"])
    assert got == {"task": done["task"]}
    assert ([task["id"] for task in short["tasks"]], short["remaining"], len(long["tasks"])) == (["2"], 1, 2)
    assert (again["task"]["status"], gone) == ("open", {"deleted": "1"})


async def test_the_tracker_of_gemini(tmp_path):
    async with session(tmp_path, "gemini") as engine:
        rows = [
            await said(engine, "tracker_create_task", title="All", description="of it", type="epic"),
            await said(engine, "tracker_create_task", title="Look", description="", type="task", parentId="1"),
            await said(
                engine, "tracker_create_task", title="Fix", description="", type="bug", parentId="1", dependencies=["2"]
            ),
            await said(engine, "tracker_create_task", title="Tell", description="them", type="task"),
            await said(engine, "tracker_add_dependency", taskId="4", dependencyId="3"),
            await said(engine, "tracker_list_tasks", status="open"),
            await said(engine, "tracker_list_tasks", status="blocked", type="bug"),
            await said(engine, "tracker_update_task", id="2", status="closed", title="Looked"),
            await said(engine, "tracker_update_task", id="4", status="blocked", dependencies=["2"]),
            await said(engine, "tracker_get_task", id="3"),
            await said(engine, "tracker_get_task", id="abc123"),
            await said(engine, "tracker_list_tasks", status="closed"),
            await said(engine, "tracker_list_tasks", parentId="9"),
            await said(engine, "tracker_visualize"),
        ]

    assert rows == [
        "Created task 1: All",
        "Created task 2: Look",
        "Created task 3: Fix",
        "Created task 4: Tell",
        "Task 4 depends on: 3",
        "[ ] 1 open: All\n[ ] 2 open: Look",
        "[!] 3 blocked: Fix (depends on 2)",
        "Updated task 2. Status: closed",
        "Updated task 4. Status: open",
        "ID: 3\nTitle: Fix\nType: bug\nStatus: open\nParent: 1\nDependencies: 2",
        "Task not found.",
        "[x] 2 closed: Looked",
        "No tasks found.",
        "[ ] 1 open: All\n  [x] 2 closed: Looked\n  [ ] 3 open: Fix\n[ ] 4 open: Tell",
    ]


async def test_all_families_write_on_one_list(tmp_path):
    async with session(tmp_path, "claude") as engine:
        replies = await engine.run(
            [
                Call("TaskCreate", {"subject": "a", "description": "x"}),
                Call("task_list", {"action": "create", "title": "b", "dependsOn": ["1"]}),
                Call("tracker_create_task", {"title": "c", "description": "x", "type": "bug"}),
                Call("tracker_add_dependency", {"taskId": "3", "dependencyId": "2"}),
                Call("TaskList", {}),
            ]
        )

    assert [reply.status for reply in replies] == ["done"] * 5, replies
    assert [(task["id"], task["blockedBy"]) for task in replies[-1].result["tasks"]] == [
        ("1", []),
        ("2", ["1"]),
        ("3", ["2"]),
    ]


@each_row(
    ("name", "values", "message"),
    [
        pytest.param("TaskCreate", {"subject": " \n", "description": ""}, "subject: is empty.", id="empty"),
        pytest.param(
            "TaskCreate",
            {"subject": "x" * (MOST_SUBJECT_CHARS + 1), "description": "x" * (MOST_DESCRIPTION_CHARS + 1)},
            "subject: has 501 characters; 500 is the most.\ndescription: has 20,001 characters; 20,000 is the most.",
            id="long",
        ),
        pytest.param(
            "TaskUpdate",
            {"taskId": "1", "activeForm": "x" * 501},
            "activeForm: has 501 characters; 500 is the most.",
            id="its-own-names",
        ),
        pytest.param("TaskUpdate", {"taskId": "7", "status": "deleted"}, "There is no task '7'. There are 1.", id="no"),
        pytest.param("TaskUpdate", {"taskId": "1", "addBlocks": ["1"]}, "Task 1 cannot wait for itself.", id="self"),
        pytest.param("task_list", {"action": "create"}, "title: required for create, but missing.", id="no-title"),
        pytest.param("task_list", {"action": "get"}, "taskID: required for get, but missing.", id="no-id"),
        pytest.param("task_list", {"action": "list", "limit": 0}, "limit: must be at least 1, not 0.", id="no-limit"),
        pytest.param(
            "tracker_add_dependency", {"taskId": "1", "dependencyId": "8"}, "no task '8' to wait for", id="unknown"
        ),
    ],
)
async def test_what_cannot_be_written_is_refused_in_the_caller_s_words(tmp_path, name, values, message):
    async with session(tmp_path, "claude") as engine:
        await said(engine, "TaskCreate", subject="x", description="")
        reply = await engine.call(name, **values)
        left = await said(engine, "TaskList")

    assert (reply.status, message in reply.text) == ("error", True), reply
    assert len(left["tasks"]) == 1


async def test_a_subject_is_one_line(tmp_path):
    async with session(tmp_path, "claude") as engine:
        made = await said(engine, "TaskCreate", subject=" Fix \n the\tbug ", description="")

    assert made["task"]["subject"] == "Fix the bug"


@pytest.mark.parametrize(
    ("status", "notes"),
    [
        pytest.param("in_progress", ("Task 3 was to wait for 1, 2, which are not completed.",), id="begun"),
        pytest.param("completed", ("Task 3 was to wait for 1, 2, which are not completed.",), id="ended"),
        pytest.param("pending", (), id="nothing-new"),
    ],
)
async def test_what_is_begun_before_its_time_is_noted(tmp_path, status, notes):
    async with session(tmp_path, "claude") as engine:
        for subject in "abc":
            await said(engine, "TaskCreate", subject=subject, description="")
        await said(engine, "TaskUpdate", taskId="3", addBlockedBy=["1", "2"])
        reply = await engine.call("TaskUpdate", taskId="3", status=status)

    assert (reply.status, reply.notes) == ("done", notes)


@pytest.mark.contract("permission.task-list")
@pytest.mark.parametrize("mode", ["default", "plan", "dontAsk"])
async def test_no_mode_asks_about_the_list(tmp_path, mode):
    async with session(tmp_path, "amp", permission_mode=mode) as engine:
        reply = await engine.call("task_list", action="create", title="x")

    assert reply.ok, reply


async def test_a_list_that_had_to_be_begun_anew_is_told_of(tmp_path):
    async with session(tmp_path, "claude") as engine:
        await said(engine, "TaskCreate", subject="x", description="")
    (tmp_path / "todos" / "todos.sqlite").write_bytes(b"nothing" * 500)
    async with session(tmp_path, "claude") as engine:
        reply = await engine.call("TaskList")
        again = await engine.call("TaskList")

    assert reply.result == {"tasks": []}
    assert [
        note.endswith("a new one was started. The tasks that were on it are gone from the list.")
        for note in reply.notes
    ] == [True]
    assert again.notes == ()


async def test_a_store_that_fails_harms_nothing_else(tmp_path):
    (tmp_path / "todos").write_text("a file where the folder should be")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("hello")
    async with session(tmp_path, "claude") as engine:
        failed, fine = await engine.run(
            [Call("TaskCreate", {"subject": "x", "description": ""}), Call("Read", {"file_path": "a.txt"})]
        )

    assert failed.error is not None
    assert (failed.status, failed.error.error_code) == ("error", "todos-unusable")
    assert "hello" in fine.text


async def test_words_on_the_list_steer_no_screen(tmp_path):
    async with session(tmp_path, "claude") as engine:
        await said(engine, "TaskCreate", subject="\x1b[2Jx", description="\x1b]0;y\x07")
        listed = await engine.call("TaskGet", taskId="1")

    assert "\x1b" not in json.dumps(listed.result)
