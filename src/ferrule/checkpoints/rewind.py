"""Take files back to an earlier prompt of a conversation, and describe journal entries in words.

Every file that was changed since that prompt becomes what it was then. A description names the files of a write,
or the command and the number of files that it changed.
"""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferrule.checkpoints.checkpoint import Checkpoints
from ferrule.checkpoints.git_moves import PACKED_REFS, git_moves, removed_repositories
from ferrule.checkpoints.restore import ANY_MODE, Move, Restorer
from ferrule.core.errors import ToolFailure
from ferrule.files.journal import DamagedError, FileChange, Journal, JournalEntry, Node, NodeChange
from ferrule.files.ledger import fingerprint


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
