"""A stream of bytes: how it is read from a pipe, and what is kept of it: both ends in memory, the rest in a file."""

import asyncio
import errno
import os
from collections.abc import Callable

from ferrule.support.highlights import gap

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


class Tail:
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


class Head:
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


class Ends:
    """The first and the last characters of a text; everything, while the two meet.

    `more` always is the line that is still being written: it counts, but it may yet change.
    """

    def __init__(self, head_chars: int, tail_chars: int) -> None:
        self.total_chars = 0
        self._head_chars = head_chars
        self._tail_chars = max(0, tail_chars)
        self._head = Head(head_chars)
        self._tail = Tail(tail_chars)
        self._fresh = Head(head_chars)
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
        return _joined(self._head.text(more), self._tail.text(more), self.total_chars + len(more), always=False)

    def news(self, more: str = "") -> str:
        """The ends of what was added since this was asked last, with a sentence between them."""
        total_chars = self.total_chars + len(more) - self._asked_at
        tail = self._tail.text(more)
        text = _joined(self._fresh.text(more), tail[max(0, len(tail) - total_chars) :], total_chars, always=True)
        self._fresh = Head(self._head_chars)
        self._asked_at, self.news_chars = self.total_chars, total_chars
        return text


def _joined(head: str, tail: str, total_chars: int, *, always: bool) -> str:
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
