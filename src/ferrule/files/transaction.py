"""A write is a transaction: plan in memory, lock, re-read and compare, temp file, fsync, rename, journal entry.

The file is byte for byte the old one or the new one at every moment, for every reader, whatever dies in between.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Preview, Previewed
from ferrule.files.jail import Jail, JailPath
from ferrule.files.journal import FileChange, Journal, JournalEntry, find_changed_span
from ferrule.files.ledger import fingerprint
from ferrule.system.folder import (
    Folder,
    Locks,
    LockTimeoutError,
    describe,
    marks,
    put_marks,
    read_all,
    remove_empty,
    write_all,
)

Contents = Mapping[str, bytes | None]
"""Real path → its bytes; None for a file that is not there."""
Plan = Callable[[Contents], Contents]
MOST_BYTES = 1 << 28
"""Larger files are not edited: both sides have to be held in memory, and in the journal."""

_CODES = {errno.EISDIR: "is-folder", errno.ENOTDIR: "not-a-folder"}


class TransactionResult(NamedTuple):
    """What a transaction did."""

    before: Contents
    after: Contents
    entry_id: str
    """Empty when nothing had to change."""
    notes: tuple[str, ...]


class _TransactionFile(NamedTuple):
    """One file of a running transaction."""

    place: JailPath
    temp: str
    before: bytes | None
    after: bytes | None
    status: os.stat_result | None
    """Of the file itself, or of the one that moves here."""
    marks: Mapping[str, bytes]
    mode: int | None
    """The permission bits of a file that is brought back."""
    made: tuple[str, ...]
    """Folders that have to be made for it, or that were and go with it."""


class _Staged(NamedTuple):
    """A target and the open folder that it is in."""

    target: _TransactionFile
    folder: Folder


class Writer:
    """The only thing that changes files of the workspace."""

    def __init__(self, jail: Jail, journal: Journal, locks: Locks) -> None:
        self._jail = jail
        self._journal = journal
        self._locks = locks

    def apply(
        self,
        paths: Sequence[str],
        plan: Plan,
        *,
        kind: str,
        call_id: str = "",
        of: JournalEntry | None = None,
        moved: Mapping[str, str] = MappingProxyType({}),
        agreed: Preview | None = None,
    ) -> TransactionResult:
        """Lock the real paths, hand their bytes to `plan`, and make what it returns so: all of it or nothing.

        `of` is the entry that an undo or redo is about; what the bytes do not say is taken from it. `moved` names for
        new paths the one, also among `paths`, whose file moves there: it takes its mode and owner along. Where a person
        has `agreed` to a change, it is that change or none.
        """
        places = [self._jail.place(path) for path in paths]
        with self._explain_errors(paths), self._locks.hold(paths):
            self._journal.sweep(before=paths)
            before = {place.path: read_file(place) for place in places}
            after = plan(before)
            _check_agreed(agreed, before, after)
            targets = self._targets(places, before, after, of, moved)
            if not targets:
                # An undo that was done by hand is noted, or the next one would be the same again.
                return TransactionResult(before, after, self._journal.note(kind, of=of.id) if of else "", ())
            entry_id, notes = self._write(targets, kind=kind, call_id=call_id, of=of.id if of else None)
            return TransactionResult(before, after, entry_id, notes)

    def preview(
        self,
        paths: Sequence[str],
        plan: Plan,
        *,
        of: JournalEntry | None = None,
        moved: Mapping[str, str] = MappingProxyType({}),
    ) -> Preview:
        """What `apply` would make of the files as they are now. It fails where that would, and touches nothing."""
        places = [self._jail.place(path) for path in paths]
        with self._explain_errors(paths):
            before = {place.path: read_file(place) for place in places}
            after = plan(before)
            self._targets(places, before, after, of, moved)
        return tuple(Previewed(path, before[path], after[path], moved.get(path, "")) for path in before)

    def _targets(
        self,
        places: Sequence[JailPath],
        before: Contents,
        after: Contents,
        of: JournalEntry | None,
        moved: Mapping[str, str],
    ) -> list[_TransactionFile]:
        """The files that change, looked at; nothing is touched yet."""
        known = {file.path: file for file in of.files} if of else {}
        origin = {new: self._jail.place(old) for new, old in moved.items()}
        return [
            _look(at, before[at.path], after[at.path], known.get(at.path), origin.get(at.path, at))
            for at in places
            if after[at.path] != before[at.path]
        ]

    @contextlib.contextmanager
    def _explain_errors(self, paths: Sequence[str]) -> Iterator[None]:
        """What goes wrong, in words for the model."""
        try:
            yield
        except LockTimeoutError as error:
            raise ToolFailure(f"The file is being written by another process ({error}). Try again.") from error
        except OSError as error:
            named = isinstance(error.filename, str) and os.path.isabs(error.filename)
            path = error.filename if named else paths[0]
            whose = "" if self._jail.holds(path) else " (Ferrule's own folder; FERRULE_STATE chooses another)"
            raise ToolFailure(
                f"{describe(error)}: {path}{whose}. Nothing was changed.",
                code=_CODES.get(error.errno or 0),
                path=paths[0],
            ) from error

    def _write(
        self, targets: Sequence[_TransactionFile], *, kind: str, call_id: str, of: str | None
    ) -> tuple[str, tuple[str, ...]]:
        payload: list[bytes] = []
        changes = [_change(target, payload) for target in targets]
        notes = [note for target in targets for note in _hard_links(target)]
        pending = self._journal.announce(kind, changes, b"".join(payload), of=of, call_id=call_id)
        staged: list[_Staged] = []
        done: list[_Staged] = []
        with contextlib.ExitStack() as opened:
            try:
                for target in targets:
                    folder = opened.enter_context(target.place.folder(make=target.after is not None))
                    staged.append(_Staged(target, folder))
                    notes += _stage(target, folder)
                for one in staged:
                    _check_unchanged(*one)
                    _put_in_place(*one)
                    done.append(one)
                for folder in {folder.path: folder for _, folder in staged}.values():
                    folder.sync()
                self._journal.commit(pending)
            except BaseException as error:
                stuck = _roll_back(staged, done)
                if stuck:
                    self._journal.leave(pending)
                    raise _half_done(stuck) from error
                self._journal.withdraw(pending)
                raise
        return pending.entry.id, tuple(notes)


def read_file(place: JailPath) -> bytes | None:
    """The bytes of a regular file, None where there is none; never waits for a FIFO or a device."""
    if not place.parts:
        raise IsADirectoryError(errno.EISDIR, "it is a directory", place.path)
    try:
        folder = place.folder()
    except FileNotFoundError:
        return None
    with folder:
        return _read_in(folder, place)


def _read_in(folder: Folder, place: JailPath) -> bytes | None:
    try:
        descriptor = folder.open(place.name)
    except FileNotFoundError:
        return None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory", place.path)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", place.path)
        raw = read_all(descriptor, MOST_BYTES) if status.st_size <= MOST_BYTES else None
    finally:
        os.close(descriptor)
    if raw is None or len(raw) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is too large to be edited (more than {MOST_BYTES:,} bytes)", place.path)
    return raw


def _look(
    place: JailPath, before: bytes | None, after: bytes | None, known: FileChange | None, origin: JailPath
) -> _TransactionFile:
    """What has to be known about a target before the write is announced; nothing is touched yet."""
    status, found = None, {}
    if before is not None or origin is not place:
        with origin.folder() as folder:
            status = folder.status(origin.name)
            if None not in (before, after) and not (status.st_mode & 0o222 and folder.writable(place.name)):
                raise PermissionError(errno.EACCES, "the file is read-only", place.path)
            descriptor = folder.open(origin.name)
            try:
                found = marks(descriptor)
            finally:
                os.close(descriptor)
    made = place.find_missing_folders() if after is not None else known.made if known else ()
    mode = known.mode if known and before is None else None
    return _TransactionFile(place, f".ferrule-{secrets.token_hex(6)}.tmp", before, after, status, found, mode, made)


def _hard_links(target: _TransactionFile) -> Iterator[str]:
    links = target.status.st_nlink if target.status and target.before is not None else 1
    if links > 1 and target.after is not None:
        yield f"{target.place.path} had {links} hard links; this name now has a copy of its own."


def _change(target: _TransactionFile, payload: list[bytes]) -> FileChange:
    before, after = target.before or b"", target.after or b""
    start, old, new = find_changed_span(before, after)
    payload += [before[start : start + old], after[start : start + new]]
    return FileChange(
        path=target.place.path,
        temp=target.temp,
        before=None if target.before is None else fingerprint(target.before),
        after=None if target.after is None else fingerprint(target.after),
        start=start,
        old=old,
        new=new,
        mode=None if target.status is None else stat.S_IMODE(target.status.st_mode),
        made=target.made,
    )


def _stage(target: _TransactionFile, folder: Folder) -> list[str]:
    """Write the new content beside the target, with the target's mode and owner, and make it durable."""
    if target.after is None:
        return []
    plain = target.status is None and target.mode is None
    descriptor = folder.fresh(target.temp, 0o666 if plain else 0o600)
    try:
        write_all(descriptor, target.after)
        notes = _dress(target, descriptor) if hasattr(os, "fchmod") else []
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return notes


def _dress(target: _TransactionFile, descriptor: int) -> list[str]:
    """The owner, marks and mode of the old file for the new one. Who may not give files away becomes the owner."""
    if target.status is None:
        if target.mode is not None:
            os.fchmod(descriptor, target.mode)
        return []
    owner, group, mode = target.status.st_uid, target.status.st_gid, stat.S_IMODE(target.status.st_mode)
    for ids in ((-1, group), (owner, -1)):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, *ids)
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (owner, group):
        mode &= 0o777
        if now.st_gid != group:  # the rights of one group are not for another
            mode = mode & ~0o070 | (mode & 0o007) << 3
    put_marks(descriptor, target.marks)
    os.fchmod(descriptor, mode)
    if now.st_uid != owner:
        return [f"{target.place.path} belonged to another user; the new file belongs to this one."]
    return []


def _check_unchanged(target: _TransactionFile, folder: Folder) -> None:
    """Somebody who does not take our locks may have written meanwhile; their bytes win."""
    with target.place.folder() as now:
        unchanged = now.same(folder) and _read_in(folder, target.place) == target.before
    if not unchanged:
        raise ToolFailure(
            f"{target.place.path} changed while it was being edited; nothing was written. Read it again.",
            code="changed-meanwhile",
            path=target.place.path,
        )


def _check_agreed(agreed: Preview | None, before: Contents, after: Contents) -> None:
    """Whoever said yes said it to what they were shown; another change of the same call is another question."""
    for one in agreed or ():
        if (before.get(one.path), after.get(one.path)) != (one.before, one.after):
            raise ToolFailure(
                f"{one.path} has changed since the user was asked; nothing was written. Make the call again.",
                code="changed-meanwhile",
                path=one.path,
            )
    if agreed is not None and (extra := set(after) - {one.path for one in agreed}):
        raise ToolFailure(
            "The call would write other files now than the user was asked about; nothing was written. "
            "Make the call again.",
            code="changed-meanwhile",
            path=min(extra),
        )


def _put_in_place(target: _TransactionFile, folder: Folder) -> None:
    if target.after is None:
        folder.remove(target.place.name)
    else:
        folder.rename(target.temp, target.place.name)


def _roll_back(staged: Sequence[_Staged], done: Sequence[_Staged]) -> list[str]:
    """Bring back what was replaced already and remove what was staged; the paths of which that failed come back."""
    stuck = []
    for target, folder in reversed(done):
        try:
            if _read_in(folder, target.place) == target.after:  # else somebody has written it since
                _restore_file(target._replace(after=target.before), folder)
        except OSError:
            stuck.append(target.place.path)
    for target, folder in reversed(staged):
        with contextlib.suppress(OSError):
            folder.remove(target.temp)
    for _, folder in reversed(staged):
        remove_empty(folder.made)
    return stuck


def _restore_file(target: _TransactionFile, folder: Folder) -> None:
    with target.place.folder(make=True) if folder.is_removed() else contextlib.nullcontext(folder) as there:
        _stage(target, there)
        _put_in_place(target, there)


def _half_done(stuck: Sequence[str]) -> ToolFailure:
    return ToolFailure(
        f"The write failed, and {', '.join(stuck)} could not be brought back. Undo takes back what was written.",
        code="half-done",
        path=stuck[0],
    )
