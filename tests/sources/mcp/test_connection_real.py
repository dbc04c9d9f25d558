"""Real servers: two from the npm registry, and one of the `mcp` package that speaks the newer protocol."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.sources.mcp.meeting import SECONDS, living, quiet, said
from tests.sources.mcp.node import found

from ferrule.core.content import Picture
from ferrule.core.services import McpContent
from ferrule.sources.mcp import McpServerEntry
from ferrule.sources.mcp.connection import McpConnection


@contextlib.asynccontextmanager
async def started(folder: Path, command: str, *arguments: str, **more: Any) -> AsyncIterator[McpConnection]:
    server = McpServerEntry(
        name="real",
        transport="stdio",
        layer="session",
        source="a test",
        command=command,
        args=arguments,
        start_seconds=60,
    )
    connection = McpConnection(server, environment={"PATH": os.environ["PATH"]}, folder=str(folder), **more)
    try:
        async with asyncio.timeout(2 * SECONDS):
            yield connection
    finally:
        async with asyncio.timeout(SECONDS):
            await connection.close()


async def test_the_everything_server_is_used_in_every_way(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    async def elicit(server: str, message: str, schema: Any) -> dict[str, Any]:
        return {"name": "Ann"}

    node, reports = found(request), list[str]()
    script = node.script("server-everything", "dist", "index.js")
    async with started(tmp_path, node.program, script, roots=(str(tmp_path),), elicit=elicit) as connection:
        listing = await connection.listing()
        assert listing.rejected == ()
        tools = {tool.name: tool for tool in listing.tools}

        async def call(name: str, **arguments: Any) -> Any:
            return await connection.call(
                name, arguments, progress=reports.append, output_schema=tools[name].output_schema
            )

        assert said(await call("echo", message="hi")) == "Echo: hi"
        assert said(await call("get-sum", a=2, b=3)) == "The sum of 2 and 3 is 5."
        pictures = [part for part in (await call("get-tiny-image")).parts if isinstance(part, Picture)]
        assert pictures[0].media_type == "image/png"
        outcome = await call("get-structured-content", location="New York")
        assert set(outcome.structured) == {"temperature", "conditions", "humidity"}
        assert len(outcome.parts) == 1  # it fits its schema
        await call("trigger-long-running-operation", duration=0.6, steps=3)
        assert reports
        assert set(reports) <= {"1/3", "2/3", "3/3"}
        links = (await call("get-resource-links", count=2)).parts
        assert [part.kind for part in links if isinstance(part, McpContent)] == ["resource_link"] * 2
        assert '"name": "Ann"' in "".join(
            part for part in (await call("trigger-elicitation-request")).parts if isinstance(part, str)
        )
        resources = await connection.resources()
        text = (await connection.read(resources[0].uri)).parts[0]
        assert isinstance(text, McpContent)
        assert text.words.startswith("# ")
        assert len(await connection.resources(templates=True)) == 2
        assert await connection.prompt("args-prompt", {"city": "Rome"}) == "What's weather in Rome?"


async def test_the_filesystem_server_keeps_to_its_folder(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    node = found(request)
    (tmp_path / "note.txt").write_text("a note", encoding="utf-8")
    script = node.script("server-filesystem", "dist", "index.js")
    async with started(tmp_path, node.program, script, str(tmp_path)) as connection:
        listing = await connection.listing()
        assert {tool.name: tool for tool in listing.tools}["read_text_file"].hints["readOnlyHint"] is True
        path = str(tmp_path / "note.txt")
        assert said(await connection.call("read_text_file", {"path": path}, progress=quiet)) == "a note"
        denied = await connection.call("read_text_file", {"path": "/etc/passwd"}, progress=quiet)
        assert denied.failed
        assert living(script)
    assert living(str(tmp_path)) == []


async def test_a_process_that_speaks_the_newer_protocol_is_used_like_any_other(tmp_path: Path) -> None:
    told = asyncio.Event()
    program = (
        "import asyncio\n"
        "from mcp.server.stdio import stdio_server\n"
        "from tests.sources.mcp.web import Offered\n"
        "async def main():\n"
        "    offered = Offered()\n"
        "    async with stdio_server() as (reading, writing):\n"
        "        await offered.server.run(reading, writing, offered.server.create_initialization_options())\n"
        "asyncio.run(main())\n"
    )
    root = Path(__file__).parents[3]
    async with started(root, sys.executable, "-c", program, str(tmp_path), on_changed=told.set) as connection:
        listing = await connection.listing()
        assert [tool.name for tool in listing.tools] == ["echo", "wait", "large", "change"]
        reports: list[str] = []
        assert said(await connection.call("echo", {"text": "hello"}, progress=reports.append)) == "hello"
        assert reports == ["1/2: half"]
        await connection.call("change", {}, progress=quiet)
        await asyncio.wait_for(told.wait(), SECONDS)
        assert (await connection.listing()).tools[-1].name == "added"
    assert living(str(tmp_path)) == []
