"""Places for files that must not come into being: what is not there can be protected only by a mount over its name.

A mount needs something to lie on, so the name must exist for as long as the command runs. Of all that could be put
there an empty folder does the least harm: version control does not see it, a program that looks for a file finds
none, and taking it away again (`rmdir`) cannot lose anything, whoever has written to it meanwhile. The alternatives:
a filter in the kernel that knows names needs the machine's root, one in user space costs every system call a round
trip, and looking afterwards is too late.

The folder's mode is its mark. Whoever uses it holds a shared lock, and the last one removes it. If everything is
killed at once it stays, marked, and the next command that protects the same name takes it along.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ferrule.support.sandbox.layout import ways

PRIVATE = (b"/tmp", b"/var/tmp", b"/run")
"""The places that are empty to begin with."""
MODE = 0o1500
"""Nobody makes such folders by chance, and `mkdir` sets it at once."""

Branch: TypeAlias = "dict[bytes, Branch | None]"
"""Names in a folder: None for what is to be kept as it is, or what hangs below."""
_HOPELESS = (errno.EACCES, errno.EPERM, errno.EROFS)


class Order(NamedTuple):
    """A profile's paths in the order in which they are worked through."""

    writable: tuple[bytes, ...]
    kept: tuple[tuple[bytes, Branch], ...]
    """For each writable folder what is to be kept below it."""
    masked: tuple[bytes, ...]
    shown: tuple[bytes, ...] = ()
    """What can be read of the private places."""
    held: tuple[bytes, ...] = ()
    """The folders that lead to what is masked, and are not yet mounts because of what is kept."""
    closed: tuple[bytes, ...] = ()
    """Those that cannot be written, because too many of those are below."""


class Points(NamedTuple):
    """What was done for the absent files of one command."""

    made: list[bytes]
    refused: list[bytes]
    """Those that cannot be made; their folders cannot be written."""


def ordered(writable: list[bytes], kept: list[bytes], masked: list[bytes], shown: list[bytes]) -> Order:
    """Check the paths and sort them. Raises OSError for those that cannot be enforced."""
    for path in (*writable, *kept, *masked, *shown):
        if not path.startswith(b"/") or path != os.path.normpath(path):
            raise OSError(errno.EINVAL, "A path of the profile is not absolute.", path)
    roots = sorted(set(writable))
    if b"/" in roots:
        raise OSError(errno.EINVAL, "The whole machine cannot be made writable.", b"/")
    for path in masked:
        for root in roots:
            if root == path or root.startswith(path.rstrip(b"/") + b"/"):
                raise OSError(errno.EINVAL, "A writable folder lies in one that is hidden.", path)
    branches: dict[bytes, Branch] = {}
    for path in sorted(set(kept)):
        around = [root for root in roots if path == root or path.startswith(root + b"/")]
        if not around:
            continue  # outside of the writable folders everything is kept
        root = max(around, key=len)
        if path == root:
            raise OSError(errno.EINVAL, "A folder cannot be both writable and kept.", path)
        _hang(branches.setdefault(root, {}), path[len(root) + 1 :].split(b"/"))
    held, closed = ways(map(os.fsdecode, masked), [os.fsdecode(root) for root in roots])
    return Order(
        tuple(roots),
        tuple(branches.items()),
        tuple(sorted(set(masked))),
        tuple(path for path in sorted(set(shown)) if _is_private(path) and not _within(path, (*roots, *masked))),
        tuple(path for path in map(os.fsencode, held) if not _is_held(path, roots, branches)),
        tuple(map(os.fsencode, closed)),
    )


def _within(path: bytes, folders: Iterable[bytes]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip(b"/") + b"/") for folder in folders)


def _is_private(path: bytes) -> bool:
    return path not in PRIVATE and _within(path, PRIVATE)


def _is_held(path: bytes, roots: Sequence[bytes], branches: Mapping[bytes, Branch]) -> bool:
    """Is a folder in one that is kept, or itself on the way to something that is?"""
    root = max((root for root in roots if _within(path, [root])), key=len)
    below: Branch | None = branches.get(root, {})
    for name in path[len(root) + 1 :].split(b"/"):
        if below is None:
            return True
        if name not in below:
            return False
        below = below[name]
    return True


def _hang(branch: Branch, names: list[bytes]) -> None:
    *way, last = names
    for name in way:
        below = branch.setdefault(name, {})
        if below is None:
            return  # a folder on the way is kept as a whole
        branch = below
    branch[last] = None


def make(host: bytes, order: Order) -> Points:
    """Put a folder wherever something that is to be kept does not exist; `host` is where the machine's files lie."""
    points = Points([], [])
    for root, branch in order.kept:
        folder = os.open(host + root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _make(folder, root, branch, points)
        finally:
            os.close(folder)
    return points


def _make(folder: int, path: bytes, branch: Branch, points: Points) -> None:
    for name, below in branch.items():
        whole = path + b"/" + name
        try:
            state = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            try:
                os.mkdir(name, MODE, dir_fd=folder)
            except FileExistsError:
                continue  # someone was faster; the command's own look decides
            except OSError as error:
                if error.errno not in _HOPELESS:
                    raise
                points.refused.append(whole)
            else:
                points.made.append(whole)
            continue
        if is_point(state):
            points.made.append(whole)
        elif below is not None and stat.S_ISDIR(state.st_mode):
            inner = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                _make(inner, whole, below, points)
            finally:
                os.close(inner)


def is_point(state: os.stat_result) -> bool:
    return state.st_mode == stat.S_IFDIR | MODE


def clear(host: bytes, made: list[bytes]) -> None:
    """Remove those folders that nobody uses any more."""
    for path in made:
        # Gone, used by another command, or no longer empty: then it is not ours to remove.
        with contextlib.suppress(OSError):
            lock = os.open(host + path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if is_point(os.fstat(lock)):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.rmdir(host + path)
            finally:
                os.close(lock)
