"""Connect to MCP servers over HTTP or a child process, with limits on everything they send.

`HttpTransport` speaks streamable HTTP or the older event stream. `ProcessTransport` runs a server as a child
process, splits its output into frames, keeps its error output for messages, and ends all its processes.

`Sieve` filters every message before the `mcp` package sees it: it removes or repairs bad parts of an answer and
lets the rest through. The package judges a list as a whole, so one tool with a bad schema would cost all the
others. It also trusts a server to answer only what it was asked, and in moderation.

A frame is one line of JSON. No frame may be longer than its limit, and lines that are not frames are counted.
"""

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.output import clean
from ferrule.sources.mcp import McpServerEntry
from ferrule.sources.mcp.results import LISTS, display_name, fault
from ferrule.system.child import let_go
from ferrule.system.command import Launch
from ferrule.system.server_process import FRAME_BYTES, QUESTION_BYTES, Served
from ferrule.system.tree import Roster

if TYPE_CHECKING:
    import httpx2
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCError, JSONRPCMessage


_FULL_MESSAGES = 256

SENT: ContextVar[list[Any] | None] = ContextVar("ferrule mcp requests", default=None)
"""The ids of the messages that a call has given to the package so far: it numbers them by itself."""


class _Entered:
    """A stream is its own context, and leaving it closes it."""

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        raise NotImplementedError


class IncomingMessages(_Entered):
    """Messages of a process, in their order."""

    def __init__(self, full: Callable[[], None], drained: Callable[[], None]) -> None:
        """`full` is called when too many wait, and `drained` when all of them were taken."""
        self._full = full
        self._drained = drained
        self._messages: deque[SessionMessage] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False

    def put(self, message: "SessionMessage") -> None:
        if not self._ended:
            self._messages.append(message)
            if len(self._messages) > _FULL_MESSAGES:
                self._full()
            self._wake()

    def end(self) -> None:
        """Nothing more comes; what is there is still given out."""
        self._ended = True
        self._wake()

    async def receive(self) -> "SessionMessage":
        while not self._messages:
            if self._ended:
                import anyio  # came with the package

                raise anyio.EndOfStream
            self._drained()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._messages.popleft()

    def __aiter__(self) -> "IncomingMessages":
        return self

    async def __anext__(self) -> "SessionMessage":
        import anyio  # as above

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._messages.clear()
        self.end()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class MessageSendStream(_Entered):
    """Where messages for a process go. They are written one after the other, and none by halves."""

    def __init__(
        self, write: "Callable[[SessionMessage], None]", room: Callable[[], "asyncio.Future[None] | None"]
    ) -> None:
        """`room` is None where there is some, or what to wait for before it is asked again."""
        self._write = write
        self._room = room

    async def send(self, item: "SessionMessage", /) -> None:
        while (waiting := self._room()) is not None:
            await asyncio.wait([waiting])
        self._write(item)

    async def aclose(self) -> None:
        """The process is closed as a whole, by whoever has started it."""


class SiftedIncoming(_Entered):
    """A reading end of the package's own, seen through a sieve."""

    def __init__(self, inner: Any, sieve: "Sieve", ended: Callable[[], None]) -> None:
        """`ended` is called when nothing more can come."""
        self._inner = inner
        self._sieve = sieve
        self._ended = ended

    @property
    def last_context(self) -> Any:
        """The package carries the sender's variables along by this name."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        while True:
            item = await self._inner.receive()
            if isinstance(item, Exception) or self._sieve.let_in(item.message):
                return item

    def __aiter__(self) -> "SiftedIncoming":
        return self

    async def __anext__(self) -> Any:
        while True:
            try:
                item = await self._inner.__anext__()
            except StopAsyncIteration:
                self._ended()
                raise
            if isinstance(item, Exception) or self._sieve.let_in(item.message):
                return item

    async def aclose(self) -> None:
        await self._inner.aclose()


class SiftedOutgoing(_Entered):
    """A writing end of the package's own, seen through a sieve."""

    def __init__(self, inner: Any, sieve: "Sieve") -> None:
        self._inner = inner
        self._sieve = sieve

    async def send(self, item: "SessionMessage", /) -> None:
        self._sieve.let_out(item.message)
        if (ids := SENT.get()) is not None:
            ids.append(getattr(item.message, "id", None))
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()


_NEWS_SECONDS = 0.05
"""Between two reports of one call, and two changes of one list; whoever acts on a change waits longer than this."""
_TOLD = 1000
_ASKING = 64
"""So many questions of a server may be open at once."""
_EDGE_BYTES = 256
_REJECTED = 1000
_BLOCKS = frozenset({"text", "image", "audio", "resource_link", "resource"})
_CALLS = frozenset({"tools/call", "tasks/result"})
_DEFAULT_VERSION = "2025-11-25"


class Sieve:
    """Sees every message of one life of a server, in both directions."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        """`fail` ends the server, with what it did as the end of a sentence."""
        self.rejected: dict[str, list[tuple[str, str]]] = {}
        """What was taken out of each kind of list since somebody cleared this: names and reasons."""
        self.version = ""
        """What was agreed on; empty until then."""
        self._fail = fail
        self._asked: dict[int | str, str] = {}
        self._asking: set[int | str] = set()
        self._told: dict[str, float] = {}

    def let_out(self, message: "JSONRPCMessage") -> None:
        """A message is about to be sent."""
        import mcp_types as types  # loaded by whoever started the server

        if isinstance(message, types.JSONRPCRequest):
            self._asked[message.id] = message.method
            _modest(message)
        elif isinstance(message, types.JSONRPCNotification):
            if message.method == "notifications/cancelled":
                self._asked.pop(_key((message.params or {}).get("requestId")), None)
        elif message.id is not None:
            self._asking.discard(message.id)

    def let_in(self, message: "JSONRPCMessage") -> bool:
        """Is a message that has come to go on? It may have been mended."""
        import mcp_types as types  # as above

        if isinstance(message, types.JSONRPCRequest):
            self._asking.add(message.id)
            if len(self._asking) > _ASKING:
                self._fail(f"asked more than {_ASKING} questions at once")
                return False
            return True
        if isinstance(message, types.JSONRPCNotification):
            return self._is_news(message.method, message.params or {})
        method = self._asked.pop(_key(message.id), None)
        if method is None:
            return False  # nobody asked, or it is the second answer
        if isinstance(message, types.JSONRPCResponse):
            if method in LISTS:
                self._sift(method, message.result)
            elif method in _CALLS:
                _mend(message.result)
        return True

    def rescue_list(self, line: bytes) -> "JSONRPCMessage | None":
        """A list in which something is nested deeper than the package reads: the entry is left out, not the list."""
        import mcp_types as types  # as above

        try:
            message = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return None
        if not isinstance(message, dict) or self._asked.get(_key(message.get("id"))) not in LISTS:
            return None
        result = message.get("result")
        return (
            types.JSONRPCResponse(jsonrpc="2.0", id=message["id"], result=result) if isinstance(result, dict) else None
        )

    def errors_for(self, line: bytes) -> "list[JSONRPCError]":
        """Errors for the calls that a line seems to answer which nobody can read: they would wait for ever."""
        if b'"jsonrpc"' not in line:
            return []
        import mcp_types as types  # as above

        found = re.findall(rb'"id"\s*:\s*"?(\d{1,15})', line[:_EDGE_BYTES] + b" " + line[-_EDGE_BYTES:])
        keys = [key for key in dict.fromkeys(map(int, found)) if self._asked.pop(key, None) is not None]
        error = types.ErrorData(code=types.PARSE_ERROR, message="It is not a whole message.")
        return [types.JSONRPCError(jsonrpc="2.0", id=key, error=error) for key in keys]

    def _is_news(self, method: str, params: dict[str, Any]) -> bool:
        if method == "notifications/message":
            return False  # what a server logs is nobody's business
        if method == "notifications/cancelled":
            key = _key(params.get("requestId"))
            return key in self._asking or key in self._asked
        about, now = f"{method} {str(params.get('progressToken'))[:100]}", time.monotonic()
        if now - self._told.get(about, 0.0) < _NEWS_SECONDS:
            return False
        if len(self._told) >= _TOLD:
            self._told.clear()
        self._told[about] = now
        return True

    def _sift(self, method: str, result: dict[str, Any]) -> None:
        key = LISTS[method]
        entries = result.get(key)
        if not isinstance(entries, list) or not entries:
            return
        kept = []
        for entry in entries:
            reason = fault(method, entry) or self._header_fault(method, entry)
            if reason:
                self._reject(method, entry, reason)
            else:
                kept.append(entry)
        if self._misfit(method, result, kept) and not self._misfit(method, result, []):
            fitting = []
            for entry in kept:
                reason = self._misfit(method, result, [entry])
                if reason:
                    self._reject(method, entry, reason)
                else:
                    fitting.append(entry)
            kept = fitting
        result[key] = kept

    def _header_fault(self, method: str, entry: dict[str, Any]) -> str:
        """The package leaves such tools out without a word."""
        from mcp.shared.inbound import find_invalid_x_mcp_header
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS  # both came with the package

        if method != "tools/list" or self.version not in MODERN_PROTOCOL_VERSIONS:
            return ""
        reason = find_invalid_x_mcp_header(entry["inputSchema"])
        return f"It asks for HTTP headers that cannot be: {reason}" if reason else ""

    def _reject(self, method: str, entry: Any, reason: str) -> None:
        rejected = self.rejected.setdefault(method, [])
        if len(rejected) < _REJECTED:
            rejected.append((display_name(entry), reason))

    def _misfit(self, method: str, result: dict[str, Any], entries: list[Any]) -> str:
        """What the package will say to a list of these entries; empty where it takes it."""
        from mcp_types import methods
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS
        from pydantic import ValidationError  # all three came with the package

        version = self.version or _DEFAULT_VERSION
        frame = dict(result) if version in MODERN_PROTOCOL_VERSIONS else {}
        ttl = frame.get("ttlMs")
        if isinstance(ttl, (int, float)) and ttl < 0:
            frame["ttlMs"] = 0  # the package takes this for nothing too
        frame[LISTS[method]] = entries
        try:
            methods.parse_server_result(method, version, frame)
        except KeyError:
            return ""
        except ValidationError as error:
            return describe_error(error)
        return ""


def describe_error(error: Any) -> str:
    """The first thing that pydantic finds wrong, in a few words."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(step) for step in first["loc"][-3:])
    return f"{where}: {first['msg']}"[:200]


def _key(id_: Any) -> Any:
    if isinstance(id_, (dict, list)):
        return None
    return int(id_) if isinstance(id_, str) and id_.isascii() and id_.isdecimal() and len(id_) < 16 else id_


def _mend(result: dict[str, Any]) -> None:
    """An answer without parts, or with a part of a kind that is not known, is still an answer."""
    content = result.setdefault("content", []) if "resultType" not in result or "content" in result else None
    if not isinstance(content, list):
        return
    for place, block in enumerate(content):
        if isinstance(block, dict) and block.get("type") not in _BLOCKS:
            kind = str(block.get("type"))[:40]
            content[place] = {"type": "text", "text": f"[A part of the kind {kind!r}, which cannot be shown.]"}


def _modest(message: Any) -> None:
    """The package says that pages can be opened for a server wherever forms can be filled in. They cannot."""
    params = message.params or {}
    if message.method == "initialize":
        capabilities = params.get("capabilities")
    else:
        capabilities = (params.get("_meta") or {}).get("io.modelcontextprotocol/clientCapabilities")
    if isinstance(capabilities, dict) and isinstance(capabilities.get("elicitation"), dict):
        capabilities["elicitation"].pop("url", None)


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

    def __init__(self, server: McpServerEntry, *, body_bytes: int, ended: Callable[[], None]) -> None:
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
            response.stream = _limit_body(response.stream, self._body_bytes)


def _limit_body(inner: Any, limit_bytes: int) -> Any:
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


_BLANK = b" \t\r"


class TooLong(Exception):  # noqa: N818 - the state of the stream
    """A frame is longer than any may be."""


class Frames:
    """Takes bytes as they come and gives the lines that may be frames; of the rest nothing is kept."""

    def __init__(self, limit_bytes: int) -> None:
        self.junk_lines = 0
        """Lines that cannot be frames: an object does not begin in them."""
        self._limit_bytes = limit_bytes
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._skipping = False
        """Is the line that is being written junk?"""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now. Raises TooLong, and then holds nothing."""
        if not self._pieces and b"{" not in data:
            return self._skip(data)
        lines = data.split(b"\n")
        last = lines.pop()
        found: list[bytes] = []
        for line in lines:
            whole = self._end_line(line)
            if whole is not None:
                found.append(whole)
        if last:
            self._begin(last)
        return found

    def _end_line(self, line: bytes) -> bytes | None:
        if self._skipping:
            self._skipping = False
            self.junk_lines += 1
            return None
        if self._pieces:
            self._hold(line)
            line = b"".join(self._pieces)
            self._drop()
        line = line.strip(_BLANK)
        if not line:
            return None
        if not line.startswith(b"{"):
            self.junk_lines += 1
            return None
        if len(line) > self._limit_bytes:
            raise TooLong
        return line

    def _begin(self, piece: bytes) -> None:
        if self._skipping:
            return
        if not self._pieces:
            piece = piece.lstrip(_BLANK)
            if piece and not piece.startswith(b"{"):
                self._skipping = True
                return
        if piece:
            self._hold(piece)

    def _hold(self, piece: bytes) -> None:
        self._held_bytes += len(piece)
        if self._held_bytes > self._limit_bytes:
            self._drop()
            raise TooLong
        self._pieces.append(piece)

    def _drop(self) -> None:
        self._pieces.clear()
        self._held_bytes = 0

    def _skip(self, data: bytes) -> list[bytes]:
        """What has no object in it is counted, not looked at: somebody may send gigabytes of it."""
        self.junk_lines += data.count(b"\n")
        tail = data.rpartition(b"\n")[2]
        self._skipping = bool(tail.strip(_BLANK)) or (self._skipping and b"\n" not in data)
        return []


_COMPLAINTS_BYTES = 8192
_LAST_LINES, _LAST_CHARS = 6, 600
_BACKLOG_BYTES = 1 << 20
_ENDED = "ended"


class ProcessTransport(Served):
    """One process from its start to its last child. The package takes it as a transport."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        roster: Roster | None,
        frame_bytes: int,
        ended: Callable[[], None],
    ) -> None:
        """Start it on the running loop; `ended` is called once when it can answer no more.

        Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start.
        """
        self.sieve = Sieve(self.fail)
        self.junk_lines = 0
        """Lines that were no messages."""
        self.answered = False
        """Has it ever sent a message?"""
        self._ended = ended
        self._frame_bytes = frame_bytes
        self._frames = Frames(frame_bytes)
        self._complaints = b""
        self._room: asyncio.Future[None] | None = None
        super().__init__(Launch(argv, cwd, env, stdin="pipe", roster=roster))
        self._output.stop("not read yet")
        self._incoming = IncomingMessages(lambda: self._output.stop("full"), lambda: self._output.resume("full"))

    async def __aenter__(self) -> Any:
        """From now on it is listened to: the package is there to understand it."""
        self._output.resume("not read yet")
        return self._incoming, MessageSendStream(self._send, self._wait_for_room)

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        lines = clean(self._complaints.decode(errors="replace")).strip().splitlines()
        return "\n".join(lines[-_LAST_LINES:])[-_LAST_CHARS:]

    async def stop(self) -> None:
        """Close its input and, after a while, end it and all that it has started."""
        if self._settled:
            return
        try:
            self._stopping = True
            self._output.resume("over")
            self._incoming.end()
            if self._child.input is not None and not self._backlog:
                self._child.input.close()
            await self._wait_and_end()
        finally:
            self.close()

    def close(self) -> None:
        """Kill all of it now, and let go of everything."""
        if self._settled:
            return
        self._stopping = True
        self._part()
        if self.why == _ENDED:
            self.why = self._how()
        self._wrote()

    def _hear(self, data: bytes) -> None:
        before = self._frames.junk_lines
        try:
            lines = self._frames.feed(data)
        except TooLong:
            self.fail(f"sent a message of more than {self._frame_bytes:,} bytes, which is the most that is taken")
            return
        wasted = len(data) if self._frames.junk_lines != before or not lines else 0
        self.junk_lines += self._frames.junk_lines - before
        for line in lines:
            wasted += self._take(line)
        # A long frame comes in many pieces, and is bounded as a whole: its pieces are no waste.
        if self._frames.junk_lines != before or lines:
            self._pace.spend(wasted)

    def _take(self, line: bytes) -> int:
        """Hand a message on; what it costs where nobody has asked for it."""
        import mcp_types as types
        from mcp.shared.message import SessionMessage  # loaded before anything is read

        message: types.JSONRPCMessage | None
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            message = self.sieve.rescue_list(line)
        if message is None:
            self.junk_lines += 1
            for error in self.sieve.errors_for(line):
                self._incoming.put(SessionMessage(error))
            return len(line) + FRAME_BYTES
        self.answered = True
        if not self.sieve.let_in(message):
            return len(line) + FRAME_BYTES
        self._incoming.put(SessionMessage(message))
        if isinstance(message, (types.JSONRPCResponse, types.JSONRPCError)):
            return 0
        return len(line) + (QUESTION_BYTES if isinstance(message, types.JSONRPCRequest) else FRAME_BYTES)

    def _complain(self, data: bytes) -> None:
        self._complaints = (self._complaints + data)[-_COMPLAINTS_BYTES:]

    def _on_exit(self) -> None:
        self.fail(_ENDED)

    def _on_failure(self) -> None:
        self._incoming.end()
        self._ended()

    def _send(self, item: "SessionMessage") -> None:
        import anyio  # came with the package

        if self.why or self._stopping:
            raise anyio.BrokenResourceError
        self.sieve.let_out(item.message)
        self._queue(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    def _wait_for_room(self) -> "asyncio.Future[None] | None":
        if self._backlog_bytes <= _BACKLOG_BYTES or self.why or self._settled:
            return None
        if self._room is None:
            self._room = self._loop.create_future()
        return self._room

    def _wrote(self) -> None:
        """Whoever waits for room goes on when there is some, or no more needed."""
        if self._room is not None and (self._backlog_bytes <= _BACKLOG_BYTES or self._settled):
            let_go(self._room)
            self._room = None
