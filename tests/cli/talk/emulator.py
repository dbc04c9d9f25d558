"""A terminal emulator with scrollback, and a pseudo-terminal whose every byte goes through it."""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from typing import Any

import pyte
from pyte import modes
from pyte.screens import Char
from wcwidth import wcwidth

FERRULE = [sys.executable, "-m", "ferrule"]
FRAME = re.compile(rb"\x1b\[\?2026h(.*?)\x1b\[\?2026l", re.DOTALL)
_LIMIT_SECONDS = 30.0
_SETTLED_SECONDS = 0.3
_COUNTS = re.compile(r"[⠀-⣿]|[\d.]+(?:s|m)\b")
"""The spinner, and times."""
_START = "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"
_WRAPPED = Char("↩")
_MARK = -1
"""Where a row says that it goes on in the next one."""


class Emulator(pyte.Screen):
    """As `pyte` has it, with all that has left the screen at its top.

    On another width, most terminals break their rows anew; `reflow` says whether this one does. Others, such as xterm,
    cut rows that no longer fit.
    """

    def __init__(self, columns: int, lines: int, *, reflow: bool = True) -> None:
        self.above: list[Any] = []
        self.reflow = reflow
        self.cleared = 0
        """How often the whole screen or the scrollback was erased."""
        super().__init__(columns, lines)

    def draw(self, data: str) -> None:
        for character in data:
            width = wcwidth(character)
            if width <= 0:
                self._combine(character)
                continue
            if self.cursor.x + width > self.columns:
                if modes.DECAWM in self.mode:
                    self.buffer[self.cursor.y][_MARK] = _WRAPPED
                    self.carriage_return()
                    self.linefeed()
                else:
                    self.cursor.x = self.columns - width
            row = self.buffer[self.cursor.y]
            row[self.cursor.x] = self.cursor.attrs._replace(data=character)
            if width == 2:
                row[self.cursor.x + 1] = self.cursor.attrs._replace(data="")
            self.cursor.x += width

    def _combine(self, character: str) -> None:
        row, at = self.buffer[self.cursor.y], self.cursor.x - 1
        while at > 0 and not row[at].data:
            at -= 1
        if at >= 0:
            row[at] = row[at]._replace(data=unicodedata.normalize("NFC", row[at].data + character))

    def index(self) -> None:
        if self.cursor.y == self.lines - 1:
            self.above.append(self.buffer[0])
        super().index()

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        super().erase_in_line(how, private)
        self.buffer[self.cursor.y].pop(_MARK, None)

    def erase_in_display(self, how: int = 0, *args: Any, **kwargs: Any) -> None:
        self.cleared += how >= 2
        super().erase_in_display(how, *args, **kwargs)
        for y in range(self.cursor.y + 1, self.lines):
            self.buffer[y].pop(_MARK, None)

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        lines, columns = lines or self.lines, columns or self.columns
        x, y = min(self.cursor.x, self.columns - 1), self.cursor.y
        used = max([y, *(at for at in range(self.lines) if self._row(self.buffer[at]))]) + 1
        rows = [*self.above, *(self.buffer[at] for at in range(used))]
        first, at = len(self.above), len(self.above) + y
        if self.reflow and columns != self.columns:
            rows, (first, _), (at, x) = self._broken(rows, columns, (first, 0), (at, x))
        top = max(first, len(rows) - lines)
        self.above = rows[:top]
        self.lines, self.columns = lines, columns
        self.set_margins()
        self.buffer.clear()
        for number, row in enumerate(rows[top:]):
            self.buffer[number] = row
            if not self.reflow:
                for column in [one for one in row if one >= columns]:
                    del row[column]
        self.cursor.x, self.cursor.y = min(x, columns - 1), at - top

    def _broken(self, rows: list[Any], columns: int, *places: tuple[int, int]) -> tuple[Any, ...]:
        """The rows anew for so many columns, and where some places in them are then."""
        out: list[Any] = []
        found: dict[tuple[int, int], tuple[int, int]] = {}
        x, goes_on = 0, False
        for y, row in enumerate(rows):
            if not goes_on:
                out.append(self._empty())
                x = 0
            last = max([column for column in row if column >= 0 and self._is_seen(row[column])], default=-1)
            reach = [px for py, px in places if py == y]
            for column in range(max([last, *reach]) + 1):
                cell = row[column]
                width = 2 if column + 1 in row and row[column + 1].data == "" else 1
                if x + (width if cell.data else 1) > columns and cell.data:
                    out[-1][_MARK] = _WRAPPED
                    out.append(self._empty())
                    x = 0
                if (y, column) in places:
                    found[y, column] = len(out) - 1, x
                if column <= last:
                    out[-1][x] = cell
                x += 1
            goes_on = row.get(_MARK) is _WRAPPED
        return (out, *(found.get(place, (len(out) - 1, 0)) for place in places))

    def _empty(self) -> Any:
        return type(self.buffer[0])(self.default_char)

    @staticmethod
    def _is_seen(cell: Char) -> bool:
        return cell.data != " " or cell.reverse or cell.bg != "default"

    def _row(self, row: Any) -> str:
        return "".join(row[x].data for x in range(self.columns)).rstrip()

    def shown(self) -> list[str]:
        """The rows on the screen, without blank ones at the end."""
        rows = [self._row(self.buffer[y]) for y in range(self.lines)]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def rows(self) -> list[str]:
        """All rows, as far as can be scrolled."""
        widest = max(self.columns, *(max(row, default=0) + 1 for row in self.above), 1) if self.above else self.columns
        above = ["".join(row[x].data for x in range(widest)).rstrip() for row in self.above]
        return [*above, *self.shown()]

    def copied(self) -> list[str]:
        """All rows as a selection copies them: one that the terminal has broken itself is one line."""
        rows = [*self.above, *(self.buffer[y] for y in range(self.lines))]
        out, goes_on = [""], True
        for row in rows:
            widest = max([x for x in row if x >= 0], default=-1) + 1
            text = "".join(row[x].data for x in range(widest))
            text = text if row.get(_MARK) is _WRAPPED else text.rstrip()
            if goes_on:
                out[-1] += text
            else:
                out.append(text)
            goes_on = row.get(_MARK) is _WRAPPED
        return out


class Recorder:
    """The chat in a pseudo-terminal; all that it writes is kept and shown by the emulator."""

    def __init__(self, columns: int = 80, rows: int = 24, *, reflow: bool = True) -> None:
        self.emulator = Emulator(columns, rows, reflow=reflow)
        self.raw = b""
        self._stream = pyte.ByteStream(self.emulator)
        self._terminal, self._other = os.openpty()
        os.set_blocking(self._terminal, False)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, arguments: list[str], cwd: object, **environment: str) -> None:
        self._resized()
        env = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **environment}
        for name in (
            "TMUX",
            "STY",
            "SSH_CONNECTION",
            "NO_COLOR",
            "COLORTERM",
            *(_NOT_REFLOWING if self.emulator.reflow else ()),
        ):
            if name not in environment:
                env.pop(name, None)
        self._process = subprocess.Popen(
            [sys.executable, "-IS", "-c", _START, *FERRULE, *arguments],
            cwd=str(cwd),
            env=env,
            stdin=self._other,
            stdout=self._other,
            stderr=self._other,
            start_new_session=False,
        )
        os.close(self._other)

    def _resized(self) -> None:
        size = struct.pack("HHHH", self.emulator.lines, self.emulator.columns, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def pump(self, seconds: float = 0.0) -> bool:
        """Show what was written; wait so long for something. Was there anything?"""
        found = False
        while select.select([self._terminal], [], [], 0 if found else seconds)[0]:
            try:
                piece = os.read(self._terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            self.raw += piece
            self._stream.feed(piece)
            found = True
        return found

    def resize(self, columns: int, rows: int) -> None:
        """As the terminal does it: at once on the screen, and then the program is told.

        The program stands still meanwhile: what it draws for the old size while the new one holds, no terminal knows.
        """
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)
        self.pump()
        self.emulator.resize(rows, columns)
        self._resized()
        os.kill(self.pid, signal.SIGCONT)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def submit(self, text: str) -> None:
        """Type a line, see it, and send it."""
        self.type(text)
        self.wait(re.escape(text[-12:]))
        self.type("\r")

    def rest(self) -> None:
        """Wait until nothing runs: no spinner is in sight."""
        self.wait(r"^[⠀-⣿] \w", gone=True, screen=True)

    def text(self) -> str:
        return "\n".join(self.emulator.rows())

    def wait(self, pattern: str, *, gone: bool = False, screen: bool = False) -> str:
        """All that can be scrolled to (or only the screen) when the pattern is in it, or no longer is."""
        limit, wanted = time.monotonic() + _LIMIT_SECONDS, re.compile(pattern, re.MULTILINE)
        while True:
            shown = "\n".join(self.emulator.shown()) if screen else self.text()
            if bool(wanted.search(shown)) != gone:
                return shown
            assert time.monotonic() < limit, f"{pattern!r} is {'still' if gone else 'not'} there:\n{shown}"
            self.pump(0.05)

    def settle(self) -> None:
        """Wait until nothing changes any more but what counts the time: what is drawn in steps is drawn whole."""
        limit, last, since = time.monotonic() + _LIMIT_SECONDS, "", 0.0
        while True:
            self.pump(0.03)
            shown = _COUNTS.sub("", self.text())
            if shown != last:
                last, since = shown, time.monotonic()
            elif time.monotonic() - since > _SETTLED_SECONDS:
                return
            assert time.monotonic() < limit, self.text()

    def ended(self) -> int:
        assert self._process is not None
        limit = time.monotonic() + _LIMIT_SECONDS
        while (code := self._process.poll()) is None:
            assert time.monotonic() < limit, self.text()
            self.pump(0.05)
        self.pump()
        return code

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        os.close(self._terminal)


_NOT_REFLOWING = ("XTERM_VERSION",)
