"""Checkpoints: before a command runs, what it may change is kept; afterwards, what it has changed is known.

The bytes of every file that may change are in the store before the command starts, or pinned as objects of git. What
has changed is found by looking again, and goes into the journal as one entry, from which it can be taken back.
"""

import contextlib
import hashlib
import math
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ferrule.core.reply import Changes
from ferrule.support.beneath import READ_NO_LINK, open_folder, read_all
from ferrule.support.diff import changes as differences
from ferrule.support.git_objects import Objects
from ferrule.workspace.blobs import Blobs, private
from ferrule.workspace.committed import head_of
from ferrule.workspace.git_moves import PACKED_REFS, STASH_LOG, is_vital
from ferrule.workspace.journal import Entry, Journal, Node, NodeChange, Origin, Pending, is_git_data
from ferrule.workspace.pins import Pins
from ferrule.workspace.saved_tree import SavedFolder, SavedTree
from ferrule.workspace.tree_state import GIT, Change, Kept, Names, Seen, SeenFolder, TreeState, is_below

_WHOLE_BYTES = 4 << 20
"""Larger files are not held in memory."""
_COUNTED_BYTES = 1 << 18
_COUNTED_FILES = 200
"""Of more, or larger, files nobody is told how many lines changed."""
_DIGEST_BYTES = 20
_TIDY_SECONDS = 86_400.0
_SURE_SECONDS = 60.0
"""So long it is enough to look at what was heard of."""
_WHOLE_CHANGES = 2000
"""After more changes everything is written down anew."""


class Limits(NamedTuple):
    """How much is kept."""

    file_bytes: int
    keep_bytes: int


class Checkpoints:
    """The state of the workspace as commands find it, and what each of them makes of it."""

    def __init__(
        self,
        roots: Sequence[str],
        journal: Journal,
        folder: str,
        limits: Limits,
        *,
        is_tracked: Callable[[str], bool] = lambda _: False,
        own: Sequence[str] = (),
    ) -> None:
        """`folder` is where it all is kept; `own` are folders of the engine's state."""
        self._roots = tuple(roots)
        self._journal = journal
        self._folder = folder
        self._limits = limits
        self._own = tuple(own)
        self.blobs = Blobs(os.path.join(folder, "blobs"))
        self._pins: dict[str, Pins] = {}
        self._tree = TreeState(roots, self._keep, is_tracked=is_tracked, own=own)
        self._lock = threading.RLock()
        self._is_ready = False
        self._used_bytes = 0
        self._heads: dict[str, str] = {}
        self._damaged: set[str] = set()
        self._saved = SavedTree(folder)
        self._was_saved = False
        """Is what was found before known, so that changes since can be told?"""
        self._running: dict[str, Pending] = {}
        """Commands that run, by call: who dies with one leaves its file in the journal."""
        self._sure_at = -math.inf
        """When everything was looked at last, and not only what was heard of."""
        self._last: Entry | None = None
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
            background = background or next((one.entry.about for one in self._running.values()), "")
            if is_first:
                self._load()
            died = self._journal.interrupted() if is_first else []
            changes = self._look(hidden)
            self._is_ready = True
            if time.monotonic() > self._sure_at + _SURE_SECONDS:
                self._make_sure(hidden)
            if died and self._was_saved:
                last = died[-1][1]
                origin = Origin(last.thread)
                origin.prompt = last.prompt
                self._record(self._not_ours(changes), last.about, last.call_id, origin)
            elif background and not is_first:
                self._record(self._not_ours(changes), background, "")
            for path, _ in died:
                with contextlib.suppress(OSError):
                    os.unlink(path)
            self._write_down(changes, is_whole=is_first and not self._was_saved)
            if about:
                self._running[call_id] = self._journal.announce(
                    "command", (), b"", about=about, call_id=call_id, is_durable=False
                )

    def end(self, about: str, call_id: str = "", hidden: frozenset[str] = frozenset()) -> Changes | None:
        """Find out what has changed since `begin`, and write it down; None where nothing has. Raises OSError."""
        with self._lock:
            try:
                changes = self._look(hidden)
                told = self._record(changes, about, call_id)
                self._write_down(changes)
            finally:
                if (running := self._running.pop(call_id, None)) is not None:
                    self._journal.withdraw(running)
                    self._last = running.entry
            return told

    def make_sure(self, hidden: frozenset[str] = frozenset()) -> None:
        """Look at everything where lately only that was looked at which was heard of. Raises OSError."""
        with self._lock:
            if self._is_ready and not self._running and not self._tree.is_sure:
                self._write_down(self._look(hidden))
                self._make_sure(hidden)

    def _make_sure(self, hidden: frozenset[str]) -> None:
        """Write down as the last command's what nothing was heard of: whoever else writes is heard."""
        if self._tree.is_sure:
            return
        changes = self._look(hidden, whole=True)
        if self._last is not None:
            origin = Origin(self._last.thread)
            origin.prompt = self._last.prompt
            self._record(self._not_ours(changes), self._last.about, self._last.call_id, origin)
        self._write_down(changes)

    def _look(self, hidden: frozenset[str], *, whole: bool = False) -> list[Change]:
        self._pin()
        repositories = set(self._tree.repositories)
        changes = self._tree.look(hidden, whole=whole)
        if self._tree.is_sure:
            self._sure_at = time.monotonic()
        if self._tree.repositories - self._pins.keys():
            self._pin()
        lost = {one for one in repositories - self._tree.repositories if os.path.isfile(os.path.join(one, "HEAD"))}
        lost |= self._newly_damaged()
        # Git's objects are not looked at one by one: that all of them are gone is told by their folder.
        return changes + [Change(os.path.join(one, "objects"), Node("folder", 0o755), None) for one in sorted(lost)]

    def _newly_damaged(self) -> set[str]:
        """The repositories that had their commits when they were last looked at, and have them no more."""
        found = set()
        for repository in self._tree.repositories:
            before, now = self._heads.get(repository, ""), head_of_repository(repository)
            pins, objects = self.pins_of(repository), os.path.join(repository, "objects")
            self._heads[repository] = now
            is_damaged = bool(now) and not pins.is_held(objects, now)
            if before and before != now and not pins.is_held(objects, before):
                # Of an amended commit git may let go, but not of the history that it stood on.
                parent = self._parent(pins, before)
                is_damaged = is_damaged or (bool(parent) and not pins.is_held(objects, parent))
            if is_damaged and before and repository not in self._damaged:
                found.add(repository)
            (self._damaged.add if is_damaged else self._damaged.discard)(repository)
        return found

    def _parent(self, pins: Pins, commit: str) -> str:
        with Objects() as objects:
            raw = objects.read(pins.objects, commit, "commit") or b""
        found = re.search(rb"^parent ([0-9a-f]+)$", raw.partition(b"\n\n")[0], re.MULTILINE)
        return found[1].decode() if found else ""

    def _not_ours(self, changes: list[Change]) -> list[Change]:
        """Without what the writer has written, which is in the journal already."""
        written = {file.path: file.after for entry in self._journal.entries() for file in entry.files}
        return [one for one in changes if one.path not in written or not _explains(written[one.path], one)]

    def _record(self, changes: list[Change], about: str, call_id: str, origin: Origin | None = None) -> Changes | None:
        git = [one for one in changes if is_git_data(one.path, one.before, one.after)]
        files = [one for one in changes if not is_git_data(one.path, one.before, one.after)]
        if not files and not any(_is_telling(one.path) for one in git):
            return None
        self._bring_home(changes)
        nodes = self._counted([_node_change(one) for one in sorted(files, key=_path)])
        git_nodes = [_node_change(one) for one in sorted([*git, *self._packed_refs(git)], key=_path)]
        tops = [
            path
            for path, folder in self._tree.folders.items()
            if GIT in folder.names.folders or GIT in folder.names.files
        ]
        entry = self._journal.record(nodes, git_nodes, repositories=tops, about=about, call_id=call_id, origin=origin)
        return told(entry)

    def _packed_refs(self, changes: list[Change]) -> Iterator[Change]:
        """The packed refs of the changed repositories where they are as they were: they say what others have moved."""
        changed = {one.path for one in changes}
        for repository in self._tree.repositories & self._tree.folders.keys():
            seen = self._tree.folders[repository].files.get(PACKED_REFS)
            path = os.path.join(repository, PACKED_REFS)
            if seen is not None and path not in changed and any(is_below(one, {repository}) for one in changed):
                yield Change(path, seen.node, seen.node)

    def read(self, node: Node) -> bytes | None:
        """The bytes of a file as it was; None where they were not kept, or are damaged."""
        return self.blobs.read(node.content) if node.kind == "file" and node.content else None

    def now(self, path: str) -> bytes | None:
        """The bytes of a file of the workspace as it is; None where there is none."""
        root = next((root for root in self._roots if path.startswith(root + os.sep)), None)
        if root is None:
            return None
        *uppers, name = os.path.relpath(path, root).split(os.sep)
        with contextlib.suppress(OSError), open_folder(root) as top, top.below(uppers) as folder:
            return folder.read(name, self._limits.file_bytes)
        return None

    def keep(self, folder: int, name: str, path: str, status: os.stat_result) -> str:
        """Keep the bytes of a file as it is now, themselves and not only pinned; the fingerprint, empty where not."""
        with self._lock:
            kept = self._keep(folder, name, path, status)
            if kept.pinned and not self.blobs.has(kept.content):
                self._bring_home([Change(path, Node("file", content=kept.content), None, kept.pinned)])
            return kept.content

    def pins_of(self, repository: str) -> Pins:
        """The pinned objects of a repository, by the folder of its own data."""
        with self._lock:
            if repository not in self._pins:
                name = hashlib.blake2b(os.fsencode(repository), digest_size=10).hexdigest()
                self._pins[repository] = Pins(
                    os.path.join(self._folder, "pins", name), most_bytes=self._limits.keep_bytes // 2
                )
            return self._pins[repository]

    def prune(self) -> None:
        """Let go of what no entry of the journal and no file of the workspace needs."""
        with self._lock:
            current = {seen.node.content for one in self._tree.folders.values() for seen in one.files.values()}
            past = {
                node.content
                for entry in self._journal.entries()
                for change in (*entry.nodes, *entry.git)
                for node in (change.before, change.after)
                if node is not None and node.kind == "file"
            }
            self._used_bytes = self.blobs.prune(current, past, keep_bytes=self._limits.keep_bytes)

    def stop(self) -> None:
        """Have a look that runs on another thread fail: the session ends."""
        self._tree.is_stopped = True

    def close(self) -> None:
        """Let go of what ran; tidy once a day."""
        with self._lock:
            self._tree.close()
            for running in self._running.values():
                self._journal.withdraw(running)
            self._running.clear()
            if self._is_ready and _age_seconds(self._tidied_at) > _TIDY_SECONDS:
                self.prune()
                with contextlib.suppress(OSError), open(self._tidied_at, "w", encoding="ascii", opener=private) as file:
                    file.write(f"{self._used_bytes}\n")

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
                self.pins_of(repository).refresh(objects)

    def _keep(self, folder: int, name: str, path: str, status: os.stat_result) -> Kept:
        if status.st_size > self._limits.file_bytes:
            self._tree.left_out[path] = f"it is larger than {self._limits.file_bytes >> 20} MB (checkpoints.file_mb)"
            return Kept("")
        descriptor = os.open(name, READ_NO_LINK, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise FileNotFoundError(path)
            if status.st_size > _WHOLE_BYTES:
                return self._keep_large(descriptor, path, status.st_size)
            raw = read_all(descriptor)
        finally:
            os.close(descriptor)
        content = hashlib.blake2b(raw, digest_size=_DIGEST_BYTES).hexdigest()
        if pinned := self._pinned(hashlib.sha1(b"blob %d\0" % len(raw) + raw, usedforsecurity=False)):
            return Kept(content, pinned)
        if not self.blobs.has(content):
            self._make_room(len(raw), path)
            self.blobs.put(raw, content)
        return Kept(content)

    def _keep_large(self, descriptor: int, path: str, size: int) -> Kept:
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        name = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        while piece := os.read(descriptor, 1 << 20):
            digest.update(piece)
            name.update(piece)
        if pinned := self._pinned(name):
            return Kept(digest.hexdigest(), pinned)
        if self.blobs.has(digest.hexdigest()):
            return Kept(digest.hexdigest())
        self._make_room(size, path)
        return Kept(self.blobs.take(descriptor))

    def _pinned(self, name: "hashlib._Hash") -> str:
        wanted = name.hexdigest()
        return wanted if any(pins.has(wanted) for pins in self._pins.values()) else ""

    def _make_room(self, size: int, path: str) -> None:
        self._used_bytes += size
        if self._used_bytes > self._limits.keep_bytes:
            self.prune()
            self._used_bytes += size
            if self._used_bytes > self._limits.keep_bytes:
                raise OSError(
                    f"there is no room for {path} among {self._limits.keep_bytes >> 20} MB (checkpoints.keep_mb)"
                )

    def _bring_home(self, changes: Iterable[Change]) -> None:
        """Keep the bytes themselves of what was only pinned: the entry needs them for longer than git does."""
        pinned = [one for one in changes if one.pinned and one.before is not None]
        if not pinned:
            return
        with Objects() as objects:
            for one in pinned:
                assert one.before is not None
                for pins in self._pins.values():
                    if not self.blobs.has(one.before.content) and pins.has(one.pinned):
                        raw = objects.read(pins.objects, one.pinned, "blob")
                        if raw is not None:
                            self.blobs.put(raw, one.before.content)

    def _counted(self, nodes: list[NodeChange]) -> list[NodeChange]:
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
            raw = self._bytes(node) if node.size <= _COUNTED_BYTES else None
            if raw is None or b"\0" in raw:
                return one
            sides.append(raw.decode(errors="replace").splitlines())
        found = differences(*sides)
        return msgspec.structs.replace(
            one,
            added=sum(change.new_end - change.new_start for change in found),
            removed=sum(change.end - change.start for change in found),
        )

    def _bytes(self, node: Node) -> bytes | None:
        return b"" if node.size == 0 else self.read(node)

    def _load(self) -> None:
        """What an earlier session has found: what is still the same is not read again."""
        with contextlib.suppress(OSError, ValueError), open(self._tidied_at, encoding="ascii") as file:
            self._used_bytes = int(file.read())
        saved = self._saved.read()
        self._was_saved = bool(saved)
        self._tree.repositories.update(path for path, folder in saved.items() if folder.has_objects)
        self._pin()
        for path, folder in saved.items():
            files = {name: Seen(*seen[:4], Node(*seen[4]), seen[5]) for name, seen in folder.files.items()}
            kept = {name: seen for name, seen in files.items() if self._is_kept(seen)}
            names = Names(folder.names, folder.folders, folder.remade, folder.has_objects)
            self._tree.folders[path] = SeenFolder(None, folder.node, kept, names)

    def _is_kept(self, seen: Seen) -> bool:
        node = seen.node
        if node.kind != "file" or not node.content:
            return node.kind != "file"
        if seen.pinned:
            return any(pins.has(seen.pinned) for pins in self._pins.values())
        return self.blobs.has(node.content)

    def _write_down(self, changes: list[Change], *, is_whole: bool = False) -> None:
        """Have what was found on disk: who comes after a kill has to know what a command has found."""
        with contextlib.suppress(OSError):
            if is_whole or len(changes) > _WHOLE_CHANGES or self._saved.is_long:
                self._saved.write({path: _saved(folder) for path, folder in self._tree.folders.items()})
            elif changes:
                touched = {one.path for one in changes} | {os.path.dirname(one.path) for one in changes}
                known = self._tree.folders
                self._saved.append({path: _saved(known[path]) if path in known else None for path in touched})

    @property
    def _tidied_at(self) -> str:
        return os.path.join(self._folder, "tidied")


def _saved(folder: SeenFolder) -> SavedFolder:
    files = {name: (*seen[:4], msgspec.structs.astuple(seen.node), seen.pinned) for name, seen in folder.files.items()}
    return SavedFolder(folder.node, files, *folder.names)


def told(entry: Entry) -> Changes:
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


def _explains(written: str | None, change: Change) -> bool:
    """Is what was written all that has changed? Another mode is somebody else's."""
    before, after = (None if node is None else node.content for node in (change.before, change.after))
    return after == written and before != after


def _path(change: Change) -> str:
    return change.path


def _node_change(change: Change) -> NodeChange:
    return NodeChange(change.path, change.before, change.after)


def _is_telling(path: str) -> bool:
    """Does a change there mean that something was moved, and not only looked at?"""
    name = path.rpartition(f"{os.sep}{GIT}{os.sep}")[2]
    return name in {"HEAD", PACKED_REFS, STASH_LOG, path} or name.startswith("refs" + os.sep) or is_vital(path)
