"""Paths by the time of their last change."""

import os
from collections.abc import Iterable


def newest_first(folder: str, names: Iterable[str]) -> list[str]:
    """Names in the folder or below it, the one changed last first; those of one moment, and what is gone, by name."""
    return sorted(names, key=lambda name: (age(os.path.join(folder, name)), name))


def age(path: str) -> int:
    """Less for what was changed later; what is gone is older than everything."""
    try:
        return -os.lstat(path).st_mtime_ns
    except OSError:
        return 1 << 63
