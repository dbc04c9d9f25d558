"""Waiters: whoever waits for something to happen, each until a moment of the loop's clock at the latest."""

import asyncio


class Waiters:
    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    async def wait(self, until: float | None) -> None:
        """Give way until something has happened, or the clock shows `until`."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiters.add(waiter)
        timer = None if until is None else loop.call_at(until, let_go, waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()

    def wake(self) -> None:
        """It has happened: whoever waits now goes on."""
        for waiter in self._waiters:
            let_go(waiter)


def let_go(waiter: "asyncio.Future[None]") -> None:
    """Have whoever waits go on."""
    if not waiter.done():
        waiter.set_result(None)
