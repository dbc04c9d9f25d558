"""Open, list and identify files below a folder by descriptor, and lock them between processes.

A path is resolved first and opened afterwards. A link that was swapped in between is met and refused, so the
file that was checked is the file that is opened. `openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)` promises the
same; this module uses calls that both Linux and macOS have. Windows has no such calls: there the joined path is
opened.

`Descent` lists a tree of folders by descriptor, so that no link leads out of it on the way. `stamp` tells
whether a file or folder has changed without reading it again.
"""

import contextlib
import errno
import hashlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

BY_DESCRIPTOR = os.open in os.supports_dir_fd
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
"""Reading never waits for a FIFO or a device."""
READ_NO_LINK = READ | _NO_FOLLOW
FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | _NO_FOLLOW
"""Writing a file that did not exist before."""
_MARKS = ("user.", "system.posix_acl_access")


class Folder:
    """An open folder: on Windows its path, elsewhere its descriptor."""

    __slots__ = ("descriptor", "made", "path")

    def __init__(self, path: str, descriptor: int | None, made: tuple[str, ...] = ()) -> None:
        self.path = path
        self.descriptor = descriptor
        self.made = made
        """Folders that opening this one had to make, outermost first."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def name(self, name: str) -> str:
        """What to hand to `os` functions together with `dir_fd=self.descriptor`."""
        return name if BY_DESCRIPTOR else os.path.join(self.path, name)

    def below(self, parts: Sequence[str], *, make: bool = False) -> "Folder":
        """The folder `parts` below this one; `make` makes what is missing, durably, or nothing of it."""
        if not BY_DESCRIPTOR:
            path = os.path.join(self.path, *parts)
            if make:
                os.makedirs(path, exist_ok=True)
            return Folder(path, None)
        assert self.descriptor is not None
        current, path, made = os.dup(self.descriptor), self.path, []
        try:
            for part in parts:
                path = os.path.join(path, part)
                try:
                    step = os.open(part, _FOLDER | _NO_FOLLOW, dir_fd=current)
                except FileNotFoundError:
                    if not make:
                        raise
                    with contextlib.suppress(FileExistsError):  # another process may make it first
                        os.mkdir(part, dir_fd=current)
                        made.append(path)
                        sync(current)
                    step = os.open(part, _FOLDER | _NO_FOLLOW, dir_fd=current)
                os.close(current)
                current = step
        except BaseException:
            os.close(current)
            remove_empty(made)
            raise
        return Folder(path, current, tuple(made))

    def open(self, name: str) -> int:
        """A descriptor to read from; never waits for a FIFO or a device, never follows a link."""
        return os.open(self.name(name), READ_NO_LINK, dir_fd=self.descriptor)

    def read(self, name: str, limit_bytes: int) -> bytes | None:
        """What the file holds, as `read_regular` tells it."""
        return read_regular(self.open(name), limit_bytes)

    def fresh(self, name: str, mode: int) -> int:
        """A descriptor to write a file that did not exist before."""
        return os.open(self.name(name), FRESH, mode, dir_fd=self.descriptor)

    def rename(self, old: str, new: str) -> None:
        os.replace(self.name(old), self.name(new), src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        os.unlink(self.name(name), dir_fd=self.descriptor)

    def sync(self) -> None:
        """Make renames and removals in this folder durable."""
        if self.descriptor is not None:
            sync(self.descriptor)

    def status(self, name: str) -> os.stat_result:
        return os.stat(self.name(name), dir_fd=self.descriptor, follow_symlinks=False)

    def writable(self, name: str) -> bool:
        """May this process write the file? A rename asks only about the folder."""
        own = os.access in os.supports_effective_ids
        return os.access(self.name(name), os.W_OK, dir_fd=self.descriptor, effective_ids=own)

    def is_removed(self) -> bool:
        """Was it removed while it was open?"""
        return self.descriptor is not None and os.fstat(self.descriptor).st_nlink == 0

    def same(self, other: "Folder") -> bool:
        """Is it the very same folder, whatever its path is by now?"""
        if self.descriptor is None or other.descriptor is None:
            return self.path == other.path
        return os.path.samestat(os.fstat(self.descriptor), os.fstat(other.descriptor))


def open_folder(path: str) -> Folder:
    """A folder by its real path; a link in its place is refused."""
    return Folder(path, os.open(path, _FOLDER | _NO_FOLLOW) if BY_DESCRIPTOR else None)


def sync(descriptor: int) -> None:
    """Make a folder's names durable, where its file system can."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise


def remove_empty(folders: Sequence[str]) -> None:
    """Remove folders, given outermost first, as far as they are empty and still where they were."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            if os.path.realpath(folder) == folder:
                os.rmdir(folder)


def read_all(descriptor: int, limit_bytes: int | None = None) -> bytes:
    """Everything from the descriptor's position, or one byte more than the limit as the sign of too much."""
    pieces: list[bytes] = []
    left = -1 if limit_bytes is None else limit_bytes + 1
    while left != 0:
        piece = os.read(descriptor, 1 << 20 if left < 0 else min(left, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        if left > 0:
            left -= len(piece)
    return b"".join(pieces)


def read_regular(descriptor: int, limit_bytes: int) -> bytes | None:
    """The same of a descriptor that is closed then; None where it is no regular file."""
    try:
        return read_all(descriptor, limit_bytes) if is_regular(descriptor) else None
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """All bytes or an OSError; a short write goes on, and the size is checked at the end."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    size = os.fstat(descriptor).st_size
    if size != len(data):
        raise OSError(errno.EIO, f"{len(data)} bytes were written but the file has {size}")


def is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def describe(error: OSError) -> str:
    """An operating system's refusal in a few words, with its code."""
    code = errno.errorcode.get(error.errno or 0, "OSError")
    hint = " (raise the limit with ulimit -n)" if error.errno == errno.EMFILE else ""
    return f"{code}: {(error.strerror or str(error)).lower()}{hint}"


if sys.platform == "linux":

    def marks(descriptor: int) -> dict[str, bytes]:
        """What a file carries beside its mode: attributes of the user's, and the list of who may reach it."""
        try:
            names = os.listxattr(descriptor)
        except OSError as error:
            if error.errno not in {errno.ENOTSUP, errno.ENOSYS}:
                raise
            return {}
        return {name: os.getxattr(descriptor, name) for name in names if name.startswith(_MARKS)}

    def put_marks(descriptor: int, wanted: Mapping[str, bytes]) -> None:
        """Give a file these marks and no others: a fresh file may have got some from its folder."""
        have = marks(descriptor)
        for name in have.keys() - wanted.keys():
            os.removexattr(descriptor, name)
        for name, value in wanted.items():
            if have.get(name) != value:
                os.setxattr(descriptor, name, value)

else:

    def marks(descriptor: int) -> dict[str, bytes]:  # noqa: ARG001 - the same call everywhere
        """What a file carries beside its mode; the standard library knows it on Linux only."""
        return {}

    def put_marks(descriptor: int, wanted: Mapping[str, bytes]) -> None:
        """Give a file these marks."""


_BY_DESCRIPTOR = os.scandir in os.supports_fd and os.open in os.supports_dir_fd
_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_MOST_OPEN = 64
"""So many folders on the way stay open: the next one is mostly a neighbour."""


class FolderEntry(NamedTuple):
    """A name in a folder."""

    path: str
    name: str
    inode: int
    is_folder: bool
    is_link: bool
    is_wanted: bool = True
    """Folders are told in any case."""


class Descent:
    """Lists folders below a top. A context manager, for folders stay open on the way."""

    LINKED = frozenset({errno.ELOOP, getattr(errno, "EMLINK", errno.ELOOP)})
    """How systems call it when a link is where a folder was."""

    def __init__(self, top: str) -> None:
        self._top = top
        self._open: list[tuple[str, int]] = []
        """Paths and descriptors, each one in the one before."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.pop()[1])

    def entries(self, path: str, wanted: Callable[[str, int], bool]) -> tuple[os.stat_result, list[FolderEntry]]:
        """The folders in a folder, which is the top or below it, and what else is `wanted` by name or inode.

        With them comes what the folder was like before it was read. Raises `OSError`, also where the folder, or one on
        the way to it, is a link.
        """
        if not _BY_DESCRIPTOR:
            return os.lstat(path), _list_entries(path, path, wanted)
        descriptor = self._descriptor(path)
        try:
            status = os.fstat(descriptor)
            return status, _list_entries(descriptor, path, wanted)
        finally:
            if descriptor != self._open[-1][1]:
                os.close(descriptor)

    @contextlib.contextmanager
    def hold_open(self, path: str) -> Iterator[int]:
        """A folder, which is the top or below it, open. Raises `OSError` as `entries` does."""
        descriptor = self._descriptor(path)
        try:
            yield descriptor
        finally:
            if descriptor != self._open[-1][1]:
                os.close(descriptor)

    def _descriptor(self, path: str) -> int:
        """The folder, open. It is kept where it is not too deep."""
        while self._open and not _is_in(path, self._open[-1][0]):
            os.close(self._open.pop()[1])
        if not self._open:
            self._open.append((self._top, os.open(self._top, _FLAGS)))
        at, descriptor = self._open[-1]
        for name in path[len(at) :].split(os.sep):
            if not name:
                continue
            at = os.path.join(at, name)
            below = os.open(name, _FLAGS, dir_fd=descriptor)
            if descriptor != self._open[-1][1]:
                os.close(descriptor)
            if len(self._open) < _MOST_OPEN and self._open[-1][0] == os.path.dirname(at):
                self._open.append((at, below))
            descriptor = below
        return descriptor


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _list_entries(folder: int | str, path: str, wanted: Callable[[str, int], bool]) -> list[FolderEntry]:
    head = path.rstrip(os.sep) + os.sep
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            is_folder = _is_folder(entry)
            name, inode = entry.name, entry.inode()
            if (is_wanted := wanted(name, inode)) or is_folder:
                found.append(FolderEntry(head + name, name, inode, is_folder, entry.is_symlink(), is_wanted))
    return found


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:  # gone, on a file system that does not tell kinds with names
        return False


Stamp = tuple[int, int, int, int, int]

_TICK_NS = 50_000_000
"""Longer than the steps in which any file system counts time: within one, a change leaves no trace."""


def stamp(status: os.stat_result) -> Stamp:
    """What changes with every change of the content. Whoever sets the times cannot set the last of them."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def is_settled(status: os.stat_result) -> bool:
    """Would a change from now on show in the stamp? Only then may what was found be remembered by it."""
    return status.st_ctime_ns + _TICK_NS < time.time_ns()


def read_whole(path: str, most: int, *, follow: bool) -> tuple[bytes, os.stat_result]:
    """All bytes of an ordinary file, as they were at one moment.

    Raises `OSError`, also for what is no ordinary file, has more bytes than `most`, or changed meanwhile.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | (0 if follow else getattr(os, "O_NOFOLLOW", 0)))
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode) or before.st_size > most:
            raise OSError(f"{path} is no ordinary file of at most {most} bytes")
        pieces = []
        left = before.st_size + 1
        while left > 0 and (piece := os.read(descriptor, left)):
            pieces.append(piece)
            left -= len(piece)
        raw = b"".join(pieces)
        if len(raw) != before.st_size or stamp(os.fstat(descriptor)) != stamp(before):
            raise OSError(f"{path} changed while it was read")
        return raw, before
    finally:
        os.close(descriptor)


SLOTS = 256
"""Names share this many lock files, so that none has to be deleted (deleting a lock file is a race)."""


class LockTimeoutError(Exception):
    """Somebody else held the lock for too long."""


class Locks:
    """Locks kept as files in one folder, which every engine of a user shares."""

    def __init__(self, folder: str, *, seconds: float = 10.0) -> None:
        self._folder = folder
        self._seconds = seconds

    @contextlib.contextmanager
    def hold(self, names: Iterable[str]) -> Iterator[None]:
        """Hold all of them at once; they are taken in one order everywhere, so nobody waits in a circle."""
        slots = sorted({_slot(name) for name in names})
        with contextlib.ExitStack() as held:
            for slot in slots:
                held.callback(os.close, self._take(slot))
            yield

    def _take(self, slot: int) -> int:
        path = os.path.join(self._folder, f"{slot:02x}.lock")
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            descriptor = os.open(path, flags, 0o600)
        try:
            self._wait(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _wait(self, descriptor: int) -> None:
        deadline = time.monotonic() + self._seconds
        pause = 0.0005
        while not try_lock(descriptor):
            if time.monotonic() > deadline:
                raise LockTimeoutError(f"another process held the lock for {self._seconds:g} seconds")
            time.sleep(pause * os.urandom(1)[0] / 255)  # spreads the waiters
            pause = min(pause * 1.5, 0.02)


def _slot(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(os.fsencode(name), digest_size=2).digest(), "big") % SLOTS


if sys.platform == "win32":
    import msvcrt

    def try_lock(descriptor: int) -> bool:
        """Take the lock of an open file if it is free; closing the file lets go."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def share_lock(descriptor: int) -> None:
        """Hold the lock of an open file together with others; here there is no such thing."""

else:
    import fcntl

    def try_lock(descriptor: int) -> bool:
        """Take the lock of an open file if it is free; closing the file lets go."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def share_lock(descriptor: int) -> None:
        """Hold the lock of an open file together with others that share it; waits for who holds it alone."""
        fcntl.flock(descriptor, fcntl.LOCK_SH)
