"""Define the content of prompts and turns, and the outcomes that tools return.

Content is text, pictures, and files such as a PDF. Outcomes are the results of tools before a family has put them
into words, including those of tools from elsewhere, of searches by meaning and of changes of many files.
"""

from typing import Any, Literal, NamedTuple

import msgspec


class Cache(msgspec.Struct, frozen=True):
    """The API is asked to keep what it has read until here."""

    ttl: str = ""
    """For how long, in its own words; empty where the API decides."""


class Extra(msgspec.Struct, frozen=True):
    """What only one API knows of something. It goes back there as it came; `ferrule.wire.fields` names it elsewhere."""

    wire: str
    fields: dict[str, Any]
    """Of a part or a tool: the whole block. Of a turn or a body: the fields that no noun has; None takes one away."""


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Words."""

    text: str
    cache: Cache | None = None
    extra: Extra | None = None


class Image(msgspec.Struct, frozen=True, tag="image"):
    """A picture: base64 data, or an address where the API fetches it itself."""

    media_type: str
    data: str
    url: str = ""
    detail: str = ""
    """How closely to look, for APIs that ask; empty leaves that to the API."""
    cache: Cache | None = None
    extra: Extra | None = None
    title: str = ""
    """The name of its file; it is shown to people, and no API is told."""

    def __str__(self) -> str:
        return _describe_part("Image", self)


class Document(msgspec.Struct, frozen=True, tag="document"):
    """A file to read, such as a PDF: base64 data, plain text, or an address where the API fetches it itself."""

    media_type: str
    data: str = ""
    text: str = ""
    url: str = ""
    title: str = ""
    """The name of the file."""
    cache: Cache | None = None
    extra: Extra | None = None

    def __str__(self) -> str:
        return _describe_part("Document", self)


def data_bytes(part: Image | Document) -> int:
    """How many bytes the file has; 0 where it is elsewhere."""
    if isinstance(part, Document) and part.text:
        return len(part.text.encode(errors="replace"))
    return len(part.data) * 3 // 4 - part.data[-2:].count("=")


def _describe_part(kind: str, part: Image | Document) -> str:
    """What it is in a few words, for people and for logs: never the data."""
    where = part.title or part.url[:200]
    size = data_bytes(part)
    known = [one for one in (part.media_type, f"{size:,} bytes" if size else "") if one]
    words = f"{kind} {where}" if where else kind
    return f"{words} ({', '.join(known)})" if known else words


class FileText(NamedTuple):
    """Lines of a text file."""

    path: str
    first: int
    """The number of the first line given, from 1."""
    lines: tuple[str, ...]
    total: int | None = None
    """How many lines the file has; None where the end was not reached."""
    final_newline: bool = False
    """Does the last line given end the file, with a line end behind it?"""
    limited: bool = False
    """Did the caller ask for no more lines than these?"""

    @property
    def counted(self) -> tuple[int, str]:
        return len(self.lines), "line"


class FolderListing(NamedTuple):
    """The names in a folder; folders end in a slash."""

    path: str
    names: tuple[str, ...]


class Unread(NamedTuple):
    """A file whose content is not given, and why that is no failure."""

    path: str
    why: Literal["binary", "unchanged"]
    size_bytes: int


class Picture(NamedTuple):
    """An image file."""

    path: str
    media_type: str
    data: bytes


class DocumentPage(NamedTuple):
    """One page of a document: its text, and its picture where that was asked for or there is no text."""

    number: int
    text: str
    picture: Picture | None = None


class ReadDocument(NamedTuple):
    """Pages of a document."""

    path: str
    pages: tuple[DocumentPage, ...]
    total: int


class CellOutput(NamedTuple):
    """One output of a notebook cell: a text or a picture."""

    text: str
    picture: Picture | None = None


class Cell(NamedTuple):
    """A cell of a notebook."""

    id: str
    """Its own id, or `cell-N` by its place (from 0) where the file gives none."""
    kind: str
    source: str
    outputs: tuple[CellOutput, ...] = ()


class Notebook(NamedTuple):
    """A notebook's cells, from the one numbered `first` (from 1)."""

    path: str
    language: str
    cells: tuple[Cell, ...]
    first: int = 1
    total: int = 0


class ManyFiles(NamedTuple):
    """Several files at once, and those that were left out, each with the reason."""

    files: tuple[FileText | Picture, ...]
    skipped: tuple[tuple[str, str], ...]


class Edited(NamedTuple):
    """A file with some text replaced."""

    path: str
    diff: str
    first_line: int
    last_line: int
    pieces: tuple[tuple[str, str], ...] = ()
    """Each old text with its new one, as the caller gave them."""
    places: int = 1
    """How many places were replaced."""


class Created(NamedTuple):
    """A file written whole."""

    path: str
    existed: bool
    guidance: tuple[str, ...]
    """Guidance files that hold for this path and were not known before."""
    lines: int = 0
    size_bytes: int = 0
    final_newline: bool = False
    """Does it end with a line end?"""


class Deleted(NamedTuple):
    """A file that is gone."""

    path: str


class Restored(NamedTuple):
    """Files as they were before a write that was taken back."""

    paths: tuple[str, ...]
    diff: str


class Formatted(NamedTuple):
    """A file after its project's formatter."""

    path: str
    program: str
    diff: str
    """Empty where the formatter had nothing to change."""


class CellEdited(NamedTuple):
    """A notebook with one cell replaced, inserted or deleted."""

    path: str
    cell_id: str
    mode: Literal["replace", "insert", "delete"]
    source: str
    """The cell's source as it is now; the deleted one for a deletion."""
    diff: str


class Patched(NamedTuple):
    """One file of a patch."""

    kind: Literal["add", "delete", "update"]
    path: str
    moved_to: str | None
    diff: str


class PatchApplied(NamedTuple):
    """A patch that was applied, file by file, in its order."""

    files: tuple[Patched, ...]


class PathPage(NamedTuple):
    """A page of paths."""

    paths: tuple[str, ...]
    remaining: int
    folder: str = ""
    """Where the search began."""

    @property
    def counted(self) -> tuple[int, str]:
        return len(self.paths) + self.remaining, "file"


class ListDirEntry(NamedTuple):
    """One name in a folder."""

    path: str
    """From the folder that was listed, with slashes."""
    kind: Literal["file", "folder", "link", "other"]
    size_bytes: int = 0


class FolderTree(NamedTuple):
    """A page of a folder and the folders below it, each followed by what it holds."""

    path: str
    entries: tuple[ListDirEntry, ...]
    remaining: int


class Hit(NamedTuple):
    """A line that matches, or one beside it."""

    path: str
    line: int
    text: str
    context: bool = False


class Hits(NamedTuple):
    """Matching lines, by path and line."""

    lines: tuple[Hit, ...]
    total: int
    numbers: bool = True
    """Are the numbers of the lines wanted?"""

    @property
    def counted(self) -> tuple[int, str]:
        return self.total, "line"


class Matching(NamedTuple):
    """Files with matches, newest first or by path, with the number of matching lines where those were counted."""

    files: tuple[tuple[str, int], ...]
    total: int
    """Files in all."""
    lines: int = 0
    """Matching lines in all, where they were counted."""
    parts: bool = False
    """Were the matches counted, and not their lines?"""

    @property
    def counted(self) -> tuple[int, str]:
        return self.total, "file"


class CommandResult(NamedTuple):
    """A command that has ended."""

    command: str
    cwd: str
    output: str
    exit_code: int
    timed_out_after: float | None = None
    """Seconds, where the command was stopped for them."""
    errors: str = ""
    """What it wrote to standard error, where that was kept apart."""
    took: float = 0.0
    """Seconds."""
    quiet_after: float | None = None
    """Seconds, where the command was stopped because it had printed nothing for so long."""
    total_chars: int = 0
    """Of all that it printed, where that was counted."""
    lines: int | None = None
    """Of all that it printed, where they were counted."""


StepStatus = Literal["pending", "in_progress", "completed", "cancelled", "blocked"]


class Step(NamedTuple):
    """One step of a plan."""

    text: str
    status: StepStatus
    priority: str = ""


class Planned(NamedTuple):
    """The plan as it now is."""

    steps: tuple[Step, ...]
    explanation: str = ""
