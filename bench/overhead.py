"""What the engine itself costs: prepare, permission, schedule, bound, store."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator

from bench.measure import Row
from ferrule import Access, Call, Engine, Settings, tool
from ferrule.core.tool import Context


@tool(touches=[], inline=True)
async def noop(word: str = "") -> str:
    """Do nothing."""
    return word


@tool(touches=lambda name: [Access.write(name)], inline=True)
async def nap(name: str) -> str:
    """Take a tenth of a second."""
    await asyncio.sleep(0.1)
    return name


@tool(touches=[], inline=True)
async def shout(ctx: Context) -> str:
    """Say far too much."""
    ctx.note("loud")
    return "x" * 200_000


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_rows(folder))


async def _rows(folder: str) -> list[Row]:
    out = []
    state = f"{folder}/state"
    async with Engine(folder, tools=[noop, nap, shout], settings=Settings(), state=state) as engine:
        for _ in range(200):
            await engine.call("noop", word="a")
        times = []
        for _ in range(3000):
            start = time.perf_counter()
            await engine.call("noop", word="a")
            times.append(time.perf_counter() - start)
        median = statistics.median(times) * 1e6
        out.append(Row("no-op call, median", median, 150, "µs", f"p95 {sorted(times)[2850] * 1e6:.0f} µs"))

        calls = [Call("noop", {"word": str(number)}) for number in range(1000)]
        best = []
        for _ in range(7):
            start = time.perf_counter()
            replies = await engine.run(calls)
            best.append(time.perf_counter() - start)
            assert [reply.result for reply in replies] == [str(number) for number in range(1000)]
        out.append(Row("1,000 calls in one message", statistics.median(best), 0.4, "s"))

        kept = []
        for _ in range(50):
            start = time.perf_counter()
            assert (await engine.call("shout")).output_id
            kept.append(time.perf_counter() - start)
        out.append(Row("a 200 KB output cut and kept, median", statistics.median(kept) * 1000, 10, "ms"))

    async with Engine(folder, tools=[noop, nap], settings=Settings(), state=state, ask=lambda _: True) as engine:
        times = []
        for _ in range(5):
            one = time.perf_counter()
            await engine.call("nap", name="a")
            one = time.perf_counter() - one
            eight = time.perf_counter()
            await engine.run([Call("nap", {"name": str(number)}) for number in range(8)])
            times.append((time.perf_counter() - eight) / one)
        out.append(Row("8 calls that do not conflict, against one", statistics.median(times), 1.3))
        first, second = await engine.run([Call("nap", {"name": "same"})] * 2)
        out.append(
            Row(
                "a conflicting pair: start of the second before the end of the first",
                max(0.0, first.ended - second.started) * 1000,
                0,
                "ms",
            )
        )
    return out
