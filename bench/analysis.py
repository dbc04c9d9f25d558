"""What it takes to decide on a command line."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator

from bench.measure import Row
from ferrule.permissions.rules import Subject
from ferrule.permissions.shell.cover import CommandPart, parts
from ferrule.permissions.shell.judge import judge
from ferrule.permissions.shell.parse import parse
from ferrule.permissions.shell.scene import Scene

_SHORT = (
    "cd src && git log --oneline --since='2 weeks ago' -- app/handlers | head -20"
    " && rg -n 'old_client|gone' --type py . 2>/dev/null | sort | uniq -c > /dev/null"
    " && npm run build -- --mode production 2>&1"
)
"""Eight commands in 200 characters."""
_PART = "git log --oneline --decorate --graph --max-count=20 -- src/app/module.py && "


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene((folder,), secret=lambda _: False, protected=lambda _: False)
        analysed = _median(lambda: _analyse(_SHORT, folder, scene))
        detail = (
            f"{len(_SHORT)} characters, 8 commands; with the decision {_seconds(_SHORT, folder, scene) * 1000:.2f} ms"
        )
        yield Row("analysis of a command line of 200 characters", analysed * 1000, 1, "ms", detail)
        one, ten = (_seconds(_line(size), folder, scene) for size in (1_000, 9_900))
        detail = f"{one * 1000:.2f} and {ten * 1000:.2f} ms"
        yield Row("10 KB, by ten times the time of 1 KB", ten / one / 9.9, 1.5, "×", detail)


def _line(size: int) -> str:
    return _PART * ((size - 2) // len(_PART)) + "ls"


def _analyse(command: str, folder: str, scene: Scene) -> list[CommandPart]:
    """Every command in the line, what it does, and which files it reads and writes."""
    return [part for one in parse(command, cwd=folder, roots=scene.roots).commands for part in parts(one)]


def _seconds(command: str, folder: str, scene: Scene) -> float:
    subject = Subject("shell", frozenset({"Bash"}))
    return _median(lambda: judge(command, folder, subject=subject, weigh=lambda _: (), scene=scene, ruled=False))


def _median(work: Callable[[], object]) -> float:
    times = []
    for _ in range(100):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
