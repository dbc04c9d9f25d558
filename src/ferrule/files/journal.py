"""Record every write in a journal, so that it can be undone and so that a crash can be resolved.

A write is announced in `pending/` before it touches the workspace and moves to `entries/` when the file is
durable. An entry holds both sides of the changed part, with a hash of each whole file and of itself: undo and redo
need nothing else, and refuse rather than restore wrong bytes. The owner of a pending entry keeps it locked; an
unlocked one was left by a process that died, and `sweep` decides by the hashes whether the write had happened.

An entry's file has a struct as the head and bytes as the body, each with its hash, so that damage is noticed. The
journal keeps the span in which two contents differ, and not the whole files.
"""

import contextlib
import hashlib
import json
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Literal, NamedTuple, TypeVar

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.files.ledger import fingerprint_at
from ferrule.system.folder import Locks, LockTimeoutError, is_regular, remove_empty, try_lock, write_all

S = TypeVar("S", bound=msgspec.Struct)

_MAGIC = b"ferrule journal 1\n"
_LINE_BYTES = 128


class DamagedError(Exception):
    """The bytes are not the ones that were written."""


def encode_file(struct: msgspec.Struct, body: bytes) -> bytes:
    """The content of such a file."""
    head = _encode_struct(struct)
    return b"%s%d %s %s\n%s%s" % (_MAGIC, len(head), _hash(head), _hash(body), head, body)


def read_head(path: str, kind: type[S]) -> S:
    """The head alone, however long the body is. Raises `DamagedError`."""
    with open(path, "rb") as file:
        return _decode_struct(_read(file)[0], kind)


def read_both(path: str, kind: type[S]) -> tuple[S, bytes]:
    """The head and the body. Raises `DamagedError`."""
    with open(path, "rb") as file:
        head, digest = _read(file)
        body = file.read()
    if _hash(body) != digest:
        raise DamagedError("its journal entry is damaged")
    return _decode_struct(head, kind), body


def _encode_struct(struct: msgspec.Struct) -> bytes:
    try:
        return msgspec.json.encode(struct)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(struct)).encode()


def _decode_struct(head: bytes, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(head, type=kind)
    except msgspec.DecodeError:
        try:
            return msgspec.convert(json.loads(head), kind)
        except (ValueError, msgspec.ValidationError) as error:
            raise DamagedError("its journal entry is of another version") from error


def _read(file: BinaryIO) -> tuple[bytes, bytes]:
    """The head, and what the body's hash must be."""
    magic, line = file.readline(_LINE_BYTES), file.readline(_LINE_BYTES)
    try:
        size, digest, body_digest = line.split(b" ")
        head = file.read(min(int(size), os.fstat(file.fileno()).st_size))
    except ValueError as error:
        raise DamagedError("its journal entry is damaged") from error
    if magic != _MAGIC or _hash(head) != digest:
        raise DamagedError("its journal entry is damaged")
    return head, body_digest.rstrip(b"\n")


def _hash(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=20).hexdigest().encode()


_PRUNE_EVERY = 64
_UNKEPT = "~"
UNKNOWN_CONTENT = f"{_UNKEPT}?"
"""Of a file that somebody has changed, and nobody knows when: it is like no other."""


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an entry: bytes `start` to `start + old` became the `new` bytes that follow them in the payload."""

    path: str
    temp: str
    """The name of the temporary file beside the target, if one is needed."""
    before: str | None
    """The fingerprint of the whole file; None where there was none."""
    after: str | None
    start: int
    old: int
    new: int
    mode: int | None = None
    """The permission bits that the file had before."""
    made: tuple[str, ...] = ()
    """Folders that come with the file, or go with it, outermost first."""


Kind = Literal["file", "link", "folder", "fifo", "other"]


class Node(msgspec.Struct, frozen=True):
    """What is at a path: a file, a link, a folder or a FIFO."""

    kind: Kind
    mode: int = 0
    """The permission bits."""
    content: str = ""
    """The fingerprint of a file's bytes, or what it is told by where they were not kept; what a link leads to."""
    size: int = 0
    owner: int = -1
    group: int = -1

    @property
    def is_unkept(self) -> bool:
        """Is it a file whose bytes nobody has?"""
        return self.kind == "file" and (not self.content or self.content[0] == _UNKEPT)


def unkept(status: os.stat_result) -> str:
    """What a file is told by whose bytes are not kept: moved, it is still the same; written to, it is another."""
    return f"{_UNKEPT}{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"


class NodeChange(msgspec.Struct, frozen=True):
    """What a command has made of a path; None where nothing is, or was."""

    path: str
    before: Node | None
    after: Node | None
    added: int = 0
    """Lines of text."""
    removed: int = 0


def is_git_data(path: str, *nodes: Node | None) -> bool:
    """Is it of a repository's own data? The file `.git` of a submodule only leads there: a file like any other."""
    if f"{os.sep}.git{os.sep}" in path:
        return True
    return os.path.basename(path) == ".git" and any(node is not None and node.kind == "folder" for node in nodes)


class WriteOrigin:
    """Whose writes these are now: a conversation's, for one of its prompts."""

    def __init__(self, thread: str = "") -> None:
        self.thread = thread
        self.prompt = 0
        """The prompts of a conversation count from 1; 0 where there are none."""


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One write, which may be of several files, or all that one command has changed."""

    id: str
    kind: str
    """`edit`, `write`, `delete`, `command`, `undo`, `redo` or `rewind`."""
    of: str | None = None
    """The entry that an undo or redo is about."""
    call_id: str = ""
    time: float = 0.0
    files: tuple[FileChange, ...] = ()
    nodes: tuple[NodeChange, ...] = ()
    """What was changed otherwise than by the writer; the bytes are in the store of checkpoints."""
    git: tuple[NodeChange, ...] = ()
    """What was changed of git's own data. It is not moved back, but told, unless all of it was removed."""
    repositories: tuple[str, ...] = ()
    """The folders that repositories began in when a command had ended."""
    about: str = ""
    """The command line, where one did it."""
    thread: str = ""
    """The conversation that it is of."""
    prompt: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """All that it changed."""
        return (*(file.path for file in self.files), *(node.path for node in self.nodes))


class Interrupted(NamedTuple):
    """A command in whose middle a process died."""

    path: str
    """Its file in the journal."""
    entry: JournalEntry
    alive_at: float
    """When it was last known to run."""


class Pending:
    """An announced write: its entry, its file and the open descriptor whose lock says that it is alive."""

    def __init__(self, entry: JournalEntry, path: str, descriptor: int) -> None:
        self.entry = entry
        self.path = path
        self.descriptor = descriptor


class Journal:
    """The writes of one workspace, in a folder of the user's state directory."""

    def __init__(self, folder: str, *, keep_bytes: int, keep_days: float, origin: WriteOrigin | None = None) -> None:
        self.folder = folder
        self.origin = origin or WriteOrigin()
        self._entries = os.path.join(folder, "entries")
        self._pending = os.path.join(folder, "pending")
        self._locks = Locks(folder)
        self._keep_bytes = keep_bytes
        self.keep_days = keep_days
        self._last = 0
        self._read: dict[str, JournalEntry] = {}
        self._own: set[str] = set()

    def announce(
        self,
        kind: str,
        files: Sequence[FileChange],
        payload: bytes,
        *,
        of: str | None = None,
        call_id: str = "",
        nodes: Sequence[NodeChange] = (),
        git: Sequence[NodeChange] = (),
        repositories: Sequence[str] = (),
        about: str = "",
        origin: WriteOrigin | None = None,
        is_durable: bool = True,
    ) -> Pending:
        """Make the intent known, before the workspace is touched; `origin` says whose it is, where not this one's.

        What is not durable outlives the process, but not the machine.
        """
        whose = origin or self.origin
        entry = JournalEntry(
            id=secrets.token_hex(8),
            kind=kind,
            of=of,
            call_id=call_id,
            time=time.time(),
            files=tuple(files),
            nodes=tuple(nodes),
            git=tuple(git),
            repositories=tuple(repositories),
            about=about,
            thread=whose.thread,
            prompt=whose.prompt,
        )
        path = os.path.join(self._pending, entry.id)
        descriptor = self._claim(path)
        try:
            write_all(descriptor, encode_file(entry, payload))
            if is_durable:
                os.fsync(descriptor)
        except BaseException as error:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(path)
            if isinstance(error, OSError):
                error.filename = error.filename or path  # it is this disk that is full, not the workspace's
            raise
        return Pending(entry, path, descriptor)

    def _claim(self, path: str) -> int:
        """A fresh, locked file. Another process's sweep may take an empty file for abandoned before it is locked."""
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
            except FileNotFoundError:
                os.makedirs(self._pending, mode=0o700, exist_ok=True)
                continue
            except FileExistsError:
                continue  # the sweep that took it is about to remove it
            if try_lock(descriptor) and os.fstat(descriptor).st_nlink:
                return descriptor
            os.close(descriptor)

    def commit(self, pending: Pending) -> None:
        """The files are durable: the intent becomes history. After an OSError it is still pending."""
        self._settle(pending.entry, pending.path)
        self._own.add(pending.entry.id)
        os.close(pending.descriptor)

    def wrote(self, entry: JournalEntry) -> bool:
        """Is it a write of this conversation, or of this session where that has none, and not of another one?"""
        return entry.id in self._own or bool(entry.thread and entry.thread == self.origin.thread)

    def withdraw(self, pending: Pending) -> None:
        """Nothing was changed after all."""
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(pending.path)
        finally:
            os.close(pending.descriptor)

    def leave(self, pending: Pending) -> None:
        """It came half way: the next sweep will see how far."""
        os.close(pending.descriptor)

    def note(self, kind: str, *, of: str) -> str:
        """Remember an undo or redo for which no file had to change."""
        pending = self.announce(kind, (), b"", of=of)
        try:
            self.commit(pending)
        except OSError:
            self.withdraw(pending)
            raise
        return pending.entry.id

    def record(
        self,
        nodes: Sequence[NodeChange],
        git: Sequence[NodeChange],
        *,
        repositories: Sequence[str],
        about: str,
        call_id: str,
        origin: WriteOrigin | None = None,
    ) -> JournalEntry:
        """Remember what a command has changed, after it has: no more durable than what it has written itself."""
        pending = self.announce(
            "command",
            (),
            b"",
            nodes=nodes,
            git=git,
            repositories=repositories,
            about=about,
            call_id=call_id,
            origin=origin,
            is_durable=False,
        )
        try:
            self.commit(pending)
        except OSError:
            self.withdraw(pending)
            raise
        return pending.entry

    def find_interrupted(self) -> list[Interrupted]:
        """The commands in whose middle a process died; who has seen to one removes its file."""
        found = []
        for path in self._find_abandoned():
            with contextlib.suppress(DamagedError, OSError):
                entry = read_head(path, JournalEntry)
                if _is_open_command(entry):
                    found.append(Interrupted(path, entry, os.stat(path).st_mtime))
        return found

    def entries(self) -> list[JournalEntry]:
        """Every committed write, oldest first; entries whose description was damaged are left out."""
        out = []
        for name in self._names():
            entry = self._read.get(name)
            if entry is None:
                try:
                    entry = self._read[name] = read_head(os.path.join(self._entries, name), JournalEntry)
                except (DamagedError, OSError):
                    continue
            out.append(entry)
        return out

    def read_pending(self) -> list[JournalEntry]:
        """The writes that are under way, of every session: their files may have changed already."""
        found = []
        for name in _list_folder(self._pending):
            with contextlib.suppress(DamagedError, OSError):
                found.append(read_head(os.path.join(self._pending, name), JournalEntry))
        return found

    def count_damaged_since(self, entry: JournalEntry) -> int:
        """How many later entries cannot be read. One that a process died on before it was written is empty."""
        names = self._names()
        first = next((name for name, known in self._read.items() if known.id == entry.id), "")
        later = [name for name in names if name > first and name not in self._read]
        return sum(_size(os.path.join(self._entries, name)) > 0 for name in later)

    def payload(self, entry: JournalEntry) -> bytes:
        """The changed bytes of an entry; raises `DamagedError` when they are not what was written."""
        name = next((name for name, known in list(self._read.items()) if known.id == entry.id), "gone")
        try:
            found, payload = read_both(os.path.join(self._entries, name), JournalEntry)
        except OSError as error:
            raise DamagedError("its journal entry is gone") from error
        if found.id != entry.id:
            raise DamagedError("its journal entry is gone")
        return payload

    def sweep(self, before: Sequence[str] = ()) -> list[str]:
        """Settle what dead processes left: their temporary files go, their finished writes become history.

        One at a time: a writer must not overtake a sweep that still looks at its files. `before` names the files
        that are about to be written; only what cannot be settled about them is an error.
        """
        swept: list[str] = []
        if not _list_folder(self._pending):
            return swept
        try:
            with self._locks.hold(["sweep"]):
                for path in self._find_abandoned():
                    swept += self._clear(path, before)
        except LockTimeoutError as error:
            raise ToolFailure(f"The journal is being tidied by another process ({error}). Try again.") from error
        except OSError:
            if before:
                raise
        return swept

    def _clear(self, path: str, before: Sequence[str]) -> list[str]:
        swept = []
        try:
            entry = read_both(path, JournalEntry)[0]
        except DamagedError:
            os.unlink(path)  # it died while announcing: no file was touched yet
            return []
        if _is_open_command(entry):
            return []  # what it has changed is found out by who looks at the workspace
        try:
            for file in entry.files:
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    os.unlink(os.path.join(os.path.dirname(file.path), file.temp))
                    swept.append(file.path)
                if file.before is None:
                    remove_empty(file.made)
            for folder in {os.path.dirname(node.path) for node in (*entry.nodes, *entry.git)}:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, temporary_name(entry.id)))
            if any(fingerprint_at(file.path) == file.after for file in entry.files):
                self._settle(entry, path)
            else:
                os.unlink(path)
        except OSError:
            if any(file.path in before for file in entry.files):
                raise
        return swept

    def _find_abandoned(self) -> Iterator[str]:
        for name in _list_folder(self._pending):
            path = os.path.join(self._pending, name)
            try:
                flags = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
                descriptor = os.open(path, os.O_RDWR | flags)
            except OSError:
                continue  # gone meanwhile, or nothing that a write of ours would leave
            try:
                if is_regular(descriptor) and try_lock(descriptor) and os.path.exists(path):
                    yield path
            finally:
                os.close(descriptor)

    def _settle(self, entry: JournalEntry, path: str) -> None:
        """Give the entry the next number. Numbers, not clocks, say what came after what."""
        number, place = self._reserve()
        try:
            for file in entry.files:
                if file.after is None:
                    remove_empty(file.made)
            os.replace(path, place)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(place)
            raise
        if number % _PRUNE_EVERY == 0:
            with contextlib.suppress(OSError):
                self._prune()

    def _reserve(self) -> tuple[int, str]:
        """An empty file under the next free number; whoever dies now leaves it behind, and it counts as damaged."""
        last = self._last
        if not os.path.exists(self._entry_path(last)):  # another journal has pruned, or this one is new
            last = self._newest()
        while True:
            last += 1
            try:
                os.close(os.open(self._entry_path(last), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            except FileNotFoundError:
                os.makedirs(self._entries, mode=0o700, exist_ok=True)
                last -= 1
            except FileExistsError:
                last = max(last, self._newest())
            else:
                self._last = last
                return last, self._entry_path(last)

    def _entry_path(self, number: int) -> str:
        return os.path.join(self._entries, f"{number:012d}")

    def _newest(self) -> int:
        names = self._names()
        return int(names[-1]) if names else 0

    def _names(self) -> list[str]:
        return sorted(name for name in _list_folder(self._entries) if name.isdecimal())

    def _prune(self) -> None:
        """Let go of the oldest entries beyond the limits of age and size.

        No gaps, and never the newest: a free number must be higher than all that were ever taken.
        """
        oldest = time.time() - self.keep_days * 86_400
        names = self._names()
        total, over = 0, False
        for name in reversed(names):
            path = os.path.join(self._entries, name)
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(path)
                total += status.st_size
                over = over or total > self._keep_bytes or status.st_mtime < oldest
                if over and name != names[-1]:
                    os.unlink(path)
                    self._read.pop(name, None)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _is_open_command(entry: JournalEntry) -> bool:
    """Was it announced that a command runs, and nothing of what it did?"""
    return entry.kind == "command" and not entry.nodes and not entry.git


def temporary_name(entry_id: str) -> str:
    """What a file is called that is put back, until it is whole."""
    return f".ferrule-{entry_id[:12]}.tmp"


def _list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []  # nothing was ever written


def find_changed_span(before: bytes, after: bytes) -> tuple[int, int, int]:
    """Where two contents differ: start, length in `before`, length in `after`."""
    start = _common(before, after)
    tail = _common_end(before, after, min(len(before), len(after)) - start)
    return start, len(before) - start - tail, len(after) - start - tail


def _common(one: bytes, other: bytes) -> int:
    """The length of the common beginning, by halving: comparing slices is memcmp, comparing bytes is Python."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _common_end(one: bytes, other: bytes, most: int) -> int:
    low, high = 0, most
    if most == 0 or one[-most:] == other[-most:]:
        return most
    while high - low > 1:
        middle = (low + high) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle
    return low
