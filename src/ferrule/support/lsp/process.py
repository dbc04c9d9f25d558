"""A language server as a process: frames in both directions, what it complains of, and an end that leaves nothing."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ferrule.support.ending import Once, end, forget, let_go, register
from ferrule.support.launch import Launch, begin
from ferrule.support.lsp.framing import Framing, Garbled
from ferrule.support.pace import FRAME_BYTES, Pace
from ferrule.support.piping import Piping
from ferrule.support.shown import Shown
from ferrule.support.spout import Spout
from ferrule.support.tree import Tree

_GRACE_SECONDS = 0.5
_LATE_SECONDS = 0.2
_FIRST_CHARS, _COMPLAINTS_CHARS = 1024, 8192
_FIRST_LINES, _LAST_LINES = 3, 8
_SAID_CHARS = 800
"""Of its first lines, and of its last."""
_BACKLOG_BYTES = 256 << 20
_PATIENCE_SECONDS = 1e6
"""How long a message may take to be read: whoever waits for the answer has a time limit of their own."""


class Line(NamedTuple):
    """Whom a process tells what it says."""

    heard: Callable[[bytes], None]
    """Gets every message."""
    ended: Callable[[str], None]
    """Called once when it can answer no more, with the end of a sentence about why."""


class ServerProcess:
    """One process from its start to its last child."""

    def __init__(self, launch: Launch, line: Line) -> None:
        """Start it on the running loop; `launch.stdin` is to be a pipe.

        Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start.
        """
        self.why = ""
        """Why it can answer no more, as the end of a sentence; empty while it can."""
        self._line = line
        self._framing = Framing()
        self._complaints = Shown(_FIRST_CHARS, _COMPLAINTS_CHARS)
        self._backlog: deque[bytes] = deque()
        self._backlog_bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._stirred: asyncio.Future[None] | None = None
        self._stopping = self._settled = False
        self._exit_code = 0
        self._loop = asyncio.get_running_loop()
        self._tree = Tree()
        self._roster = launch.roster
        self._tidied = Once(self._tidy)
        self._done = launch.done
        piping = Piping(launch.starter)
        self._child, _, self._token = begin(launch._replace(starter=piping), self._tree)
        self.pid = self._child.pid
        self._output = Spout(piping.output, self._hear, self._stir)
        self._errors = Spout(piping.errors, self._complain, self._stir)
        self._pace = Pace((self._output, self._errors))
        self._child.watcher = self._stir
        register(self)

    @property
    def words(self) -> tuple[str, str]:
        """The first lines that it wrote to standard error, and the last; those alone, where there are no more."""
        lines = [line for line in self._complaints.text().splitlines() if line.strip()]
        last = "\n".join(lines[-_LAST_LINES:])
        first = "\n".join(lines[: min(_FIRST_LINES, len(lines) - _LAST_LINES)]) if len(lines) > _LAST_LINES else ""
        if not first and len(last) > _SAID_CHARS:
            first = last[:-_SAID_CHARS]
        return first[:_SAID_CHARS], last[-_SAID_CHARS:]

    def send(self, data: bytes) -> None:
        """Have it read this when it can."""
        if self.why or self._stopping or self._settled:
            return
        if not self._backlog:
            data = self._push(data)  # nearly always all of it, and at once
            if not data:
                return
        self._backlog.append(data)
        self._backlog_bytes += len(data)
        if self._backlog_bytes > _BACKLOG_BYTES:
            self.fail("reads nothing of what it is sent")
        elif self._writer is None or self._writer.done():
            self._writer = self._loop.create_task(self._write())

    def fail(self, why: str) -> None:
        """It is to end, for what it did: `why` is the end of a sentence about it."""
        if not self.why and not self._stopping:
            self.why = why
            self._output.stop("over")
            self._tree.kill()
            self._line.ended(why)

    async def stop(self) -> None:
        """Close its input and, after a while, end it and all that it has started."""
        try:
            if not self._settled:
                self._stopping = True
                await self._wind_up()
            self._part()
            if self._child.attended is not None or self._done is not None:
                await asyncio.to_thread(self._tidied)
        finally:
            self.close()

    async def _wind_up(self) -> None:
        await self._finish_writing()
        if self._child.input is not None:
            self._child.input.close()
        await self._wait_until_ended(_GRACE_SECONDS)
        until = self._loop.time() + _GRACE_SECONDS
        await end(self._tree, self._child, set(), self._nap, lambda: self._loop.time() < until)

    def close(self) -> None:
        """Kill all of it now, and let go of everything."""
        self._part()
        self._tidied()

    def _part(self) -> None:
        if self._settled:
            return
        self._settled = True
        self._tree.kill()
        self._pace.close()
        for pipe in (self._output, self._errors):
            pipe.drain()
            pipe.shut()
        if self._writer is not None:
            self._writer.cancel()
        self._exit_code = self._child.exit_code  # it is reaped by being asked: from now on its id may be another's
        self._child.close()
        self._tree.leave()
        if self._roster is not None:
            self._roster.remove(self._token)
        forget(self)

    def _tidy(self) -> None:
        """What may take a moment: end what nobody can see from here, and take back what was put there for it."""
        if self._child.attended is not None:
            self._child.attended.end()
        if self._done is not None:
            self._done()

    def _hear(self, data: bytes) -> None:
        if self.why or self._stopping:
            return
        try:
            messages = self._framing.feed(data)
        except Garbled as error:
            self.fail(str(error))
            return
        for message in messages:
            self._pace.spend(len(message) + FRAME_BYTES)
            self._line.heard(message)

    def _complain(self, data: bytes) -> None:
        self._complaints.feed(data)
        self._pace.spend(len(data))

    def _how(self) -> str:
        """How it ended."""
        code = self._exit_code
        how = f"was ended by signal {code - 128}" if code > 128 else f"ended with exit code {code}"
        printed = self._framing.rest.decode(errors="replace").strip()
        return f"{how} after it wrote {printed[:300]!r}" if printed else how

    def _stir(self) -> None:
        """The process or one of its pipes has ended."""
        if self._stirred is not None:
            let_go(self._stirred)
        if self.why or self._stopping:
            return
        if self._child.ended:
            self._output.drain()
            self._errors.drain()
            self._part()
            self.fail(self._how())
        elif not self._output.open:
            # A process that ends closes its output first, and how it ended says more.
            self._loop.call_later(_LATE_SECONDS, self.fail, "closed its output")

    def _push(self, data: bytes) -> bytes:
        """Write what there is room for; the rest."""
        assert self._child.input is not None
        try:
            return data[self._child.input.push(data) :]
        except BrokenPipeError:
            return data  # whoever writes it then finds out why

    async def _write(self) -> None:
        assert self._child.input is not None
        try:
            while self._backlog:
                await self._child.input.write(self._backlog[0], seconds=_PATIENCE_SECONDS)
                self._backlog_bytes -= len(self._backlog.popleft())
        except OSError:
            if not self._child.ended:
                await self._wait_until_ended(_GRACE_SECONDS)  # its end says more
            self.fail("reads no more")

    async def _finish_writing(self) -> None:
        """What it was told last, such as that it is to end, is still read if it reads at all."""
        if self._writer is not None and not self._writer.done():
            await asyncio.wait([self._writer], timeout=_GRACE_SECONDS)
            self._writer.cancel()

    async def _wait_until_ended(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        while not self._child.ended and self._loop.time() < until:
            await self._nap(until)

    async def _nap(self, until: float) -> None:
        """Give way until the process or a pipe ends, or the clock shows `until`."""
        self._stirred = self._loop.create_future()
        timer = self._loop.call_at(until, let_go, self._stirred)
        try:
            await self._stirred
        finally:
            timer.cancel()
            self._stirred = None
