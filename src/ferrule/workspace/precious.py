"""What commands must not touch of the folders that they may write: looked for whenever one starts.

Every folder is walked, however deep and however many there are, by descriptors and through no link. What was found in
a folder is remembered as long as the folder is the same, so that a later look only asks each folder whether it is.
"""

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ferrule.support.descent import Descent, Entry
from ferrule.support.stamp import Stamp, is_settled, stamp
from ferrule.workspace.committed import State
from ferrule.workspace.git_exclude import exclude_files
from ferrule.workspace.guarded import Guard
from ferrule.workspace.shown_instead import ShownInstead

_GIT = ("hooks", "config", "config.worktree", "commondir")
"""What git obeys of a repository."""
_STEERING = frozenset({"HEAD", "config", "config.worktree"})
"""Names that tell a repository, or its settings, whatever its folder is called."""
_FRESH_SECONDS = 2.0
_FRESH_TIMES = 20
"""So many times as long as it took, what was found is told again: looking costs little of what commands cost."""
_FEW = 200
"""So many folders are looked at in less time than a thread would be worth."""
_MOST_SECONDS = 60.0
_MOST_PATH_BYTES = 4_000
"""What has a longer path can be neither masked nor kept by it; the folder above is masked."""
_ROUNDS = 6
"""So often it is looked again, where something moved meanwhile."""


class Found(NamedTuple):
    """What is there."""

    secret: tuple[str, ...]
    """What no command is to see."""
    protected: tuple[str, ...]
    incomplete: bool
    """Could not all of it be looked at?"""
    replaced: tuple[tuple[str, str], ...] = ()
    """Files that differ from what is committed, each with a file that has the committed bytes: commands see those."""
    excludes: tuple[tuple[str, str], ...] = ()
    """Exclude files of repositories, each with one that names the secret files too: commands see those."""


class _Folder(NamedTuple):
    """What was found in a folder."""

    stamp: Stamp | None
    """None where it may change without a trace, and has to be looked at again."""
    folders: tuple[str, ...]
    marked: tuple[Entry, ...]
    """What may be secret or protected, by its name, its place or a rule."""


class Precious:
    """Looks for secret and protected files, and remembers the secret ones: a new name must not uncover them."""

    def __init__(self, guard: Guard, folder: str = "") -> None:
        """`folder` is where the files are kept that commands see instead; without one, they see nothing there."""
        self._guard = guard
        self._instead = ShownInstead(folder) if folder else None
        self._folders: dict[str, _Folder] = {}
        self._inodes: dict[int, tuple[int, int, int]] = {}
        """Secret files that were found → device, size and time of the content: another name makes no other file."""
        self._targets: set[str] = set()
        """What links with secret names led to."""
        self._asked: tuple[str, ...] = ()
        self._until = float("-inf")
        self._rules = -1
        self._found = Found((), (), incomplete=False)
        self._lock = threading.Lock()

    @property
    def is_small(self) -> bool:
        """Is there so little to look at that it takes no time to speak of?"""
        return 0 < len(self._folders) <= _FEW

    async def look_ahead(self, folders: Sequence[str]) -> None:
        """Look anew for what `find` is about to tell; away from the event loop, where there is much to look at."""
        if self.is_small:
            self.find(folders, fresh=True)
        else:
            await asyncio.to_thread(self.find, folders, fresh=True)

    def find(self, folders: Sequence[str], *, fresh: bool = False) -> Found:
        """What is there now, or, without `fresh`, was a moment ago."""
        with self._lock:
            if fresh or not self._is_fresh(folders):
                began = time.monotonic()
                self._found = self._look(folders, began + _MOST_SECONDS)
                ended = time.monotonic()
                self._asked = tuple(folders)
                self._until = ended + min(_FRESH_SECONDS, _FRESH_TIMES * (ended - began))
            return self._found

    def close(self) -> None:
        """Remove the files that were kept to be shown."""
        if self._instead is not None:
            self._instead.close()

    def _is_fresh(self, folders: Sequence[str]) -> bool:
        return time.monotonic() <= self._until and self._asked == tuple(folders) and self._rules == self._guard.rules()

    def _look(self, folders: Sequence[str], until: float) -> Found:
        if self._rules != self._guard.rules():
            self._folders.clear()
            self._rules = self._guard.rules()
        for _ in range(_ROUNDS):
            walk = _Walk(self._guard, self._folders, self._inodes, until)
            for folder in folders:
                walk.walk(folder)
            if not walk.has_moved or walk.incomplete:
                break
        self._folders = walk.found
        # From here on commands run: what they make, or commit, is not what was committed when the session began.
        marked = [entry for one in walk.found.values() for entry in one.marked]
        self._guard.committed.seal(os.path.dirname(entry.path) for entry in marked if entry.name == ".git")
        with self._guard.committed.reading():
            return self._judged(folders, marked, walk)

    def _judged(self, folders: Sequence[str], marked: Sequence[Entry], walk: "_Walk") -> Found:
        """What is to become of everything that was found."""
        secret, protected = set(walk.closed), []
        replaced: dict[str, str] = {}
        for entry in marked:
            protected += _obeyed(entry)
            hidden = self._hidden(entry)
            if hidden is not None:
                path, state = hidden
                if shown := self._shown_instead(path, state):
                    replaced[path] = shown
                else:
                    secret.add(path)
            elif self._guard.protected(entry.path) and not _is_gits_own(entry):
                protected.append(entry.path)
        for path in sorted(self._targets):
            if os.path.isfile(path) and (state := self._guard.veiled(path)) is not None:
                if shown := self._shown_instead(path, state):
                    replaced[path] = shown
                else:
                    secret.add(path)
        there = tuple(sorted(path for path in secret if os.path.lexists(path)))
        for path in there:
            self._remember(path)
        return Found(
            there,
            tuple(protected),
            walk.incomplete or walk.has_moved,
            tuple(sorted(replaced.items())),
            self._excludes(folders, marked, there),
        )

    def _excludes(
        self, folders: Sequence[str], marked: Sequence[Entry], secret: Sequence[str]
    ) -> tuple[tuple[str, str], ...]:
        """The exclude files of repositories with secret files, each with what commands see instead."""
        if self._instead is None or not secret:
            return ()
        tops = {os.path.dirname(entry.path) for entry in marked if entry.name == ".git"}
        files = exclude_files(folders, tops, secret)
        shown = ((path, self._instead.contents(raw)) for path, raw in sorted(files.items()))
        return tuple((path, file) for path, file in shown if file)

    def _hidden(self, entry: Entry) -> tuple[str, State | None] | None:
        """The path that commands must not see as it is, and what is committed there; None where they may."""
        if entry.is_link:
            # A link to a folder would hide that folder, which may be any, from every later command.
            if not self._guard.secret(entry.path) or os.path.isdir(entry.path):
                return None
            target = os.path.realpath(entry.path)
            self._targets.add(target)
            state = self._guard.veiled(target)
            return None if state is None else (target if state.blob else entry.path, state)
        if entry.is_folder:
            return (entry.path, None) if self._guard.is_folder_hidden(entry.path) else None
        state = self._guard.hidden(entry.path)
        if state is None and self._is_known(entry):
            state = self._guard.veiled(entry.path)
        return None if state is None else (entry.path, state)

    def _shown_instead(self, path: str, state: State | None) -> str:
        """A file that holds the committed bytes; empty where there is none to show."""
        if self._instead is None or state is None or not state.blob:
            return ""
        return self._instead.committed(state, lambda: self._guard.committed.committed_bytes(path, state))

    def _remember(self, path: str) -> None:
        try:
            status = os.lstat(path)
        except OSError:
            return
        self._inodes[status.st_ino] = (status.st_dev, status.st_size, status.st_mtime_ns)

    def _is_known(self, entry: Entry) -> bool:
        """Is it a file that was secret under another name?"""
        if entry.inode not in self._inodes:
            return False
        try:
            status = os.lstat(entry.path)
        except OSError:
            return False
        return self._inodes[entry.inode] == (status.st_dev, status.st_size, status.st_mtime_ns)


class _Walk:
    """One look at everything below some folders."""

    def __init__(
        self, guard: Guard, known: dict[str, _Folder], inodes: dict[int, tuple[int, int, int]], until: float
    ) -> None:
        self._guard = guard
        self._known = known
        self._inodes = inodes
        self._until = until
        self.found: dict[str, _Folder] = {}
        self.closed: set[str] = set()
        """Folders that cannot be looked into: what they hide must not be read either."""
        self.incomplete = False
        self.has_moved = False
        """Was something there and, a moment later, was not?"""

    def walk(self, top: str) -> None:
        """Look at a folder and all below it."""
        known, found, lstat = self._known.get, self.found, os.lstat
        with Descent(top) as descent:
            left = [top]
            while left:
                path = left.pop()
                if path in found:
                    continue
                one = known(path)
                try:
                    if one is None or one.stamp is None or one.stamp != stamp(lstat(path)):
                        one = self._scanned(path, descent)
                except OSError as error:
                    one = None
                    self._failed(path, error)
                if one is not None:
                    found[path] = one
                    left += one.folders

    def _scanned(self, path: str, descent: Descent) -> _Folder | None:
        if time.monotonic() > self._until:
            raise TimeoutError
        if len(os.fsencode(path)) > _MOST_PATH_BYTES:
            self.closed.add(path)
            return None
        status, entries = descent.entries(path, self._marks(path))
        return _Folder(
            stamp(status) if is_settled(status) else None,
            tuple(entry.path for entry in entries if entry.is_folder),
            tuple(entry for entry in entries if entry.is_wanted),
        )

    def _failed(self, path: str, error: OSError) -> None:
        if isinstance(error, PermissionError):
            self.closed.add(path)
        elif isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno in Descent.LINKED:
            self.has_moved = True
        else:
            self.incomplete = True

    def _marks(self, folder: str) -> Callable[[str, int], bool]:
        """Which entries of a folder, by name and inode, are to be looked at closely, each time?"""
        guard, inodes, denied = self._guard, self._inodes, self._guard.denied
        by_name = guard.marks(folder)
        parts = folder.split(os.sep)
        always = _STEERING.union(_GIT) if ".git" in parts else _STEERING
        if ".git" in parts:
            # Git's own files are all protected by name, and kept by what git obeys of them.
            by_name = lambda name: guard.secret(os.path.join(folder, name))  # noqa: E731 - of two, one
        elif parts[-1] == "hooks":
            return lambda *_: True

        def marks(name: str, inode: int) -> bool:
            if name in always or inode in inodes or by_name(name):
                return True
            path = os.path.join(folder, name) if denied is not None else ""
            return denied is not None and (denied(path, "read") or denied(path, "write"))

        return marks


def _is_gits_own(entry: Entry) -> bool:
    """Is it a part of a repository that git itself has to write? What it obeys there is kept by name."""
    if ".git" not in entry.path.split(os.sep):
        return False
    if entry.name == ".git":
        return entry.is_folder  # a file leads to the settings that count
    return entry.name not in _GIT


def _obeyed(entry: Entry) -> list[str]:
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
    has_git = os.path.isdir(os.path.join(folder, ".git"))
    # One listing instead of a look at every name: most of them are not there.
    there = set(os.listdir(folder))
    for name in names:
        if name.startswith(".git/") and not has_git:
            continue
        path = f"{folder}/{name}"
        yield path
        # None of the names has more than two parts, and the folder itself is no link.
        upper = name.partition("/")[0]
        if upper in there and (os.path.islink(path) or os.path.islink(f"{folder}/{upper}")):
            yield os.path.realpath(path)
    for path in _hooks(folder) if has_git else ():
        yield path
        if os.path.islink(path):
            yield os.path.realpath(path)
