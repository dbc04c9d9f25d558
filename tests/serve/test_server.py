"""The engine as an MCP server: what it lists, what it answers, and that clients cannot harm each other's calls."""

import asyncio
import base64
from functools import partial
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from ferrule import Engine, tool
from ferrule.core.call import Failure, Reply
from ferrule.core.services import McpContent, Mixed
from ferrule.dialects import FAMILIES
from ferrule.serve.mcp import ToolListCache, annotations, result
from ferrule.settings import Settings, Tools
from ferrule.tools import BUILTIN, load
from ferrule.wire.mcp import blocks_of
from tests.serve.connected import ERAS, connected
from tests.serve.offered import PICTURE, TOOLS, Answering

LIMIT_SECONDS = 20


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    return tmp_path


@pytest.mark.parametrize("era", ERAS)
async def test_the_list_is_what_the_dialect_shows_a_model(folder, era):
    async with connected(folder, era, dialect="claude") as (engine, _, client):
        listed = (await client.list_tools()).tools

        assert [one.name for one in listed] == [one["name"] for one in engine.definitions("mcp")]
        assert [one.input_schema for one in listed] == [one["inputSchema"] for one in engine.definitions("mcp")]


@pytest.mark.parametrize("dialect", FAMILIES)
async def test_every_dialect_can_be_listed_in_every_version_of_the_protocol(folder, dialect):
    from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS

    async with Engine(folder, dialect=dialect) as engine:
        listing = ToolListCache(engine)
        for version in SUPPORTED_PROTOCOL_VERSIONS:
            assert len(listing.result(version)["tools"]) == len(engine.definitions("mcp"))


async def test_a_list_is_made_once_for_each_version(folder):
    async with Engine(folder) as engine:
        listing = ToolListCache(engine)
        first = listing.result("2025-11-25")

        assert listing.result("2025-11-25") is first
        listing.forget()
        assert listing.result("2025-11-25") is not first


async def test_one_schema_that_the_protocol_cannot_carry_is_left_out_and_the_others_stay(folder, caplog):
    odd = Answering("odd", "", schema={"type": "object", "properties": {"x": 5}})
    async with connected(folder, tools=(odd,)) as (engine, _, client):
        names = [one.name for one in (await client.list_tools()).tools]

        assert "odd" not in names
        assert len(names) == len(engine.definitions()) - 1
    assert "odd is left out" in caplog.text


def test_every_built_in_tool_has_a_title_and_hints():
    for name in BUILTIN:
        assert {"title", "readOnlyHint", "openWorldHint"} <= set(annotations(load(name)) or ()), name


async def test_annotations_come_from_the_table_or_from_the_tool_itself(folder):
    async with connected(folder, tools=TOOLS) as (_, _, client):
        listed = {one.name: one for one in (await client.list_tools()).tools}

        assert listed["Read"].annotations == types.ToolAnnotations(
            title="Read a file", read_only_hint=True, open_world_hint=False
        )
        assert listed["Bash"].annotations.destructive_hint is True
        assert listed["weather"].annotations == types.ToolAnnotations(
            title="Look out of the window", read_only_hint=True
        )
        assert listed["test_simple_text"].annotations is None


async def test_output_schemas_are_listed_and_structured_results_fit_them(folder):
    async with connected(folder, tools=TOOLS) as (_, _, client):
        listed = {one.name: one for one in (await client.list_tools()).tools}
        done = await client.call_tool("weather", {})

        assert listed["weather"].output_schema["required"] == ["degrees"]
        assert (done.structured_content, done.content[0].text, done.is_error) == ({"degrees": 12}, "12 degrees", False)


async def test_a_cursor_that_was_never_given_out_is_refused(folder):
    async with connected(folder) as (_, _, client):
        with pytest.raises(MCPError, match="only one page"):
            await client.list_tools(cursor="x")


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_is_answered_as_the_engine_answers_it(folder, era):
    async with connected(folder, era) as (engine, _, client):
        done = await client.call_tool("Read", {"path": "a.txt"})

        assert [one.text for one in done.content] == [(await engine.call("Read", path="a.txt")).text]
        assert done.is_error is False


async def test_names_of_other_families_are_understood_as_the_engine_does(folder):
    async with connected(folder) as (_, _, client):
        assert (await client.call_tool("read_file", {"file_path": "a.txt"})).is_error is False


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        pytest.param("Read", {}, "path: required", id="missing-argument"),
        pytest.param("Read", {"path": 5, "read_range": "x"}, "read_range: ", id="wrong-type"),
        pytest.param("Read", {"path": "nowhere"}, "ENOENT", id="failure"),
        pytest.param("test_error_handling", {}, "intentionally returns an error", id="own-failure"),
        pytest.param("failing", {}, "It is closed.", id="says-that-it-failed"),
        pytest.param("create_file", {"path": "x", "content": ""}, "supports elicitation", id="nobody-to-ask"),
        pytest.param("Read", {"path": "/etc/passwd"}, "supports elicitation", id="outside"),
    ],
)
async def test_what_goes_wrong_in_a_call_is_an_error_that_the_model_reads(folder, era, name, arguments, said):
    async with connected(folder, era, tools=TOOLS) as (_, _, client):
        done = await client.call_tool(name, arguments)

        assert done.is_error is True
        assert said in done.content[0].text


@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_tool_is_an_error_of_the_protocol(folder, era):
    async with connected(folder, era) as (_, _, client):
        with pytest.raises(MCPError, match=r"Unknown tool: .*Did you mean Read") as error:
            await client.call_tool("Raed", {"path": "a.txt"})

        assert error.value.code == types.INVALID_PARAMS


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        pytest.param("test_simple_text", ["text"], id="text"),
        pytest.param("test_image_content", ["image"], id="picture"),
        pytest.param("test_audio_content", ["audio"], id="sound"),
        pytest.param("test_embedded_resource", ["resource"], id="embedded"),
        pytest.param("test_multiple_content_types", ["text", "image", "resource"], id="mixed"),
        pytest.param("broken_part", ["text"], id="a-part-that-is-none-is-told-in-words"),
    ],
)
async def test_parts_arrive_as_what_they_are(folder, name, kinds):
    async with connected(folder, tools=TOOLS) as (_, _, client):
        done = await client.call_tool(name, {})

        assert [one.type for one in done.content] == kinds


def test_blocks_are_written_where_words_cannot_say_it():
    sound = McpContent("audio", SOUND, "[sound]")

    assert blocks_of("text") == blocks_of(Mixed(("text", PICTURE))) == ()
    assert blocks_of(Mixed(("text", PICTURE, sound))) == (
        text("text"),
        {"type": "image", "data": base64.b64encode(PICTURE.data).decode(), "mimeType": "image/png"},
        SOUND,
    )


def reply(**more):
    return Reply(id="1", name="x", status="done", **more)


SOUND = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
LINK = {
    "type": "resource_link",
    "uri": "ferrule://output/abc",
    "name": "output abc",
    "description": "The full output.",
    "mimeType": "text/plain",
}


def text(said):
    return {"type": "text", "text": said}


@pytest.mark.parametrize(
    ("given", "version", "content"),
    [
        pytest.param(
            reply(result="a", notes=("b", "c")), "2025-11-25", [text("a"), text("Note: b\nNote: c")], id="notes"
        ),
        pytest.param(reply(result="a", output_id="abc"), "2025-11-25", [text("a"), LINK], id="cut"),
        pytest.param(reply(result="a", output_id="abc"), "2024-11-05", [text("a")], id="cut-for-an-older-client"),
        pytest.param(
            reply(result="a [sound]", parts=(text("a"), SOUND), notes=("b",)),
            "2025-11-25",
            [text("a"), SOUND, text("Note: b")],
            id="parts",
        ),
        pytest.param(
            reply(result="a", parts=(text("aaa"), SOUND), output_id="abc"),
            "2025-11-25",
            [text("a"), SOUND, LINK],
            id="cut-parts-stay-cut",
        ),
        pytest.param(
            reply(result="a [sound]", parts=(text("a"), SOUND)), "2024-11-05", [text("a [sound]")], id="unknown-sound"
        ),
        pytest.param(
            reply(result="a", parts=({"type": "odd"},)), "2025-11-25", [text("a")], id="a-part-of-no-known-kind"
        ),
    ],
)
def test_content_by_version(given, version, content):
    assert result(given, version) == {"resultType": "complete", "content": content, "isError": False}


@pytest.mark.parametrize(
    ("structured", "version", "kept"),
    [
        pytest.param({"a": 1}, "2025-06-18", True, id="object"),
        pytest.param([1], "2025-11-25", False, id="list-before-2026"),
        pytest.param([1], "2026-07-28", True, id="list"),
    ],
)
def test_structured_content_by_version(structured, version, kept):
    assert result(reply(result="a", structured=structured), version).get("structuredContent") == (
        structured if kept else None
    )


def test_a_structured_result_that_is_too_large_is_an_error():
    out = result(reply(result="a", structured={"a": "x" * (5 << 20)}), "2025-11-25")

    assert out["isError"]
    assert "structuredContent" not in out
    assert "left out" in out["content"][-1]["text"]


def test_an_error_has_no_structured_content_and_no_parts():
    failed = Reply(
        id="1", name="x", status="error", error=Failure("No."), structured={"a": 1}, parts=(SOUND,), notes=("b",)
    )

    assert result(failed, "2025-11-25") == {
        "resultType": "complete",
        "content": [text("No."), text("Note: b")],
        "isError": True,
    }


@pytest.mark.parametrize("era", ERAS)
async def test_progress_reaches_whoever_wants_it_before_the_result(folder, era):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, message))

    async with connected(folder, era, tools=TOOLS) as (_, _, client):
        await client.call_tool("test_tool_with_progress", {}, progress_callback=hear)
        told = list(heard)
        await client.call_tool("test_tool_with_progress", {})

    assert told == heard == [(1, "0/100"), (2, "50/100"), (3, "100/100")]


@pytest.mark.parametrize("era", ERAS)
async def test_cancelling_a_request_cancels_its_call_and_no_other(folder, era):
    waiting = {name: asyncio.Event() for name in "xy"}

    def hear(name):
        async def heard(*_):
            waiting[name].set()

        return heard

    async with (
        asyncio.timeout(LIMIT_SECONDS),
        connected(folder, era, tools=TOOLS) as (_, _, client),
        anyio.create_task_group() as others,
    ):
        async with anyio.create_task_group() as one:
            for group, name in ((one, "x"), (others, "y")):
                group.start_soon(partial(client.call_tool, "wait_here", {"path": name}, progress_callback=hear(name)))
                await waiting[name].wait()
            one.cancel_scope.cancel()
        while not (folder / "x").exists():
            await asyncio.sleep(0)
        still = (await client.call_tool("test_simple_text", {})).is_error

        assert still is False
        assert not (folder / "y").exists()
        others.cancel_scope.cancel()


@pytest.mark.parametrize("era", ERAS)
async def test_closing_the_connection_ends_its_calls_before_the_engine_closes(folder, era):
    waiting = asyncio.Event()

    async def heard(*_):
        waiting.set()

    async with (
        asyncio.timeout(LIMIT_SECONDS),
        anyio.create_task_group() as group,
        connected(folder, era, tools=TOOLS) as (_, _, client),
    ):

        async def call():
            with pytest.raises(MCPError):
                await client.call_tool("wait_here", {"path": "x"}, progress_callback=heard)

        group.start_soon(call)
        await waiting.wait()

    assert (folder / "x").read_text() == "cancelled"


async def test_older_clients_are_told_that_the_tools_have_changed(folder):
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def hear(message):
        if isinstance(message, types.ToolListChangedNotification):
            heard.put_nowait(message)

    async with connected(folder, on_message=hear) as (_, serving, client), asyncio.timeout(LIMIT_SECONDS):
        assert client.server_capabilities.tools.list_changed is True
        await client.list_tools()
        serving.on_tools_changed()
        await heard.get()


async def test_what_the_engine_says_of_its_tools_reaches_its_clients(folder):
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def hear(message):
        if isinstance(message, types.ToolListChangedNotification):
            heard.put_nowait(message)

    async with asyncio.timeout(LIMIT_SECONDS), connected(folder, tools=TOOLS, on_message=hear) as (_, _, client):
        await client.call_tool("test_trigger_tool_change", {})
        assert isinstance(await heard.get(), types.ToolListChangedNotification)


async def test_deferred_tools_are_listed_and_called_like_all_others(folder):
    settings = Settings(tools=Tools(exposure={"test_logging_tool": "deferred", "test_simple_text": "hidden"}))
    async with connected(folder, tools=TOOLS, settings=settings) as (_, _, client):
        names = [one.name for one in (await client.list_tools()).tools]

        assert "test_logging_tool" in names
        assert "test_simple_text" not in names
        assert (await client.call_tool("test_logging_tool", {})).is_error is False
        assert (await client.call_tool("test_simple_text", {})).is_error is False


async def test_newer_clients_are_told_where_they_listen(folder):
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        connected(folder, "2026-07-28") as (_, serving, client),
        client.listen(tools_list_changed=True) as listening,
    ):
        serving.on_tools_changed()
        event = await anext(aiter(listening))

    assert type(event).__name__ == "ToolsListChanged"


async def test_a_client_that_left_is_told_nothing(folder):
    async with connected(folder) as (_, serving, client):
        await client.list_tools()

        assert len(serving._sessions) == 1
    assert serving._sessions == {}


@pytest.mark.parametrize("era", ERAS)
async def test_a_full_output_can_be_read_as_a_resource(folder, era):
    long = Answering("long", "".join(f"line {number}\n" for number in range(120_000)))
    async with connected(folder, era, tools=(long,)) as (_, _, client):
        assert (await client.list_resources()).resources == []
        done = await client.call_tool("long", {})
        link = done.content[-1]
        listed = (await client.list_resources()).resources
        first = await client.read_resource(link.uri)
        rest = await client.read_resource(first.contents[-1].uri)

        assert link.type == "resource_link"
        assert [one.uri for one in listed] == [link.uri]
        assert first.contents[0].text.startswith("line 0\nline 1\n")
        assert (first.contents[0].text + rest.contents[0].text).endswith("line 119999\n")


@pytest.mark.parametrize(("era", "code"), [("legacy", -32002), ("2026-07-28", -32602)])
@pytest.mark.parametrize("uri", ["ferrule://output/{}", "ferrule://output/none", "file:///etc/passwd", "x", "http://["])
async def test_only_outputs_of_this_server_are_resources(folder, era, code, uri):
    async with connected(folder, era) as (engine, _, client):
        kept = await engine.store.put("of another session", call_id="1", tool="x")
        with pytest.raises(MCPError) as error:
            await client.read_resource(uri.format(kept))

        assert error.value.code == code


async def test_a_bug_in_a_tool_is_told_and_the_server_goes_on(folder):
    @tool(touches=[], inline=True)
    async def buggy() -> str:
        """Has a bug."""
        raise ZeroDivisionError("by zero\x1b[2J")

    async with connected(folder, tools=(buggy,)) as (_, _, client):
        done = await client.call_tool("buggy", {})

        assert (done.is_error, done.content[0].text) == (True, "buggy failed inside: ZeroDivisionError: by zero")
        assert (await client.call_tool("Read", {"path": "a.txt"})).is_error is False


async def test_calls_of_one_client_are_scheduled_together(folder):
    async with (
        asyncio.timeout(LIMIT_SECONDS),
        connected(folder, permission_mode="acceptEdits") as (_, _, client),
        anyio.create_task_group() as group,
    ):
        for number in range(20):
            group.start_soon(client.call_tool, "create_file", {"path": f"{number}.txt", "content": f"{number}\n"})

    assert {path.name: path.read_text() for path in folder.glob("[0-9]*.txt")} == {
        f"{number}.txt": f"{number}\n" for number in range(20)
    }


async def test_an_unknown_method_is_an_error_of_the_protocol(folder):
    async with connected(folder) as (_, _, client):
        with pytest.raises(MCPError) as error:
            await client.get_prompt("x")

        assert error.value.code == types.METHOD_NOT_FOUND
