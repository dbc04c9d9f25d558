"""The engine as a library user meets it."""

import asyncio
import os
from typing import Any

import pytest

from ferrule import (
    EVERYTHING,
    Access,
    Answer,
    Call,
    ConfigError,
    Engine,
    ModeConfig,
    Question,
    Settings,
    ToolFailure,
    tool,
)
from ferrule.core.call import Blocked, Done, Event, Prepared, Progress, Started
from ferrule.core.tool import Context
from ferrule.settings import LimitSettings


def allow(_: object) -> bool:
    return True


async def test_a_call_is_answered(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    async with Engine(tmp_path) as engine:
        reply = await engine.call("Read", path="a.txt")

    assert reply.as_dict() == {"status": "done", "result": "1: one\n2: two"}


async def test_replies_come_in_the_order_of_the_calls(tmp_path):
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text(f"text {number}\n")

    async with Engine(tmp_path) as engine:
        replies = await engine.run([Call("Read", {"path": f"{number}.txt"}, f"id{number}") for number in range(20)])

    assert [(reply.id, reply.result) for reply in replies] == [(f"id{n}", f"1: text {n}") for n in range(20)]


async def test_a_closed_engine_says_how_to_open_it(tmp_path):
    with pytest.raises(ConfigError, match="async with"):
        await Engine(tmp_path).run([])


async def test_closing_twice_is_fine(tmp_path):
    engine = Engine(tmp_path)
    async with engine:
        first = await engine.call("glob", filePattern="*")
    await engine.close()
    await engine.close()

    assert first.ok
    with pytest.raises(ConfigError, match="not open"):
        await engine.call("glob", filePattern="*")


def test_a_workspace_that_is_no_folder_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="is not a folder"):
        Engine(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"mode": "plan"}, "is permission_mode='plan' meant?", id="mode"),
        pytest.param({"settings": {"loop": {}}}, r"msgspec\.convert\(values, Settings\)", id="settings"),
        pytest.param({"add_dirs": "x"}, r"give \[folder\]", id="add-dirs"),
        pytest.param({"ask": 3}, "a function that answers questions", id="ask"),
        pytest.param({"tools": [print]}, "made with @tool", id="tools"),
    ],
)
def test_what_does_not_belong_there_is_refused_with_what_does(tmp_path, given, said):
    with pytest.raises(ConfigError, match=said):
        Engine(tmp_path, **given)


async def test_definitions_are_what_a_model_is_shown(tmp_path):
    async with Engine(tmp_path) as engine:
        shown = engine.definitions()

    files = ["Read", "edit_file", "create_file", "Bash", "glob", "Grep", "delete_file", "undo_edit", "format_file"]

    # Tools that are subagents need a model, and here is none.
    rest = ["Check", "task_list", "finder", "web_search", "read_web_page", "read_thread", "find_thread"]
    assert [one["name"] for one in shown] == [*files, *rest, "get_diagnostics"]
    assert all(set(definition) == {"name", "description", "inputSchema"} for definition in shown)


async def test_events_tell_the_life_of_a_call(tmp_path):
    heard: list[Event] = []
    async with Engine(tmp_path, ask=allow, on_event=heard.append) as engine:
        stream = engine.events()
        reply = await engine.call("create_file", path="a.txt", content="x")

    kinds = [type(event) for event in heard]
    assert kinds == [Prepared, Blocked, Started, Done]
    assert isinstance(heard[-1], Done)
    assert heard[-1].reply == reply
    assert [event async for event in stream] == heard


async def test_a_listener_that_raises_harms_nobody(tmp_path):
    def broken(_: Event) -> None:
        raise RuntimeError("listener")

    async with Engine(tmp_path, on_event=broken) as engine:
        reply = await engine.call("glob", filePattern="*")

    assert reply.status == "done"


async def test_progress_is_an_event(tmp_path):
    @tool(touches=[])
    def slow(ctx: Context) -> str:
        """Report once."""
        ctx.progress("half way")
        return "done"

    heard: list[Event] = []
    async with Engine(tmp_path, tools=[slow], on_event=heard.append) as engine:
        await engine.call("slow")

    assert [event.message for event in heard if isinstance(event, Progress)] == ["half way"]


async def test_without_anybody_to_ask_a_write_is_rejected(tmp_path):
    async with Engine(tmp_path) as engine:
        reply = await engine.call("create_file", path="a.txt", content="x")

    assert reply.status == "rejected-by-user"
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(True, "done", id="yes"),
        pytest.param(False, "rejected-by-user", id="no"),
        pytest.param(Answer(allow=True, always=True), "done", id="always"),
        pytest.param("y", "rejected-by-user", id="only-true-is-yes"),
    ],
)
async def test_a_callback_answers(tmp_path, answer, status):
    questions = []

    async def ask(question: Any) -> Any:
        questions.append(question)
        return answer

    async with Engine(tmp_path, ask=ask) as engine:
        reply = await engine.call("create_file", path="a.txt", content="x")

    assert reply.status == status
    assert [(question.name, question.summary) for question in questions] == [
        ("create_file", "create_file: write a.txt")
    ]


async def test_a_callback_that_raises_fails_its_call_only(tmp_path):
    def ask(_: object) -> bool:
        raise LookupError("no terminal")

    async with Engine(tmp_path, ask=ask) as engine:
        first, second = await engine.run(
            [Call("create_file", {"path": "a", "content": "x"}), Call("glob", {"filePattern": "*"})]
        )

    assert (first.status, second.status) == ("rejected-by-user", "done")


async def test_a_mode_gives_only_its_tools(tmp_path):
    (tmp_path / "a.txt").write_text("x\n")
    async with Engine(tmp_path, mode=ModeConfig(include_tools=("read_file",))) as engine:
        read, grep = await engine.run([Call("Read", {"path": "a.txt"}), Call("Grep", {"pattern": "x"})])

    assert (read.status, grep.status) == ("done", "rejected-by-user")


async def test_a_tool_that_raises_harms_only_its_own_call(tmp_path):
    @tool(touches=[])
    def broken() -> str:
        """Break."""
        raise ZeroDivisionError("boom")

    @tool(touches=[])
    def fine() -> str:
        """Work."""
        return "fine"

    async with Engine(tmp_path, tools=[broken, fine]) as engine:
        bad, good = await engine.run([Call("broken"), Call("fine")])

    assert (bad.status, bad.text) == ("error", "broken failed inside: ZeroDivisionError: boom")
    assert good.result == "fine"


@pytest.mark.parametrize(
    "rubbish",
    [
        pytest.param(object(), id="object"),
        pytest.param(lambda: 0, id="function"),
        pytest.param({1: {2, object()}}, id="nested"),
    ],
)
async def test_a_tool_that_returns_rubbish_gets_an_error(tmp_path, rubbish):
    @tool(touches=[])
    def odd() -> object:
        """Return something."""
        return rubbish

    async with Engine(tmp_path, tools=[odd]) as engine:
        reply = await engine.call("odd")

    assert reply.status == "error"
    assert "not a JSON value" in reply.text


async def test_a_result_that_holds_itself_gets_an_error(tmp_path):
    loop: list[Any] = []
    loop.append(loop)

    @tool(touches=[])
    def odd() -> object:
        """Return a circle."""
        return loop

    async with Engine(tmp_path, tools=[odd]) as engine:
        reply = await engine.call("odd")

    assert reply.status == "error"


async def test_a_tool_that_fails_on_purpose_speaks_for_itself(tmp_path):
    @tool(touches=[])
    def picky() -> str:
        """Refuse."""
        raise ToolFailure("Give more.", code="more", path="/x")

    async with Engine(tmp_path, tools=[picky]) as engine:
        reply = await engine.call("picky")

    assert reply.as_dict() == {
        "status": "error",
        "error": {"message": "Give more.", "errorCode": "more", "absolutePath": "/x"},
    }


async def test_the_time_limit_is_a_sentence(tmp_path):
    @tool(touches=[], inline=True)
    async def forever() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return ""

    async with Engine(tmp_path, tools=[forever], settings=Settings(limits=LimitSettings(seconds=0.05))) as engine:
        reply = await engine.call("forever")

    assert reply.text == "Tool execution timed out after 0.05 seconds"


async def test_a_tool_without_touches_asks_and_runs_alone(tmp_path):
    running: list[str] = []
    overlaps = []

    @tool
    async def lonely(name: str) -> str:
        """Touch who knows what."""
        running.append(name)
        overlaps.append(len(running))
        await asyncio.sleep(0)
        running.remove(name)
        return name

    asked: list[Question] = []

    def ask(question: Question) -> bool:
        asked.append(question)
        return True

    async with Engine(tmp_path, tools=[lonely], ask=ask) as engine:
        await engine.run([Call("lonely", {"name": str(number)}) for number in range(5)])

    assert len(asked) == 5
    assert {access for question in asked for access in question.touches} == {EVERYTHING}
    assert overlaps == [1] * 5


async def test_conflicting_calls_keep_their_order_and_others_overlap(tmp_path):
    order: list[str] = []
    both = asyncio.Barrier(2)

    @tool(touches=lambda name: [Access.write(name)], inline=True)
    async def step(name: str) -> str:
        """Write down who came."""
        order.append(name)
        return name

    @tool(touches=lambda name: [Access.read(name)], inline=True)
    async def meet(name: str) -> str:
        """Wait for the other one: only possible side by side."""
        async with asyncio.timeout(10):
            await both.wait()
        return name

    async with Engine(tmp_path, tools=[step, meet], ask=allow) as engine:
        replies = await engine.run(
            [
                Call("step", {"name": "a"}),
                Call("step", {"name": "a/b"}),
                Call("step", {"name": "a"}),
                Call("meet", {"name": "x"}),
                Call("meet", {"name": "x"}),
            ]
        )

    assert order == ["a", "a/b", "a"]
    assert all(reply.ok for reply in replies)


async def test_cancel_answers_every_call(tmp_path):
    started = asyncio.Event()

    @tool(touches=[], inline=True)
    async def forever() -> str:
        """Never end."""
        started.set()
        await asyncio.Event().wait()
        return ""

    async with asyncio.timeout(20), Engine(tmp_path, tools=[forever]) as engine:
        running = asyncio.create_task(engine.run([Call("glob", {"filePattern": "*"}), Call("forever")]))
        await started.wait()
        engine.cancel()
        replies = await running

    assert replies[1].status == "cancelled"
    assert replies[0].status in ("done", "cancelled")


async def test_closing_the_engine_stops_its_calls(tmp_path):
    started = asyncio.Event()

    @tool(touches=[], inline=True)
    async def forever() -> str:
        """Never end."""
        started.set()
        await asyncio.Event().wait()
        return ""

    engine = Engine(tmp_path, tools=[forever])
    await engine.__aenter__()
    running = asyncio.create_task(engine.run([Call("forever")]))
    async with asyncio.timeout(20):
        await started.wait()
        await engine.close()
        replies = await running

    assert [reply.status for reply in replies] == ["cancelled"]


async def test_an_alias_is_understood(tmp_path):
    async with Engine(tmp_path, ask=allow) as engine:
        reply = await engine.call("Write", path="a.txt", content="x")

    assert reply.result == f"Successfully created file {os.path.realpath(tmp_path)}/a.txt"


async def test_repairs_are_notes(tmp_path):
    (tmp_path / "a.py").write_text("x\n")
    async with Engine(tmp_path) as engine:
        reply = await engine.call("glob", filePattern="*.py", limit="5")

    assert reply.ok
    assert len(reply.notes) == 1
    assert reply.notes[0].startswith("limit: ")


async def test_the_plan_shows_the_batches(tmp_path):
    calls = [
        Call("Read", {"path": "a"}, "1"),
        Call("Read", {"path": "b"}, "2"),
        Call("edit_file", {"path": "a", "old_str": "x", "new_str": "y"}, "3"),
        Call("Read", {"path": "c"}, "4"),
    ]
    async with Engine(tmp_path) as engine:
        batches = engine.plan(calls)

    assert [[call.id for call in batch] for batch in batches] == [["1", "2"], ["3", "4"]]


async def test_an_unknown_name_is_answered_with_tools_that_the_session_can_use(tmp_path):
    async with Engine(tmp_path, dialect="amp", state=tmp_path / "state") as engine:
        reply = await engine.call("xylophone")
        advertised = {one["name"] for one in engine.definitions()}

    assert reply.error is not None
    named = set(reply.error.message.partition("The tools are ")[2].rstrip(".").replace(" and ", ", ").split(", "))
    assert named == advertised
