"""What is in the workspace, file by file, and what has become of it since the last look.

A look goes by descriptors and follows no link. A folder is listed again only when it has changed, and a file is read
only when its times, its inode or its size have: so a look at everything costs about what `git status` does. Where the
kernel tells in which folders something happens, only those are looked at, and a look costs what has changed.
"""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ferrule.support.descent import Descent
from ferrule.support.inotify import FolderWatch, Touched, is_heard_of
from ferrule.workspace.blobs import StoreError
from ferrule.workspace.journal import Kind, Node, unkept
from ferrule.workspace.remade import MADE_AGAIN, is_remade
from ferrule.workspace.unlocked import Unlocked, readable

_TICK_NS = 50_000_000
"""Longer than the steps in which any file system counts time: within one, a change leaves no trace."""
MOST_FILES = 300_000
"""In a larger tree a look would take seconds before every command."""
GIT = ".git"
KINDS: Mapping[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFLNK: "link",
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "fifo",
}
_UNFINISHED = (".ferrule-", ".tmp")
"""What a write of ours is called until it is whole."""


class Kept(NamedTuple):
    """What was found out about a file."""

    content: str
    """Its fingerprint, or what it is told by where its bytes were not kept."""
    pinned: str = ""
    """The object of git's that has the same bytes, where those alone are kept."""
    why: str = ""
    """Why its bytes were not kept."""


Keep = Callable[[int, str, str, os.stat_result], Kept]
"""Keeps the bytes of a file: its open folder, its name there, its path, and what it was like. Raises OSError."""


class Seen(NamedTuple):
    """A file, a link or whatever else is no folder, as it was looked at last."""

    changed_ns: int
    inode: int
    size: int
    is_settled: bool
    """Would a change since then show?"""
    node: Node
    pinned: str = ""


class SeenFolder(NamedTuple):
    """A folder as it was looked at last."""

    stamp: tuple[int, int, int] | None
    """None where it may change without a trace."""
    node: Node
    files: dict[str, Seen]
    names: "Names"


class Names(NamedTuple):
    """What is in a folder."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    """Those that are looked into."""
    remade: tuple[str, ...] = ()
    """Those that are not, because a tool makes them again."""
    has_objects: bool = False
    """Are git's objects in it? Those are pinned, and not looked at."""


class Change(NamedTuple):
    """What has become of a path between two looks."""

    path: str
    before: Node | None
    after: Node | None
    pinned: str = ""
    """The object with the bytes that it had before."""


class TreeState:
    """Remembers some folders, and tells what has changed in them."""

    def __init__(
        self,
        roots: Sequence[str],
        keep: Keep,
        *,
        is_tracked: Callable[[str], bool] = lambda _: False,
        own: Sequence[str] = (),
    ) -> None:
        """`is_tracked` tells whether git has a folder; `own` are folders of the engine's state, which are not looked
        into."""
        self._roots = tuple(roots)
        self._keep = keep
        self._is_tracked = is_tracked
        self._own = frozenset(own)
        self.folders: dict[str, SeenFolder] = {}
        self.left_out: dict[str, str] = {}
        """Paths that no look goes into or keeps → why."""
        self.repositories: set[str] = set()
        """Folders of git's own data, each with its objects in it."""
        self._hidden: frozenset[str] = frozenset()
        self._devices: dict[str, int] = {}
        self._closed: set[str] = set()
        """Folders that were not looked into."""
        self._closed_before: frozenset[str] = frozenset()
        """The same, the time before."""
        self._held_open: set[str] = set()
        """Folders with some in them that count as made by a tool from the next look on."""
        self._linked: set[str] = set()
        """Folders with files that have other names: what is written through those is not heard of."""
        self._linked_inodes: set[int] = set()
        self._is_newly_linked = False
        self._count = 0
        self._watch: FolderWatch | None = None
        self._is_watch_tried = False
        self._is_after = False
        self._is_heard = False
        """Is every folder watched, and was it since the last look?"""
        self.is_sure = True
        """Was everything looked at the last time, and not only what was heard of?"""
        self.is_stopped = False
        """Set by who wants a look that runs on another thread to fail."""

    def look(
        self, hidden: frozenset[str] = frozenset(), *, whole: bool = False, is_after: bool = False
    ) -> list[Change]:
        """Tell what has changed since the last look; the first time, that is everything.

        `hidden` are files that no command can see, so that they need not be kept. `whole`: look at everything, also
        where nothing was heard of. `is_after`: a command has ended. What it has closed is opened for a moment, what it
        has made into a folder of a tool's is still looked into, and what there is no room for is told all the same.
        """
        self._is_after = is_after
        touched = self._watch.read() if self._watch is not None else None
        is_heard, self._is_heard = self._is_heard, False  # a look that fails has lost what was heard
        if not self._is_watch_tried:
            self._is_watch_tried = True
            with contextlib.suppress(OSError):  # no inotify here, or no more of it for this user
                self._watch = FolderWatch()
        if whole or touched is None or not is_heard:
            changes, self.is_sure = self._look_at_all(hidden), True
        else:
            self._is_newly_linked = False
            changes, self.is_sure = self._look_at(touched, hidden), False
            if self._is_newly_linked:  # what was written through the new name was not heard of under the old one
                changes, self.is_sure = _in_turn(changes, self._look_at_all(hidden)), True
        self._is_heard = self._watch is not None
        return changes

    def _look_at_all(self, hidden: frozenset[str]) -> list[Change]:
        self._hidden, self._count, self._held_open = hidden, 0, set()
        self._closed_before, self._closed = frozenset(self._closed), set()
        found: dict[str, SeenFolder] = {}
        changes: list[Change] = []
        self.left_out.clear()
        self.repositories.clear()
        for root in self._roots:
            with Descent(root) as descent:
                self._walk(descent, root, root, found, changes)
        return self._ended(found, changes, self.folders.keys() - found.keys())

    def _look_at(self, touched: Touched, hidden: frozenset[str]) -> list[Change]:
        """Look at those folders in which something has happened, and at all in those that have come."""
        more = {os.path.dirname(path) for path in hidden ^ self._hidden} | self._linked
        self._hidden = hidden
        if not self._is_after:
            more |= self._held_open
            self._held_open = set()
        wanted = (touched.folders | more) & self.folders.keys()
        if not wanted:
            return []
        taken = set(wanted)
        if touched.trees:
            taken.update(path for path in self.folders if is_below(path, touched.trees))
        self._closed_before = frozenset(self._closed)
        self._forget(taken, taken)
        found = self.folders.copy()
        for path in taken:
            self._count -= len(found.pop(path).files) + 1
        changes: list[Change] = []
        for root in self._roots:
            inside = root.rstrip(os.sep) + os.sep
            with Descent(root) as descent:
                for path in sorted(one for one in wanted if one == root or one.startswith(inside)):
                    above = found.get(os.path.dirname(path))
                    # Folders come before what is in them: what is not looked into any more is left alone.
                    if path == root or (above is not None and os.path.basename(path) in above.names.folders):
                        self._walk(descent, root, path, found, changes)
        left = {
            os.path.join(path, name)
            for path in taken & found.keys()
            for name in set(self.folders[path].names.folders) - set(found[path].names.folders)
        }
        left |= taken - found.keys()
        for path in [one for one in found if is_below(one, left)] if left else ():
            self._count -= len(found.pop(path).files) + 1
            taken.add(path)
        return self._ended(found, changes, taken - found.keys())

    def _ended(
        self,
        found: dict[str, SeenFolder],
        changes: list[Change],
        gone: AbstractSet[str],
    ) -> list[Change]:
        for path in gone:
            changes += _gone(path, self.folders[path])
            if self._watch is not None:
                self._watch.drop(path)
        if gone:
            self._forget(gone, ())
        self.folders = found
        changes = _merged(changes)
        # What is looked into for the first time was there before, and what is not any more is still there.
        closed = self._closed_before | self._closed
        return [one for one in changes if not is_below(one.path, closed)] if closed else changes

    def _forget(self, folders: AbstractSet[str], themselves: Container[str]) -> None:
        """Forget what was left out in some folders, and perhaps that they were themselves."""

        def stays(path: str) -> bool:
            return path not in themselves and os.path.dirname(path) not in folders

        self.left_out = {path: why for path, why in self.left_out.items() if stays(path)}
        self._closed = set(filter(stays, self._closed))
        self.repositories -= folders
        self._linked -= folders

    def close(self) -> None:
        """Hear of nothing any more."""
        self._is_heard = False
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _walk(self, descent: Descent, root: str, top: str, found: dict[str, SeenFolder], changes: list[Change]) -> None:
        """Look at a folder of a root, and at those in it that were not found yet."""
        with Unlocked() as unlocked:
            self._walk_down(_Way(descent, root, unlocked), [top], found, changes)

    def _walk_down(self, way: "_Way", left: list[str], found: dict[str, SeenFolder], changes: list[Change]) -> None:
        while left:
            path = left.pop()
            if path in found:
                continue
            if self.is_stopped:
                raise InterruptedError
            try:
                self._unlock(way, path)
                with way.descent.opened(path) as folder:
                    one = self._folder(path, folder, way, changes)
            except StoreError:
                raise
            except OSError as error:
                self._failed(path, error, found, changes)
                continue
            if one is not None:
                found[path] = one
                self._count += len(one.files) + 1
                if self._count > MOST_FILES:
                    raise OSError(f"there are more than {MOST_FILES:,} files")
                left += [os.path.join(path, name) for name in reversed(one.names.folders)]

    def _unlock(self, way: "_Way", path: str) -> None:
        """Open what a command has closed that could be looked into before, or that it has made."""
        if self._is_after and path not in self._closed_before and not os.access(path, os.R_OK | os.X_OK):
            parts = os.path.relpath(path, way.root).split(os.sep)
            way.unlocked.open_way(way.root, () if path == way.root else parts)

    def _failed(self, path: str, error: OSError, found: dict[str, SeenFolder], changes: list[Change]) -> None:
        """What cannot be looked into is taken for what it was; what is gone is gone."""
        if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno in Descent.LINKED:
            return
        self.left_out[path] = "it cannot be read"
        known = self.folders.get(path)
        if known is None:
            self._closed.add(path)
            return
        node = folder_node(os.lstat(path))
        if node != known.node:
            changes.append(Change(path, known.node, node))
        found[path] = known._replace(node=node, stamp=None)
        head = path + os.sep
        found.update({one: seen for one, seen in self.folders.items() if one.startswith(head)})

    def _folder(self, path: str, folder: int, way: "_Way", changes: list[Change]) -> SeenFolder | None:
        status, root = os.fstat(folder), way.root
        if root not in self._devices:
            self._devices[root] = status.st_dev
            if self._watch is not None and not is_heard_of(folder):
                self.close()
        if self._devices[root] != status.st_dev:
            self.left_out[path] = "it is on another file system"
            self._closed.add(path)
            return None
        self._hear_of(path, folder, status.st_ino)
        known, node, now = self.folders.get(path), folder_node(status, way.unlocked.mode(status)), time.time_ns()
        if known is None or known.node != node:
            changes.append(Change(path, None if known is None else known.node, node))
        mark = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        names = known.names if known is not None and known.stamp == mark else self._listed(path, folder)
        for name in names.remade:
            self.left_out[os.path.join(path, name)] = MADE_AGAIN
            self._closed.add(os.path.join(path, name))
        if names.has_objects:
            self.repositories.add(path)
        opened = _Opened(path, folder, now)
        files = self._files(opened, names.files, known.files if known is not None else {}, changes)
        is_settled = max(status.st_mtime_ns, status.st_ctime_ns) + _TICK_NS < now and path not in self._held_open
        settled = mark if is_settled else None
        return SeenFolder(settled, node, files, names)

    def _hear_of(self, path: str, folder: int, inode: int) -> None:
        """Watch a folder. Where there are too many of them, everything is looked at instead."""
        if self._watch is not None:
            try:
                self._watch.add(folder, path, inode)
            except OSError:
                self.close()

    def _listed(self, path: str, folder: int) -> Names:
        names, folders = [], []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif not (entry.name.startswith(_UNFINISHED[0]) and entry.name.endswith(_UNFINISHED[1])):
                    names.append(entry.name)
        is_gits = GIT in path.split(os.sep)
        has_objects = is_gits and {"objects", "refs"} <= set(folders) and "HEAD" in names
        folders = [name for name in folders if os.path.join(path, name) not in self._own]
        if has_objects:
            folders.remove("objects")
        remade = [] if is_gits else [name for name in folders if self._is_remade(path, name, (*names, *folders))]
        if self._is_after and (known := [name for name in remade if os.path.join(path, name) in self.folders]):
            self._held_open.add(path)
            remade = [name for name in remade if name not in known]
        return Names(tuple(names), tuple(name for name in folders if name not in remade), tuple(remade), has_objects)

    def _is_remade(self, path: str, name: str, siblings: Sequence[str]) -> bool:
        whole = os.path.join(path, name)
        return is_remade(whole, siblings, inside=_inside(whole)) and not self._is_tracked(whole)

    def _files(
        self, at: "_Opened", names: Sequence[str], before: dict[str, Seen], changes: list[Change]
    ) -> dict[str, Seen]:
        files: dict[str, Seen] = {}
        lstat, get, folder, is_linked = os.lstat, before.get, at.folder, False
        for name in names:
            try:
                status = lstat(name, dir_fd=folder)
            except OSError:
                continue  # gone meanwhile
            known = get(name)
            if status.st_nlink > 1:
                is_linked = True
                if status.st_ino not in self._linked_inodes:
                    self._linked_inodes.add(status.st_ino)
                    self._is_newly_linked = True
            if (
                known is not None
                and known.is_settled
                and known.changed_ns == status.st_ctime_ns
                and known.inode == status.st_ino
                and known.size == status.st_size
            ):
                files[name] = known
                continue
            seen = self._seen(at, name, status, known)
            if seen is None:
                continue
            files[name] = seen
            if known is None:
                changes.append(Change(os.path.join(at.path, name), None, seen.node))
            elif known.node != seen.node and not _is_only_known(known, seen):
                changes.append(Change(os.path.join(at.path, name), known.node, seen.node, known.pinned))
        (self._linked.add if is_linked else self._linked.discard)(at.path)
        if len(files) < len(before) or before.keys() != files.keys():
            gone = ((name, before[name]) for name in before.keys() - files.keys())
            changes += [Change(os.path.join(at.path, name), seen.node, None, seen.pinned) for name, seen in gone]
        return files

    def _seen(self, at: "_Opened", name: str, status: os.stat_result, known: Seen | None) -> Seen | None:
        path, kept, content = os.path.join(at.path, name), Kept(""), ""
        kind: Kind = KINDS.get(stat.S_IFMT(status.st_mode), "other")
        if kind == "folder":
            return None  # it was a file a moment ago: the next look finds it
        is_settled = max(status.st_ctime_ns, status.st_mtime_ns) + _TICK_NS < at.now
        try:
            if kind == "file" and path in self._hidden:
                raise _HiddenError  # it is kept as soon as somebody may change it
            if kind == "file":
                kept, status = self._kept(at, name, status, known)
                content = kept.content
                if kept.why:
                    self.left_out[path] = kept.why
            elif kind == "link":
                content = os.readlink(name, dir_fd=at.folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if isinstance(error, StoreError) and not self._is_after:
                raise
            if not isinstance(error, _HiddenError):
                self.left_out[path] = f"it cannot be read ({error.strerror or error})"
            kept, content, is_settled = Kept(unkept(status)), unkept(status), False
        size = status.st_size if kind == "file" else 0
        node = Node(kind, stat.S_IMODE(status.st_mode), content, size, status.st_uid, status.st_gid)
        return Seen(status.st_ctime_ns, status.st_ino, status.st_size, is_settled, node, kept.pinned)

    def _kept(
        self, at: "_Opened", name: str, status: os.stat_result, known: Seen | None
    ) -> tuple[Kept, os.stat_result]:
        """Keep a file, also one that its owner has closed; with it comes what it is like then."""
        path = os.path.join(at.path, name)
        try:
            return self._keep(at.folder, name, path, status), status
        except PermissionError:
            if known is not None and known[:3] == (status.st_ctime_ns, status.st_ino, status.st_size):
                return Kept(known.node.content, known.pinned), status
            with readable(at.folder, name):
                kept = self._keep(at.folder, name, path, status)
            return kept, os.lstat(name, dir_fd=at.folder)


class _HiddenError(OSError):
    """No command can see the file."""


class _Way(NamedTuple):
    """How folders are reached."""

    descent: Descent
    root: str
    unlocked: Unlocked


class _Opened(NamedTuple):
    """A folder that is looked at."""

    path: str
    folder: int
    now: int


def folder_node(status: os.stat_result, mode: int | None = None) -> Node:
    """A folder as it is, or with another mode."""
    mode = stat.S_IMODE(status.st_mode) if mode is None else mode
    return Node("folder", mode, owner=status.st_uid, group=status.st_gid)


def _is_only_known(one: Seen, other: Seen) -> bool:
    """Is it the same file, of which more or less is known now, as of one that is hidden or not any more?"""
    if (one.changed_ns, one.inode, one.size) != (other.changed_ns, other.inode, other.size):
        return False
    return one.node.is_unkept or other.node.is_unkept


def _merged(changes: list[Change]) -> list[Change]:
    """One change a path: where a folder became a file, it went as the one and came as the other."""
    by_path: dict[str, Change] = {}
    for one in changes:
        other = by_path.get(one.path)
        if other is not None:
            gone, came = (other, one) if other.before is not None else (one, other)
            one = Change(one.path, gone.before, came.after, gone.pinned)  # noqa: PLW2901 - the two together
        by_path[one.path] = one
    return list(by_path.values()) if len(by_path) < len(changes) else changes


def _in_turn(first: list[Change], second: list[Change]) -> list[Change]:
    """What two looks have found, one after the other, as if it were one."""
    by_path = {one.path: one for one in first}
    for one in second:
        earlier = by_path.get(one.path)
        by_path[one.path] = one if earlier is None else earlier._replace(after=one.after)
    return [one for one in by_path.values() if one.before != one.after]


def is_below(path: str, folders: Container[str]) -> bool:
    """Is it one of these folders, or below one?"""
    while path not in folders:
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True


def _inside(folder: str) -> Sequence[str]:
    """Names that tell that a tool has made a folder."""
    return [name for name in ("CMakeCache.txt", ".ninja_log", "pyvenv.cfg") if os.path.lexists(f"{folder}/{name}")]


def _gone(path: str, folder: SeenFolder) -> Iterator[Change]:
    yield Change(path, folder.node, None)
    for name, seen in folder.files.items():
        yield Change(os.path.join(path, name), seen.node, None, seen.pinned)
