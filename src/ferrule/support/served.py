"""A server as a process of our own: written to in turn, heard at a pace, and ended with all that it has started."""

import asyncio
from collections import deque

from ferrule.support.ending import end, forget, register
from ferrule.support.launch import Launch, begin
from ferrule.support.pace import Pace
from ferrule.support.piping import Piping
from ferrule.support.spout import Spout
from ferrule.support.tree import Tree
from ferrule.support.waiters import Waiters

GRACE_SECONDS = 0.5
"""So long a server has to end by itself when its input is closed, and again after TERM."""
_LATE_SECONDS = 0.2
_PATIENCE_SECONDS = 1e6
"""How long a message may take to be read: whoever waits for the answer has a time limit of their own."""


class Served:
    """One process from its start to its last child. What it says and what becomes of it is its kind's to know."""

    def __init__(self, launch: Launch) -> None:
        """Start it on the running loop; `launch.stdin` is to be a pipe.

        Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start.
        """
        self.why = ""
        """Why it can answer no more, as the end of a sentence about it; empty while it can."""
        self._backlog: deque[bytes] = deque()
        self._backlog_bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._stirred = Waiters()
        self._stopping = self._settled = False
        self._exit_code = 0
        self._loop = asyncio.get_running_loop()
        self._tree = Tree()
        self._roster = launch.roster
        piping = Piping(launch.starter)
        self._child, _, self._token = begin(launch._replace(starter=piping), self._tree)
        self.pid = self._child.pid
        self._output = Spout(piping.output, self._read, self._stir)
        self._errors = Spout(piping.errors, self._read_errors, self._stir)
        self._pace = Pace((self._output, self._errors))
        self._child.watcher = self._stir
        register(self)

    def fail(self, why: str) -> None:
        """It is to end, for what it did: `why` is the end of a sentence about it."""
        if not self.why and not self._stopping:
            self.why = why
            self._output.stop("over")
            self._lost()

    def close(self) -> None:
        """Kill all of it now, and let go of everything."""
        raise NotImplementedError

    def _hear(self, data: bytes) -> None:
        """Of its output, while it can answer."""
        raise NotImplementedError

    def _complain(self, data: bytes) -> None:
        """Of its standard error."""
        raise NotImplementedError

    def _died(self) -> None:
        """It has ended by itself, and all that it said was heard."""
        raise NotImplementedError

    def _lost(self) -> None:
        """Called once when it can answer no more."""
        raise NotImplementedError

    def _wrote(self) -> None:
        """It has read one message of the backlog."""

    def _queue(self, data: bytes) -> None:
        """Have it read this after what it has not read yet."""
        self._backlog.append(data)
        self._backlog_bytes += len(data)
        if self._writer is None or self._writer.done():
            self._writer = self._loop.create_task(self._write())

    async def _wait_and_end(self) -> None:
        """Its input is closed: after a while, end it and all that it has started."""
        await self._wait_until_ended()
        until = self._loop.time() + GRACE_SECONDS
        await end(self._tree, self._child, set(), self._stirred.wait, lambda: self._loop.time() < until)

    def _part(self) -> None:
        """Kill what is left of it, and let go of it."""
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

    def _how(self) -> str:
        """How it ended, once that is known."""
        code = self._exit_code
        return f"was ended by signal {code - 128}" if code > 128 else f"ended with exit code {code}"

    def _read(self, data: bytes) -> None:
        if not self.why and not self._stopping:
            self._hear(data)

    def _read_errors(self, data: bytes) -> None:
        self._complain(data)
        self._pace.spend(len(data))

    def _stir(self) -> None:
        """The process or one of its pipes has ended."""
        self._stirred.wake()
        if self.why or self._stopping:
            return
        if self._child.ended:
            self._output.drain()
            self._errors.drain()
            self._died()
        elif not self._output.open:
            # A process that ends closes its output first, and how it ended says more.
            self._loop.call_later(_LATE_SECONDS, self.fail, "closed its output")

    async def _write(self) -> None:
        assert self._child.input is not None
        try:
            while self._backlog:
                await self._child.input.write(self._backlog[0], seconds=_PATIENCE_SECONDS)
                self._backlog_bytes -= len(self._backlog.popleft())
                self._wrote()
        except OSError:
            if not self._child.ended:
                await self._wait_until_ended()  # its end says more
            self.fail("reads no more")

    async def _wait_until_ended(self) -> None:
        until = self._loop.time() + GRACE_SECONDS
        while not self._child.ended and self._loop.time() < until:
            await self._stirred.wait(until)
