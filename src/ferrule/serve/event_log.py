"""What a session over HTTP was sent, kept for a while: a client whose connection broke comes back for the rest.

The package has the protocol for it (`Last-Event-ID`) and asks for a store. Each session has one of its own: the
numbers of requests, by which the package names streams, are the same in all of them.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

_MOST_EVENTS = 2_000
_MOST_BYTES = 16 << 20
"""Of one session; the last event is kept however long it is."""


class _Event(NamedTuple):
    number: int
    stream: str
    message: "JSONRPCMessage | None"
    """None where a stream only begins."""
    size_bytes: int


class EventLog:
    """The events of one session, as the package's `EventStore` has them."""

    def __init__(self, *, most_events: int = _MOST_EVENTS, most_bytes: int = _MOST_BYTES) -> None:
        self._events: deque[_Event] = deque()
        self._most_events = most_events
        self._most_bytes = most_bytes
        self._bytes = 0
        self._last = 0
        self._came = asyncio.Event()

    async def store_event(self, stream_id: str, message: "JSONRPCMessage | None") -> str:
        """Keep an event, and return its id."""
        self._last += 1
        size_bytes = 0 if message is None else len(message.model_dump_json(by_alias=True, exclude_unset=True))
        self._events.append(_Event(self._last, stream_id, message, size_bytes))
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
        from mcp.server.streamable_http import EventMessage  # for servers only
        from mcp_types import JSONRPCError, JSONRPCResponse

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
