"""Whether a file or a folder is still the one that was looked at, told without reading it again."""

import os
import stat
import time

Stamp = tuple[int, int, int, int, int]

_TICK_NS = 50_000_000
"""Longer than the steps in which any file system counts time: within one, a change leaves no trace."""


def stamp(status: os.stat_result) -> Stamp:
    """What changes with every change of the content. Whoever sets the times cannot set the last of them."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def is_settled(status: os.stat_result) -> bool:
    """Would a change from now on show in the stamp? Only then may what was found be remembered by it."""
    return status.st_ctime_ns + _TICK_NS < time.time_ns()


def read_regular(path: str, most: int, *, follow: bool) -> tuple[bytes, os.stat_result]:
    """All bytes of an ordinary file, as they were at one moment.

    Raises `OSError`, also for what is no ordinary file, has more bytes than `most`, or changed meanwhile.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode) or before.st_size > most:
            raise OSError(f"{path} is no ordinary file of at most {most} bytes")
        pieces = []
        left = before.st_size + 1
        while left > 0 and (piece := os.read(descriptor, left)):
            pieces.append(piece)
            left -= len(piece)
        raw = b"".join(pieces)
        if len(raw) != before.st_size or stamp(os.fstat(descriptor)) != stamp(before):
            raise OSError(f"{path} changed while it was read")
        return raw, before
    finally:
        os.close(descriptor)
