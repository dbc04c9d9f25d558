"""A connection to a server that behaves: what it lists, answers, asks, reports and changes."""

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.sources.mcp.meeting import SECONDS, echoed, living, met, quiet, refused, said

from ferrule.core.content import Picture
from ferrule.core.errors import ToolFailure
from ferrule.core.services import McpContent, Mixed, ServerResource
from ferrule.sources.mcp import ListedPrompt


async def test_a_server_starts_when_it_is_first_used(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        states = [connection.is_running]
        assert living(f"mark={tmp_path}/.") == []
        assert await echoed(connection) == "hello"
        states.append(connection.is_running)
        assert len(living(f"mark={tmp_path}/.")) == 1
    assert [*states, connection.is_running] == [False, True, False]


async def test_calls_that_come_at_once_share_one_start(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        words = [str(number) for number in range(50)]
        assert await asyncio.gather(*(echoed(connection, word) for word in words)) == words
        assert len(living(f"mark={tmp_path}/.")) == 1


async def test_a_listing_says_all_that_a_server_offers(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        listing = await connection.listing()
    assert (listing.title, listing.version, listing.guidance) == ("Hostile", "1.2", "Be careful.")
    assert listing.has_resources
    assert listing.tools[0].name == "echo"
    assert listing.tools[0].words == "Does echo."
    assert listing.tools[0].schema == {"type": "object", "properties": {}}
    assert listing.prompts == (ListedPrompt("greet", "Greets.", (("who", "Whom.", True),)),)


async def test_the_parts_of_an_answer_keep_their_order_and_their_kinds(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        outcome = await connection.call("parts", {}, progress=quiet)
    kinds = [part.kind if isinstance(part, McpContent) else type(part).__name__ for part in outcome.parts]
    assert kinds == [
        "str", "Picture", "image", "image", "audio", "resource_link", "resource", "Picture", "resource", "str",
    ]  # fmt: skip
    picture = outcome.parts[1]
    assert isinstance(picture, Picture)
    assert (picture.path, picture.media_type, picture.data[:4]) == ("", "image/png", b"\x89PNG")
    words = [part.words for part in outcome.parts if isinstance(part, McpContent)]
    assert words[0] == "[An image that is not valid base64.]"
    assert words[2:5] == [
        "[Audio of the type audio/wav, 3 bytes.]",
        "[A link to the resource mem://a (a): A.]",
        "embedded text",
    ]
    assert outcome.parts[-1] == "[A part of the kind 'hologram', which cannot be shown.]"


async def test_a_tool_that_says_that_it_failed_is_an_outcome(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        assert await connection.call("fail", {}, progress=quiet) == Mixed(("It did not work.",), failed=True)


async def test_an_error_of_the_protocol_is_a_failure_in_clean_words(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        assert await refused(connection, "refuse") == 'The MCP server "hostile" refused: No such thing.'


@pytest.mark.parametrize(
    ("schema", "note"),
    [
        pytest.param({"type": "object", "properties": {"count": {"type": "integer"}}}, "", id="fits"),
        pytest.param(
            {"type": "object", "properties": {"count": {"type": "string"}}},
            "[The structured content does not fit the tool's output schema: ",
            id="does-not-fit",
        ),
        pytest.param({"$ref": "http://127.0.0.1:9/schema"}, "", id="nothing-is-fetched"),
    ],
)
async def test_structured_content_is_delivered_whether_it_fits_or_not(
    tmp_path: Path, schema: dict[str, Any], note: str
) -> None:
    async with met("good", tmp_path) as connection:
        outcome = await connection.call("structured", {"count": 3}, progress=quiet, output_schema=schema)
    assert outcome.structured == {"count": 3}
    assert outcome.parts[0] == "said"
    assert not outcome.failed
    assert len(outcome.parts) == (2 if note else 1)
    assert str(outcome.parts[-1]).startswith(note)


async def test_missing_structured_content_is_said(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        outcome = await connection.call("echo", {"text": "x"}, progress=quiet, output_schema={"type": "object"})
    assert outcome.parts == ("x", "[The tool has an output schema, and its answer has no structured content.]")


async def test_progress_is_reported_in_words(tmp_path: Path) -> None:
    reports: list[str] = []
    async with met("good", tmp_path) as connection:
        assert said(await connection.call("progress", {}, progress=reports.append)) == "done"
    assert reports == ["1/3: step 1", "2/3: step 2", "3/3: step 3"]


@pytest.mark.contract("mcp.cancel")
async def test_cancelling_a_call_cancels_it_at_the_server(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        await echoed(connection)
        call = asyncio.create_task(connection.call("wait", {}, progress=quiet))
        await echoed(connection)  # it was sent by now
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        cancelled = json.loads(said(await connection.call("was_cancelled", {}, progress=quiet)))
        assert len(cancelled) == 1
        assert await echoed(connection) == "hello"


async def test_an_answer_after_a_cancellation_is_nobodys(tmp_path: Path) -> None:
    async with met("answers-cancelled", tmp_path) as connection:
        await echoed(connection)
        call = asyncio.create_task(connection.call("wait", {}, progress=quiet))
        await echoed(connection)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert [await echoed(connection, word) for word in "abc"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("values", "answered"),
    [
        pytest.param({"name": "Ann"}, {"action": "accept", "content": {"name": "Ann", "age": 7}}, id="with-a-default"),
        pytest.param(
            {"name": "Ann", "age": 8, "other": 1},
            {"action": "accept", "content": {"name": "Ann", "age": 8}},
            id="only-what-was-asked-for",
        ),
        pytest.param({"name": 5}, {"action": "cancel"}, id="does-not-fit"),
        pytest.param(None, {"action": "decline"}, id="no"),
    ],
)
async def test_a_servers_question_is_answered_by_whoever_can(tmp_path: Path, values: Any, answered: Any) -> None:
    asked = []

    async def elicit(server: str, message: str, schema: Any) -> Any:
        asked.append((server, message, sorted(schema["properties"])))
        return values

    reports: list[str] = []
    async with met("good", tmp_path, elicit=elicit) as connection:
        outcome = await connection.call("elicit", {}, progress=reports.append)
    assert json.loads(said(outcome)) == answered
    assert asked == [("hostile", "Who?", ["age", "name"])]
    assert reports == ["It waits for an answer of the user."]


async def test_whoever_fails_to_answer_has_said_no(tmp_path: Path) -> None:
    async def elicit(server: str, message: str, schema: Any) -> Any:
        raise RuntimeError(server, message, schema)

    async with met("good", tmp_path, elicit=elicit) as connection:
        assert json.loads(said(await connection.call("elicit", {}, progress=quiet))) == {"action": "decline"}


async def test_no_page_is_opened_for_a_server(tmp_path: Path) -> None:
    notes: list[str] = []

    async def elicit(server: str, message: str, schema: Any) -> Any:
        raise AssertionError(server, message, schema)

    async with met("good", tmp_path, elicit=elicit, on_note=notes.append) as connection:
        outcome = await connection.call("elicit", {"url": True}, progress=quiet)
    assert json.loads(said(outcome)) == {"action": "decline"}
    assert "wanted a page to be opened" in notes[0]


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list", "made/up"])
async def test_what_nobody_offered_is_refused(tmp_path: Path, method: str) -> None:
    schema = {"type": "object", "properties": {}}
    known: dict[str, dict[str, Any]] = {
        "elicitation/create": {"message": "?", "requestedSchema": schema},
        "sampling/createMessage": {"messages": [], "maxTokens": 1},
    }
    params = known.get(method, {})
    async with met("good", tmp_path) as connection:
        outcome = await connection.call("ask_other", {"method": method, "params": params}, progress=quiet)
        assert "error" in json.loads(said(outcome))
        assert await echoed(connection) == "hello"


async def test_a_server_may_know_the_folders_of_the_session(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    async with met("good", tmp_path, roots=(str(folder),)) as connection:
        outcome = await connection.call("ask_other", {"method": "roots/list"}, progress=quiet)
    assert json.loads(said(outcome)) == {"roots": [{"uri": f"file://{tmp_path}/a%20b", "name": "a b"}]}


async def test_changes_that_come_together_are_told_once(tmp_path: Path) -> None:
    changes: list[int] = []
    told = asyncio.Event()

    def changed() -> None:
        changes.append(1)
        told.set()

    async with met("good", tmp_path, on_changed=changed) as connection:
        before = await connection.listing()
        await connection.call("change", {}, progress=quiet)
        await asyncio.wait_for(told.wait(), SECONDS)
        after = await connection.listing()
        assert {tool.name for tool in after.tools} - {tool.name for tool in before.tools} == {"added"}
        assert changes == [1]


async def test_resources_are_listed_and_read_without_the_bad_ones(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        assert await connection.resources() == [ServerResource("hostile", "mem://a", "a", "A.")]
        assert await connection.resources(templates=True) == [ServerResource("hostile", "mem://{x}", "any")]
        text = (await connection.read("mem://a")).parts[0]
        assert isinstance(text, McpContent)
        assert text.words == "text of a"
        assert isinstance((await connection.read("mem://picture")).parts[0], Picture)
        with pytest.raises(ToolFailure, match="refused: Resource not found"):
            await connection.read("mem://missing")


async def test_a_prompt_is_a_text(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        assert await connection.prompt("greet", {"who": "Ann"}) == "Hello Ann"
        assert await connection.prompt("greet", {"who": "both"}) == "User: Hello both\n\nAssistant: Hello you"


async def test_what_a_server_does_not_offer_is_said(tmp_path: Path) -> None:
    async with met("only-tools", tmp_path) as connection:
        listing = await connection.listing()
        assert listing.prompts == ()
        assert not listing.has_resources
        with pytest.raises(ToolFailure, match="offers no resources"):
            await connection.resources()
        with pytest.raises(ToolFailure, match="offers no prompts"):
            await connection.prompt("greet", {})


async def test_a_server_has_its_own_environment_and_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    environment = {"PATH": os.environ["PATH"], "GIVEN": "1", "OVER": "1"}
    server = {"env": {"OVER": "2"}, "cwd": "inner"}
    async with met("good", tmp_path, environment=environment, server=server) as connection:
        seen = json.loads(said(await connection.call("environment", {}, progress=quiet)))
    assert seen["cwd"] == os.path.realpath(tmp_path / "inner")
    given = {key: value for key, value in seen["env"].items() if key not in {"FERRULE_CALL", "LC_CTYPE"}}
    assert given == {**environment, "OVER": "2"}


async def test_a_server_that_ends_at_the_newer_greeting_is_greeted_in_the_older_way(tmp_path: Path) -> None:
    async with met("strict", tmp_path) as connection:
        assert await echoed(connection) == "hello"


async def test_no_thread_and_no_task_is_left(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with met("good", tmp_path) as connection:
        await echoed(connection)
        assert asyncio.all_tasks() > before
    await asyncio.sleep(0)  # what was cancelled last is told so
    assert asyncio.all_tasks() == before
    assert [thread.name for thread in threading.enumerate() if thread.name == "ferrule mcp"] == []


async def test_a_closed_connection_stays_closed(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        await echoed(connection)
        await connection.close()
        await connection.close()
        assert "was closed with its session" in await refused(connection, "echo")
        with pytest.raises(ToolFailure):
            await connection.listing()
