"""Where the hunks of a patch go in a file: one place for each, in their order, and never a guess.

Lines are compared whole, without their ends, on the rungs of an edit: as they are, without blanks at their ends, with
one consistent change of indentation. A hunk has to fit exactly one place on the first rung where it fits at all. What
counts is the part of the file that the hunks before it and its `@@` lines leave. Where that still leaves several
places, those inside of what its `@@` lines head (a class and its method, by indentation) go before those behind it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from ferrule.workspace import indent
from ferrule.workspace.indent import BLANKS
from ferrule.workspace.match import Rung
from ferrule.workspace.patch import Hunk
from ferrule.workspace.sheet import Sheet, Swap, key
from ferrule.workspace.textfile import Splice, TextFile

Reason = Literal["absent", "elsewhere", "no-anchor", "ambiguous", "unshiftable", "repetitive", "nowhere"]

LIMIT_LISTED = 100
"""How many places an ambiguity lists."""
LIMIT_STEPS = 50_000_000
"""Lines compared before a file counts as too repetitive to be searched."""
RUNGS: tuple[Rung, ...] = ("exact", "trailing-blanks", "indentation")
_INDENT_STEPS = 10
"""What comparing a line's indentation costs, in such lines."""


class Placed(NamedTuple):
    """All hunks have their place."""

    splices: tuple[Splice, ...]
    loose: tuple[tuple[int, Rung], ...]
    """The line in the patch of each hunk that something was forgiven to, and what."""


class Unplaced(NamedTuple):
    """A hunk has no place, or more than one."""

    hunk: Hunk
    reason: Reason
    lines: tuple[int, ...] = ()
    """The lines of the file, from 1, that it fits."""
    complete: bool = True
    """False when there were too many places to list them all."""
    heads: tuple[str, ...] = ()
    """For each of the lines of an ambiguity: the line that heads what it is in; empty where nothing does."""
    anchor: str = ""
    """The `@@` line that is not there."""
    done: int = 0
    """The line of the file where the hunk before it ends."""


class _Spot(NamedTuple):
    """A hunk's place: before the line `first`, from 0."""

    first: int
    rung: Rung = "exact"
    moved: list[str] | None = None
    """Its added lines, where they were moved with the indentation."""


class _Anchor(NamedTuple):
    """An `@@` line as it is compared, on the first rung on which it is there, and the first line where it can be."""

    line: str
    rung: Rung
    first: int


class _UnplacedError(Exception):
    def __init__(self, outcome: Unplaced) -> None:
        super().__init__()
        self.outcome = outcome


def place(file: TextFile, hunks: Sequence[Hunk], *, limit_steps: int = LIMIT_STEPS) -> Placed | Unplaced:
    """The splices that the hunks of one file stand for, or what is wrong with the first that has no place."""
    sheet = Sheet(file.text, (line for hunk in hunks for line in (*hunk.anchors, *hunk.old())))
    swaps: list[Swap] = []
    loose: list[tuple[int, Rung]] = []
    done, left = 0, limit_steps
    try:
        for hunk in hunks:
            search = _Search(sheet, hunk, done, left)
            spot = search.spot()
            if spot.rung != "exact":
                loose.append((hunk.line, spot.rung))
            swaps += _swaps(sheet, hunk, spot)
            done, left = spot.first + len(search.old), search.left
    except _UnplacedError as error:
        return error.outcome
    return Placed(tuple(sheet.splices(swaps)), tuple(loose))


class _Search:
    """Looks for the place of one hunk, from the line `done` on, where the hunk before it ends."""

    def __init__(self, sheet: Sheet, hunk: Hunk, done: int, left: int) -> None:
        self.sheet = sheet
        self.hunk = hunk
        self.done = done
        self.left = left
        """How many steps are left."""
        self.old = hunk.old()
        self.anchors: list[_Anchor] = []

    def spot(self) -> _Spot:
        self._anchor()
        if not self.old:
            return self._behind_anchor()
        # The hunk may begin with its `@@` line once more.
        start = max(self.done, self.anchors[-1].first if self.anchors else 0)
        for rung in RUNGS:
            firsts = self._fits(rung, start)
            if firsts:
                return self._chosen(firsts, rung)
        others = next((firsts for rung in RUNGS if (firsts := self._fits(rung, 0, anywhere=True))), [])
        raise self._unplaced("elsewhere" if others else "absent", others)

    def _anchor(self) -> None:
        """Find the `@@` lines, each after the one before. They may head earlier hunks too, so they begin anywhere."""
        start = 0
        for line in self.hunk.anchors:
            found = next((anchor for rung in RUNGS if (anchor := self._anchor_on(rung, line, start))), None)
            if found is None:
                raise self._unplaced("no-anchor", anchor=line)
            self.anchors.append(found)
            start = found.first + 1

    def _anchor_on(self, rung: Rung, line: str, start: int) -> _Anchor | None:
        compared = key(line, rung)
        hits = self.sheet.view(rung).at[compared]
        at = bisect_left(hits, start)
        return _Anchor(compared, rung, hits[at]) if at < len(hits) else None

    def _behind_anchor(self) -> _Spot:
        """Lines that are only added go right behind the last `@@` line, or to the end of the file if that is said."""
        total = len(self.sheet.lines)
        if self.hunk.at_end or not total:
            return _Spot(total)
        if not self.anchors:
            raise self._unplaced("nowhere")
        line, rung, first = self.anchors[-1]
        hits = self.sheet.view(rung).at[line]
        found = hits[bisect_left(hits, max(first, self.done - 1)) :]
        if not found:
            raise self._unplaced("elsewhere", hits)
        return _Spot(self._only(found) + 1)

    def _fits(self, rung: Rung, start: int, *, anywhere: bool = False) -> list[int]:
        """The lines, from `start` on, where the old lines stand; as many as are needed to know."""
        view = self.sheet.view(rung)
        old = [key(line, rung) for line in self.old]
        if rung == "indentation" and not any(old):
            return []
        # The line that is rarest in the file says fastest where the others are not.
        rarest = min(range(len(old)), key=lambda at: len(view.at[old[at]]))
        hits = view.at[old[rarest]]
        last = len(view.lines) - len(old)
        if self.hunk.at_end and not anywhere:
            start = max(start, last)
        enough = LIMIT_LISTED + 1 if anywhere or not self.anchors else len(hits)
        found: list[int] = []
        for at in range(bisect_left(hits, start + rarest), len(hits)):
            first = hits[at] - rarest
            if first > last or len(found) >= enough:
                break
            self._spend(len(old))
            if view.lines[first : first + len(old)] == old and (rung != "indentation" or self._pairs(first)):
                found.append(first)
        return found

    def _pairs(self, first: int) -> indent.Pairs:
        self._spend(_INDENT_STEPS * len(self.old))
        return indent.pairs_of(self._indents, self.sheet.lines, first)

    @cached_property
    def _indents(self) -> list[str | None]:
        return [indent.indentation(line) if line.strip(BLANKS) else None for line in self.old]

    def _chosen(self, firsts: list[int], rung: Rung) -> _Spot:
        first = self._only(firsts)
        if rung != "indentation":
            return _Spot(first, rung)
        added = [row[1:] for row in self.hunk.rows if row[0] == "+"]
        moved = indent.shifted(added, self._indents, self._pairs(first), lambda: self.sheet.habits)
        if moved is None:
            raise self._unplaced("unshiftable", [first])
        return _Spot(first, rung, moved)

    def _only(self, firsts: list[int]) -> int:
        """The one place; of several, the one inside of what the `@@` lines head."""
        if len(firsts) > 1 and self.anchors:
            firsts = [first for first in firsts if self._is_inside(first)] or firsts
        if len(firsts) > 1:
            raise self._unplaced("ambiguous", firsts)
        return firsts[0]

    def _is_inside(self, number: int) -> bool:
        """Do all `@@` lines head this line, from the last to the first, or is it the last one itself?"""
        wanted = len(self.anchors)
        while wanted and number >= 0:
            self._spend(1)
            anchor = self.anchors[wanted - 1]
            if self.sheet.view(anchor.rung).lines[number] == anchor.line:
                wanted -= 1
            number = self.sheet.parents[number]
        return not wanted

    def _spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise self._unplaced("repetitive")

    def _unplaced(self, reason: Reason, firsts: Sequence[int] = (), *, anchor: str = "") -> _UnplacedError:
        listed = firsts[:LIMIT_LISTED]
        heads = tuple(map(self.sheet.head, listed)) if reason == "ambiguous" else ()
        lines = tuple(first + 1 for first in listed)
        complete = len(listed) == len(firsts)
        return _UnplacedError(Unplaced(self.hunk, reason, lines, complete, heads, anchor, self.done))


def _swaps(sheet: Sheet, hunk: Hunk, spot: _Spot) -> Iterator[Swap]:
    """What the hunk changes there; lines of context, and lines that go and come again, stay as they are in the file."""
    at = spot.first
    added = 0
    gone: list[str] = []
    come: list[str] = []
    for row in (*hunk.rows, " "):
        if row[0] == "-":
            gone.append(row[1:])
        elif row[0] == "+":
            come.append(row[1:])
        else:
            head, tail = _shared(gone, come)
            moved = come if spot.moved is None else spot.moved[added : added + len(come)]
            first, last, new = at + head, at + len(gone) - tail, moved[head : len(come) - tail]
            if new or first < last:
                yield sheet.swap(first, last, new)
            at += len(gone) + 1
            added += len(come)
            gone, come = [], []


def _shared(gone: list[str], come: list[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end go only to come again."""
    most = min(len(gone), len(come))
    head = next((at for at in range(most) if gone[at] != come[at]), most)
    tail = next((at for at in range(most - head) if gone[-1 - at] != come[-1 - at]), most - head)
    return head, tail
