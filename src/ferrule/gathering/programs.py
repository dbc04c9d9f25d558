"""The project's programs that are tools: they run outside the sandbox, and so nothing in the session may write them."""

import os
from collections.abc import Iterable, Mapping

from ferrule.core.tool import AnyTool
from ferrule.gathering.around import Around
from ferrule.workspace.guarded import Guard


def keep_programs(around: Around, tools: Iterable[AnyTool], trusted: Mapping[str, bytes]) -> None:
    """Keep the trusted programs as they are, and the trusted files beside them, which they may load.

    Modules are in memory once they are read; where there is no program, a change to them runs nowhere.
    """
    programs = [tool.origin for tool in tools if tool.origin in trusted and not tool.origin.endswith((".py", ".lua"))]
    folders = {os.path.dirname(path) for path in programs}
    around.services[Guard].keep(os.path.realpath(path) for path in trusted if os.path.dirname(path) in folders)
