"""What a conversation needs of the place where it is shown and typed: a screen, or a terminal that can do little."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ferrule.cli.talk.line import Line

TWICE_SECONDS = 3.0
"""Who presses ctrl-C twice in less than this, with nothing running, wants to leave."""


class Front(Protocol):
    """Shows, and hears what is typed."""

    colour: bool
    steer: bool
    """Does the terminal understand escape sequences at all?"""
    live: Callable[[int, int], list[str]]
    """The rows of what goes on, for so many columns and at most so many rows."""
    status: Callable[[], list[Line]]
    on_line: Callable[[str], object]
    on_interrupt: Callable[[], bool]
    """Stops what runs; false where nothing does."""

    @property
    def width(self) -> int: ...

    def print(self, text: str) -> None: ...

    def print_lines(self, *lines: Line) -> None: ...

    def echo(self, text: str) -> None:
        """What the user has sent, as a part of the conversation."""

    def ready(self) -> None:
        """It is the user's turn."""

    def refresh(self) -> None: ...

    def leave(self) -> None: ...

    def put_back(self, text: str, about: str = "Not sent") -> None:
        """What was sent and has not been heard, or is said no more; `about` is what it is, where it has no place."""

    async def key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool = False) -> str:
        """The key that is pressed of those that are offered, each with the rest of what it means.

        `again`: the question is the same as before, and was read then.
        """
        ...

    async def words(self, offer: str) -> str | None:
        """What is typed; None where the person stops that."""
        ...

    async def during(self, talk: Callable[[], Awaitable[int]]) -> int:
        """Be there while `talk` goes on."""
        ...
