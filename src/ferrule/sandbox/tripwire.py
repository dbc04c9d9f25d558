"""Protected paths that commands bring into being or change are set aside, so that nothing outside obeys them.

What exists is protected by mounts. What does not exist cannot be: a mount needs something to lie on, and that would be
a phantom in the user's real folder. So the state before a command is compared with the state while it runs, by the
kernel's notices, and when it has ended. Nothing is lost: what is set aside is moved into a folder of the engine's
state, and the reply says where it is.

Git's settings are compared by key: a change of keys that run nothing stays.
"""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ferrule.core.tool import Preview, Previewed
from ferrule.files.guard import OWN, Guard
from ferrule.git.environment import harmful_keys, without
from ferrule.system.folder import read_whole
from ferrule.system.inotify import InotifyWatch

_CONFIGS = ("config", "config.worktree")
_MOST_BYTES = 1 << 20
_SAMPLE = ".sample"
_MOST_NAMED = 5
_POLL_SECONDS = 0.05
_MOST_FILES = 20
"""Nobody looks at more before they say yes."""
_MOST_OPEN = 500
"""So many files are compared before and after every command, where nothing else protects them."""
_UNFINISHED = re.compile(r"\.ferrule-[0-9a-f]{12}\.tmp")
"""What the session itself is about to write is called so until it is whole, and nothing obeys that name."""
_MOST_TIMES = 20
"""A command that plants so often means to."""


class Aside(NamedTuple):
    """Something that was set aside."""

    path: str
    """Where it was."""
    kept_at: str
    """Where it is now."""
    why: str
    """`made` or `changed`."""
    what: str = ""
    """Which part of it."""

    def __str__(self) -> str:
        rest = f"The change{self.what} was set aside: see" if self.why == "changed" else "It was set aside as"
        return f"A command {self.why} {self.path}, which other programs obey. {rest} {self.kept_at}."


class Tripwire:
    """Compares protected paths before, while and after commands run."""

    def __init__(self, guard: Guard, folder: str) -> None:
        """`folder` is where things are set aside."""
        self._guard = guard
        self._folder = folder
        self._absent: set[str] = set()
        self._configs: dict[str, bytes | None] = {}
        self._open: dict[str, bytes] = {}
        """Protected files that nothing keeps from being written, as they were."""
        self._open_folders: set[str] = set()
        self._places: dict[str, str] = {}
        """Folder that came into being → where its files are set aside, so that they stay together."""
        self._repositories: set[str] = set()
        self._running = 0
        self._watch: InotifyWatch | None = None
        self._poller: asyncio.TimerHandle | None = None
        self._lock = threading.RLock()
        """Commands end on other threads than they begin."""
        self._found: list[Aside] = []
        self.alarm: Callable[[], None] = lambda: None
        """Called when running commands plant again and again."""
        self._times = 0

    def begin(
        self, roots: Sequence[str], kept: Sequence[str], protected: Sequence[str], exposed: Sequence[str] = ()
    ) -> None:
        """A command that may write `roots` is about to start.

        `kept` are the paths that must not come into being, and `protected` the protected ones that were found.
        `exposed` are those that exist and that nothing keeps from being written: they are compared too.
        """
        with self._lock:
            if self._running == 0:
                self._absent = set(absent(kept))
                self._configs.clear()
                self._repositories.clear()
                self._open.clear()
                self._open_folders.clear()
            self._add(repositories(protected))
            self._note_open(exposed)
            self._running += 1
        if self._watch is None or not self._watch.is_here():
            self.close()
            with contextlib.suppress(RuntimeError):  # no loop, no notices: the look at the end decides
                try:
                    self._watch = InotifyWatch(self._on_change)
                except OSError:  # no inotify here, or no more of it for this user
                    self._poll()
        if self._watch is not None:
            self._watch.add(roots)
            self._watch.add(self._repositories)
            self._watch.add({os.path.dirname(path) for path in (*self._absent, *self._open)})
            self._watch.add(self._open_folders)

    def _poll(self) -> None:
        """Look now and then while commands run, where the kernel gives no notices."""
        if self._poller is None:
            self._poller = asyncio.get_running_loop().call_later(_POLL_SECONDS, self._tick)

    def _tick(self) -> None:
        self._poller = None
        if self._running:
            self._on_change({""})
            self._poll()

    def end(self, protected: Iterable[str]) -> None:
        """A command has ended; `protected` are the protected paths that are there now."""
        with self._lock:
            self._look()
            for folder in repositories(protected) - self._repositories:
                self._judge_new(folder)
                self._add({folder})
            self._running = max(0, self._running - 1)
            if not self._running:
                self._times = 0
                for path in sorted(self._absent):
                    self._remove_folder(path)

    def take(self) -> list[Aside]:
        """What was set aside since this was last asked."""
        with self._lock:
            taken, self._found = self._found, []
            self._places.clear()
            return taken

    def contents(self, aside: Aside) -> Preview:
        """The files of what was set aside, as a yes would bring them back; nothing where nobody is asked about it."""
        if not self._guard.may_be_asked(aside.path, unasked=OWN):
            return ()
        try:
            if aside.why == "changed":
                after, _ = read_whole(aside.kept_at, _MOST_BYTES, follow=False)
                return (Previewed(aside.path, self._configs.get(aside.path) or b"", after),)
            return tuple(
                Previewed(
                    aside.path + path.removeprefix(aside.kept_at),
                    None,
                    read_whole(path, _MOST_BYTES, follow=False)[0],
                )
                for path in _files(aside.kept_at)
            )
        except (OSError, ValueError):
            return ()  # a link, a device or too much: nothing that a question could show

    def bring_back(self, aside: Aside, contents: Preview) -> bool:
        """Put what was set aside back, as a person saw it and agreed; no where something else is there meanwhile."""
        with self._lock, _parent(aside.path) as folder:
            if folder < 0 or self.contents(aside) != contents:
                return False
            name = os.path.basename(aside.path)
            if aside.why == "changed":
                is_same = (_bytes(aside.path) or b"") == contents[0].before
                return is_same and self._write(folder, aside.path, contents[0].after or b"")
            try:
                if os.path.lexists(aside.path):
                    return False
                self._guard.written.update(one.path for one in contents)
                try:
                    os.rename(aside.kept_at, name, dst_dir_fd=folder)
                except OSError:
                    shutil.move(aside.kept_at, aside.path)  # another file system
            except OSError:
                return False
            return True

    def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            self._poller = None
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _add(self, folders: set[str]) -> None:
        for folder in folders - self._repositories:
            self._repositories.add(folder)
            for name in _CONFIGS:
                self._configs[os.path.join(folder, name)] = _bytes(os.path.join(folder, name))
            others = (os.path.join(folder, name) for name in ("hooks", "commondir"))
            self._absent |= {path for path in others if not os.path.lexists(path)}

    def _on_change(self, names: set[str]) -> None:
        with self._lock:
            wanted = {os.path.basename(path) for path in (*self._absent, *self._configs, *self._open)}
            in_folder = bool(self._open_folders) or any(map(os.path.isdir, self._absent))
            if not self._running or not (names & wanted or "" in names or in_folder):
                return
            before = len(self._found)
            self._look()
            self._times += len(self._found) > before
            is_stubborn = self._times >= _MOST_TIMES
        if is_stubborn:
            self.alarm()

    def _look(self) -> None:
        for path in sorted(self._absent):
            if not os.path.lexists(path):
                continue
            if os.path.basename(path) == "hooks":
                self._judge_hooks(path)
            elif os.path.isdir(path) and not os.path.islink(path):
                self._empty(path)
            else:
                self._set_aside(path, "made")
        self._look_at_open()
        for path, before in list(self._configs.items()):
            now = _bytes(path)
            if now is None or now == before:
                continue
            if keys := harmful_keys(before or b"", now):
                self._restore(path, before or b"", now, keys)
            else:
                self._configs[path] = now

    def _note_open(self, paths: Iterable[str]) -> None:
        for path in paths:
            if os.path.islink(path) or path in self._configs:
                continue
            if os.path.isdir(path):
                self._open_folders |= {folder for folder, _, _ in os.walk(path)}
            for file in _below(path) if os.path.isdir(path) else [path]:
                if len(self._open) >= _MOST_OPEN:
                    return
                if file not in self._open and (raw := _bytes(file)) is not None:
                    self._open[file] = raw

    def _look_at_open(self) -> None:
        """Bring back what was changed or deleted, and set aside what is new."""
        for path, before in self._open.items():
            now = _bytes(path)
            if now == before or path in self._guard.written:
                continue
            if now is not None:
                self._set_aside(path, "changed")
            with _parent(path) as folder, contextlib.suppress(OSError):
                if folder >= 0 and not os.path.lexists(path):
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                    with os.fdopen(os.open(os.path.basename(path), flags, 0o644, dir_fd=folder), "wb") as file:
                        file.write(before)
        for place in sorted(self._open_folders):
            for path in _below(place):
                is_sample = os.path.basename(place) == "hooks" and path.endswith(_SAMPLE)
                if path not in self._open and not is_sample:
                    self._set_aside(path, "made")

    def _empty(self, folder: str) -> None:
        """Set aside the files of a folder that came into being; the command that made it may go on to write there."""
        if self._watch is not None:
            self._watch.add(inner for inner, _, _ in os.walk(folder))
        is_shared = any(each.startswith(folder + os.sep) for each in self._guard.written)
        for path in _below(folder):
            if not (is_shared and _UNFINISHED.fullmatch(os.path.basename(path))):
                self._set_aside(path, "made", "" if is_shared else folder)

    def _remove_folder(self, folder: str) -> None:
        """Remove a folder that came into being, when nobody writes there any more."""
        is_folder = os.path.isdir(folder) and not os.path.islink(folder)
        if is_folder and os.path.basename(folder) != "hooks":  # git makes it
            for inner, _, _ in os.walk(folder, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(inner)

    def _judge_new(self, folder: str) -> None:
        """A repository that a command has made: what git writes there by itself stays."""
        for name in _CONFIGS:
            path = os.path.join(folder, name)
            now = _bytes(path)
            if now is not None and (keys := harmful_keys(b"", now)):
                self._restore(path, b"", now, keys)
        if os.path.lexists(os.path.join(folder, "hooks")):
            self._judge_hooks(os.path.join(folder, "hooks"))
        if os.path.lexists(os.path.join(folder, "commondir")):
            self._set_aside(os.path.join(folder, "commondir"), "made")

    def _judge_hooks(self, path: str) -> None:
        """Samples run nothing; everything else is a hook."""
        try:
            mode = os.lstat(path).st_mode
            entries = os.listdir(path) if stat.S_ISDIR(mode) else []
        except OSError:
            return
        if not stat.S_ISDIR(mode):
            self._set_aside(path, "made")
        for name in entries:
            if not name.endswith(_SAMPLE):
                self._set_aside(os.path.join(path, name), "made")

    def _set_aside(self, path: str, why: str, of: str = "") -> None:
        """Move something away, but for what the session itself wrote there with the user's leave.

        `of` is the folder that came into being with it.
        """
        if path in self._guard.written:
            return
        if any(each.startswith(path + os.sep) for each in self._guard.written) and not os.path.islink(path):
            with contextlib.suppress(OSError):
                for name in os.listdir(path):
                    self._set_aside(os.path.join(path, name), why)
            return
        kept = self._place(path, of)
        with _parent(path) as folder:
            try:
                if folder < 0:
                    return  # a link leads elsewhere: what is there is not the command's
                try:
                    os.rename(os.path.basename(path), kept, src_dir_fd=folder)
                except OSError:
                    shutil.move(path, kept)  # another file system
            except OSError:
                return  # gone again, or not to be moved: the next look tries once more
        top = self._places.get(of, "")
        found = Aside(of, top, why) if kept.startswith(top + os.sep) and top else Aside(path, kept, why)
        if found not in self._found:
            self._found.append(found)

    def _restore(self, path: str, before: bytes, now: bytes, keys: list[str]) -> None:
        kept = self._place(path)
        with open(kept, "wb") as file:
            file.write(now)
        restored = without(before, now, keys)
        with _parent(path) as folder, contextlib.suppress(OSError):
            if folder < 0 or not self._write(folder, path, restored):
                return
            if not restored and not before:
                os.unlink(os.path.basename(path), dir_fd=folder)
                self._configs[path] = None
            named = "" if "?" in keys else f" ({', '.join(keys[:_MOST_NAMED])})"
            self._found.append(Aside(path, kept, "changed", named))

    def _write(self, folder: int, path: str, contents: bytes) -> bool:
        """Replace a settings file of git in its open folder."""
        name = os.path.basename(path)
        temporary = f"{name}.{secrets.token_hex(4)}.lock"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o644, dir_fd=folder), "wb") as file:
                file.write(contents)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            return False
        self._configs[path] = contents
        return True

    def _place(self, path: str, of: str = "") -> str:
        """Where it is kept: together with the rest of its folder, unless something of that name is there."""
        if of:
            top = self._places.setdefault(of, os.path.join(self._fresh(), os.path.basename(of)))
            kept = top + path.removeprefix(of)
            if not os.path.lexists(kept):
                os.makedirs(os.path.dirname(kept), 0o700, exist_ok=True)
                return kept
        return os.path.join(self._fresh(), os.path.basename(path))

    def _fresh(self) -> str:
        folder = os.path.join(self._folder, secrets.token_hex(6))
        os.makedirs(folder, 0o700)
        return folder


def repositories(protected: Iterable[str]) -> set[str]:
    """The folders of git's own data, by the protected paths in them."""
    folders = {os.path.dirname(path) for path in protected if os.path.basename(path) in _CONFIGS}
    return {folder for folder in folders if os.path.isdir(os.path.join(folder, "objects"))}


def absent(paths: Iterable[str]) -> Iterator[str]:
    """Those of some paths at which nothing is. Each folder is listed once: most of them lie in the same one."""
    listed: dict[str, set[str] | None] = {}
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in listed:
            listed[folder] = _names(folder)
        names = listed[folder]
        if (names is not None and name not in names) or (names is None and not os.path.lexists(path)):
            yield path


def _names(folder: str) -> set[str] | None:
    """The names in a folder; None where they do not tell what is there."""
    if sys.platform != "linux":
        return None  # the same name in another case may be there
    try:
        return set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
    except OSError:
        return None


def _files(path: str) -> list[str]:
    """The regular files at or below a path. Raises ValueError for anything else there, or for too many."""
    if not os.path.isdir(path) or os.path.islink(path):
        return [path]
    found = _below(path)
    if not 0 < len(found) <= _MOST_FILES or any(map(os.path.islink, found)):
        raise ValueError(path)
    return found


def _below(folder: str) -> list[str]:
    """Everything below a folder that is no folder, links to folders included."""
    return sorted(
        path
        for inner, names, files in os.walk(folder)
        for path in (os.path.join(inner, name) for name in (*files, *names))
        if os.path.islink(path) or not os.path.isdir(path)
    )


def _bytes(path: str) -> bytes | None:
    """The contents of a settings file; nothing where there is none. A link counts as harmful contents."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return b"\0"  # whatever it is, it is no settings file that git wrote
    try:
        data = os.read(descriptor, _MOST_BYTES)
        return data if len(data) < _MOST_BYTES and stat.S_ISREG(os.fstat(descriptor).st_mode) else b"\0"
    except OSError:
        return b"\0"
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _parent(path: str) -> Iterator[int]:
    """The folder of a path, open; -1 where a link is on the way, which a command may have put there."""
    folder = os.path.dirname(path)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield -1
        return
    usable = -1
    try:
        # The open folder is the one that the path means without links, or the path has one.
        with contextlib.suppress(FileNotFoundError):
            if os.path.realpath(folder) == folder and os.path.samestat(os.fstat(descriptor), os.lstat(folder)):
                usable = descriptor
        yield usable
    finally:
        os.close(descriptor)
