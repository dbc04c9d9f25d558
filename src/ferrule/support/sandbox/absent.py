"""Holding the place of a path that does not exist, so that a confined command cannot put something there.

A mount needs something to lie on. For a path that does not exist this is an empty folder, made for the time of the
command: version control does not see it, and nothing is read from it. Its mode says that it is ours, so what a killed
engine left is known and taken away by the next one. It is locked while a command needs it: to remove it earlier would
lift the mounts of the others. The commands of one process share the lock: hundreds of them would otherwise run out of
open files.
"""

import os
import stat
import threading
from collections.abc import Iterable, Sequence

_MODE = 0o1500
"""A folder of ours. Nobody gives this mode to an empty folder by accident."""
_TRIES = 16


class _Place:
    """One folder that is held, by one command or by several."""

    def __init__(self, path: str, parent: int, folder: int) -> None:
        self.path = path
        self.name = os.path.basename(path)
        self.parent = parent
        self.folder = folder
        self.holders = 1

    def is_there(self) -> bool:
        """Is it still what lies at its path, and ours?"""
        try:
            now = os.lstat(self.path)
        except OSError:
            return False
        return os.path.samestat(os.fstat(self.folder), now) and _is_ours(now)


_places: dict[str, _Place] = {}
"""What this process holds, by path."""
_changing = threading.Lock()


def first_absent(path: str, *, below: str = os.sep) -> str:
    """The first part of the path below a folder at which nothing is, or at which only a placeholder of ours is."""
    parts = path[len(below.rstrip(os.sep)) :].strip(os.sep).split(os.sep)
    for count in range(1, len(parts)):
        upper = os.path.join(below, *parts[:count])
        if not os.path.lexists(upper) or ours(upper):
            return upper
    return path


def ours(path: str) -> bool:
    """Is this a placeholder, held or left over?"""
    try:
        found = os.lstat(path)
        return stat.S_ISDIR(found.st_mode) and _is_ours(found) and not os.listdir(path)
    except OSError:
        return False


def is_placeholder(entry: "os.DirEntry[str]") -> bool:
    """Is it here only for the time of a command? Whoever lists a folder leaves it out."""
    try:
        return entry.is_dir(follow_symlinks=False) and _is_ours(entry.stat(follow_symlinks=False))
    except OSError:
        return False


class Held:
    """Placeholders at some paths, until they are let go."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Raises OSError, and holds none, where one of them cannot be had."""
        self._places: list[_Place] = []
        self.paths: Sequence[str] = ()
        """Where a placeholder is. Where nobody can make anything, none is needed."""
        held: list[str] = []
        try:
            with _changing:
                for path in paths:
                    place = _shared(path) or _hold(path)
                    if place is not None:
                        self._places.append(place)
                        held.append(path)
        except BaseException:
            self.release()
            raise
        self.paths = tuple(held)

    def release(self) -> None:
        """Remove those that nobody else holds and that are still empty. A second time does nothing."""
        with _changing:
            while self._places:
                _let_go(self._places.pop())


def _is_ours(found: os.stat_result) -> bool:
    return stat.S_IMODE(found.st_mode) == _MODE and found.st_uid == os.geteuid()


def _shared(path: str) -> _Place | None:
    """The placeholder that another command of this process holds there, which now has a holder more."""
    place = _places.get(path)
    if place is None or not place.is_there():
        return None
    place.holders += 1
    return place


def _hold(path: str) -> _Place | None:
    """The placeholder at that path, made or found, and locked."""
    upper, name = os.path.split(path)
    parent = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    folder = None
    try:
        folder = _taken(parent, name)
    finally:
        if folder is None:
            os.close(parent)
    if folder is None:
        return None
    place = _places[path] = _Place(path, parent, folder)
    return place


def _let_go(place: _Place) -> None:
    place.holders -= 1
    if place.holders:
        return
    if _places.get(place.path) is place:
        del _places[place.path]
    try:
        _remove(place.parent, place.name, place.folder)
    finally:
        os.close(place.folder)
        os.close(place.parent)


def _taken(parent: int, name: str) -> int | None:
    for _ in range(_TRIES):
        if not _made(parent, name):
            return None
        folder = _locked(parent, name)
        if folder is not None:
            return folder
    raise OSError(f"Something keeps changing at {name}: it cannot be protected.")


def _made(parent: int, name: str) -> bool:
    """Is there a folder now? There is none where this user could not put anything either."""
    try:
        os.mkdir(name, _MODE, dir_fd=parent)
    except FileExistsError:
        return True
    except OSError:
        # The owner of a folder can give the permission back to itself; anybody else cannot.
        if os.fstat(parent).st_uid == os.geteuid() and not os.fstatvfs(parent).f_flag & os.ST_RDONLY:
            raise
        return False
    return True


def _locked(parent: int, name: str) -> int | None:
    """The folder, locked against removal; None where it is gone again or just being removed."""
    import fcntl  # only where something must be held; there is none on Windows

    try:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        found = os.fstat(folder)
        now = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if _is_ours(found) and (found.st_dev, found.st_ino) == (now.st_dev, now.st_ino):
            return folder
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(folder)
        raise
    os.close(folder)
    return None


def _remove(parent: int, name: str, folder: int) -> None:
    import fcntl

    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found, now = os.fstat(folder), os.stat(name, dir_fd=parent, follow_symlinks=False)
        if (found.st_dev, found.st_ino) == (now.st_dev, now.st_ino) and _is_ours(now):
            os.rmdir(name, dir_fd=parent)
    except OSError:
        return  # somebody else holds it, or it is no longer empty, or no longer there
