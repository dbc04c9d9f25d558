"""One check as an ecosystem's table finds it in a folder, before the folder's checks are weighed against each other."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ferrule.core.checks import CheckKind
from ferrule.workspace.checks.files import Files

ALONE = "files"
"""What a check shares that writes to the files of the project: nothing else runs at the same time."""


class Row(NamedTuple):
    """A check of one folder. Nothing of its command line is taken from a file: only words of our own are in it."""

    name: str
    kind: CheckKind
    command: str
    source: str
    """The file of the folder that speaks for it."""
    program: str = ""
    """A plain name, or a path from the folder where the project has its own copy."""
    shares: str = ""
    does: tuple[str, ...] = ()
    """What it runs, as a target of a Makefile would write it: `pytest`, `ruff check`, `npm run lint`."""
    is_default: bool = True
    """Does it run where nobody names a check?"""


class Ecosystem(NamedTuple):
    """How the checks of one language or tool are found in a folder."""

    name: str
    rows: Callable[[Files], Iterator[Row]]
    covers: Callable[[Files], bool] = lambda _: True
    """Are folders below a folder that has such checks covered by them?"""
