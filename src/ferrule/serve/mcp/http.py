"""Serve MCP over streamable HTTP on uvicorn, behind a guard, with replay for broken connections.

The messages of a session are kept for a while, so that a client whose connection broke can fetch the rest. The
package has the protocol for this (`Last-Event-ID`) and asks for a store. Each session has a store of its own,
because the package names streams by the numbers of requests, which are the same in all sessions.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp.server.streamable_http import EventMessage
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import JSONRPCError, JSONRPCResponse
from starlette.applications import Starlette
from starlette.routing import Route

from ferrule.serve.http_server import HttpGuard, serve_app
from ferrule.serve.mcp import Serving

if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage


_MOST_EVENTS = 2_000
_MOST_BYTES = 16 << 20
"""Of one session; the last event is kept however long it is."""


class _LogEvent(NamedTuple):
    number: int
    stream: str
    message: "JSONRPCMessage | None"
    """None where a stream only begins."""
    size_bytes: int


class EventLog:
    """The events of one session, as the package's `EventStore` has them."""

    def __init__(self, *, most_events: int = _MOST_EVENTS, most_bytes: int = _MOST_BYTES) -> None:
        self._events: deque[_LogEvent] = deque()
        self._most_events = most_events
        self._most_bytes = most_bytes
        self._bytes = 0
        self._last = 0
        self._came = asyncio.Event()

    async def store_event(self, stream_id: str, message: "JSONRPCMessage | None") -> str:
        """Keep an event, and return its id."""
        self._last += 1
        size_bytes = 0 if message is None else len(message.model_dump_json(by_alias=True, exclude_unset=True))
        self._events.append(_LogEvent(self._last, stream_id, message, size_bytes))
        self._bytes += size_bytes
        while len(self._events) > 1 and (len(self._events) > self._most_events or self._bytes > self._most_bytes):
            self._bytes -= self._events.popleft().size_bytes
        came, self._came = self._came, asyncio.Event()
        came.set()
        return str(self._last)

    async def replay_events_after(self, last_event_id: str, send_callback: Callable[[Any], Awaitable[None]]) -> None:
        """Send what came on a stream behind an event, and what still comes, until its request is answered.

        The package would listen to the stream by itself once this has returned, and lose what came meanwhile.
        """
        begun = next((event for event in self._events if str(event.number) == last_event_id), None)
        if begun is None:
            return
        seen = begun.number
        while True:
            came = self._came
            later = [event for event in self._events if event.number > seen and event.stream == begun.stream]
            for event in later:
                seen = event.number
                if event.message is not None:
                    await send_callback(EventMessage(event.message, str(event.number)))
                if isinstance(event.message, JSONRPCResponse | JSONRPCError):
                    return
            if not later:
                await came.wait()


PATH = "/mcp"
_BODY_BYTES = 32 << 20
_RETRY_MILLISECONDS = 1_000
"""After which a client whose connection broke may come back for the rest."""


async def serve_http(
    serving: Serving,
    listening: socket.socket,
    *,
    host: str,
    token: str,
    names: Sequence[str] = (),
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Serve every client that has the token until this task is cancelled. `ready` is called when it listens."""

    def stop() -> None:
        if serving.engine is not None:
            serving.engine.cancel()

    await serve_app(HttpGuard(_app(serving), token=token, host=host, names=names), listening, ready=ready, stop=stop)


def _app(serving: Serving) -> Any:
    """The package's application, in which every session keeps its own events for a client that comes back."""

    class Resumable(StreamableHTTPSessionManager):
        @property
        def event_store(self) -> Any:
            """Asked for once for each session."""
            return EventLog()

        @event_store.setter
        def event_store(self, _: Any) -> None:
            """The package has none to give."""

    manager = Resumable(
        app=serving.server,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard has looked
        retry_interval=_RETRY_MILLISECONDS,
        max_request_body_size=_BODY_BYTES,
    )
    return Starlette(routes=[Route(PATH, endpoint=StreamableHTTPASGIApp(manager))], lifespan=lambda _: manager.run())
