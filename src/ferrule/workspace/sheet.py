"""A text as lines to be found and replaced whole: views that forgive blanks, what heads a line, changes as splices."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from ferrule.workspace import indent
from ferrule.workspace.indent import BLANKS
from ferrule.workspace.match import Rung
from ferrule.workspace.textfile import Page, Splice


class View(NamedTuple):
    """The lines as one rung compares them, and where those stand that are looked for."""

    lines: list[str]
    at: dict[str, list[int]]


class Swap(NamedTuple):
    """Lines `first` up to `last` become these; each is given without its end and with it apart."""

    first: int
    last: int
    new: list[tuple[str, str]]


def key(line: str, rung: Rung) -> str:
    """What is compared of a line."""
    if rung == "exact":
        return line
    return line.rstrip(BLANKS) if rung == "trailing-blanks" else line.strip(BLANKS)


class Sheet:
    """The lines of a text, numbered from 0 and without their ends; everything about them when it is first needed."""

    def __init__(self, text: str, wanted: Iterable[str]) -> None:
        """`wanted` are the lines that will be looked for."""
        self.page = Page(text)
        self.is_closed = text.endswith(self.page.mark)
        """Does the last line have an end?"""
        self.lines = self.page.flats[:-1] if self.is_closed or not text else self.page.flats
        self._wanted = set(wanted)
        self._views: dict[Rung, View] = {}

    def view(self, rung: Rung) -> View:
        if rung not in self._views:
            lines = self.lines if rung == "exact" else [key(line, rung) for line in self.lines]
            at: dict[str, list[int]] = {key(line, rung): [] for line in self._wanted}
            for number, line in enumerate(lines):
                hits = at.get(line)
                if hits is not None:
                    hits.append(number)
            self._views[rung] = View(lines, at)
        return self._views[rung]

    @cached_property
    def parents(self) -> list[int]:
        """For each line the one that heads it: the last one before it that is indented less; -1 where none is.

        A blank line belongs to what stands before it.
        """
        found: list[int] = []
        heads: list[tuple[str, int]] = [("", -1)]
        for number, line in enumerate(self.lines):
            text = line.lstrip(BLANKS)
            depth = line[: len(line) - len(text)]
            while text and heads[-1][1] >= 0 and not _is_deeper(depth, heads[-1][0]):
                heads.pop()
            found.append(heads[-1][1])
            if text:
                heads.append((depth, number))
        return found

    def head(self, number: int) -> str:
        """The text of the line that heads this one; empty where none does."""
        parent = self.parents[number]
        return self.lines[parent].strip(BLANKS) if parent >= 0 else ""

    @cached_property
    def habits(self) -> indent.Habits:
        return indent.habits_of(self.lines)

    def end(self, number: int) -> str:
        """What ends that line; for a last one without an end, what ends the one before it."""
        if number == len(self.lines) - 1 and not self.is_closed:
            number -= 1
        is_crlf = number >= 0 and self.page.mark == "\n" and self.page.wholes[number].endswith("\r")
        return "\r\n" if is_crlf else self.page.mark

    def swap(self, first: int, last: int, new: list[str]) -> Swap:
        """New lines in place of others; each takes the end of the one whose place it takes, or of the one before."""
        near = range(first, last) or range(max(first - 1, 0), max(first, 1))
        return Swap(first, last, [(line, self.end(near[min(at, len(near) - 1)])) for at, line in enumerate(new)])

    def splices(self, swaps: Iterable[Swap]) -> Iterator[Splice]:
        """The swaps, which come in order and do not overlap; whether the last line has an end stays as it is."""
        for first, last, new in _joined(swaps):
            start, text = self._offsets[first], "".join(line + end for line, end in new)
            if last == len(self.lines) and last and not self.is_closed:
                if first == last:
                    text = self.end(last - 1) + text
                elif not new and first:
                    start = self._offsets[first - 1] + len(self.lines[first - 1])
                text = text.removesuffix(new[-1][1]) if new else text
            yield Splice(start, self._offsets[last], text)

    @cached_property
    def _offsets(self) -> list[int]:
        """Where each line begins in the text, and where the last one ends."""
        starts = accumulate((len(whole) + 1 for whole in self.page.wholes), initial=0)
        return [*list(starts)[: len(self.lines)], len(self.page.text)]


def _is_deeper(depth: str, than: str) -> bool:
    return len(depth) > len(than) and depth.startswith(than)


def _joined(swaps: Iterable[Swap]) -> list[Swap]:
    """Neighbours become one, so that what happens at the end of a text is decided once."""
    found: list[Swap] = []
    for first, last, new in swaps:
        if found and found[-1].last == first:
            found[-1].new.extend(new)
            found[-1] = found[-1]._replace(last=last)
        else:
            found.append(Swap(first, last, new))
    return found
