"""Lines that ripgrep finds: the first ones by path, whatever order they come in, without keeping the others."""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

_KEPT_LINES = 1000
_KEPT_BYTES = 32 << 20
"""So much is kept however many lines are wanted, and at times three times as much."""
_RECORD_BYTES = 100
"""What Python needs for a record beside its text."""
_ENDLESS = 1 << 62
_File = tuple[int, str]
"""Its rank, and its path."""


class Hit(NamedTuple):
    """A line that matches, or one beside it; `path` is relative to the root of the search where it can be."""

    path: str
    line: int
    text: str
    context: bool = False


class Hits(NamedTuple):
    """The first lines in the order of path and line number."""

    lines: list[Hit]
    total: int
    """How many match, counting no more of a file than was asked for."""
    capped: int = 0
    """How many files have more than that."""


class Records:
    """Takes rg's output apart: path, NUL, number, `:` or `-`, text. A file's lines come together and in order."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bool:
        *records, self._rest = (self._rest + data).split(b"\n")
        before = b""
        for record in records:
            path, found, line = record.partition(b"\0")
            if found:
                self.take(before + path if before else path, line)
                before = b""
            else:
                # A line break in a file's name, or a remark that a file went on as binary.
                before = b"" if record.endswith(b")") and b" binary file " in record else before + record + b"\n"
        if before:
            self._rest = before + self._rest
        return True

    def take(self, path: bytes, line: bytes) -> None:
        raise NotImplementedError


class Counting(Records):
    """How many lines there are of each file."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[bytes, int] = {}

    def take(self, path: bytes, line: bytes) -> None:  # noqa: ARG002 - only that there is one
        self.counts[path] = self.counts.get(path, 0) + 1


class Gathering(Records):
    """The first hits of a stream in any order, with the lines around them, without keeping the others.

    `before` and `after` only say that the stream may hold lines which do not match, and how far a hit reaches. Files
    are in the order of their `rank`, and where that is the same, of their paths.
    """

    def __init__(
        self,
        most: int,
        per_file: int,
        wanted: Callable[[str], bool],
        *,
        before: int = 0,
        after: int = 0,
        rank: Callable[[str], int] | None = None,
        parts: bool = False,
    ) -> None:
        """`parts`: is a hit a part of a line, so that a line may have several?"""
        super().__init__()
        self._parts = parts
        self.total = 0
        self.capped = 0
        self._most = most
        self._per_file = per_file or _ENDLESS
        self._wanted = wanted
        self._rank = rank
        self._before, self._after = before, after
        self._surrounded = before > 0 or after > 0
        self._kept: dict[_File, list[bytes]] = {}
        self._around: dict[_File, list[bytes]] = {}
        """By file, lines that may be shown beside a hit: those that do not match, and hits that are too many."""
        self._held = 0
        self._held_bytes = 0
        self._beyond: _File | None = None
        """The first file that is known to be too late."""
        self._path = b""
        self._file: _File = (0, "")
        self._counted = False
        self._lines: list[bytes] | None = None
        """Where the hits of the path go; None where they are counted at most."""
        self._seen = 0
        """Hits of the path so far. ripgrep gives more than are wanted, as the sign that there are more."""
        self._path_bytes = 0

    def feed(self, data: bytes) -> bool:
        super().feed(data)
        if self._held > _KEPT_LINES + 2 * self._most or self._held_bytes > 3 * _KEPT_BYTES:
            self._trim()
        return True

    def take(self, path: bytes, line: bytes) -> None:
        if path != self._path:
            self._path = path
            self._begin()
        if not self._counted:
            return
        if self._surrounded and not _matches(line):
            self._keep_beside(line)
            return
        self._seen += 1
        if self._seen > self._per_file:
            self.capped += self._seen == self._per_file + 1
            self._keep_beside(line)
            return
        self.total += 1
        if self._lines is not None and len(self._lines) < self._most:
            self._lines.append(line)
            self._hold(line)
        else:
            self._keep_beside(line)

    def hits(self, offset: int = 0) -> Hits:
        """All that were wanted, but for the first `offset`, and the lines around those."""
        self._trim()
        found = [(file, line) for file, lines in self._kept.items() for line in lines][offset : self._most]
        if not self._surrounded:
            return Hits([_hit(path, line) for (_, path), line in found], self.total, self.capped)
        pages = groupby(found, key=lambda one: one[0])
        shown = [hit for file, page in pages for hit in self._with_context(file, [line for _, line in page])]
        return Hits(shown, self.total, self.capped)

    def _begin(self) -> None:
        name = os.fsdecode(self._path.removeprefix(b"./"))
        self._counted = self._wanted(name)
        self._lines, self._seen, self._path_bytes = None, 0, 0
        if not self._counted:
            return
        self._file = (0 if self._rank is None else self._rank(name), name)
        if self._beyond is None or self._file < self._beyond:
            self._lines = self._kept.setdefault(self._file, [])

    def _keep_beside(self, line: bytes) -> None:
        if not self._surrounded or self._lines is None:
            return
        full = self._seen >= self._per_file or len(self._lines) >= self._most
        if full and (not self._lines or _number(line) > _number(self._lines[-1]) + self._after):
            return  # it is beside no hit that is kept, and none will follow
        self._around.setdefault(self._file, []).append(line)
        self._hold(line)

    def _hold(self, line: bytes) -> None:
        size = len(line) + _RECORD_BYTES
        self._held += 1
        self._held_bytes += size
        self._path_bytes += size
        if self._path_bytes > _KEPT_BYTES:
            self._lines = None  # the rest of this file, and every file behind it, is only counted

    def _trim(self) -> None:
        lines_left, bytes_left = self._most, _KEPT_BYTES
        kept: dict[_File, list[bytes]] = {}
        around: dict[_File, list[bytes]] = {}
        held = 0
        for file in sorted(self._kept):
            if lines_left <= 0 or bytes_left <= 0:
                self._beyond = file
                break
            kept[file] = self._kept[file]
            lines_left -= len(kept[file])
            beside = self._around.get(file, [])
            if beside:
                around[file] = beside
            held += len(kept[file]) + len(beside)
            bytes_left -= sum(map(len, kept[file])) + sum(map(len, beside))
            bytes_left -= _RECORD_BYTES * (len(kept[file]) + len(beside))
        self._kept, self._around = kept, around
        self._held, self._held_bytes = held, _KEPT_BYTES - bytes_left
        if self._beyond is not None and self._file >= self._beyond:
            self._lines = None

    def _with_context(self, file: _File, page: list[bytes]) -> Iterator[Hit]:
        shown: dict[int, list[bytes]] = {}
        for line in page:
            shown.setdefault(_number(line), []).append(line)
        beside = (*self._kept[file], *self._around.get(file, ()))
        # A part of a line that is beyond the page is no line to be shown beside it.
        others = {_number(line): line for line in beside if not (self._parts and _matches(line))}
        numbers = sorted(shown)
        for number in sorted({*others, *numbers}):
            if number in shown:
                yield from (_hit(file[1], line) for line in shown[number])
                continue
            at = bisect_left(numbers, number)
            behind = at > 0 and number - numbers[at - 1] <= self._after
            if behind or (at < len(numbers) and numbers[at] - number <= self._before):
                yield _hit(file[1], others[number])._replace(context=True)


def _matches(record: bytes) -> bool:
    """Is it a line that matches? The number of one that does not is followed by a dash."""
    return record[len(record) - len(record.lstrip(b"0123456789")) :][:1] == b":"


def _number(record: bytes) -> int:
    return int(record[: len(record) - len(record.lstrip(b"0123456789"))])


def _hit(path: str, record: bytes) -> Hit:
    text = record.lstrip(b"0123456789")
    shown = os.fsencode(path).decode(errors="replace")
    return Hit(shown, int(record[: len(record) - len(text)]), text[1:].rstrip(b"\r").decode(errors="replace"))
