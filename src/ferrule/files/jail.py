"""Decide which real paths the agent may touch, and open them without a way out of the jail.

A lent folder can be read by the holder of its jail, and used for nothing else.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.system.folder import BY_DESCRIPTOR, Folder, open_folder

MOST_BYTES = 4096
"""What the operating system's own path functions take, with the NUL at the end."""


TMP = "/tmp"  # noqa: S108 - the name under which commands have their own
_MOST_LINKS = 40


class Outside(ToolFailure):
    """The path lies outside every folder that the user gave."""

    def __init__(self, path: str) -> None:
        folder = path if os.path.isdir(path) else os.path.dirname(path) or path
        whose = " It is in the machine's /tmp; commands have a /tmp of their own." if within(path, TMP) else ""
        super().__init__(
            f"{path} is outside the workspace.{whose} Start with --add-dir {folder} to allow that folder.",
            code="outside-workspace",
            path=path,
        )


class JailPath(NamedTuple):
    """A real path and the way to it from the root that holds it."""

    root: "Root"
    parts: tuple[str, ...]
    path: str

    def folder(self, *, make: bool = False) -> Folder:
        """The folder that holds this place, open."""
        return self.root.open().below(self.parts[:-1], make=make)

    def find_missing_folders(self) -> tuple[str, ...]:
        """Folders that have to be made before a file can be put here, outermost first."""
        folder, depth = self.root.open().below(()), 0
        try:
            for part in self.parts[:-1]:
                step = folder.below((part,))
                folder.close()
                folder, depth = step, depth + 1
        except FileNotFoundError:
            pass  # from here on
        finally:
            folder.close()
        return tuple(os.path.join(self.root.path, *self.parts[:end]) for end in range(depth + 1, len(self.parts)))

    @property
    def name(self) -> str:
        return self.parts[-1]


class Root:
    """A folder that the user gave. It stays open, so that a folder put in its place later is noticed."""

    _folder: Folder | None = None

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        self._opening = threading.Lock()
        with contextlib.suppress(OSError):  # it may be made later
            self._folder = open_folder(self.path)

    def open(self) -> Folder:
        """The open folder; refuses when the path no longer leads to the folder that was opened first."""
        try:
            with self._opening:
                if self._folder is None:
                    if os.path.realpath(self.path) != self.path:
                        raise self._workspace_error()
                    self._folder = open_folder(self.path)
            if BY_DESCRIPTOR:
                assert self._folder.descriptor is not None
                if not os.path.samestat(os.lstat(self.path), os.fstat(self._folder.descriptor)):
                    raise self._workspace_error()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise self._workspace_error() from error
        return self._folder

    def _workspace_error(self) -> ToolFailure:
        return ToolFailure(
            f"The workspace folder {self.path} was moved, deleted or replaced; nothing was touched.",
            code="workspace-gone",
            path=self.path,
        )

    def close(self) -> None:
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def __del__(self) -> None:
        self.close()  # also where nobody closes the engine: descriptors are few


class Jail:
    """The folders that the user gave, and every path seen through them."""

    lent: tuple[str, ...] = ()
    """Folders among them that the user's settings lend: reading them needs no question."""
    own_tmp: Callable[[], str] = staticmethod(str)
    """Gives the folder that commands have as /tmp; nothing where they have the machine's. Raises OSError."""
    _tmp: Root | None = None

    def __init__(self, folder: str, also: tuple[str, ...] = ()) -> None:
        self.roots = [Root(folder)]
        for extra in also:
            self.add(extra)

    @property
    def folder(self) -> str:
        """The first root: relative paths start here."""
        return self.roots[0].path

    def add(self, folder: str) -> None:
        """Widen the jail by a folder; only the user's own words lead here."""
        real = os.path.realpath(os.path.expanduser(folder))
        if not self.holds(real):
            self.roots.append(Root(real))

    def real(self, path: str) -> str:
        """The absolute path behind `path`: `~` expanded, relative to the workspace, every link resolved."""
        if "\0" in path:
            raise ToolFailure("A path cannot contain a NUL character.")
        if not path:
            raise ToolFailure("A path cannot be empty.")
        if path[0] == "~":
            path = os.path.expanduser(path)
        try:
            whole = os.path.join(self.folder, path)
            real = (self._in_tmp(path) if path.startswith(TMP) else "") or _real(whole)
            size = len(os.fsencode(real))
        except UnicodeEncodeError as error:
            raise ToolFailure("A path cannot contain a lone surrogate: no file has such a name.") from error
        if size >= MOST_BYTES:  # by descriptor it could be made, and then nothing else could reach it
            raise ToolFailure(f"A path cannot have {size:,} bytes; {MOST_BYTES - 1:,} is the most.")
        return real

    def refuse_link(self, path: str) -> None:
        """Whoever names a link to remove it means the link; the file that it leads to may be needed elsewhere."""
        spelled = self.lexical_path(path)
        if os.path.islink(spelled):
            raise ToolFailure(
                f"{spelled} is a link to {self.real(path)}. Remove the link with a command, or name the file itself.",
                code="is-link",
                path=spelled,
            )

    def lexical_path(self, path: str) -> str:
        """The path as it was written, links and all, but from the real root on where it leads through one."""
        lexical = os.path.normpath(os.path.join(self.folder, os.path.expanduser(path)))
        roots = {root.path for root in self.roots}
        above = lexical
        while not self.holds(lexical) and above != os.path.dirname(above):
            above = os.path.dirname(above)
            if _real(above) in roots:
                return _real(above) + lexical[len(above) :]
        return lexical

    def _in_tmp(self, path: str) -> str:
        """The real path of something in the commands' own /tmp, its links resolved as inside; else nothing.

        What is only in the machine's /tmp is not of it, and a workspace below /tmp stays where it is.
        """
        lexical = os.path.normpath(path)
        if not within(lexical, TMP) or any(within(lexical, root.path) for root in self.roots):
            return ""
        try:
            folder = self.own_tmp()
        except OSError:
            return ""
        if not folder or _is_elsewhere(lexical, folder + lexical[len(TMP) :]):
            return ""
        if self._tmp is None:
            self._tmp = Root(folder)
        return self._resolve_tmp(lexical)

    def _resolve_tmp(self, lexical: str) -> str:
        assert self._tmp is not None
        for _ in range(_MOST_LINKS):
            if not within(lexical, TMP):
                return _real(lexical)
            done = TMP
            parts = lexical[len(TMP) :].strip(os.sep).split(os.sep)
            for number, part in enumerate(parts):
                done = os.path.normpath(os.path.join(done, part))
                there = self._tmp.path + done[len(TMP) :]
                if os.path.islink(there):
                    lexical = os.path.normpath(
                        os.path.join(os.path.dirname(done), os.readlink(there), *parts[number + 1 :])
                    )
                    break
            else:
                return self._tmp.path + done[len(TMP) :]
        raise ToolFailure(f"{lexical} leads in a circle.", path=lexical)

    def in_own_tmp(self, real: str) -> bool:
        """Does it lie in the /tmp that the session's commands have?"""
        return self._tmp is not None and within(real, self._tmp.path)

    def as_commands_say(self, text: str) -> str:
        """A text in which files of the commands' own /tmp have the names that commands have for them."""
        return text if self._tmp is None else text.replace(self._tmp.path, TMP)

    def _all(self) -> list[Root]:
        return self.roots if self._tmp is None else [*self.roots, self._tmp]

    def holds(self, real: str) -> bool:
        return any(within(real, root.path) for root in self._all())

    def place(self, real: str) -> JailPath:
        """How to reach a real path; raises `Outside`."""
        for root in self._all():
            if within(real, root.path):
                relative = os.path.relpath(real, root.path) if real != root.path else ""
                return JailPath(root, tuple(relative.split(os.sep)) if relative else (), real)
        raise Outside(real)

    def check(self, real: str) -> None:
        """Raise when a folder on the way became a link since the path was resolved, or the workspace another folder."""
        self.place(real).root.open()
        if _real(real) != real:  # the folder of the engine's state is real too
            raise ToolFailure(f"{real} was replaced by a link meanwhile; nothing was done.", path=real)

    def from_root(self, real: str) -> str:
        """The path from the outermost root that holds it; the path itself where none does."""
        for root in sorted((root.path for root in self._all()), key=len):
            if within(real, root):
                return real[len(root) :].lstrip(os.sep)
        return real

    def display_path(self, real: str) -> str:
        """The path relative to the workspace where it lies inside, for words and diffs.

        Only to the first root: that is where a relative path leads back to the same file.
        """
        if real != self.folder and within(real, self.folder):
            return real[len(self.folder) :].lstrip(os.sep)
        if self._tmp is not None and within(real, self._tmp.path):
            return TMP + real[len(self._tmp.path) :]
        return real

    def close(self) -> None:
        for root in self._all():
            root.close()


def _is_elsewhere(machines: str, own: str) -> bool:
    """Is more of the way to it in the machine's /tmp than in that of the commands?"""
    if os.path.lexists(own):
        return False
    while machines != TMP:
        if os.path.lexists(own):
            return False
        if os.path.lexists(machines):
            return True
        machines, own = os.path.dirname(machines), os.path.dirname(own)
    return False


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError as error:  # a link that went away between two looks at it
        raise ToolFailure(f"{path} changed while it was looked at. Try again.", path=path) from error


class LentJail(Jail):
    """The session's roots, and those that its holder alone has beside them."""

    def __init__(self, jail: Jail, folders: Sequence[str]) -> None:
        self._own = [Root(folder) for folder in folders]
        self.roots = [*jail.roots, *self._own]
        self.lent = tuple(root.path for root in self._own if not jail.holds(root.path))

    def add(self, folder: str) -> None:
        """Nothing is added to it: whoever was lent some folders does not get others by asking for them."""

    def close(self) -> None:
        """The session's own roots stay open."""
        for root in self._own:
            root.close()


def can_be_lent(folder: str) -> bool:
    """Is it a folder, and not all there is?"""
    real = os.path.realpath(os.path.expanduser(folder))
    return os.path.isdir(real) and os.path.dirname(real) != real
