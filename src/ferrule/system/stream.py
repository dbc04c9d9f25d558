"""Read a stream of bytes from a pipe and keep a bounded, displayable part of it.

Both ends of the text stay in memory and the rest goes to a log file. The text is kept as a reader would see it:
without control characters, and with the last state of a redrawn line.

Removed are whole escape sequences, control characters except tab and newline, characters that change the
direction of writing, tag characters and byte-order marks. The result does not depend on how the input is cut
into pieces, with one exception: if a line longer than is held back is drawn again, its earlier state may be seen
too.
"""

import asyncio
import errno
import os
import re
from codecs import utf_8_decode
from collections.abc import Callable
from functools import cache

from ferrule.system.highlights import Highlights, OutputHighlights, gap

_PIPE_BYTES = 1 << 16
"""What a pipe holds. Larger pipes and reads were slower when measured: fresh memory for each, and cold caches."""
_SMALL_BYTES, _LULL_SECONDS = 1 << 10, 0.002
"""After a read of less than this, the next waits so long: small writes are left to gather."""
_TURN_READS = 4
"""Reads of one turn: a command that never stops writing must not keep the loop from the others."""
_LAST_READS = 64
"""Reads of what is left when everybody who could write is gone: a pipe can have been made larger."""
_PIECES = 256
"""So many pieces are joined into one: single bytes must not become a list of single characters."""


class Pipe:
    """The reading end of a pipe, or the near end of a terminal, on the running event loop."""

    def __init__(self, descriptor: int, wake: Callable[[], None]) -> None:
        """The descriptor is its own from now on. `wake` is called when there is enough to read, and at the end."""
        self.open = True
        """Can more come?"""
        self.sink: Callable[[bytes], None] | None = None
        """Takes what comes, as it comes; without one it waits until it is read, and the writer with it."""
        self._descriptor = descriptor
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._held_bytes = 0
        os.set_blocking(descriptor, False)
        self._listen()

    def read(self) -> bytes:
        """What has come; nothing if nothing has, and at the end, after which the pipe is not open."""
        if not self._held:
            return self._pull()
        data = b"".join(self._held)
        self._held.clear()
        self._held_bytes = 0
        return data

    def drain(self) -> None:
        """Give the sink what is there now."""
        assert self.sink is not None
        for _ in range(_LAST_READS):
            data = self.read()
            if not data:
                return
            self.sink(data)

    def shut(self) -> None:
        """Take no more; whoever still writes is told so."""
        if self.open:
            self.open = False
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)

    def _listen(self) -> None:
        if self.open:
            self._loop.add_reader(self._descriptor, self._arrive)

    def _arrive(self) -> None:
        if self.sink is not None:
            self._pour(self.sink)
        else:
            self._hold()

    def _pour(self, sink: Callable[[bytes], None]) -> None:
        for _ in range(_TURN_READS):
            data = self.read()
            if not data:
                break
            sink(data)
            if len(data) < _SMALL_BYTES:
                self._pause()
                break
        if not self.open:
            self._wake()

    def _hold(self) -> None:
        if self._held_bytes < _PIPE_BYTES:
            data = self._pull()
            if data:
                self._held.append(data)
                self._held_bytes += len(data)
                if len(data) < _SMALL_BYTES:
                    self._pause()
        if self._held_bytes >= _PIPE_BYTES or not self.open:
            self._wake()

    def _pause(self) -> None:
        """Waking for every small write would take the processor from the writer."""
        if self.open:
            self._loop.remove_reader(self._descriptor)
            self._loop.call_later(_LULL_SECONDS, self._listen)

    def _pull(self) -> bytes:
        if not self.open:
            return b""
        try:
            data = os.read(self._descriptor, _PIPE_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            if error.errno != errno.EIO:  # how a terminal says that nobody has it open any more
                raise
            data = b""
        if not data:
            self.shut()
        return data


class TailBuffer:
    """The last `limit_chars` characters of what was added so far."""

    def __init__(self, limit_chars: int) -> None:
        self._limit_chars = max(0, limit_chars)
        self._pieces: list[str] = []
        self._kept_chars = 0

    def add(self, text: str) -> None:
        if len(text) >= self._limit_chars:
            self._pieces = [text[len(text) - self._limit_chars :]]
            self._kept_chars = self._limit_chars
        elif text:
            self._pieces.append(text)
            self._kept_chars += len(text)
            if self._kept_chars > 2 * self._limit_chars or len(self._pieces) > _PIECES:
                self._join()

    def text(self, more: str = "") -> str:
        """The last characters, as if `more` had been added too."""
        text = "".join(self._pieces) + more
        return text[max(0, len(text) - self._limit_chars) :]

    def _join(self) -> None:
        text = self.text()
        self._pieces = [text]
        self._kept_chars = len(text)


class TextHead:
    """The first `limit_chars` characters of what was added so far."""

    def __init__(self, limit_chars: int) -> None:
        self._room = max(0, limit_chars)
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        if self._room and text:
            self._pieces.append(text[: self._room])
            self._room -= len(self._pieces[-1])
            if len(self._pieces) > _PIECES:
                self._pieces = ["".join(self._pieces)]

    def text(self, more: str = "") -> str:
        """The first characters, as if `more` had been added too."""
        return "".join(self._pieces) + more[: self._room]


class TextEnds:
    """The first and the last characters of a text; everything, while the two meet.

    `more` always is the line that is still being written: it counts, but it may yet change.
    """

    def __init__(self, head_chars: int, tail_chars: int) -> None:
        self.total_chars = 0
        self._head_chars = head_chars
        self._tail_chars = max(0, tail_chars)
        self._head = TextHead(head_chars)
        self._tail = TailBuffer(tail_chars)
        self._fresh = TextHead(head_chars)
        self._asked_at = 0
        self.news_chars = 0
        """How many characters the last news had, with those that were not told."""

    def add(self, text: str) -> None:
        self.total_chars += len(text)
        self._head.add(text)
        self._fresh.add(text)
        self._tail.add(text)

    def missing_chars(self, more: str = "") -> int:
        """How many characters lie between the two ends."""
        return max(0, self.total_chars + len(more) - len(self._head.text(more)) - self._tail_chars)

    def text(self, more: str = "") -> str:
        """The two ends together, with a sentence between them where something is missing and there is a first one."""
        return _join_ends(self._head.text(more), self._tail.text(more), self.total_chars + len(more), always=False)

    def news(self, more: str = "") -> str:
        """The ends of what was added since this was asked last, with a sentence between them."""
        total_chars = self.total_chars + len(more) - self._asked_at
        tail = self._tail.text(more)
        text = _join_ends(self._fresh.text(more), tail[max(0, len(tail) - total_chars) :], total_chars, always=True)
        self._fresh = TextHead(self._head_chars)
        self._asked_at, self.news_chars = self.total_chars, total_chars
        return text


def _join_ends(head: str, tail: str, total_chars: int, *, always: bool) -> str:
    if len(tail) == total_chars or not (head or always):
        return tail
    missing = total_chars - len(head) - len(tail)
    if missing <= 0:
        return head + tail[-missing:]
    return f"{head}{gap(missing)}{tail}".lstrip("\n" * (not head))


class Log:
    """A new file that takes bytes up to a limit, and then or after an error takes no more."""

    def __init__(self, path: str | None, limit_bytes: int, *, late: bool = False) -> None:
        """`late`: the file is made when the first byte comes."""
        self.logged_bytes = 0
        self.error: str | None = None
        self._path = path
        self._left = limit_bytes
        self._descriptor = -1
        self._late = late and path is not None and not os.path.lexists(path)
        if not self._late:
            self._make()

    def _make(self) -> None:
        self._late = False
        if (path := self._path) is None:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            raise
        except OSError as error:
            self.error = error.strerror

    def write(self, data: bytes) -> None:
        if self._late:
            try:
                self._make()
            except FileExistsError as error:
                self.error = error.strerror
        view = memoryview(data)[: self._left]
        while self._descriptor >= 0 and view:
            try:
                written = os.write(self._descriptor, view)
            except OSError as error:
                self.error = error.strerror
                self.close()
                return
            self.logged_bytes += written
            self._left -= written
            view = view[written:]

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def discard(self) -> None:
        if self._path is not None and self._descriptor >= 0:
            os.unlink(self._path)
        self.close()


CONTROLS = bytes(number for number in range(32) if number not in b"\t\n") + b"\x7f"
"""Bytes of which none is in a text that is shown as it is, where that is ASCII."""
COMMON_CONTROLS = (b"\x1b", b"\r", b"\b", b"\0", b"\a", b"\f", b"\v", b"\x7f")
"""Of these, output that has any nearly always has one."""
_LINE_CHARS = 1 << 14
"""So much of a line is held back because it may be drawn again; a longer one is let go, and a return ends it."""

_HIDDEN = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f"
_SPECIAL = f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDDEN}]"
_STEERS = f"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f{_HIDDEN}]"
_PAYLOAD = "[^\x00-\x08\x0a-\x1f\x7f-\x9f]*+"
"""Ends at the terminator, which is taken out by itself, or with its line: one that never ends hides no other."""
_CSI = "[0-?]*+[ -/]*+"
_STEERING = (
    f"\x1b++(?:\\[{_CSI}[@-~]?|[PX\\]^_k]{_PAYLOAD}|[ -/]*+[0-~]?)|\x9b{_CSI}[@-~]?"
    f"|[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f{_HIDDEN}]++"
)
_UNFINISHED = f"\x1b(?:\\[{_CSI}|[PX\\]^_k]{_PAYLOAD}|[ -/]*+)|\x9b{_CSI}"
_EARLIER = "(?m:^)[^\n]*\r(?=[^\r\n])"
"""The earlier states of a line. It is tried once for each line, so a long one costs no more than its length."""
_compiled = cache(re.compile)
"""On first use: most output is plain."""


class TerminalRenderer:
    """Takes a text piece by piece and gives back the lines as they are when nothing can change them any more."""

    def __init__(self) -> None:
        self.line = ""
        """The line that is being written, as it looks now."""
        self._rest = ""
        self._returned = False
        self._long = False

    def feed(self, text: str, *, plain: bool = False) -> str:
        """Take more of the text; what has become certain by it. `plain`: no character of it is special."""
        if self._rest or not (plain or is_plain(text)):
            if self._rest or _compiled(_STEERS).search(text):
                text = self._strip_escapes(self._rest + text)
            if self._returned or "\r" in text or "\b" in text:
                return self._draw_text(text)
        elif self._returned:
            return self._draw_text(text)
        cut = text.rfind("\n") + 1
        if not cut:
            self.line += text
            return self._release_line()
        certain = self.line + text[:cut]
        self.line = text[cut:]
        self._long = False
        return certain + self._release_line()

    def end(self) -> str:
        """There is no more: the last line is certain now."""
        line, self.line, self._rest = self.line, "", ""
        return line

    def _release_line(self) -> str:
        if len(self.line) <= _LINE_CHARS:
            return ""
        line, self.line, self._long = self.line, "", True
        return line

    def _strip_escapes(self, text: str) -> str:
        """The text without what steers; a sequence that is not finished yet waits for the next piece."""
        self._rest = ""
        begin = max(text.rfind("\x1b"), text.rfind("\x9b"))
        if begin >= 0 and _compiled(_UNFINISHED).fullmatch(text, begin):
            # What it carries is of no interest, only what has to follow.
            keep = 1 if text[begin] == "\x9b" else 2
            text, rest = text[:begin], text[begin:]
            self._rest = rest if len(rest) <= keep else rest[:keep] + _last(rest, keep)
        return _compiled(_STEERING).sub("", text)

    def _draw_text(self, text: str) -> str:
        """What becomes certain of a text that goes back in its line."""
        if self._returned:
            text = "\r" + text
        body = text.rstrip("\r")
        self._returned = len(body) < len(text)
        body = _compiled("\r+\n").sub("\n", body)
        if not self._long and "\b" not in body:
            certain = _compiled(_EARLIER).sub("", self.line + body)
            cut = certain.rfind("\n") + 1
            self.line = certain[cut:]
            return certain[:cut] + self._release_line()
        pieces: list[str] = []
        *lines, last = body.split("\n")
        for line in lines:
            self._draw(line, pieces)
            pieces += (self.line, "\n")
            self.line, self._long = "", False
        self._draw(last, pieces)
        pieces.append(self._release_line())
        return "".join(pieces)

    def _draw(self, text: str, certain: list[str]) -> None:
        first, *states = text.split("\r")
        self.line = _apply_backspaces(self.line, first)
        state = next(filter(None, reversed(states)), "")
        if state:
            if self._long:  # its beginning is out already: what follows begins a line of its own
                certain += (self.line, "\n")
                self._long = False
            self.line = _apply_backspaces("", state)


def is_plain(text: str) -> bool:
    """Is it shown as it is?"""
    return _compiled(_SPECIAL).search(text) is None


def strip_controls(text: str) -> str:
    """A text that is at an end, without the control characters in it."""
    return text if is_plain(text) else _compiled(_SPECIAL).sub("", text)


def _last(rest: str, keep: int) -> str:
    """The last character of a sequence's parameters: it tells which ones may follow. A payload's does not."""
    return rest[-1] if rest[keep - 1] in "[\x9b" else ""


def _apply_backspaces(line: str, text: str) -> str:
    """The line with the text behind it, where each backspace has taken one character."""
    if "\b" not in text:
        return line + text
    kept = list(line)
    for run in _compiled("\b+|[^\b]+").findall(text):
        if run[0] == "\b":
            del kept[max(0, len(kept) - len(run)) :]
        else:
            kept += run
    return "".join(kept)


_FLOOD_BYTES = 1 << 15
"""From this size on a piece is one of many, and only looked through for the common control characters."""


class OutputDecoder:
    """Bytes in; valid text without control characters out, and of that no more than was asked for.

    What is no UTF-8 is replaced, wherever the bytes were cut.
    """

    def __init__(self, head_chars: int, tail_chars: int) -> None:
        self.total_bytes = 0
        self._rest = b""
        self._screen = TerminalRenderer()
        self._ends = TextEnds(head_chars, tail_chars)
        self._highlights = Highlights()
        self._told = ""
        self.news_chars = 0
        """How many characters the last news had, with those between its ends."""
        self._flooded = False
        """May a rare control character have got through? It counts then, but it is not shown."""

    def feed(self, data: bytes) -> str:
        """Take more bytes; the text that has become certain by them. The line that is being written has not."""
        self.total_bytes += len(data)
        if self._rest:
            data = self._rest + data
        text, used = utf_8_decode(data, "replace", False)
        self._rest = data[used:]
        certain = self._screen.feed(text, plain=text.isascii() and self._is_plain(data))
        self._ends.add(certain)
        self._highlights.feed(certain)
        return certain

    def end(self) -> str:
        """No more comes: an unfinished character counts as replaced, an unfinished line as written."""
        certain = self._screen.feed(utf_8_decode(self._rest, "replace", True)[0]) + self._screen.end()
        self._rest = b""
        self._ends.add(certain)
        self._highlights.feed(certain)
        return certain

    def _is_plain(self, data: bytes) -> bool:
        """The fastest looks that there are: output is plain nine times out of ten, and there can be gigabytes of it."""
        if len(data) < _FLOOD_BYTES:
            return len(data.translate(None, CONTROLS)) == len(data)
        self._flooded = True
        return not any(control in data for control in COMMON_CONTROLS)

    @property
    def line(self) -> str:
        """The line that is being written, as it looks now."""
        return self._screen.line

    @property
    def total_chars(self) -> int:
        return self._ends.total_chars + len(self.line)

    @property
    def missing_chars(self) -> int:
        return self._ends.missing_chars(self.line)

    def highlights(self) -> OutputHighlights:
        """The lines that matter, and how many there are."""
        return self._highlights.collect(self.line)

    def text(self) -> str:
        return self._clean(self._ends.text(self.line))

    def news(self) -> str:
        """What came since this was asked last. A line that was redrawn since then comes whole."""
        news, told = self._ends.news(self.line), self._told
        self._told = self.line
        again = len(told) if news.startswith(told) else 0
        self.news_chars = self._ends.news_chars - again
        return self._clean(news[again:])

    def _clean(self, text: str) -> str:
        return strip_controls(text) if self._flooded else text
