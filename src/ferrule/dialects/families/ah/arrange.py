"""How ah arranges arguments, and the folders that its user keeps from being written."""

import os
from typing import Any

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context

PROTECTED = "AH_PROTECT_DIRS"
"""The environment variable with those folders."""


def from_the_start(values: dict[str, Any]) -> dict[str, Any]:
    """A place before the first line is the first line, and a limit of 0 is none."""
    return {key: value for key, value in values.items() if key not in ("offset", "limit") or value >= 1}


def unprotected(values: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """The same arguments; raises where the real file lies in one of the folders, whatever the case of its letters."""
    real = ctx.path(values["path"])
    for folder in filter(None, os.environ.get(PROTECTED, "").split(os.pathsep)):
        if within(real.casefold(), ctx.path(folder).casefold()):
            raise ToolFailure(
                f"{real} lies in {folder}, which {PROTECTED} keeps from being written.",
                code="protected-folder",
                path=real,
            )
    return values
