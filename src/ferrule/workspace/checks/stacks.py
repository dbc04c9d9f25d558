"""Failures of tests with a stack below them: jest, vitest, mocha, node's own, phpunit and rspec."""

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import cache

from ferrule.workspace.checks.hit import Hit, IsOwn

_compiled = cache(re.compile)
_TITLES = (
    r"\s+● (.+)",  # jest
    r"\s*FAIL\s+(\S.* > .+)",  # vitest
    r"\s+\d{1,6}\) (.+?):?",  # mocha and rspec
    r"\d{1,6}\) (\S+::\S.*)",  # phpunit
    r"\s*not ok \d{1,6} - (.+)",  # TAP
    r"\s*✖ (.+?) \([\d.]+ms\)",  # node
)
_TITLE_MARKS = (") ", "\u25cf", "FAIL", "not ok ", "\u2716")
_FRAMES = (
    r"\s+at (?:.*\()?(?:file://)?([^()\s][^()]{0,500}?):(\d{1,7}):(\d{1,7})\)?",
    r"\s*\u276f (?:\S+ )?(\S{1,500}?):(\d{1,7}):(\d{1,7})",
    r"\s+[\w.<>$ ]{1,200}\((?:file://)?([^()\s][^()]{0,500}?):(\d{1,7}):(\d{1,7})\)",  # TAP
    r"(\S{1,500}\.php):(\d{1,7})()",
    r"\s+# (\S{1,500}\.rb):(\d{1,7}):in()\b.*",
)
_TAP_ERROR = r"\s*error: (?:'(.*)'|\"(.*)\"|(\|-?)|(.*))"
_TAP_KEY = r"(?:code|name|expected|actual|operator|stack): "
_TAP_PARENT = "subtestsFailed"
_COMPARED = ("equal:", "match:", "deep-equal:", "deep-equal to:", "to:")
_LEGENDS = ("+ actual - expected", "- expected + actual")
_MOST_VALUES = 30
_MOST_SHOWN = 4
_MOST_LINES = 400
"""Between a title and its first frame."""


def stacks(lines: Sequence[str], is_own: IsOwn) -> Iterator[Hit]:
    """Every title with the first frame below it that is the project's own."""
    title, first, said = "", 0, ""
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        if named := _title(line):
            title, first, said = named, at, ""
        elif title and at - first < _MOST_LINES:
            frame = _frame(line)
            if frame is not None and is_own(frame[0]):
                yield Hit(first, at, *frame[:2], f"{title}: {said}" if said else title, frame[2])
                title = ""
            elif frame is None:
                title, said = _heard(lines, at, title, said)


def _heard(lines: Sequence[str], at: int, title: str, said: str) -> tuple[str, str]:
    """What else is known after a line: the rest of the title, or the complaint."""
    line = lines[at].strip()
    if error := _compiled(_TAP_ERROR).fullmatch(lines[at]):
        below = _with_values(lines, at + 1) if at + 1 < len(lines) else ""
        return title, error[1] or error[2] or error[4] or below
    if _TAP_PARENT in line:
        return "", ""
    if said or re.match(r"(?:---|duration_ms|location|type|failureType|Failure/Error)\b|---|[-+?^|]", line):
        return title, said
    # mocha writes the groups of a test one below the other, and a colon behind the last.
    if line.endswith(":") and lines[at].startswith("       ") and " " not in line[:1]:
        return f"{title} {line[:-1]}", said
    return title, _with_values(lines, at)


def _with_values(lines: Sequence[str], at: int) -> str:
    """A complaint; one of node's ends with a colon, and what was compared stands below it."""
    said = lines[at].strip()
    if not said.endswith(_COMPARED):
        return said
    below = itertools.takewhile(lambda line: _frame(line) is None, lines[at + 1 : at + 1 + _MOST_VALUES])
    values = [line.strip() for line in below]
    # Of a longer comparison the differences count; it begins with a legend and ends where other things are told.
    rows = [line for line in itertools.takewhile(lambda line: not re.match(_TAP_KEY, line), values) if line]
    differing = [line for line in rows if line[:2] in {"+ ", "- "} and line not in _LEGENDS]
    shown = differing or rows[:1]
    return f"{said} {', '.join(shown[:_MOST_SHOWN])}" if shown else said


def _title(line: str) -> str:
    if not any(mark in line for mark in _TITLE_MARKS):
        return ""
    for pattern in _TITLES:
        if found := _compiled(pattern).fullmatch(line):
            return re.sub(r"\s+", " ", found[1]).strip()
    return ""


def _frame(line: str) -> tuple[str, int, int] | None:
    if ":" not in line:
        return None
    for pattern in _FRAMES:
        if found := _compiled(pattern).fullmatch(line):
            return found[1], int(found[2]), int(found[3] or 0)
    return None
