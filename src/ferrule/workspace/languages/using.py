"""Who uses a language server just now: that somebody does, and one who needs to be alone with it for a moment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable


class Using:
    """How many wait for a server, and when the last one did."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.count = 0
        self.last_at = clock()
        """By the clock."""

    def __enter__(self) -> None:
        self.count += 1
        self.last_at = self._clock()

    def __exit__(self, *_: object) -> None:
        self.count -= 1
        self.last_at = self._clock()


class Alone:
    """Keeps others from a server while one task shows it texts that no file has: their answers would be of those."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._owner: asyncio.Task[object] | None = None

    @contextlib.asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        async with self._lock:
            self._owner = asyncio.current_task()
            try:
                yield
            finally:
                self._owner = None

    async def wait(self) -> None:
        """Until nobody else is alone with it."""
        while self._lock.locked() and self._owner is not asyncio.current_task():
            async with self._lock:
                pass
