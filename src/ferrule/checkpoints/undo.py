"""Undo and redo writes, take files back to an earlier prompt, and keep drafts until all are written at once.

Drafts are copies in a private folder of the state directory. A tool with the draft's services that opens or writes
a file's real path gets the copy; every other path leads to the usual file. A lock that ends with its process tells
which folders are still in use, so that the next session can remove those of a killed one.

Every file that was changed since that prompt becomes what it was then. A description names the files of a write,
or the command and the number of files that it changed.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.checkpoints.checkpoint import Checkpoints
from ferrule.checkpoints.git_moves import PACKED_REFS, git_moves, removed_repositories
from ferrule.checkpoints.restore import ANY_MODE, Move, Restorer
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Preview, Previewed
from ferrule.files.diff import diff
from ferrule.files.jail import Jail, JailPath, Root
from ferrule.files.journal import DamagedError, FileChange, Journal, JournalEntry, Node, NodeChange
from ferrule.files.ledger import Ledger, fingerprint
from ferrule.files.transaction import Contents, Plan, TransactionResult, Writer, read_file
from ferrule.system.folder import FRESH, Locks, describe, try_lock, write_all

if TYPE_CHECKING:
    from ferrule.checkpoints.restore import RestorePlan


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
    shutil.rmtree(scratch, ignore_errors=True)
    if not os.path.lexists(scratch):
        with contextlib.suppress(OSError):
            os.unlink(scratch + _LOCK)


class Rewind(NamedTuple):
    """What going back would do, or has done."""

    changes: tuple[NodeChange, ...] = ()
    """What becomes of each path."""
    by_hand: tuple[str, ...] = ()
    """Paths that somebody else has changed since: they are left alone unless the user says otherwise."""
    lost: tuple[str, ...] = ()
    """Paths that cannot be brought back, for their bytes were not kept."""
    left_alone: tuple[str, ...] = ()
    """Files that were made since, and whose bytes nobody has: they stay."""
    moved: tuple[str, ...] = ()
    """What was moved in git's own data, each with the command that moves it back."""
    repositories: tuple[str, ...] = ()
    """Folders of git's data that were removed as a whole."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Paths that no checkpoint keeps, and why: they stay as they are."""
    damaged: int = 0
    """Entries of the journal that cannot be read, so that what they tell does not come back."""
    entry: str = ""
    """The entry of the journal, where it was done."""


class History:
    """The writes of one conversation, taken back together."""

    def __init__(self, journal: Journal, restorer: Restorer, checkpoints: Checkpoints) -> None:
        self._journal = journal
        self._restorer = restorer
        self._checkpoints = checkpoints

    def preview(self, prompt: int, *, over: bool = False) -> Rewind:
        """What going back to before a prompt would do. Raises `ToolFailure`."""
        entries = self._since(prompt)
        known = {top for entry in entries for top in entry.repositories}
        is_known = any(entry.nodes or entry.git for entry in entries)
        plan = self._restorer.plan(self._moves(entries), over=over, repositories=known if is_known else None)
        git = _together([entry.git for entry in entries])
        moved = tuple(one.words for one in git_moves(git, self._checkpoints))
        damaged = self._journal.count_damaged_since(entries[0])
        left_out = tuple(sorted(self._checkpoints.left_out.items()))
        repositories = removed_repositories(git)
        return Rewind(*plan, moved, repositories, left_out, damaged)

    def rewind_to(self, prompt: int, *, over: bool = False, with_git: bool = False) -> Rewind:
        """Go back to before a prompt: one write, which can itself be undone. Raises `ToolFailure`.

        `with_git`: repositories that were removed come back too.
        """
        planned = self.preview(prompt, over=over)
        changes = planned.changes
        groups = [entry.git for entry in self._since(prompt)]
        if with_git and planned.repositories:
            unbroken = _together(groups, is_unbroken=True)
            changes = (*changes, *self._restorer.repositories(unbroken, planned.repositories))
        entry = self._restorer.apply(changes, kind="rewind", about=f"to prompt {prompt}") if changes else ""
        if with_git:
            self._restorer.restore_objects(planned.repositories)
        failed = self._restorer.restore_needed(git_moves(_together(groups), self._checkpoints))
        return planned._replace(entry=entry, moved=(*planned.moved, *failed))

    def _since(self, prompt: int) -> list[JournalEntry]:
        """The writes of this conversation for that prompt and later ones. Raises `ToolFailure` where there is none."""
        self._journal.sweep()
        entries = [entry for entry in self._journal.entries() if self._journal.wrote(entry) and entry.prompt >= prompt]
        if not entries:
            raise ToolFailure("No file was changed since then.", code="no-history")
        return entries

    def _moves(self, entries: Sequence[JournalEntry]) -> list[Move]:
        """Each path, with what the last write has left there and what was there before the first one.

        Where a write has found something else than the one before it had left, somebody was there in between.
        """
        last: dict[str, Node | None] = {}
        first: dict[str, tuple[Node | None, int]] = {}
        between: set[str] = set()
        for at, entry in enumerate(entries):
            for change in entry.nodes:
                first.setdefault(change.path, (change.before, at))
                if change.path in last and _is_other(last[change.path], change.before):
                    between.add(change.path)
                last[change.path] = change.after
            for file in entry.files:
                first.setdefault(file.path, (_before(file), at))
                if file.path in last and _is_other(last[file.path], _before(file)):
                    between.add(file.path)
                last[file.path] = None if file.after is None else Node("file", ANY_MODE, file.after)
                for folder in file.made if file.before is None else ():
                    first.setdefault(folder, (None, at))
                    last[folder] = Node("folder", ANY_MODE)
        for path, (node, at) in first.items():
            if node is not None and node.kind == "file" and not self._checkpoints.blobs.has(node.content):
                self._rebuild(path, node.content, entries[at:])
        return [
            Move(path, last[path], _fill_size(node, self._checkpoints), path in between)
            for path, (node, _) in sorted(first.items())
        ]

    def _rebuild(self, path: str, wanted: str, entries: Sequence[JournalEntry]) -> None:
        """Keep the bytes that a file had before an edit, made from what came of them."""
        raw: bytes | None = None
        for entry in reversed(entries):
            node = next((one for one in entry.nodes if one.path == path), None)
            if node is not None:
                raw = None if node.before is None else self._checkpoints.read(node.before)
            at = 0
            for file in entry.files:
                if file.path == path:
                    raw = self._revert_edit(entry, file, at, raw)
                at += file.old + file.new
        if raw is not None and fingerprint(raw) == wanted:
            self._checkpoints.blobs.put(raw, wanted)

    def _revert_edit(self, entry: JournalEntry, file: FileChange, at: int, raw: bytes | None) -> bytes | None:
        if file.before is None:
            return None
        try:
            payload = self._journal.payload(entry)
        except DamagedError:
            return None
        if file.after is not None and (raw is None or fingerprint(raw) != file.after):
            raw = self._checkpoints.now(file.path)
            if raw is None or fingerprint(raw) != file.after:
                return None
        base = raw or b""
        return base[: file.start] + payload[at : at + file.old] + base[file.start + file.new :]


def _is_other(left: Node | None, found: Node | None) -> bool:
    """Are these two different files? Modes of folders change for many reasons."""
    kinds = {None if node is None else node.kind for node in (left, found)}
    if left is None or found is None or left.kind != found.kind:
        return kinds != {"folder"} and left is not found
    return left.kind != "folder" and not (left.is_unkept or found.is_unkept) and left.content != found.content


def _before(file: FileChange) -> Node | None:
    if file.before is None:
        return None
    return Node("file", ANY_MODE if file.mode is None else file.mode, file.before)


def _fill_size(node: Node | None, checkpoints: Checkpoints) -> Node | None:
    """A node of an edit does not say how large its file was; an empty one has nothing to copy."""
    if node is None or node.kind != "file" or node.size:
        return node
    return Node(node.kind, node.mode, node.content, checkpoints.blobs.size(node.content), node.owner, node.group)


def _together(groups: Sequence[Sequence[NodeChange]], *, is_unbroken: bool = False) -> list[NodeChange]:
    """What several entries have made of each path; `is_unbroken`: until somebody else has made something of it."""
    first: dict[str, Node | None] = {}
    last: dict[str, Node | None] = {}
    for change in (change for group in groups for change in group):
        first.setdefault(change.path, change.before)
        if not is_unbroken or change.before == last.get(change.path, change.before):
            last[change.path] = change.after
    return [NodeChange(path, node, last[path]) for path, node in first.items() if node != last[path] or _is_base(path)]


def _is_base(path: str) -> bool:
    """Does it say, also where it has not changed, what has moved elsewhere?"""
    return os.path.basename(path) == PACKED_REFS


_MOST_NAMES = 6
_COMMAND_CHARS = 80


def entry_words(entry: JournalEntry, shown: Callable[[str], str]) -> str:
    """Such as `edit of src/a.py`, or ``command `npm run fmt`: 3 files``."""
    files = files_of(entry)
    if entry.kind == "command":
        what = count_noun(len(files), "file") if files or not entry.git else "only git's own data"
        return f"command {command_words(entry)}: {what}"
    return f"{entry.kind} of {names_of(files, shown)}"


def files_of(entry: JournalEntry) -> tuple[str, ...]:
    """What it changed, without the folders of it; the folders where it changed nothing else."""
    nodes = (node.path for node in entry.nodes if not is_folder(node))
    return (*(file.path for file in entry.files), *nodes) or entry.paths


def is_folder(change: NodeChange) -> bool:
    """Was it a folder, or has become one, and was nothing else?"""
    sides = [side for side in (change.before, change.after) if side is not None]
    return bool(sides) and all(side.kind == "folder" for side in sides)


def command_words(entry: JournalEntry) -> str:
    """The command line, on one line of this many characters at most."""
    words = " ".join(entry.about.split())
    return f"`{words if len(words) <= _COMMAND_CHARS else words[: _COMMAND_CHARS - 1] + '…'}`"


def names_of(paths: Sequence[str], shown: Callable[[str], str]) -> str:
    """The names; of many, some and how many more there are."""
    more = f" and {len(paths) - _MOST_NAMES:,} more" if len(paths) > _MOST_NAMES else ""
    return ", ".join(map(shown, paths[:_MOST_NAMES])) + more


def count_noun(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
