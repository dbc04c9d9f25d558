"""Rest: how long a server that ends again and again is left alone."""

import asyncio

PAUSES_SECONDS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""After the first end, the second and so on; the last one holds for all that follow."""
_STEADY_SECONDS = 60.0
"""A server that has run so long did not end at once: its earlier ends are forgotten."""


class Rest:
    """Counts the ends of one server that nobody asked for."""

    def __init__(self, pauses_seconds: tuple[float, ...]) -> None:
        self._pauses_seconds = pauses_seconds
        self._ends = 0
        self._until = 0.0

    def count(self, began: float) -> None:
        """It has just ended, and had begun then, by the loop's clock."""
        now = asyncio.get_running_loop().time()
        self._ends = 1 if now - began > _STEADY_SECONDS else self._ends + 1
        self._until = now + self._pauses_seconds[min(self._ends, len(self._pauses_seconds)) - 1]

    def words(self) -> str:
        """When it may be started again, as a sentence without its subject; empty where that is now."""
        left = self._until - asyncio.get_running_loop().time()
        if left <= 0:
            return ""
        times = "once" if self._ends == 1 else f"{self._ends} times in a row"
        return f"has failed {times} and may be started again in {left:.1f} seconds"
