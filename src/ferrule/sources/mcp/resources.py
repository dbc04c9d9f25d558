"""What servers offer to be read: asked of several at once, and handed out in pages."""

import asyncio
from collections.abc import Sequence

from ferrule.core.elsewhere import ServerResource, ServerResources
from ferrule.core.errors import ToolFailure
from ferrule.sources.mcp.held import Held

PAGE = 200
"""How many are handed out at once."""


async def listed(several: Sequence[Held], *, templates: bool, cursor: str, alone: bool) -> ServerResources:
    """The resources of all of them; `alone` means that one was asked for by name, so its failure is the caller's."""
    start = _start(cursor)
    answers = await asyncio.gather(*(_asked(held, templates=templates) for held in several))
    found: list[ServerResource] = []
    silent: list[tuple[str, str]] = []
    for held, answer in zip(several, answers, strict=True):
        if not isinstance(answer, ToolFailure):
            found += answer
        elif alone:
            raise answer
        else:
            silent.append((held.server.name, answer.message))
    more = str(start + PAGE) if len(found) > start + PAGE else ""
    return ServerResources(tuple(found[start : start + PAGE]), templates, tuple(silent), more)


async def holder(several: Sequence[Held], uri: str) -> Held:
    """The one that offers a resource. Raises `ToolFailure` where none does, or more than one."""
    offering = list(several)
    if len(offering) > 1:
        answers = await asyncio.gather(*(_asked(held, templates=False) for held in several))
        pairs = zip(several, answers, strict=True)
        offering = [held for held, answer in pairs if not isinstance(answer, ToolFailure) and _has(answer, uri)]
    if len(offering) == 1:
        return offering[0]
    names = ", ".join(held.server.name for held in offering or several)
    if not names:
        raise ToolFailure("There is no MCP server with resources.", code="mcp-server")
    which = "Several servers offer it" if offering else "No server lists it"
    raise ToolFailure(f"{which}; say which server it is to come from: {names}.", code="mcp-server")


def _start(cursor: str) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise ToolFailure("The cursor is not one that was given out. Leave it out to begin anew.")
    return int(cursor)


async def _asked(held: Held, *, templates: bool) -> list[ServerResource] | ToolFailure:
    try:
        return await (await held.connection()).resources(templates=templates)
    except ToolFailure as error:
        return error


def _has(resources: Sequence[ServerResource], uri: str) -> bool:
    return any(one.uri == uri for one in resources)
