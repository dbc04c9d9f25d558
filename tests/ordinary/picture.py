"""A tree as it lies on the disk, byte for byte and mode for mode, and how two such pictures differ."""

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

LEFT_OUT = frozenset({"__pycache__", ".pytest_cache", ".venv"})
"""Folders that tools make again: no checkpoint keeps them."""
_SHOWN = 6

Picture = dict[str, tuple[str, ...]]
"""A path below the top → its kind and whatever else it has: mode, size and hash, or where it leads."""


def picture(top: Path, left_out: Collection[str] = ()) -> Picture:
    """Everything below a folder. Of a `.git` only that it is there; `left_out` are paths that are passed over."""
    root = os.fsencode(top)
    found: Picture = {".": ("folder", _mode(os.lstat(root)))}
    _look(root, "", found, frozenset(left_out))
    return found


def _look(folder: bytes, below: str, found: Picture, left_out: frozenset[str]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = os.fsdecode(entry.name)
            path = f"{below}{name}"
            if name in LEFT_OUT or path in left_out:
                continue
            status = entry.stat(follow_symlinks=False)
            if name == ".git":
                found[path] = ("git", "folder" if stat.S_ISDIR(status.st_mode) else "file")
            elif stat.S_ISDIR(status.st_mode):
                found[path] = ("folder", _mode(status))
                with contextlib.suppress(PermissionError):  # closed to this user: only that can be told
                    _look(entry.path, f"{path}/", found, left_out)
            elif stat.S_ISLNK(status.st_mode):
                found[path] = ("link", os.fsdecode(os.readlink(entry.path)))
            elif stat.S_ISREG(status.st_mode):
                found[path] = ("file", _mode(status), str(status.st_size), _digest(entry.path))
            else:
                found[path] = (f"special {stat.S_IFMT(status.st_mode):o}", _mode(status))


def _mode(status: os.stat_result) -> str:
    return f"{stat.S_IMODE(status.st_mode):04o}"


def _digest(path: bytes) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except PermissionError:
        return "closed to this user"


def differences(wanted: Picture, found: Picture) -> list[str]:
    """What is not as it was, each in some words."""
    lost = [f"lost {path!r}" for path in sorted(wanted.keys() - found.keys())]
    left = [f"left {path!r}" for path in sorted(found.keys() - wanted.keys())]
    other = [
        f"{path!r} is {' '.join(found[path])} and was {' '.join(wanted[path])}"
        for path in sorted(wanted.keys() & found.keys())
        if wanted[path] != found[path]
    ]
    return lost + left + other


def told(found: list[str]) -> str:
    """The first of some differences, in one line."""
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(found[:_SHOWN]) + more


def removed(folder: Path) -> None:
    """Remove a folder that may have folders which are closed to their owner."""
    if not os.path.lexists(folder):
        return
    for path, names, _ in os.walk(os.fsencode(folder)):
        os.chmod(path, 0o700)
        for name in names:
            inner = os.path.join(path, name)
            if not os.path.islink(inner):
                os.chmod(inner, 0o700)
    shutil.rmtree(folder)
