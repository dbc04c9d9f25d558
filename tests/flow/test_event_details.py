"""What a front end learns from events: whose tool it is, what the model wrote, what became of files and todos."""

import pytest

from ferrule import Call, Done, Engine, Event, Prepared, TodosChanged
from ferrule.core.call import EDIT_BYTES, FileEdit, Progress, TodoItem

WROTE = [
    pytest.param(
        "claude", Call("Write", {"file_path": "a.txt", "content": "new\n"}), "write", "old\n", "new\n", id="claude"
    ),
    pytest.param(
        "amp",
        Call("edit_file", {"path": "a.txt", "old_str": "old", "new_str": "new"}),
        "edit",
        "old\n",
        "new\n",
        id="amp",
    ),
    pytest.param(
        "codex",
        Call("apply_patch", "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** End Patch\n"),
        "patch",
        "old\n",
        "new\n",
        id="codex",
    ),
    pytest.param("amp", Call("undo_edit", {"path": "a.txt"}), "undo", "old\n", "earlier\n", id="undo"),
]


@pytest.mark.parametrize(("dialect", "call", "tool", "old", "new"), WROTE)
async def test_an_end_tells_what_was_in_the_file_and_is_in_it_now(tmp_path, dialect, call, tool, old, new):
    (tmp_path / "a.txt").write_text("earlier\n")
    heard: list[Event] = []
    async with Engine(tmp_path, dialect=dialect, ask=lambda _: True, on_event=heard.append) as engine:
        await engine.run([Call("read", {"path": "a.txt"})])
        await engine.run([Call("edit", {"path": "a.txt", "old": "earlier", "new": "old"})])
        await engine.run([call])
    done = [event for event in heard if isinstance(event, Done)][-1]

    assert (done.tool, done.edits) == (tool, (FileEdit(str(tmp_path / "a.txt"), old, new),))


@pytest.mark.parametrize(
    ("before", "after", "edit"),
    [
        pytest.param(None, b"x", FileEdit("a", None, "x"), id="new"),
        pytest.param(b"x", None, FileEdit("a", "x", None), id="gone"),
        pytest.param(b"\xff", b"x", FileEdit("a", left_out="binary"), id="no text"),
        pytest.param(b"x" * (EDIT_BYTES + 1), b"", FileEdit("a", left_out="too-large"), id="long"),
    ],
)
def test_an_edit_has_texts_where_they_are_texts_and_not_long(before, after, edit):
    assert FileEdit.of("a", before, after) == edit


@pytest.mark.parametrize(
    ("dialect", "call", "arguments"),
    [
        pytest.param(
            "claude", Call("Write", {"file_path": "a", "content": "x"}), {"path": "a", "content": "x"}, id="write"
        ),
        pytest.param("claude", Call("Read", '{"file_path": "a"}'), {"path": "a"}, id="text"),
        pytest.param("amp", Call("Grep", {"pattern": "x"}), {"pattern": "x"}, id="grep"),
        pytest.param("wayland", Call("Read", {"file_path": "a"}), {"path": "a"}, id="another family"),
    ],
)
async def test_an_event_has_the_models_own_input_and_nothing_that_the_engine_adds(tmp_path, dialect, call, arguments):
    heard: list[Event] = []
    async with Engine(tmp_path, dialect=dialect, ask=lambda _: False, on_event=heard.append) as engine:
        await engine.run([call])
    (prepared,) = [event for event in heard if isinstance(event, Prepared)]
    given = {"file_path": "a"} if isinstance(call.input, str) else call.input

    assert (prepared.input, prepared.arguments) == (given, arguments)


@pytest.mark.parametrize(
    ("dialect", "call", "todo"),
    [
        pytest.param(
            "claude",
            Call("TaskCreate", {"subject": "Mend it", "description": "Well.", "activeForm": "Mending it"}),
            TodoItem("1", "Mend it", "pending", "Mending it"),
            id="todos",
        ),
        pytest.param(
            "codex",
            Call("update_plan", {"plan": [{"step": "Mend it", "status": "in_progress"}]}),
            TodoItem("1", "Mend it", "in_progress"),
            id="steps",
        ),
    ],
)
async def test_a_change_of_what_is_to_be_done_is_an_event(tmp_path, dialect, call, todo):
    heard: list[Event] = []
    async with Engine(tmp_path, dialect=dialect, on_event=heard.append) as engine:
        await engine.run([call])

    assert [event.todos for event in heard if isinstance(event, TodosChanged)] == [(todo,)]


@pytest.mark.parametrize("dialect", ["claude", "codex", "amp"])
async def test_a_command_tells_its_last_lines_while_it_runs_and_its_exit_code_at_its_end(tmp_path, dialect, unconfined):
    heard: list[Event] = []
    command = "for i in $(seq 1 30); do echo line $i; done; sleep 0.3; echo bad >&2; exit 3"
    async with Engine(tmp_path, dialect=dialect, ask=lambda _: True, on_event=heard.append) as engine:
        await engine.run([Call("shell", {"command": command})])
    told = [event for event in heard if isinstance(event, Progress) and event.rows]
    done = [event for event in heard if isinstance(event, Done)][-1]

    assert told[0].rows[-1].startswith("line ")
    assert max(len(event.rows) for event in told) == 10
    assert done.exit_code == 3
    assert done.output.split() == [*(word for number in range(1, 31) for word in ("line", str(number))), "bad"]
