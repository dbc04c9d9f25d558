"""Running programs: memory that output cannot fill, and an end that leaves no process."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ferrule.support.tail import Ends, Log
from ferrule.support.tree import Child, Tree

_TURN_READS = 4
"""Reads of one turn: a command that never stops writing must not keep the loop from the others."""
_SAY_SECONDS = 0.1
_SAY_CHARS = 8192
_KILLED_SECONDS = 2.0
_ERROR_BYTES = 1 << 16


class Finished(NamedTuple):
    """What came of a command."""

    exit_code: int
    """As shells count: 128 and the signal's number where a signal ended it."""
    text: str
    """The ends of the output, with the errors among it unless those are apart."""
    errors: str
    """The ends of the errors, where they are apart."""
    missing_chars: int
    """Characters of the output that lie between its ends."""
    total_bytes: int
    total_chars: int
    logged_bytes: int
    timed_out: bool
    survivors_killed: int
    """Processes besides the command that still ran; where they cannot be counted, 1 for all of them."""
    log_error: str | None
    """Why the log ends early, where that is not its limit."""


async def run(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    log: str | None,
    log_limit_bytes: int,
    tail_chars: int,
    head_chars: int = 0,
    apart: bool = False,
    on_output: Callable[[str], None] | None = None,
    seconds: float | None = None,
    grace_seconds: float = 0.2,
) -> Finished:
    """Run a command until it exits, or for at most `seconds`; then end whatever it has started.

    The exit counts, not the end of the output: a background process that keeps the pipe open still has
    `grace_seconds` to finish writing. However this ends, also by cancellation, no process of the command lives
    on: SIGTERM, and `grace_seconds` later SIGKILL. `log` is a path where nothing exists yet; it receives the raw
    bytes, its owner alone can read it, and the caller removes it. `on_output` gets the newest text, at most ten
    times a second.

    Raises: FileNotFoundError, NotADirectoryError, PermissionError or another OSError when it cannot start;
    FileExistsError when there is something at `log`.
    """
    tree = Tree()
    kept = Log(log, log_limit_bytes)
    try:
        with tree.numbering():
            child = Child(argv, cwd=cwd, env=tree.environment(env), apart=apart, session=True)
    except OSError:
        kept.discard()
        raise
    running = _Running(child, tree, kept, [Ends(head_chars, tail_chars) for _ in child.pipes], on_output)
    try:
        await running.work(seconds, grace_seconds)
    except BaseException:
        await running.abandon(grace_seconds)
        raise
    finally:
        running.close()
    return running.finished()


class _Running:
    """One command between its start and its last byte."""

    def __init__(
        self, child: Child, tree: Tree, log: Log, ends: Sequence[Ends], on_output: Callable[[str], None] | None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._child = child
        self._tree = tree
        self._log = log
        self._ends = ends
        self._say = on_output
        self._news = ""
        self._say_at = 0.0
        self._survivors: set[int] = set()
        self._timed_out = False
        self._over = False
        tree.lead(child.pid)
        for pipe in child.pipes:
            pipe.eager = on_output is not None

    async def work(self, seconds: float | None, grace_seconds: float) -> None:
        child = self._child
        await self._pump(None if seconds is None else self._loop.time() + seconds, lambda: child.ended)
        self._timed_out = not child.ended
        if child.ended:
            await self._pump(self._loop.time() + grace_seconds, lambda: not any(pipe.open for pipe in child.pipes))
        await self._end(grace_seconds)
        self._take(reads=64)
        if self._say is not None and self._news:
            self._say(self._news)

    async def abandon(self, grace_seconds: float) -> None:
        self._say = None
        for pipe in self._child.pipes:
            pipe.shut()
        await self._end(grace_seconds)

    def close(self) -> None:
        if not self._over:  # cancelled twice: no time for manners
            self._tree.kill()
        self._child.close()
        self._log.close()

    def finished(self) -> Finished:
        ends = self._ends
        return Finished(
            exit_code=self._child.exit_code,
            text=ends[0].text(),
            errors="".join(other.text() for other in ends[1:]),
            missing_chars=sum(one.missing_chars for one in ends),
            total_bytes=sum(one.total_bytes for one in ends),
            total_chars=sum(one.total_chars for one in ends),
            logged_bytes=self._log.logged_bytes,
            timed_out=self._timed_out,
            survivors_killed=len(self._survivors),
            log_error=self._log.error,
        )

    async def _pump(self, until: float | None, done: Callable[[], bool]) -> None:
        while True:
            self._take(reads=_TURN_READS)
            now = self._loop.time()
            if self._say is not None and self._news and now >= self._say_at:
                news, self._news, self._say_at = self._news, "", now + _SAY_SECONDS
                self._say(news)
            if done() or (until is not None and now >= until):
                return
            times = [time for time in (until, self._say_at if self._news else None) if time is not None]
            await self._child.turn(min(times, default=None))

    def _take(self, *, reads: int) -> None:
        for pipe, ends in zip(self._child.pipes, self._ends, strict=True):
            for _ in range(reads):
                data = pipe.read()
                if not data:
                    break
                self._log.write(data)
                text = ends.feed(data)
                if self._say is not None:
                    self._news = (self._news + text[-_SAY_CHARS:])[-_SAY_CHARS:]

    async def _end(self, grace_seconds: float) -> None:
        for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, _KILLED_SECONDS)):
            until = self._loop.time() + seconds
            pause_seconds = 0.001
            told: set[int] | None = None
            while (living := self._tree.find()) or not self._child.ended:
                self._survivors.update(living)
                fresh = set(living).difference(told or ())
                if fresh or told is None:
                    self._tree.signal(number, tuple(fresh))
                    told = fresh.union(told or ())
                now = self._loop.time()
                if now >= until:
                    break
                await self._pump(min(until, now + pause_seconds), lambda: False)
                pause_seconds = min(2 * pause_seconds, 0.05)
            else:
                self._over = True
                return


class Captured(NamedTuple):
    """What a helper program said."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    """Was it stopped because it said more than was wanted?"""


async def capture(argv: Sequence[str], *, cwd: str, limit_bytes: int) -> Captured:
    """Run a helper program that starts no others, for its output; at the limit it is stopped."""
    pieces: list[bytes] = []
    left = limit_bytes

    def keep(data: bytes) -> bool:
        nonlocal left
        pieces.append(data[:left] if left < len(data) else data)
        left -= len(data)
        return left >= 0

    streamed = await stream(argv, cwd=cwd, on_chunk=keep)
    return streamed._replace(stdout=b"".join(pieces))


async def stream(argv: Sequence[str], *, cwd: str, on_chunk: Callable[[bytes], bool]) -> Captured:
    """Like `capture`, but the output goes to `on_chunk` piece by piece, until that returns False."""
    child = Child(argv, cwd=cwd, env=None, apart=True)
    output, complaints = child.pipes
    errors = b""
    stopped = False
    until: float | None = None
    try:
        while not stopped and (output.open or complaints.open or not child.ended):
            await child.turn(until)
            for _ in range(_TURN_READS):
                data = output.read()
                if not data:
                    break
                if not on_chunk(data):
                    stopped = True
                    break
            errors = (errors + complaints.read())[:_ERROR_BYTES]
            if child.ended and until is None:
                until = asyncio.get_running_loop().time() + 1.0
            elif until is not None and asyncio.get_running_loop().time() >= until:
                break
    finally:
        child.close()
    return Captured(child.exit_code, b"", errors, truncated=stopped)


def program(name: str, *, outside: Sequence[str] = ()) -> str | None:
    """The program of that name on PATH, but none in or linked into a folder of `outside`."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name + ".exe" * (os.name == "nt"))
        if os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK):
            places = (os.path.normpath(path), os.path.realpath(path))
            roots = [root for one in outside for root in (os.path.abspath(one), os.path.realpath(one))]
            if not any(place.startswith(root.rstrip(os.sep) + os.sep) for place in places for root in roots):
                return path
    return None


def shell(*, outside: Sequence[str] = ()) -> str:
    """Where bash is, or else the system's plain shell."""
    return program("bash", outside=outside) or "/bin/sh"
