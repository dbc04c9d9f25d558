"""A stream of bytes: how it is read from a pipe, and what is kept of it: the end in memory, the beginning in a file."""

import asyncio
import os
from codecs import utf_8_decode
from collections.abc import Callable
from typing import IO

_PIPE_BYTES = 1 << 16
"""What a pipe holds. Larger pipes and reads were slower when measured: fresh memory for each, and cold caches."""
_SMALL_BYTES, _LULL_SECONDS = 1 << 12, 0.002
"""After a read of less than this, the next waits so long: small writes are left to gather."""
_PIECES = 256
"""So many pieces are joined into one: single bytes must not become a list of single characters."""


class Pipe:
    """The reading end of a pipe on the running event loop."""

    def __init__(self, file: IO[bytes], wake: Callable[[], None]) -> None:
        """`wake` is called when there is enough to read, and at the end."""
        self.open = True
        """Can more come?"""
        self.eager = False
        """Is anything enough?"""
        self._file = file
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._held_bytes = 0
        os.set_blocking(file.fileno(), False)
        self._listen()

    def read(self) -> bytes:
        """What has come; nothing if nothing has, and at the end, after which the pipe is not open."""
        if not self._held:
            return self._pull()
        data = b"".join(self._held)
        self._held.clear()
        self._held_bytes = 0
        return data

    def shut(self) -> None:
        """Take no more; whoever still writes is told so."""
        if self.open:
            self.open = False
            self._loop.remove_reader(self._file.fileno())
            self._file.close()

    def _listen(self) -> None:
        if self.open:
            self._loop.add_reader(self._file.fileno(), self._arrive)

    def _arrive(self) -> None:
        if self._held_bytes < _PIPE_BYTES:
            data = self._pull()
            if data:
                self._held.append(data)
                self._held_bytes += len(data)
                if len(data) < _SMALL_BYTES:
                    # Waking for every small write would take the processor from the writer.
                    self._loop.remove_reader(self._file.fileno())
                    self._loop.call_later(_LULL_SECONDS, self._listen)
        if self.eager or self._held_bytes >= _PIPE_BYTES or not self.open:
            self._wake()

    def _pull(self) -> bytes:
        if not self.open:
            return b""
        try:
            data = os.read(self._file.fileno(), _PIPE_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self.shut()
        return data


class Tail:
    """The last `limit_chars` characters of the bytes fed so far, decoded as UTF-8 with errors replaced.

    However the bytes were cut into pieces, `text()` is what decoding them all at once would end with.
    """

    def __init__(self, limit_chars: int) -> None:
        self._limit_chars = max(0, limit_chars)
        self._pieces: list[str] = []
        self._kept_chars = 0
        self._rest = b""
        self._decoded_chars = 0
        self.total_bytes = 0

    def feed(self, data: bytes) -> str:
        """Take more bytes; the characters that they complete."""
        self.total_bytes += len(data)
        if self._rest:
            data = self._rest + data
        text, used = utf_8_decode(data, "replace", False)
        self._rest = data[used:]
        self._decoded_chars += len(text)
        if len(text) >= self._limit_chars:
            self._pieces = [text[len(text) - self._limit_chars :]]
            self._kept_chars = self._limit_chars
        elif text:
            self._pieces.append(text)
            self._kept_chars += len(text)
            if self._kept_chars > 2 * self._limit_chars or len(self._pieces) > _PIECES:
                self._join()
        return text

    def text(self) -> str:
        """The last characters; an unfinished character at the end counts as replaced."""
        text = "".join(self._pieces) + utf_8_decode(self._rest, "replace", True)[0]
        return text[max(0, len(text) - self._limit_chars) :]

    @property
    def total_chars(self) -> int:
        """Characters of everything fed so far, counted as `text()` counts them."""
        return self._decoded_chars + len(utf_8_decode(self._rest, "replace", True)[0])

    def _join(self) -> None:
        text = "".join(self._pieces)
        text = text[max(0, len(text) - self._limit_chars) :]
        self._pieces = [text]
        self._kept_chars = len(text)


class Ends:
    """The first and the last characters of the bytes fed so far; everything, while the two meet."""

    def __init__(self, head_chars: int, tail_chars: int) -> None:
        self._room = head_chars
        self._head: list[str] = []
        self._tail_chars = tail_chars
        self._tail = Tail(tail_chars)

    def feed(self, data: bytes) -> str:
        """Take more bytes; the characters that they complete."""
        text = self._tail.feed(data)
        if self._room > 0 and text:
            self._head.append(text[: self._room])
            self._room -= len(self._head[-1])
            if len(self._head) > _PIECES:
                self._head = ["".join(self._head)]
        return text

    @property
    def missing_chars(self) -> int:
        """How many characters lie between the two ends."""
        return max(0, self.total_chars - sum(map(len, self._head)) - self._tail_chars)

    @property
    def total_chars(self) -> int:
        return self._tail.total_chars

    @property
    def total_bytes(self) -> int:
        return self._tail.total_bytes

    def text(self) -> str:
        """The two ends together, with a sentence between them where something is missing."""
        tail, total = self._tail.text(), self.total_chars
        if len(tail) == total or not self._head:
            return tail
        head = "".join(self._head)
        if missing := self.missing_chars:
            return f"{head}\n\n[{missing:,} characters are not shown here]\n\n{tail}"
        return head + tail[len(head) + len(tail) - total :]


class Log:
    """A new file that takes bytes up to a limit, and then or after an error takes no more."""

    def __init__(self, path: str | None, limit_bytes: int) -> None:
        self.logged_bytes = 0
        self.error: str | None = None
        self._path = path
        self._left = limit_bytes
        self._descriptor = -1
        if path is None:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        try:
            self._descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            raise
        except OSError as error:
            self.error = error.strerror

    def write(self, data: bytes) -> None:
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
