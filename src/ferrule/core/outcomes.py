"""What tools come back with, before any family has put it into words."""

from typing import NamedTuple


class FileText(NamedTuple):
    """Lines of a text file."""

    path: str
    first: int
    """The number of the first line given, from 1."""
    lines: tuple[str, ...]


class Listing(NamedTuple):
    """The names in a folder; folders end in a slash."""

    path: str
    names: tuple[str, ...]


class Picture(NamedTuple):
    """An image file."""

    path: str
    media_type: str
    data: bytes


class Edited(NamedTuple):
    """A file with some text replaced."""

    path: str
    diff: str
    first_line: int
    last_line: int


class Created(NamedTuple):
    """A file written whole."""

    path: str
    existed: bool
    guidance: tuple[str, ...]
    """Guidance files that hold for this path and were not known before."""


class Found(NamedTuple):
    """A page of paths."""

    paths: tuple[str, ...]
    remaining: int


class Hit(NamedTuple):
    """A line that matches."""

    path: str
    line: int
    text: str


class Hits(NamedTuple):
    """The first matching lines, by path and line."""

    lines: tuple[Hit, ...]
    total: int


class Ran(NamedTuple):
    """A command that has ended."""

    command: str
    cwd: str
    output: str
    exit_code: int
