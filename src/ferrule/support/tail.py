"""What is kept of a stream of bytes: its end as text in memory, its beginning as a file, both bounded."""

import os
from codecs import utf_8_decode

_PIECES = 256
"""So many pieces are joined into one: single bytes must not become a list of single characters."""


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

    @property
    def truncated(self) -> bool:
        """Is there more than `text()` holds?"""
        return self.total_chars > self._limit_chars

    def _join(self) -> None:
        text = "".join(self._pieces)
        text = text[max(0, len(text) - self._limit_chars) :]
        self._pieces = [text]
        self._kept_chars = len(text)


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
