"""A patch as text, read into what it says about each file. Nothing is looked up: only the text itself is judged.

The grammar is the one that models were trained on: `*** Begin Patch`, sections for files to add, delete and update,
`*** End Patch`. What surely means the same is forgiven and noted; everything else is an error with its line.
"""

import re
from typing import Literal, NamedTuple

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
    reader = _Reader(lines, first + 1, last)
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
    first, last = _trimmed(lines, 0, len(lines) - 1)
    if first < last and _FENCE.fullmatch(lines[first].rstrip()) and lines[last].rstrip() == "```":
        first, last = _trimmed(lines, first + 1, last - 1)
        notes.append("The patch came inside a code fence, which was left out.")
    heredoc = _HEREDOC.fullmatch(lines[first].rstrip()) if first < last else None
    if heredoc and lines[last].rstrip() == heredoc[2]:
        first, last = _trimmed(lines, first + 1, last - 1)
        notes.append("The patch came as a here-document, whose first and last line were left out.")
    if first > last:
        raise Malformed(1, f'"{BEGIN}"', "")
    if lines[first].rstrip() != BEGIN:
        raise Malformed(first + 1, f'"{BEGIN}"', lines[first])
    if first == last or lines[last].rstrip() != END:
        raise Malformed(last + 1, f'"{END}" as the last line (was the patch cut off?)', lines[last])
    return first, last


def _trimmed(lines: list[str], first: int, last: int) -> tuple[int, int]:
    while first <= last and not lines[first].strip():
        first += 1
    while last >= first and not lines[last].strip():
        last -= 1
    return first, last


class _Reader:
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
