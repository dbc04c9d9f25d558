"""The upstream of the table: an HTTP server on loopback that plays, for each request, what a case says."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any

from bench.proxy import speak
from bench.proxy.talk import Answer

SECONDS = 20.0
"""Nothing here is waited for longer."""


class Got:
    """One request that the upstream received, and the way to answer it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, raw: bytes) -> None:
        self._reader = reader
        self._writer = writer
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.path, _ = lines[0].split(" ")
        self.headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        self.raw = raw
        self.is_unasked = False
        """Was a stream sent though none was asked for? Ours streams from hosts that it does not pass on as they are."""
        self.left = asyncio.Event()
        """Set when the other side has closed the connection while it was being answered."""

    @property
    def body(self) -> dict[str, Any]:
        value = json.loads(self.raw)
        assert isinstance(value, dict)
        return value

    @property
    def wire(self) -> str:
        """The API that the path belongs to."""
        path = self.path.partition("?")[0]
        if path.endswith(("/messages", "/messages/count_tokens")):
            return "anthropic"
        if path.endswith("/chat/completions"):
            return "openai-chat"
        return "openai-responses" if "/responses" in path else "gemini"

    @property
    def wants_stream(self) -> bool:
        return "streamGenerateContent" in self.path if self.wire == "gemini" else bool(self.body.get("stream"))

    async def whole(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
        more = {"content-type": "application/json", "content-length": str(len(data)), **(headers or {})}
        lines = "".join(f"{name}: {text}\r\n" for name, text in more.items())
        await self._send(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + data)

    async def begin(self) -> None:
        self.is_unasked = not self.wants_stream
        await self._send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        if data:
            await self._send(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self._send(b"0\r\n\r\n")

    def cut(self) -> None:
        """The connection breaks."""
        self._writer.transport.abort()

    async def gone(self) -> None:
        """Wait until the other side has closed."""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(SECONDS):
                await self._reader.read()
        self.left.set()

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


Play = Callable[[Got], Awaitable[None]]


def says(answer: Answer) -> Play:
    """Say this, as a stream or whole, whichever is asked for."""

    async def play(got: Got) -> None:
        if got.wants_stream:
            await streams(speak.stream(answer, got.wire))(got)
        else:
            await got.whole(200, speak.whole(answer, got.wire))

    return play


def streams(events: Iterable[bytes], *, together: bool = False) -> Play:
    """Send these events, each by itself or all of them as one piece."""

    async def play(got: Got) -> None:
        await got.begin()
        given = list(events)
        for one in [b"".join(given)] if together else given:
            await got.chunk(one)
            if not together:
                await asyncio.sleep(0)
        await got.end()

    return play


def cuts(events: Iterable[bytes]) -> Play:
    """Send these events, and break the connection."""

    async def play(got: Got) -> None:
        await got.begin()
        for one in events:
            await got.chunk(one)
            await asyncio.sleep(0)
        got.cut()

    return play


def ends(events: Iterable[bytes]) -> Play:
    """Send these events, and end the body in order, though the answer is not at its end."""
    return streams(events)


def holds(events: Iterable[bytes], until: asyncio.Event | None = None, then: Iterable[bytes] = ()) -> Play:
    """Send these events, and then nothing until something happens or the other side goes."""

    async def play(got: Got) -> None:
        await got.begin()
        for one in events:
            await got.chunk(one)
        if until is None:
            await got.gone()
            return
        async with asyncio.timeout(SECONDS):
            await until.wait()
        for one in then:
            await got.chunk(one)
        await got.end()

    return play


def refuses(status: int, message: str, word: str = "", **headers: str) -> Play:
    """Refuse in the words of whichever API is asked."""

    async def play(got: Got) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await got.whole(status, speak.error(got.wire, status, message, word), named)

    return play


class Upstream:
    """Plays one thing for each request, in their order; the last one again and again."""

    def __init__(self) -> None:
        self.plays: list[Play] = []
        self.got: list[Got] = []
        self.others: list[Got] = []
        """What was asked besides: lists of models, counts."""
        self.url = ""
        self._came = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def play(self, *plays: Play) -> None:
        self.plays = list(plays)
        self.got, self.others = [], []
        self._came.clear()

    async def came(self) -> Got:
        """The first request, once it is there."""
        async with asyncio.timeout(SECONDS):
            await self._came.wait()
        return self.got[0]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().partition(b":")[::2] for line in head.split(b"\r\n") if b":" in line)
                raw = await self._raw(reader, fields)
                got = Got(reader, writer, head[:-4], raw)
                if got.method == "GET":
                    self.others.append(got)
                    await got.whole(404, {"error": {"message": "no such page"}})
                    continue
                if "count" in got.path.lower() or got.path.endswith("input_tokens"):
                    self.others.append(got)
                    await (self.plays[0] if self.plays else refuses(404, "no such page"))(got)
                    continue
                self.got.append(got)
                self._came.set()
                await self.plays[min(len(self.got), len(self.plays)) - 1](got)
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    @staticmethod
    async def _raw(reader: asyncio.StreamReader, fields: dict[bytes, bytes]) -> bytes:
        if fields.get(b"transfer-encoding", b"").strip() != b"chunked":
            return await reader.readexactly(int(fields.get(b"content-length", b"0")))
        pieces = []
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            pieces.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readexactly(2)
        return b"".join(pieces)

    async def close(self) -> None:
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def serving(port: int = 0) -> AsyncIterator[Upstream]:
    upstream = Upstream()
    listening = await asyncio.start_server(upstream._serve, "127.0.0.1", port, limit=1 << 24)
    upstream.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield upstream
    finally:
        listening.close()
        await upstream.close()
