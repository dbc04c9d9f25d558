"""Keep folders that a model can write out of the search paths of programs that run outside the sandbox.

The module also holds the extra environment variables of a session's commands, which the user's hooks set.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from ferrule.core.access import within

_LISTS = (
    *("PYTHONPATH", "NODE_PATH", "PERL5LIB", "PERLLIB", "RUBYLIB"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH"),
)
"""Variables that name folders which interpreters load code from."""


def apart(environment: Mapping[str, str], roots: Iterable[str]) -> dict[str, str]:
    """The environment, in which nothing is looked for in these folders.

    A virtual environment of the project is often on PATH: what a command has left there would run with all rights.
    """
    roots = tuple(roots)
    env = {**environment, "PATH": outside(environment.get("PATH", ""), roots)}
    for name in _LISTS:
        if name in env:
            kept = _safe_folders(env.pop(name), roots)
            env |= {name: os.pathsep.join(kept)} if kept else {}
    return env


def outside(path: str, roots: Iterable[str]) -> str:
    """A PATH without what is relative or lies in one of the folders."""
    return os.pathsep.join(_safe_folders(path or os.defpath, tuple(roots))) or os.defpath


def left_out(path: str, roots: Iterable[str]) -> tuple[str, ...]:
    """The folders of a PATH that `outside` leaves out, but for those that are relative."""
    roots = tuple(roots)
    return tuple(folder for folder in path.split(os.pathsep) if os.path.isabs(folder) and lies_in(folder, roots))


def lies_in(path: str, roots: Sequence[str]) -> bool:
    """Is the path in one of the folders, or linked into or out of one, in any letter case?"""
    folders = [folder.casefold() for root in roots for folder in (os.path.abspath(root), os.path.realpath(root))]
    # The name may be a link, and so may the folder that it is in: no step on the way may lie inside either.
    its_folder = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    ways = (os.path.normpath(path), os.path.realpath(path), its_folder)
    return any(within(place.casefold(), folder) for place in ways for folder in folders)


def _safe_folders(path: str, roots: Sequence[str]) -> list[str]:
    return [folder for folder in path.split(os.pathsep) if os.path.isabs(folder) and not lies_in(folder, roots)]


class Variables(dict[str, str]):
    """What the user's hooks have set when the session began."""

    def __init__(self) -> None:
        super().__init__()
        self.confined: dict[str, str] = {}
        """What confined hooks have set: no command outside the sandbox has that, for it could lead to any code."""
