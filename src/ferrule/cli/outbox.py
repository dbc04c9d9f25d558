"""Writing to standard output behind the loop's back: a reader who is slow, or stuck, holds up nothing."""

import asyncio
import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable


class Outbox:
    """Writes lines in their order, on a thread of its own. Who ends the program need not wait for the reader."""

    def __init__(self) -> None:
        self.broke: Callable[[OSError], object] = lambda _: None
        """Told on the loop, when nobody reads any more."""
        self._lines: queue.SimpleQueue[bytes | Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def write(self, line: bytes) -> None:
        if self._thread is None:
            sys.stdout.flush()
            loop = asyncio.get_running_loop()
            # A daemon: an interpreter that ends does not wait for it. It holds no lock of Python's own streams.
            arguments = (loop, sys.stdout.fileno())
            self._thread = threading.Thread(target=self._drain, args=arguments, name="ferrule-output", daemon=True)
            self._thread.start()
        self._lines.put(line)

    async def drained(self, seconds: float | None = None) -> None:
        """Wait until all is written, or for so long."""
        if self._thread is None:
            return
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        self._lines.put(lambda: _tell(loop, done.set))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), seconds)

    def _drain(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        is_broken = False
        while True:
            line = self._lines.get()
            if callable(line):
                line()
                continue
            try:
                while line and not is_broken:
                    line = line[_written(descriptor, line) :]
            except OSError as error:
                is_broken = True
                _tell(loop, self.broke, error)


def _written(descriptor: int, line: bytes) -> int:
    try:
        return os.write(descriptor, line)
    except BlockingIOError:
        import select  # for whoever has made it one that does not wait

        select.select([], [descriptor], [])
        return 0


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[..., object], *arguments: object) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever waited
        loop.call_soon_threadsafe(what, *arguments)


def outbox() -> Outbox | None:
    """One for standard output; None where that is no file of the system."""
    try:
        sys.stdout.fileno()
    except (OSError, ValueError):
        return None
    return Outbox()
