"""What the model has read: the content it saw, by hash, because modification times prove nothing."""

import hashlib
import os
from collections.abc import Mapping

from ferrule.support.beneath import READ_NO_LINK, is_regular, read_all

_DIGEST_BYTES = 20


_REMEMBERED_BYTES = 1 << 20
_recent: tuple[tuple[bytes, str], ...] = ()
"""The last contents that were named: an edit asks for the same two again and again."""


def fingerprint(raw: bytes) -> str:
    """The name of a content; equal names mean equal bytes."""
    global _recent  # noqa: PLW0603 - what it holds is true for ever
    for known, name in _recent:
        if known is raw:
            return name
    name = hashlib.blake2b(raw, digest_size=_DIGEST_BYTES).hexdigest()
    if len(raw) <= _REMEMBERED_BYTES:
        _recent = ((raw, name), *_recent[:3])
    return name


def fingerprint_at(path: str) -> str | None:
    """The fingerprint of the file as it is; None where there is none, empty where nobody can tell."""
    try:
        descriptor = os.open(path, READ_NO_LINK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ""
    try:
        return fingerprint(read_all(descriptor)) if is_regular(descriptor) else ""
    except OSError:
        return ""
    finally:
        os.close(descriptor)


class Ledger:
    """The contents that this session has seen, by real path."""

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._shown: dict[tuple[str, int | None, int | None], str] = {}

    def saw(self, path: str, raw: bytes) -> None:
        self._seen[path] = fingerprint(raw)

    def saw_at(self, path: str, descriptor: int) -> None:
        """The same for a file that is too large to be held: its bytes are read through the open descriptor."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        content = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        while piece := os.read(descriptor, 1 << 20):
            content.update(piece)
        self._seen[path] = content.hexdigest()

    def shown(self, path: str, raw: bytes, window: tuple[int | None, int | None]) -> bool:
        """Was this window of this content shown before? From now on it was."""
        key, content = (path, *window), fingerprint(raw)
        before, self._shown[key] = self._shown.get(key), content
        return before == content and self._seen.get(path) == content

    def knows(self, path: str) -> bool:
        return path in self._seen

    def stale(self, path: str, raw: bytes) -> bool:
        """Has the file other bytes now than when it was last read or written here?"""
        seen = self._seen.get(path)
        return seen is not None and seen != fingerprint(raw)

    def follow(self, after: Mapping[str, bytes | None]) -> None:
        """Files were put back to what they were: those that the session knew, it still knows."""
        for path, raw in after.items():
            if raw is None:
                self.forget(path)
            elif self.knows(path):
                self.saw(path, raw)

    def forget(self, path: str) -> None:
        self._seen.pop(path, None)
