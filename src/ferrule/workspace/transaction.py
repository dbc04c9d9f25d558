"""A write is a transaction: plan in memory, lock, re-read and compare, temp file, fsync, rename, journal entry.

The file is byte for byte the old one or the new one at every moment, for every reader, whatever dies in between.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.support.beneath import Folder, describe, is_regular, read_all, write_all
from ferrule.support.locks import Locks, LockTimeoutError
from ferrule.workspace.journal import FileChange, Journal, remove_made
from ferrule.workspace.ledger import fingerprint
from ferrule.workspace.paths import Jail, Place

Contents = Mapping[str, bytes | None]
"""Real path → its bytes; None for a file that is not there."""
Plan = Callable[[Contents], Contents]


class Written(NamedTuple):
    """What a transaction did."""

    before: Contents
    after: Contents
    entry_id: str
    """Empty when nothing had to change."""
    notes: tuple[str, ...]


class _Target(NamedTuple):
    """One file of a running transaction."""

    place: Place
    folder: Folder
    temp: str
    before: bytes | None
    after: bytes | None
    status: os.stat_result | None


class Writer:
    """The only thing that changes files of the workspace."""

    def __init__(self, jail: Jail, journal: Journal, locks: Locks) -> None:
        self._jail = jail
        self._journal = journal
        self._locks = locks

    def apply(self, paths: Sequence[str], plan: Plan, *, kind: str, call_id: str = "", of: str | None = None) -> Written:
        """Lock the real paths, hand their bytes to `plan`, and make what it returns so: all of it or nothing."""
        places = [self._jail.place(path) for path in paths]
        try:
            with self._locks.hold(paths):
                self._journal.sweep()
                before = {place.path: read_file(place) for place in places}
                after = plan(before)
                changed = [place for place in places if after[place.path] != before[place.path]]
                if not changed:
                    return Written(before, after, "", ())
                entry_id, notes = self._write(changed, before, after, kind=kind, call_id=call_id, of=of)
                return Written(before, after, entry_id, notes)
        except LockTimeoutError as error:
            raise ToolFailure(f"The file is being written by another process ({error}). Try again.") from error
        except OSError as error:
            path = paths[0] if len(paths) == 1 else error.filename or paths[0]
            raise ToolFailure(f"{describe(error)}: {path}. Nothing was changed.", path=path) from error

    def _write(
        self, places: Sequence[Place], before: Contents, after: Contents, *, kind: str, call_id: str, of: str | None
    ) -> tuple[str, tuple[str, ...]]:
        targets: list[_Target] = []
        payload: list[bytes] = []
        made: list[str] = []
        notes: list[str] = []
        with contextlib.ExitStack() as opened:
            try:
                changes = []
                for place in places:
                    folder = opened.enter_context(place.folder(make=after[place.path] is not None))
                    made += folder.made
                    target = self._target(place, folder, before[place.path], after[place.path], notes)
                    targets.append(target)
                    changes.append(_change(target, payload))
                pending = self._journal.announce(kind, changes, b"".join(payload), of=of, call_id=call_id)
            except BaseException:
                remove_made(made)
                raise
            done: list[_Target] = []
            try:
                for target in targets:
                    _stage(target)
                for target in targets:
                    _check_unchanged(target)
                    _put_in_place(target)
                    done.append(target)
                for folder in {target.folder.path: target.folder for target in targets}.values():
                    folder.sync()
            except BaseException:
                _roll_back(targets, done)
                remove_made(made)
                self._journal.withdraw(pending)
                raise
            self._journal.commit(pending)
        return pending.entry.id, tuple(notes)

    def _target(
        self, place: Place, folder: Folder, before: bytes | None, after: bytes | None, notes: list[str]
    ) -> _Target:
        status = None
        if before is not None:
            status = folder.status(place.name)
            if after is not None and not status.st_mode & 0o222:
                raise PermissionError(errno.EACCES, "the file is read-only", place.path)
            if status.st_nlink > 1:
                notes.append(f"{place.path} had {status.st_nlink} hard links; this name now has a copy of its own.")
        temp = f".ferrule-{secrets.token_hex(6)}.tmp" if after is not None else ""
        return _Target(place, folder, temp, before, after, status)


def read_file(place: Place) -> bytes | None:
    """The bytes of a regular file, None where there is none; never waits for a FIFO or a device."""
    if not place.parts:
        raise IsADirectoryError(errno.EISDIR, "it is a directory", place.path)
    try:
        folder = place.folder()
    except FileNotFoundError:
        return None
    with folder:
        try:
            descriptor = folder.open(place.name)
        except FileNotFoundError:
            return None
        try:
            if not is_regular(descriptor):
                kind = stat.S_ISDIR(os.fstat(descriptor).st_mode)
                raise IsADirectoryError(errno.EISDIR, "it is a directory" if kind else "it is not a regular file", place.path)
            return read_all(descriptor)
        finally:
            os.close(descriptor)


def changed_span(before: bytes, after: bytes) -> tuple[int, int, int]:
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


def _change(target: _Target, payload: list[bytes]) -> FileChange:
    before, after = target.before or b"", target.after or b""
    start, old, new = changed_span(before, after)
    payload += [before[start : start + old], after[start : start + new]]
    return FileChange(
        path=target.place.path,
        temp=target.temp,
        before=None if target.before is None else fingerprint(target.before),
        after=None if target.after is None else fingerprint(target.after),
        start=start,
        old=old,
        new=new,
        made=target.folder.made,
    )


def _stage(target: _Target) -> None:
    """Write the new content beside the target, with the target's mode and owner, and make it durable."""
    if target.after is None:
        return
    descriptor = target.folder.fresh(target.temp, 0o666 if target.status is None else 0o600)
    try:
        write_all(descriptor, target.after)
        if target.status is not None and hasattr(os, "fchmod"):
            now = os.fstat(descriptor)
            if (now.st_uid, now.st_gid) != (target.status.st_uid, target.status.st_gid):
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, target.status.st_uid, target.status.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(target.status.st_mode))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_unchanged(target: _Target) -> None:
    """Somebody who does not take our locks may have written meanwhile; their bytes win."""
    if read_file(target.place) != target.before:
        raise ToolFailure(
            f"{target.place.path} changed while it was being edited; nothing was written. Read it again.",
            code="changed-meanwhile",
            path=target.place.path,
        )


def _put_in_place(target: _Target) -> None:
    if target.after is None:
        target.folder.remove(target.place.name)
    else:
        target.folder.rename(target.temp, target.place.name)


def _roll_back(targets: Sequence[_Target], done: Sequence[_Target]) -> None:
    """Bring back what was replaced already and remove what was staged."""
    for target in done:
        back = target._replace(temp=f".ferrule-{secrets.token_hex(6)}.tmp", after=target.before)
        _stage(back)
        _put_in_place(back)
    for target in targets:
        if target.temp and target not in done:
            with contextlib.suppress(OSError):
                target.folder.remove(target.temp)
