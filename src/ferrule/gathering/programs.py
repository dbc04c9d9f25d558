"""The project's programs that are tools: they run outside the sandbox, and so nothing in the session may write them."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ferrule.core.tool import AnyTool
from ferrule.gathering.around import Around
from ferrule.workspace.guarded import Guard

if TYPE_CHECKING:
    from ferrule.support.sandbox.profile import Wrapped


def keep_programs(around: Around, tools: Iterable[AnyTool], trusted: Mapping[str, bytes]) -> None:
    """Keep the trusted programs as they are, and the trusted files beside them, which they may load.

    Modules are in memory once they are read; where there is no program, a change to them runs nowhere.
    """
    programs = [tool.origin for tool in tools if tool.origin in trusted and not tool.origin.endswith((".py", ".lua"))]
    folders = {os.path.dirname(path) for path in programs}
    around.services[Guard].keep(os.path.realpath(path) for path in trusted if os.path.dirname(path) in folders)


def confining(around: Around) -> "Callable[[Sequence[str], str], Wrapped | None]":
    """How a program is asked what it is: it can write nothing and reach nobody. None if commands cannot be confined."""

    def confine(argv: Sequence[str], cwd: str) -> "Wrapped | None":
        from ferrule.workspace.confinement import Confinement  # for programs that nothing describes

        confinement = around.services[Confinement]
        sandbox = confinement.sandbox
        if sandbox is None:
            return None
        profile = confinement.reading_profile(*confinement.profile().writable, os.path.realpath(cwd))
        return sandbox.wrap(argv, profile, cwd=cwd)

    return confine
