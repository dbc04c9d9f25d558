"""What changed in a folder where anything may have, as after a command: its files before and after, compared."""

import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.workspace.languages.documents import Signature

_MOST_ENTRIES = 20_000
_LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", "target", ".tox", ".cache"}
)
"""Folders that are large, and whose files are seldom what was changed."""
_CREATED, _CHANGED, _DELETED = 1, 2, 3


class Inventory:
    """The files of a folder that a server cares for, and how each looked."""

    def __init__(self, folder: str, wanted: Callable[[str], bool]) -> None:
        """Look through it, but through no more of it than is reasonable; links are not followed."""
        self.files: dict[str, Signature] = {}
        self.is_whole = True
        left = _MOST_ENTRIES
        folders = [folder]
        while folders:
            left = self._look(folders.pop(0), folders, wanted, left)
            if left <= 0:
                self.is_whole = False
                return

    def _look(self, folder: str, folders: list[str], wanted: Callable[[str], bool], left: int) -> int:
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    if left <= 0:
                        break
                    if entry.is_dir(follow_symlinks=False):
                        folders += [entry.path] * (entry.name not in _LEFT_OUT)
                    elif wanted(entry.name):
                        seen = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(seen.st_mode):
                            looks = (seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino)
                            self.files[entry.path] = looks
        except OSError:
            pass  # it went away while it was looked at, or is closed to us
        return left

    def news(self, before: "Inventory") -> list[tuple[str, int]]:
        """What the protocol says of each file that came, changed or went since then."""
        old, is_whole = before.files, before.is_whole and self.is_whole
        found = [
            (path, _CHANGED if path in old else _CREATED)
            for path, looks in self.files.items()
            if old.get(path) != looks and (path in old or is_whole)
        ]
        # Where not all of it was seen, nothing is known of what is missing.
        return found + [(path, _DELETED) for path in old if is_whole and path not in self.files]
