"""Wait until one of some agents of the background has ended."""

import asyncio
from collections.abc import Sequence

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.delegated import AgentsSeen, subagents
from ferrule.core.errors import BadArguments
from ferrule.core.subagents import Subagents, Worked
from ferrule.core.tool import Context, Tool
from ferrule.tools.agents.left import find

_MOST_SECONDS = 3600.0
_MOST_AGENTS = 64


class AgentWaitArgs(Args, frozen=True, kw_only=True):
    ids: tuple[str, ...] = ()
    """Whom to wait for; all that work where none is named."""
    seconds: float = 30.0


class AgentWait(Tool[AgentWaitArgs, AgentsSeen]):
    """It waits for no other call, and no other waits for it."""

    name = "agent_wait"
    args = AgentWaitArgs
    timed = False
    waits = True

    def access(self, args: AgentWaitArgs, ctx: Context) -> tuple[Access, ...]:
        if not args.seconds >= 0:
            raise BadArguments(f"{ctx.param('seconds')}: must be at least 0.")
        if len(args.ids) > _MOST_AGENTS:
            raise BadArguments(f"{ctx.param('ids')}: at most {_MOST_AGENTS} agents can be waited for at once.")
        for one in args.ids:
            find(one, ctx)
        return ()

    async def run(self, args: AgentWaitArgs, ctx: Context) -> AgentsSeen:
        runs = subagents(ctx)
        named = dict.fromkeys(find(one, ctx).id for one in args.ids)
        ids = list(named) or [worked.id for worked in runs.list() if worked.status == "running"]
        now = await _seen(ids, runs)
        if now and all(worked.status == "running" for worked in now):
            await _first(ids, min(args.seconds, _MOST_SECONDS), runs)
            now = await _seen(ids, runs)
        return AgentsSeen(now, timed_out=bool(now) and all(worked.status == "running" for worked in now))


async def _seen(ids: Sequence[str], runs: Subagents) -> tuple[Worked, ...]:
    found = [await runs.seen(one) for one in ids]
    return tuple(worked for worked in found if worked is not None)


async def _first(ids: Sequence[str], seconds: float, runs: Subagents) -> None:
    """Wait for the first of them; none of them is stopped by that."""
    waits = [asyncio.create_task(runs.seen(one, seconds)) for one in ids]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
