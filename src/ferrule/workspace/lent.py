"""A jail with folders that the user has lent to somebody, to be read and for nothing else."""

import os
from collections.abc import Sequence

from ferrule.workspace.paths import Jail, Root


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
