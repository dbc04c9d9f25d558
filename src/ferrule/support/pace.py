"""A pace: how much that nobody asked for a process may send in a second before it has to wait."""

import asyncio
from collections.abc import Sequence

from ferrule.support.spout import Spout

_SECOND_BYTES = 64 << 20
FRAME_BYTES = 5_000
"""What a message costs beyond its bytes: it is decoded."""
QUESTION_BYTES = 64 << 10
"""What a question costs: it is answered."""


class Pace:
    """Stops whoever sends too much until the second is over. A flood costs this process little, and others nothing."""

    def __init__(self, spouts: Sequence[Spout]) -> None:
        self._loop = asyncio.get_running_loop()
        self._spouts = spouts
        self._since = self._loop.time()
        self._spent_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def spend(self, size_bytes: int) -> None:
        now = self._loop.time()
        if now - self._since >= 1.0:
            self._since, self._spent_bytes = now, 0
        self._spent_bytes += size_bytes
        if self._spent_bytes > _SECOND_BYTES and self._timer is None:
            for spout in self._spouts:
                spout.stop("pace")
            self._timer = self._loop.call_at(self._since + 1.0, self._go_on)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on(self) -> None:
        self._timer = None
        self._since, self._spent_bytes = self._loop.time(), 0
        for spout in self._spouts:
            spout.resume("pace")
