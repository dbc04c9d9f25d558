"""The journal: what every write changed, so that it can be undone, and so that a crash leaves no riddle.

A write is announced in `pending/` before it touches the file and moves to `entries/` when the file is durable.
An entry holds both sides of what changed, with a hash of each whole file and of itself: undo and redo need nothing
else, and refuse rather than restore wrong bytes. Its owner keeps a pending entry locked; one that is not locked was
left by a process that died, and `sweep` decides by the hashes whether the write had happened.
"""

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence

import msgspec

from ferrule.support.beneath import read_all, write_all
from ferrule.support.locks import try_lock
from ferrule.workspace.ledger import fingerprint

_MAGIC = b"ferrule journal 1\n"
_PRUNE_EVERY = 64


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an entry: bytes `start` to `start + old` became the `new` bytes that follow them in the payload."""

    path: str
    temp: str
    """The name of the temporary file beside the target; empty for a removal."""
    before: str | None
    """The fingerprint of the whole file; None where there was none."""
    after: str | None
    start: int
    old: int
    new: int
    made: tuple[str, ...] = ()
    """Folders that had to be made for it."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One write, which may be of several files."""

    id: str
    kind: str
    """`edit`, `write`, `delete`, `undo` or `redo`."""
    of: str | None = None
    """The entry that an undo or redo is about."""
    call_id: str = ""
    time: float = 0.0
    files: tuple[FileChange, ...]
    payload: str
    """A hash of the bytes that follow."""


class DamagedError(Exception):
    """An entry's bytes are not the ones that were written."""


class Pending:
    """An announced write: its entry, its file and the open descriptor whose lock says that it is alive."""

    def __init__(self, entry: Entry, path: str, descriptor: int) -> None:
        self.entry = entry
        self.path = path
        self.descriptor = descriptor


class Journal:
    """The writes of one workspace, in a folder of the user's state directory."""

    def __init__(self, folder: str, *, keep_bytes: int, keep_days: float) -> None:
        self.folder = folder
        self._entries = os.path.join(folder, "entries")
        self._pending = os.path.join(folder, "pending")
        self._keep_bytes = keep_bytes
        self._keep_days = keep_days
        self._next = 0
        self._read: dict[str, Entry] = {}

    def announce(self, kind: str, files: Sequence[FileChange], payload: bytes, *, of: str | None, call_id: str) -> Pending:
        """Make the intent durable, before any file is touched."""
        entry = Entry(
            id=secrets.token_hex(8),
            kind=kind,
            of=of,
            call_id=call_id,
            time=time.time(),
            files=tuple(files),
            payload=_hash(payload),
        )
        head = msgspec.json.encode(entry)
        path = os.path.join(self._pending, entry.id)
        descriptor = self._claim(path)
        try:
            write_all(descriptor, b"%s%d\n%s%s" % (_MAGIC, len(head), head, payload))
            os.fsync(descriptor)
        except BaseException:
            os.close(descriptor)
            os.unlink(path)
            raise
        return Pending(entry, path, descriptor)

    def _claim(self, path: str) -> int:
        """A fresh, locked file. Another process's sweep may take an empty file for abandoned before it is locked."""
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
            except FileNotFoundError:
                os.makedirs(self._pending, mode=0o700, exist_ok=True)
                os.makedirs(self._entries, mode=0o700, exist_ok=True)
                continue
            except FileExistsError:
                continue  # the sweep that took it is about to remove it
            if try_lock(descriptor) and os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)

    def commit(self, pending: Pending) -> None:
        """The files are durable: the intent becomes history."""
        try:
            self._settle(pending.path)
        finally:
            os.close(pending.descriptor)

    def withdraw(self, pending: Pending) -> None:
        """Nothing was changed after all."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(pending.path)
        os.close(pending.descriptor)

    def entries(self) -> list[Entry]:
        """Every committed write, oldest first; entries that were damaged are left out."""
        out = []
        for name in self._names():
            if name not in self._read:
                try:
                    self._read[name] = self._load(os.path.join(self._entries, name))[0]
                except (DamagedError, FileNotFoundError):
                    continue
            out.append(self._read[name])
        return out

    def payload(self, entry: Entry) -> bytes:
        """The changed bytes of an entry; raises `DamagedError` when they are not what was written."""
        for name, known in self._read.items():
            if known.id == entry.id:
                return self._load(os.path.join(self._entries, name))[1]
        raise DamagedError("its journal entry is gone")

    def sweep(self) -> list[str]:
        """Settle what dead processes left: their temporary files go, their finished writes become history."""
        swept = []
        for path in self._abandoned():
            try:
                entry = self._load(path)[0]
            except DamagedError:
                os.unlink(path)  # it died while announcing: no file was touched yet
                continue
            for file in entry.files:
                if file.temp:
                    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                        os.unlink(os.path.join(os.path.dirname(file.path), file.temp))
                        swept.append(file.path)
            if any(_now(file.path) == file.after for file in entry.files):
                self._settle(path)
            else:
                for file in entry.files:
                    remove_made(file.made)
                os.unlink(path)
        return swept

    def _abandoned(self) -> Iterator[str]:
        try:
            names = os.listdir(self._pending)
        except FileNotFoundError:
            return
        for name in names:
            path = os.path.join(self._pending, name)
            try:
                descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
            except FileNotFoundError:
                continue
            try:
                if try_lock(descriptor):
                    if os.fstat(descriptor).st_nlink > 1:
                        os.unlink(path)  # it is history already
                    elif os.path.exists(path):
                        yield path
            finally:
                os.close(descriptor)

    def _settle(self, path: str) -> None:
        """Give the entry the next free number. Numbers, not clocks, say what came after what."""
        if not self._next:
            names = self._names()
            self._next = int(names[-1]) if names else 0
        while True:
            self._next += 1
            try:
                os.link(path, os.path.join(self._entries, f"{self._next:012d}"))
                break
            except FileExistsError:
                continue
        os.unlink(path)
        if self._next % _PRUNE_EVERY == 0:
            self._prune()

    def _names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._entries) if name.isdecimal())
        except FileNotFoundError:
            return []

    def _load(self, path: str) -> tuple[Entry, bytes]:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        try:
            raw = read_all(descriptor)
        finally:
            os.close(descriptor)
        try:
            if not raw.startswith(_MAGIC):
                raise DamagedError("its journal entry is damaged")
            end = raw.index(b"\n", len(_MAGIC)) + 1
            size = int(raw[len(_MAGIC) : end])
            entry = msgspec.json.decode(raw[end : end + size], type=Entry)
        except (ValueError, msgspec.DecodeError) as error:
            raise DamagedError("its journal entry is damaged") from error
        payload = raw[end + size :]
        if _hash(payload) != entry.payload:
            raise DamagedError("its journal entry is damaged")
        return entry, payload

    def _prune(self) -> None:
        """Let go of the oldest entries beyond the limits of age and size."""
        oldest = time.time() - self._keep_days * 86_400
        total = 0
        for name in reversed(self._names()):
            path = os.path.join(self._entries, name)
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(path)
                total += status.st_size
                if total > self._keep_bytes or status.st_mtime < oldest:
                    os.unlink(path)
                    self._read.pop(name, None)


def remove_made(folders: Sequence[str]) -> None:
    """Remove folders that were made for a file, innermost first, as far as they are empty."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _hash(payload: bytes) -> str:
    return hashlib.blake2b(payload, digest_size=20).hexdigest()


def _now(path: str) -> str | None:
    """The fingerprint of the file as it is; None where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        return fingerprint(read_all(descriptor))
    finally:
        os.close(descriptor)
