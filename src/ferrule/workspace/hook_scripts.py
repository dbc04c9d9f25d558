"""What of a project the command line of a hook starts: it is as good as written in the hook.

Whoever trusts a hook trusts what it runs; a file that somebody writes later is not that. `permissions/started.py`
reads a line as bash does; here is what it finds, and a rough look besides.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ferrule.core.access import within

_HERE = r"\"?\$(?:\{(?:CLAUDE|FERRULE)_PROJECT_DIR\}|(?:CLAUDE|FERRULE)_PROJECT_DIR\b|\{PWD\}|PWD\b)\"?"
_BETWEEN = r"[\s'\"`;|&()<>={}$]+"
_ENDINGS = (".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".pl", ".php", ".lua", ".awk")
_MOST = 100
_DEPTH = 12
_LINE_CHARS = 65_536


class Looked(NamedTuple):
    """What a command line is seen to start."""

    files: tuple[str, ...] = ()
    """Files of the workspace, real, that it names and that are or could be code; sorted."""
    run: tuple[str, ...] = ()
    """Those of them that it certainly runs,"""
    handed: tuple[str, ...] = ()
    """and those that it hands to a program which nobody knows."""
    unclear: str = ""
    """Why it could run other code of the workspace, as a clause; empty where it cannot."""


Look = Callable[[str], Looked]
"""Looks at a command line that starts in the workspace."""


def rough(command: str, workspace: str, *, start: str = "") -> list[str]:
    """The real paths of the scripts and programs in the workspace that stand somewhere in a command line, sorted.

    What it only works on, a settings file for one, is not among them. It starts in `start`, or in the workspace.
    """
    root = os.path.realpath(workspace)
    found = set()
    for word in _words(command[:_LINE_CHARS]):
        named = os.path.join(start or root, word)
        # Most words name nothing, and one look tells. What leads through `..` may be there under its real name alone.
        if ".." not in word and not os.path.isfile(named):
            continue
        try:
            path = os.path.realpath(named)
        except ValueError:  # no file can have such a name
            continue
        if within(path, root) and path != root and _runs(path):
            found.add(path)
    return sorted(found)[:_MOST]


def commands(value: Any, depth: int = _DEPTH) -> Iterator[str]:
    """Every command line in the `hooks` of a settings file, whichever form it has."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "command" and isinstance(inner, str):
                yield inner
            elif depth:
                yield from commands(inner, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from commands(inner, depth - 1)


def _words(command: str) -> list[str]:
    """What may be a path in it: the words as a shell divides them, and what is between quotes and signs."""
    import shlex  # for projects with hooks

    line = re.sub(_HERE, ".", command)
    try:
        quoted = shlex.split(line)
    except ValueError:
        quoted = []
    # Quotation marks in the middle of a word are no end of it.
    plain = re.split(_BETWEEN, re.sub(r"['\"]", "", line))
    return [word for word in dict.fromkeys((*quoted, *plain)) if word and "\0" not in word]


def _runs(path: str) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    if not stat.S_ISREG(status.st_mode):
        return False
    return bool(status.st_mode & 0o111) or path.endswith(_ENDINGS)
