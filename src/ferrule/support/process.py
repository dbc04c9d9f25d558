"""Running programs: memory that output cannot fill, and an end that leaves no process."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ferrule.support.beneath import open_folder
from ferrule.support.launch import Finished, Launch
from ferrule.support.programs import program, shell
from ferrule.support.running import start
from ferrule.support.tree import Child

__all__ = ["Captured", "Finished", "capture", "program", "run", "shell", "stream"]

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
    return running.finished()


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
    with _entered(cwd) if is_real else contextlib.nullcontext(cwd) as where:
        child = Child(argv, cwd=where, env=None, apart=True)
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
def _entered(folder: str) -> Iterator[str]:
    """A folder that was opened without following a link, as a program can be started in it. Raises OSError."""
    if not os.path.isdir("/proc/self/fd"):
        yield folder  # the system has no other name for an open folder
        return
    with open_folder(os.sep) as top, top.below([part for part in folder.split(os.sep) if part]) as opened:
        yield f"/proc/self/fd/{opened.descriptor}"
