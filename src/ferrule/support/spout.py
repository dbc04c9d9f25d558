"""A spout: the reading end of a pipe that can be stopped, so that whoever writes too much has to wait."""

import asyncio
import contextlib
import os
from collections.abc import Callable

_READ_BYTES = 1 << 16
_LAST_READS = 64
"""Reads of what is left when the writer is gone: a pipe can have been made larger."""


class Spout:
    """Gives what comes to a sink, as it comes, on the running event loop."""

    def __init__(self, descriptor: int, sink: Callable[[bytes], None], end: Callable[[], None]) -> None:
        """The descriptor is its own from now on; `end` is called when nobody can write any more."""
        self.open = True
        self._descriptor = descriptor
        self._sink = sink
        self._end = end
        self._stops: set[str] = set()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._arrive)

    def stop(self, reason: str) -> None:
        """Take nothing until every reason that was given is gone."""
        if self.open and not self._stops:
            self._loop.remove_reader(self._descriptor)
        self._stops.add(reason)

    def resume(self, reason: str) -> None:
        if reason in self._stops:
            self._stops.remove(reason)
            if self.open and not self._stops:
                self._loop.add_reader(self._descriptor, self._arrive)

    def drain(self) -> None:
        """Give the sink what is there now."""
        for _ in range(_LAST_READS):
            if not self._pull():
                return

    def shut(self) -> None:
        """Take no more; whoever still writes is told so."""
        if self.open:
            self.open = False
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)

    def _arrive(self) -> None:
        self._pull()
        if not self.open:
            self._end()

    def _pull(self) -> bool:
        data = b""
        if self.open:
            with contextlib.suppress(BlockingIOError):
                data = os.read(self._descriptor, _READ_BYTES)
                if not data:
                    self.shut()
            if data:
                self._sink(data)
        return bool(data)
