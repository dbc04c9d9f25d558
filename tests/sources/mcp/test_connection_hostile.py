"""Servers that crash, hang, flood and lie: the pending call ends once, others go on, and nothing is left."""

import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.memory import forget_peak, peak_bytes
from tests.sources.mcp.meeting import SECONDS, echoed, living, met, quiet, refused, said

from ferrule.core.errors import ToolFailure
from ferrule.sources.mcp import McpServerEntry
from ferrule.sources.mcp.connection import McpConnection
from ferrule.system.tree import Roster

DEATHS = [
    pytest.param("crash", "ended with exit code 3", id="crashes"),
    pytest.param("half_and_die", "ended with exit code 0", id="half-a-frame-and-an-end"),
    pytest.param("close_output", "closed its output", id="closes-its-output"),
    pytest.param("many_questions", "asked more than 64 questions at once", id="asks-too-much"),
]


@pytest.mark.parametrize(("tool", "why"), DEATHS)
@pytest.mark.contract("mcp.restart")
async def test_every_pending_call_of_a_server_that_ends_fails_once_and_it_is_started_again(
    tmp_path: Path, tool: str, why: str
) -> None:
    async with met("good", tmp_path) as connection, met("good", tmp_path / "other") as other:
        await echoed(connection)
        waiting = [asyncio.create_task(refused(connection, "wait")) for _ in range(3)]
        await echoed(connection)
        message = await refused(connection, tool)
        assert message.startswith(f'The MCP server "hostile" {why}; what the call had done by then is not known')
        for task in waiting:
            assert why in await task
        assert await echoed(other) == "hello"
        assert await echoed(connection) == "hello"


async def test_the_last_words_of_a_server_are_quoted_clean(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        assert (await refused(connection, "crash")).endswith("It said last:\nlast words")


async def test_a_call_is_never_repeated(tmp_path: Path) -> None:
    async with met("good", tmp_path, pauses_seconds=(SECONDS,)) as connection:
        await refused(connection, "crash")
        assert living(f"mark={tmp_path}/.") == []


async def test_a_server_that_ends_between_calls_is_started_again(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        first = json.loads(said(await connection.call("environment", {}, progress=quiet)))["pid"]
        assert said(await connection.call("crash_later", {}, progress=quiet)) == "goodbye"
        async with asyncio.timeout(SECONDS):
            while connection.is_running:
                await asyncio.sleep(0)
        second = json.loads(said(await connection.call("environment", {}, progress=quiet)))["pid"]
        assert first != second


async def test_a_server_that_ends_at_its_start_says_why_and_then_rests(tmp_path: Path) -> None:
    async with met("crash-at-start", tmp_path, pauses_seconds=(0.0, SECONDS)) as connection:
        for _ in range(2):
            message = await refused(connection, "echo")
            assert "ended with exit code 7" in message
            assert message.endswith("It said last:\ncannot find the configuration")
        message = await refused(connection, "echo")
        assert "ended with exit code 7. It has failed 2 times in a row and may be started again in " in message
        assert "cannot find the configuration" in message
        assert not connection.is_running


async def test_all_who_wait_for_a_start_that_fails_are_told(tmp_path: Path) -> None:
    async with met("crash-at-start", tmp_path) as connection:
        messages = await asyncio.gather(*(refused(connection, "echo") for _ in range(5)))
        assert all("ended with exit code 7" in message for message in messages)


@pytest.mark.parametrize("mode", ["hang-at-start", "flood-at-start"])
async def test_a_server_that_does_not_come_up_is_given_up(tmp_path: Path, mode: str) -> None:
    async with met(mode, tmp_path, server={"start_seconds": 1.0}) as connection:
        assert "did not answer within 1 seconds of its start" in await refused(connection, "echo")
        assert living(f"mark={tmp_path}/.") == []


async def test_closing_does_not_wait_for_a_start(tmp_path: Path) -> None:
    async with met("hang-at-start", tmp_path, server={"start_seconds": 10 * SECONDS}) as connection:
        call = asyncio.create_task(refused(connection, "echo"))
        async with asyncio.timeout(SECONDS):
            while not living(f"mark={tmp_path}/."):
                await asyncio.sleep(0.01)
        await connection.close()
        assert "was closed" in await call


async def test_a_call_that_hangs_can_be_given_up_and_harms_no_other_server(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection, met("good", tmp_path / "other") as other:
        await echoed(connection)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.call("hang", {}, progress=quiet), 0.2)
        assert await echoed(other) == "hello"


async def test_a_server_that_reads_nothing_holds_up_nobody(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        await echoed(connection)
        calls: list[asyncio.Task[Any]] = [asyncio.create_task(connection.call("hang", {}, progress=quiet))]
        calls += [asyncio.create_task(echoed(connection, "x" * (2 << 20))) for _ in range(3)]
        await asyncio.wait(calls, timeout=0.2)
        assert not any(call.done() for call in calls)
        for call in calls:
            call.cancel()
        await asyncio.wait(calls)
        assert all(call.cancelled() for call in calls)


@pytest.mark.parametrize("tool", ["flood_stdout", "flood_objects", "flood_stderr"])
async def test_a_flood_is_survived_in_little_memory(tmp_path: Path, tool: str) -> None:
    async with met("good", tmp_path) as connection:
        await echoed(connection)
        forget_peak()
        before = peak_bytes()
        assert said(await connection.call(tool, {}, progress=quiet)) == "after the flood"
        assert peak_bytes() - before < 32 << 20
        assert await echoed(connection) == "hello"


async def test_a_message_beyond_the_limit_ends_the_server_and_is_not_held(tmp_path: Path) -> None:
    async with met("good", tmp_path, result_bytes=1 << 20) as connection:
        await echoed(connection)
        forget_peak()
        before = peak_bytes()
        message = await refused(connection, "large", {"megabytes": 100})
        assert "sent a message of more than 1,048,576 bytes, which is the most that is taken" in message
        assert peak_bytes() - before < 32 << 20
        assert await echoed(connection) == "hello"


async def test_a_long_message_within_the_limit_is_taken_whole(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        assert len(said(await connection.call("large", {"megabytes": 8}, progress=quiet))) == 8 << 20


async def test_junk_is_dropped_and_told_once(tmp_path: Path) -> None:
    notes: list[str] = []
    async with met("good", tmp_path, on_note=notes.append) as connection:
        for _ in range(2):
            assert said(await connection.call("junk", {}, progress=quiet)) == "after junk"
    assert len(notes) == 1
    assert notes[0].startswith('The MCP server "hostile" wrote 6 lines')


@pytest.mark.parametrize("tool", ["half", "nested"])
async def test_an_answer_that_nobody_can_read_is_an_error_of_its_call(tmp_path: Path, tool: str) -> None:
    async with met("good", tmp_path) as connection:
        assert "gave an answer that cannot be read" in await refused(connection, tool)
        assert await echoed(connection) == "hello"


async def test_an_answer_that_is_not_of_the_protocol_is_an_error_of_its_call(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        assert "answered with something that is not MCP" in await refused(connection, "not_a_result")
        assert await echoed(connection) == "hello"


@pytest.mark.parametrize(("tool", "words"), [("wrong_id", "yours"), ("twice", "first")])
async def test_answers_that_nobody_asked_for_are_dropped(tmp_path: Path, tool: str, words: str) -> None:
    async with met("good", tmp_path) as connection:
        assert said(await connection.call(tool, {}, progress=quiet)) == words
        assert await echoed(connection, "next") == "next"


async def test_progress_without_end_is_thinned_out_and_can_be_given_up(tmp_path: Path) -> None:
    reports: list[str] = []
    enough = asyncio.Event()

    def report(words: str) -> None:
        reports.append(words)
        if len(reports) >= 5:
            enough.set()

    async with met("good", tmp_path) as connection, met("good", tmp_path / "other") as other:
        call = asyncio.create_task(connection.call("endless_progress", {}, progress=report))
        await asyncio.wait_for(enough.wait(), SECONDS)
        assert await echoed(other) == "hello"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert float(reports[4]) > 10  # most of them were left out


async def test_bad_tools_are_left_out_with_a_reason_and_the_good_ones_stay(tmp_path: Path) -> None:
    async with met("bad-schemas", tmp_path) as connection:
        listing = await connection.listing()
    tools = {tool.name: tool for tool in listing.tools}
    assert {"echo", "parts", "wordy", "hidden"} <= set(tools)
    rejected = dict(listing.rejected)
    assert set(rejected) == {
        "no_schema", "schema_is_a_list", "schema_of_a_string", "properties_is_a_list", "deep", "huge", "red",
        "(without a name)", "echo", "hints",
    }  # fmt: skip
    assert set(rejected) & set(tools) == {"echo"}
    assert all(rejected.values())
    assert len(tools["wordy"].words) < 17_000
    assert tools["wordy"].schema == {"type": "object", "properties": {}}
    assert tools["hidden"].words == "abc"


@pytest.mark.parametrize(
    ("mode", "count", "why"),
    [
        pytest.param("three-pages", 3, "", id="all-pages"),
        pytest.param("endless-pages", 1000, "The server has more than 1,000 pages of them.", id="endless"),
        pytest.param("same-page", None, "The server leads back to a page", id="in-a-circle"),
    ],
)
async def test_a_list_is_read_to_its_end_or_to_a_limit(tmp_path: Path, mode: str, count: int | None, why: str) -> None:
    async with met(mode, tmp_path) as connection:
        listing = await connection.listing()
    if count is not None:
        assert len(listing.tools) == count
    assert why in dict(listing.rejected).get("(and more)", "")


@pytest.mark.parametrize("mode", ["stays", "ignores-term"])
async def test_a_server_that_does_not_want_to_end_is_killed(tmp_path: Path, mode: str) -> None:
    async with met(mode, tmp_path) as connection:
        assert await echoed(connection) == "hello"


@pytest.mark.parametrize("tool", ["daemon", "daemon_and_die"])
async def test_what_a_server_has_started_ends_with_it(tmp_path: Path, tool: str) -> None:
    async with met("good", tmp_path) as connection:
        assert said(await connection.call(tool, {}, progress=quiet)) == "started"
        # Where the server has ended too, its child may be gone by now.
        while tool == "daemon" and len(living(f"mark={tmp_path}/.")) != 2:
            await asyncio.sleep(0.005)  # a program that has just begun has no words for a moment


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    server = McpServerEntry(name="hostile", transport="stdio", layer="user", source="a test", command="no-such")
    connection = McpConnection(server, environment={"PATH": os.defpath}, folder=str(tmp_path))
    assert "cannot be started with 'no-such': No such file or directory" in await refused(connection, "echo")
    await connection.close()


async def test_closing_while_calls_are_pending_ends_each_of_them(tmp_path: Path) -> None:
    async with met("good", tmp_path) as connection:
        await echoed(connection)
        waiting = [asyncio.create_task(refused(connection, "wait")) for _ in range(3)]
        await echoed(connection)
        await connection.close()
        assert [await task for task in waiting] == ['The MCP server "hostile" was closed.'] * 3


async def test_an_engine_that_ends_at_once_leaves_its_servers_to_the_next(tmp_path: Path) -> None:
    mark, roster = f"mark={tmp_path}/orphan", tmp_path / "roster"
    program = _ORPHANING.format(roster=str(roster), mark=mark)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    assert output == b"up\n"
    try:
        Roster(str(roster)).sweep()
        assert living(mark) == []
    finally:
        for pid in living(mark):
            with contextlib.suppress(OSError):
                os.kill(pid, 9)


async def test_a_program_that_forgets_to_close_leaves_nothing_and_says_nothing(tmp_path: Path) -> None:
    mark = f"mark={tmp_path}/forgotten"
    program = _ORPHANING.format(roster=str(tmp_path / "roster"), mark=mark).replace("    os._exit(0)\n", "")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-X", "dev", "-W", "error", "-c", program),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    output, errors = await asyncio.wait_for(process.communicate(), SECONDS)
    assert (process.returncode, output, errors) == (0, b"up\n", b"")
    assert living(mark) == []


async def test_closing_while_a_server_is_being_ended_leaves_nothing_of_it(tmp_path: Path) -> None:
    for _ in range(5):
        async with met("good", tmp_path) as connection:
            await connection.call("daemon_and_die", {}, progress=quiet)
        assert living(f"mark={tmp_path}/.") == []


async def test_failures_have_a_code(tmp_path: Path) -> None:
    codes: list[Any] = []
    async with met("good", tmp_path, pauses_seconds=(SECONDS,)) as connection:
        for tool in ("refuse", "not_a_result", "crash", "echo"):
            with pytest.raises(ToolFailure) as caught:
                await connection.call(tool, {}, progress=quiet)
            codes.append(caught.value.code)
    assert codes == ["mcp-error", "mcp-answer", "mcp-server", "mcp-resting"]


_ORPHANING = """
import asyncio, os
from ferrule.sources.mcp.connection import McpConnection
from ferrule.system.tree import Roster
from tests.sources.mcp.meeting import echoed, scripted

async def main():
    asyncio.get_running_loop().slow_callback_duration = 600  # a busy machine is no fault of the program
    server = scripted("stays", {mark!r})
    connection = McpConnection(server, environment=dict(PATH=os.defpath), folder="/", roster=Roster({roster!r}))
    await echoed(connection)
    os.write(1, b"up\\n")
    os._exit(0)

asyncio.run(main())
"""
