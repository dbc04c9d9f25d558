"""A server as a process of our own: what it says comes in frames, what it complains of is kept, and all of it ends."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.output.clean import clean
from ferrule.sources.mcp.frames import Frames, TooLong
from ferrule.sources.mcp.sieve import Sieve
from ferrule.sources.mcp.streams import Incoming, Outgoing
from ferrule.support.launch import Launch
from ferrule.support.pace import FRAME_BYTES, QUESTION_BYTES
from ferrule.support.roster import Roster
from ferrule.support.served import Served
from ferrule.support.waiters import let_go

if TYPE_CHECKING:
    import asyncio

    from mcp.shared.message import SessionMessage

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
        self._incoming = Incoming(lambda: self._output.stop("full"), lambda: self._output.resume("full"))

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

    def _died(self) -> None:
        self.fail(_ENDED)

    def _lost(self) -> None:
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
