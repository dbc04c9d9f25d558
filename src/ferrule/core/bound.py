"""Bounds as data: how much of a text a family's model gets, and which part of it."""

import msgspec


class Whole(msgspec.Struct, frozen=True):
    """Up to the general limit of every result, and its head beyond that."""


class Tail(msgspec.Struct, frozen=True):
    """The last characters."""

    chars: int


class Ends(msgspec.Struct, frozen=True):
    """The first and the last bytes, each half of the limit; then the first and the last lines, likewise."""

    limit_bytes: int
    lines: int | None = None


class Middle(msgspec.Struct, frozen=True):
    """The first and the last characters, with a sentence in the middle saying how many are missing."""

    chars: int


class Lines(msgspec.Struct, frozen=True):
    """Whole lines, until either limit is met: the first ones, or the last ones."""

    lines: int
    limit_bytes: int
    last: bool = False


WHOLE = Whole()
Bound = Whole | Tail | Ends | Middle | Lines
