"""How many pages are fetched at once: a few in all, fewer from one host, and one fetch for who asks for the same."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

AT_ONCE = 8
PER_HOST = 4


class Slots:
    """Places for fetches. Who gets none waits, and its time stands still."""

    def __init__(self, at_once: int = AT_ONCE, per_host: int = PER_HOST) -> None:
        self._all = asyncio.Semaphore(at_once)
        self._per_host = per_host
        self._hosts: dict[str, tuple[asyncio.Semaphore, set[object]]] = {}

    @contextlib.asynccontextmanager
    async def held(self, host: str, limit: asyncio.Timeout) -> AsyncIterator[None]:
        # The host's place comes first: who waits for a slow host holds no place that another host could have.
        own, users = self._hosts.setdefault(host, (asyncio.Semaphore(self._per_host), set()))
        mark = object()
        users.add(mark)
        try:
            async with contextlib.AsyncExitStack() as stack:
                if own.locked() or self._all.locked():
                    await _without_time(limit, own, self._all)
                else:
                    await own.acquire()
                    await self._all.acquire()
                stack.callback(own.release)
                stack.callback(self._all.release)
                yield
        finally:
            users.discard(mark)
            if not users:
                self._hosts.pop(host, None)


async def _without_time(limit: asyncio.Timeout, *semaphores: asyncio.Semaphore) -> None:
    loop = asyncio.get_running_loop()
    when = limit.when()
    left = None if when is None else when - loop.time()
    limit.reschedule(None)
    taken: list[asyncio.Semaphore] = []
    try:
        for semaphore in semaphores:
            await semaphore.acquire()
            taken.append(semaphore)
    except BaseException:
        for semaphore in taken:
            semaphore.release()
        raise
    if left is not None:
        limit.reschedule(loop.time() + left)


class Sharing(Generic[T]):
    """One piece of work for all who want the same at the same time. It ends when nobody waits for it any more."""

    def __init__(self) -> None:
        self._running: dict[Hashable, tuple[asyncio.Task[T], set[object]]] = {}

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The outcome of `work`, which is begun only where none is under way for this key."""
        found = self._running.get(key)
        if found is None:
            task = asyncio.ensure_future(work())
            found = self._running[key] = (task, set())
            task.add_done_callback(lambda done: self._forget(key, done))
        task, waiting = found
        mark = object()
        waiting.add(mark)
        try:
            return await asyncio.shield(task)
        finally:
            waiting.discard(mark)
            if not waiting and not task.done():
                # Nobody joins what is being given up.
                self._forget(key, task)
                task.cancel()
                await asyncio.wait((task,))

    async def close(self) -> None:
        """End what is under way."""
        tasks = [task for task, _ in self._running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _forget(self, key: Hashable, task: "asyncio.Task[T]") -> None:
        found = self._running.get(key)
        if found is not None and found[0] is task:
            del self._running[key]
        if task.done() and not task.cancelled():
            task.exception()  # seen: where everybody has left, nobody else will ask for it
