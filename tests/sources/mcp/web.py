"""Servers on loopback: real ones of the `mcp` package over HTTP, and ones that answer with whatever is wanted."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.sse import SseServerTransport
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

SECONDS = 60.0


class Offered:
    """A server of the package with a few tools, and what it has seen."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.cancelled = asyncio.Event()
        self.begun = asyncio.Event()
        self.headers: list[str] = []
        self.added = False
        self.server: Server[Any] = Server(
            "offered",
            version="3",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self.bus),
        )
        options = self.server.create_initialization_options
        self.server.create_initialization_options = lambda *_, **__: options(  # type: ignore[method-assign] # as the package's guide has it
            NotificationOptions(tools_changed=True)
        )

    async def _list(self, _: Any, __: Any) -> types.ListToolsResult:
        names = ["echo", "wait", "large", "change", *(["added"] if self.added else [])]
        schema = {"type": "object", "properties": {}}
        return types.ListToolsResult(tools=[types.Tool(name=name, input_schema=schema) for name in names])

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        if context.request is not None:
            self.headers.append(context.request.headers.get("x-given", ""))
        if params.name == "wait":
            self.begun.set()
            try:
                await anyio.sleep(600)
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                raise
        if params.name == "change":
            self.added = True
            await self.bus.publish(ToolsListChanged())
            with contextlib.suppress(Exception):
                await context.session.send_tool_list_changed()
        if params.name == "echo":
            await context.session.report_progress(1, 2, "half")
        text = "x" * arguments["size"] if params.name == "large" else str(arguments.get("text"))
        return types.CallToolResult(content=[types.TextContent(text=text)])


@contextlib.asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """An application on a port of its own; the address of it."""
    config = uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server.serve(sockets=[bound]))
        try:
            async with asyncio.timeout(SECONDS):
                while not server.started:
                    await asyncio.sleep(0.01)
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            async with asyncio.timeout(SECONDS):
                await task


def event_stream(offered: Offered) -> Starlette:
    """The server as an application of the older kind."""
    transport = SseServerTransport("/messages/")

    async def stream(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as (reading, writing):
            await offered.server.run(reading, writing, offered.server.create_initialization_options())
        return Response()

    return Starlette(routes=[Route("/sse", stream), Mount("/messages/", transport.handle_post_message)])


@contextlib.asynccontextmanager
async def canned(answer: Callable[[bytes], bytes]) -> AsyncIterator[str]:
    """A server that answers each request with whatever bytes it is told to."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            for line in head.lower().splitlines():
                if line.startswith(b"content-length:"):
                    head += await reader.readexactly(int(line.partition(b":")[2]))
            writer.write(answer(head))
            await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
