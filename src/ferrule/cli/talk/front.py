"""What a conversation needs of the place where it is shown and typed: a screen, or a terminal that can do little."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from ferrule.agent_settings import Terminal
from ferrule.cli.talk.line import Line
from ferrule.cli.talk.picker import Row, Scope
from ferrule.cli.talk.theme import Theme
from ferrule.core.content import Image

TWICE_SECONDS = 3.0
"""Who presses ctrl-C twice in less than this, with nothing running, wants to leave."""


class Front(Protocol):
    """Shows, and hears what is typed."""

    colour: Theme
    steer: bool
    """Does the terminal understand escape sequences at all?"""
    composes: bool
    """Does it tell a line that was composed from one of a paste? Only then may a line run a command."""
    live: Callable[[int, int], list[str]]
    """The rows of what goes on, for so many columns and at most so many rows."""
    status: Callable[[int], list[Line]]
    """What holds now, as parts that fit into so many columns."""
    working: Callable[[], bool]
    subject: str
    """What is asked, for somebody who is called back to the terminal."""
    on_line: Callable[[str], object]
    on_interrupt: Callable[[], bool]
    """Stops what runs; false where nothing does."""
    on_rewind: Callable[[], object]
    on_mode: Callable[[], str]
    on_background: Callable[[], str]

    on_expand: Callable[[], object]
    """Shows all that the last calls came to."""

    @property
    def width(self) -> int: ...

    @property
    def asks(self) -> bool:
        """Does a question stand above the input?"""
        ...

    def adopt(self, settings: Terminal, folder: str) -> None:
        """Have the settings of the terminal hold, for a session in this folder."""

    def print(self, text: str) -> None: ...

    def draw(self, image: Image) -> None:
        """Show a picture, if the terminal can."""

    def print_lines(self, *lines: Line) -> None: ...

    def echo(self, text: str) -> None:
        """What the user has sent, as a part of the conversation."""

    def ready(self) -> None:
        """It is the user's turn."""

    def refresh(self) -> None: ...

    def leave(self) -> None: ...

    async def page(self, pieces: Iterable[str]) -> None:
        """Show a long text page by page, and come back."""

    def put_back(self, text: str, about: str = "Not sent") -> None:
        """What was sent and has not been heard, or is said no more; `about` is what it is, where it has no place."""

    async def key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool = False) -> str:
        """The key that is pressed of those that are offered, each with the rest of what it means.

        `again`: the question is the same as before, and was read then.
        """
        ...

    async def words(self, offer: str, start: str = "") -> str | None:
        """What is typed, or made of `start`; None where the person stops that."""
        ...

    async def edit(self, text: str, suffix: str) -> str | None:
        """The text as the person leaves it in their editor, or else where they type; None where they stop that."""
        ...

    async def pick(
        self, title: str, rows: Sequence[Row], *, other: Scope | None = None, query: str = "", at: str = ""
    ) -> str | None:
        """The value of the row that is chosen, as `picker` says; None where the person goes back."""
        ...

    async def during(self, talk: Callable[[], Awaitable[int]]) -> int:
        """Be there while `talk` goes on."""
        ...
