"""A patch of a hundred files, in one transaction."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator

from bench.measure import Row
from ferrule import Engine

_FILES = 100
_ROUNDS = 7


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_rows(folder))


async def _rows(folder: str) -> list[Row]:
    workspace = os.path.join(folder, "workspace")
    os.mkdir(workspace)
    for number in range(_FILES):
        with open(os.path.join(workspace, f"module_{number}.py"), "w", encoding="utf-8") as file:
            file.writelines(f"def function_{line}():\n    return {line}\n\n" for line in range(200))
    forward, back = _patch("99", "changed"), _patch("changed", "99")
    times = []
    async with Engine(workspace, dialect="codex", ask=lambda _: True, state=f"{folder}/state") as engine:
        for number in range(_ROUNDS):
            start = time.perf_counter()
            reply = await engine.call("apply_patch", input=back if number % 2 else forward)
            times.append(time.perf_counter() - start)
            assert reply.ok, reply
    detail = f"{_FILES} files of 200 functions, one hunk each; fsync of every file"
    return [Row("apply_patch of 100 files in one transaction", statistics.median(times), 0.5, "s", detail)]


def _patch(old: str, new: str) -> str:
    out = ["*** Begin Patch"]
    for number in range(_FILES):
        out += [f"*** Update File: module_{number}.py", "@@ def function_99():", f"-    return {old}"]
        out += [f"+    return {new}"]
    return "\n".join([*out, "*** End Patch"])
