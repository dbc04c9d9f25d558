"""What an edit costs, without the disk's share: in a file system in memory where there is one."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator

from bench.measure import Row
from ferrule import Engine, Settings

LINE = "some text that fills a line of the file, more or less like code does\n"
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


def rows() -> Iterator[Row]:
    sizes = (64 << 10, 5 << 20, 20 << 20)
    small, five, twenty = asyncio.run(_edits(MEMORY, sizes))
    (on_disk,) = asyncio.run(_edits(None, sizes[:1]))
    yield Row("edit_file on 64 KiB, without the disk", small, 3, "ms", f"{on_disk:.1f} ms on disk, with every fsync")
    detail = f"{five:.0f} ms and {twenty:.0f} ms"
    yield Row("edit_file on 20 MB against 5 MB (4 × the bytes)", twenty / five, 6, "×", detail)


async def _edits(place: str | None, sizes: tuple[int, ...]) -> list[float]:
    """Milliseconds of an edit near the end of files of these sizes, at the median."""
    out = []
    with tempfile.TemporaryDirectory(dir=place) as folder:
        async with Engine(folder, settings=Settings(), state=f"{folder}/state", ask=lambda _: True) as engine:
            for size in sizes:
                path = os.path.join(folder, f"{size}.txt")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(LINE * (size // len(LINE)) + "marker 0\n" + LINE * 3)
                times = []
                for number in range(60 if size < 1 << 20 else 7):
                    start = time.perf_counter()
                    reply = await engine.call(
                        "edit_file", path=path, old_str=f"marker {number}\n", new_str=f"marker {number + 1}\n"
                    )
                    times.append(time.perf_counter() - start)
                    assert reply.ok, reply
                out.append(statistics.median(times) * 1000)
    return out
