"""Where programs are looked for that run outside the sandbox: never in folders that a model can write to."""

import os
from collections.abc import Iterable

from ferrule.core.access import within


def outside(path: str, roots: Iterable[str]) -> str:
    """A PATH without what is relative or lies in one of the folders, by its name or behind a link.

    A virtual environment of the project is often on PATH: what a command has left there would run with all rights.
    """
    inside = {way for root in roots for way in (os.path.abspath(root), os.path.realpath(root))}
    folders = (path or os.defpath).split(os.pathsep)
    kept = [folder for folder in folders if os.path.isabs(folder) and not _lies_in(folder, inside)]
    return os.pathsep.join(kept) or os.defpath


def _lies_in(folder: str, roots: set[str]) -> bool:
    return any(within(way, root) for way in (os.path.normpath(folder), os.path.realpath(folder)) for root in roots)
