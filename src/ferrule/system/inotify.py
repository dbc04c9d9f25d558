"""Hear of changes in folders, by the kernel's own notices. Linux only; elsewhere there are none.

There is a notice of most changes, not of all: of a write through another name of the same file, in a folder that is not
watched, nothing is heard, and network file systems do not tell what other machines do. Who has to know everything looks
at everything from time to time.
"""

import asyncio
import contextlib
import functools
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, getattr(os, "O_CLOEXEC", 0)
_MODIFIED, _MODE_CHANGED, _CLOSED_WRITTEN, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATED, _DELETED, _DELETED_ITSELF, _MOVED_ITSELF = 0x100, 0x200, 0x400, 0x800
_UNMOUNTED, _OVERFLOWN, _IGNORED, _IS_FOLDER = 0x2000, 0x4000, 0x8000, 0x40000000
_ONLY_FOLDERS, _NOT_UNLINKED = 0x01000000, 0x04000000
_EVERYTHING = (
    _MODIFIED | _MODE_CHANGED | _CLOSED_WRITTEN | _MOVED_FROM | _MOVED_TO | _CREATED | _DELETED | _DELETED_ITSELF
) | (_MOVED_ITSELF | _ONLY_FOLDERS | _NOT_UNLINKED)
_HEAD = struct.Struct("iIII")
_CHUNK_BYTES = 1 << 16
_LOCAL = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x794C7630, 0xF2F52010, 0x2FC12FC1, 0xCA451A4E})
"""File systems on which nobody writes but this machine: ext, xfs, btrfs, tmpfs, overlay, f2fs, zfs and bcachefs."""
_KIND_BYTES = 256
"""More than the kernel tells of a file system."""


class InotifyWatch:
    """Calls back, on the running loop, with the names that came into being or were written in its folders."""

    def __init__(self, heard: Callable[[set[str]], None]) -> None:
        """Raises OSError where there are no such notices."""
        self._heard = heard
        self._folders: set[str] = set()
        self._descriptor = _check_result(_library().inotify_init1(_NONBLOCK | _CLOEXEC))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._read)

    def add(self, folders: Iterable[str]) -> None:
        """Hear of these too. One that does not exist, or is one too many, is left out."""
        mask = _CREATED | _MOVED_TO | _CLOSED_WRITTEN | _ONLY_FOLDERS
        for folder in set(folders) - self._folders:
            with contextlib.suppress(OSError):
                _check_result(_library().inotify_add_watch(self._descriptor, os.fsencode(folder), mask))
                self._folders.add(folder)

    def is_here(self) -> bool:
        """Does it call back on the loop that runs now?"""
        try:
            return self._loop is asyncio.get_running_loop()
        except RuntimeError:
            return False

    def close(self) -> None:
        if self._descriptor >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        # There are few of them for each user: one that nobody closed must not be kept by a loop that has ended.
        if getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _CHUNK_BYTES)
        except OSError:
            return
        names = {name for _, _, name in _notices(data)}
        self._heard(names)


class InotifyChanges(NamedTuple):
    """What was heard of since the last time."""

    folders: frozenset[str]
    """Something in these has changed, or they themselves."""
    trees: frozenset[str]
    """These folders came, so that nothing below them was watched."""


class FolderWatch:
    """Remembers in which folders something happens, until it is asked. Not more than one thread at a time."""

    def __init__(self) -> None:
        """Raises OSError where there are no such notices."""
        self._descriptor = _check_result(_library().inotify_init1(_NONBLOCK | _CLOEXEC))
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, tuple[int, int]] = {}
        """By path: the number of the watch, and the inode that it is of."""

    def add(self, folder: int, path: str, inode: int) -> None:
        """Watch an open folder. Raises OSError where that cannot be done."""
        known = self._numbers.get(path)
        if known is not None and known[1] == inode:
            return
        number = _check_result(
            _library().inotify_add_watch(self._descriptor, b"/proc/self/fd/%d" % folder, _EVERYTHING)
        )
        if (before := self._paths.get(number)) is not None:
            self._numbers.pop(before, None)  # it was moved here
        self._paths[number], self._numbers[path] = path, (number, inode)

    def drop(self, path: str) -> None:
        """Watch a folder no more, which is gone."""
        number, _ = self._numbers.pop(path, (-1, 0))
        if self._paths.pop(number, None) is not None:
            _library().inotify_rm_watch(self._descriptor, number)

    def read(self) -> InotifyChanges | None:
        """What was heard since the last time; None where that is not all that there was to hear."""
        folders: set[str] = set()
        trees: set[str] = set()
        is_all = True
        while data := self._chunk():
            for number, mask, name in _notices(data):
                is_all = is_all and not mask & (_OVERFLOWN | _UNMOUNTED)
                path = self._paths.get(number)
                if path is None:
                    continue
                folders.add(path)
                if name and mask & _IS_FOLDER:
                    came = mask & (_MOVED_TO | _CREATED)
                    (trees if came else folders).add(os.path.join(path, name))
                if mask & _IGNORED:
                    self._forget(number, path)
        return InotifyChanges(frozenset(folders), frozenset(trees)) if is_all else None

    def _chunk(self) -> bytes:
        try:
            return os.read(self._descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return b""

    def _forget(self, number: int, path: str) -> None:
        del self._paths[number]
        if self._numbers.get(path, (-1, 0))[0] == number:
            del self._numbers[path]

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    __del__ = close


def is_heard_of(folder: int) -> bool:
    """Is an open folder on a file system of which the kernel hears every change?"""
    import ctypes  # for sessions that run commands

    room = ctypes.create_string_buffer(_KIND_BYTES)
    try:
        _check_result(_library().fstatfs(folder, room))
    except OSError:
        return False
    return ctypes.c_long.from_buffer(room).value & 0xFFFFFFFF in _LOCAL


def _notices(data: bytes) -> Iterator[tuple[int, int, str]]:
    """The number of the watch, what has happened, and the name of what it happened to."""
    at = 0
    while at + _HEAD.size <= len(data):
        number, mask, _, size = _HEAD.unpack_from(data, at)
        yield number, mask, os.fsdecode(data[at + _HEAD.size : at + _HEAD.size + size].rstrip(b"\0"))
        at += _HEAD.size + size


@functools.cache
def _library() -> Any:
    import ctypes  # for sessions that run commands

    if sys.platform != "linux":
        raise OSError("The system has no inotify.")
    return ctypes.CDLL(None, use_errno=True)


def _check_result(result: int) -> int:
    if result < 0:
        import ctypes  # loaded by now

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
