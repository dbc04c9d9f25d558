"""Connections over HTTP, to real servers of the `mcp` package on loopback and to ones that are no servers at all."""

import asyncio
import contextlib
import gzip
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.sources.mcp.meeting import SECONDS, echoed, quiet, refused, said
from tests.sources.mcp.web import Offered, canned, event_stream, serving

from ferrule.core.errors import ToolFailure
from ferrule.sources.mcp import McpServerEntry
from ferrule.sources.mcp.connection import McpConnection


@contextlib.asynccontextmanager
async def connected(url: str, folder: Path, transport: Any = "http", **more: Any) -> AsyncIterator[McpConnection]:
    server = McpServerEntry(
        name="far", transport=transport, layer="user", source="a test", url=url, headers={"X-Given": "yes"}
    )
    connection = McpConnection(server, environment={}, folder=str(folder), pauses_seconds=(0.0,), **more)
    try:
        async with asyncio.timeout(SECONDS):
            yield connection
    finally:
        async with asyncio.timeout(SECONDS):
            await connection.close()


@contextlib.asynccontextmanager
async def offered_at(kind: str) -> AsyncIterator[tuple[Offered, str]]:
    offered = Offered()
    if kind == "sse":
        async with serving(event_stream(offered)) as address:
            yield offered, f"{address}/sse"
    else:
        async with serving(offered.server.streamable_http_app()) as address:
            yield offered, f"{address}/mcp"


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_behind_a_url_is_used_like_any_other(tmp_path: Path, kind: str) -> None:
    told = asyncio.Event()
    reports: list[str] = []
    async with offered_at(kind) as (offered, url), connected(url, tmp_path, kind, on_changed=told.set) as connection:
        listing = await connection.listing()
        assert (listing.title, listing.version) == ("offered", "3")
        assert [tool.name for tool in listing.tools] == ["echo", "wait", "large", "change"]
        assert said(await connection.call("echo", {"text": "hello"}, progress=reports.append)) == "hello"
        assert reports == ["1/2: half"]
        assert set(offered.headers) == {"yes"}
        await connection.call("change", {}, progress=quiet)
        await asyncio.wait_for(told.wait(), SECONDS)
        assert (await connection.listing()).tools[-1].name == "added"
        call = asyncio.create_task(connection.call("wait", {}, progress=quiet))
        await asyncio.wait_for(offered.begun.wait(), SECONDS)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(offered.cancelled.wait(), SECONDS)
        assert await echoed(connection, "still there") == "still there"


async def test_an_answer_beyond_the_limit_is_not_taken(tmp_path: Path) -> None:
    async with offered_at("http") as (_, url), connected(url, tmp_path, result_bytes=100_000) as connection:
        assert len(said(await connection.call("large", {"size": 50_000}, progress=quiet))) == 50_000
        await refused(connection, "large", {"size": 1_000_000})
        assert await echoed(connection) == "hello"


def _answer(status: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.parametrize("kind", ["http", "sse"])
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(_answer("401 Unauthorized"), "wants to know who asks", id="401"),
        pytest.param(_answer("403 Forbidden"), "does not let this client in", id="403"),
        pytest.param(_answer("404 Not Found"), "has nothing at this address", id="404"),
        pytest.param(_answer("500 Oops"), "could not answer (HTTP status 500)", id="500"),
        pytest.param(
            _answer("307 Temporary Redirect", location="http://example.invalid/mcp"), "leads elsewhere", id="elsewhere"
        ),
        pytest.param(_answer("200 OK", b"<html>", content_type="text/html"), "text/html", id="a-page"),
        pytest.param(b"nonsense\r\n\r\n", "cannot be reached", id="no-http"),
    ],
)
async def test_what_is_no_server_is_said_in_a_sentence(tmp_path: Path, kind: str, answer: bytes, why: str) -> None:
    async with canned(lambda _: answer) as address, connected(address, tmp_path, kind) as connection:
        message = await refused(connection, "echo")
    assert message.startswith('The MCP server "far" ')
    assert why in message


async def test_a_server_that_cannot_be_reached_is_said_in_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/mcp"
        for kind in ("http", "sse"):
            async with connected(url, tmp_path, kind) as connection:
                with pytest.raises(ToolFailure, match="cannot be reached"):
                    await connection.listing()


def _scripted(large: bytes, **headers: str) -> Any:
    """Answers a handshake, and a call with the body that is given."""

    def answer(asked: bytes) -> bytes:
        if not asked.startswith(b"POST"):
            return _answer("405 No")
        message = json.loads(asked.partition(b"\r\n\r\n")[2])
        if message["method"] == "initialize":
            about = {"name": "canned", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
        elif message["method"] == "tools/call":
            body = large.replace(b"ID", str(message["id"]).encode())
            body = gzip.compress(body) if headers else body
            return _answer("200 OK", body, content_type="application/json", **headers)
        elif "id" not in message:
            return _answer("202 Accepted")
        else:
            return _answer("404 Not Found")
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return _answer("200 OK", body, content_type="application/json")

    return answer


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        pytest.param({}, "The server sent more than 100,000 bytes, which is the most that is taken", id="too-long"),
        pytest.param({"content_encoding": "gzip"}, "packed its answer", id="packed"),
    ],
)
async def test_a_body_is_bounded_and_never_unpacked(tmp_path: Path, headers: dict[str, str], why: str) -> None:
    words = b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "%s"}]}}' % (
        b"x" * 5_000_000
    )
    async with (
        canned(_scripted(words, **headers)) as address,
        connected(address, tmp_path, result_bytes=100_000) as connection,
    ):
        assert why in await refused(connection, "echo")


_UNKNOWN = b'{"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "Session not found"}}'


@pytest.mark.parametrize("body", [b"", _UNKNOWN], ids=["silent", "with-words"])
@pytest.mark.parametrize("status", ["404 Not Found", "400 Bad Request"])
async def test_a_session_that_the_server_has_forgotten_is_opened_anew(tmp_path: Path, status: str, body: bytes) -> None:
    begun: list[int] = []
    calls: list[bytes] = []
    words = b'{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "hello"}]}}'
    scripted = _scripted(words)

    def answer(asked: bytes) -> bytes:
        replied: bytes = scripted(asked)
        if b'"initialize"' in asked:
            begun.append(1)
            return replied.replace(b"\r\n", b"\r\nmcp-session-id: one\r\n", 1)
        if b'"tools/call"' in asked:
            calls.append(asked)
            if len(begun) == 1:
                return _answer(status, body, content_type="application/json")
        return replied

    async with canned(answer) as address, connected(address, tmp_path) as connection:
        if status.startswith("400"):  # it may have been something else about the call: it is not made again
            assert "has forgotten this session; the next call opens another one" in await refused(connection, "echo")
        assert await echoed(connection) == "hello"
        assert (len(begun), len(calls)) == (2, 2)
