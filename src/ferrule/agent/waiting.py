"""Waiting for something that the user, or the end of the time, may stop: an answer, a hook."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 - what happened, and nobody's error
    """It was stopped before anything came of it."""


class Waiting:
    """Waits for one thing at a time."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None

    @property
    def is_busy(self) -> bool:
        """Is anything waited for?"""
        return self._task is not None

    def stop(self) -> None:
        """Stop what is waited for, if anything is."""
        if self._task is not None:
            self._task.cancel()

    async def end_of(self, work: Coroutine[Any, Any, T], seconds: float | None) -> T:
        """What comes of it, at the latest when the seconds are over: what it gives when it is cancelled.

        Raises: Stopped, where that is nothing.
        """
        self._task = task = asyncio.create_task(work)
        try:
            await asyncio.wait([task], timeout=seconds)
        finally:
            self._task = None
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([task])
        if task.cancelled():
            raise Stopped
        return task.result()
