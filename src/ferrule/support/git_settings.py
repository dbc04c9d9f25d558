"""The settings that git would obey in a folder, as git itself tells them. To tell them runs nothing."""

import os
import subprocess
from collections.abc import Sequence

from ferrule.support.programs import program

_SECONDS = 10
_CALM = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "submodule.recurse=false")
"""What would run something of the repository's choice while git only looks."""


def calm_git(*, outside: Sequence[str]) -> list[str] | None:
    """The words that begin a git that only looks; None where there is none outside of these folders."""
    git = program("git", outside=outside)
    return None if git is None else [git, "--no-optional-locks", *(word for one in _CALM for word in ("-c", one))]


def settings_at(folder: str, *, outside: Sequence[str]) -> list[tuple[str, str]]:
    """Every key with its value, in the order of their weight; sections and names are in small letters."""
    git = program("git", outside=outside)
    if git is None or not os.path.isdir(folder):
        return []
    try:
        ran = subprocess.run(
            [git, "config", "--list", "-z"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = ran.stdout.decode(errors="surrogateescape").split("\0")
    return [(key, value) for row in rows if row for key, _, value in [row.partition("\n")]]
