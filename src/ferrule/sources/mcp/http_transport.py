"""A server behind a URL: streamable HTTP, or the older event stream, with bounds on what comes back."""

import contextlib
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ferrule.sources.mcp.server import Server
from ferrule.sources.mcp.sieve import Sieve
from ferrule.sources.mcp.streams import SiftedIncoming, SiftedOutgoing

if TYPE_CHECKING:
    import httpx2

_CONNECT_SECONDS = 30.0
_SESSION = "mcp-session-id"
_FORGOTTEN = (404, 400)
"""What servers say to a session that they do not know: the protocol's own word, and that of some servers."""
_REASONS = {
    401: "wants to know who asks: give it the header that it needs, mostly Authorization, in its configuration",
    403: "does not let this client in: look at the headers in its configuration",
    404: "has nothing at this address: look at the URL in its configuration",
    405: "does not take messages at this address: look at the URL and the transport in its configuration",
    407: "is behind a proxy that wants to know who asks",
    429: "has had too many calls: wait before you try again",
}


class HttpTransport:
    """One life of a connection over HTTP. The package takes it as a transport."""

    def __init__(self, server: Server, *, body_bytes: int, ended: Callable[[], None]) -> None:
        """`ended` is called when the server can answer no more."""
        self.sieve = Sieve(self.fail)
        self.why = ""
        """Why it can answer no more, as the end of a sentence about it; empty while it can."""
        self.status = 0
        """Of the last answer to a message, where that was no success; 0 where it was one."""
        self.forgotten = 0
        """The status by which the server said that it does not know this session any more."""
        self.last_words = ""
        self.junk_lines = 0
        self.answered = False
        self._server = server
        self._body_bytes = body_bytes
        self._ended = ended
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Any:
        streams = self._streamable() if self._server.transport == "http" else self._event_stream()
        reading, writing = await self._stack.enter_async_context(streams)
        return SiftedIncoming(reading, self.sieve, self._close), SiftedOutgoing(writing, self.sieve)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    def fail(self, why: str) -> None:
        """The connection is to end, for what the server did."""
        if not self.why:
            self.why = why
            self._ended()

    def close(self) -> None:
        """Leaving the context lets go of everything."""

    def reason(self) -> str:
        """What the last status means, as the end of a sentence; empty where it was a success."""
        if not self.status:
            return ""
        words = _REASONS.get(self.status)
        if words is None:
            words = "leads elsewhere, which is not followed" if self.status < 400 else "could not answer"
        return f"{words} (HTTP status {self.status})"

    def _close(self) -> None:
        self.fail("closed the connection")

    @contextlib.asynccontextmanager
    async def _streamable(self) -> AsyncIterator[Any]:
        from mcp.client.streamable_http import streamable_http_client  # loaded by whoever connects

        async with (
            self._http() as http,
            streamable_http_client(self._server.url, http_client=http, max_sse_event_size=self._body_bytes) as streams,
        ):
            yield streams

    @contextlib.asynccontextmanager
    async def _event_stream(self) -> AsyncIterator[Any]:
        from mcp.client.sse import sse_client  # as above

        def opened(headers: Any = None, timeout: Any = None, auth: Any = None) -> "httpx2.AsyncClient":  # noqa: ARG001 - the package's way to ask
            return self._http()

        async with sse_client(self._server.url, httpx_client_factory=opened) as streams:
            yield streams

    def _http(self) -> "httpx2.AsyncClient":
        import httpx2  # came with the package

        # Whoever waits for an answer has a time limit of their own, and a stream of events is silent for hours.
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
        headers = {"accept-encoding": "identity", **self._server.headers}
        return httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks={"response": [self._bound]})

    async def _bound(self, response: "httpx2.Response") -> None:
        """A body has an end, and nothing is unpacked: a small one could become a large one."""
        import httpx2  # as above

        if response.request.method == "POST" or self._server.transport == "sse":
            self.status = response.status_code if response.status_code >= 300 else 0
            if self.status in _FORGOTTEN and _SESSION in response.request.headers:
                self.forgotten = self.status
        if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
            await response.aclose()
            raise httpx2.ReadError("The server packed its answer though it was asked not to")
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if not is_stream or response.status_code != 200:
            response.stream = _bounded(response.stream, self._body_bytes)


def _bounded(inner: Any, limit_bytes: int) -> Any:
    import httpx2  # as above

    class Bounded(httpx2.AsyncByteStream):
        """The body of an answer, up to its limit."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = limit_bytes
            async for piece in inner:
                left -= len(piece)
                if left < 0:
                    message = f"The server sent more than {limit_bytes:,} bytes, which is the most that is taken"
                    raise httpx2.StreamError(message)
                yield piece

        async def aclose(self) -> None:
            await inner.aclose()

    return Bounded()
