"""The memory of the process: its peak in a short run, and how it grows over 100 turns."""

import os
import subprocess
from collections.abc import Iterator

from bench.agent.place import Place, place
from bench.measure import Row


def rows() -> Iterator[Row]:
    with place() as here:
        short = _peak_mb(here, "read*1*5")
        long = _peak_mb(here, "read*1*105")
        yield Row("peak memory of ferrule run", short, 60, "MB", "5 turns of one Read")
        yield Row("100 turns more in one conversation: growth", long - short, 60, "MB", f"peak {long:.1f} MB")


def _peak_mb(here: Place, model: str) -> float:
    """Of the process itself, as the system counts it."""
    process = subprocess.Popen(here.ours(model), cwd=here.folder, env=here.environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss / 1024
