"""A server as a process of our own: what it says comes in frames, what it complains of is kept, and all of it ends."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.output.clean import clean
from ferrule.sources.mcp.frames import Frames, TooLong
from ferrule.sources.mcp.sieve import Sieve
from ferrule.sources.mcp.streams import Incoming, Outgoing
from ferrule.support.ending import end, forget, let_go, register
from ferrule.support.launch import Launch, begin
from ferrule.support.pace import FRAME_BYTES, QUESTION_BYTES, Pace
from ferrule.support.piping import Piping
from ferrule.support.roster import Roster
from ferrule.support.spout import Spout
from ferrule.support.tree import Tree

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

_GRACE_SECONDS = 0.5
"""So long a server has to end by itself when its input is closed, and again after TERM."""
_LATE_SECONDS = 0.2
_COMPLAINTS_BYTES = 8192
_LAST_LINES, _LAST_CHARS = 6, 600
_BACKLOG_BYTES = 1 << 20
_PATIENCE_SECONDS = 1e6
"""How long a message may take to be read: whoever waits for the answer has a time limit of their own."""

_ENDED = "ended"


class ProcessTransport:
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
        self.why = ""
        """Why it can answer no more, as the end of a sentence about it; empty while it can."""
        self.junk_lines = 0
        """Lines that were no messages."""
        self.answered = False
        """Has it ever sent a message?"""
        self._ended = ended
        self._frame_bytes = frame_bytes
        self._frames = Frames(frame_bytes)
        self._complaints = b""
        self._backlog: deque[bytes] = deque()
        self._backlog_bytes = 0
        self._writer: asyncio.Task[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._stirred: asyncio.Future[None] | None = None
        self._stopping = self._settled = False
        self._loop = asyncio.get_running_loop()
        piping, self._tree = Piping(), Tree()
        launch = Launch(argv, cwd, env, stdin="pipe", roster=roster, starter=piping)
        self._roster = roster
        self._child, _, self._token = begin(launch, self._tree)
        self.pid = self._child.pid
        self._output = Spout(piping.output, self._hear, self._stir)
        self._errors = Spout(piping.errors, self._complain, self._stir)
        self._output.stop("not read yet")
        pipes = (self._output, self._errors)
        self._pace = Pace(pipes)
        self._incoming = Incoming(lambda: self._output.stop("full"), lambda: self._output.resume("full"))
        self._child.watcher = self._stir
        register(self)

    async def __aenter__(self) -> Any:
        """From now on it is listened to: the package is there to understand it."""
        self._output.resume("not read yet")
        return self._incoming, Outgoing(self._send, self._wait_for_room)

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        lines = clean(self._complaints.decode(errors="replace")).strip().splitlines()
        return "\n".join(lines[-_LAST_LINES:])[-_LAST_CHARS:]

    def fail(self, why: str) -> None:
        """It is to end, for what it did: `why` is the end of a sentence about it."""
        if not self.why and not self._stopping:
            self.why = why
            self._output.stop("over")
            self._incoming.end()
            self._ended()

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
            await self._wait_until_ended(_GRACE_SECONDS)
            until = self._loop.time() + _GRACE_SECONDS
            await end(self._tree, self._child, set(), self._nap, lambda: self._loop.time() < until)
        finally:
            self.close()

    def close(self) -> None:
        """Kill all of it now, and let go of everything."""
        if self._settled:
            return
        self._stopping = self._settled = True
        self._tree.kill()
        self._pace.close()
        for pipe in (self._output, self._errors):
            pipe.drain()
            pipe.shut()
        if self._writer is not None:
            self._writer.cancel()
        code = self._child.exit_code  # it is reaped by being asked: from now on its id may be another's
        if self.why == _ENDED:
            self.why = f"was ended by signal {code - 128}" if code > 128 else f"ended with exit code {code}"
        self._child.close()
        self._tree.leave()
        if self._roster is not None:
            self._roster.remove(self._token)
        forget(self)
        self._make_room()

    def _hear(self, data: bytes) -> None:
        if self.why or self._stopping:
            return
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
            message = self.sieve.rescued(line)
        if message is None:
            self.junk_lines += 1
            for error in self.sieve.broken(line):
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
        self._pace.spend(len(data))

    def _stir(self) -> None:
        """The process or one of its pipes has ended."""
        if self._stirred is not None:
            let_go(self._stirred)
        if self.why or self._stopping:
            return
        if self._child.ended:
            self._output.drain()
            self._errors.drain()
            self.fail(_ENDED)
        elif not self._output.open:
            # A process that ends closes its output first, and how it ended says more.
            self._loop.call_later(_LATE_SECONDS, self.fail, "closed its output")

    def _send(self, item: "SessionMessage") -> None:
        import anyio  # came with the package

        if self.why or self._stopping:
            raise anyio.BrokenResourceError
        self.sieve.let_out(item.message)
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        self._backlog.append(data)
        self._backlog_bytes += len(data)
        if self._writer is None or self._writer.done():
            self._writer = self._loop.create_task(self._write())

    async def _write(self) -> None:
        assert self._child.input is not None
        try:
            while self._backlog:
                await self._child.input.write(self._backlog[0], seconds=_PATIENCE_SECONDS)
                self._backlog_bytes -= len(self._backlog.popleft())
                self._make_room()
        except OSError:
            if not self._child.ended:
                await self._wait_until_ended(_GRACE_SECONDS)  # its end says more
            self.fail("reads no more")

    def _wait_for_room(self) -> "asyncio.Future[None] | None":
        if self._backlog_bytes <= _BACKLOG_BYTES or self.why or self._settled:
            return None
        if self._room is None:
            self._room = self._loop.create_future()
        return self._room

    def _make_room(self) -> None:
        if self._room is not None and (self._backlog_bytes <= _BACKLOG_BYTES or self._settled):
            let_go(self._room)
            self._room = None

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
