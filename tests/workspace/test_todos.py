"""The list of todos: an order without circles, owners who keep what they work on, and several processes at once."""

import asyncio
import contextlib
import itertools
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.core.errors import ToolFailure
from ferrule.tools.todos import (
    MOST_EDGES,
    MOST_METADATA_CHARS,
    MOST_TODOS,
    Todo,
    TodoChange,
    Todos,
    find_cycle,
    todo_lines,
)

LIMIT_SECONDS = 60


@pytest.fixture
async def todos(tmp_path: Path) -> AsyncIterator[Todos]:
    made = Todos(str(tmp_path / "todos"), "T-1")
    yield made
    await made.close()


async def filled(todos: Todos, count: int) -> None:
    for number in range(1, count + 1):
        assert (await todos.create(TodoChange(subject=f"todo {number}"))).id == str(number)


async def failure(awaitable: Any) -> tuple[str | None, str]:
    with pytest.raises(ToolFailure) as caught:
        await awaitable
    return caught.value.code, caught.value.message


async def test_a_todo_is_kept_as_it_was_written(todos):
    made = await todos.create(
        TodoChange(
            subject="Fix it",
            description="All\nof it \x00 \ud800",
            active_form="Fixing it",
            owner="ada",
            kind="bug",
            repository="https://example.org/x",
            metadata={"a": [1, {"b": None}], "gone": None},
        )
    )

    assert made == await todos.get("1") == await todos.get(" #1 ")
    assert made == Todo(
        id="1",
        subject="Fix it",
        description="All\nof it \x00 ?",
        active_form="Fixing it",
        owner="ada",
        kind="bug",
        repository="https://example.org/x",
        metadata={"a": [1, {"b": None}]},
    )


@pytest.mark.parametrize("todo_id", ["", "2", "0", "-1", "1.0", "one", "٣", "1" * 5000, "#", "1 2"])
async def test_an_id_that_is_none_is_no_todo(todos, todo_id):
    await filled(todos, 1)

    assert await todos.get(todo_id) is None
    code, message = await failure(todos.update(todo_id, TodoChange(subject="x")))
    assert (code, message.endswith("There are 1.")) == ("no-such-todo", True)
    assert (await failure(todos.delete(todo_id)))[0] == "no-such-todo"


async def test_nothing_is_made_by_looking(tmp_path):
    todos = Todos(str(tmp_path / "todos"), "T-1")

    assert await todos.all() == ()
    assert await todos.get("1") is None
    await todos.forget()
    await todos.close()

    assert not (tmp_path / "todos").exists()


async def test_who_blocks_and_who_is_blocked_agree(todos):
    await filled(todos, 4)
    await todos.update("2", TodoChange(add_blocks=["3", "4"], add_blocked_by=["1"]))
    await todos.update("1", TodoChange(status="completed"))

    one, two, three, four = await todos.all()
    assert (one.blocks, two.blocked_by, two.waits_for, two.blocks) == (("2",), ("1",), (), ("3", "4"))
    assert (three.blocked_by, three.waits_for, three.is_ready) == (("2",), ("2",), False)
    assert (two.is_ready, one.is_ready, four.waits_for) == (True, False, ("2",))


@pytest.mark.parametrize(
    ("before", "todo_id", "change", "message"),
    [
        pytest.param([], "1", TodoChange(add_blocks=["1"]), "Task 1 cannot wait for itself.", id="itself"),
        pytest.param([], "1", TodoChange(blocked_by=["#1"]), "Task 1 cannot wait for itself.", id="itself-in-full"),
        pytest.param([("1", "2")], "1", TodoChange(add_blocked_by=["2"]), "begin: 1 → 2 → 1.", id="two"),
        pytest.param([("1", "2"), ("2", "3")], "3", TodoChange(add_blocks=["1"]), "begin: 3 → 1 → 2 → 3.", id="three"),
        pytest.param([], "1", TodoChange(add_blocks=["2"], add_blocked_by=["2"]), "begin: 1 → 2 → 1.", id="at-once"),
        pytest.param([], "1", TodoChange(add_blocks=["2", "9"]), "no task '9' that could wait. There", id="unknown"),
        pytest.param([], "1", TodoChange(add_blocked_by=["x" * 500]), f"no task '{'x' * 80}' to wait for.", id="long"),
        pytest.param([], "1", TodoChange(parent="1"), "A task cannot be a part of itself: 1 → 1.", id="own-parent"),
        pytest.param([], "1", TodoChange(parent="7"), "There is no task '7' to be part of.", id="no-parent"),
    ],
)
async def test_an_order_that_could_not_be_kept_is_refused_and_nothing_changes(todos, before, todo_id, change, message):
    await filled(todos, 4)
    for blocker, blocked in before:
        await todos.update(blocker, TodoChange(add_blocks=[blocked]))
    was = await todos.all()

    said = (await failure(todos.update(todo_id, change._replace(subject="new", metadata={"x": 1}))))[1]

    assert message in said
    assert await todos.all() == was


async def test_parts_of_parts_are_no_circle_either(todos):
    await filled(todos, 3)
    await todos.update("2", TodoChange(parent="1"))
    await todos.update("3", TodoChange(parent="2"))

    assert "1 → 3 → 2 → 1" in (await failure(todos.update("1", TodoChange(parent="3"))))[1]
    await todos.update("2", TodoChange(parent=""))
    assert (await todos.update("1", TodoChange(parent="3"))).fields == ("parent",)


async def test_dependencies_can_be_replaced(todos):
    await filled(todos, 4)
    await todos.update("4", TodoChange(blocked_by=["1", "2"]))

    assert (await todos.update("4", TodoChange(blocked_by=["3", "2"]))).todo.blocked_by == ("2", "3")
    assert (await todos.update("4", TodoChange(blocked_by=[]))).fields == ("blocked_by",)
    assert all(todo.blocks == todo.blocked_by == () for todo in await todos.all())


async def test_a_deleted_todo_leaves_nothing_behind_and_its_id_is_never_given_again(todos):
    await filled(todos, 3)
    await todos.update("2", TodoChange(add_blocks=["3"], add_blocked_by=["1"]))
    await todos.update("3", TodoChange(parent="2"))

    assert (await todos.delete("2")).blocks == ("3",)
    assert await todos.all() == (Todo("1", "todo 1"), Todo("3", "todo 3"))
    await todos.delete("3")
    assert (await todos.create(TodoChange(subject="x"))).id == "4"


@pytest.mark.parametrize(
    ("first", "second", "metadata"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="added"),
        pytest.param({"a": 1, "b": 2}, {"a": None}, {"b": 2}, id="taken-away"),
        pytest.param({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"y": 2}}, id="replaced-whole"),
        pytest.param({"a": 1}, {"never": None}, {"a": 1}, id="nothing-to-take-away"),
    ],
)
async def test_metadata_is_merged(todos, first, second, metadata):
    await todos.create(TodoChange(subject="x", metadata=first))

    assert (await todos.update("1", TodoChange(metadata=second))).todo.metadata == metadata


async def test_an_update_says_what_has_really_changed(todos):
    await todos.create(TodoChange(subject="x", owner="ada"))

    assert (await todos.update("1", TodoChange(subject="x", owner="ada", metadata={"a": None}))).fields == ()
    done = await todos.update("1", TodoChange(subject="y", status="in_progress"))
    assert (done.fields, done.was, done.todo.status) == (("subject", "status"), "pending", "in_progress")


@pytest.mark.parametrize(
    ("before", "change", "taken"),
    [
        pytest.param(TodoChange(owner="ada", status="in_progress"), TodoChange(owner="bob"), True, id="another-s-work"),
        pytest.param(
            TodoChange(owner="ada", status="in_progress"),
            TodoChange(owner="bob", status="completed"),
            True,
            id="ended-by-another",
        ),
        pytest.param(TodoChange(owner="ada", status="in_progress"), TodoChange(owner="ada"), False, id="one-s-own"),
        pytest.param(TodoChange(owner="ada", status="in_progress"), TodoChange(owner=""), False, id="let-go"),
        pytest.param(
            TodoChange(owner="ada", status="in_progress"),
            TodoChange(owner="bob", status="pending"),
            False,
            id="handed-over",
        ),
        pytest.param(TodoChange(owner="ada"), TodoChange(owner="bob", status="in_progress"), False, id="not-begun"),
        pytest.param(TodoChange(status="in_progress"), TodoChange(owner="bob"), False, id="nobody-s"),
        pytest.param(TodoChange(owner="ada", status="completed"), TodoChange(owner="bob"), False, id="done"),
    ],
)
async def test_nobody_takes_what_another_is_working_on(todos, before, change, taken):
    await filled(todos, 2)
    await todos.update("1", before)

    if not taken:
        assert (await todos.update("1", change)).todo.owner == change.owner
        return
    code, message = await failure(todos.update("1", change))
    assert (code, message.startswith("ada is working on task 1. Nobody has 2 yet.")) == ("todo-taken", True)


async def test_there_is_a_most_of_everything(todos, monkeypatch):
    monkeypatch.setattr("ferrule.tools.todos.MOST_TODOS", 3)
    monkeypatch.setattr("ferrule.tools.todos.MOST_EDGES", 1)
    await filled(todos, 3)

    assert (MOST_TODOS, MOST_EDGES) == (1_000, 5_000)
    assert (await failure(todos.create(TodoChange(subject="x"))))[0] == "too-many-todos"
    assert (await failure(todos.update("1", TodoChange(add_blocks=["2", "3"]))))[0] == "too-many-edges"
    await todos.update("1", TodoChange(metadata={"a": "x" * (MOST_METADATA_CHARS - 8)}))
    assert (await failure(todos.update("1", TodoChange(metadata={"b": 1}))))[0] == "too-much-metadata"
    assert (await failure(todos.update("1", TodoChange(metadata={"a": "\ud800"}))))[0] == "bad-metadata"


async def test_lists_know_nothing_of_each_other_and_a_list_is_there_again_later(tmp_path):
    folder = str(tmp_path / "todos")
    one, other = Todos(folder, "T-1"), Todos(folder, "T-2")
    await filled(one, 2)
    assert (await other.create(TodoChange(subject="another's"))).id == "1"
    await one.close()
    await one.close()

    again = Todos(folder, "T-1")
    assert [todo.subject for todo in await again.all()] == ["todo 1", "todo 2"]
    await again.forget()
    assert (await again.all(), len(await other.all())) == ((), 1)
    await again.close()
    await other.close()
    assert os.stat(folder).st_mode & 0o077 == 0


async def test_a_damaged_file_is_set_aside_and_that_is_told_once(tmp_path):
    folder = tmp_path / "todos"
    todos = Todos(str(folder), "T-1")
    await filled(todos, 1)
    await todos.close()
    (folder / "todos.sqlite").write_bytes(b"no database" * 1000)

    todos = Todos(str(folder), "T-1")
    assert await todos.all() == ()
    assert "was damaged and is now todos.damaged-1.sqlite" in (todos.warning() or "")
    assert todos.warning() is None
    await filled(todos, 1)
    await todos.close()


async def test_a_file_that_stays_locked_is_a_failure_that_says_what_to_do(tmp_path):
    import sqlite3

    todos = Todos(str(tmp_path / "todos"), "T-1", busy_seconds=0.05)
    await filled(todos, 1)
    other = sqlite3.connect(tmp_path / "todos" / "todos.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    code, message = await failure(todos.create(TodoChange(subject="x")))
    assert (code, "stayed locked by another process" in message, "go on without it" in message) == (
        "todos-unusable",
        True,
        True,
    )
    assert len(await todos.all()) == 1

    other.execute("ROLLBACK")
    other.close()
    assert (await todos.create(TodoChange(subject="x"))).id == "2"
    await todos.close()


async def test_a_folder_that_cannot_be_made_is_a_failure(tmp_path):
    (tmp_path / "todos").write_text("a file")
    todos = Todos(str(tmp_path / "todos"), "T-1")

    assert (await failure(todos.create(TodoChange(subject="x"))))[0] == "todos-unusable"
    assert await todos.all() == ()
    await todos.close()


async def test_what_is_called_first_is_done_first(todos):
    made = await asyncio.gather(*(todos.create(TodoChange(subject=str(number))) for number in range(30)))

    assert [todo.id for todo in made] == [str(number) for number in range(1, 31)]


async def test_a_write_that_is_cancelled_has_happened_or_not_and_the_list_goes_on(todos):
    await filled(todos, 1)
    task = asyncio.create_task(todos.create(TodoChange(subject="perhaps")))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    subjects = [todo.subject for todo in await todos.all()]
    assert subjects in (["todo 1"], ["todo 1", "perhaps"])


WORKER = """
import asyncio, sys
from ferrule.core.errors import ToolFailure
from ferrule.tools.todos import TodoChange, Todos

async def work(folder, name):
    todos = Todos(folder, "T-1", busy_seconds=50.0)
    won = 0
    for number in range(6):
        made = await todos.create(TodoChange(subject=f"{name}-{number}", metadata={name: number}))
        await todos.update("1", TodoChange(metadata={f"{name}-{number}": number}, add_blocks=[made.id]))
    for number in range(2, 6):
        try:
            await todos.update(str(number), TodoChange(owner=name, status="in_progress"))
            won += 1
        except ToolFailure as error:
            assert error.code == "todo-taken", error
    await todos.close()
    print(won)

asyncio.run(work(*sys.argv[1:]))
"""


def test_eight_processes_write_one_list_and_nothing_is_lost(tmp_path):
    folder = str(tmp_path / "todos")
    asyncio.run(begin(folder))
    running = [
        subprocess.Popen([sys.executable, "-c", WORKER, folder, f"p{number}"], stdout=subprocess.PIPE, text=True)
        for number in range(8)
    ]
    said = [process.communicate(timeout=LIMIT_SECONDS)[0] for process in running]

    assert [process.returncode for process in running] == [0] * 8
    # Each of the four was won by one process, whoever came first.
    assert sum(map(int, said)) == 4
    every = asyncio.run(end(folder))
    assert [todo.id for todo in every] == [str(number) for number in range(1, 50)]
    assert len({todo.subject for todo in every}) == 49
    assert every[0].metadata == {f"p{who}-{number}": number for who in range(8) for number in range(6)}
    assert every[0].blocks == tuple(str(number) for number in range(2, 50))
    assert all(todo.blocked_by == ("1",) for todo in every[1:])


async def begin(folder: str) -> None:
    todos = Todos(folder, "T-1")
    await todos.create(TodoChange(subject="the first"))
    await todos.close()


async def end(folder: str) -> tuple[Todo, ...]:
    todos = Todos(folder, "T-1")
    every = await todos.all()
    await todos.close()
    return every


IDS = st.integers(1, 8).map(str)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.lists(IDS, max_size=2)),
        st.tuples(st.just("block"), IDS, IDS),
        st.tuples(st.just("wait"), IDS, IDS),
        st.tuples(st.just("replace"), IDS, st.lists(IDS, max_size=3)),
        st.tuples(st.just("delete"), IDS),
    ),
    min_size=5,
    max_size=25,
)


@settings(max_examples=40)
@given(STEPS)
def test_whatever_is_done_there_is_no_circle_and_both_ends_agree(steps):
    asyncio.run(play(steps))


async def play(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        todos = Todos(folder, "T-1")
        given_out: list[int] = []
        edges: set[tuple[str, str]] = set()
        for step in [("create", []), ("create", []), *steps]:
            was = await todos.all()
            refused: ToolFailure | None = None
            try:
                if step[0] == "create":
                    made = await todos.create(TodoChange(subject="x", blocked_by=step[1]))
                    assert int(made.id) > max(given_out, default=0)
                    given_out.append(int(made.id))
                elif step[0] == "delete":
                    await todos.delete(step[1])
                else:
                    name, one, other = step
                    change = {
                        "block": TodoChange(add_blocks=[other]),
                        "wait": TodoChange(add_blocked_by=[other]),
                        "replace": TodoChange(blocked_by=other),
                    }[name]
                    await todos.update(one, change)
            except ToolFailure as error:
                refused = error
            if refused is not None:
                assert refused.code in {"no-such-todo", "todo-circle"}
                assert await todos.all() == was
                if refused.code == "todo-circle" and step[0] in ("block", "wait"):
                    new = (step[1], step[2]) if step[0] == "block" else (step[2], step[1])
                    assert not is_in_order({*edges, new})
                continue
            every = await todos.all()
            edges = {(todo.id, one) for todo in every for one in todo.blocks}
            assert edges == {(one, todo.id) for todo in every for one in todo.blocked_by}
            assert {one for edge in edges for one in edge} <= {todo.id for todo in every}
            assert is_in_order(edges)
        await todos.close()


def is_in_order(edges: set[tuple[str, str]]) -> bool:
    """Can all be done one after the other? By taking away, again and again, those that wait for nothing."""
    left = set(edges)
    while left:
        waiting = {blocked for _, blocked in left}
        free = {edge for edge in left if edge[0] not in waiting}
        if not free:
            return False
        left -= free
    return True


@given(st.sets(st.tuples(st.integers(1, 6), st.integers(1, 6))), st.integers(1, 6))
def test_a_circle_is_named_by_a_way_that_there_is(edges, start):
    found = find_cycle(edges, start)
    way = [int(one) for one in found.split(" → ")] if found else []

    assert bool(found) == reaches(edges, start)
    if found:
        assert way[0] == way[-1] == start
        assert set(itertools.pairwise(way)) <= edges


def reaches(edges: set[tuple[int, int]], start: int) -> bool:
    found = {other for one, other in edges if one == start}
    for _ in range(6):
        found |= {other for one, other in edges if one in found}
    return start in found


def test_the_list_for_people():
    todos = [
        Todo("1", "Look", status="completed", owner="ada", waits_for=("9",)),
        Todo("2", "Fix", status="in_progress", active_form="Fixing", owner="bob"),
        Todo("3", "Test", waits_for=("2", "4")),
        Todo("4", "Tell"),
    ]

    assert todo_lines(todos) == [
        "[x] 1 Look (ada)",
        "[>] 2 Fixing (bob)",
        "[ ] 3 Test (waits for 2, 4)",
        "[ ] 4 Tell",
    ]


async def test_nothing_of_a_list_that_is_forgotten_stays_in_the_file(tmp_path):
    todos = Todos(str(tmp_path), "T-1")
    await todos.create(TodoChange(subject="the needle", description="hidden in hay", metadata={"key": "thread"}))
    await todos.forget()
    await todos.close()
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())

    assert not any(word in left for word in (b"needle", b"hay", b"thread"))


async def test_lists_of_conversations_go_after_a_while_and_those_with_names_stay(tmp_path):
    now = 1_000_000_000.0

    async def used(list_id: str, days: float) -> None:
        todos = Todos(str(tmp_path), list_id, keep_days=30, clock=lambda: now + days * 86_400)
        await todos.create(TodoChange(subject="x"))
        await todos.close()

    for list_id, days in (("T-old", 0), ("shared", 0), ("T-used", 0), ("T-used", 20), ("T-new", 31)):
        await used(list_id, days)
    kept = {}
    for list_id in ("T-old", "shared", "T-used", "T-new"):
        todos = Todos(str(tmp_path), list_id)
        kept[list_id] = len(await todos.all())
        await todos.close()

    assert kept == {"T-old": 0, "shared": 1, "T-used": 2, "T-new": 1}


async def test_lists_of_before_count_from_now_on(tmp_path):
    todos = Todos(str(tmp_path), "T-1")
    await todos.create(TodoChange(subject="x"))
    await todos.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "todos.sqlite")) as connection:
        connection.execute("ALTER TABLE lists DROP COLUMN used")
        connection.execute("PRAGMA user_version = 4")
        connection.commit()
    for days in (0, 20, 40):
        other = Todos(str(tmp_path), f"T-{days}", keep_days=30, clock=lambda days=days: 1e9 + days * 86_400)  # type: ignore[misc]
        await other.create(TodoChange(subject="x"))
        await other.close()
        assert len(await todos.all()) == (0 if days == 40 else 1), days
    await todos.close()


async def test_one_todo_alone_reads_as_it_does_among_all(todos):
    await filled(todos, 5)
    await todos.update("3", TodoChange(add_blocked_by=["1", "2"], add_blocks=["4"], parent="5"))
    await todos.update("1", TodoChange(status="completed"))
    every = {todo.id: todo for todo in await todos.all()}

    assert {one: await todos.get(one) for one in every} == every
    assert every["3"].waits_for == ("2",)
    changed = await todos.update("3", TodoChange(subject="other", description="words"))
    assert changed.fields == ("subject", "description")
    assert changed.todo == every["3"]._replace(subject="other", description="words")
    cleared = await todos.update("3", TodoChange(blocked_by=(), parent=""))
    assert (cleared.fields, cleared.todo.blocks) == (("parent", "blocked_by"), ("4",))
