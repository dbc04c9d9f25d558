"""Which errors of a file are new: not those that only moved with their lines."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from ferrule.core.problems import Problem
from ferrule.support.diff import Change, changes
from ferrule.workspace.textfile import Page

_NUMBERED = r"\b([Ll]ine|[Cc]olumn) \d+|(\.\w{1,6}):\d+(?::\d+)?"

_Where = Callable[[int], Hashable]
"""What stands for a line when two are compared; None where nothing does."""


def news(old: Sequence[Problem], new: Sequence[Problem], old_text: str, new_text: str) -> tuple[Problem, ...]:
    """Those of the new problems that the old ones do not account for, each of them for one.

    A problem is the old one if it says the same of the same line, wherever that line is now; of the same words
    elsewhere; or of a line that was rewritten, among those that came in its place.
    """
    said = {_saying(one) for one in old}
    if not any(_saying(one) in said for one in new):
        return tuple(new)
    before, after = Page(old_text).flats, Page(new_text).flats
    moved = changes(before, after)
    gone, left = dict.fromkeys(range(len(old))), list(range(len(new)))
    ways: tuple[tuple[_Where, _Where], ...] = (
        (lambda line: _carried(line, moved), lambda line: line),
        (lambda line: _words(before, line), lambda line: _words(after, line)),
        (lambda line: _rewritten(line, moved), lambda line: _written(line, moved)),
    )
    for then, now in ways:
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for at in reversed(gone):
            if (where := then(old[at].line)) is not None:
                waiting[_saying(old[at]), where].append(at)
        still = []
        for at in left:
            partners = waiting.get((_saying(new[at]), now(new[at].line)))
            if partners:
                del gone[partners.pop()]
            else:
                still.append(at)
        left = still
    return tuple(new[at] for at in left)


def _saying(one: Problem) -> Hashable:
    """What it says, wherever it is. Some name lines in their messages, and those move too."""
    return (re.sub(_NUMBERED, r"\1\2", one.message), one.code, one.source)


def _carried(line: int, moved: Sequence[Change]) -> int | None:
    """The number of an old line now; None where it was rewritten."""
    at = bisect_right(moved, line - 1, key=lambda change: change.start) - 1
    if at < 0:
        return line
    return None if line - 1 < moved[at].end else line + moved[at].new_end - moved[at].end


def _words(lines: Sequence[str], line: int) -> str | None:
    """What stands there, however far in."""
    return lines[line - 1].strip() if 0 < line <= len(lines) else None


def _rewritten(line: int, moved: Sequence[Change]) -> int | None:
    """The change that took an old line away."""
    at = bisect_right(moved, line - 1, key=lambda change: change.start) - 1
    return at if at >= 0 and line - 1 < moved[at].end else None


def _written(line: int, moved: Sequence[Change]) -> int | None:
    """The change that brought a new line."""
    at = bisect_right(moved, line - 1, key=lambda change: change.new_start) - 1
    return at if at >= 0 and line - 1 < moved[at].new_end else None
