"""What no checkpoint keeps: where it lies, and the words for losing it."""

import itertools
import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.loose import texts
from ferrule.workspace.remade import BESIDE, CACHES, HOLDING, REMADE

LeftOut = Callable[[str], bool]
"""Does no checkpoint keep what lies there?"""

MOST = 5_000
"""In a folder with more entries, looking takes longer than a question."""
NAMES = frozenset(name.rpartition("/")[2] for name in (*REMADE, *BESIDE, *HOLDING))
"""What folders are called that a tool makes."""
LOST_HERE = "which no checkpoint keeps"


class Found(NamedTuple):
    """What a look below a folder has come upon."""

    path: str = ""
    """The first that no checkpoint keeps; empty where there is none."""
    is_cut: bool = False
    """Was there too much to look at?"""


def _any(_: str) -> bool:
    return True


def _none(_: str) -> bool:
    return False


class Budget:
    """How much may still be looked at for one command line."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self) -> bool:
        """One more; is anything left?"""
        self.left = max(0, self.left - 1)
        return self.left > 0


class Unkept(NamedTuple):
    """What no checkpoint keeps of a workspace."""

    left_out: LeftOut
    roots: tuple[str, ...]
    budget: Budget

    def inside(self, path: str) -> bool:
        real = os.path.realpath(path)
        return any(within(real, root) for root in self.roots)

    def below(self, folder: str, *, only: Callable[[str], bool] = _any, keeps: Callable[[str], bool] = _none) -> Found:
        """The first below a folder, outermost first; `only` some paths count, and what somebody `keeps` does not.

        Caches come again by themselves: they are no reason to ask, unless `only` is about their name.
        """
        for path, is_out in self._each(folder, keeps):
            if not path:
                return Found(is_cut=True)
            if is_out and only(path) and (only is not _any or os.path.basename(path) not in CACHES):
                return Found(path)
        return Found()

    def every(self, folder: str, *, keeps: Callable[[str], bool] = _none, most: int) -> list[str]:
        """All below a folder, as far as there is not too much; caches are no reason to ask."""
        found = (path for path, is_out in self._each(folder, keeps) if is_out and os.path.basename(path) not in CACHES)
        return list(itertools.islice(found, most))

    def homes(self, folder: str, most: int) -> list[str]:
        """The folders below one in which something lies that no checkpoint keeps."""
        return list(dict.fromkeys(map(os.path.dirname, self.every(folder, most=most))))

    def _each(self, folder: str, keeps: Callable[[str], bool]) -> Iterator[tuple[str, bool]]:
        """Each path, and whether it is left out; an empty one where there is too much. Below those nobody looks."""
        seen = 0
        folders = [folder]
        for one in folders:  # grows on the way
            try:
                entries = sorted(os.scandir(one), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                seen += 1
                if seen > MOST or not self.budget.spend():
                    yield "", False
                    return
                if keeps(entry.path):
                    continue
                is_out = self.left_out(entry.path)
                yield entry.path, is_out
                if entry.is_dir(follow_symlinks=False) and not is_out:
                    folders.append(entry.path)


def spellings(cwd: str, word: Word) -> list[str]:
    """The paths that a word may become, as far as that is known; a slash at the end of a glob finds folders."""
    bare = word if word.known else word._replace(text=word.text.rstrip("/") or "/")
    return list(texts(cwd, bare))


def deletes(path: str, *, is_sure: bool = True) -> str:
    return f"{'deletes' if is_sure else 'may delete'} {path}, {LOST_HERE}"


def overwrites(path: str, *, is_sure: bool = True) -> str:
    return f"{'overwrites' if is_sure else 'may overwrite'} {path}, {LOST_HERE}"


def changes_git(path: str) -> str:
    return f"changes {path} in place, where git keeps its objects and checkpoints rely on them"


def too_large(folder: str) -> str:
    return f"deletes {folder}, which is too large to be looked through"


def doubted(why: str) -> str:
    """The same where it is not certain."""
    for sure, maybe in (("deletes ", "may delete "), ("overwrites ", "may overwrite "), ("changes ", "may change ")):
        if why.startswith(sure):
            return maybe + why[len(sure) :]
    return why


def in_cache(path: str) -> bool:
    """Does it lie in a folder that a run makes anew by itself, and that holds nothing that anybody wrote?

    A folder of byte code counts only as long as there is nothing else in it.
    """
    folder, name = path, os.path.basename(path)
    while name and name not in CACHES:
        folder = os.path.dirname(folder)
        name = os.path.basename(folder)
    if not name or os.path.islink(folder):
        return False
    if name != "__pycache__":
        return True
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return len(names) < MOST and all(one.endswith((".pyc", ".pyo")) or re.search(r"\.pyc\.\d+$", one) for one in names)


def is_pinned(path: str) -> bool:
    """Is it one of the files in which git keeps its objects? Checkpoints may share them, as they are."""
    folder = os.path.dirname(path)
    while os.path.dirname(folder) != folder:
        git = os.path.dirname(folder)
        if os.path.basename(folder) == "objects" and os.path.lexists(os.path.join(git, "HEAD")):
            return True
        folder = git
    return False
