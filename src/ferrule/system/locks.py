"""Locks between threads and processes, by name; the operating system lets go of them when a process dies."""

import contextlib
import hashlib
import os
import random
import sys
import time
from collections.abc import Iterable, Iterator

SLOTS = 256
"""Names share this many lock files, so that none has to be deleted (deleting a lock file is a race)."""


class LockTimeoutError(Exception):
    """Somebody else held the lock for too long."""


class Locks:
    """Locks kept as files in one folder, which every engine of a user shares."""

    def __init__(self, folder: str, *, seconds: float = 10.0) -> None:
        self._folder = folder
        self._seconds = seconds

    @contextlib.contextmanager
    def hold(self, names: Iterable[str]) -> Iterator[None]:
        """Hold all of them at once; they are taken in one order everywhere, so nobody waits in a circle."""
        slots = sorted({_slot(name) for name in names})
        with contextlib.ExitStack() as held:
            for slot in slots:
                held.callback(os.close, self._take(slot))
            yield

    def _take(self, slot: int) -> int:
        path = os.path.join(self._folder, f"{slot:02x}.lock")
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            descriptor = os.open(path, flags, 0o600)
        try:
            self._wait(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _wait(self, descriptor: int) -> None:
        deadline = time.monotonic() + self._seconds
        pause = 0.0005
        while not try_lock(descriptor):
            if time.monotonic() > deadline:
                raise LockTimeoutError(f"another process held the lock for {self._seconds:g} seconds")
            time.sleep(random.uniform(0, pause))  # noqa: S311 - spreads the waiters, keeps no secret
            pause = min(pause * 1.5, 0.02)


def _slot(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(os.fsencode(name), digest_size=2).digest(), "big") % SLOTS


if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> bool:
        """Take the lock of an open file if it is free; closing the file lets go."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def share_lock(descriptor: int) -> None:
        """Hold the lock of an open file together with others; here there is no such thing."""

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Take the lock of an open file if it is free; closing the file lets go."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def share_lock(descriptor: int) -> None:
        """Hold the lock of an open file together with others that share it; waits for who holds it alone."""
        fcntl.flock(descriptor, fcntl.LOCK_SH)
