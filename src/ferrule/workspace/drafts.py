"""Drafts: copies of files, each worked on by one hand that sees only its own, until all are written at once.

The copies lie in a private folder of the state directory. What a tool opens or writes under a file's real path is the
copy, for whoever has the draft's services; every other path leads where it always does. A lock that dies with its
process says which folders are still in use, so that the next session can remove what a killed one left.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.core.preview import Preview
from ferrule.support.beneath import FRESH, describe, write_all
from ferrule.support.locks import Locks, try_lock
from ferrule.workspace.journal import Entry, Journal
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.paths import Jail, Place, Root
from ferrule.workspace.transaction import Plan, Writer, Written, read_file
from ferrule.workspace.undo import Undo

FILE_BYTES = 16 << 20
TOTAL_BYTES = 64 << 20
_LOCK = ".lock"


class DraftJail(Jail):
    """The session's jail, but one file of it is the draft."""

    def __init__(self, jail: Jail, path: str, folder: str) -> None:
        self.roots = jail.roots  # the very list: a folder that the user opens is open here too
        self._path = path
        self._scratch = Root(folder)

    def place(self, real: str) -> Place:
        if real == self._path:
            return Place(self._scratch, (os.path.basename(real),), real)
        return super().place(real)

    def close(self) -> None:
        """The session's own roots stay open."""
        self._scratch.close()


class DraftWriter(Writer):
    """Writes the one draft, and nothing else at all."""

    def __init__(self, jail: DraftJail, journal: Journal, locks: Locks, path: str) -> None:
        super().__init__(jail, journal, locks)
        self._path = path

    def apply(
        self,
        paths: Sequence[str],
        plan: Plan,
        *,
        kind: str,
        call_id: str = "",
        of: Entry | None = None,
        moved: Mapping[str, str] = MappingProxyType({}),
        agreed: Preview | None = None,
    ) -> Written:
        kept = self._kept(paths, plan)
        return super().apply(paths, kept, kind=kind, call_id=call_id, of=of, moved=moved, agreed=agreed)

    def preview(
        self,
        paths: Sequence[str],
        plan: Plan,
        *,
        of: Entry | None = None,
        moved: Mapping[str, str] = MappingProxyType({}),
    ) -> Preview:
        return super().preview(paths, self._kept(paths, plan), of=of, moved=moved)

    def _kept(self, paths: Sequence[str], plan: Plan) -> Plan:
        """The plan, where it is for the draft alone and leaves it there."""
        others = [path for path in paths if path != self._path]
        if others:
            raise ToolFailure(
                f"Only {self._path} can be written here, and not {others[0]}: each file of this work has a helper of "
                "its own. Say in your last message what the other file needs.",
                code="only-one-file",
                path=others[0],
            )

        def kept(found: Mapping[str, bytes | None]) -> Mapping[str, bytes | None]:
            after = plan(found)
            if any(after[path] is None and found[path] is not None for path in paths):
                raise ToolFailure(f"{self._path} cannot be deleted here.", code="only-one-file", path=self._path)
            return after

        return kept


class _Draft(NamedTuple):
    jail: DraftJail
    original: bytes | None
    services: Mapping[str, Any]


class Drafts:
    """The drafts of one piece of work. Whoever makes one closes it, whatever happened."""

    def __init__(self, jail: Jail, folder: str) -> None:
        """`folder` holds the folders of all such work; it is made when it is needed."""
        self._jail = jail
        self._folder = folder
        self._scratch = ""
        self._lock: int | None = None
        self._drafts: dict[str, _Draft] = {}

    def begin(self, paths: Sequence[str]) -> None:
        """Copy the files at these real paths; one that is not there yet begins as none."""
        try:
            self.sweep()
            self._claim()
            left = TOTAL_BYTES
            for number, path in enumerate(paths):
                original = read_file(self._jail.place(path))
                left -= len(original or b"")
                if left < 0 or len(original or b"") > FILE_BYTES:
                    raise ToolFailure(
                        f"{path} is too large to be worked on together with the others: {FILE_BYTES >> 20} MiB for "
                        f"one file and {TOTAL_BYTES >> 20} MiB for all is the most. Nothing was changed.",
                        code="too-large",
                        path=path,
                    )
                self._drafts[path] = self._draft(path, original, os.path.join(self._scratch, str(number)))
        except OSError as error:
            raise ToolFailure(f"{describe(error)}: {error.filename or self._folder}. Nothing was changed.") from error

    def _claim(self) -> None:
        """A private folder under a lock. Another process's sweep may take a lock file for abandoned before that."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        while True:
            self._scratch = os.path.join(self._folder, secrets.token_hex(8))
            descriptor = os.open(self._scratch + _LOCK, FRESH, 0o600)
            if try_lock(descriptor) and os.fstat(descriptor).st_nlink:
                break
            os.close(descriptor)
        self._lock = descriptor
        os.mkdir(self._scratch, 0o700)

    def _draft(self, path: str, original: bytes | None, scratch: str) -> _Draft:
        home = os.path.join(scratch, "file")
        os.makedirs(home, mode=0o700)
        if original is not None:
            can_write = os.stat(path, follow_symlinks=False).st_mode & 0o222 and os.access(path, os.W_OK)
            descriptor = os.open(os.path.join(home, os.path.basename(path)), FRESH, 0o600 if can_write else 0o400)
            try:
                write_all(descriptor, original)
            finally:
                os.close(descriptor)
        jail = DraftJail(self._jail, path, home)
        journal = Journal(os.path.join(scratch, "journal"), keep_bytes=TOTAL_BYTES, keep_days=1.0)
        writer = DraftWriter(jail, journal, Locks(os.path.join(scratch, "locks")), path)
        services = {
            "Jail": jail,
            "Writer": writer,
            "Journal": journal,
            "Undo": Undo(journal, writer),
            "Ledger": Ledger(),
        }
        return _Draft(jail, original, services)

    def services(self, path: str) -> Mapping[str, Any]:
        """What the calls of whoever works on this file have in the place of the session's."""
        return self._drafts[path].services

    def original(self, path: str) -> bytes | None:
        return self._drafts[path].original

    def changed(self) -> dict[str, bytes]:
        """The drafts that differ from what they began as."""
        out = {}
        for path, draft in self._drafts.items():
            now = read_file(draft.jail.place(path))
            if now is not None and now != draft.original:
                out[path] = now
        return out

    def commit(self, writer: Writer, changed: Mapping[str, bytes], *, call_id: str) -> Written:
        """Write all of them with the session's writer at once; none where a file is not what its draft began as."""

        def plan(found: Mapping[str, bytes | None]) -> Mapping[str, bytes | None]:
            for path in changed:
                if found[path] != self.original(path):
                    raise ToolFailure(
                        f"{path} was changed by somebody else meanwhile; nothing was written. Look at it, and try "
                        "again.",
                        code="changed-meanwhile",
                        path=path,
                    )
            return changed

        return writer.apply(list(changed), plan, kind="edit", call_id=call_id)

    def close(self) -> None:
        """Remove the copies. Closing twice is fine."""
        for draft in self._drafts.values():
            draft.jail.close()
        self._drafts.clear()
        if self._lock is not None:
            _remove(self._scratch)
            os.close(self._lock)
            self._lock = None

    def sweep(self) -> None:
        """Remove what killed processes have left."""
        for path in self._abandoned():
            _remove(path)

    def _abandoned(self) -> Iterator[str]:
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return
        for name in names:
            if not name.endswith(_LOCK):
                continue
            path = os.path.join(self._folder, name)
            try:
                descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0))
            except OSError:
                continue  # gone meanwhile
            try:
                if try_lock(descriptor):
                    yield path.removesuffix(_LOCK)
            finally:
                os.close(descriptor)


def _remove(scratch: str) -> None:
    """The folder first: while its lock file is there, the next sweep finds what could not be removed now."""
    import shutil  # only those who have drafts pay for it

    shutil.rmtree(scratch, ignore_errors=True)
    if not os.path.lexists(scratch):
        with contextlib.suppress(OSError):
            os.unlink(scratch + _LOCK)
