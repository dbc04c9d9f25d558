"""A pace: how much that nobody asked for a server may send in a second before it has to wait."""

import asyncio
from collections.abc import Callable

_SECOND_BYTES = 64 << 20
FRAME_BYTES = 2000
"""What a message costs beyond its bytes: it is decoded, and perhaps answered."""


class Pace:
    """Stops whoever sends too much until the second is over. A flood costs this process little, and others nothing."""

    def __init__(self, stop: Callable[[], None], resume: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = stop
        self._resume = resume
        self._since = self._loop.time()
        self._spent_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def spend(self, size_bytes: int) -> None:
        now = self._loop.time()
        if now - self._since >= 1.0:
            self._since, self._spent_bytes = now, 0
        self._spent_bytes += size_bytes
        if self._spent_bytes > _SECOND_BYTES and self._timer is None:
            self._stop()
            self._timer = self._loop.call_at(self._since + 1.0, self._go_on)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        self._timer = None
        self._since, self._spent_bytes = self._loop.time(), 0
        self._resume()
