"""A real HTTP server on loopback whose every byte a test decides on."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

WAIT_SECONDS = 20
"""No test waits longer than this for anything."""


class Exchange:
    """One question of ours, and the way to answer it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, body: bytes) -> None:
        self.reader = reader
        self.writer = writer
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.path, _ = lines[0].split(" ")
        pairs = (line.partition(": ") for line in lines[1:] if line)
        self.headers = {name.lower(): value for name, _, value in pairs}
        self.body = body

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def whole(
        self, status: int, body: bytes | str | dict[str, Any], kind: str = "application/json", **headers: str
    ) -> None:
        """An answer that is no stream."""
        if isinstance(body, dict):
            body = json.dumps(body)
        data = body.encode() if isinstance(body, str) else body
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n{more}\r\n"
        await self.send(head.encode() + data)

    async def begin(self, kind: str = "text/event-stream") -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
        await self.send(head.encode())

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        await self.send(b"0\r\n\r\n")

    async def stream(self, data: bytes) -> None:
        await self.begin()
        await self.chunk(data)
        await self.end()

    def cut(self) -> None:
        """The connection breaks."""
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Waits until the other side has closed."""
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(self.reader.read(), WAIT_SECONDS) == b""


Play = Callable[[Exchange], Awaitable[None]]


class Server:
    """Plays one thing for every question, in their order; the last one again and again."""

    def __init__(self) -> None:
        self.plays: list[Play] = []
        self.asked: list[Exchange] = []
        self.connections = 0
        self.errors: list[BaseException] = []
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._came = asyncio.Semaphore(0)

    def play(self, *plays: Play) -> None:
        self.plays = list(plays)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"0"
                )
                exchange = Exchange(reader, writer, head[:-4], await reader.readexactly(int(length)))
                self.asked.append(exchange)
                self._came.release()
                await self.plays[min(len(self.asked), len(self.plays)) - 1](exchange)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        except AssertionError as error:
            self.errors.append(error)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def was_asked(self, times: int = 1) -> None:
        """Waits until so many questions have come."""
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self.asked) < times:
                await self._came.acquire()

    async def left(self) -> None:
        """Waits until nobody is connected any more."""
        if self._tasks:
            _, still = await asyncio.wait([*self._tasks], timeout=WAIT_SECONDS)
            assert not still

    async def close(self) -> None:
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        assert self.errors == []


@contextlib.asynccontextmanager
async def serving(ssl: Any = None) -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server._serve, "127.0.0.1", 0, ssl=ssl, limit=1 << 24)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"{'https' if ssl else 'http'}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        listening.close()
        await server.close()
