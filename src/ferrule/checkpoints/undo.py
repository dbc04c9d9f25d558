"""Undo and redo writes from the journal, and keep drafts of files until all are written at once.

An undo is itself a write, so it can be undone: that is what redo does.

Drafts are copies in a private folder of the state directory. A tool with the draft's services that opens or writes
a file's real path gets the copy; every other path leads to the usual file. A lock that ends with its process tells
which folders are still in use, so that the next session can remove those of a killed one.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.checkpoints.git_moves import git_moves, removed_repositories
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Preview, Previewed
from ferrule.files.jail import Jail, JailPath, Root
from ferrule.files.journal import DamagedError, FileChange, Journal, JournalEntry, Node
from ferrule.files.ledger import Ledger, fingerprint
from ferrule.files.transaction import Contents, Plan, TransactionResult, Writer, read_file
from ferrule.system.folder import FRESH, describe, write_all
from ferrule.system.locks import Locks, try_lock

if TYPE_CHECKING:
    from ferrule.checkpoints.checkpoint import Checkpoints
    from ferrule.checkpoints.restore import RestorePlan, Restorer


_DIFF_LINES = 100
_NAMED = 5
_SHOWN_BYTES = 1 << 18


class Undone(NamedTuple):
    """What an undo or redo did: the contents it found and the contents it left."""

    before: Contents
    after: Contents
    entry: JournalEntry
    """The write that was undone or redone."""
    notes: tuple[str, ...] = ()
    """What was not brought back, and how it can be."""
    touched: tuple[str, ...] = ()
    """All that was changed of a command's, also what is too large to be shown."""

    @property
    def is_nothing(self) -> bool:
        """Did it find nothing that it could change? Of git's own data it only says how that is moved back."""
        return not (self.before or self.touched)


class Undo:
    """The history of one workspace, stepped through in both directions."""

    def __init__(
        self,
        journal: Journal,
        writer: Writer,
        restorer: Callable[[], "tuple[Restorer, Checkpoints]"] | None = None,
    ) -> None:
        """`restorer` gives what puts back what commands have changed."""
        self._journal = journal
        self._writer = writer
        self._restorer = restorer

    def undo_last(
        self,
        path: str | None = None,
        allowed: Callable[[JournalEntry], bool] | None = None,
        agreed: Preview | None = None,
        *,
        with_git: bool = False,
    ) -> Undone:
        """Undo the last write that is not undone yet, of one file or of all, if it is one that is allowed.

        Where a person has `agreed` to what it would do, it does that or nothing. `with_git`: a repository that was
        removed comes back too.
        """
        return self._step(self._last(path, allowed, forward=False), forward=False, agreed=agreed, with_git=with_git)

    def removed_repositories(self, path: str | None = None) -> tuple[str, ...]:
        """The repositories that the last write has removed as a whole."""
        undoable, _ = self.history(path)
        return removed_repositories(undoable[-1].git) if undoable else ()

    def preview(self, path: str | None, allowed: Callable[[JournalEntry], bool]) -> Preview:
        """What `back` would do now. It fails where that would."""
        entry = self._last(path, allowed, forward=False)
        if entry.nodes or entry.git:
            return self._preview(entry)
        return self._writer.preview(_paths(entry), self._plan(entry, forward=False), of=entry)

    def redo_last(self, path: str | None = None) -> Undone:
        """Redo the last write that was undone, of one file or of all."""
        return self._step(self._last(path, forward=True), forward=True)

    def is_own(self, entry: JournalEntry) -> bool:
        """Did this session write it?"""
        return self._journal.wrote(entry)

    def _last(
        self, path: str | None, allowed: Callable[[JournalEntry], bool] | None = None, *, forward: bool
    ) -> JournalEntry:
        undoable, redoable = self.history(path)
        entries = redoable if forward else undoable
        if not entries:
            nothing = "Nothing to redo" if forward else "No edit history found"
            where = f"file '{path}'" if path else "this workspace"
            raise ToolFailure(f"{nothing} for {where}.", code="no-history", path=path)
        if allowed is not None and not allowed(entries[-1]):
            raise ToolFailure(
                "The last write is another one now than when the call was let in, and not of this session. "
                "Nothing was changed. Try again.",
                code="changed-meanwhile",
                path=path,
            )
        return entries[-1]

    def history(self, path: str | None = None) -> tuple[list[JournalEntry], list[JournalEntry]]:
        """The writes that can be undone and those that can be redone, the next one last."""
        try:
            return self._stacks(path)
        except OSError as error:
            raise ToolFailure(f"{describe(error)}: {self._journal.folder}. Nothing was changed.") from error

    def _stacks(self, path: str | None) -> tuple[list[JournalEntry], list[JournalEntry]]:
        self._journal.sweep()
        undoable: dict[str, JournalEntry] = {}
        redoable: dict[str, JournalEntry] = {}
        for entry in self._journal.entries():
            if entry.kind in ("undo", "redo"):
                source, goal = (undoable, redoable) if entry.kind == "undo" else (redoable, undoable)
                about = source.pop(entry.of or "", None)
                if about is not None:
                    goal[about.id] = about
            else:
                undoable[entry.id] = entry
                redoable = {old.id: old for old in redoable.values() if not _share_a_file(old, entry)}
        return _about(path, undoable.values()), _about(path, redoable.values())

    def _plan(self, entry: JournalEntry, *, forward: bool) -> Plan:
        kind = "redo" if forward else "undo"
        try:
            payload = self._journal.payload(entry)
        except DamagedError as error:
            raise ToolFailure(f"Cannot {kind}: {error}. Nothing was changed.", code="journal-damaged") from error
        sides = _sides(entry.files, payload)

        def plan(found: Contents) -> Contents:
            return {
                file.path: _other_side(file, sides[file.path], found[file.path], kind=kind, forward=forward)
                for file in entry.files
            }

        return plan

    def _preview(self, entry: JournalEntry) -> Preview:
        """What undoing a command would change, as far as it can be shown."""
        found = self._plan_restore(entry, forward=False)
        _, checkpoints = self._require_restorer()
        return tuple(
            Previewed(one.path, _read_node(one.before, checkpoints), _read_node(one.after, checkpoints))
            for one in found.changes
            if _is_shown(one.before) and _is_shown(one.after)
        )

    def _require_restorer(self) -> "tuple[Restorer, Checkpoints]":
        if self._restorer is None:
            raise ToolFailure(
                "What commands changed cannot be taken back here: nothing is kept of it (checkpoints.keep). "
                "Nothing was changed.",
                code="no-checkpoints",
            )
        return self._restorer()

    def _plan_restore(self, entry: JournalEntry, *, forward: bool) -> "RestorePlan":
        from ferrule.checkpoints.restore import Move  # for who takes a command back

        restorer, _ = self._require_restorer()
        moves = (
            Move(one.path, one.before, one.after) if forward else Move(one.path, one.after, one.before)
            for one in entry.nodes
        )
        found = restorer.plan(moves, repositories=entry.repositories)
        if found.by_hand:
            some = ", ".join(found.by_hand[:_NAMED]) + ", …" * (len(found.by_hand) > _NAMED)
            kind, were = "redo" if forward else "undo", "was" if len(found.by_hand) == 1 else "were"
            raise ToolFailure(
                f"Cannot {kind}: {some} {were} changed since by something else, and those changes would be lost. "
                "Nothing was changed.",
                code="changed-since",
                path=found.by_hand[0],
            )
        return found

    def _step_nodes(self, entry: JournalEntry, *, forward: bool, with_git: bool) -> Undone:
        """Put back what a command has changed, or put it there again."""
        kind = "redo" if forward else "undo"
        restorer, checkpoints = self._require_restorer()
        found = self._plan_restore(entry, forward=forward)
        changes, notes = (
            found.changes,
            [f"{path} could not be brought back: its bytes were not kept." for path in found.lost],
        )
        notes += [
            f"{path} was left alone: its bytes were not kept, so it could not come back." for path in found.left_alone
        ]
        gone = removed_repositories(entry.git)
        if gone and not forward and with_git:
            changes = (*changes, *restorer.repositories(entry.git, gone))
        elif gone and not forward:
            notes += [f"The repository {path} was removed and was not brought back." for path in gone]
        moved = () if forward else git_moves(entry.git, checkpoints)
        notes += [one.words for one in moved]
        if changes:
            restorer.apply(changes, kind=kind, of=entry.id, about=entry.about)
        else:
            self._journal.note(kind, of=entry.id)
        if gone and with_git and not forward:
            restorer.restore_objects(gone)
        notes += restorer.restore_needed(moved)
        shown = [one for one in changes if _is_shown(one.before) and _is_shown(one.after)]
        before = {one.path: _read_node(one.before, checkpoints) for one in shown}
        after = {one.path: _read_node(one.after, checkpoints) for one in shown}
        return Undone(before, after, entry, tuple(notes), tuple(one.path for one in changes))

    def _step(
        self, entry: JournalEntry, *, forward: bool, agreed: Preview | None = None, with_git: bool = False
    ) -> Undone:
        if entry.nodes or entry.git:
            return self._step_nodes(entry, forward=forward, with_git=with_git)
        kind, plan = "redo" if forward else "undo", self._plan(entry, forward=forward)
        written = self._writer.apply(_paths(entry), plan, kind=kind, of=entry, agreed=agreed)
        return Undone(written.before, written.after, entry)


def _paths(entry: JournalEntry) -> list[str]:
    return [file.path for file in entry.files]


def _about(path: str | None, entries: Iterable[JournalEntry]) -> list[JournalEntry]:
    return [entry for entry in entries if path is None or path in entry.paths]


def _share_a_file(one: JournalEntry, other: JournalEntry) -> bool:
    return not set(one.paths).isdisjoint(other.paths)


def _is_shown(node: Node | None) -> bool:
    """Can a diff of it be shown?"""
    return node is None or (node.kind == "file" and node.size <= _SHOWN_BYTES)


def _read_node(node: Node | None, checkpoints: "Checkpoints") -> bytes | None:
    if node is None:
        return None
    return checkpoints.read(node) if node.size else b""


def _sides(files: Sequence[FileChange], payload: bytes) -> dict[str, tuple[bytes, bytes]]:
    """The old and the new bytes of each file's changed span."""
    out, at = {}, 0
    for file in files:
        middle, end = at + file.old, at + file.old + file.new
        out[file.path] = (payload[at:middle], payload[middle:end])
        at = end
    return out


def _other_side(
    file: FileChange, sides: tuple[bytes, bytes], now: bytes | None, *, kind: str, forward: bool
) -> bytes | None:
    """The other side of a change, or a refusal when the file is not the one that the change left."""
    expected, wanted = (file.before, file.after) if forward else (file.after, file.before)
    found = None if now is None else fingerprint(now)
    if found == wanted:
        return now  # a crash kept this file from being written; there is nothing to take back
    if found != expected:
        raise ToolFailure(
            f"Cannot {kind}: {file.path} was changed since by something else, and those changes would be lost. "
            f"Nothing was changed.{_render_change(file, sides, forward=forward)}",
            code="changed-since",
            path=file.path,
        )
    if wanted is None:
        return None
    have, put = (sides[0], sides[1]) if forward else (sides[1], sides[0])
    base = now or b""
    result = base[: file.start] + put + base[file.start + len(have) :]
    if fingerprint(result) != wanted:
        raise ToolFailure(
            f"Cannot {kind}: the journal does not fit {file.path}. Nothing was changed.",
            code="journal-damaged",
            path=file.path,
        )
    return result


def _render_change(file: FileChange, sides: tuple[bytes, bytes], *, forward: bool) -> str:
    """The change that was not made, so that it can be made by hand."""
    from ferrule.files.diff import diff  # only a refusal pays for it

    texts = [
        None if mark is None else raw.decode(errors="replace")
        for raw, mark in zip(sides, (file.before, file.after), strict=True)
    ]
    before, after = texts if forward else texts[::-1]
    lines = diff(os.path.basename(file.path), before, after).splitlines()
    more = [f"... and {len(lines) - _DIFF_LINES} lines more"] if len(lines) > _DIFF_LINES else []
    return "\nThis is the change that was not made; make it by hand if it is still wanted:\n" + "\n".join(
        lines[:_DIFF_LINES] + more
    )


FILE_BYTES = 16 << 20
TOTAL_BYTES = 64 << 20
_LOCK = ".lock"


class DraftJail(Jail):
    """The session's jail, but one file of it is the draft."""

    def __init__(self, jail: Jail, path: str, folder: str) -> None:
        self.roots = jail.roots  # the very list: a folder that the user opens is open here too
        self._path = path
        self._scratch = Root(folder)

    def place(self, real: str) -> JailPath:
        if real == self._path:
            return JailPath(self._scratch, (os.path.basename(real),), real)
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
        of: JournalEntry | None = None,
        moved: Mapping[str, str] = MappingProxyType({}),
        agreed: Preview | None = None,
    ) -> TransactionResult:
        kept = self._restrict_plan(paths, plan)
        return super().apply(paths, kept, kind=kind, call_id=call_id, of=of, moved=moved, agreed=agreed)

    def preview(
        self,
        paths: Sequence[str],
        plan: Plan,
        *,
        of: JournalEntry | None = None,
        moved: Mapping[str, str] = MappingProxyType({}),
    ) -> Preview:
        return super().preview(paths, self._restrict_plan(paths, plan), of=of, moved=moved)

    def _restrict_plan(self, paths: Sequence[str], plan: Plan) -> Plan:
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


class _FileDraft(NamedTuple):
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
        self._drafts: dict[str, _FileDraft] = {}

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

    def _draft(self, path: str, original: bytes | None, scratch: str) -> _FileDraft:
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
        return _FileDraft(jail, original, services)

    def services(self, path: str) -> Mapping[str, Any]:
        """What the calls of whoever works on this file have in the place of the session's."""
        return self._drafts[path].services

    def original(self, path: str) -> bytes | None:
        return self._drafts[path].original

    def find_changed(self) -> dict[str, bytes]:
        """The drafts that differ from what they began as."""
        out = {}
        for path, draft in self._drafts.items():
            now = read_file(draft.jail.place(path))
            if now is not None and now != draft.original:
                out[path] = now
        return out

    def commit(self, writer: Writer, changed: Mapping[str, bytes], *, call_id: str) -> TransactionResult:
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
        for path in self._find_abandoned():
            _remove(path)

    def _find_abandoned(self) -> Iterator[str]:
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
