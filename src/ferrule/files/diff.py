"""Differences of two texts: which lines changed, and unified diffs as git writes them.

The work is bounded: where the shortest difference costs too much to find, the texts are cut at lines that stand once in
each, and between those a longer and as true difference is shown where need be.
Lines end at LF alone, as in git; a CR before it is part of the line.
"""

import bisect
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

CONTEXT_LINES = 3
LIMIT_STEPS = 1_000_000
"""Comparisons of lines after which no shortest difference is looked for."""
LIMIT_EDITS = 500
_NO_NEWLINE = "\\ No newline at end of file\n"
_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}


class DiffChange(NamedTuple):
    """Items `start` up to `end` of the one sequence became items `new_start` up to `new_end` of the other."""

    start: int
    end: int
    new_start: int
    new_end: int


class _DiffBlock(NamedTuple):
    """Lines `start` up to `end` of the text before became these lines."""

    start: int
    end: int
    new: list[str]


def changes(before: Sequence[str], after: Sequence[str]) -> list[DiffChange]:
    """Where the two differ, in order; everything between is equal."""
    head = _same(before, after)
    tail = _same(before[head:][::-1], after[head:][::-1])
    one, other = before[head : len(before) - tail], after[head : len(after) - tail]
    if not one and not other:
        return []
    found = _shortest(one, other) if one and other else None
    if found is None:
        found = _between_anchors(one, other)
    return [DiffChange(*(number + head for number in change)) for change in found]


def _between_anchors(before: Sequence[str], after: Sequence[str]) -> list[DiffChange]:
    """The differences between lines that stand once in each text and in the same order: patience's way."""
    found: list[DiffChange] = []
    x = y = 0
    for anchor, there in (*_anchors(before, after), (len(before), len(after))):
        one, other = before[x:anchor], after[y:there]
        if one != other:
            inner = _shortest(one, other) if one and other else None
            whole = [DiffChange(0, len(one), 0, len(other))]
            found += (
                DiffChange(c.start + x, c.end + x, c.new_start + y, c.new_end + y)
                for c in (whole if inner is None else inner)
            )
        x, y = anchor + 1, there + 1
    return found


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Where such lines are in both: the longest row of them that rises in both."""
    there = {line: number for line, number in _singles(after).items() if number >= 0}
    pairs = [(number, there[line]) for line, number in _singles(before).items() if number >= 0 and line in there]
    ends: list[int] = []
    """By length: where the row of that length ends whose end is the lowest."""
    rows: list[int] = []
    came: list[int] = []
    for at, (_, number) in enumerate(pairs):
        place = bisect.bisect_left(ends, number)
        came.append(rows[place - 1] if place else -1)
        if place == len(ends):
            ends.append(number)
            rows.append(at)
        else:
            ends[place], rows[place] = number, at
    found, at = [], rows[-1] if rows else -1
    while at >= 0:
        found.append(pairs[at])
        at = came[at]
    return found[::-1]


def _singles(lines: Sequence[str]) -> dict[str, int]:
    """The number of each line, in order; -1 for those that stand more than once."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines):
        found[line] = -1 if line in found else number
    return found


def diff(path: str, before: str | None, after: str | None, *, mode: str = "100644") -> str:
    """The diff between two whole texts, empty when they are equal. None stands for an absent file."""
    if before == after:
        return ""
    old, new = _lines(before or ""), _lines(after or "")
    if before is None:
        head = _header(path, f"new file mode {mode}\n", old=False, body=bool(new))
    elif after is None:
        head = _header(path, f"deleted file mode {mode}\n", new=False, body=bool(old))
    else:
        head = _header(path)
    blocks = [_DiffBlock(c.start, c.end, new[c.new_start : c.new_end]) for c in changes(old, new)]
    return head + _hunks(old, blocks)


def diff_of_splices(path: str, before: str, splices: Iterable[tuple[int, int, str]]) -> str:
    """The diff that the splices (start, end, new text) make; they come in order and do not overlap.

    Only the lines that they touch are compared, so that the cost is linear in the text.
    """
    spans = list(_whole_lines(before, splices))
    if not spans:
        return ""
    # Of a long file only the lines around the splices are looked at one by one.
    first, last = _around(before, spans[0][0], spans[-1][1])
    above = before.count("\n", 0, first)
    blocks: list[_DiffBlock] = []
    line, counted = 0, first
    for start, end, new in spans:
        line += before.count("\n", counted, start)
        counted = start
        old_lines, new_lines = _lines(before[start:end]), _lines(new)
        blocks += (
            _DiffBlock(line + c.start, line + c.end, new_lines[c.new_start : c.new_end])
            for c in changes(old_lines, new_lines)
        )
    return _header(path) + _hunks(_lines(before[first:last]), blocks, above) if blocks else ""


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """Whole lines with as many before and behind as a diff shows."""
    for _ in range(CONTEXT_LINES):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1
    for _ in range(CONTEXT_LINES):
        end = text.find("\n", end) + 1 or len(text)
    return start, end


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items the two share at the beginning."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _shortest(before: Sequence[str], after: Sequence[str]) -> list[DiffChange] | None:
    """The shortest edit script by Myers' greedy search, or None when it costs too much.

    `reach[k]` is how far into `before` a path with the present number of edits gets on diagonal k = x - y.
    """
    steps = 0
    reach = {1: 0}
    history: list[dict[int, int]] = []
    for edits in range(min(len(before) + len(after), LIMIT_EDITS) + 1):
        history.append(reach)
        reach = dict(reach)
        for k in range(-edits, edits + 1, 2):
            came = _neighbour(reach, k, edits)
            x = start = reach[came] + (came < k)
            y = x - k
            while x < len(before) and y < len(after) and before[x] == after[y]:
                x, y = x + 1, y + 1
            reach[k] = x
            steps += 1 + x - start
            if x >= len(before) and y >= len(after):
                return _trace_changes(history, len(before), len(after))
        if steps > LIMIT_STEPS:
            return None
    return None


def _neighbour(reach: dict[int, int], k: int, edits: int) -> int:
    """The diagonal from which a path comes onto diagonal k: by an insertion from above, or by a deletion."""
    return k + 1 if k == -edits or (k != edits and reach[k - 1] < reach[k + 1]) else k - 1


def _trace_changes(history: list[dict[int, int]], x: int, y: int) -> list[DiffChange]:
    """The changes on the path that ended at (x, y), neighbouring edits joined."""
    found: list[DiffChange] = []
    for edits in range(len(history) - 1, 0, -1):
        reach, k = history[edits], x - y
        came = _neighbour(reach, k, edits)
        x = reach[came]
        y = x - came
        change = DiffChange(x, x + (came < k), y, y + (came > k))
        if found and (found[-1].start, found[-1].new_start) == (change.end, change.new_end):
            change = DiffChange(x, found[-1].end, y, found[-1].new_end)
            found.pop()
        found.append(change)
    return found[::-1]


def _lines(text: str) -> list[str]:
    """The lines with their LF; only the last one can lack it."""
    pieces = text.split("\n")
    last = pieces.pop()
    lines = [piece + "\n" for piece in pieces]
    if last:
        lines.append(last)
    return lines


def _whole_lines(before: str, splices: Iterable[tuple[int, int, str]]) -> Iterable[tuple[int, int, str]]:
    """The splices widened to whole lines; those on the same or on neighbouring lines are joined into one."""
    begin = end = done = 0
    parts: list[str] = []
    for start, stop, new in splices:
        line = before.rfind("\n", end, start) + 1
        if line > end or not parts:
            if parts:
                yield begin, end, "".join(parts) + before[done:end]
            begin = done = line
            parts = []
        parts += (before[done:start], new)
        done = stop
        if stop >= end:
            end = before.find("\n", stop) + 1 or len(before)
    if parts:
        yield begin, end, "".join(parts) + before[done:end]


def _hunks(lines: list[str], blocks: list[_DiffBlock], above: int = 0) -> str:
    """`above` is how many lines of the file come before these."""
    parts: list[str] = []
    moved = 0
    index = 0
    while index < len(blocks):
        last = index
        while last + 1 < len(blocks) and blocks[last + 1].start - blocks[last].end <= 2 * CONTEXT_LINES:
            last += 1
        group = blocks[index : last + 1]
        start = max(0, group[0].start - CONTEXT_LINES)
        end = min(len(lines), group[-1].end + CONTEXT_LINES)
        grown = sum(len(block.new) - (block.end - block.start) for block in group)
        old = _range(above + start, end - start)
        new = _range(above + start + moved, end - start + grown)
        parts.append(f"@@ -{old} +{new} @@\n")
        at = start
        for block in group:
            parts += (_render_line(" ", line) for line in lines[at : block.start])
            parts += (_render_line("-", line) for line in lines[block.start : block.end])
            parts += (_render_line("+", line) for line in block.new)
            at = block.end
        parts += (_render_line(" ", line) for line in lines[at:end])
        moved += grown
        index = last + 1
    return "".join(parts)


def _range(start: int, count: int) -> str:
    if count == 1:
        return str(start + 1)
    # An empty range is named by the line before it.
    return f"{start + 1 if count else start},{count}"


def _render_line(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n{_NO_NEWLINE}"


def _header(path: str, mode: str = "", *, old: bool = True, new: bool = True, body: bool = True) -> str:
    one, other = _quote_path("a/" + path), _quote_path("b/" + path)
    head = f"diff --git {one} {other}\n{mode}"
    if not body:
        return head
    # As in git, a tab shows where a name with blanks in it ends.
    stop = "\t" if " " in path else ""
    before = one + stop if old else "/dev/null"
    after = other + stop if new else "/dev/null"
    return f"{head}--- {before}\n+++ {after}\n"


def _quote_path(name: str) -> str:
    """The name as git writes it: in quotes, with escapes, when it could be misread."""
    if name.isprintable() and '"' not in name and "\\" not in name:
        return name
    return '"' + "".join(_escape_character(character) for character in name) + '"'


def _escape_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(character))
