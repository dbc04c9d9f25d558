"""What changed in a folder where anybody may have changed anything: its files before and after, compared."""

import asyncio
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
_EVERY_SECONDS = 2.0
"""Who asks within so long is answered from what was seen last: what changes a project unseen is hardly faster."""
_PATIENCE_SECONDS = 0.1
"""So long a question waits for a look. What a longer one finds is told with the next question."""


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


class Lookout:
    """Looks through a project now and then, in a thread, and says what became of its files meanwhile."""

    def __init__(self, folder: str, wanted: Callable[[str], bool]) -> None:
        self._folder = folder
        self._wanted = wanted
        self._looks: list[asyncio.Task[Inventory]] = []
        """The one that the server's knowledge is from, and those after it that were not told yet."""
        self._looked_at = 0.0
        """When the last one was begun, by the clock of the loop."""

    def begin(self) -> None:
        """The server is being started: behind everybody's back the project is looked through as it is now."""
        self.end()
        self._look()

    def end(self) -> None:
        """The server was ended."""
        for look in self._looks:
            look.cancel()
        self._looks = []

    async def news(self, *, is_sure: bool = False) -> dict[str, int]:
        """What came, changed or went since it was told last; where something surely did, it is waited for."""
        looks = self._looks
        is_due = asyncio.get_running_loop().time() - self._looked_at >= _EVERY_SECONDS
        # One at a time: where a look takes long, more of them would only make it longer.
        if not looks or not (is_sure or (is_due and looks[-1].done()) or any(look.done() for look in looks[1:])):
            return {}
        if is_sure or (is_due and looks[-1].done()):
            self._look()
            await asyncio.wait(looks, timeout=None if is_sure else _PATIENCE_SECONDS)
        last = max(number for number, look in enumerate(looks) if number == 0 or look.done())
        if looks is not self._looks or not last or not looks[0].done():
            return {}  # the server was ended meanwhile, or nobody has finished yet
        before, now = looks[0].result(), looks[last].result()
        found = await asyncio.to_thread(now.news, before)
        if looks is not self._looks:
            return {}
        del looks[:last]
        return dict(found)

    def _look(self) -> None:
        self._looked_at = asyncio.get_running_loop().time()
        self._looks.append(asyncio.create_task(asyncio.to_thread(Inventory, self._folder, self._wanted)))
