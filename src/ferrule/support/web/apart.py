"""Work away from the event loop: what may take a moment on one of its threads, what may take forever on its own."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def aside(work: Callable[[], T], *, size: int, much: int) -> T:
    """What `work` gives, which ends by itself: at once where there is little of what it works on."""
    return work() if size < much else await asyncio.to_thread(work)


async def apart(work: Callable[[], T], name: str) -> T:
    """What `work` gives or raises, however long it takes: it cannot be stopped. Who is cancelled leaves it behind.

    Neither others that need a thread nor the end of the program wait for it.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(found: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(found)  # type: ignore[arg-type]  # there is one where there is no error

    def run() -> None:
        found: T | None = None
        broken: BaseException | None = None
        try:
            found = work()
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            broken = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, found, broken)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future
