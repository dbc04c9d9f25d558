"""What commands must not touch of the folders that they may write: looked for whenever one starts."""

import asyncio
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferrule.workspace.guarded import Guard

MOST_ENTRIES = 20_000
_SKIPPED = frozenset({"node_modules", ".venv", "venv", "target", "__pycache__", ".tox", ".mypy_cache", "objects"})
_DEEPEST = 6
_FRESH_SECONDS = 2.0
_FEW = 1_000
"""So many entries are looked at in less time than a thread would be worth."""
_GIT = ("hooks", "config", "config.worktree", "commondir")
"""What git obeys of a repository."""


class Found(NamedTuple):
    """What is there."""

    secret: tuple[str, ...]
    protected: tuple[str, ...]
    incomplete: bool
    """Was there too much to look at all of it?"""


class Precious:
    """Looks for secret and protected files, and remembers the secret ones: a flood of others must not hide them."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._known: set[str] = set()
        self._at = float("-inf")
        self._found = Found((), (), incomplete=False)
        self._entries = MOST_ENTRIES
        """How many there were when they were looked at last."""
        self._lock = threading.Lock()

    async def look_ahead(self, folders: Sequence[str]) -> None:
        """Have what `find` is about to tell; away from the event loop, where there is much to look at."""
        if self._entries > _FEW and not self._is_fresh:
            await asyncio.to_thread(self.find, folders)

    def find(self, folders: Sequence[str], *, fresh: bool = False) -> Found:
        """What is there now, or, without `fresh`, was two seconds ago."""
        with self._lock:
            if fresh or not self._is_fresh:
                self._found = self._look(folders)
                self._at = time.monotonic()
            return self._found

    @property
    def _is_fresh(self) -> bool:
        return time.monotonic() - self._at <= _FRESH_SECONDS

    def _look(self, folders: Sequence[str]) -> Found:
        protected: list[str] = []
        left = MOST_ENTRIES
        for folder in folders:
            for entry in _entries(folder, left, self._known):
                left -= 1
                protected += _obeyed(entry)
                if self._guard.secret(entry.path):
                    # A link to a folder would hide that folder, which may be any, from every later command.
                    if not (entry.is_symlink() and entry.is_dir()):
                        self._known.add(entry.path)
                elif self._guard.protected(entry.path) and not _is_gits_own(entry):
                    protected.append(entry.path)
        self._entries = MOST_ENTRIES - left
        self._known = {path for path in self._known if os.path.lexists(path)}
        return Found(tuple(sorted(self._known)), tuple(protected), left <= 0)


def _entries(folder: str, most: int, closed: set[str]) -> "Iterator[os.DirEntry[str]]":
    """What lies below a folder, level by level, but not in folders that only programs fill.

    A folder that cannot be looked into is `closed`: what it hides must not be read either.
    """
    level, seen = [folder], 0
    for _ in range(_DEEPEST):
        below: list[str] = []
        for one in level:
            try:
                with os.scandir(one) as entries:
                    for entry in entries:
                        seen += 1
                        if seen > most:
                            return
                        yield entry
                        if entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED:
                            below.append(entry.path)
            except PermissionError:
                closed.add(one)
            except OSError:
                continue  # it is gone
        level = below


def _is_gits_own(entry: "os.DirEntry[str]") -> bool:
    """Is it a part of a repository that git itself has to write? What it obeys there is kept by name."""
    if ".git" not in entry.path.split(os.sep):
        return False
    if entry.name == ".git":
        return entry.is_dir(follow_symlinks=False)  # a file leads to the settings that count
    return entry.name not in _GIT


def _obeyed(entry: "os.DirEntry[str]") -> list[str]:
    """What git obeys of the repository whose HEAD this is, there or not: those of submodules lie inside of others."""
    if entry.name != "HEAD":
        return []
    folder = os.path.dirname(entry.path)
    if not os.path.isdir(os.path.join(folder, "objects")):
        return []
    # Git reads a `commondir` wherever there is one: nothing can be put in the place of one that is not there.
    paths = [os.path.join(folder, name) for name in _GIT]
    return [path for path in paths if not path.endswith("commondir") or os.path.lexists(path)]


def _hooks(folder: str) -> list[str]:
    """The folder of hooks that the settings of the repository name, if they do."""
    try:
        with open(os.path.join(folder, ".git", "config"), encoding="utf-8", errors="replace") as file:
            named = re.findall(r"(?im)^\s*hookspath\s*=\s*\"?([^\"\n#;]+)", file.read(1 << 20))
    except OSError:
        return []
    return [os.path.normpath(os.path.join(folder, os.path.expanduser(name.strip()))) for name in named]


def kept(folder: str, names: Sequence[str]) -> Iterator[str]:
    """What is kept of a writable folder, by name; where a name is a link, what it leads to as well."""
    named = [name for name in names if not name.startswith(".git/") or os.path.isdir(os.path.join(folder, ".git"))]
    for path in (*(os.path.join(folder, name) for name in named), *_hooks(folder)):
        yield path
        # None of the names has more than two parts.
        if os.path.islink(path) or os.path.islink(os.path.dirname(path)):
            yield os.path.realpath(path)
