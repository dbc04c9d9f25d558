"""Undo and redo from the journal. An undo is itself a write, so it can be undone: that is what redo is."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.core.preview import Preview, Previewed
from ferrule.support.beneath import describe
from ferrule.workspace.git_moves import git_moves, removed_repositories
from ferrule.workspace.journal import Entry, FileChange, Journal, Node
from ferrule.workspace.ledger import fingerprint
from ferrule.workspace.sealed import DamagedError
from ferrule.workspace.transaction import Contents, Plan, Writer

if TYPE_CHECKING:
    from ferrule.workspace.checkpoint import Checkpoints
    from ferrule.workspace.restore import Plan as RestorePlan
    from ferrule.workspace.restore import Restorer

_DIFF_LINES = 100
_NAMED = 5
_SHOWN_BYTES = 1 << 18


class Undone(NamedTuple):
    """What an undo or redo did: the contents it found and the contents it left."""

    before: Contents
    after: Contents
    entry: Entry
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

    def back(
        self,
        path: str | None = None,
        allowed: Callable[[Entry], bool] | None = None,
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

    def preview(self, path: str | None, allowed: Callable[[Entry], bool]) -> Preview:
        """What `back` would do now. It fails where that would."""
        entry = self._last(path, allowed, forward=False)
        if entry.nodes or entry.git:
            return self._preview(entry)
        return self._writer.preview(_paths(entry), self._plan(entry, forward=False), of=entry)

    def again(self, path: str | None = None) -> Undone:
        """Redo the last write that was undone, of one file or of all."""
        return self._step(self._last(path, forward=True), forward=True)

    def is_own(self, entry: Entry) -> bool:
        """Did this session write it?"""
        return self._journal.wrote(entry)

    def _last(self, path: str | None, allowed: Callable[[Entry], bool] | None = None, *, forward: bool) -> Entry:
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

    def history(self, path: str | None = None) -> tuple[list[Entry], list[Entry]]:
        """The writes that can be undone and those that can be redone, the next one last."""
        try:
            return self._stacks(path)
        except OSError as error:
            raise ToolFailure(f"{describe(error)}: {self._journal.folder}. Nothing was changed.") from error

    def _stacks(self, path: str | None) -> tuple[list[Entry], list[Entry]]:
        self._journal.sweep()
        undoable: dict[str, Entry] = {}
        redoable: dict[str, Entry] = {}
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

    def _plan(self, entry: Entry, *, forward: bool) -> Plan:
        kind = "redo" if forward else "undo"
        try:
            payload = self._journal.payload(entry)
        except DamagedError as error:
            raise ToolFailure(f"Cannot {kind}: {error}. Nothing was changed.", code="journal-damaged") from error
        sides = _sides(entry.files, payload)

        def plan(found: Contents) -> Contents:
            return {
                file.path: _restored(file, sides[file.path], found[file.path], kind=kind, forward=forward)
                for file in entry.files
            }

        return plan

    def _preview(self, entry: Entry) -> Preview:
        """What undoing a command would change, as far as it can be shown."""
        found = self._planned(entry, forward=False)
        _, checkpoints = self._putting_back()
        return tuple(
            Previewed(one.path, _shown(one.before, checkpoints), _shown(one.after, checkpoints))
            for one in found.changes
            if _is_shown(one.before) and _is_shown(one.after)
        )

    def _putting_back(self) -> "tuple[Restorer, Checkpoints]":
        if self._restorer is None:
            raise ToolFailure(
                "What commands changed cannot be taken back here: nothing is kept of it (checkpoints.keep). "
                "Nothing was changed.",
                code="no-checkpoints",
            )
        return self._restorer()

    def _planned(self, entry: Entry, *, forward: bool) -> "RestorePlan":
        from ferrule.workspace.restore import Move  # for who takes a command back

        restorer, _ = self._putting_back()
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

    def _step_nodes(self, entry: Entry, *, forward: bool, with_git: bool) -> Undone:
        """Put back what a command has changed, or put it there again."""
        kind = "redo" if forward else "undo"
        restorer, checkpoints = self._putting_back()
        found = self._planned(entry, forward=forward)
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
            restorer.bring_objects(gone)
        notes += restorer.bring_needed(moved)
        shown = [one for one in changes if _is_shown(one.before) and _is_shown(one.after)]
        before = {one.path: _shown(one.before, checkpoints) for one in shown}
        after = {one.path: _shown(one.after, checkpoints) for one in shown}
        return Undone(before, after, entry, tuple(notes), tuple(one.path for one in changes))

    def _step(self, entry: Entry, *, forward: bool, agreed: Preview | None = None, with_git: bool = False) -> Undone:
        if entry.nodes or entry.git:
            return self._step_nodes(entry, forward=forward, with_git=with_git)
        kind, plan = "redo" if forward else "undo", self._plan(entry, forward=forward)
        written = self._writer.apply(_paths(entry), plan, kind=kind, of=entry, agreed=agreed)
        return Undone(written.before, written.after, entry)


def _paths(entry: Entry) -> list[str]:
    return [file.path for file in entry.files]


def _about(path: str | None, entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if path is None or path in entry.paths]


def _share_a_file(one: Entry, other: Entry) -> bool:
    return not set(one.paths).isdisjoint(other.paths)


def _is_shown(node: Node | None) -> bool:
    """Can a diff of it be shown?"""
    return node is None or (node.kind == "file" and node.size <= _SHOWN_BYTES)


def _shown(node: Node | None, checkpoints: "Checkpoints") -> bytes | None:
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


def _restored(
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
            f"Nothing was changed.{_recorded(file, sides, forward=forward)}",
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


def _recorded(file: FileChange, sides: tuple[bytes, bytes], *, forward: bool) -> str:
    """The change that was not made, so that it can be made by hand."""
    from ferrule.support.diff import diff  # only a refusal pays for it

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
