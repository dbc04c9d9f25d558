"""The screen as one that can be asked: a key that answers, or words in place of what was in the input."""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.document import Document

from ferrule.cli.talk.keys import Presses, bindings
from ferrule.cli.talk.line import BLANK, line, visible_rows, wrapped
from ferrule.cli.talk.screen import Screen

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History

_MOST_ECHOED_ROWS = 40
"""Of a long paste that was sent, more would only push the conversation off the screen."""


class Keyboard(Screen):
    """A screen, and who sits at it."""

    steer = True

    def __init__(
        self, *, history: "History | None" = None, completer: "Completer | None" = None, colour: bool = True
    ) -> None:
        self._presses = Presses()
        super().__init__(
            keys=lambda screen: bindings(screen, self._presses), history=history, completer=completer, colour=colour
        )
        self.application.key_processor.before_key_press += lambda _: self._press()

    def _press(self) -> None:
        self._presses.press()
        is_early = bool(self.wants) and not self._presses.is_armed
        self.hint = "This goes into your message. To answer, pause for a moment first." if is_early else ""

    def echo(self, text: str) -> None:
        first, *rest = wrapped(visible_rows(text, strict=False), self.width - 3)
        shown = rest if len(rest) <= _MOST_ECHOED_ROWS else rest[: _MOST_ECHOED_ROWS - 1]
        more = [line(("dim", f"  … {len(rest) - len(shown):,} more rows"))] if len(shown) < len(rest) else []
        rows = [line("  ", ("bold", row)) for row in shown]
        self.print_lines(BLANK, line(("cyan bold", "> "), ("bold", first)), *rows, *more, BLANK)

    def ready(self) -> None:
        """The input is always there; what stands below it may be new."""
        self.refresh()

    def put_back(self, text: str, about: str = "") -> None:  # noqa: ARG002 - a terminal without an input needs it
        """Into the input again, before what is being typed."""
        below = self.input.text
        self.input.document = Document(f"{text}\n{below}" if below else text)
        self.refresh()

    async def key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool = False) -> str:
        pressed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if not again:
            _forget_typed()
        self.offer = (line(("yellow bold", f"  {words}")), *(line(("bold", f"  [{key}]"), rest) for key, rest in keys))
        self.pressed, self.wants = pressed, frozenset(key for key, _ in keys)
        if not again:
            self._presses.ask()
        self.refresh()
        try:
            return await pressed
        finally:
            self.offer, self.pressed, self.wants = (), None, frozenset()
            self.refresh()

    async def words(self, offer: str) -> str | None:
        before = self.input.document
        self.input.reset()
        self.offer = (line(("yellow bold", f"  {offer.strip()}")),)
        typed: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.typed = typed
        self.refresh()
        try:
            return await typed
        finally:
            self.offer, self.typed = (), None
            self.input.reset(before)
            self.refresh()


def _forget_typed() -> None:
    """What was typed before a question was shown is no answer to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows; no terminal
        import termios

        if sys.stdin.isatty():
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
