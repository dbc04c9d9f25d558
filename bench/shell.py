"""Memory while a command floods."""

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from bench.measure import Row
from ferrule import Engine, Settings

GIGABYTE = 1_000_000_000


def rows() -> Iterator[Row]:
    """In a process of its own: a peak that something else has reached before would hide the growth."""
    done = subprocess.run([sys.executable, "-m", "bench.shell"], check=True, capture_output=True, text=True)
    growth, seconds = map(float, done.stdout.split())
    yield Row("1 GB of output: growth of the engine's peak memory", growth, 40, "MB", f"{seconds:.1f} s")


async def _flood(folder: str) -> tuple[float, float]:
    """Megabytes by which the peak grows, and seconds, while a command writes a gigabyte."""
    async with Engine(folder, settings=Settings(), state=f"{folder}/state", ask=lambda _: True) as engine:
        await engine.call("Bash", cmd="yes | head -c 100000")
        before = _peak()
        start = time.perf_counter()
        reply = await engine.call("Bash", cmd=f"yes ferrule | head -c {GIGABYTE}")
        seconds = time.perf_counter() - start
        assert reply.output_id, reply
        kept = await engine.output(reply.output_id)
        assert kept.size_bytes == GIGABYTE, kept
        return (_peak() - before) / 1e6, seconds


def _peak() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(*asyncio.run(_flood(place)))
