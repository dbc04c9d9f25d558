"""Putting files, links and folders back to what they were: one journalled write, through no link, over nobody's work.

What is there now is kept first, so that the step can be taken back too. If the process dies in the middle, the same
step can be made again: what is back already is left alone.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.support.beneath import Folder, describe
from ferrule.support.git_objects import Objects
from ferrule.workspace.checkpoint import Checkpoints
from ferrule.workspace.git_moves import Moved, is_name
from ferrule.workspace.journal import Journal, Node, NodeChange, is_git_data, unfinished_name
from ferrule.workspace.paths import Jail, Place
from ferrule.workspace.tree_state import GIT, KINDS, folder_node

ANY_MODE = -1
"""Of a node whose permission bits nobody wrote down."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SHORT = 10
_SYNCED_FILES = 64
"""Of more files not each is made durable alone, but all at once."""


class Move(NamedTuple):
    """A path, what was left there, and what is to be there again."""

    path: str
    left: Node | None
    wanted: Node | None


class Plan(NamedTuple):
    """What a restoring would do."""

    changes: tuple[NodeChange, ...]
    """What is there now, and what will be."""
    by_hand: tuple[str, ...] = ()
    """Paths that somebody else has changed since; they are left alone."""
    lost: tuple[str, ...] = ()
    """Paths whose bytes were not kept."""


class Restorer:
    """Puts back what commands have changed."""

    def __init__(self, jail: Jail, journal: Journal, checkpoints: Checkpoints) -> None:
        self._jail = jail
        self._journal = journal
        self._checkpoints = checkpoints

    def plan(self, moves: Iterable[Move], *, over: bool = False, repositories: Iterable[str] | None = None) -> Plan:
        """What has to be done. `over`: also over what somebody else has changed since. Raises `ToolFailure`.

        `repositories` are the folders that repositories began in then, where that is known: into another one nothing is
        put back.
        """
        changes, by_hand, lost = [], [], []
        moves = list(moves)
        ours = {move.path for move in moves}
        known = None if repositories is None else set(repositories)
        for move in moves:
            self._refuse_elsewhere(move.path, ours, known)
            now = self._now(move.path)
            if is_same(now, move.wanted):
                continue
            if not is_same(now, move.left) and not over:
                by_hand.append(move.path)
            elif move.wanted is not None and not self._is_kept(move.wanted):
                lost.append(move.path)
            else:
                wanted = move.wanted
                if wanted is not None and wanted.mode == ANY_MODE:
                    wanted = msgspec.structs.replace(wanted, mode=now.mode if now is not None else 0o644)
                changes.append(NodeChange(move.path, now, wanted))
        return Plan(tuple(changes), tuple(by_hand), tuple(lost))

    def apply(self, changes: Sequence[NodeChange], *, kind: str, of: str | None = None, about: str = "") -> str:
        """Make it so: all of it or nothing. The entry of the journal. Raises `ToolFailure`."""
        for change in changes:
            self._keep_now(change)
        git = [one for one in changes if is_git_data(one.path, one.before, one.after)]
        files = [one for one in changes if not is_git_data(one.path, one.before, one.after)]
        pending = self._journal.announce(kind, (), b"", of=of, nodes=files, git=git, about=about)
        done: list[NodeChange] = []
        try:
            self._put(changes, unfinished_name(pending.entry.id), done)
            self._journal.commit(pending)
        except BaseException as error:
            if self._roll_back(done, unfinished_name(pending.entry.id)):
                self._journal.withdraw(pending)
            else:
                self._journal.leave(pending)
            if isinstance(error, OSError):
                raise ToolFailure(
                    f"It could not be brought back: {describe(error)}: {error.filename or ''}. Nothing was changed.",
                    code="not-restored",
                ) from error
            raise
        return pending.entry.id

    def repositories(self, changes: Iterable[NodeChange], gone: Sequence[str]) -> list[NodeChange]:
        """What has to be done, beside `bring_objects`, so that removed repositories are whole again.

        Raises `ToolFailure` where somebody has begun another one there since.
        """
        changes = list(changes)
        self._refuse_over_another(changes, gone)
        inside = tuple(f"{repository}{os.sep}" for repository in gone)
        back = [
            NodeChange(one.path, self._now(one.path), one.before)
            for one in changes
            if one.path in gone or one.path.startswith(inside)
        ]
        # What was made there since goes only where it is a name of a commit, as of a repository put in its place.
        return [
            one
            for one in back
            if not is_same(one.before, one.after)
            and (self._is_kept(one.after) if one.after is not None else f"{os.sep}refs{os.sep}" in one.path)
        ]

    def _refuse_over_another(self, changes: Sequence[NodeChange], gone: Sequence[str]) -> None:
        """Raise where a name of a commit is neither what the command has left nor what it found."""
        for repository in gone:
            known = {one.path: _contents(one) for one in changes if is_name(one.path, repository)}
            head, names = os.path.join(repository, "HEAD"), set(known)
            if known.get(head) and all(one.after is None for one in changes if one.path == head) and self._now(head):
                names.update(_files_below(os.path.join(repository, "refs")))  # whoever made HEAD has made them too
            for path in names:
                now = self._now(path)
                if now is not None and now.kind != "folder" and now.content not in known.get(path, ()):
                    raise ToolFailure(
                        f"{repository} is another repository than the one that the command has left, and what was "
                        "committed there since would be lost. Move it away to keep it and do this again, or do not "
                        "have the removed one brought back. Nothing was changed.",
                        code="is-repository",
                        path=repository,
                    )

    def bring_objects(self, gone: Sequence[str]) -> None:
        """Put the pinned objects of removed repositories back. Raises `ToolFailure`."""
        try:
            for repository in gone:
                objects = self._jail.place(os.path.join(repository, "objects", "pack"))
                objects.folder(make=True).close()  # also where there is not one object
                for name, pinned in self._checkpoints.pins_of(repository).files():
                    self._bring(pinned, repository, name)
        except OSError as error:
            raise ToolFailure(
                f"Not all objects of the repository could be brought back: {describe(error)}.", code="not-restored"
            ) from error

    def _bring(self, source: str, repository: str, name: str) -> None:
        """Put a file among the objects of a repository. Raises OSError."""
        place = self._jail.place(os.path.join(repository, "objects", *name.split("/")))
        with place.folder(make=True) as folder:
            _copy_object(source, folder, place.name)

    def bring_needed(self, moved: Iterable[Moved]) -> list[str]:
        """Give repositories what the commands that are named need and git has let go of; notes of what failed.

        Nothing is written over: git takes objects that nothing leads to for none.
        """
        needs: dict[str, list[str]] = {}
        for one in moved:
            needs.setdefault(one.repository, []).extend(one.needs)
        return [note for repository, names in needs.items() if (note := self._bring_some(repository, names))]

    def _bring_some(self, repository: str, names: Sequence[str]) -> str:
        pins, objects = self._checkpoints.pins_of(repository), os.path.join(repository, "objects")
        try:
            if missing := pins.missing(objects, names):
                with Objects() as reader:
                    for path in reader.packed(pins.objects, missing):
                        self._bring(path, repository, f"pack/{os.path.basename(path)}")
        except OSError as error:
            return f"Objects that git in {repository} needs for this could not be brought back: {describe(error)}."
        lost = [name[:_SHORT] for name in names if not pins.has(name) and not pins.is_held(objects, name)]
        return f"Git in {repository} has these no more, and they were not kept: {', '.join(lost)}." if lost else ""

    def _refuse_elsewhere(self, path: str, ours: set[str], repositories: set[str] | None) -> None:
        """Raise where a folder on the way has become a link or another repository, unless that is what is put back."""
        place = self._jail.place(path)
        above = place.root.path
        for part in place.parts[:-1]:
            above = os.path.join(above, part)
            if os.path.islink(above) and above not in ours:
                raise ToolFailure(
                    f"{above} is a link now, and nothing is put back through one. Nothing was changed.",
                    code="is-link",
                    path=above,
                )
            if (
                repositories is not None
                and above not in repositories
                and part != GIT
                and os.path.lexists(os.path.join(above, GIT))
            ):
                raise ToolFailure(
                    f"{above} is another repository now, and nothing is put back into it. Nothing was changed.",
                    code="is-repository",
                    path=above,
                )

    def _now(self, path: str) -> Node | None:
        """What is there, its bytes kept; None where nothing is, or only through a link."""
        place = self._jail.place(path)
        if not place.parts:
            return folder_node(os.lstat(path))
        with contextlib.suppress(OSError), place.folder() as folder:
            return node_at(folder, place.name, self._checkpoints)
        return None

    def _is_kept(self, node: Node) -> bool:
        if node.kind == "file":
            return bool(node.content) and self._checkpoints.blobs.has(node.content)
        return node.kind != "other"

    def _keep_now(self, change: NodeChange) -> None:
        """Refuse to lose what is there: it was kept when the plan was made, unless it is too large."""
        before = change.before
        if before is not None and before.kind == "file" and not self._is_kept(before) and change.after is not None:
            raise ToolFailure(
                f"{change.path} is too large to be kept, so it is not written over. Nothing was changed.",
                code="not-kept",
                path=change.path,
            )

    def _put(self, changes: Sequence[NodeChange], unfinished: str, done: list[NodeChange]) -> None:
        """Remove what is not wanted, innermost first; then make the rest, outermost first; then the folders' modes."""
        opened = _Opened()
        try:
            for change in sorted(changes, key=_depth, reverse=True):
                if _goes(change):
                    self._remove(change, opened)
                    done.append(change)
            for change in sorted(changes, key=_depth):
                if change.after is not None:
                    done.append(change)
                    self._make(change, change.after, unfinished, opened, is_synced=len(changes) <= _SYNCED_FILES)
        finally:
            opened.close_up()
        for change in sorted(changes, key=_depth, reverse=True):
            if change.after is not None and change.after.kind == "folder":
                place = self._jail.place(change.path)
                with place.root.open().below(place.parts) as folder:
                    _dress_folder(folder, change.after)
        if len(changes) > _SYNCED_FILES:
            os.sync()

    def _remove(self, change: NodeChange, opened: "_Opened") -> None:
        assert change.before is not None
        place = self._jail.place(change.path)
        if not place.parts:
            return
        try:
            with place.folder() as folder, opened.writable(folder):
                if change.before.kind != "folder":
                    folder.remove(place.name)
                    return
                try:
                    os.rmdir(folder.name(place.name), dir_fd=folder.descriptor)
                except OSError as error:
                    # Somebody has put something there since: it stays, and so does the folder.
                    if error.errno not in {errno.ENOTEMPTY, errno.EEXIST} or change.after is not None:
                        raise
        except FileNotFoundError:
            return

    def _make(self, change: NodeChange, node: Node, unfinished: str, opened: "_Opened", *, is_synced: bool) -> None:
        place = self._jail.place(change.path)
        if not place.parts:
            return
        with self._parent(place) as folder, opened.writable(folder):
            name, at = folder.name(place.name), folder.descriptor
            if node.kind == "folder":
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=at)
                return
            with contextlib.suppress(FileNotFoundError):
                folder.remove(unfinished)  # of a step that died here
            if node.kind == "link":
                os.symlink(node.content, folder.name(unfinished), dir_fd=at)
            elif node.kind == "fifo":
                os.mkfifo(folder.name(unfinished), node.mode, dir_fd=at)
            else:
                self._write(folder, unfinished, node, is_synced=is_synced)
            folder.rename(unfinished, place.name)

    def _write(self, folder: Folder, name: str, node: Node, *, is_synced: bool) -> None:
        descriptor = folder.fresh(name, 0o600)
        try:
            if node.size and not self._checkpoints.blobs.copy(node.content, descriptor):
                raise OSError(errno.EIO, "the bytes that were kept are damaged")
            with contextlib.suppress(OSError):
                if node.owner >= 0 and (node.owner, node.group) != (os.geteuid(), os.getegid()):
                    os.fchown(descriptor, node.owner, node.group)
            os.fchmod(descriptor, node.mode)
            if is_synced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _parent(self, place: Place) -> Iterator[Folder]:
        """The folder of a place; made where it is not there any more, as an earlier one may have been empty."""
        with place.folder(make=True) as folder:
            yield folder

    def _roll_back(self, done: Sequence[NodeChange], unfinished: str) -> bool:
        """Bring back what was there; no where that failed too."""
        back = [NodeChange(one.path, one.after, one.before) for one in dict.fromkeys(reversed(done))]
        try:
            self._put(back, unfinished, [])
        except (OSError, ToolFailure):
            return False
        return True


class _Opened:
    """Folders that were made writable for a moment."""

    def __init__(self) -> None:
        self._modes: dict[str, int] = {}

    @contextlib.contextmanager
    def writable(self, folder: Folder) -> Iterator[None]:
        assert folder.descriptor is not None
        mode = stat.S_IMODE(os.fstat(folder.descriptor).st_mode)
        if mode & 0o300 != 0o300 and folder.path not in self._modes:
            with contextlib.suppress(OSError):
                os.fchmod(folder.descriptor, mode | 0o700)
                self._modes[folder.path] = mode
        yield

    def close_up(self) -> None:
        """Give them their modes again, but not a file that has taken the place of one."""
        for path, mode in reversed(self._modes.items()):
            with contextlib.suppress(OSError):
                folder = os.open(path, _FOLDER)
                try:
                    os.fchmod(folder, mode)
                finally:
                    os.close(folder)


def _contents(change: NodeChange) -> set[str]:
    return {node.content for node in (change.before, change.after) if node is not None}


def _files_below(top: str) -> Iterator[str]:
    for folder, _, names in os.walk(top):
        yield from (os.path.join(folder, name) for name in names)


def _copy_object(source: str, folder: Folder, name: str) -> None:
    """Copy the file of an object. A copy, for whoever writes into it must not change the pinned one."""
    is_object = os.path.basename(folder.path) != "info"
    try:
        if folder.status(name).st_size == os.stat(source).st_size or not is_object:
            return
        folder.remove(name)
    except FileNotFoundError:
        pass
    with open(folder.fresh(name, 0o444 if is_object else 0o644), "wb") as target, open(source, "rb") as file:
        shutil.copyfileobj(file, target)


@contextlib.contextmanager
def _readable(folder: Folder, name: str, status: os.stat_result) -> Iterator[None]:
    """Let the owner read a file for a moment, where its mode does not."""
    if status.st_mode & 0o400 or status.st_uid != os.geteuid() or not hasattr(os, "O_PATH"):
        yield
        return
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.descriptor)
    try:
        os.chmod(f"/proc/self/fd/{place}", stat.S_IMODE(status.st_mode) | 0o400)
        try:
            yield
        finally:
            os.chmod(f"/proc/self/fd/{place}", stat.S_IMODE(status.st_mode))
    finally:
        os.close(place)


def node_at(folder: Folder, name: str, checkpoints: Checkpoints) -> Node | None:
    """What is under a name in an open folder, with its bytes kept."""
    try:
        status = folder.status(name)
    except FileNotFoundError:
        return None
    kind = KINDS.get(stat.S_IFMT(status.st_mode), "other")
    content = ""
    assert folder.descriptor is not None
    if kind == "file":
        with _readable(folder, name, status):
            content = checkpoints.keep(folder.descriptor, name, os.path.join(folder.path, name), status)
    elif kind == "link":
        content = os.readlink(name, dir_fd=folder.descriptor)
    size = status.st_size if kind == "file" else 0
    return Node(kind, stat.S_IMODE(status.st_mode), content, size, status.st_uid, status.st_gid)


def is_same(one: Node | None, other: Node | None) -> bool:
    """Are the two alike in all that is brought back?"""
    if one is None or other is None:
        return one is other
    if one.kind != other.kind or (one.kind != "folder" and one.content != other.content):
        return False
    return one.kind == "link" or ANY_MODE in {one.mode, other.mode} or one.mode == other.mode


def _goes(change: NodeChange) -> bool:
    """Has what is there to be removed first? One file takes the place of another by itself."""
    before, after = change.before, change.after
    if before is None:
        return False
    return after is None or (before.kind == "folder") != (after.kind == "folder")


def _depth(change: NodeChange) -> tuple[int, str]:
    return change.path.count(os.sep), change.path


def _dress_folder(folder: Folder, node: Node) -> None:
    assert folder.descriptor is not None
    with contextlib.suppress(OSError):
        if node.owner >= 0 and (node.owner, node.group) != (os.geteuid(), os.getegid()):
            os.fchown(folder.descriptor, node.owner, node.group)
    os.fchmod(folder.descriptor, node.mode)
