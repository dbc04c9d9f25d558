"""A child process that turns pages into Markdown and stays for the next page: the libraries for it take long to load.

It runs as the same user, with limits on memory, time and output, and closes itself in as `decoder` says. It ends with
its pipes, so that nothing is left of it after the engine, however that ends.
"""

import asyncio
import contextlib
import functools
import json
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from ferrule.support import decoder
from ferrule.support.proc import signal_group

PACKAGES = ("html_to_markdown", "trafilatura")
LIMITS = decoder.Limits(seconds=10, output_bytes=20 << 20)
TURN_SECONDS = 25.0
"""So long a page waits for those before it: many pages that all take their time are not read so."""
START_SECONDS = 20.0
IDLE_SECONDS = 300.0
_GONE_SECONDS = 2.0
_HERE = os.path.dirname(os.path.abspath(__file__))
_PROGRAM = os.path.join(_HERE, "turning.py")
_WALLS = os.path.join(os.path.dirname(_HERE), "decoding.py")
_SHARED = ("site-packages", "dist-packages")
_LINE_BYTES = 65_536


class Failed(Exception):  # noqa: N818 - the state
    """The page was not turned: the child has ended, or it took too long, or it said something else."""


class Turned(NamedTuple):
    """A page as text."""

    text: str
    is_cut: bool
    """Was some of it too deep to be reached?"""


class Warm:
    """One child for all pages of a session; a new one where it has ended. Its pages wait for each other."""

    def __init__(self, *, limits: decoder.Limits = LIMITS, idle_seconds: float = IDLE_SECONDS) -> None:
        self._limits = limits
        self._idle_seconds = idle_seconds
        self._turn = asyncio.Lock()
        self._child: _Child | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The child's, while it runs."""
        return None if self._child is None or self._child.is_over else self._child.pid

    def begin(self) -> None:
        """Start the child now, and not when the page is there."""
        if self._closed or self._starting is not None or self._turn.locked() or self.pid is not None:
            return
        self._starting = asyncio.create_task(self._started_early())
        self._starting.add_done_callback(lambda _: setattr(self, "_starting", None))

    async def turn(self, page: str, *, address: str, form: str) -> Turned:
        """The page as Markdown or text. Raises: Failed, with the child ended."""
        async with self._place():
            self._rest()
            try:
                child = await self._ready()
                async with asyncio.timeout(self._limits.seconds):
                    return await child.turn(page, address, form)
            except TimeoutError as error:
                await self._end()
                raise Failed(f"it took longer than {self._limits.seconds} seconds") from error
            except Failed:
                await self._end()
                raise
            except asyncio.CancelledError:
                await self._end()  # its answer would be taken for that to the next page
                raise
            finally:
                self._rest(after=self._idle_seconds)

    async def close(self) -> None:
        """End the child. No other is started."""
        self._closed = True
        self._rest()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        await self._end()

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._turn.acquire()
        except TimeoutError as error:
            raise Failed("the pages before it took too long") from error
        try:
            yield
        finally:
            self._turn.release()

    async def _started_early(self) -> None:
        async with self._turn:
            with contextlib.suppress(Failed, TimeoutError):
                await self._ready()
            self._rest(after=self._idle_seconds)

    async def _ready(self) -> "_Child":
        if self._child is not None and (self._child.is_over or self._child.has_more):
            await self._end()
        if self._child is None:
            if self._closed:
                raise Failed("the session is over")
            self._child = await _Child.start(self._limits)
            if self._closed:  # while it was started; whoever wanted it ends it
                raise Failed("the session is over")
            try:
                async with asyncio.timeout(START_SECONDS):
                    await self._child.ready()
            except BaseException:
                await self._end()
                raise
        return self._child

    def _rest(self, *, after: float | None = None) -> None:
        """End the child after so many seconds without a page."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if after is not None and self._child is not None and not self._closed:
            self._idle = asyncio.get_running_loop().call_later(after, self._child.kill)

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GONE_SECONDS):
                    await child.over.wait()


class _Child(asyncio.SubprocessProtocol):
    """The process: what it has said so far and nobody has read, and whether it is gone."""

    def __init__(self, limits: decoder.Limits) -> None:
        self.over = asyncio.Event()
        self.pid = 0
        self._limits = limits
        self._heard = bytearray()
        self._more = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(cls, limits: decoder.Limits) -> "_Child":
        where = folders()
        if where is None:
            raise Failed("its packages are not installed")
        order = {
            "decoding": _WALLS,
            "folders": where,
            "readable": _readable(where),
            "seconds": limits.seconds,
            "memory_bytes": limits.memory_bytes,
            "rules": decoder.rules().hex(),
        }
        apart: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
        try:
            transport, child = await asyncio.get_running_loop().subprocess_exec(
                lambda: cls(limits),
                *(sys.executable, "-I", "-S", _PROGRAM, json.dumps(order)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=os.path.abspath(os.sep),
                env=decoder.environment(),
                **apart,
            )
        except OSError as error:
            raise Failed(f"it does not start ({error.strerror})") from error
        child.pid = transport.get_pid()
        return child

    @property
    def is_over(self) -> bool:
        return self.over.is_set() or self._transport is None or self._transport.get_returncode() is not None

    @property
    def has_more(self) -> bool:
        """Has it said something that nobody asked for? Then a page has taken it over."""
        return bool(self._heard)

    async def ready(self) -> None:
        said = await self._line()
        if said.get("ready") is not True:
            raise Failed("it does not say that it is ready")

    async def turn(self, page: str, address: str, form: str) -> Turned:
        raw = page.encode("utf-8", "replace")
        # Only the process of this page knows it: what one of an earlier page says is no answer.
        secret = secrets.token_hex(16)
        order = {"id": secret, "address": address, "form": form, "length": len(raw)}
        assert self._transport is not None
        feed = self._transport.get_pipe_transport(0)
        if not isinstance(feed, asyncio.WriteTransport):
            raise Failed("it has ended")
        feed.write(json.dumps(order).encode() + b"\n")
        feed.write(raw)
        said = await self._line()
        if said.get("id") != secret or said.get("wrong") or not isinstance(length := said.get("length"), int):
            raise Failed("the page breaks it")
        text = await self._bytes(length)
        return Turned(text.decode("utf-8", "replace"), said.get("is_cut") is True)

    def kill(self) -> None:
        """End it and whatever it has started."""
        if self._transport is None:
            return
        if sys.platform != "win32" and self._transport.get_returncode() is None:
            signal_group(self.pid, signal.SIGKILL)
            # Closing all of it would also look whether it is gone, and take its end from whoever waits for that.
            for pipe in filter(None, map(self._transport.get_pipe_transport, (0, 1))):
                pipe.close()
        else:
            self._transport.close()

    async def _line(self) -> dict[str, Any]:
        while b"\n" not in self._heard:
            if len(self._heard) > _LINE_BYTES:
                raise Failed("its answer has no form")
            await self._wait()
        line, _, rest = self._heard.partition(b"\n")
        self._heard = rest
        try:
            said = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Failed("its answer has no form") from error
        if not isinstance(said, dict):
            raise Failed("its answer has no form")
        return said

    async def _bytes(self, count: int) -> bytes:
        if not 0 <= count <= self._limits.output_bytes:
            raise Failed("its answer is too long")
        while len(self._heard) < count:
            await self._wait()
        found = bytes(self._heard[:count])
        del self._heard[:count]
        return found

    async def _wait(self) -> None:
        if self.is_over:
            raise Failed("it has ended")
        self._more.clear()
        await self._more.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - only standard output is a pipe to read
        if len(self._heard) <= self._limits.output_bytes + _LINE_BYTES:
            self._heard += data
        else:
            self.kill()
        self._more.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - it is over however that was
        self._more.set()

    def process_exited(self) -> None:
        self._more.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as above
        if self._transport is not None:
            self._transport.close()
        self.over.set()
        self._more.set()


@functools.cache
def folders() -> list[str] | None:
    """Where the packages are; None where the one that converts is not installed."""
    return decoder.folders(PACKAGES) or decoder.folders(PACKAGES[:1])


def _readable(where: list[str]) -> list[str]:
    """What the child may still open of them: all of a folder of packages, and nothing beside them elsewhere."""
    shared = [folder for folder in where if os.path.basename(folder) in _SHARED]
    others = [os.path.join(folder, name) for folder in where if folder not in shared for name in PACKAGES]
    return [*shared, *others]
