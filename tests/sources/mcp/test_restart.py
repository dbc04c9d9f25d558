"""Servers of both SDKs behind a URL, killed and started again: the session goes on, and no call is made twice."""

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.sources.mcp import node
from tests.sources.mcp.meeting import SECONDS, echoed, quiet, said
from tests.sources.mcp.test_connection_http import connected

from ferrule.core.errors import ToolFailure

PYTHON = """
import sys
from tests.sources.mcp.web import Offered
import uvicorn
uvicorn.run(Offered().server.streamable_http_app(), port=int(sys.argv[1]), log_level="critical", ws="none")
"""


@contextlib.asynccontextmanager
async def started(argv: Sequence[str], port: int, **env: str) -> AsyncIterator[None]:
    """A server that listens on a port, until it is killed."""
    process = subprocess.Popen(argv, env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin", **env})
    try:
        async with asyncio.timeout(SECONDS):
            while not _listens(port):
                assert process.poll() is None
                await asyncio.sleep(0.02)
        yield
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as looking:
        return looking.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


async def test_a_python_server_that_was_started_again_answers_the_next_call(tmp_path: Path) -> None:
    port = _free_port()
    argv = [sys.executable, "-c", PYTHON, str(port)]
    async with connected(f"http://127.0.0.1:{port}/mcp", tmp_path) as connection:
        async with started(argv, port):
            assert await echoed(connection, "before") == "before"
        with pytest.raises(ToolFailure):
            await echoed(connection, "nobody there")
        async with started(argv, port):
            assert await echoed(connection, "after") == "after"
            assert await echoed(connection, "again") == "again"


async def test_a_typescript_server_that_was_started_again_answers_within_two_calls(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found, port = node.found(request), _free_port()
    argv = [found.program, found.script("server-everything", "dist", "index.js"), "streamableHttp"]
    async with connected(f"http://127.0.0.1:{port}/mcp", tmp_path) as connection:
        async with started(argv, port, PORT=str(port)):
            assert "before" in said(await connection.call("echo", {"message": "before"}, progress=quiet))
        async with started(argv, port, PORT=str(port)):
            with contextlib.suppress(ToolFailure):  # it answers with 400, which may mean something about the call
                await connection.call("echo", {"message": "lost"}, progress=quiet)
            assert "after" in said(await connection.call("echo", {"message": "after"}, progress=quiet))
