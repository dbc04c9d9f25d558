"""Commands: what starting one costs, memory and speed while one floods, and many at once."""

import asyncio
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from bench.measure import Row, milliseconds, pairs, peak_mb, ratio
from ferrule import Call, Engine, Settings
from ferrule.settings import SandboxSettings, ShellSettings

TEN_GIGABYTES = 10_000_000_000
_WRITES = f"yes ferrule | head -c {TEN_GIGABYTES}"
TASKS = 200


def rows() -> Iterator[Row]:
    yield from _starts()
    yield _confined()
    yield _at_once()
    yield from _floods()
    yield asyncio.run(_crowd())


def _starts() -> Iterator[Row]:
    """`Bash true` against Python's own asyncio subprocess, bare and confined."""
    for use, target in (("none", 1.5), ("landlock", 3.0), ("namespaces", 3.0), ("bubblewrap", None)):
        ours, theirs = asyncio.run(_true(use))
        name = "without a sandbox" if use == "none" else f"with {use}"
        detail = f"{milliseconds(ours)} and {milliseconds(theirs)}"
        found = ratio(ours, theirs)
        yield Row(f"`Bash true` {name}, by asyncio's own subprocess", found, target or float("inf"), "×", detail)


async def _beside() -> tuple[list[float], list[float]]:
    """`Bash true` confined by namespaces, and unconfined, in turns."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
        engines = [
            Engine(
                folder, settings=Settings(sandbox=SandboxSettings(use=use)), state=f"{state}/{use}", ask=lambda _: True
            )
            for use in ("namespaces", "none")
        ]
        async with engines[0], engines[1]:

            async def confined() -> None:
                assert (await engines[0].call("Bash", cmd="true")).ok

            async def bare() -> None:
                assert (await engines[1].call("Bash", cmd="true")).ok

            return await pairs(confined, bare, 150)


async def _true(use: str) -> tuple[list[float], list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(sandbox=SandboxSettings(use=use))  # type: ignore[arg-type]  # from the list above
        async with Engine(folder, settings=settings, state=f"{folder}/state", ask=lambda _: True) as engine:

            async def ours() -> None:
                reply = await engine.call("Bash", cmd="true")
                assert reply.status == "done", reply

            async def theirs() -> None:
                process = await asyncio.create_subprocess_exec(
                    "/bin/bash",
                    "-c",
                    "true",
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                )
                await process.communicate()

            return await pairs(ours, theirs, 150)


def _confined() -> Row:
    ours, theirs = asyncio.run(_beside())
    detail = f"{milliseconds(ours)} and {milliseconds(theirs)}"
    return Row("`Bash true` with namespaces, by the same without a sandbox", ratio(ours, theirs), 2, "×", detail)


def _at_once() -> Row:
    """Confined commands that run at once: do 32 take twice the time of 16?"""
    many, few = asyncio.run(_beside_fewer())
    detail = f"{milliseconds(many)} and {milliseconds(few)}"
    return Row("32 `Bash true` with namespaces at once, by twice 16 at once", ratio(many, few) / 2, 1.2, "×", detail)


async def _beside_fewer() -> tuple[list[float], list[float]]:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
        settings = Settings(sandbox=SandboxSettings(use="namespaces"))
        async with Engine(folder, settings=settings, state=state, ask=lambda _: True) as engine:

            async def run(count: int) -> None:
                replies = await engine.run([Call("Bash", {"cmd": f"true {number}"}) for number in range(count)])
                assert all(reply.ok for reply in replies)

            return await pairs(functools.partial(run, 32), functools.partial(run, 16), 20)


def _floods() -> Iterator[Row]:
    """In a process of its own: a peak that something else has reached before would hide the growth."""
    done = subprocess.run([sys.executable, "-m", "bench.shell"], check=True, capture_output=True, text=True)
    growth, ours, theirs = map(float, done.stdout.split())
    yield Row("10 GB of output: growth of the engine's peak memory", growth, 40, "MB", f"{ours:.1f} s")
    detail = f"{TEN_GIGABYTES / ours / 1e6:,.0f} and {TEN_GIGABYTES / theirs / 1e6:,.0f} MB/s"
    yield Row("10 GB of output, by reading it from a pipe in Python", ours / theirs, 2, "×", detail)


async def _flood(folder: str) -> tuple[float, float]:
    """Megabytes by which the peak grows, and seconds, while a command writes ten gigabytes."""
    settings = Settings(shell=ShellSettings(log_mb=64), sandbox=SandboxSettings(use="none"))
    async with Engine(folder, settings=settings, state=f"{folder}/state", ask=lambda _: True) as engine:
        await engine.call("Bash", cmd="yes | head -c 100000")
        before = peak_mb()
        start = time.perf_counter()
        reply = await engine.call("Bash", cmd=_WRITES)
        seconds = time.perf_counter() - start
        assert reply.output_id, reply
        return peak_mb() - before, seconds


def _plain() -> float:
    """Seconds of the same command, read by Python from a pipe and thrown away."""
    start = time.perf_counter()
    with subprocess.Popen(["/bin/bash", "-c", _WRITES], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while os.read(process.stdout.fileno(), 1 << 16):
            pass
    return time.perf_counter() - start


async def _crowd() -> Row:
    """Seconds until 200 commands run in the background, each has been seen to run, and all are ended."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(sandbox=SandboxSettings(use="none"))
        async with Engine(
            folder, dialect="claude", settings=settings, state=f"{folder}/state", ask=lambda _: True
        ) as engine:
            start = time.perf_counter()
            for number in range(TASKS):
                reply = await engine.call("Bash", command=f"echo {number}; sleep 600", run_in_background=True)
                assert reply.status == "done", reply
            seconds = time.perf_counter() - start
        ended = time.perf_counter() - start - seconds
        return Row(f"{TASKS} background tasks at once", seconds, 10, "s", f"and {ended:.1f} s to end them all")


if __name__ == "__main__":
    plain = _plain()
    with tempfile.TemporaryDirectory() as place:
        print(*asyncio.run(_flood(place)), plain)
