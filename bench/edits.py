"""What an edit costs, without the disk's share."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from bench.measure import Row
from ferrule import Engine, Settings


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_rows(folder))


async def _rows(folder: str) -> list[Row]:
    spent = 0.0
    real = os.fsync

    def timed(fd: Any) -> None:
        nonlocal spent
        start = time.perf_counter()
        real(fd)
        spent += time.perf_counter() - start

    os.fsync = timed
    try:
        async with Engine(folder, settings=Settings(), state=f"{folder}/state", ask=lambda _: True) as engine:

            async def edit(size: int, rounds: int) -> float:
                nonlocal spent
                line = "some text that fills a line of the file, more or less like code does\n"
                path = os.path.join(folder, f"{size}.txt")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(line * (size // len(line)))
                    file.write("marker 0\n" + line * 3)
                times = []
                for number in range(rounds):
                    spent = 0.0
                    start = time.perf_counter()
                    reply = await engine.call(
                        "edit_file", path=path, old_str=f"marker {number}\n", new_str=f"marker {number + 1}\n"
                    )
                    times.append(time.perf_counter() - start - spent)
                    assert reply.ok, reply
                return statistics.median(times) * 1000

            small = await edit(64 << 10, 60)
            five = await edit(5 << 20, 7)
            twenty = await edit(20 << 20, 7)
    finally:
        os.fsync = real
    return [
        Row("edit_file on 64 KiB, without fsync", small, 3, "ms"),
        Row(
            "edit_file on 20 MB against 5 MB (4 × the bytes)",
            twenty / five,
            6,
            "×",
            f"{five:.0f} ms and {twenty:.0f} ms",
        ),
    ]
