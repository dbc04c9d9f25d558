"""The skills of a session, made from what it knows of the user, the project and the servers."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ferrule.gathering.around import Around
from ferrule.settings import settings_path
from ferrule.workspace.skill import Parameter, ServerPrompt
from ferrule.workspace.skills import Skills

if TYPE_CHECKING:
    from ferrule.sources.mcp.servers import Servers


def make(
    around: Around,
    *,
    trusted: Callable[[], Mapping[str, bytes]],
    servers: "Callable[[], Servers | None]",
) -> Skills:
    """`trusted` gives the project's files that the user trusts, and `servers` those whose prompts count."""

    def prompts() -> list[ServerPrompt]:
        known = servers()
        return [
            ServerPrompt(one.server, one.name, one.words, tuple(Parameter(*about) for about in one.arguments))
            for one in (() if known is None else known.prompts())
        ]

    return Skills(
        around.jail,
        beside=os.path.dirname(settings_path()),
        folders=around.settings.skills.folders,
        disable=around.settings.skills.disable,
        only=around.settings.skills.only,
        session=around.session_id,
        trusted=lambda: bool(trusted()),
        contents=trusted,
        prompts=prompts,
        sources=around.settings.sources,
    )
