"""Threads for code that Ferrule does not know: each call has a thread, with an event loop of its own, to itself.

Such a body may block, spin or never return: the engine's loop goes on, and so do the other calls. A thread that does
not come back is given up; Python cannot stop it.
"""

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any

Body = Callable[[], Coroutine[Any, Any, Any]]

_GRACE_SECONDS = 1.0
_IDLE_MOST = 16


class _Guest:
    """One thread and its loop. It does one job at a time."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Body, asyncio.Future[Any], contextvars.Context] | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        threading.Thread(target=self._serve, name="ferrule-guest", daemon=True).start()

    def take(self, body: Body, answer: "asyncio.Future[Any]") -> None:
        self._jobs.put((body, answer, contextvars.copy_context()))

    def leave(self) -> None:
        self._jobs.put(None)

    def cancel(self) -> None:
        """Ask the body to stop; one that blocks does not hear it."""
        loop, task = self._loop, self._task
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed a moment ago
                loop.call_soon_threadsafe(task.cancel)

    def _serve(self) -> None:
        self._loop = asyncio.new_event_loop()
        try:
            while (job := self._jobs.get()) is not None:
                body, answer, context = job
                home = answer.get_loop()
                try:
                    self._task = context.run(self._loop.create_task, body())
                    value = self._loop.run_until_complete(self._task)
                except asyncio.CancelledError:
                    _tell(home, answer, lambda a: a.cancel())
                except BaseException as error:  # noqa: BLE001 - SystemExit of a guest must not end a thread unheard
                    _tell(home, answer, lambda a, e=error: a.set_exception(_calm(e)))
                else:
                    _tell(home, answer, lambda a, v=value: a.set_result(v))
                finally:
                    self._task = None
        finally:
            self._loop.close()


def _calm(error: BaseException) -> Exception:
    """An exception that a future may carry and that ends nothing but its call."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")


def _tell(home: asyncio.AbstractEventLoop, answer: "asyncio.Future[Any]", act: Callable[[Any], object]) -> None:
    def settle() -> None:
        if not answer.done():
            act(answer)

    with contextlib.suppress(RuntimeError):  # the engine's loop is gone, and with it whoever waited
        home.call_soon_threadsafe(settle)


class Guests:
    """Idle threads are kept for the next call."""

    def __init__(self) -> None:
        self._idle: list[_Guest] = []

    async def run(self, body: Body) -> Any:
        """Await `body()` on a thread of its own. Cancelling gives the body a moment to stop, then gives it up."""
        guest = self._idle.pop() if self._idle else _Guest()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        guest.take(body, answer)
        try:
            value = await asyncio.shield(answer)
        except asyncio.CancelledError:
            guest.cancel()
            await asyncio.wait([answer], timeout=_GRACE_SECONDS)
            if answer.done():
                if not answer.cancelled():
                    answer.exception()
                self._free(guest)
            raise
        except BaseException:
            self._free(guest)
            raise
        self._free(guest)
        return value

    def _free(self, guest: _Guest) -> None:
        if len(self._idle) < _IDLE_MOST:
            self._idle.append(guest)
        else:
            guest.leave()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().leave()
