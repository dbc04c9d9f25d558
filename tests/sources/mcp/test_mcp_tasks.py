"""Tools that a server runs as tasks: begun, followed, fetched, cancelled; and left out where it runs none."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.sources.mcp.meeting import SECONDS, quiet, said
from tests.sources.mcp.node import found

from ferrule.core.errors import ToolFailure
from ferrule.sources.mcp import ListedTool, McpServerEntry
from ferrule.sources.mcp.approval import tool_pin
from ferrule.sources.mcp.connection import McpConnection
from ferrule.sources.mcp.results import usable

SCRIPT = str(Path(__file__).with_name("tasking.py"))


@contextlib.asynccontextmanager
async def started(folder: Path, *command: str, **more: Any) -> AsyncIterator[McpConnection]:
    program, *arguments = command or (sys.executable, "-I", "-S", SCRIPT, "with")
    server = McpServerEntry(
        name="x",
        transport="stdio",
        layer="session",
        source="a test",
        command=program,
        args=tuple(arguments),
        start_seconds=SECONDS,
    )
    connection = McpConnection(server, environment={"PATH": os.environ["PATH"]}, folder=str(folder), **more)
    try:
        async with asyncio.timeout(2 * SECONDS):
            yield connection
    finally:
        await connection.close()


async def test_a_tool_that_runs_as_a_task_only_is_run_as_one_and_its_states_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    async with started(tmp_path) as connection:
        tools = {tool.name: tool.is_task for tool in (await connection.listing()).tools}
        outcome = await connection.call("done", {}, progress=told.append, is_task=True)

    assert tools == {"done": True, "fails": True, "stops": True, "asks": True, "endless": True, "plain": False}
    assert said(outcome) == "result of done"
    assert told == ["working: step 0", "working: step 1"]


async def test_a_task_that_failed_is_a_failed_call_and_one_that_the_server_cancelled_says_so(tmp_path: Path) -> None:
    async with started(tmp_path) as connection:
        outcome = await connection.call("fails", {}, progress=quiet, is_task=True)
        with pytest.raises(ToolFailure, match=r'"x" has cancelled the task. step 1.') as caught:
            await connection.call("stops", {}, progress=quiet, is_task=True)

    assert outcome.failed
    assert said(outcome) == "result of fails"
    assert caught.value.code == "mcp-error"


async def test_a_task_that_needs_an_answer_asks_the_user(tmp_path: Path) -> None:
    async def elicit(server: str, message: str, schema: Any) -> dict[str, Any]:
        return {"name": "Ann"}

    async with started(tmp_path, elicit=elicit) as connection:
        outcome = await connection.call("asks", {}, progress=quiet, is_task=True)

    assert said(outcome) == "hello Ann"


async def test_whoever_gives_up_a_call_has_its_task_cancelled(tmp_path: Path) -> None:
    begun = asyncio.Event()
    async with started(tmp_path) as connection:
        calling = asyncio.create_task(connection.call("endless", {}, progress=lambda _: begun.set(), is_task=True))
        await begun.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        assert said(await connection.call("plain", {}, progress=quiet)) == "cancelled: ['endless']"


async def test_where_the_server_runs_no_tasks_such_tools_are_left_out_with_the_reason(tmp_path: Path) -> None:
    async with started(tmp_path, sys.executable, "-I", "-S", SCRIPT, "without") as connection:
        listing = await connection.listing()

    assert [tool.name for tool in listing.tools] == ["plain"]
    assert dict(listing.rejected)["done"] == "It runs as a task only, and the server says that it runs none."


def test_a_tool_that_becomes_a_task_has_changed_and_others_keep_their_pins() -> None:
    tool = ListedTool("a", "Does.", {"type": "object"})

    assert usable(tool._replace(is_task=True)).is_task
    assert tool_pin(tool) != tool_pin(tool._replace(is_task=True))
    assert tool_pin(tool).fingerprint == "d1fe2f56eb3c87d2bec8872bbd708d3d"  # as in every state folder there is


async def test_the_everything_server_researches(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    async def elicit(server: str, message: str, schema: Any) -> dict[str, Any]:
        return {"interpretation": "snake"}

    node, told = found(request), list[str]()
    script = node.script("server-everything", "dist", "index.js")
    async with started(tmp_path, node.program, script, elicit=elicit) as connection:
        (tool,) = [one for one in (await connection.listing()).tools if one.name == "simulate-research-query"]
        outcome = await connection.call(
            tool.name, {"topic": "python", "ambiguous": True}, progress=told.append, is_task=tool.is_task
        )

    assert "# Research Report: python (snake)" in said(outcome)
    assert "waits for an answer" in "\n".join(told)
