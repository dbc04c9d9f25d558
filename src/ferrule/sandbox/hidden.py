"""Find secret and protected files in writable folders, and choose the files that commands see instead.

This is done whenever a command starts. Every folder is walked, to any depth and number, by descriptors and
through no link. The findings of a folder are remembered as long as the folder is unchanged, so a later look only
checks each folder for changes.

A command cannot read a secret file, so `git add -A` and `git stash -u` would fail on one that is not ignored. So
commands see an `info/exclude` file of the repository that names the secret files, too. Tracked files are not
affected.

Other replaced files are those with the committed bytes, and those that git obeys.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.files.guard import Guard
from ferrule.git import CommittedFile
from ferrule.system.folder import Descent, FolderEntry, Stamp, is_settled, open_folder, stamp

_MOST_BYTES = 1 << 20
_HEADER = b"# Hidden from commands by the sandbox, because they are secret:\n"
_GITFILE = re.compile(rb"gitdir: (.+?)\s*", re.DOTALL)
_SPECIAL = re.compile(rb"([\\*?\[]| (?= *\Z))")
"""What a pattern of git's does not take by the letter."""


def exclude_files(roots: Sequence[str], tops: Iterable[str], secret: Iterable[str]) -> dict[str, bytes]:
    """The exclude file of each repository that has secret files → what commands are to see in its place.

    `tops` are the folders that repositories begin in, all of them below `roots`. A repository without such a file, or
    whose own folder lies elsewhere, is left out: nothing can be put in the place of what is not there.
    """
    inner_first = sorted(tops, key=len, reverse=True)
    named: dict[str, list[bytes]] = {}
    for path in secret:
        top = next((one for one in inner_first if path.startswith(one + os.sep)), None)
        raw = os.fsencode(os.path.relpath(path, top)) if top is not None else b"\n"
        if top is not None and b"\n" not in raw:
            named.setdefault(top, []).append(b"/" + _SPECIAL.sub(rb"\\\1", raw) + b"\n")
    found = {}
    for top, lines in named.items():
        folder = _git_folder(roots, top)
        raw_file = None if folder is None else _read(roots, os.path.join(folder, "info"), "exclude")
        if folder is not None and raw_file is not None:
            kept = raw_file if raw_file.endswith(b"\n") or not raw_file else raw_file + b"\n"
            found[os.path.join(folder, "info", "exclude")] = kept + _HEADER + b"".join(sorted(lines))
    return found


def _git_folder(roots: Sequence[str], top: str) -> str | None:
    """Where the repository of a work tree keeps its settings; None where that is not below the roots."""
    folder = os.path.join(top, ".git")
    if os.path.isdir(folder):
        return folder
    named = _GITFILE.fullmatch(_read(roots, top, ".git") or b"")
    if named is None:
        return None
    folder = os.path.normpath(os.path.join(top, os.fsdecode(named[1])))
    common = _read(roots, folder, "commondir")
    return folder if common is None else os.path.normpath(os.path.join(folder, os.fsdecode(common.strip())))


def _read(roots: Sequence[str], folder: str, name: str) -> bytes | None:
    """A file of a folder below the roots. No link is followed: a command could lead it to any file."""
    root = next((root for root in roots if within(folder, root)), None)
    if root is None:
        return None
    parts = [part for part in os.path.relpath(folder, root).split(os.sep) if part != os.curdir]
    try:
        with open_folder(root) as top, top.below(parts) as opened:
            return opened.read(name, _MOST_BYTES)
    except OSError:
        return None


_OWN = re.compile(r"session-(\d+)-.*")


class ReplacementFiles:
    """A folder of this process's own, made when it is first needed and removed when it is closed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._own = ""

    def write_committed(self, state: CommittedFile, read: Callable[[], bytes | None]) -> str:
        """The file with the committed bytes, in the mode of the commit; empty where they cannot be had."""
        return self._file(state.blob, state.mode, read)

    def contents(self, raw: bytes) -> str:
        """A file with these bytes; empty where it cannot be made."""
        return self._file(hashlib.sha256(raw).hexdigest(), 0o444, lambda: raw)

    def _file(self, name: str, mode: int, read: Callable[[], bytes | None]) -> str:
        try:
            if not self._own:
                self._own = self._make_folder()
            path = os.path.join(self._own, f"{name}.{mode:o}")
            if os.path.lexists(path):
                return path
            raw = read()
            if raw is None:
                return ""
            descriptor, unfinished = tempfile.mkstemp(dir=self._own)
            with open(descriptor, "wb") as file:
                file.write(raw)
                os.fchmod(descriptor, mode)
            os.rename(unfinished, path)
        except OSError:
            return ""
        return path

    def close(self) -> None:
        if self._own:
            shutil.rmtree(self._own, ignore_errors=True)
            self._own = ""

    def _make_folder(self) -> str:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        for name in os.listdir(self._folder):
            found = _OWN.fullmatch(name)
            if found is not None and not _is_alive(int(found[1])):
                shutil.rmtree(os.path.join(self._folder, name), ignore_errors=True)
        return tempfile.mkdtemp(prefix=f"session-{os.getpid()}-", dir=self._folder)


def _is_alive(process: int) -> bool:
    with contextlib.suppress(PermissionError):
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True


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
_PATH_BYTES = 4_096
"""From this length on Linux takes no path."""
"""What has a longer path can be neither masked nor kept by it; the folder above is masked."""
_ROUNDS = 6
"""So often it is looked again, where something moved meanwhile."""


class SensitivePaths(NamedTuple):
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


class _FolderFindings(NamedTuple):
    """What was found in a folder."""

    stamp: Stamp | None
    """None where it may change without a trace, and has to be looked at again."""
    folders: tuple[str, ...]
    marked: tuple[FolderEntry, ...]
    """What may be secret or protected, by its name, its place or a rule."""


class Precious:
    """Looks for secret and protected files, and remembers the secret ones: a new name must not uncover them."""

    def __init__(self, guard: Guard, folder: str = "") -> None:
        """`folder` is where the files are kept that commands see instead; without one, they see nothing there."""
        self._guard = guard
        self._instead = ReplacementFiles(folder) if folder else None
        self._folders: dict[str, _FolderFindings] = {}
        self._inodes: dict[int, tuple[int, int, int]] = {}
        """Secret files that were found → device, size and time of the content: another name makes no other file."""
        self._targets: set[str] = set()
        """What links with secret names led to."""
        self._asked: tuple[str, ...] = ()
        self._until = float("-inf")
        self._rules = -1
        self._found = SensitivePaths((), (), incomplete=False)
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

    def find(self, folders: Sequence[str], *, fresh: bool = False) -> SensitivePaths:
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

    def _look(self, folders: Sequence[str], until: float) -> SensitivePaths:
        if self._rules != self._guard.rules():
            self._folders.clear()
            self._rules = self._guard.rules()
        for _ in range(_ROUNDS):
            walk = _FolderScan(self._guard, self._folders, self._inodes, until)
            for folder in folders:
                walk.walk(folder)
            if not walk.has_moved or walk.incomplete:
                break
        self._folders = walk.found
        # From here on commands run: what they make, or commit, is not what was committed when the session began.
        marked = [entry for one in walk.found.values() for entry in one.marked]
        self._guard.committed.seal(os.path.dirname(entry.path) for entry in marked if entry.name == ".git")
        with self._guard.committed.open_objects():
            return self._classify(folders, marked, walk)

    def _classify(self, folders: Sequence[str], marked: Sequence[FolderEntry], walk: "_FolderScan") -> SensitivePaths:
        """What is to become of everything that was found."""
        secret, protected = set(walk.closed), []
        replaced: dict[str, str] = {}
        for entry in marked:
            protected += _git_control_files(entry)
            hidden = self._find_hidden(entry)
            if hidden is not None:
                path, state = hidden
                if shown := self._replacement(path, state):
                    replaced[path] = shown
                else:
                    secret.add(path)
            elif self._guard.is_protected(entry.path) and not _is_gits_own(entry):
                protected.append(entry.path)
        for path in sorted(self._targets):
            if os.path.isfile(path) and (state := self._guard.find_target_substitute(path)) is not None:
                if shown := self._replacement(path, state):
                    replaced[path] = shown
                else:
                    secret.add(path)
        there = tuple(sorted(path for path in secret if os.path.lexists(path)))
        for path in there:
            self._remember(path)
        return SensitivePaths(
            there,
            tuple(protected),
            walk.incomplete or walk.has_moved,
            tuple(sorted(replaced.items())),
            self._excludes(folders, marked, there),
        )

    def _excludes(
        self, folders: Sequence[str], marked: Sequence[FolderEntry], secret: Sequence[str]
    ) -> tuple[tuple[str, str], ...]:
        """The exclude files of repositories with secret files, each with what commands see instead."""
        if self._instead is None or not secret:
            return ()
        tops = {os.path.dirname(entry.path) for entry in marked if entry.name == ".git"}
        files = exclude_files(folders, tops, secret)
        shown = ((path, self._instead.contents(raw)) for path, raw in sorted(files.items()))
        return tuple((path, file) for path, file in shown if file)

    def _find_hidden(self, entry: FolderEntry) -> tuple[str, CommittedFile | None] | None:
        """The path that commands must not see as it is, and what is committed there; None where they may."""
        if entry.is_link:
            # A link to a folder would hide that folder, which may be any, from every later command.
            if not self._guard.secret(entry.path) or os.path.isdir(entry.path):
                return None
            target = os.path.realpath(entry.path)
            self._targets.add(target)
            state = self._guard.find_target_substitute(target)
            return None if state is None else (target if state.blob else entry.path, state)
        if entry.is_folder:
            return (entry.path, None) if self._guard.is_folder_hidden(entry.path) else None
        state = self._guard.find_substitute(entry.path)
        if state is None and self._is_known(entry):
            state = self._guard.find_target_substitute(entry.path)
        return None if state is None else (entry.path, state)

    def _replacement(self, path: str, state: CommittedFile | None) -> str:
        """A file that holds the committed bytes; empty where there is none to show."""
        if self._instead is None or state is None or not state.blob:
            return ""
        return self._instead.write_committed(state, lambda: self._guard.committed.read_committed(path, state))

    def _remember(self, path: str) -> None:
        try:
            status = os.lstat(path)
        except OSError:
            return
        self._inodes[status.st_ino] = (status.st_dev, status.st_size, status.st_mtime_ns)

    def _is_known(self, entry: FolderEntry) -> bool:
        """Is it a file that was secret under another name?"""
        if entry.inode not in self._inodes:
            return False
        try:
            status = os.lstat(entry.path)
        except OSError:
            return False
        return self._inodes[entry.inode] == (status.st_dev, status.st_size, status.st_mtime_ns)


class _FolderScan:
    """One look at everything below some folders."""

    def __init__(
        self, guard: Guard, known: dict[str, _FolderFindings], inodes: dict[int, tuple[int, int, int]], until: float
    ) -> None:
        self._guard = guard
        self._known = known
        self._inodes = inodes
        self._until = until
        self.found: dict[str, _FolderFindings] = {}
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
                        one = self._scan_folder(path, descent)
                except OSError as error:
                    one = None
                    self._handle_error(path, error)
                if one is not None:
                    found[path] = one
                    left += one.folders

    def _scan_folder(self, path: str, descent: Descent) -> _FolderFindings | None:
        if time.monotonic() > self._until:
            raise TimeoutError
        length = len(os.fsencode(path))
        if length > _MOST_PATH_BYTES:
            # No path hides what is longer than a path may be. The folder above was looked at, so its path is not.
            self.closed.add(path if length < _PATH_BYTES else os.path.dirname(path))
            return None
        status, entries = descent.entries(path, self._marks(path))
        return _FolderFindings(
            stamp(status) if is_settled(status) else None,
            tuple(entry.path for entry in entries if entry.is_folder),
            tuple(entry for entry in entries if entry.is_wanted),
        )

    def _handle_error(self, path: str, error: OSError) -> None:
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


def _is_gits_own(entry: FolderEntry) -> bool:
    """Is it a part of a repository that git itself has to write? What it obeys there is kept by name."""
    if ".git" not in entry.path.split(os.sep):
        return False
    if entry.name == ".git":
        return entry.is_folder  # a file leads to the settings that count
    return entry.name not in _GIT


def _git_control_files(entry: FolderEntry) -> list[str]:
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


def find_kept_paths(folder: str, names: Sequence[str]) -> Iterator[str]:
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
