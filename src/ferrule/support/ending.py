"""How a command is ended: politely, then not, and in any case before this process itself ends."""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Protocol

from ferrule.support.child import Child
from ferrule.support.tree import Tree

_KILLED_SECONDS = 2.0
_LEAVES_SECONDS = 0.02


class Closable(Protocol):
    def close(self) -> None: ...


class Once:
    """Work that is done once, whoever asks for it first; whoever asks for it meanwhile waits for its end."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work: Callable[[], None] | None = work
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            work, self._work = self._work, None
            if work is not None:
                work()


_living: set[Closable] = set()
_registered: list[bool] = []


def register(running: Closable) -> None:
    """It is closed when this process ends, should nobody have done it by then."""
    _living.add(running)
    if not _registered:
        import atexit  # a process that starts nothing leaves nothing

        atexit.register(_close_all)
        _registered.append(True)


def forget(running: Closable) -> None:
    _living.discard(running)


def _close_all() -> None:
    while _living:
        _living.pop().close()


async def end(
    tree: Tree,
    child: Child,
    survivors: set[int],
    nap: Callable[[float], Awaitable[None]],
    patient: Callable[[], bool],
) -> bool:
    """SIGTERM and, when the patience is over, SIGKILL to whoever lives; was that enough?

    `survivors` gets those that lived: what is about to end by itself when the command has is given a moment before.
    `nap` gives way until that moment of the loop's clock, or less.
    """
    loop = asyncio.get_running_loop()
    if child.ended and ((child.attended is not None and child.attended.alone()) or await _leaves(tree, nap, patient)):
        return True
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = loop.time() + _KILLED_SECONDS
        pause_seconds = 0.001
        told: set[int] | None = None
        while (living := tree.find()) or not child.ended:
            survivors.update(living)
            fresh = set(living).difference(told or ())
            if fresh or told is None:
                tree.signal(number, tuple(fresh))
                told = fresh.union(told or ())
            if not patient() if number == signal.SIGTERM else loop.time() >= until:
                break
            await nap(loop.time() + pause_seconds)
            pause_seconds = min(2 * pause_seconds, 0.05)
        else:
            return True
    return False


async def _leaves(tree: Tree, nap: Callable[[float], Awaitable[None]], patient: Callable[[], bool]) -> bool:
    """Does nothing live any more, now or in a moment? What starts commands may end a moment after them."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _LEAVES_SECONDS
    pause_seconds = 0.001
    while tree.find():
        if loop.time() >= until or not patient():
            return False
        await nap(loop.time() + pause_seconds)
        pause_seconds *= 2
    return True
