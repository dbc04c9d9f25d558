"""Run programs to their end, with bounded memory for output and no process left behind.

`pipe` runs a filter: a program that is given a text and answers with another one.
"""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from ferrule.system.child import Attended, ChildProcess, Starter
from ferrule.system.command import Finished, Launch, forget, register, start
from ferrule.system.folder import open_folder
from ferrule.system.tree import ProcessTree, Roster

_TURN_READS = 4
"""Reads of one turn: a command that never stops writing must not keep the loop from the others."""
_ERROR_BYTES = 1 << 16


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
    launch = Launch(
        argv,
        cwd,
        env,
        apart=apart,
        log=log,
        log_limit_bytes=log_limit_bytes,
        head_chars=head_chars,
        tail_chars=tail_chars,
        grace_seconds=grace_seconds,
    )
    running = start(launch, on_output=on_output)
    try:
        if await running.wait(seconds) == "time":
            await running.stop(timed_out=True)
            await running.wait()
    except BaseException:
        running.abandon()
        await running.stop()
        raise
    finally:
        running.close()
    return running.result()


class Captured(NamedTuple):
    """What a helper program said."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    """Was it stopped because it said more than was wanted?"""


async def capture(argv: Sequence[str], *, cwd: str, limit_bytes: int, is_real: bool = False) -> Captured:
    """Run a helper program that starts no others, for its output; at the limit it is stopped.

    `is_real`: no part of `cwd` is a link, or it fails: who swaps a folder for one leads it nowhere.
    """
    pieces: list[bytes] = []
    left = limit_bytes

    def keep(data: bytes) -> bool:
        nonlocal left
        pieces.append(data[:left] if left < len(data) else data)
        left -= len(data)
        return left >= 0

    streamed = await stream(argv, cwd=cwd, on_chunk=keep, is_real=is_real)
    return streamed._replace(stdout=b"".join(pieces))


async def stream(
    argv: Sequence[str], *, cwd: str, on_chunk: Callable[[bytes], bool], is_real: bool = False
) -> Captured:
    """Like `capture`, but the output goes to `on_chunk` piece by piece, until that returns False."""
    with _enter_folder(cwd) if is_real else contextlib.nullcontext(cwd) as where:
        child = ChildProcess(argv, cwd=where, env=None, apart=True)
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


@contextlib.contextmanager
def _enter_folder(folder: str) -> Iterator[str]:
    """A folder that was opened without following a link, as a program can be started in it. Raises OSError."""
    if not os.path.isdir("/proc/self/fd"):
        yield folder  # the system has no other name for an open folder
        return
    with open_folder(os.sep) as top, top.below([part for part in folder.split(os.sep) if part]) as opened:
        yield f"/proc/self/fd/{opened.descriptor}"


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
    tree = ProcessTree()
    token = ""
    try:
        with tempfile.TemporaryFile(buffering=0) as given:
            left = memoryview(data)
            while left:
                left = left[given.write(left) :]
            given.seek(0)
            if roster is not None:
                token = roster.add(tree, command=" ".join(argv), cwd=cwd)
            with tree.number_children():
                child = ChildProcess(
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
            roster.record_pid(token, child.pid)
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
    return filtering.result()


class _Filtering:
    """One filter between its start and its last byte."""

    def __init__(self, child: ChildProcess, tree: ProcessTree, limit_bytes: int) -> None:
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

    def result(self) -> Piped:
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
