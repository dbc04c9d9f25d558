"""What it takes to decide on a command line."""

import statistics
import tempfile
import time
from collections.abc import Iterator

from bench.measure import Row
from ferrule.permissions.rules.rule import Subject
from ferrule.permissions.shell.judge import judge
from ferrule.permissions.shell.scene import Scene

_SHORT = (
    "cd src && git log --oneline -n 20 | grep -v merge | head -5; rg -n 'TODO|FIXME' --type py . 2>/dev/null"
    ' | sort | uniq -c && ls -la build > /dev/null && wc -l *.py && echo "done $(date +%s)"'
)
_PART = "git status --short && "


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene((folder,), secret=lambda _: False, protected=lambda _: False)
        short = _seconds(_SHORT[:200], folder, scene)
        yield Row("a command line of 200 characters decided", short * 1000, 1, "ms")
        one, ten = (_seconds(_line(size), folder, scene) for size in (1_000, 9_900))
        detail = f"{one * 1000:.2f} and {ten * 1000:.2f} ms"
        yield Row("10 KB, by ten times the time of 1 KB", ten / one / 9.9, 1.5, "×", detail)


def _line(size: int) -> str:
    return _PART * ((size - 2) // len(_PART)) + "ls"


def _seconds(command: str, folder: str, scene: Scene) -> float:
    subject = Subject("shell", frozenset({"Bash"}))
    times = []
    for _ in range(60):
        start = time.perf_counter()
        judge(command, folder, subject=subject, weigh=lambda _: (), scene=scene, ruled=False)
        times.append(time.perf_counter() - start)
    return statistics.median(times)
