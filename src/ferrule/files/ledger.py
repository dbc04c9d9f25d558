"""What the model has read: the content it saw, by hash, because modification times prove nothing.

Each sight is of a call: where a conversation loses what a call has shown, the ledger forgets what was seen only there.
"""

import copy
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Self, TypeVar

import msgspec

from ferrule.system.folder import READ_NO_LINK, is_regular, read_all

_DIGEST_BYTES = 20
_MOST_UNREAD = 1_000
_Key = TypeVar("_Key")


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


class Sight(msgspec.Struct, frozen=True, array_like=True):
    """A content that was seen in a call; none where it is not known any more."""

    content: str
    call: str = ""


class FileWindowRecord(msgspec.Struct, frozen=True, array_like=True):
    """The same for a window of a file that was shown."""

    path: str
    offset: int | None
    limit: int | None
    content: str
    call: str = ""


class Sights(msgspec.Struct, frozen=True):
    """What has come to be known, or is known no more, since it was last asked for."""

    seen: dict[str, Sight] = {}
    shown: tuple[FileWindowRecord, ...] = ()


Window = tuple[str, int | None, int | None]


class Ledger:
    """The contents that this session has seen, by real path."""

    def __init__(self) -> None:
        self._seen: dict[str, Sight] = {}
        self._shown: dict[Window, Sight] = {}
        self._news: dict[str | Window, Sight] = {}
        self._unread: dict[str, str] = {}
        self._call = ""

    def of(self, call: str) -> Self:
        """The same ledger for a call: what is seen through it, the call has shown."""
        mine = copy.copy(self)
        mine._call = call  # noqa: SLF001 - of the same class
        return mine

    def saw(self, path: str, raw: bytes) -> None:
        self._see(path, Sight(fingerprint(raw), self._call))

    def saw_at(self, path: str, descriptor: int) -> None:
        """The same for a file that is too large to be held: its bytes are read through the open descriptor."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        content = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        while piece := os.read(descriptor, 1 << 20):
            content.update(piece)
        self._see(path, Sight(content.hexdigest(), self._call))

    def _see(self, path: str, sight: Sight) -> None:
        self._seen[path] = self._news[path] = sight

    def record_failure(self, path: str, why: str) -> None:
        """Somebody has tried to read it in vain."""
        if len(self._unread) < _MOST_UNREAD:
            self._unread[path] = why

    def why_unread(self, path: str) -> str:
        """Why the last reading of it failed, as a sentence; empty where none did."""
        return self._unread.get(path, "")

    def mark_shown(self, path: str, raw: bytes, window: tuple[int | None, int | None]) -> bool:
        """Was this window of this content shown before? From now on it was."""
        key, content = (path, *window), fingerprint(raw)
        before, seen = self._shown.get(key), self._seen.get(path)
        if before is None or before.content != content:
            self._shown[key] = self._news[key] = Sight(content, self._call)
            return False
        if seen is not None and seen.content == content:
            return True
        self._shown[key] = self._news[key] = Sight(content, self._call)  # it is shown again
        return False

    def knows(self, path: str) -> bool:
        return path in self._seen

    def stale(self, path: str, raw: bytes) -> bool:
        """Has the file other bytes now than when it was last read or written here?"""
        seen = self._seen.get(path)
        return seen is not None and seen.content != fingerprint(raw)

    def follow(self, after: Mapping[str, bytes | None]) -> None:
        """Files were put back to what they were: those that the session knew, it still knows."""
        self.follow_to({path: None if raw is None else fingerprint(raw) for path, raw in after.items()})

    def follow_to(self, after: Mapping[str, str | None]) -> None:
        """The same by the fingerprints of what is there now; None where nothing is."""
        for path, content in after.items():
            if content is None:
                self.forget(path)
            elif (known := self._seen.get(path)) is not None:
                self._see(path, Sight(content, known.call))

    def forget(self, path: str) -> None:
        if self._seen.pop(path, None) is not None:
            self._news[path] = Sight("", self._call)

    def forget_calls(self, calls: Collection[str]) -> None:
        """The model has no longer in sight what these calls have shown."""
        for path, sight in list(self._seen.items()):
            if sight.call in calls:
                self.forget(path)
        for window, sight in list(self._shown.items()):
            if sight.call in calls:
                del self._shown[window]
                self._news[window] = Sight("")

    def take_news(self) -> Sights | None:
        """What has come to be known, or is known no more, since this was last asked; None where nothing is."""
        seen: dict[str, Sight] = {}
        shown: list[FileWindowRecord] = []
        while self._news:
            key, sight = self._news.popitem()  # one by one: a thread may see something meanwhile
            if isinstance(key, str):
                seen[key] = sight
            else:
                shown.append(FileWindowRecord(*key, sight.content, sight.call))
        return Sights(seen, tuple(shown)) if seen or shown else None

    def restore(self, told: Iterable[Sights], is_in_sight: Callable[[str], bool]) -> None:
        """Know what was told, in its order, and nothing else; what only calls have shown that are gone does not count.

        What belongs to no call holds in any case.
        """
        self._seen.clear()
        self._shown.clear()
        self._news.clear()
        for news in told:
            for path, sight in news.seen.items():
                _put(self._seen, path, sight, is_in_sight)
            for one in news.shown:
                _put(self._shown, (one.path, one.offset, one.limit), Sight(one.content, one.call), is_in_sight)


def _put(known: dict[_Key, Sight], key: _Key, sight: Sight, is_in_sight: Callable[[str], bool]) -> None:
    if sight.call and not is_in_sight(sight.call):
        return
    if sight.content:
        known[key] = sight
    else:
        known.pop(key, None)
