"""Memory while a command floods."""

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Iterator

from bench.measure import Row
from ferrule import Engine, Settings

GIGABYTE = 1_000_000_000


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_rows(folder))


async def _rows(folder: str) -> list[Row]:
    async with Engine(folder, settings=Settings(), state=f"{folder}/state", ask=lambda _: True) as engine:
        await engine.call("Bash", cmd="yes | head -c 10000000")
        before = _peak()
        start = time.perf_counter()
        reply = await engine.call("Bash", cmd=f"yes ferrule | head -c {GIGABYTE}")
        seconds = time.perf_counter() - start
        assert reply.output_id, reply
        kept = await engine.output(reply.output_id)
        assert kept.size_bytes == GIGABYTE, kept
        return [
            Row(
                "1 GB of output: growth of the engine's peak memory",
                (_peak() - before) / 1e6,
                40,
                "MB",
                f"{seconds:.1f} s",
            )
        ]


def _peak() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
