"""Secret files as git sees them in commands: passed over, as if the repository's own exclude file named them.

A command cannot read a secret file, so `git add -A` and `git stash -u` would fail on one that nothing ignores. In the
view of commands the file `info/exclude` of its repository names it too. What is tracked is not touched by that.
"""

import os
import re
from collections.abc import Iterable, Sequence

from ferrule.core.access import within
from ferrule.support.beneath import open_folder

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
