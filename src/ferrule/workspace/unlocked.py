"""Files and folders that their owner has closed, opened for a moment: what a mode forbids can still be looked at.

A mode keeps others out; the owner can change it at any time. Whoever puts things back has to read and write behind a
mode that a command has set, and leaves the mode as it was.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Self

from ferrule.support.beneath import Folder

_PLACE = getattr(os, "O_PATH", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
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
        current = os.open(root, _FOLDER)
        try:
            for part in parts:
                opened = self.open_up(part, current) or opened
                below = os.open(part, _FOLDER, dir_fd=current)
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
