"""Lines that ripgrep finds: the first ones by path, whatever order they come in, without keeping the others."""

import os
from collections.abc import Callable
from typing import NamedTuple

_KEPT_LINES = 1000


class Hit(NamedTuple):
    """A line that matches; `path` is relative to the root of the search where it can be."""

    path: str
    line: int
    text: str


class Hits(NamedTuple):
    """The first lines in the order of path and line number."""

    lines: list[Hit]
    total: int
    """How many there are, counting no more of a file than was asked for."""
    capped: int = 0
    """How many files have more than that."""


class Gathering:
    """The first hits of a stream in any order, without keeping the others.

    rg writes a file's lines together and in order, so only the paths have to be ordered.
    """

    def __init__(self, limit: int, per_file: int, wanted: Callable[[str], bool]) -> None:
        self.total = 0
        self.capped = 0
        self._per_file = per_file
        self._seen = 0
        """Lines of the path so far. ripgrep gives one more than is wanted, as the sign that there are more."""
        self._limit = limit
        self._wanted = wanted
        self._rest = b""
        self._kept: dict[str, list[bytes]] = {}
        self._beyond: str | None = None
        """The first path that is known to be too late."""
        self._path = b""
        self._lines: list[bytes] | None = None
        """Where the lines of the path go; None for a path that is not wanted."""

    def feed(self, data: bytes) -> bool:
        *records, self._rest = (self._rest + data).split(b"\n")
        before = b""
        for record in records:
            path, found, line = record.partition(b"\0")
            if not found:
                # A line break in a file's name, or a remark that a file went on as binary.
                before = b"" if record.endswith(b")") and b" binary file " in record else before + record + b"\n"
                continue
            path, before = before + path, b""
            if path != self._path:
                self._path = path
                self._lines, self._seen = self._place(), 0
            self._seen += 1
            if self._lines is not None:
                if self._seen > self._per_file:
                    self.capped += 1
                    continue
                self.total += 1
                if len(self._lines) < self._limit:
                    self._lines.append(line)
        if before:
            self._rest = before + self._rest
        if sum(map(len, self._kept.values())) > _KEPT_LINES + 2 * self._limit:
            self._trim()
        return True

    def hits(self) -> Hits:
        self._trim()
        found = [_hit(path, line) for path, lines in self._kept.items() for line in lines]
        return Hits(found[: self._limit], self.total, self.capped)

    def _place(self) -> list[bytes] | None:
        path = os.fsdecode(self._path.removeprefix(b"./"))
        if not self._wanted(path):
            return None
        if self._beyond is not None and path >= self._beyond:
            return []  # counted, and forgotten
        return self._kept.setdefault(path, [])

    def _trim(self) -> None:
        left = self._limit
        kept: dict[str, list[bytes]] = {}
        for path in sorted(self._kept):
            if left <= 0:
                self._beyond = path
                break
            kept[path] = self._kept[path]
            left -= len(kept[path])
        self._kept = kept


def _hit(path: str, record: bytes) -> Hit:
    number, _, text = record.partition(b":")
    shown = os.fsencode(path).decode(errors="replace")
    return Hit(shown, int(number), text.rstrip(b"\r").decode(errors="replace"))
