"""The scripts of a project that the command lines of hooks name: they are as good as written in the hook.

Whoever trusts a hook trusts what it runs; a script that somebody writes later is not that.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from ferrule.core.access import within

_HERE = r"\"?\$(?:\{(?:CLAUDE|FERRULE)_PROJECT_DIR\}|(?:CLAUDE|FERRULE)_PROJECT_DIR\b|\{PWD\}|PWD\b)\"?"
_BETWEEN = r"[\s'\"`;|&()<>={}$]+"
_ENDINGS = (".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".pl", ".php", ".lua", ".awk")
_MOST = 100
_DEPTH = 12
_LINE_CHARS = 65_536


def scripts(command: str, workspace: str, *, start: str = "") -> list[str]:
    """The real paths of the scripts and programs in the workspace that a command line names, sorted.

    What it only works on, a settings file for one, is not among them. It starts in `start`, or in the workspace.
    """
    root = os.path.realpath(workspace)
    found = set()
    for word in _words(command[:_LINE_CHARS]):
        path = os.path.realpath(os.path.join(start or root, word))
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
    except (OSError, ValueError):
        return False
    if not stat.S_ISREG(status.st_mode):
        return False
    return bool(status.st_mode & 0o111) or path.endswith(_ENDINGS)
