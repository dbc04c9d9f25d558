"""Running the engine from the command line: a signal that ends the program first ends its calls."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from ferrule.support.signals import is_ignored

T = TypeVar("T")

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class StoppedError(Exception):
    """A signal asked the program to end; its calls have been cancelled and cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def finish(main: Coroutine[Any, Any, T]) -> T:
    """Run it to its end. SIGTERM and SIGHUP cancel it as ctrl-C does, so that no process outlives the program."""
    return asyncio.run(_until_signal(main))


async def _until_signal(main: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    caught: list[int] = []

    def stop(number: int) -> None:
        caught.append(number)
        task.cancel()

    heeded = [number for number in _SIGNALS if not is_ignored(number)]  # `nohup` means the program to go on
    for number in heeded:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows; not the main thread
            loop.add_signal_handler(number, stop, number)
    try:
        return await main
    except asyncio.CancelledError:
        if caught:
            raise StoppedError(caught[0]) from None
        raise
    finally:
        for number in heeded:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)
