"""The folders that a command could run in, followed through `cd` without running it."""

import os
from typing import NamedTuple

from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.words import home

Folders = frozenset[str] | None
"""Every folder that it could be, as the shell spells them; None where it could be any."""

MOVES = frozenset({"cd", "pushd", "popd"})
MADE = "made.by.mktemp"
"""The name that stands for what `mktemp` makes while the line runs."""
_MOST = 8


class Exits(NamedTuple):
    """Where the shell could be after a command that succeeded, and after one that failed."""

    done: Folders
    failed: Folders

    @property
    def either(self) -> Folders:
        return union(self.done, self.failed)


def union(one: Folders, other: Folders) -> Folders:
    if one is None or other is None:
        return None
    both = one | other
    return both if len(both) <= _MOST else None


def stays(here: Folders) -> Exits:
    """The exits of a command that goes nowhere."""
    return Exits(here, here)


def certain(here: Folders) -> str | None:
    """The one folder that it is; links on the way are resolved where the shell went through them."""
    return next(iter(here)) if here is not None and len(here) == 1 else None


def moved(here: Folders, words: tuple[Word, ...], *, fresh: bool = False) -> Exits:
    """Where `cd`, `pushd` or `popd` leads. `fresh`: no command before it can have made anything."""
    name, operands = words[0].text, list(words[1:])
    if name == "popd" or here is None:
        return _absolute(operands) if name != "popd" else Exits(None, None)
    while name == "cd" and operands and operands[0].known and operands[0].text in {"-L", "--"}:
        if operands.pop(0).text == "--":
            break
    if not operands and name == "cd":
        target: str | None = home()
    else:
        target = operands[0].text if len(operands) == 1 and operands[0].known else None
    # `cd -` goes to where it was before, `pushd +1` to somewhere on its stack.
    if target is None or target in {"", "-"} or target.startswith(("-", "+")):
        return Exits(None, None)
    if fresh and len(here) == 1 and (coming := _coming(next(iter(here)), target)):
        # It fails, and what is joined to it by `&&` does not run, unless somebody makes the folder until then.
        return Exits(frozenset({coming}), here)
    if os.path.basename(target) == MADE and os.path.isabs(target):
        return Exits(frozenset({target}), here)
    ends = {_end(folder, target) for folder in here}
    if not here or None in ends:
        return Exits(None, None)
    return Exits(frozenset(end for end in ends if end is not None), frozenset())


def _absolute(operands: list[Word]) -> Exits:
    """From anywhere, only an absolute path leads to a known place, and only if it is gone to."""
    if len(operands) != 1 or not operands[0].known or not os.path.isabs(operands[0].text):
        return Exits(None, None)
    end = _end("/", operands[0].text)
    return Exits(None, None) if end is None else Exits(frozenset({end}), None)


def _coming(folder: str, target: str) -> str:
    """The folder at a path where nothing is yet, not even a link; empty where something is."""
    path = os.path.normpath(os.path.join(folder, target))
    return path if ".." not in target.split(os.sep) and not os.path.lexists(path) else ""


def _end(folder: str, target: str) -> str | None:
    """The folder at a path, if there is one now and the shell and the kernel agree on which one it is."""
    path = os.path.join(folder, target)
    try:
        real = os.path.realpath(path, strict=True)
        # The shell takes `link/..` back to where the link stands, the kernel to above where it leads.
        agree = os.path.realpath(os.path.normpath(path), strict=True) == real
    except (OSError, ValueError):
        return None
    return os.path.normpath(path) if agree and os.path.isdir(real) and os.access(real, os.X_OK) else None
