"""A confined command as the engine holds it: its id, and how it ended."""

import contextlib
import errno
import os
import struct
import sys
from collections.abc import Callable

_LATE_SECONDS = 5.0
_SAID_BYTES = 5
"""The exit code, and whether it was the last one."""


class Spawned:
    """A command that the spawner has started. Until its end was heard here, nobody else gets its id."""

    def __init__(self, pid: int, status: int, *, born: float, end: Callable[[], None]) -> None:
        self.pid = pid
        self.born = born
        """When the process itself was made, by the monotonic clock: it may have waited for its command."""
        self.returncode: int | None = None
        self._status = status
        self._end = end
        self._said: bytes | None = None

    def alone(self) -> bool:
        """Has it ended, and is it certain that it has left nothing? Nobody gets its id by this."""
        return self._listen(_LATE_SECONDS) and self._is_alone

    def end(self) -> None:
        """Kill it and all that it has started, also what has left its group and its session."""
        if not self._is_alone:
            self._end()

    @property
    def _is_alone(self) -> bool:
        return self._said is not None and self._said[4:] == b"\1"

    def poll(self) -> int | None:
        if self.returncode is None and not self._hear(0.0) and _ended(self.pid):
            self._hear(_LATE_SECONDS)  # its attendant is about to say how
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._hear(timeout)
        if self.returncode is None:
            from subprocess import TimeoutExpired  # only who waits in vain needs it

            raise TimeoutExpired(str(self.pid), timeout or 0.0)
        return self.returncode

    def _hear(self, seconds: float | None) -> bool:
        """Has its end been heard? Then its attendant is told so, and its id is given away."""
        if not self._listen(seconds) or self._said is None:
            return False
        # Silence: its attendant was killed, and took everything with it.
        self.returncode = struct.unpack_from("=i", self._said)[0] if len(self._said) == _SAID_BYTES else -9
        os.close(self._status)
        return True

    def _listen(self, seconds: float | None) -> bool:
        import select  # commands only

        if self._said is None:
            poll = select.poll()
            poll.register(self._status, select.POLLIN)
            if poll.poll(None if seconds is None else seconds * 1000):
                self._said = os.read(self._status, _SAID_BYTES)
        return self._said is not None

    def __del__(self) -> None:
        if self.returncode is None:
            with contextlib.suppress(OSError, AttributeError):
                os.close(self._status)


def _ended(pid: int) -> bool:
    import select  # commands only

    if sys.platform != "linux":
        return False
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        return error.errno == errno.ESRCH
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        os.close(descriptor)
