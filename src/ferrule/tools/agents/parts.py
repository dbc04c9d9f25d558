"""The parts of one piece of work, side by side: all of them are done, or those that still run are stopped."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

P = TypeVar("P")
T = TypeVar("T")


async def side_by_side(parts: Sequence[P], work: Callable[[P], Awaitable[T]], *, most: int) -> list[T | BaseException]:
    """What came of each, in their order, so many at a time. The first that fails stops the others.

    It ends when all of them have, however often it is cancelled meanwhile.
    """
    slots = asyncio.Semaphore(most)

    async def one(part: P) -> T:
        async with slots:
            return await work(part)

    tasks = [asyncio.create_task(one(part)) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        was_cancelled = await _stopped([task for task in tasks if not task.done()])
    if was_cancelled:
        raise asyncio.CancelledError
    return [_end(task) for task in tasks]


async def _stopped(tasks: Sequence["asyncio.Task[Any]"]) -> bool:
    """Cancel them and wait until each has cleaned up. Did somebody cancel the wait?"""
    for task in tasks:
        task.cancel()
    was_cancelled, pending = False, set(tasks)
    while pending:
        try:
            _, pending = await asyncio.wait(pending)
        except asyncio.CancelledError:
            was_cancelled = True
    return was_cancelled


def _end(task: "asyncio.Task[T]") -> T | BaseException:
    if task.cancelled():
        return asyncio.CancelledError()
    return task.exception() or task.result()
