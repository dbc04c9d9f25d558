"""The memory of the process: its peak in a short run, and how it grows over 100 turns."""

import subprocess
import sys
from collections.abc import Iterator

from bench.agent.place import Place, place
from bench.measure import Row


def rows() -> Iterator[Row]:
    with place() as here:
        short = _peak_mb(here, "read*1*5")
        long = _peak_mb(here, "read*1*105")
        yield Row("peak memory of ferrule run", short, 60, "MB", "5 turns of one Read")
        yield Row("100 turns more in one conversation: growth", long - short, 60, "MB", f"peak {long:.1f} MB")


# A process counts what its parent had in memory when it was started, so that the parent has to be small.
_SMALL = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(usage.ru_maxrss)
sys.exit(process.returncode)
"""


def _peak_mb(here: Place, model: str) -> float:
    """Of the process itself, as the system counts it."""
    argv = [sys.executable, "-I", "-S", "-c", _SMALL, *here.ours(model)]
    done = subprocess.run(argv, cwd=here.folder, env=here.environment, capture_output=True, check=True, timeout=300)
    return int(done.stdout) / 1024
