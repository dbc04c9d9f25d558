"""Servers of both SDKs behind a URL, killed and started again: the session goes on, and no call is made twice."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.sources.mcp import node
from tests.sources.mcp.meeting import SECONDS, echoed, quiet, said
from tests.sources.mcp.test_connection_http import connected

from ferrule.core.errors import ToolFailure
from ferrule.sources.mcp.connection import McpConnection

PYTHON = """
import sys
from tests.sources.mcp.web import Offered
import uvicorn
uvicorn.run(Offered().server.streamable_http_app(), port=int(sys.argv[1]), log_level="critical", ws="none")
"""


@contextlib.asynccontextmanager
async def started(argv: Sequence[str], port: int, **env: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """A server that listens on a port, until it is killed."""
    process = subprocess.Popen(argv, env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin", **env})
    try:
        async with asyncio.timeout(SECONDS):
            while not _listens(port):
                assert process.poll() is None
                await asyncio.sleep(0.02)
        yield process
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


async def failure(connection: McpConnection, tool: str, **arguments: object) -> tuple[str | None, str]:
    """The code and the sentence of a call that fails."""
    with pytest.raises(ToolFailure) as caught:
        await connection.call(tool, arguments, progress=quiet)
    return caught.value.code, caught.value.message


async def test_a_typescript_server_that_is_killed_in_a_call_is_to_blame_and_the_next_call_is_not_sent(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found, port, begun = node.found(request), _free_port(), asyncio.Event()
    argv = [found.program, found.script("server-everything", "dist", "index.js"), "streamableHttp"]
    slow = {"duration": 600, "steps": 6000}
    async with connected(f"http://127.0.0.1:{port}/mcp", tmp_path) as connection:
        async with started(argv, port, PORT=str(port)):
            calling = asyncio.create_task(
                connection.call("trigger-long-running-operation", slow, progress=lambda _: begun.set())
            )
            await begun.wait()
        with pytest.raises(ToolFailure, match="what the call had done by then is not known") as caught:
            await calling
        code, unsent = await failure(connection, "echo", message="x")

    assert caught.value.code == "mcp-server"
    assert code == "mcp-server"
    assert "cannot be reached" in unsent
    assert unsent.endswith("; the call was not sent.")


async def test_of_two_calls_only_the_one_that_found_nobody_is_said_to_be_unsent(tmp_path: Path) -> None:
    """The server listens no more, while one connection of it lives on."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = next(
                    (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
                )
                body = json.loads(await reader.readexactly(size) or b"{}")
                if body.get("method") == "tools/call":
                    begun.set()
                    await over.wait()
                    break
                writer.write(_answer(body))
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with connected(f"http://127.0.0.1:{port}/mcp", tmp_path) as connection:
        await connection.listing()
        first = asyncio.create_task(failure(connection, "one"))
        await begun.wait()
        server.close()
        second = await failure(connection, "two")
        said = await first
        over.set()

    assert second[1].endswith("; the call was not sent.")
    assert said[1].endswith("what the call had done by then is not known, and it was not repeated.")


def _answer(asked: Mapping[str, Any]) -> bytes:
    about = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "x", "version": "1"},
    }
    results = {"initialize": about, "tools/list": {"tools": []}}
    if asked.get("method") in results:
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results[asked["method"]]}).encode()
        status = b"200 OK"
    elif "id" in asked:
        error = {"code": -32601, "message": "Method not found"}
        body, status = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}).encode(), b"200 OK"
    else:
        body, status = b"", b"202 Accepted" if asked else b"405 Method Not Allowed"
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
    return head + body
