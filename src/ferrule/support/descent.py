"""Going down a tree of folders by descriptors, so that no link leads out of it on the way."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

_BY_DESCRIPTOR = os.scandir in os.supports_fd and os.open in os.supports_dir_fd
_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_MOST_OPEN = 64
"""So many folders on the way stay open: the next one is mostly a neighbour."""


class Entry(NamedTuple):
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

    def entries(self, path: str, wanted: Callable[[str, int], bool]) -> tuple[os.stat_result, list[Entry]]:
        """The folders in a folder, which is the top or below it, and what else is `wanted` by name or inode.

        With them comes what the folder was like before it was read. Raises `OSError`, also where the folder, or one on
        the way to it, is a link.
        """
        if not _BY_DESCRIPTOR:
            return os.lstat(path), _listed(path, path, wanted)
        descriptor = self._descriptor(path)
        try:
            status = os.fstat(descriptor)
            return status, _listed(descriptor, path, wanted)
        finally:
            if descriptor != self._open[-1][1]:
                os.close(descriptor)

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[int]:
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


def _listed(folder: int | str, path: str, wanted: Callable[[str, int], bool]) -> list[Entry]:
    head = path.rstrip(os.sep) + os.sep
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            is_folder = _is_folder(entry)
            name, inode = entry.name, entry.inode()
            if (is_wanted := wanted(name, inode)) or is_folder:
                found.append(Entry(head + name, name, inode, is_folder, entry.is_symlink(), is_wanted))
    return found


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:  # gone, on a file system that does not tell kinds with names
        return False
