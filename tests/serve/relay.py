"""A relay for clients that cannot be told a token: it adds the header to every request, and changes nothing else.

It may also break connections, as proxies do that have waited long enough.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_HEAD_BYTES = 1 << 16


@asynccontextmanager
async def relay(port: int, token: str, breaks: bytes = b"\0") -> AsyncIterator[int]:
    """The port that it listens at, on loopback; what comes there goes on to `port`.

    The answer to a request that is sent with `breaks` in it is ended behind its first event.
    """
    open_ones: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_ones.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):  # also when it is over
                await _pass_on(reader, writer, port, token, breaks)
        finally:
            open_ones.discard(task)
            writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0, limit=_HEAD_BYTES)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tuple(open_ones):
            task.cancel()
        await asyncio.gather(*open_ones, return_exceptions=True)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, token: str, breaks: bytes
) -> None:
    """One request a connection: whoever answers closes it behind the answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *headers = head[:-4].split(b"\r\n")
    kept = [line for line in headers if not line.lower().startswith(b"connection:")]
    size = next((int(line.split(b":")[1]) for line in kept if line.lower().startswith(b"content-length:")), 0)
    more = [f"Authorization: Bearer {token}".encode(), b"Connection: close"]
    from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
    try:
        body = await reader.readexactly(size)
        to_server.write(b"\r\n".join([first, *kept, *more, b"", b""]) + body)
        gone = asyncio.create_task(reader.read(1))
        copy = _copy_first_event if breaks in body else _copy
        answering = asyncio.create_task(copy(from_server, writer))
        try:
            await asyncio.wait({gone, answering}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, answering):
                task.cancel()
            await asyncio.gather(gone, answering, return_exceptions=True)
    finally:
        to_server.close()


async def _copy_first_event(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The head of an answer and the first chunk of its body, and then the end that a whole body has."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = await reader.readline()
    chunk = await reader.readexactly(int(length, 16) + 2)
    writer.write(head + length + chunk + b"0\r\n\r\n")
    await writer.drain()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_HEAD_BYTES):
        writer.write(piece)
        await writer.drain()
