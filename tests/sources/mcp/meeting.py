"""Connections to the scripted server, and a look at what is left of them."""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support.test_process import living

from ferrule.core.errors import ToolFailure
from ferrule.core.services import Mixed
from ferrule.sources.mcp import McpServerEntry
from ferrule.sources.mcp.connection import McpConnection

__all__ = ["SECONDS", "echoed", "living", "met", "quiet", "refused", "said", "scripted"]

SCRIPT = str(Path(__file__).with_name("hostile.py"))
SECONDS = 60.0
"""For everything that is waited for: long enough for a busy machine, and not for ever."""


def quiet(_: str) -> None:
    """Progress that nobody looks at."""


def scripted(mode: str, mark: str, **more: Any) -> McpServerEntry:
    """The scripted server; `mark` is among its words, so that its processes are found."""
    arguments = ("-I", "-S", SCRIPT, mode, mark)
    fields = {"name": "hostile", "transport": "stdio", "layer": "user", "source": "a test", **more}
    return McpServerEntry(command=sys.executable, args=arguments, **fields)


@contextlib.asynccontextmanager
async def met(mode: str, folder: Path, *, server: Any = None, **more: Any) -> AsyncIterator[McpConnection]:
    """A connection to the scripted server, closed at the end; nothing of it is left then."""
    mark = f"mark={folder}/."
    more.setdefault("environment", {"PATH": os.environ.get("PATH", os.defpath)})
    more.setdefault("pauses_seconds", (0.0,))
    folder.mkdir(exist_ok=True)
    connection = McpConnection(scripted(mode, mark, **(server or {})), folder=str(folder), **more)
    try:
        async with asyncio.timeout(SECONDS):
            yield connection
    finally:
        async with asyncio.timeout(SECONDS):
            await connection.close()
        assert living(mark) == []


async def echoed(connection: McpConnection, words: str = "hello") -> str:
    """What the server says when it is asked to repeat something."""
    return said(await connection.call("echo", {"text": words}, progress=quiet))


def said(outcome: Mixed) -> str:
    assert isinstance(outcome.parts[0], str)
    return outcome.parts[0]


async def refused(connection: McpConnection, tool: str, arguments: dict[str, Any] | None = None) -> str:
    """Why a call failed."""
    try:
        outcome = await connection.call(tool, arguments or {}, progress=quiet)
    except ToolFailure as failure:
        return failure.message
    raise AssertionError(f"{tool} answered with {outcome}")
