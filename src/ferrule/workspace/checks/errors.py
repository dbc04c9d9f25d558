"""What the output of a check says: its complaints as places in files.

The output is whatever a program of the project prints, so nothing in it is believed: it is looked at up to a limit and
line by line, a path counts as a file of the workspace only where such a file is there, and every pattern takes time in
proportion to the line.
"""

import os
import re
from collections.abc import Iterator

from ferrule.core.access import within
from ferrule.core.checks import Check
from ferrule.core.problems import Problem
from ferrule.support.screen import Screen
from ferrule.workspace.checks import blocks, failures, forms, stacks
from ferrule.workspace.checks.hit import Hit, Reading
from ferrule.workspace.skill import shown

MOST_CHARS = 1 << 20
"""Of an output: its two halves, where it is longer."""
MOST_PROBLEMS = 200
_MOST_LINE_CHARS = 2000
_MOST_MESSAGE_CHARS = 500
_MOST_PATHS = 5000
"""That are looked for on disk."""
_FRAME = re.compile(r"[\s>│]*\d{1,7} ?[|│┆](?:\s|$)")
"""A line of a source that a program quotes, with its number; what stands there is no complaint."""
_INSTALLED = frozenset({"node_modules", "site-packages", ".venv", "venv", "vendor", "dist-packages"})

_READINGS: tuple[tuple[tuple[str, ...], Reading], ...] = (
    (("= FAILURES =", "= ERRORS =", "short test summary info"), failures.pytest),
    (('File "',), failures.tracebacks),
    (("--> ", "└─ "), blocks.arrows),
    (("panicked at ",), blocks.panics),
    (("━━━",), blocks.biome),
    (("--- FAIL: ",), blocks.go_tests),
    (("● ", "FAIL  ", "not ok ", "✖ ", " failing", "Failures:", "failure"), stacks.stacks),
    (("  error  ", "  warning  ", "  Line   "), blocks.tables),
    (("Error: ", "Warning: "), blocks.terraform),
)
"""Which readers are asked, by what an output has in it."""


def problems(check: Check, output: str, *, root: str) -> tuple[Problem, ...]:
    """What the output of a check complains about, in its order; `root` is the workspace, absolute and real."""
    screen = Screen()
    text = screen.feed(_bounded(output)) + screen.end()
    places = _Places(root, check.folder)
    lines = [line[:_MOST_LINE_CHARS] for line in text.split("\n")]
    found: dict[tuple[str, int, str], Problem] = {}
    for hit in _hits(text, lines, places):
        if not hit.message:
            continue
        path = places.file(hit.path)
        if not path and (not hit.is_sure or not hit.path):
            continue
        message = shown(hit.message)[:_MOST_MESSAGE_CHARS]
        source = hit.source or check.name
        problem = Problem(path or shown(hit.path), hit.line, message, hit.character, hit.severity, source, hit.code)
        if message:
            found.setdefault((problem.path, problem.line, message), problem)
        if len(found) >= MOST_PROBLEMS:
            break
    return tuple(found.values())


def _hits(text: str, lines: list[str], places: "_Places") -> list[Hit]:
    hits: list[Hit] = []
    taken: set[int] = set()
    for marks, reading in _READINGS:
        if any(mark in text for mark in marks):
            new = [hit for hit in reading(lines, places.is_own) if hit.first not in taken]
            hits += new
            for hit in new:
                taken.update(range(hit.first, hit.last + 1))
    hits += _single(lines, taken)
    return sorted(hits, key=lambda hit: hit.first)


def _single(lines: list[str], taken: set[int]) -> Iterator[Hit]:
    for at, line in enumerate(lines):
        if at not in taken and len(line) > 4 and not _FRAME.match(line):
            yield from forms.said(at, line, lines[at + 1] if at + 1 < len(lines) else "")


def _bounded(output: str) -> str:
    """The two ends of an output that is too long: compilers say what counts first, runners of tests last."""
    if len(output) <= MOST_CHARS:
        return output
    half = MOST_CHARS // 2
    return f"{output[:half].rpartition(chr(10))[0]}\n{output[-half:].partition(chr(10))[2]}"


class _Places:
    """Paths as programs write them, and the files of the workspace that they mean."""

    def __init__(self, root: str, folder: str) -> None:
        self._root = root
        self._folder = folder if within(folder, root) else root
        self._known: dict[str, str] = {}

    def file(self, path: str) -> str:
        """The file of the workspace, absolute; nothing where there is none. A path is from the check's folder, or from
        the root for programs that go there by themselves."""
        if path not in self._known:
            if len(self._known) >= _MOST_PATHS:
                return ""
            self._known[path] = self._found(path.strip().removeprefix("file://"))
        return self._known[path]

    def is_own(self, path: str) -> bool:
        """Is it a file of the workspace that was not installed there?"""
        file = self.file(path)
        return bool(file) and _INSTALLED.isdisjoint(os.path.relpath(file, self._root).split(os.sep))

    def _found(self, path: str) -> str:
        if not path or not path.isprintable():
            return ""
        for folder in dict.fromkeys((self._folder, self._root)):
            file = os.path.normpath(os.path.join(folder, path))
            # Nothing is asked about files outside: whether they are there is nobody's business.
            if within(file, self._root) and os.path.isfile(file):
                return file
        return ""
