"""Track the files of the workspace and their changes since the last look, and save that state on disk.

A look goes by descriptors and follows no link. A folder is listed again only if it has changed, and a file is read
only if its times, its inode or its size have changed, so that a look at everything costs about as much as `git
status`. If the kernel reports in which folders something happens, only those are looked at, and a look costs only
the changes.

A mode that a command has set may forbid the owner to read or write; the owner can change it at any time. Such
files and folders are opened for a moment, and keep their mode afterwards.

The saved state is one complete file, and a second file with the later changes.
"""

import contextlib
import hashlib
import os
import stat
import struct
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Self

import msgspec

from ferrule.checkpoints import MADE_AGAIN, is_remade
from ferrule.checkpoints.blobs import BlobStoreError, make_private, private
from ferrule.files.journal import Kind, Node, unkept
from ferrule.system.folder import Descent, Folder
from ferrule.system.inotify import FolderWatch, InotifyChanges, is_heard_of

_PLACE = getattr(os, "O_PATH", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_OPEN_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_CAN = hasattr(os, "O_PATH") and os.path.isdir("/proc/self/fd")
"""Can a mode be changed by a descriptor that needs no right to read?"""


class Unlocked:
    """What was opened for a moment; at its end everything has its mode again, wherever it is by then."""

    def __init__(self) -> None:
        self._places: dict[tuple[int, int], tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for place, mode in reversed(self._places.values()):
            with contextlib.suppress(OSError):
                _set(place, mode)
            os.close(place)
        self._places.clear()

    def mode(self, status: os.stat_result) -> int:
        """The mode that a file or folder has when nothing is opened up any more."""
        _, mode = self._places.get((status.st_dev, status.st_ino), (-1, stat.S_IMODE(status.st_mode)))
        return mode

    def open_up(self, name: str, folder: int | None, needed: int = stat.S_IRWXU) -> bool:
        """Let the owner do what is `needed` with a file or folder; no where somebody else owns it."""
        if not _CAN:
            return False
        return self._open_up(os.open(name, _PLACE, dir_fd=folder), needed)

    def open_folder(self, folder: Folder) -> None:
        """Let the owner write in an open folder."""
        if folder.descriptor is not None:
            self._open_up(os.dup(folder.descriptor), stat.S_IWUSR | stat.S_IXUSR)

    def _open_up(self, place: int, needed: int) -> bool:
        status = os.fstat(place)
        mode, identity = stat.S_IMODE(status.st_mode), (status.st_dev, status.st_ino)
        is_closed = mode & needed != needed and status.st_uid == os.geteuid() and not stat.S_ISLNK(status.st_mode)
        if not is_closed or identity in self._places:
            os.close(place)
            return is_closed
        try:
            _set(place, mode | needed)
        except OSError:
            os.close(place)
            return False
        self._places[identity] = place, mode
        return True

    def open_way(self, root: str, parts: Sequence[str]) -> bool:
        """Open up the closed folders on the way down from a root; no where none was closed."""
        opened = False
        current = os.open(root, _OPEN_FOLDER)
        try:
            for part in parts:
                opened = self.open_up(part, current) or opened
                below = os.open(part, _OPEN_FOLDER, dir_fd=current)
                os.close(current)
                current = below
        except OSError:
            pass  # what is missing there is seen by whoever goes that way
        finally:
            os.close(current)
        return opened


def _set(place: int, mode: int) -> None:
    if _CAN:
        os.chmod(f"/proc/self/fd/{place}", mode)
    else:
        os.fchmod(place, mode)


@contextlib.contextmanager
def readable(folder: int | None, name: str) -> Iterator[bool]:
    """Let the owner read a file for a moment; tells whether its mode had to be changed."""
    with Unlocked() as unlocked:
        yield unlocked.open_up(name, folder, stat.S_IRUSR)


def set_mode(folder: int | None, name: str, mode: int) -> None:
    """Give a file or folder a mode, also where that forbids to open it; never through a link. Raises OSError."""
    if not _CAN:
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    place = os.open(name, _PLACE, dir_fd=folder)
    try:
        if not stat.S_ISLNK(os.fstat(place).st_mode):
            os.chmod(f"/proc/self/fd/{place}", mode)
    finally:
        os.close(place)


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


class FileFingerprint(NamedTuple):
    """What was found out about a file."""

    content: str
    """Its fingerprint, or what it is told by where its bytes were not kept."""
    pinned: str = ""
    """The object of git's that has the same bytes, where those alone are kept."""
    why: str = ""
    """Why its bytes were not kept."""


Keep = Callable[[int, str, str, os.stat_result], FileFingerprint]
"""Keeps the bytes of a file: its open folder, its name there, its path, and what it was like. Raises OSError."""


class NodeSnapshot(NamedTuple):
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
    files: dict[str, NodeSnapshot]
    names: "FolderContents"


class FolderContents(NamedTuple):
    """What is in a folder."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    """Those that are looked into."""
    remade: tuple[str, ...] = ()
    """Those that are not, because a tool makes them again."""
    has_objects: bool = False
    """Are git's objects in it? Those are pinned, and not looked at."""


class TreeChange(NamedTuple):
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
    ) -> list[TreeChange]:
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

    def _look_at_all(self, hidden: frozenset[str]) -> list[TreeChange]:
        self._hidden, self._count, self._held_open = hidden, 0, set()
        self._closed_before, self._closed = frozenset(self._closed), set()
        found: dict[str, SeenFolder] = {}
        changes: list[TreeChange] = []
        self.left_out.clear()
        self.repositories.clear()
        for root in self._roots:
            with Descent(root) as descent:
                self._walk(descent, root, root, found, changes)
        return self._finish_look(found, changes, self.folders.keys() - found.keys())

    def _look_at(self, touched: InotifyChanges, hidden: frozenset[str]) -> list[TreeChange]:
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
        changes: list[TreeChange] = []
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
        return self._finish_look(found, changes, taken - found.keys())

    def _finish_look(
        self,
        found: dict[str, SeenFolder],
        changes: list[TreeChange],
        gone: AbstractSet[str],
    ) -> list[TreeChange]:
        for path in gone:
            changes += _deletions(path, self.folders[path])
            if self._watch is not None:
                self._watch.drop(path)
        if gone:
            self._forget(gone, ())
        self.folders = found
        changes = _merge_changes(changes)
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

    def _walk(
        self, descent: Descent, root: str, top: str, found: dict[str, SeenFolder], changes: list[TreeChange]
    ) -> None:
        """Look at a folder of a root, and at those in it that were not found yet."""
        with Unlocked() as unlocked:
            self._walk_down(_TreeAccess(descent, root, unlocked), [top], found, changes)

    def _walk_down(
        self, way: "_TreeAccess", left: list[str], found: dict[str, SeenFolder], changes: list[TreeChange]
    ) -> None:
        while left:
            path = left.pop()
            if path in found:
                continue
            if self.is_stopped:
                raise InterruptedError
            try:
                self._unlock(way, path)
                with way.descent.hold_open(path) as folder:
                    one = self._folder(path, folder, way, changes)
            except BlobStoreError:
                raise
            except OSError as error:
                self._handle_error(path, error, found, changes)
                continue
            if one is not None:
                found[path] = one
                self._count += len(one.files) + 1
                if self._count > MOST_FILES:
                    raise OSError(f"there are more than {MOST_FILES:,} files")
                left += [os.path.join(path, name) for name in reversed(one.names.folders)]

    def _unlock(self, way: "_TreeAccess", path: str) -> None:
        """Open what a command has closed that could be looked into before, or that it has made."""
        if self._is_after and path not in self._closed_before and not os.access(path, os.R_OK | os.X_OK):
            parts = os.path.relpath(path, way.root).split(os.sep)
            way.unlocked.open_way(way.root, () if path == way.root else parts)

    def _handle_error(self, path: str, error: OSError, found: dict[str, SeenFolder], changes: list[TreeChange]) -> None:
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
            changes.append(TreeChange(path, known.node, node))
        found[path] = known._replace(node=node, stamp=None)
        head = path + os.sep
        found.update({one: seen for one, seen in self.folders.items() if one.startswith(head)})

    def _folder(self, path: str, folder: int, way: "_TreeAccess", changes: list[TreeChange]) -> SeenFolder | None:
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
            changes.append(TreeChange(path, None if known is None else known.node, node))
        mark = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        names = known.names if known is not None and known.stamp == mark else self._list_folder(path, folder)
        for name in names.remade:
            self.left_out[os.path.join(path, name)] = MADE_AGAIN
            self._closed.add(os.path.join(path, name))
        if names.has_objects:
            self.repositories.add(path)
        opened = _OpenFolder(path, folder, now)
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

    def _list_folder(self, path: str, folder: int) -> FolderContents:
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
        return FolderContents(
            tuple(names), tuple(name for name in folders if name not in remade), tuple(remade), has_objects
        )

    def _is_remade(self, path: str, name: str, siblings: Sequence[str]) -> bool:
        whole = os.path.join(path, name)
        return is_remade(whole, siblings, inside=_inside(whole)) and not self._is_tracked(whole)

    def _files(
        self, at: "_OpenFolder", names: Sequence[str], before: dict[str, NodeSnapshot], changes: list[TreeChange]
    ) -> dict[str, NodeSnapshot]:
        files: dict[str, NodeSnapshot] = {}
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
            seen = self._snapshot_node(at, name, status, known)
            if seen is None:
                continue
            files[name] = seen
            if known is None:
                changes.append(TreeChange(os.path.join(at.path, name), None, seen.node))
            elif known.node != seen.node and not _is_only_known(known, seen):
                changes.append(TreeChange(os.path.join(at.path, name), known.node, seen.node, known.pinned))
        (self._linked.add if is_linked else self._linked.discard)(at.path)
        if len(files) < len(before) or before.keys() != files.keys():
            gone = ((name, before[name]) for name in before.keys() - files.keys())
            changes += [TreeChange(os.path.join(at.path, name), seen.node, None, seen.pinned) for name, seen in gone]
        return files

    def _snapshot_node(
        self, at: "_OpenFolder", name: str, status: os.stat_result, known: NodeSnapshot | None
    ) -> NodeSnapshot | None:
        path, kept, content = os.path.join(at.path, name), FileFingerprint(""), ""
        kind: Kind = KINDS.get(stat.S_IFMT(status.st_mode), "other")
        if kind == "folder":
            return None  # it was a file a moment ago: the next look finds it
        is_settled = max(status.st_ctime_ns, status.st_mtime_ns) + _TICK_NS < at.now
        try:
            if kind == "file" and path in self._hidden:
                raise _HiddenError  # it is kept as soon as somebody may change it
            if kind == "file":
                kept, status = self._keep_file(at, name, status, known)
                content = kept.content
                if kept.why:
                    self.left_out[path] = kept.why
            elif kind == "link":
                content = os.readlink(name, dir_fd=at.folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            if isinstance(error, BlobStoreError) and not self._is_after:
                raise
            if not isinstance(error, _HiddenError):
                self.left_out[path] = f"it cannot be read ({error.strerror or error})"
            kept, content, is_settled = FileFingerprint(unkept(status)), unkept(status), False
        size = status.st_size if kind == "file" else 0
        node = Node(kind, stat.S_IMODE(status.st_mode), content, size, status.st_uid, status.st_gid)
        return NodeSnapshot(status.st_ctime_ns, status.st_ino, status.st_size, is_settled, node, kept.pinned)

    def _keep_file(
        self, at: "_OpenFolder", name: str, status: os.stat_result, known: NodeSnapshot | None
    ) -> tuple[FileFingerprint, os.stat_result]:
        """Keep a file, also one that its owner has closed; with it comes what it is like then."""
        path = os.path.join(at.path, name)
        try:
            return self._keep(at.folder, name, path, status), status
        except PermissionError:
            if known is not None and known[:3] == (status.st_ctime_ns, status.st_ino, status.st_size):
                return FileFingerprint(known.node.content, known.pinned), status
            with readable(at.folder, name):
                kept = self._keep(at.folder, name, path, status)
            return kept, os.lstat(name, dir_fd=at.folder)


class _HiddenError(OSError):
    """No command can see the file."""


class _TreeAccess(NamedTuple):
    """How folders are reached."""

    descent: Descent
    root: str
    unlocked: Unlocked


class _OpenFolder(NamedTuple):
    """A folder that is looked at."""

    path: str
    folder: int
    now: int


def folder_node(status: os.stat_result, mode: int | None = None) -> Node:
    """A folder as it is, or with another mode."""
    mode = stat.S_IMODE(status.st_mode) if mode is None else mode
    return Node("folder", mode, owner=status.st_uid, group=status.st_gid)


def _is_only_known(one: NodeSnapshot, other: NodeSnapshot) -> bool:
    """Is it the same file, of which more or less is known now, as of one that is hidden or not any more?"""
    if (one.changed_ns, one.inode, one.size) != (other.changed_ns, other.inode, other.size):
        return False
    return one.node.is_unkept or other.node.is_unkept


def _merge_changes(changes: list[TreeChange]) -> list[TreeChange]:
    """One change a path: where a folder became a file, it went as the one and came as the other."""
    by_path: dict[str, TreeChange] = {}
    for one in changes:
        other = by_path.get(one.path)
        if other is not None:
            gone, came = (other, one) if other.before is not None else (one, other)
            one = TreeChange(one.path, gone.before, came.after, gone.pinned)  # noqa: PLW2901 - the two together
        by_path[one.path] = one
    return list(by_path.values()) if len(by_path) < len(changes) else changes


def _in_turn(first: list[TreeChange], second: list[TreeChange]) -> list[TreeChange]:
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


def _deletions(path: str, folder: SeenFolder) -> Iterator[TreeChange]:
    yield TreeChange(path, folder.node, None)
    for name, seen in folder.files.items():
        yield TreeChange(os.path.join(path, name), seen.node, None, seen.pinned)


_DIGEST_BYTES = 20
_HEAD = struct.Struct(f">I{_DIGEST_BYTES}s")
_LONG_BYTES = 4 << 20


SavedFile = tuple[int, int, int, bool, tuple[Kind, int, bytes, int, int, int], str]


class SavedFolder(msgspec.Struct, array_like=True):
    """A folder, as it is written down, or what has become of one. Names are bytes: not every one is text."""

    node: Node
    files: dict[bytes, SavedFile | None]
    """None for one that is gone."""
    has_objects: bool


_decode = msgspec.msgpack.Decoder(dict[bytes, SavedFolder | None]).decode


class SavedTree:
    """A file with everything, and beside it one of later changes, which is named after the first."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._path = os.path.join(folder, "tree")
        self._name = ""
        self._later_bytes = 0

    @property
    def is_long(self) -> bool:
        """Have so many changes come that everything should be written anew, or was it never written?"""
        return not self._name or self._later_bytes > _LONG_BYTES

    def read(self) -> dict[bytes, SavedFolder]:
        """What was written down; nothing where that is not whole, or of another version."""
        try:
            with open(self._path, "rb") as file:
                digest, raw = file.read(_DIGEST_BYTES), file.read()
            if _digest(raw) != digest:
                return {}
            found = {path: folder for path, folder in _decode(raw).items() if folder is not None}
        except (OSError, msgspec.DecodeError):
            return {}
        self._name = digest.hex()
        with contextlib.suppress(OSError), open(self._later, "rb") as file:
            later = file.read()
            self._later_bytes = len(later)
            self._add(found, later)
        return found

    def _add(self, found: dict[bytes, SavedFolder], raw: bytes) -> None:
        """Put later changes over what was found, up to the first that is not whole."""
        at = 0
        while at + _HEAD.size <= len(raw):
            size, digest = _HEAD.unpack_from(raw, at)
            piece = raw[at + _HEAD.size : at + _HEAD.size + size]
            at += _HEAD.size + size
            if _digest(piece) != digest:
                return
            for path, folder in _decode(piece).items():
                if folder is None:
                    found.pop(path, None)
                else:
                    _change(found, path, folder)

    def write(self, folders: dict[bytes, SavedFolder]) -> None:
        """Write everything down. Raises OSError."""
        raw = msgspec.msgpack.encode(folders)
        make_private(self._folder)
        unfinished = f"{self._path}.{os.getpid()}"
        with open(unfinished, "wb", opener=private) as file:
            file.write(_digest(raw) + raw)
        os.replace(unfinished, self._path)
        before, self._name, self._later_bytes = self._later, _digest(raw).hex(), 0
        if before != self._later:
            with contextlib.suppress(OSError):
                os.unlink(before)

    def append(self, folders: dict[bytes, SavedFolder | None]) -> None:
        """Write down what has become of some folders; None for what is not there, or is no folder. Raises OSError."""
        raw = msgspec.msgpack.encode(folders)
        with open(self._later, "ab", opener=private) as file:
            file.write(_HEAD.pack(len(raw), _digest(raw)) + raw)
        self._later_bytes += len(raw)

    @property
    def _later(self) -> str:
        return f"{self._path}-{self._name[:16]}"


def _change(found: dict[bytes, SavedFolder], path: bytes, folder: SavedFolder) -> None:
    known = found.get(path)
    files = folder.files if known is None else {**known.files, **folder.files}
    left: dict[bytes, SavedFile | None] = {name: one for name, one in files.items() if one is not None}
    found[path] = SavedFolder(folder.node, left, folder.has_objects)


def _digest(raw: bytes) -> bytes:
    return hashlib.blake2b(raw, digest_size=_DIGEST_BYTES).digest()
