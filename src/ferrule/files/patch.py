"""Parse patches, and find the places of their hunks in a file.

The grammar is the one that models were trained on: `*** Begin Patch`, sections for files to add, delete and
update, `*** End Patch`. Anything that surely means the same is forgiven and noted; everything else is an error
with its line. Parsing judges the text alone and looks nothing up.

Lines are compared whole, without their ends, on the rungs of an edit: as they are, without blanks at their ends,
with one consistent change of indentation. The hunks of a file go in their order, each to one place, and never by a
guess: a hunk has to fit exactly one place on the first rung on which it fits at all. Only the part of the file
counts that the hunks before it and its `@@` lines leave. If that still leaves several places, those inside of what
its `@@` lines head (a class and its method, by indentation) go before those behind it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple

from ferrule.files import match
from ferrule.files.match import BLANKS, Rung
from ferrule.files.text import Splice, TextFile, TextLines

Kind = Literal["add", "delete", "update"]

LIMIT_CHARACTERS = 10_000_000
LIMIT_FILES = 1_000
LIMIT_PATH_CHARACTERS = 250_000
"""Of all paths together. Larger patches are refused: they are read, and their paths looked up, on the way to the
question whether the call may run at all."""

BEGIN, END = "*** Begin Patch", "*** End Patch"
END_OF_FILE = "*** End of File"
_MOVE = "*** Move to:"
_SECTIONS: dict[str, Kind] = {"*** Add File:": "add", "*** Delete File:": "delete", "*** Update File:": "update"}
_FENCE = re.compile(r"```[\w-]*")
_HEREDOC = re.compile(r"""(?:apply_patch[ \t]+)?<<[ \t]*(['"]?)(\w+)\1""")
_NUMBERED = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_SIGNS = frozenset({"+", "-", " ", ""})
_SECTION_WANTED = '"*** Add File: ", "*** Delete File: " or "*** Update File: " with a path'
_SHOWN = 80


class Malformed(ValueError):  # noqa: N818 - the state of the patch, as a tool reports it
    """The text is not a patch."""

    def __init__(self, line: int, expected: str, found: str | None = None) -> None:
        """`line` counts from 1 in the text as it was given."""
        instead = "" if found is None else f", not {found[:_SHOWN]!r}"
        super().__init__(f"line {line}: expected {expected}{instead}.")
        self.line = line


class Hunk(NamedTuple):
    """One change of a file: lines that stay, go and come, and what says where."""

    line: int
    """Where it begins in the patch, from 1."""
    anchors: tuple[str, ...]
    """Lines of the file that it comes after, each after the one before: what stands behind `@@`."""
    rows: tuple[str, ...]
    """Its lines, each with its sign: a blank, `-` or `+`."""
    at_end: bool
    """Does the file end with it?"""

    def old(self) -> list[str]:
        """The lines that have to be in the file."""
        return [row[1:] for row in self.rows if row[0] != "+"]

    def new(self) -> list[str]:
        """The lines that will be in their place."""
        return [row[1:] for row in self.rows if row[0] != "-"]


class Section(NamedTuple):
    """What the patch says about one file."""

    kind: Kind
    path: str
    line: int
    moved_to: str | None = None
    lines: tuple[str, ...] = ()
    """The content of a file to add."""
    hunks: tuple[Hunk, ...] = ()


class Parsed(NamedTuple):
    """A patch that was understood."""

    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    """What was forgiven, one sentence each."""


def parse(text: str) -> Parsed:
    """Read a patch; raises `Malformed`."""
    if len(text) > LIMIT_CHARACTERS:
        raise Malformed(1, f"at most {LIMIT_CHARACTERS:,} characters; send several patches")
    notes: list[str] = []
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        notes.append("The patch has CR LF at its line ends; each file keeps its own line ends.")
    lines = text.split("\n")
    first, last = _envelope(lines, notes)
    reader = _PatchReader(lines, first + 1, last)
    sections = tuple(reader.sections())
    if not sections:
        raise Malformed(last + 1, _SECTION_WANTED, lines[last])
    if len(sections) > LIMIT_FILES:
        raise Malformed(sections[LIMIT_FILES].line, f"at most {LIMIT_FILES:,} files; send several patches")
    if sum(len(section.path) + len(section.moved_to or "") for section in sections) > LIMIT_PATH_CHARACTERS:
        raise Malformed(1, f"at most {LIMIT_PATH_CHARACTERS:,} characters of paths; send several patches")
    if reader.has_bare_lines:
        notes.append("Empty lines in the patch were read as empty lines of context; write a single blank for these.")
    return Parsed(sections, tuple(notes))


def _envelope(lines: list[str], notes: list[str]) -> tuple[int, int]:
    """Where the patch begins and ends, from 0: inside blank lines, a code fence and a here-document."""
    first, last = _trim_blank(lines, 0, len(lines) - 1)
    if first < last and _FENCE.fullmatch(lines[first].rstrip()) and lines[last].rstrip() == "```":
        first, last = _trim_blank(lines, first + 1, last - 1)
        notes.append("The patch came inside a code fence, which was left out.")
    heredoc = _HEREDOC.fullmatch(lines[first].rstrip()) if first < last else None
    if heredoc and lines[last].rstrip() == heredoc[2]:
        first, last = _trim_blank(lines, first + 1, last - 1)
        notes.append("The patch came as a here-document, whose first and last line were left out.")
    if first > last:
        raise Malformed(1, f'"{BEGIN}"', "")
    if lines[first].rstrip() != BEGIN:
        raise Malformed(first + 1, f'"{BEGIN}"', lines[first])
    if first == last or lines[last].rstrip() != END:
        raise Malformed(last + 1, f'"{END}" as the last line (was the patch cut off?)', lines[last])
    return first, last


def _trim_blank(lines: list[str], first: int, last: int) -> tuple[int, int]:
    while first <= last and not lines[first].strip():
        first += 1
    while last >= first and not lines[last].strip():
        last -= 1
    return first, last


class _PatchReader:
    """Goes through the lines between the first and the last one, once."""

    def __init__(self, lines: list[str], at: int, stop: int) -> None:
        self.lines = lines
        self.at = at
        self.stop = stop
        self.has_bare_lines = False

    def sections(self) -> list[Section]:
        found: list[Section] = []
        self._skip_blank()
        while self.at < self.stop:
            found.append(self._section())
            self._skip_blank()
        return found

    def _section(self) -> Section:
        start = self.at
        line = self.lines[start].rstrip()
        head = next((head for head in _SECTIONS if line.startswith(head)), None)
        if head is None:
            raise Malformed(start + 1, _SECTION_WANTED, line)
        path = self._path(head)
        kind = _SECTIONS[head]
        if kind == "add":
            return Section(kind, path, start + 1, lines=self._content())
        if kind == "delete":
            self._end_section("another file's section: a deletion takes no lines")
            return Section(kind, path, start + 1)
        moved_to = self._path(_MOVE) if self._line().startswith(_MOVE) else None
        hunks = tuple(self._hunks())
        if not hunks and moved_to is None:
            raise Malformed(self.at + 1, "a change: @@, or lines that begin with +, - or a blank", self.lines[self.at])
        return Section(kind, path, start + 1, moved_to, hunks=hunks)

    def _path(self, head: str) -> str:
        path = self.lines[self.at][len(head) :].strip()
        self.at += 1
        if not path:
            raise Malformed(self.at, f'a path after "{head}"')
        return path

    def _content(self) -> tuple[str, ...]:
        start = self.at
        while self.at < self.stop and self.lines[self.at].startswith("+"):
            self.at += 1
        lines = tuple(line[1:] for line in self.lines[start : self.at])
        self._end_section("a line that begins with +, as every line of a new file does, also an empty one")
        return lines

    def _end_section(self, expected: str) -> None:
        """Only blank lines stand between here and the next section."""
        wrong = self.at
        self._skip_blank()
        if self.at < self.stop and not self.lines[self.at].startswith("***"):
            raise Malformed(wrong + 1, expected, self.lines[wrong])

    def _hunks(self) -> list[Hunk]:
        found: list[Hunk] = []
        while self.at < self.stop and not self.lines[self.at].startswith("***"):
            hunk = self._hunk()
            if hunk is not None:
                found.append(hunk)
        return found

    def _hunk(self) -> Hunk | None:
        """A hunk; None for blank lines between others."""
        start = self.at
        anchors = self._anchors()
        has_header = self.at > start
        rows = self._rows()
        at_end = self._line().rstrip() == END_OF_FILE
        if at_end:
            self.at += 1
        else:
            self._drop_bare_tail(rows)
        self.has_bare_lines = self.has_bare_lines or "" in rows
        if not rows and (has_header or at_end):
            wrong = self.at - at_end
            raise Malformed(wrong + 1, "lines that begin with +, - or a blank after @@", self.lines[wrong])
        return Hunk(start + 1, anchors, tuple(row or " " for row in rows), at_end) if rows else None

    def _anchors(self) -> tuple[str, ...]:
        found: list[str] = []
        while self._line().startswith("@@"):
            line = self.lines[self.at]
            self.at += 1
            if not line[2:].strip():
                continue
            if line[2] != " ":
                raise Malformed(self.at, '"@@", or "@@ " and a line of the file', line)
            if _NUMBERED.match(line, 3):
                raise Malformed(self.at, '"@@", or "@@ " and a line of the file; line numbers are not used here', line)
            found.append(line[3:])
        return tuple(found)

    def _rows(self) -> list[str]:
        lines, start = self.lines, self.at
        at = start
        while lines[at][:1] in _SIGNS:  # the last line of a patch has none of them
            at += 1
        self.at = at
        if at < self.stop and not lines[at].startswith(("***", "@@")):
            raise Malformed(at + 1, "a line that begins with +, - or a blank, or with @@ or ***", lines[at])
        return lines[start:at]

    def _drop_bare_tail(self, rows: list[str]) -> None:
        """Empty lines at the end of a hunk set it apart or are context; with other context, both mean the same."""
        dropped = 0
        while rows and not rows[-1]:
            rows.pop()
            dropped += 1
        if dropped and rows and all(row.startswith("+") for row in rows):
            raise Malformed(
                self.at - dropped + 1,
                "no empty line after lines that are only added: leave it out, "
                "or write a single blank where the file has an empty line",
            )

    def _line(self) -> str:
        """The line that comes next; empty where none does."""
        return self.lines[self.at] if self.at < self.stop else ""

    def _skip_blank(self) -> None:
        while self.at < self.stop and not self.lines[self.at].strip():
            self.at += 1


class SheetView(NamedTuple):
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
        self.page = TextLines(text)
        self.is_closed = text.endswith(self.page.mark)
        """Does the last line have an end?"""
        self.lines = self.page.flats[:-1] if self.is_closed or not text else self.page.flats
        self._wanted = set(wanted)
        self._views: dict[Rung, SheetView] = {}

    def view(self, rung: Rung) -> SheetView:
        if rung not in self._views:
            lines = self.lines if rung == "exact" else [key(line, rung) for line in self.lines]
            at: dict[str, list[int]] = {key(line, rung): [] for line in self._wanted}
            for number, line in enumerate(lines):
                hits = at.get(line)
                if hits is not None:
                    hits.append(number)
            self._views[rung] = SheetView(lines, at)
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
    def habits(self) -> match.Habits:
        return match.habits_of(self.lines)

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
        for first, last, new in _join_swaps(swaps):
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


def _join_swaps(swaps: Iterable[Swap]) -> list[Swap]:
    """Neighbours become one, so that what happens at the end of a text is decided once."""
    found: list[Swap] = []
    for first, last, new in swaps:
        if found and found[-1].last == first:
            found[-1].new.extend(new)
            found[-1] = found[-1]._replace(last=last)
        else:
            found.append(Swap(first, last, new))
    return found


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
            search = _HunkSearch(sheet, hunk, done, left)
            spot = search.spot()
            if spot.rung != "exact":
                loose.append((hunk.line, spot.rung))
            swaps += _swaps(sheet, hunk, spot)
            done, left = spot.first + len(search.old), search.left
    except _UnplacedError as error:
        return error.outcome
    return Placed(tuple(sheet.splices(swaps)), tuple(loose))


class _HunkSearch:
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
                return self._choose_spot(firsts, rung)
        others = next((firsts for rung in RUNGS if (firsts := self._fits(rung, 0, anywhere=True))), [])
        raise self._placement_error("elsewhere" if others else "absent", others)

    def _anchor(self) -> None:
        """Find the `@@` lines, each after the one before. They may head earlier hunks too, so they begin anywhere."""
        start = 0
        for line in self.hunk.anchors:
            found = next((anchor for rung in RUNGS if (anchor := self._anchor_on(rung, line, start))), None)
            if found is None:
                raise self._placement_error("no-anchor", anchor=line)
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
            raise self._placement_error("nowhere")
        line, rung, first = self.anchors[-1]
        hits = self.sheet.view(rung).at[line]
        found = hits[bisect_left(hits, max(first, self.done - 1)) :]
        if not found:
            raise self._placement_error("elsewhere", hits)
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

    def _pairs(self, first: int) -> match.Pairs:
        self._spend(_INDENT_STEPS * len(self.old))
        return match.pairs_of(self._indents, self.sheet.lines, first)

    @cached_property
    def _indents(self) -> list[str | None]:
        return [match.indentation(line) if line.strip(BLANKS) else None for line in self.old]

    def _choose_spot(self, firsts: list[int], rung: Rung) -> _Spot:
        first = self._only(firsts)
        if rung != "indentation":
            return _Spot(first, rung)
        added = [row[1:] for row in self.hunk.rows if row[0] == "+"]
        moved = match.shift_lines(added, self._indents, self._pairs(first), lambda: self.sheet.habits)
        if moved is None:
            raise self._placement_error("unshiftable", [first])
        return _Spot(first, rung, moved)

    def _only(self, firsts: list[int]) -> int:
        """The one place; of several, the one inside of what the `@@` lines head."""
        if len(firsts) > 1 and self.anchors:
            firsts = [first for first in firsts if self._is_inside(first)] or firsts
        if len(firsts) > 1:
            raise self._placement_error("ambiguous", firsts)
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
            raise self._placement_error("repetitive")

    def _placement_error(self, reason: Reason, firsts: Sequence[int] = (), *, anchor: str = "") -> _UnplacedError:
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
            head, tail = _count_shared(gone, come)
            moved = come if spot.moved is None else spot.moved[added : added + len(come)]
            first, last, new = at + head, at + len(gone) - tail, moved[head : len(come) - tail]
            if new or first < last:
                yield sheet.swap(first, last, new)
            at += len(gone) + 1
            added += len(come)
            gone, come = [], []


def _count_shared(gone: list[str], come: list[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end go only to come again."""
    most = min(len(gone), len(come))
    head = next((at for at in range(most) if gone[at] != come[at]), most)
    tail = next((at for at in range(most - head) if gone[-1 - at] != come[-1 - at]), most - head)
    return head, tail
