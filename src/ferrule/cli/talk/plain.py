"""A terminal that can do little (`TERM=dumb`): whole lines in, whole lines out, and not one escape sequence."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

from ferrule.cli.prompts import edit, editor, piece
from ferrule.cli.talk.picker import PickerRow, Scope, pick_by_number
from ferrule.cli.talk.screen import TWICE_SECONDS
from ferrule.cli.talk.text import BLANK, PLAIN, Line, Spaced, harmless, paint_lines, sentence, wrap_lines
from ferrule.core.content import Image
from ferrule.settings import TerminalSettings


class Plain:
    """Lines on standard output and from standard input."""

    steer = False
    composes = False

    def __init__(self) -> None:
        self.colour = PLAIN
        self.working: Callable[[], bool] = lambda: False
        self.subject = ""
        self.live: Callable[[int, int], list[str]] = lambda _width, _rows: []
        self.status: Callable[[int], list[Line]] = lambda _width: []
        self.on_line: Callable[[str], object] = lambda _text: None
        self.on_interrupt: Callable[[], bool] = lambda: False
        self.on_rewind: Callable[[], object] = lambda: None
        self.on_mode: Callable[[], str] = str
        self.on_background: Callable[[], str] = str
        self.on_expand: Callable[[], object] = lambda: None
        self._wanted: asyncio.Future[str | None] | None = None
        self._wants_key = False
        """Is it one of several answers, and not words?"""
        self._stopped_at = float("-inf")
        self._left = asyncio.Event()
        self._rest = b""
        self._reading: asyncio.Future[None] | None = None
        self._spaced = Spaced()

    asks = False
    """Nothing is drawn here while a question waits."""

    @property
    def width(self) -> int:
        return max(20, shutil.get_terminal_size((80, 24)).columns)

    def adopt(self, settings: TerminalSettings, folder: str) -> None:
        """It has no title, no colour, and nothing that could call anybody."""

    def print(self, text: str) -> None:
        self._write(self._spaced.wrote(text))

    def _write(self, text: str) -> None:
        sys.stdout.write(harmless(text))
        sys.stdout.flush()

    def draw(self, image: Image) -> None:
        """It shows no pictures."""

    def print_lines(self, *lines: Line) -> None:
        rows = self._spaced.rows(lines)
        self._write(paint_lines(wrap_lines(rows, self.width), colour=False, steer=False))

    def echo(self, text: str) -> None:  # noqa: ARG002 - a screen shows it
        """The terminal has shown it while it was typed."""
        self.print_lines(BLANK)

    def ready(self) -> None:
        self.print("\n> ")

    def refresh(self) -> None:
        """Nothing is drawn again here."""

    def leave(self) -> None:
        self.on_interrupt()
        self._left.set()

    async def page(self, pieces: Iterable[str]) -> None:
        for part in pieces:
            self.print(part)

    def put_back(self, text: str, about: str = "Not sent") -> None:
        """There is no input to put it into."""
        self.print_lines(*(sentence(f"  {about}: ", row) for row in text.split("\n")))

    async def key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool = False) -> str:  # noqa: ARG002 - a screen needs it
        """The first letter of a line."""
        letters = {key for key, _ in keys}
        self._wants_key = True
        try:
            while True:
                said = await self.words(f"{words} {'  '.join(f'[{key}]{rest}' for key, rest in keys)}:")
                if said is None:
                    return "n"
                if said and said[0].lower() in letters:
                    return said[0].lower()
        finally:
            self._wants_key = False

    async def words(self, offer: str, start: str = "") -> str | None:
        if start and (edited := await self.edit(start, ".sh")) is not None:
            return edited
        offer = "Type it as it should be; nothing goes back:" if start else offer
        self._forget_typed()
        self.print(f"{offer} ")
        self._wanted = asyncio.get_running_loop().create_future()
        try:
            return await self._wanted
        finally:
            self._wanted = None

    async def edit(self, text: str, suffix: str) -> str | None:
        """In an editor; where there is none, nothing can be changed here but a line that is typed anew."""
        command = editor()
        if not command:
            if "\n" in text:
                self.print("Set VISUAL or EDITOR to edit it.\n")
            return None
        if self._reading is not None:  # the editor reads what is typed
            self._reading.cancel()
            await asyncio.wait({self._reading})
        try:
            return await asyncio.to_thread(edit, text, suffix, command)
        except OSError as error:
            self.print(f"The editor could not be started: {error}.\n")
            return None
        finally:
            if self._reading is not None:
                self._reading = asyncio.ensure_future(self._read())

    async def pick(
        self,
        title: str,
        rows: Sequence[PickerRow],
        *,
        other: Scope | None = None,
        query: str = "",
        at: str = "",  # noqa: ARG002 - no row is marked here
    ) -> str | None:
        return await pick_by_number(self, title, rows, other=other, query=query)

    async def run_chat(self, talk: Callable[[], Awaitable[int]]) -> int:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, self._stop)
        self._reading = asyncio.ensure_future(self._read())
        leaving = asyncio.ensure_future(self._left.wait())
        talking = asyncio.ensure_future(talk())
        try:
            await asyncio.wait({talking, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (self._reading, leaving, talking):
                if not task.done():
                    task.cancel()
            await asyncio.wait({self._reading, leaving, talking})
            with contextlib.suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)
        return 0 if talking.cancelled() else talking.result()

    def _stop(self) -> None:
        """Ctrl-C: it takes back a question's words, stops what runs and asks or, the second time, leaves."""
        if self._wanted is None or self._wanted.done():
            if self.on_interrupt():
                return
            if time.monotonic() - self._stopped_at < TWICE_SECONDS:
                self.leave()
            else:
                self._stopped_at = time.monotonic()
                self.print("\nPress ctrl-C again to leave.")
                self.ready()
        elif not (self._wants_key and self.on_interrupt()):
            self._wanted.set_result(None)

    async def _read(self) -> None:

        while raw := await piece(sys.stdin.fileno()):
            *lines, self._rest = (self._rest + raw).split(b"\n")
            for line in lines:
                text = line.decode(errors="replace").strip("\r")
                if self._wanted is not None and not self._wanted.done():
                    self._wanted.set_result(text.strip())
                elif text.strip():
                    self.on_line(text)
                else:
                    self.ready()
        self.leave()

    def _forget_typed(self) -> None:
        self._rest = b""
        if os.name == "posix" and sys.stdin.isatty():
            import termios

            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
