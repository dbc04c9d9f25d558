"""What was typed before, in a file that only the user can read."""

import contextlib
import os
from collections.abc import Iterable

import msgspec
from prompt_toolkit.history import History

_MOST_LINES = 2000
_MOST_BYTES = 1 << 20
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Typed(History):
    """One JSON text a line, so that several lines stay one. Where the file cannot be used, nothing is remembered."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._path = os.path.join(folder, "typed.jsonl")

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        found: list[str] = []
        for raw in self._rows():
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                found.append(msgspec.json.decode(raw, type=str))
        return reversed(found[-_MOST_LINES:])

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            self._shorten()
            descriptor = os.open(self._path, _APPEND, 0o600)
            try:
                os.write(descriptor, msgspec.json.encode(string.encode(errors="replace").decode()) + b"\n")
            finally:
                os.close(descriptor)

    def _rows(self) -> list[bytes]:
        try:
            descriptor = os.open(self._path, _READ)
        except OSError:
            return []
        with os.fdopen(descriptor, "rb") as file, contextlib.suppress(OSError):
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _MOST_BYTES))
            return file.read(_MOST_BYTES).splitlines()
        return []

    def _shorten(self) -> None:
        """Keep the newer half of a file that has grown too long."""
        try:
            if os.stat(self._path).st_size <= _MOST_BYTES:
                return
        except FileNotFoundError:
            return
        rows = self._rows()
        draft = f"{self._path}.{os.getpid()}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"".join(row + b"\n" for row in rows[len(rows) // 2 :]))
        os.replace(draft, self._path)
