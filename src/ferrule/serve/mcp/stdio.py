"""MCP over standard input and output: a message a line. Nothing else of the process can write there meanwhile.

The package's own transport reads on a thread that cannot be given up, so that a signal would wait for the client's
next line; it leaves junk unanswered, and takes lines of any length.
"""

import asyncio
import logging
import os
import select
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from ferrule.core.errors import ConfigError
from ferrule.serve.mcp import Serving

if TYPE_CHECKING:
    from anyio import Event
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream


_log = logging.getLogger("ferrule.serve")

_CHUNK_BYTES = 1 << 16
_LINE_BYTES = 64 << 20
_LAST_SECONDS = 2.0
"""How long the last answers may take to a client that has said all that it had to say."""
_AT_ONCE_BYTES = 4096
"""So much goes into a pipe without waiting, where it takes anything at all."""


async def serve_stdio(serving: Serving) -> None:
    """Serve one client until it closes our input, or stops reading our output."""
    with _Claim() as (read_from, write_to):
        heard, received = anyio.create_memory_object_stream[Any](0)
        said, sending = anyio.create_memory_object_stream[Any](0)
        all_said = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(_hear, LineReader(read_from), heard, said.clone())
            group.start_soon(_say, sending, write_to, group.cancel_scope.cancel, all_said)
            await serving.server.run(received, said, serving.server.create_initialization_options())
            with anyio.move_on_after(_LAST_SECONDS):
                await all_said.wait()
            group.cancel_scope.cancel()


class _Claim:
    """Standard input and output as descriptors of our own; what others read or print goes elsewhere."""

    def __enter__(self) -> tuple[int, int]:
        if sys.stdin is None or sys.stdout is None:
            raise ConfigError("Standard input or output is closed: a client starts `ferrule mcp serve` with both.")
        sys.stdout.flush()
        self._in, self._out = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return self._in, self._out

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(self._in, 0)
        os.dup2(self._out, 1)
        # Threads may still read and write there: both stay open, so that neither becomes another file's.


class LineReader:
    """Lines of a descriptor, read on a thread that dies with the process; a line that is too long is None."""

    def __init__(self, descriptor: int, *, limit_bytes: int = _LINE_BYTES) -> None:
        self._descriptor = descriptor
        self._limit = limit_bytes
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._room = threading.Semaphore(1)
        """Nothing is read before the last piece is looked at: a client cannot fill our memory."""

    def start(self) -> None:
        threading.Thread(target=self._read, name="ferrule-stdin", daemon=True).start()

    def _read(self) -> None:
        piece = b"first"
        while piece:
            try:
                piece = os.read(self._descriptor, _CHUNK_BYTES)
            except OSError:
                piece = b""
            self._room.acquire()
            try:
                self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)
            except RuntimeError:  # the loop is gone
                return

    async def __aiter__(self) -> AsyncIterator[bytes | None]:
        held: list[bytes] = []
        size = 0
        while piece := await self._pieces.get():
            self._room.release()
            *whole, rest = piece.split(b"\n")
            for end in whole:
                yield b"".join((*held, end)) if size + len(end) <= self._limit else None
                held, size = [], 0
            size += len(rest)
            if rest and size <= self._limit:
                held.append(rest)
        if held and size <= self._limit:
            yield b"".join(held)


async def _hear(lines: LineReader, heard: "MemoryObjectSendStream[Any]", said: "MemoryObjectSendStream[Any]") -> None:
    """Every line as a message; what is none is answered at once."""
    lines.start()
    async with heard, said:
        async for line in lines:
            if line is not None and not line.strip():
                continue
            try:
                message = None if line is None else jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError as error:
                broken = any(one["type"] == "json_invalid" for one in error.errors(include_url=False))
                await said.send(_wrong(-32700 if broken else -32600, line))
                continue
            await (said.send(_wrong(-32600, None)) if message is None else heard.send(SessionMessage(message)))


def _wrong(code: int, line: bytes | None) -> Any:

    what = {
        -32700: "Parse error: a message is one line of JSON.",
        -32600: "Invalid request: that is JSON, but no message of JSON-RPC 2.0.",
    }
    said = what[code] if line is not None else f"Invalid request: a message has {_LINE_BYTES:,} bytes at most."
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=said)))


async def _say(
    sending: "MemoryObjectReceiveStream[Any]", descriptor: int, stop: Callable[[], None], all_said: "Event"
) -> None:
    async with sending:
        async for message in sending:
            try:
                await _write(descriptor, line_of(message.message))
            except OSError:  # whoever read our output has gone
                stop()
                return
    all_said.set()


def line_of(message: Any) -> bytes:
    """A message as it is sent. What cannot be written costs its own request only, which is answered all the same."""
    try:
        return f"{message.model_dump_json(by_alias=True, exclude_unset=True)}\n".encode()
    except ValueError as error:
        from mcp_types import ErrorData, JSONRPCError  # loaded already

        _log.warning("An answer could not be written as JSON: %s", error)
        said = ErrorData(code=-32603, message="The answer could not be written as JSON.")
        return line_of(JSONRPCError(jsonrpc="2.0", id=getattr(message, "id", None), error=said))


async def _write(descriptor: int, data: bytes) -> None:
    """All of it. The loop goes on meanwhile, whatever the reader does."""
    if len(data) <= _AT_ONCE_BYTES and _takes_some(descriptor):
        _write_all(descriptor, data)
        return
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: OSError | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def write() -> None:
        failed = None
        try:
            _write_all(descriptor, data)
        except OSError as error:
            failed = error
        with suppress(RuntimeError):  # the loop is gone
            loop.call_soon_threadsafe(settle, failed)

    # A thread that dies with the process: one of a pool would keep it from ending while nobody reads.
    threading.Thread(target=write, name="ferrule-stdout", daemon=True).start()
    await done


def _takes_some(descriptor: int) -> bool:
    try:
        return bool(select.select((), (descriptor,), (), 0)[1])
    except (ValueError, OSError):  # on Windows
        return False


def _write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
