"""Where programs are: on PATH, but never inside a folder that a model can write to."""

import errno
import os
from collections.abc import Mapping, Sequence

_found: dict[tuple[str, str, tuple[str, ...]], tuple[str, tuple[int, int, int, int]]] = {}
"""What was found before, and which file it was: while it is the same, nobody looks again."""
_FOUND = 256


def program(name: str, *, outside: Sequence[str] = ()) -> str | None:
    """The program of that name on PATH, but none in or linked into a folder of `outside`."""
    folders = os.environ.get("PATH", os.defpath)
    key = (name, folders, tuple(outside))
    if key in _found:
        path, identity = _found[key]
        if _identity(path) == identity and os.access(path, os.X_OK):
            return path
        del _found[key]
    for folder in folders.split(os.pathsep):
        path = os.path.join(folder, name + ".exe" * (os.name == "nt"))
        is_there = os.path.isabs(folder) and os.path.isfile(path) and os.access(path, os.X_OK)
        if is_there and not lies_in(path, outside):
            seen = _identity(path)
            if seen is not None:
                if len(_found) >= _FOUND:
                    _found.clear()
                _found[key] = (path, seen)
            return path
    return None


def lies_in(path: str, folders: Sequence[str]) -> bool:
    """Is it in one of the folders, by its own name or by what it is a link to?"""
    places = (os.path.normpath(path), os.path.realpath(path))
    roots = [root for one in folders for root in (os.path.abspath(one), os.path.realpath(one))]
    return any(f"{place}{os.sep}".startswith(root.rstrip(os.sep) + os.sep) for place in places for root in roots)


def shell(*, outside: Sequence[str] = ()) -> str:
    """Where bash is, or else the system's plain shell."""
    return program("bash", outside=outside) or "/bin/sh"


def find(name: str, *, cwd: str, env: Mapping[str, str]) -> None:
    """Raises FileNotFoundError, NotADirectoryError or PermissionError when it cannot be started there."""
    if not os.path.isdir(cwd):
        number = errno.ENOTDIR if os.path.exists(cwd) else errno.ENOENT
        raise OSError(number, os.strerror(number), cwd)
    if os.sep in name:
        paths = [os.path.join(cwd, name)]
    else:
        paths = [os.path.join(cwd, folder, name) for folder in env.get("PATH", os.defpath).split(os.pathsep)]
    there = [path for path in paths if os.path.exists(path)]
    if not there:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    if not any(os.path.isfile(path) and os.access(path, os.X_OK) for path in there):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


def _identity(path: str) -> tuple[int, int, int, int] | None:
    try:
        seen = os.stat(path)
        link = os.lstat(path)
    except OSError:
        return None
    return (seen.st_dev, seen.st_ino, link.st_ino, link.st_mtime_ns)
