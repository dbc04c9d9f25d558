"""Limits for a command: how much memory, how many processes and files it may have, and how large these may become."""

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Sequence
from typing import NamedTuple

_BLOCK_BYTES = 512
"""What `ulimit -f` counts in, where the shell is called sh."""


class Limits(NamedTuple):
    """None: as the engine's own process has it."""

    memory_mb: int | None = None
    """Address space of each process of the command."""
    processes: int | None = None
    """Processes and threads that the user may have besides those that there are when the command starts."""
    open_files: int | None = None
    """Descriptors of each process."""
    file_mb: int | None = None
    """How large a file may become."""


def limited(argv: Sequence[str], limits: Limits | None) -> Sequence[str]:
    """The command as it runs under the limits: a shell sets them and gives way to it."""
    if limits is None or not any(limit is not None for limit in limits):
        return argv
    steps = []
    if limits.open_files is not None:
        steps.append(f"ulimit -n {int(limits.open_files)}")
    if limits.file_mb is not None:
        steps.append(f"ulimit -f {(int(limits.file_mb) << 20) // _BLOCK_BYTES}")
    if limits.processes is not None and _counts_processes():
        most = _processes_now() + int(limits.processes)
        steps.append(f"{{ ulimit -u {most} 2>/dev/null || ulimit -p {most}; }}")  # the letter depends on the shell
    if limits.memory_mb is not None and _counts_memory():
        steps.append(f"ulimit -v {int(limits.memory_mb) << 10}")
    # A limit that cannot be set ends it: a command does not run without the limits that were asked for.
    script = " && ".join([*steps, 'exec "$@"; exit 126'])
    return ["/bin/sh", "-c", script, "sh", *argv] if steps else argv


def unenforced(limits: Limits | None) -> tuple[str, ...]:
    """What of the limits nothing enforces here, each as a sentence."""
    lacks = []
    if limits is not None and limits.processes is not None and not _counts_processes():
        lacks.append(
            "The number of processes is not limited: the system counts them for other users than root, and on Linux."
        )
    if limits is not None and limits.memory_mb is not None and not _counts_memory():
        lacks.append("Memory is not limited: the system does not hold processes to a limit of address space.")
    return tuple(lacks)


def reached(limits: Limits | None, exit_code: int, text: str) -> str:
    """Which limit ended a command, as a sentence, as far as its exit code and what it said at the end tell; or ""."""
    if limits is None or exit_code == 0:
        return ""
    end = text[-2000:]
    if limits.file_mb is not None and (exit_code == _signalled("SIGXFSZ") or os.strerror(errno.EFBIG) in end):
        return f"It wrote a file that would have become larger than {limits.file_mb:,} MB."
    if limits.open_files is not None and os.strerror(errno.EMFILE) in end:
        return f"It opened more than {limits.open_files:,} files at once."
    if limits.processes is not None and os.strerror(errno.EAGAIN) in end:
        return f"It started more than {limits.processes:,} processes."
    if limits.memory_mb is not None and _is_out_of_memory(exit_code, end):
        return f"It needed more than {limits.memory_mb:,} MB of memory."
    return ""


def _is_out_of_memory(exit_code: int, end: str) -> bool:
    said = (os.strerror(errno.ENOMEM), "MemoryError", "out of memory", "bad_alloc", "memory exhausted")
    return any(words in end for words in said) or exit_code in map(_signalled, ("SIGSEGV", "SIGABRT", "SIGBUS"))


def _signalled(name: str) -> int:
    return 128 + getattr(signal, name, 1 << 10)


def _counts_processes() -> bool:
    return sys.platform == "linux" and os.geteuid() != 0


def _counts_memory() -> bool:
    return sys.platform == "linux"


def _processes_now() -> int:
    """The processes and threads that this user has: the system's limit counts them all, whoever started them."""
    count, mine = 0, os.geteuid()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == mine:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count
