"""Hear at once of changes in a few folders, by the kernel's own notices. Linux only; elsewhere there are none."""

import asyncio
import contextlib
import functools
import os
import struct
import sys
from collections.abc import Callable, Iterable
from typing import Any

_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, getattr(os, "O_CLOEXEC", 0)
_CREATED, _MOVED_TO, _CLOSED_WRITTEN, _ONLY_FOLDERS = 0x100, 0x80, 0x8, 0x01000000
_HEAD = struct.Struct("iIII")
_CHUNK_BYTES = 1 << 16


class Watch:
    """Calls back, on the running loop, with the names that came into being or were written in its folders."""

    def __init__(self, heard: Callable[[set[str]], None]) -> None:
        """Raises OSError where there are no such notices."""
        self._heard = heard
        self._folders: set[str] = set()
        self._descriptor = _checked(_library().inotify_init1(_NONBLOCK | _CLOEXEC))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._descriptor, self._read)

    def add(self, folders: Iterable[str]) -> None:
        """Hear of these too. One that does not exist, or is one too many, is left out."""
        mask = _CREATED | _MOVED_TO | _CLOSED_WRITTEN | _ONLY_FOLDERS
        for folder in set(folders) - self._folders:
            with contextlib.suppress(OSError):
                _checked(_library().inotify_add_watch(self._descriptor, os.fsencode(folder), mask))
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
        names: set[str] = set()
        at = 0
        while at + _HEAD.size <= len(data):
            size = _HEAD.unpack_from(data, at)[3]
            names.add(os.fsdecode(data[at + _HEAD.size : at + _HEAD.size + size].rstrip(b"\0")))
            at += _HEAD.size + size
        self._heard(names)


@functools.cache
def _library() -> Any:
    import ctypes  # for sessions that run commands

    if sys.platform != "linux":
        raise OSError("The system has no inotify.")
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        import ctypes  # loaded by now

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
