"""What a call would change, found out without changing anything."""

from typing import NamedTuple


class Previewed(NamedTuple):
    """One file as it is and as it would be; None where it is not there."""

    path: str
    before: bytes | None
    after: bytes | None
    came_from: str = ""
    """For a file that moves: the path that it has now, which is another one of the same preview."""


Preview = tuple[Previewed, ...]
