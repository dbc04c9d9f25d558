"""Checkpoints: before a command runs, what it may change is kept; afterwards, what it has changed is known.

The bytes of every file that may change are in the store before the command starts, or pinned as objects of git. What
has changed is found by looking again, and goes into the journal as one entry, from which it can be taken back.
"""

import contextlib
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ferrule.checkpoints.blobs import Blobs, private
from ferrule.checkpoints.git_moves import PACKED_REFS, STASH_LOG, is_vital
from ferrule.checkpoints.store import CheckpointLimits, CheckpointStore, Needed, ObjectPins
from ferrule.checkpoints.tree import (
    GIT,
    FolderContents,
    NodeSnapshot,
    SavedFile,
    SavedFolder,
    SavedTree,
    SeenFolder,
    TreeChange,
    TreeState,
    is_below,
)
from ferrule.core.call import Changes
from ferrule.files.diff import changes as differences
from ferrule.files.journal import (
    UNKNOWN_CONTENT,
    Journal,
    JournalEntry,
    Node,
    NodeChange,
    Pending,
    WriteOrigin,
    is_git_data,
)
from ferrule.files.ledger import fingerprint
from ferrule.git import Objects, head_of
from ferrule.system.folder import open_folder

_COUNTED_BYTES = 1 << 18
_COUNTED_FILES = 200
"""Of more, or larger, files nobody is told how many lines changed."""
_TIDY_SECONDS = 86_400.0
_DEATH_SECONDS = 2.5
"""So long after it was last heard of may a command have lived on."""
_FOLDER_CONTENT = ""
"""What a folder has in the place of bytes."""
_SURE_SECONDS = 60.0
"""So long it is enough to look at what was heard of."""
_WHOLE_CHANGES = 2000
"""After more changes everything is written down anew."""


class _Running(NamedTuple):
    """A command that runs, and the files that it cannot see."""

    pending: Pending
    hidden: frozenset[str]


class _Late(NamedTuple):
    """What a command has changed that is not in the journal yet."""

    changes: list[TreeChange]
    pending: Pending


class Checkpoints:
    """The state of the workspace as commands find it, and what each of them makes of it."""

    def __init__(
        self,
        roots: Sequence[str],
        journal: Journal,
        folder: str,
        limits: CheckpointLimits,
        *,
        is_tracked: Callable[[str], bool] = lambda _: False,
        own: Sequence[str] = (),
    ) -> None:
        """`folder` is where it all is kept; `own` are folders of the engine's state."""
        self._roots = tuple(roots)
        self._journal = journal
        self._folder = folder
        self._limits = limits
        self.store = CheckpointStore(folder, limits, self._find_needed)
        self._tree = TreeState(roots, self.store.keep, is_tracked=is_tracked, own=own)
        self._lock = threading.RLock()
        self._is_ready = False
        self._heads: dict[str, str] = {}
        self._damaged: set[str] = set()
        self._saved = SavedTree(folder)
        self._was_saved = False
        """Is what was found before known, so that changes since can be told?"""
        self._running: dict[str, _Running] = {}
        """Commands that run, by call: who dies with one leaves its file in the journal."""
        self._late: list[_Late] = []
        """What commands have changed, and could not be written down."""
        self._look_began = 0.0
        """When the last look began."""
        self._sure_at = -math.inf
        """When everything was looked at last, and not only what was heard of."""
        self._last: JournalEntry | None = None
        """The last command: what was not heard of is its doing."""

    @property
    def left_out(self) -> dict[str, str]:
        """Paths that are not kept → why."""
        return dict(self._tree.left_out)

    def is_left_out(self, path: str) -> bool:
        """Was this path, or a folder above it, left out when the workspace was last looked at?"""
        return is_below(path, self._tree.left_out)

    def begin(
        self, hidden: frozenset[str] = frozenset(), *, background: str = "", about: str = "", call_id: str = ""
    ) -> None:
        """Have everything kept that a command may change; `about` is its line, where one is about to run.

        What has changed since the last look was not a command's, unless `background` names one that ran meanwhile.
        `hidden` are files that no command can see. Raises OSError where it cannot be kept.
        """
        with self._lock:
            is_first = not self._is_ready
            if self._running and not about:
                return  # all was kept before that command, and what has changed since is its own
            background = background or next((one.pending.entry.about for one in self._running.values()), "")
            if is_first:
                self._load()
            died = self._journal.find_interrupted()
            background = self._record_late() or background
            since = self._look_began
            changes = self._look(hidden)
            is_known = self._was_saved or not is_first
            self._is_ready = True
            if time.monotonic() > self._sure_at + _SURE_SECONDS:
                self._make_sure(hidden, since)
            if died and is_known:
                last = died[-1]
                changes_then = [_as_left(one, last.alive_at) for one in self._not_ours(changes, since)]
                self._record(changes_then, last.entry.about, last.entry.call_id, _origin(last.entry))
            elif background and is_known:
                self._record(self._not_ours(changes, since), background, "")
            for one in died:
                with contextlib.suppress(OSError):
                    os.unlink(one.path)
            self._write_down(changes, is_whole=is_first and not self._was_saved)
            if about:
                pending = self._journal.announce("command", (), b"", about=about, call_id=call_id, is_durable=False)
                self._running[call_id] = _Running(pending, hidden)

    def end(self, about: str, call_id: str = "", hidden: frozenset[str] = frozenset()) -> Changes | None:
        """Find out what has changed since `begin`, and write it down; None where nothing has. Raises OSError."""
        with self._lock:
            running = self._running.pop(call_id, None)
            changes: list[TreeChange] = []
            try:
                # A secret that was not there when it began is its own.
                changes = self._look(hidden if running is None else hidden & running.hidden, is_after=True)
                told = self._record(changes, about, call_id)
            except OSError:
                if running is not None:
                    self._late.append(_Late(changes, running.pending))
                raise
            self._write_down(changes)
            if running is not None:
                self._journal.withdraw(running.pending)
                self._last = running.pending.entry
            return told

    def beat(self) -> bool:
        """Write down that the commands which run do so now; no where none runs.

        If this process dies, what was changed much later is not theirs.
        """
        running = list(self._running.values())
        for one in running:
            with contextlib.suppress(OSError):
                os.utime(one.pending.path)
        return bool(running)

    def _record_late(self) -> str:
        """Write down what could not be when a command ended; the command of which it is still to be found out."""
        about = ""
        while self._late:
            changes, pending = self._late[0]
            self._record(changes, pending.entry.about, pending.entry.call_id, _origin(pending.entry))
            about = "" if changes else pending.entry.about
            self._late.pop(0)
            self._journal.withdraw(pending)
        return about

    def make_sure(self, hidden: frozenset[str] = frozenset()) -> None:
        """Look at everything where lately only that was looked at which was heard of. Raises OSError."""
        with self._lock:
            if not self._is_ready or self._running:
                return
            about = self._record_late()
            if about or not self._tree.is_sure:
                since = self._look_began
                changes = self._look(hidden)
                if about:
                    self._record(self._not_ours(changes, since), about, "")
                self._write_down(changes)
                self._make_sure(hidden, since)

    def _make_sure(self, hidden: frozenset[str], since: float) -> None:
        """Write down as the last command's what nothing was heard of: whoever else writes is heard."""
        if self._tree.is_sure:
            return
        changes = self._look(hidden, whole=True)
        if self._last is not None:
            self._record(self._not_ours(changes, since), self._last.about, self._last.call_id, _origin(self._last))
        self._write_down(changes)

    def _look(self, hidden: frozenset[str], *, whole: bool = False, is_after: bool = False) -> list[TreeChange]:
        self._pin()
        repositories = set(self._tree.repositories)
        self.store.begin_look()
        began = time.time()
        changes = self._tree.look(hidden, whole=whole, is_after=is_after)
        self._look_began = began
        if self._tree.is_sure:
            self._sure_at = time.monotonic()
        if self._tree.repositories - self.store.pinned_repositories():
            self._pin()
        lost = {one for one in repositories - self._tree.repositories if os.path.isfile(os.path.join(one, "HEAD"))}
        lost |= self._newly_damaged()
        # Git's objects are not looked at one by one: that all of them are gone is told by their folder.
        return changes + [TreeChange(os.path.join(one, "objects"), Node("folder", 0o755), None) for one in sorted(lost)]

    def _newly_damaged(self) -> set[str]:
        """The repositories that had their commits when they were last looked at, and have them no more."""
        found = set()
        for repository in self._tree.repositories:
            before, now = self._heads.get(repository, ""), head_of_repository(repository)
            pins, objects = self.store.pins_of(repository), os.path.join(repository, "objects")
            self._heads[repository] = now
            is_damaged = bool(now) and not pins.is_held(objects, now)
            if before and before != now and not pins.is_held(objects, before):
                # Of an amended commit git may let go, but not of the history that it stood on. The first of all stands
                # on nothing: whether it was amended or the repository begun anew is for the user to say.
                parent = self._parent(pins, before)
                is_damaged = is_damaged or not parent or not pins.is_held(objects, parent)
            if is_damaged and before and repository not in self._damaged:
                found.add(repository)
            (self._damaged.add if is_damaged else self._damaged.discard)(repository)
        return found

    def _parent(self, pins: ObjectPins, commit: str) -> str:
        with Objects() as objects:
            raw = objects.read(pins.objects, commit, "commit") or b""
        found = re.search(rb"^parent ([0-9a-f]+)$", raw.partition(b"\n\n")[0], re.MULTILINE)
        return found[1].decode() if found else ""

    def _not_ours(self, changes: list[TreeChange], since: float) -> list[TreeChange]:
        """Without what the writer has written since a look began: it is in the journal, or announced there.

        A look may see a file that is in place while its write is not an entry yet.
        """
        written: dict[str, str | None] = {}
        announced = self._journal.read_pending()  # before the entries: a write leaves one for the other
        for entry in (*self._journal.entries(), *announced):
            if entry.time >= since:
                written.update({file.path: file.after for file in entry.files})
                for file in entry.files:  # a folder comes and goes with what was written in it
                    is_there = file.after is not None
                    written.update(dict.fromkeys(file.made, _FOLDER_CONTENT if is_there else None))
                if entry.kind != "command":
                    written.update({one.path: one.after.content if one.after else None for one in entry.nodes})
        return [one for one in changes if one.path not in written or not _explains(written[one.path], one)]

    def _record(
        self, changes: list[TreeChange], about: str, call_id: str, origin: WriteOrigin | None = None
    ) -> Changes | None:
        git = [one for one in changes if is_git_data(one.path, one.before, one.after)]
        files = [one for one in changes if not is_git_data(one.path, one.before, one.after)]
        if not files and not any(_is_telling(one.path) for one in git):
            return None
        self.store.keep_pinned(changes)
        nodes = self._count_lines([_node_change(one) for one in sorted(files, key=_path)])
        git_nodes = [_node_change(one) for one in sorted([*git, *self._packed_refs(git)], key=_path)]
        tops = [
            path
            for path, folder in self._tree.folders.items()
            if GIT in folder.names.folders or GIT in folder.names.files
        ]
        entry = self._journal.record(nodes, git_nodes, repositories=tops, about=about, call_id=call_id, origin=origin)
        return summarize_entry(entry)

    def _packed_refs(self, changes: list[TreeChange]) -> Iterator[TreeChange]:
        """The packed refs of the changed repositories where they are as they were: they say what others have moved."""
        changed = {one.path for one in changes}
        for repository in self._tree.repositories & self._tree.folders.keys():
            seen = self._tree.folders[repository].files.get(PACKED_REFS)
            path = os.path.join(repository, PACKED_REFS)
            if seen is not None and path not in changed and any(is_below(one, {repository}) for one in changed):
                yield TreeChange(path, seen.node, seen.node)

    def read(self, node: Node) -> bytes | None:
        """The bytes of a file as it was; None where they were not kept, or are damaged."""
        return self.store.read(node)

    def now(self, path: str) -> bytes | None:
        """The bytes of a file of the workspace as it is; None where there is none."""
        root = next((root for root in self._roots if path.startswith(root + os.sep)), None)
        if root is None:
            return None
        *uppers, name = os.path.relpath(path, root).split(os.sep)
        with contextlib.suppress(OSError), open_folder(root) as top, top.below(uppers) as folder:
            return folder.read(name, self._limits.file_bytes)
        return None

    @property
    def blobs(self) -> Blobs:
        """The contents that are kept."""
        return self.store.blobs

    def pins_of(self, repository: str) -> ObjectPins:
        """The pinned objects of a repository, by the folder of its own data."""
        return self.store.pins_of(repository)

    def prune(self) -> None:
        """Let go of what no entry of the journal and no file of the workspace needs."""
        with self._lock:
            self.store.prune(self._journal.keep_days)

    def _find_needed(self) -> Needed:
        seen = [one for folder in self._tree.folders.values() for one in folder.files.values()]
        past = {
            node.content
            for entry in self._journal.entries()
            for change in (*entry.nodes, *entry.git)
            for node in (change.before, change.after)
            if node is not None and node.kind == "file"
        }
        return Needed({one.node.content for one in seen}, past, {one.pinned for one in seen if one.pinned})

    def stop(self) -> None:
        """Have a look that runs on another thread fail: the session ends."""
        self._tree.is_stopped = True

    def close(self) -> None:
        """Let go of what ran; tidy once a day."""
        with self._lock:
            self._tree.close()
            for running in self._running.values():
                self._journal.withdraw(running.pending)
            self._running.clear()
            with contextlib.suppress(OSError):
                self._record_late()
            for late in self._late:
                self._journal.leave(late.pending)  # the next session finds out
            self._late.clear()
            if self._is_ready and _age_seconds(self._tidy_marker) > _TIDY_SECONDS:
                self.prune()
                with (
                    contextlib.suppress(OSError),
                    open(self._tidy_marker, "w", encoding="ascii", opener=private) as file,
                ):
                    file.write(f"{self.store.used_bytes}\n")
            self.store.close()

    def _pin(self) -> None:
        """Pin the objects of every repository: at first of those that the roots are."""
        for repository in self._tree.repositories or {os.path.join(root, GIT) for root in self._roots}:
            if not os.path.isdir(os.path.join(repository, "objects")):
                continue
            root = next((root for root in self._roots if repository.startswith(root + os.sep)), None)
            if root is None:
                continue
            parts = os.path.relpath(repository, root).split(os.sep)
            with contextlib.suppress(OSError), open_folder(root) as top, top.below((*parts, "objects")) as objects:
                self.store.pins_of(repository).refresh(objects)

    def _count_lines(self, nodes: list[NodeChange]) -> list[NodeChange]:
        """The same with the numbers of lines, where they are few."""
        if len(nodes) > _COUNTED_FILES:
            return nodes
        return [self._with_lines(one) for one in nodes]

    def _with_lines(self, one: NodeChange) -> NodeChange:
        sides: list[list[str]] = []
        for node in (one.before, one.after):
            if node is None or node.kind != "file":
                sides.append([])
                continue
            raw = self._bytes(one.path, node) if node.size <= _COUNTED_BYTES else None
            if raw is None or b"\0" in raw:
                return one
            sides.append(raw.decode(errors="replace").splitlines())
        found = differences(*sides)
        return msgspec.structs.replace(
            one,
            added=sum(change.new_end - change.new_start for change in found),
            removed=sum(change.end - change.start for change in found),
        )

    def _bytes(self, path: str, node: Node) -> bytes | None:
        if node.size == 0:
            return b""
        if (raw := self.read(node)) is not None:
            return raw
        raw = self.now(path)  # only git has it
        return raw if raw is not None and fingerprint(raw) == node.content else None

    def _load(self) -> None:
        """What an earlier session has found: what is still the same is not read again."""
        self.store.claim()
        with contextlib.suppress(OSError, ValueError), open(self._tidy_marker, encoding="ascii") as file:
            self.store.used_bytes = int(file.read())
        saved = self._saved.read()
        self._was_saved = bool(saved)
        self._tree.repositories.update(os.fsdecode(path) for path, folder in saved.items() if folder.has_objects)
        self._pin()
        for path, folder in saved.items():
            files = {os.fsdecode(name): _read_file(one) for name, one in folder.files.items() if one is not None}
            known = {name: seen if self.store.has(seen) else _without_bytes(seen) for name, seen in files.items()}
            names = FolderContents((), (), (), folder.has_objects)
            self._tree.folders[os.fsdecode(path)] = SeenFolder(None, folder.node, known, names)

    def _write_down(self, changes: list[TreeChange], *, is_whole: bool = False) -> None:
        """Have what was found on disk: who comes after a kill has to know what a command has found."""
        with contextlib.suppress(OSError):
            known = self._tree.folders
            if is_whole or len(changes) > _WHOLE_CHANGES or self._saved.is_long:
                self._saved.write({os.fsencode(path): _encode_folder(folder) for path, folder in known.items()})
            elif changes:
                touched: dict[str, set[str]] = {}
                for one in changes:
                    touched.setdefault(os.path.dirname(one.path), set()).add(os.path.basename(one.path))
                    if "folder" in {node.kind for node in (one.before, one.after) if node is not None}:
                        touched.setdefault(one.path, set())
                self._saved.append(
                    {
                        os.fsencode(path): _encode_folder(known[path], names) if path in known else None
                        for path, names in touched.items()
                    }
                )

    @property
    def _tidy_marker(self) -> str:
        return os.path.join(self._folder, "tidied")


def _encode_folder(folder: SeenFolder, names: Iterable[str] | None = None) -> SavedFolder:
    """A folder as it is written down, or only some of its files."""
    wanted = folder.files if names is None else names
    files = {os.fsencode(name): _encode_file(folder.files.get(name)) for name in wanted}
    return SavedFolder(folder.node, files, folder.names.has_objects)


def _without_bytes(seen: NodeSnapshot) -> NodeSnapshot:
    """A file that was there, but whose bytes nobody has: it is kept now, if it is still the same."""
    content = seen.node.content if seen.node.is_unkept else ""
    return seen._replace(is_settled=False, node=msgspec.structs.replace(seen.node, content=content), pinned="")


def _encode_file(seen: NodeSnapshot | None) -> SavedFile | None:
    if seen is None:
        return None
    node = seen.node
    row = (node.kind, node.mode, os.fsencode(node.content), node.size, node.owner, node.group)
    return (*seen[:4], row, seen.pinned)


def _read_file(saved: SavedFile) -> NodeSnapshot:
    kind, mode, content, *more = saved[4]
    return NodeSnapshot(*saved[:4], Node(kind, mode, os.fsdecode(content), *more), saved[5])


def _origin(entry: JournalEntry) -> WriteOrigin:
    """Whose an entry is."""
    origin = WriteOrigin(entry.thread)
    origin.prompt = entry.prompt
    return origin


def _as_left(change: TreeChange, alive_at: float) -> TreeChange:
    """What a command has left that died; where somebody has written there since, that is not known."""
    if change.after is None or change.after.kind != "file" or _change_time(change.path) <= alive_at + _DEATH_SECONDS:
        return change
    return change._replace(after=msgspec.structs.replace(change.after, content=UNKNOWN_CONTENT))


def _change_time(path: str) -> float:
    try:
        return os.lstat(path).st_ctime
    except OSError:
        return 0.0


def summarize_entry(entry: JournalEntry) -> Changes:
    """What an entry has changed, as whoever asked for it is told."""
    return Changes(
        files=tuple(node.path for node in entry.nodes if (node.after or node.before) is not None and _is_file(node)),
        added=sum(node.added for node in entry.nodes),
        removed=sum(node.removed for node in entry.nodes),
        entry=entry.id,
    )


def head_of_repository(repository: str) -> str:
    """The commit that HEAD leads to; empty where that cannot be told."""
    try:
        return head_of(repository, repository)
    except (OSError, ValueError):
        return ""


def _age_seconds(path: str) -> float:
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return math.inf


def _is_file(change: NodeChange) -> bool:
    return any(node is not None and node.kind != "folder" for node in (change.before, change.after))


def _explains(written: str | None, change: TreeChange) -> bool:
    """Is what was written all that has changed? Another mode is somebody else's."""
    before, after = (None if node is None else node.content for node in (change.before, change.after))
    return after == written and before != after


def _path(change: TreeChange) -> str:
    return change.path


def _node_change(change: TreeChange) -> NodeChange:
    return NodeChange(change.path, change.before, change.after)


def _is_telling(path: str) -> bool:
    """Does a change there mean that something was moved, and not only looked at?"""
    name = path.rpartition(f"{os.sep}{GIT}{os.sep}")[2]
    return name in {"HEAD", PACKED_REFS, STASH_LOG, path} or name.startswith("refs" + os.sep) or is_vital(path)
