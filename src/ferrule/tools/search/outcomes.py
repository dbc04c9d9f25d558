"""What a search by meaning and a change of many files come back with."""

from typing import Literal, NamedTuple


class Spot(NamedTuple):
    """A place in a file that seems to be what was asked for."""

    path: str
    first: int
    last: int
    line: str
    """The line of it that says most."""


class Spots(NamedTuple):
    """Places, the likeliest first, that were found without asking a model."""

    query: str
    spots: tuple[Spot, ...]
    files: int
    """How many files were looked through."""


class ReworkedFile(NamedTuple):
    """One file of a change of many."""

    path: str
    kind: Literal["added", "changed", "unchanged"]
    added: int
    """Lines that came."""
    removed: int
    """Lines that went."""
    summary: str
    """What was done, as whoever did it says."""


class Reworked(NamedTuple):
    """A change of many files, written at once."""

    files: tuple[ReworkedFile, ...]
    entry_id: str
    """Of the one write; empty where nothing had to change."""
    turns: int
    tokens: int
