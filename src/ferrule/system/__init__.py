"""Worker threads for file work, so that a slow disk never holds up the event loop."""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """A bounded pool, started on first use."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do `work` on a thread. Cancelling does not wait for it: only for work that changes nothing."""
        return await asyncio.wrap_future(self._submit(work, *args, **kwargs))

    async def finish(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do `work` on a thread and wait for its end even when cancelled: a write that has begun is not left behind."""
        job = self._submit(work, *args, **kwargs)
        future = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not job.cancel():
                while not future.done():
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.wait([future])
                if not future.cancelled():
                    future.exception()  # seen: nobody else will ask for it
            raise

    def _submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._most, thread_name_prefix="ferrule")
        return self._pool.submit(work, *args, **kwargs)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
