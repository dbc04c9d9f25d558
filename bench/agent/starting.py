"""From the start of `ferrule run` to its first byte for the model, beside importing its libraries."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from bench.agent.place import place
from bench.measure import Row, ratio

_LIBRARIES = "import asyncio, httpx2, msgspec, click, sqlite3"
_ROUNDS = 20


def rows() -> Iterator[Row]:
    subprocess.run([sys.executable, "-m", "compileall", "-q", "src"], check=True)
    ours: list[float] = []
    theirs: list[float] = []
    with place() as here:
        for _ in range(_ROUNDS):
            began = time.time()
            subprocess.run(
                here.ours("read*1*0"),
                check=True,
                cwd=here.folder,
                env=here.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            ours.append(here.times()["firsts"][0] - began)
            began = time.time()
            subprocess.run([sys.executable, "-c", _LIBRARIES], check=True)
            theirs.append(time.time() - began)
    detail = f"{statistics.median(ours) * 1000:.0f} and {statistics.median(theirs) * 1000:.0f} ms"
    yield Row(
        "start of ferrule run to its first body, against importing its libraries", ratio(ours, theirs), 1.8, "×", detail
    )
