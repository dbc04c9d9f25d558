"""Running a filter: a program that is given a text and answers with another one."""

import asyncio
import signal
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from ferrule.support.ending import forget, register
from ferrule.support.roster import Roster
from ferrule.support.starter import Attended, Starter
from ferrule.support.tree import Child, Tree

_TURN_READS = 4
"""Reads of one turn: a program that never stops writing must not keep the loop from the others."""
_ERROR_BYTES = 1 << 16
_LATE_SECONDS = 0.2
"""How long what is still in the pipes is waited for after the program itself has ended."""
_KILLED_SECONDS = 2.0


class Piped(NamedTuple):
    """What a filter answered."""

    exit_code: int
    """As shells count: 128 and the signal's number where a signal ended it."""
    stdout: bytes
    stderr: bytes
    """Its beginning."""
    stopped: Literal["", "time", "size"]
    """Which limit it was stopped at, if at one; then the rest says nothing."""


async def pipe(
    argv: Sequence[str],
    data: bytes,
    *,
    cwd: str,
    env: Mapping[str, str],
    seconds: float,
    limit_bytes: int,
    roster: Roster | None = None,
    starter: Starter | None = None,
    descriptors: Sequence[int] = (),
) -> Piped:
    """Give `data` to a program as its standard input and take what it writes, until it exits or a limit is reached.

    However this ends, also by cancellation, no process that the program has started lives on. The input is a file
    that has no name, not a pipe: a program that does not read it, or answers before it has read it, cannot get stuck.
    `starter` starts it, where that is not done as for any program, and it inherits `descriptors`.

    Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start.
    """
    import tempfile  # only filters need it

    tree = Tree()
    token = ""
    try:
        with tempfile.TemporaryFile(buffering=0) as given:
            left = memoryview(data)
            while left:
                left = left[given.write(left) :]
            given.seek(0)
            if roster is not None:
                token = roster.add(tree, command=" ".join(argv), cwd=cwd)
            with tree.numbering():
                child = Child(
                    argv,
                    cwd=cwd,
                    env=tree.environment(env),
                    apart=True,
                    stdin=given.fileno(),
                    starter=starter,
                    descriptors=descriptors,
                )
        tree.lead(child.pid, born=child.attended.born if child.attended is not None else None)
        filtering = _Filtering(child, tree, limit_bytes)
        if roster is not None:
            roster.started(token, child.pid)
        try:
            await filtering.work(seconds)
        finally:
            try:
                await filtering.end()
            finally:
                filtering.close()
    finally:
        if roster is not None:
            roster.remove(token)
    return filtering.piped()


class _Filtering:
    """One filter between its start and its last byte."""

    def __init__(self, child: Child, tree: Tree, limit_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._child = child
        self._tree = tree
        self._output, self._complaints = child.pipes
        self._left = limit_bytes
        self._pieces: list[bytes] = []
        self._errors = b""
        self._stopped: Literal["", "time", "size"] = ""
        self._over = False
        register(self)

    async def work(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        ending = False
        while True:
            self._take()
            if self._child.ended and not ending:
                ending, until = True, self._loop.time() + _LATE_SECONDS
            if self._stopped or (ending and not self._output.open and not self._complaints.open):
                return
            if self._loop.time() >= until:
                self._stopped = "" if ending else "time"
                return
            await self._child.turn(until)

    async def end(self) -> None:
        """Kill what is left. A filter has nothing to tidy up: its answer counts only when it has ended by itself."""
        if self._child.attended is not None:
            # It may be where its processes cannot be seen from here.
            await asyncio.to_thread(_end_all, self._child.attended, ended=self._child.ended)
        until = self._loop.time() + _KILLED_SECONDS
        pause_seconds = 0.001
        while (living := self._tree.find()) or not self._child.ended:
            self._tree.signal(signal.SIGKILL, living)
            now = self._loop.time()
            if now >= until:
                return
            await self._child.turn(min(until, now + pause_seconds))
            pause_seconds = min(2 * pause_seconds, 0.05)
        self._over = True

    def close(self) -> None:
        if not self._over:  # cancelled twice, or it would not die
            self._tree.kill()
        self._child.close()
        self._tree.leave()
        forget(self)

    def piped(self) -> Piped:
        return Piped(self._child.exit_code, b"".join(self._pieces), self._errors, self._stopped)

    def _take(self) -> None:
        for _ in range(_TURN_READS):
            data = self._output.read()
            if not data:
                break
            self._left -= len(data)
            if self._left < 0:
                self._stopped = "size"
                return
            self._pieces.append(data)
        self._errors = (self._errors + self._complaints.read())[:_ERROR_BYTES]


def _end_all(attended: Attended, *, ended: bool) -> None:
    # How it ended by itself is heard before anything is killed.
    if not (ended and attended.alone()):
        attended.end()
