"""What the tools about earlier conversations come back with."""

from typing import NamedTuple


class ThreadFound(NamedTuple):
    """One conversation that a search has found."""

    id: str
    title: str
    when: str
    """When it last went on: local time, to the minute."""
    turns: int
    """Of both sides, with those that hold only results of calls."""
    excerpt: str = ""
    """A line of it with what was looked for."""
    files: tuple[str, ...] = ()
    more_files: int = 0
    """How many more it touched."""
    workspace: str = ""
    """Its folder, where that is not the session's own."""


class ThreadsFound(NamedTuple):
    """Conversations that a search has found, the best first."""

    query: str
    found: tuple[ThreadFound, ...]
    total: int
    """How many there are in all."""


class ThreadRead(NamedTuple):
    """A conversation as text, or the part of it that serves a goal."""

    id: str
    title: str
    when: str
    workspace: str
    model: str
    text: str
    messages: int
    """How many it has."""
    left_out: str = ""
    """The numbers of those that are not in the text."""
