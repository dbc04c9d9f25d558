"""Searching a tree of 5,000 files, against spawning the same ripgrep."""

import asyncio
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from bench.measure import Row, milliseconds, pairs, ratio
from ferrule import Engine, Settings
from ferrule.system import run
from ferrule.system.child import ChildProcess

FILES = 5_000


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        _grow(folder)
        yield from asyncio.run(_rows(folder))


def _grow(folder: str) -> None:
    """A tree like a large project: 200 folders, 8 KB a file, a word here and there."""
    chance = random.Random(7)
    words = ["alpha", "beta", "gamma", "delta", "return", "import", "value", "result", "while", "class"]
    for number in range(FILES):
        place = os.path.join(folder, "work", f"part{number % 20}", f"unit{number % 200}")
        os.makedirs(place, exist_ok=True)
        lines = [" ".join(chance.choices(words, k=9)) for _ in range(130)]
        if number % 500 == 0:
            lines[40] = "a needle in the hay"
        with open(os.path.join(place, f"file{number}.{'py' if number % 3 else 'ts'}"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines))


async def _rows(folder: str) -> list[Row]:
    out = []
    async with Engine(f"{folder}/work", settings=Settings(), state=f"{folder}/state") as engine:
        for name, values in (("Grep", {"pattern": "needle"}), ("glob", {"filePattern": "**/*.py"})):
            argv = await _spawned(engine, name, values)

            async def spawn(argv: Sequence[str] = argv) -> None:
                child = await asyncio.create_subprocess_exec(
                    *argv,
                    cwd=f"{folder}/work",
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                await child.communicate()

            async def call(name: str = name, values: dict = values) -> None:
                reply = await engine.call(name, **values)
                assert reply.ok, reply

            ours, theirs = await pairs(call, spawn, 40)
            detail = f"{milliseconds(ours)} and {milliseconds(theirs)}"
            out.append(
                Row(f"{name} on {FILES:,} files, against spawning the same rg", ratio(ours, theirs), 1.25, "×", detail)
            )
    return out


async def _spawned(engine: Engine, name: str, values: dict) -> list[str]:
    """The command line that the tool really starts: the one that searches, not the one that looks for secret files."""
    seen: list[list[str]] = []

    class Watched(ChildProcess):
        def __init__(self, argv: Sequence[str], **more: Any) -> None:
            seen.append(list(argv))
            super().__init__(argv, **more)

    vars(run)["Child"] = Watched
    try:
        await engine.call(name, **values)
    finally:
        vars(run)["Child"] = ChildProcess
    return max(seen, key=lambda argv: any("needle" in word for word in argv)) if name == "Grep" else seen[-1]
