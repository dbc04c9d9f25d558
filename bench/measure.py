"""Timing two things side by side, and rows of a report."""

import asyncio
import resource
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One number and what it has to be."""

    name: str
    value: float
    target: float
    unit: str = "×"
    detail: str = ""

    @property
    def good(self) -> bool:
        return self.value <= self.target


def peak_mb() -> float:
    """The most memory that this process has had. What `getrusage` tells counts that of the parent at its start too."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    except FileNotFoundError:  # macOS, which has it in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """How much longer ours takes, at the median of neighbouring pairs: drift of the machine hits both of a pair."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


async def pairs(
    ours: Callable[[], Awaitable[object]], theirs: Callable[[], Awaitable[object]], rounds: int
) -> tuple[list[float], list[float]]:
    """Seconds of each, taken in turns."""
    one: list[float] = []
    other: list[float] = []
    for number in range(rounds + 2):
        for function, times in ((ours, one), (theirs, other)) if number % 2 else ((theirs, other), (ours, one)):
            start = time.perf_counter()
            await function()
            times.append(time.perf_counter() - start)
    return one[2:], other[2:]


def commands(
    ours: Sequence[str], theirs: Sequence[str], rounds: int, **options: object
) -> tuple[list[float], list[float]]:
    """Seconds of two programs, run in turns."""

    async def run(argv: Sequence[str]) -> None:
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, **options)  # type: ignore[call-overload]

    return asyncio.run(pairs(lambda: run(ours), lambda: run(theirs), rounds))


def milliseconds(times: Sequence[float]) -> str:
    return f"{statistics.median(times) * 1000:.2f} ms"
