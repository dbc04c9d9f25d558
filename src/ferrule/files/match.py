"""Find the place of an edit, from an exact match to four forgiving ones, without ever guessing.

Each rung lists all places and needs exactly one, or takes them all if the edit is meant everywhere. Two places on
one rung end the search: a looser rung is tried only if the stricter ones have no place at all.

The last rung allows one consistent change of indentation: the change that carries the old text onto the file
carries the new text along. The evidence is a set of pairs, the old text's indentation and the file's, from every
line that is not blank. If the evidence does not say what becomes of an indentation, there is no answer; nothing is
guessed.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

from ferrule.files.diff import changes
from ferrule.files.text import PositionMapper, Splice, TextFile, TextLines, flat

BLANKS = " \t"
WIDTHS = range(1, 9)
"""How many spaces may stand for one tab."""

_TABS_THEN_SPACES = re.compile(r"(\t*)( *)")

Pairs = dict[str, str]
"""The old text's indentations and what they are in the file."""
Move = Callable[[str], str | None]


class Habits(NamedTuple):
    """How a file indents."""

    tabs: bool
    spaces: bool
    step: int
    """The least indentation with spaces; 0 without any."""


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANKS))]


def pairs_of(old_indents: Sequence[str | None], lines: Sequence[str], first: int) -> Pairs:
    """The pairs for the lines from `first` on, where None stands for blank ones; none if no one shift fits."""
    found: Pairs = {}
    for offset, old in enumerate(old_indents):
        if old is not None:
            here = indentation(lines[first + offset])
            if found.setdefault(old, here) != here:
                return {}
    return found if _prefix_move(found) or _unit_moves(found) else {}


def habits_of(lines: Iterable[str]) -> Habits:
    tabs = False
    step = 0
    for line in lines:
        if line.startswith("\t"):
            tabs = True
        elif line.startswith("  "):
            width = len(line) - len(line.lstrip(" "))
            step = min(step or width, width)
    return Habits(tabs, step > 0, step)


def shift_lines(
    new_lines: Sequence[str], old_indents: Sequence[str | None], pairs: Pairs, habits: Callable[[], Habits]
) -> list[str] | None:
    """The new lines, moved as the old ones were; None if one of them cannot be. Blank lines become empty."""
    moved = dict(pairs)
    texts = [line.lstrip(BLANKS) for line in new_lines]
    indents = {indentation(line) for line, text in zip(new_lines, texts, strict=True) if text}
    unknown = sorted(indents - moved.keys())
    if unknown:
        written = indents.union(old for old in old_indents if old is not None)
        moves = _moves(pairs, written, habits)
        fits = _fits(pairs, habits)
        for indent in unknown:
            results = {result for move in moves if (result := move(indent)) is not None and fits(result)}
            if len(results) != 1:
                return None
            moved[indent] = results.pop()
    return [moved[indentation(line)] + text if text else "" for line, text in zip(new_lines, texts, strict=True)]


def _moves(pairs: Pairs, written: set[str], habits: Callable[[], Habits]) -> list[Move]:
    """Every reading of the pairs that also says what becomes of other indentations."""
    prefix = _prefix_move(pairs)
    moves = [prefix] if prefix else []
    units = _unit_moves(pairs)
    if len(units) > 1:
        # One level seen leaves the width open. Then only an unmoved level counts, and only if the one
        # that wrote the spaces, model or file, is seen to indent by that width.
        to_tabs = any("\t" in here for here in pairs.values())
        step = math.gcd(*(len(indent) for indent in written)) if to_tabs else habits().step
        units = {unit: move for unit, move in units.items() if unit == (step, 0)}
    return moves + list(units.values())


def _prefix_move(pairs: Pairs) -> Move | None:
    """The same blanks before every line, in the file or in the old text."""
    old, here = next(iter(pairs.items()))
    if here.endswith(old):
        added = here[: len(here) - len(old)]
        if all(there == added + given for given, there in pairs.items()):
            return lambda indent: added + indent
    if old.endswith(here):
        dropped = old[: len(old) - len(here)]
        if all(given == dropped + there for given, there in pairs.items()):
            return lambda indent: indent[len(dropped) :] if indent.startswith(dropped) else None
    return None


def _unit_moves(pairs: Pairs) -> dict[tuple[int, int], Move]:
    """Tabs for spaces or spaces for tabs, by (width of a tab, levels added), as far as they fit all pairs."""
    olds, heres = "".join(pairs), "".join(pairs.values())
    if "\t" in heres and "\t" not in olds and " " in olds:
        convert = _tabs_for_spaces
    elif "\t" in olds and "\t" not in heres and " " in heres:
        convert = _spaces_for_tabs
    else:
        return {}
    found: dict[tuple[int, int], Move] = {}
    old, here = next(iter(pairs.items()))
    for width in WIDTHS:
        levels = _level(here, width) - _level(old, width)
        move = convert(width, levels)
        if all(move(given) == there for given, there in pairs.items()):
            found[width, levels] = move
    return found


def _level(indent: str, width: int) -> int:
    tabs = indent.count("\t")
    return tabs + (len(indent) - tabs) // width


def _tabs_for_spaces(width: int, levels: int) -> Move:
    def move(indent: str) -> str | None:
        level = len(indent) // width + levels
        if "\t" in indent or level < 0:
            return None
        return "\t" * level + " " * (len(indent) % width)

    return move


def _spaces_for_tabs(width: int, levels: int) -> Move:
    def move(indent: str) -> str | None:
        parts = _TABS_THEN_SPACES.fullmatch(indent)
        if parts is None or len(parts[1]) + levels < 0:
            return None
        return " " * (width * (len(parts[1]) + levels) + len(parts[2]))

    return move


def _fits(pairs: Pairs, habits: Callable[[], Habits]) -> Callable[[str], bool]:
    """Is an indentation of the kind that stands around it? Blanks after tabs only as wide as others there."""
    heres = set(pairs.values())
    tabs = any("\t" in here for here in heres)
    spaces = not tabs and any(heres)
    if not tabs and not spaces:
        file = habits()
        if file.tabs and file.spaces:
            return lambda indent: not indent
        tabs, spaces = file.tabs, file.spaces
    if tabs:
        aligned = {len(here) - len(here.rstrip(" ")) for here in heres} | {0}
        return lambda indent: _is_tabbed(indent, aligned)
    return lambda indent: not spaces or "\t" not in indent


def _is_tabbed(indent: str, aligned: set[int]) -> bool:
    parts = _TABS_THEN_SPACES.fullmatch(indent)
    return parts is not None and len(parts[2]) in aligned


Rung = Literal["exact", "line-endings", "trailing-blanks", "indentation"]
Reason = Literal["empty", "absent", "unshiftable", "repetitive"]

LIMIT_LISTED = 100_000
"""How many places an ambiguity lists."""
LIMIT_REPLACED = 1_000_000
"""How many places one edit may change."""
LIMIT_STEPS = 100_000_000
"""Characters compared for overlapping or rejected places before a text counts as too repetitive to search."""
_LINE_STEPS = 50
"""What comparing a line's indentation costs, in such characters."""


class EditMatch(NamedTuple):
    """The edit is clear."""

    rung: Rung
    splices: tuple[Splice, ...]
    """What to do; none for a place that already reads as it should."""
    lines: tuple[tuple[int, int], ...]
    """For each place, the first and last line of its new text in the file as it will be, from 1."""


class Ambiguous(NamedTuple):
    """The old text fits more than one place."""

    rung: Rung
    lines: tuple[int, ...]
    """The line of each place, from 1."""
    complete: bool = True
    """False when there were too many places to list them all."""


class Missing(NamedTuple):
    """The old text fits nowhere."""

    reason: Reason = "absent"


class _MatchSpan(NamedTuple):
    """One place of the file's text: the lines that it has and those that it will have, with their ends."""

    start: int
    end: int
    before: Sequence[str]
    after: Sequence[str]


class _Hits(NamedTuple):
    positions: list[int]
    complete: bool


def find(file: TextFile, old: str, new: str, *, everywhere: bool) -> EditMatch | Ambiguous | Missing:
    """Where `old` stands in the file, and the splices that put `new` there. Both are literal."""
    if not old:
        return Missing("empty")
    page = TextLines(file.text)
    outcome = _exact(page, old, new, everywhere=everywhere)
    if outcome == Missing() and ("\r" in old or "\r" in file.text):
        outcome = _flat(page, old, new, everywhere=everywhere, bare=False)
    if outcome == Missing() and old.strip(" \t\r\n"):
        outcome = _flat(page, old, new, everywhere=everywhere, bare=True)
        if outcome == Missing():
            outcome = _match_indentation(page, old, new, everywhere=everywhere)
    return outcome


def _exact(page: TextLines, old: str, new: str, *, everywhere: bool) -> EditMatch | Ambiguous | Missing:
    text, size = page.text, len(old)

    def admits(at: int) -> bool:
        """Half of a CR LF is no place: the rung for line ends takes it whole."""
        begins = old[0] == "\n" and at > 0 and text[at - 1] == "\r"
        ends = old[-1] == "\r" and text.startswith("\n", at + size)
        return not begins and not ends

    hits = _hits(text, old, stride=size, cost=size, admits=admits, everywhere=everywhere)
    refusal = _refusal("exact", text, page.mark, hits, everywhere=everywhere)
    if refusal is not None:
        return refusal
    flattened = flat(new, page.mark)
    # Line ends are meant literally only where nothing else changes: new lines get the file's own.
    differs = flat(old, page.mark) != flattened
    spelled = "\r\n" in old or (page.mark == "\r" and "\r" in old) or not differs
    unix = new if spelled else flattened
    if spelled and differs:
        news = flattened.split("\n")
        plan = _plan(flat(old, page.mark).split("\n"), news)
        return _build_match(page, "exact", (_rewritten(page, at, at + size, plan, news) for at in hits.positions))

    def places() -> Iterator[_MatchSpan]:
        for at in hits.positions:
            end = at + size
            after = unix
            if not spelled and "\n" in unix:
                after = unix.replace("\n", "\n" if "\n" in old else page.line_end(end))
            yield _MatchSpan(at, end, (old,), (after,))

    return _build_match(page, "exact", places())


def _flat(page: TextLines, old: str, new: str, *, everywhere: bool, bare: bool) -> EditMatch | Ambiguous | Missing:
    """Compare without the kind of line ends and, if `bare`, without blanks at the ends of lines."""
    olds = flat(old, page.mark).split("\n")
    bares, bare_olds = page.flats, olds
    if bare:
        bares, bare_olds = [line.rstrip(BLANKS) for line in bares], [line.rstrip(BLANKS) for line in olds]
    hay, needle = "\n".join(bares), "\n".join(bare_olds)
    # Blanks that old has at its own edges stand for all those of the file there; else the file keeps its own.
    first_cut, last_cut = bool(olds[0]) and not bare_olds[0], olds[-1] != bare_olds[-1]
    rung: Rung = "trailing-blanks" if bare else "line-endings"

    def admits(at: int) -> bool:
        end = at + len(needle)
        return not last_cut or end == len(hay) or hay[end] == "\n"

    size = len(needle)
    hits = _hits(hay, needle, stride=size, cost=size, admits=admits, everywhere=everywhere)
    refusal = _refusal(rung, hay, "\n", hits, everywhere=everywhere)
    if refusal is not None:
        return refusal
    news = flat(new, page.mark).split("\n")
    plan = _plan(olds, news)

    def places() -> Iterator[_MatchSpan]:
        walk = PositionMapper(page.wholes, bares)
        end = 0
        for at in hits.positions:
            column = walk.column(at)
            at_end = column == len(bares[walk.line]) and not first_cut
            # Two places that meet at the end of a line do not both take the blanks there.
            start = max(end, walk.start + (len(page.flats[walk.line]) if at_end else column))
            column = walk.column(at + len(needle))
            end = walk.start + (len(page.flats[walk.line]) if last_cut else column)
            yield _rewritten(page, start, end, plan, news)

    return _build_match(page, rung, places())


def _match_indentation(page: TextLines, old: str, new: str, *, everywhere: bool) -> EditMatch | Ambiguous | Missing:
    olds, news = flat(old, page.mark).split("\n"), flat(new, page.mark).split("\n")
    closed = not olds[-1]
    body = olds[:-1] if closed else olds
    indents = [indentation(line) if line.strip(BLANKS) else None for line in body]
    hay = "\n".join(["", *(line.strip(BLANKS) for line in page.flats), ""])
    needle = "\n".join(["", *(line.strip(BLANKS) for line in body), ""])
    windows: dict[int, tuple[int, Pairs]] = {}
    line = counted = 0

    def admits(at: int) -> bool:
        nonlocal line, counted
        line += hay.count("\n", counted, at)
        counted = at
        # A last line without an end is not one that has it.
        if closed and line + len(body) >= len(page.flats):
            return False
        pairs = pairs_of(indents, page.flats, line)
        if pairs:
            windows[at] = (line, pairs)
        return bool(pairs)

    # Neighbouring places share the line end between them.
    stride, cost = len(needle) - 1, len(needle) + _LINE_STEPS * len(body)
    hits = _hits(hay, needle, stride=stride, cost=cost, admits=admits, everywhere=everywhere)
    refusal = _refusal("indentation", hay, "\n", hits, everywhere=everywhere)
    if refusal is not None:
        return refusal
    habits = cache(lambda: habits_of(page.flats))
    plan = _plan(olds, news)
    walk = PositionMapper(page.wholes, page.flats)
    places: list[_MatchSpan] = []
    for first, pairs in windows.values():
        moved = shift_lines(news, indents, pairs, habits)
        if moved is None:
            return Missing("unshiftable")
        start, last = walk.to(first), first + len(body) - 1
        end = walk.to(last) + (len(page.wholes[last]) + 1 if closed else len(page.flats[last]))
        places.append(_rewritten(page, start, end, plan, moved))
    return _build_match(page, "indentation", places)


def _hits(hay: str, needle: str, *, stride: int, cost: int, admits: Callable[[int], bool], everywhere: bool) -> _Hits:
    """Where the needle stands: everywhere at least `stride` apart, or else all places, overlapping ones too."""
    found: list[int] = []
    steps, limit = LIMIT_STEPS, LIMIT_REPLACED if everywhere else LIMIT_LISTED
    at = hay.find(needle)
    while at >= 0:
        jump = 1
        if admits(at):
            found.append(at)
            jump = stride if everywhere else 1
        if jump < stride or not everywhere:
            steps -= cost
        if steps < 0 or len(found) > limit:
            return _Hits(found[:limit], complete=False)
        at = hay.find(needle, at + jump)
    return _Hits(found, complete=True)


def _refusal(rung: Rung, hay: str, mark: str, hits: _Hits, *, everywhere: bool) -> Ambiguous | Missing | None:
    if len(hits.positions) > 1 and not everywhere:
        numbers: list[int] = []
        line = 1
        counted = 0
        for at in hits.positions:
            line += hay.count(mark, counted, at)
            counted = at
            numbers.append(line)
        return Ambiguous(rung, tuple(numbers), hits.complete)
    if not hits.complete:
        return Missing("repetitive")
    return None if hits.positions else Missing()


def _plan(olds: list[str], news: list[str]) -> list[tuple[int, int]]:
    """For each new line: the old line that it repeats, or -1, and the old line whose end it takes."""
    plan: list[tuple[int, int]] = []
    done = 0
    # What follows the last line end is no line, even if it reads like one.
    before, after = ([*(line + "\n" for line in lines[:-1]), lines[-1]] for lines in (olds, news))
    for start, end, new_start, new_end in (*changes(before, after), (len(olds), len(olds), 0, 0)):
        plan += ((line, line) for line in range(done, start))
        plan += ((-1, max(0, min(start + added, end - 1))) for added in range(new_end - new_start))
        done = end
    return plan


def _rewritten(page: TextLines, start: int, end: int, plan: list[tuple[int, int]], news: list[str]) -> _MatchSpan:
    """The place with its new lines: those that old and new share stay as they are in the file."""
    *wholes, rest = page.text[start:end].split(page.mark)
    ends = ["\r\n" if page.mark == "\n" and whole.endswith("\r") else page.mark for whole in wholes]
    before = [*(whole + page.mark for whole in wholes), rest]
    after: list[str] = []
    for (kept, source), line in zip(plan, news, strict=True):
        text = line if kept < 0 else before[kept].removesuffix(ends[kept] if kept < len(ends) else "")
        close = ends[min(source, len(ends) - 1)] if ends else page.line_end(end)
        after.append(text + close)
    after[-1] = after[-1].removesuffix(close)
    return _MatchSpan(start, end, before, after)


def _build_match(page: TextLines, rung: Rung, places: Iterable[_MatchSpan]) -> EditMatch:
    splices: list[Splice] = []
    ranges: list[tuple[int, int]] = []
    line = 1
    done = 0
    for place in places:
        line += page.text.count(page.mark, done, place.start)
        done = place.end
        after = flat("".join(place.after), page.mark)
        ends = after.count("\n")
        first = line
        if not after and done == len(page.text) and page.text.endswith(page.mark, 0, place.start):
            first -= 1
        ranges.append((first, first + ends - (ends > 0 and after.endswith("\n"))))
        line += ends
        splice = _trim_splice(place)
        if splice is not None:
            splices.append(splice)
    return EditMatch(rung, tuple(splices), tuple(ranges))


def _trim_splice(place: _MatchSpan) -> Splice | None:
    """Without the lines at either edge that stay the same; None if all of them do."""
    start, end, before, after = place
    shared = min(len(before), len(after))
    head = 0
    while head < shared and before[head] == after[head]:
        start += len(before[head])
        head += 1
    tail = 0
    while tail < shared - head and before[-1 - tail] == after[-1 - tail]:
        end -= len(before[-1 - tail])
        tail += 1
    new = "".join(after[head : len(after) - tail])
    return Splice(start, end, new) if new or start < end else None
