"""The screen as one that can be asked: a key that answers, or words in place of what was in the input."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.document import Document

from ferrule.cli.talk.keys import EARLY, Presses, bindings
from ferrule.cli.talk.line import BLANK, line, visible_rows, wrapped
from ferrule.cli.talk.picker import Picker, Row, Scope
from ferrule.cli.talk.screen import Screen

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History

    from ferrule.cli.talk.theme import Theme

_MOST_ECHOED_ROWS = 40
"""Of a long paste that was sent, more would only push the conversation off the screen."""


class Keyboard(Screen):
    """A screen, and who sits at it."""

    steer = True
    composes = True

    def __init__(
        self, *, history: "History | None" = None, completer: "Completer | None" = None, colour: "Theme | bool" = True
    ) -> None:
        self._presses = Presses()
        self._one_at_a_time = asyncio.Lock()
        """A list that is open is not in the way of a question, nor does what filters it answer one."""
        self._aside: Document | None = None
        """What was in the input before a question took it."""
        super().__init__(
            keys=lambda screen: bindings(screen, self._presses), history=history, completer=completer, colour=colour
        )
        self.application.key_processor.before_key_press += lambda _: self._press()

    def _press(self) -> None:
        self._presses.press()
        self.pressed_at = time.monotonic()
        is_early = bool(self.wants) and not self._presses.is_armed
        self.hint = EARLY if is_early else ""

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
        below = self.input.text if self._aside is None else self._aside.text
        document = Document(f"{text}\n{below}" if below else text)
        if self._aside is None:
            self.input.document = document
        else:
            self._aside = document
        self.refresh()

    async def key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool = False) -> str:
        async with self._one_at_a_time:
            return await self._key(words, keys, again=again)

    async def _key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool) -> str:
        pressed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if not again:
            _forget_typed()
        self.offer = (line(("yellow bold", f"  {words}")), *(line(("bold", f"  [{key}]"), rest) for key, rest in keys))
        self.insert()  # in vim's normal mode, letters would edit and answer nothing
        self.pressed, self.wants = pressed, frozenset(key for key, _ in keys)
        if not again:
            self._presses.ask()
        self.refresh()
        try:
            return await pressed
        finally:
            self.offer, self.pressed, self.wants = (), None, frozenset()
            self.refresh()

    async def words(self, offer: str, start: str = "") -> str | None:
        async with self._one_at_a_time:
            return await self._in_words(offer, start)

    async def _in_words(self, offer: str, start: str) -> str | None:
        typed: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        with self._other_input(start):
            self.offer = (line(("yellow bold", f"  {offer.strip()}")),)
            self.typed = typed
            self.refresh()
            try:
                return await typed
            finally:
                self.offer, self.typed = (), None

    async def pick(
        self, title: str, rows: Sequence[Row], *, other: Scope | None = None, query: str = "", at: str = ""
    ) -> str | None:
        async with self._one_at_a_time:
            return await self._picked(Picker(title, rows, other=other, query=query, at=at), query)

    async def _picked(self, picker: Picker, query: str) -> str | None:
        _forget_typed()

        def sift(_: object) -> None:
            picker.filter(self.input.text)

        with self._other_input(query):
            self.picker = picker
            picker.on_change = self.refresh
            self.input.on_text_changed += sift
            self._presses.ask()
            self.refresh()
            try:
                return await picker.chosen()
            finally:
                self.input.on_text_changed -= sift
                self.picker = None

    @contextlib.contextmanager
    def _other_input(self, text: str = "") -> Iterator[None]:
        """The input is for something else meanwhile; what was in it comes back."""
        self._aside = self.input.document
        self.input.reset(Document(text))
        self.insert()
        try:
            yield
        finally:
            before, self._aside = self._aside, None
            self.input.reset(before)
            self.refresh()

    async def edit(self, text: str, suffix: str) -> str | None:
        from ferrule.cli.editor import edit, editor  # for who edits

        if command := editor():
            try:
                return await run_in_terminal(lambda: edit(text, suffix, command), in_executor=True)
            except OSError as error:
                self.print_lines(line(("yellow", f"  The editor could not be started: {error}.")))
        return await self.words("Edit it. Enter is done, esc Enter is a new line, ctrl-C goes back:", text.rstrip("\n"))


def _forget_typed() -> None:
    """What was typed before a question was shown is no answer to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows; no terminal
        import termios

        if sys.stdin.isatty():
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
