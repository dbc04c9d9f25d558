"""A language server as a process: frames in both directions, what it complains of, and an end that leaves nothing."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from ferrule.support.ending import Once
from ferrule.support.launch import Launch
from ferrule.support.lsp.framing import Framing, Garbled
from ferrule.support.pace import FRAME_BYTES
from ferrule.support.served import GRACE_SECONDS, Served
from ferrule.support.shown import Shown

_FIRST_CHARS, _COMPLAINTS_CHARS = 1024, 8192
_FIRST_LINES, _LAST_LINES = 3, 8
_SAID_CHARS = 800
"""Of its first lines, and of its last."""
_BACKLOG_BYTES = 256 << 20


class Line(NamedTuple):
    """Whom a process tells what it says."""

    heard: Callable[[bytes], None]
    """Gets every message."""
    ended: Callable[[str], None]
    """Called once when it can answer no more, with the end of a sentence about why."""


class ServerProcess(Served):
    """One process from its start to its last child."""

    def __init__(self, launch: Launch, line: Line) -> None:
        """Start it as any server, and tell the line of it."""
        self._line = line
        self._framing = Framing()
        self._complaints = Shown(_FIRST_CHARS, _COMPLAINTS_CHARS)
        self._tidied = Once(self._tidy)
        self._done = launch.done
        super().__init__(launch)

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
        if self._backlog_bytes + len(data) > _BACKLOG_BYTES:
            self.fail("reads nothing of what it is sent")
        else:
            self._queue(data)

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
        await self._wait_and_end()

    def close(self) -> None:
        """Kill all of it now, and let go of everything."""
        self._part()
        self._tidied()

    def _tidy(self) -> None:
        """What may take a moment: end what nobody can see from here, and take back what was put there for it."""
        if self._child.attended is not None:
            self._child.attended.end()
        if self._done is not None:
            self._done()

    def _hear(self, data: bytes) -> None:
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

    def _died(self) -> None:
        self._part()
        how, printed = self._how(), self._framing.rest.decode(errors="replace").strip()
        self.fail(f"{how} after it wrote {printed[:300]!r}" if printed else how)

    def _lost(self) -> None:
        self._tree.kill()
        self._line.ended(self.why)

    def _push(self, data: bytes) -> bytes:
        """Write what there is room for; the rest."""
        assert self._child.input is not None
        try:
            return data[self._child.input.push(data) :]
        except BrokenPipeError:
            return data  # whoever writes it then finds out why

    async def _finish_writing(self) -> None:
        """What it was told last, such as that it is to end, is still read if it reads at all."""
        if self._writer is not None and not self._writer.done():
            await asyncio.wait([self._writer], timeout=GRACE_SECONDS)
            self._writer.cancel()
