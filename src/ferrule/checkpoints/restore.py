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

from ferrule.checkpoints.checkpoint import Checkpoints
from ferrule.checkpoints.git_moves import GitMove, is_name
from ferrule.checkpoints.tree import GIT, KINDS, Unlocked, folder_node, readable, set_mode
from ferrule.core.errors import ToolFailure
from ferrule.files.jail import Jail, JailPath
from ferrule.files.journal import Journal, Node, NodeChange, is_git_data, temporary_name, unkept
from ferrule.git import Objects
from ferrule.system.folder import Descent, Folder, describe, is_regular, marks, put_marks

ANY_MODE = -1
"""Of a node whose permission bits nobody wrote down."""
_SHORT = 10
_WRITES = stat.S_IWUSR | stat.S_IXUSR
_SYNCED_FILES = 64
"""Of more files not each is made durable alone, but all at once."""


class Move(NamedTuple):
    """A path, what was left there, and what is to be there again."""

    path: str
    left: Node | None
    wanted: Node | None
    is_by_hand: bool = False
    """Did somebody else change it in between?"""


class RestorePlan(NamedTuple):
    """What a restoring would do."""

    changes: tuple[NodeChange, ...]
    """What is there now, and what will be."""
    by_hand: tuple[str, ...] = ()
    """Paths that somebody else has changed since; they are left alone."""
    lost: tuple[str, ...] = ()
    """Paths whose bytes were not kept."""
    left_alone: tuple[str, ...] = ()
    """Files that would have to go, and whose bytes nobody has: they stay."""


class Restorer:
    """Puts back what commands have changed."""

    def __init__(self, jail: Jail, journal: Journal, checkpoints: Checkpoints) -> None:
        self._jail = jail
        self._journal = journal
        self._checkpoints = checkpoints

    def plan(
        self, moves: Iterable[Move], *, over: bool = False, repositories: Iterable[str] | None = None
    ) -> RestorePlan:
        """What has to be done. `over`: also over what somebody else has changed since. Raises `ToolFailure`.

        `repositories` are the folders that repositories began in then, where that is known: into another one nothing is
        put back.
        """
        moves = list(moves)
        ours = {move.path for move in moves}
        known = None if repositories is None else set(repositories)
        by_hand, found = [], []
        with Unlocked() as unlocked:
            for move in moves:
                self._refuse_elsewhere(move.path, ours, known)
                now, wanted = self._now(move.path, move.left, unlocked), move.wanted
                if is_same(now, wanted):
                    continue
                is_theirs = move.is_by_hand or not is_same(now, move.left)
                if is_theirs and not over and not _is_half_made(now, move):
                    by_hand.append(move.path)
                    continue
                if wanted is not None and wanted.mode == ANY_MODE:
                    wanted = msgspec.structs.replace(wanted, mode=now.mode if now is not None else 0o644)
                found.append(NodeChange(move.path, now, wanted))
        return self._plan_restore(found)._replace(by_hand=tuple(by_hand))

    def _plan_restore(self, found: Sequence[NodeChange]) -> RestorePlan:
        """What can be done without losing anything: a file that nobody has the bytes of is moved back, or stays."""
        changes: list[NodeChange] = []
        lost: list[NodeChange] = []
        left_alone: list[NodeChange] = []
        there = {one.before.content for one in found if one.before is not None and one.before.is_unkept}
        wanted = {one.after.content for one in found if one.after is not None and one.after.is_unkept}
        for one in found:
            if one.after is not None and one.after.is_unkept:
                (changes if one.after.content in there else lost).append(one)
            elif one.before is not None and one.before.is_unkept:
                (changes if one.before.content in wanted else left_alone).append(one)
            else:
                (changes if one.after is None or self._is_kept(one.after) else lost).append(one)
        return RestorePlan(tuple(changes), lost=_paths(lost), left_alone=_paths(left_alone))

    def apply(self, changes: Sequence[NodeChange], *, kind: str, of: str | None = None, about: str = "") -> str:
        """Make it so: all of it or nothing. The entry of the journal. Raises `ToolFailure`."""
        git = [one for one in changes if is_git_data(one.path, one.before, one.after)]
        files = [one for one in changes if not is_git_data(one.path, one.before, one.after)]
        pending = self._journal.announce(kind, (), b"", of=of, nodes=files, git=git, about=about)
        done: list[NodeChange] = []
        try:
            self._put(changes, temporary_name(pending.entry.id), done)
            self._journal.commit(pending)
        except BaseException as error:
            if self._roll_back(done, temporary_name(pending.entry.id)):
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
        with Unlocked() as unlocked:
            back = [
                NodeChange(one.path, self._now(one.path, one.after, unlocked), one.before)
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
            is_removed = all(one.after is None for one in changes if one.path == head)
            if known.get(head) and is_removed and os.path.lexists(head):
                names.update(_files_below(os.path.join(repository, "refs")))  # whoever made HEAD has made them too
            for path in names:
                with Unlocked() as unlocked:
                    now = self._now(path, None, unlocked)
                if now is not None and now.kind != "folder" and now.content not in known.get(path, ()):
                    raise ToolFailure(
                        f"{repository} is another repository than the one that the command has left, and what was "
                        "committed there since would be lost. Move it away to keep it and do this again, or do not "
                        "have the removed one brought back. Nothing was changed.",
                        code="is-repository",
                        path=repository,
                    )

    def restore_objects(self, gone: Sequence[str]) -> None:
        """Put the pinned objects of removed repositories back. Raises `ToolFailure`."""
        try:
            for repository in gone:
                objects = self._jail.place(os.path.join(repository, "objects", "pack"))
                objects.folder(make=True).close()  # also where there is not one object
                for name, pinned in self._checkpoints.store.pins_of(repository).files():
                    self._restore_object(pinned, repository, name)
        except OSError as error:
            raise ToolFailure(
                f"Not all objects of the repository could be brought back: {describe(error)}.", code="not-restored"
            ) from error

    def _restore_object(self, source: str, repository: str, name: str) -> None:
        """Put a file among the objects of a repository. Raises OSError."""
        place = self._jail.place(os.path.join(repository, "objects", *name.split("/")))
        with place.folder(make=True) as folder:
            _copy_object(source, folder, place.name)

    def restore_needed(self, moved: Iterable[GitMove]) -> list[str]:
        """Give repositories what the commands that are named need and git has let go of; notes of what failed.

        Nothing is written over: git takes objects that nothing leads to for none.
        """
        needs: dict[str, list[str]] = {}
        for one in moved:
            needs.setdefault(one.repository, []).extend(one.needs)
        return [note for repository, names in needs.items() if (note := self._restore_missing(repository, names))]

    def _restore_missing(self, repository: str, names: Sequence[str]) -> str:
        pins, objects = self._checkpoints.store.pins_of(repository), os.path.join(repository, "objects")
        try:
            if missing := pins.find_missing(objects, names):
                with Objects() as reader:
                    for path in reader.pack(pins.objects, missing):
                        self._restore_object(path, repository, f"pack/{os.path.basename(path)}")
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

    def _now(self, path: str, like: Node | None, unlocked: Unlocked) -> Node | None:
        """What is there, its bytes kept unless it is still `like` a file whose bytes are not.

        None where nothing is, or only through a link. Raises `ToolFailure`.
        """
        place = self._jail.place(path)
        if not place.parts:
            return folder_node(os.lstat(path))
        try:
            with _parent(place, unlocked) as folder:
                node = node_at(folder, place.name, self._checkpoints, like)
                if node is not None and node.kind == "folder":
                    node = msgspec.structs.replace(node, mode=unlocked.mode(folder.status(place.name)))
                return node
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in Descent.LINKED:
                return None
            raise ToolFailure(
                f"What is at {path} now could not be kept ({error.strerror or error}), so it is not written over. "
                "Nothing was changed.",
                code="not-kept",
                path=path,
            ) from error

    def _is_kept(self, node: Node) -> bool:
        if node.kind == "file":
            return node.size == 0 or (not node.is_unkept and self._checkpoints.blobs.is_whole(node.content))
        return node.kind != "other"

    def _put(
        self, changes: Sequence[NodeChange], unfinished: str, done: list[NodeChange], *, is_checked: bool = True
    ) -> None:
        """Remove what is not wanted, innermost first; then make the rest, outermost first; then the folders' modes.

        `is_checked`: who has saved something there since it was planned must not lose it.
        """
        outside_in = sorted(changes, key=_depth)
        with Unlocked() as unlocked:
            way = _RestoreOptions(unfinished, unlocked, len(changes) <= _SYNCED_FILES, is_checked)
            for change in reversed(outside_in):
                if _goes(change):
                    self._remove(change, way)
                    done.append(change)
            self._make_all(outside_in, way, done)
        with Unlocked() as unlocked:
            for change in reversed(outside_in):
                if change.after is not None and change.after.kind == "folder":
                    self._dress_folder(change.path, change.after, unlocked)
        if not way.is_synced:
            os.sync()

    def _make_all(self, changes: Sequence[NodeChange], way: "_RestoreOptions", done: list[NodeChange]) -> None:
        sources = {one.before.content: one for one in changes if one.before is not None and one.before.is_unkept}
        for change in changes:
            if change.after is None:
                continue
            if change.after.is_unkept:
                self._move_back(sources[change.after.content], change, change.after, way)
            else:
                self._make(change, change.after, way)
            done.append(change)
        if sources:
            for change in reversed(changes):
                if change.after is None:
                    self._remove(change, way._replace(is_checked=False))  # a folder may be empty by now

    def _remove(self, change: NodeChange, way: "_RestoreOptions") -> None:
        assert change.before is not None
        place = self._jail.place(change.path)
        if not place.parts or change.before.is_unkept:
            return
        try:
            with _parent(place, way.unlocked) as folder:
                way.unlocked.open_folder(folder)
                if change.before.kind != "folder":
                    self._check(change, folder, way)
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

    def _make(self, change: NodeChange, node: Node, way: "_RestoreOptions") -> None:
        place = self._jail.place(change.path)
        if not place.parts:
            return
        with _parent(place, way.unlocked, make=True) as folder:
            way.unlocked.open_folder(folder)
            name, at = folder.name(place.name), folder.descriptor
            if node.kind == "folder":
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=at)
                return
            with contextlib.suppress(FileNotFoundError):
                folder.remove(way.unfinished)  # of a step that died here
            try:
                if node.kind == "link":
                    os.symlink(node.content, folder.name(way.unfinished), dir_fd=at)
                elif node.kind == "fifo":
                    os.mkfifo(folder.name(way.unfinished), node.mode, dir_fd=at)
                else:
                    self._write(folder, way.unfinished, node, place.name, is_synced=way.is_synced)
                if not _goes(change):
                    self._check(change, folder, way)
                folder.rename(way.unfinished, place.name)
            except BaseException:
                with contextlib.suppress(OSError):
                    folder.remove(way.unfinished)
                raise

    def _move_back(self, source: NodeChange, change: NodeChange, node: Node, way: "_RestoreOptions") -> None:
        """Move a file whose bytes nobody has to where it was."""
        there, place = self._jail.place(source.path), self._jail.place(change.path)
        with _parent(there, way.unlocked) as above, _parent(place, way.unlocked, make=True) as folder:
            way.unlocked.open_folder(above)
            way.unlocked.open_folder(folder)
            os.rename(there.name, place.name, src_dir_fd=above.descriptor, dst_dir_fd=folder.descriptor)
            with contextlib.suppress(OSError):
                set_mode(folder.descriptor, place.name, node.mode)

    def _check(self, change: NodeChange, folder: Folder, way: "_RestoreOptions") -> None:
        """Raise where somebody has changed a file since it was planned what becomes of it."""
        if not way.is_checked or (change.before is not None and change.before.kind == "folder"):
            return
        name = os.path.basename(change.path)
        if not is_same(node_at(folder, name, self._checkpoints, change.before), change.before):
            raise ToolFailure(
                f"{change.path} was changed at this very moment by something else. Nothing was changed. Try again.",
                code="changed-meanwhile",
                path=change.path,
            )

    def _write(self, folder: Folder, name: str, node: Node, instead_of: str, *, is_synced: bool) -> None:
        descriptor = folder.fresh(name, 0o600)
        try:
            with contextlib.suppress(OSError):
                _copy_marks(folder, instead_of, descriptor)
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

    def _dress_folder(self, path: str, node: Node, unlocked: Unlocked) -> None:
        """Give a folder its owner and mode, also where that closes it."""
        place = self._jail.place(path)
        if not place.parts:
            os.chmod(path, node.mode)
            return
        with _parent(place, unlocked) as above:
            with contextlib.suppress(OSError):
                if node.owner >= 0 and (node.owner, node.group) != (os.geteuid(), os.getegid()):
                    os.chown(place.name, node.owner, node.group, dir_fd=above.descriptor, follow_symlinks=False)
            set_mode(above.descriptor, place.name, node.mode)

    def _roll_back(self, done: Sequence[NodeChange], unfinished: str) -> bool:
        """Bring back what was there; no where that failed too."""
        back = [NodeChange(one.path, one.after, one.before) for one in dict.fromkeys(reversed(done))]
        try:
            self._put(back, unfinished, [], is_checked=False)
        except (OSError, ToolFailure):
            return False
        return True


class _RestoreOptions(NamedTuple):
    """How things are put back."""

    unfinished: str
    """What a file is called until it is whole."""
    unlocked: Unlocked
    is_synced: bool
    is_checked: bool


@contextlib.contextmanager
def _parent(place: JailPath, unlocked: Unlocked, *, make: bool = False) -> Iterator[Folder]:
    """The folder of a place; made where it is not there any more, and opened up where its owner has closed it."""
    try:
        folder = place.folder(make=make)
    except PermissionError:
        if not unlocked.open_way(place.root.path, place.parts[:-1]):
            raise
        folder = place.folder(make=make)
    with folder:
        yield folder


def _copy_marks(folder: Folder, name: str, target: int) -> None:
    """Let a new file carry what the one in whose place it comes does."""
    source = folder.open(name)
    try:
        if is_regular(source):
            put_marks(target, marks(source))
    finally:
        os.close(source)


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


def node_at(folder: Folder, name: str, checkpoints: Checkpoints, like: Node | None = None) -> Node | None:
    """What is under a name in an open folder; with its bytes kept, unless it is `like` a file whose bytes are not."""
    try:
        status = folder.status(name)
    except FileNotFoundError:
        return None
    kind = KINDS.get(stat.S_IFMT(status.st_mode), "other")
    content = ""
    assert folder.descriptor is not None
    if kind == "file":
        content = unkept(status)
        if like is None or like.content != content:
            with contextlib.suppress(PermissionError), readable(folder.descriptor, name):
                content = checkpoints.store.keep_bytes(folder.descriptor, name, os.path.join(folder.path, name), status)
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


def _is_half_made(now: Node | None, move: Move) -> bool:
    """Was it left by a step that died? Such a step opens folders up, makes others first and gives them modes last.

    And where a folder becomes something else, or the other way round, it removes the one before it makes the other.
    """
    left, wanted = move.left, move.wanted
    if move.is_by_hand or wanted is None:
        return False
    if now is None:
        return left is not None and (left.kind == "folder") != (wanted.kind == "folder")
    if now.kind != "folder" or wanted.kind != "folder":
        return False
    if left is None or left.kind != "folder":
        return now.mode == stat.S_IRWXU
    return any(now.mode == node.mode | bits for node in (left, wanted) for bits in (stat.S_IRWXU, _WRITES))


def _paths(changes: Iterable[NodeChange]) -> tuple[str, ...]:
    return tuple(one.path for one in changes)
