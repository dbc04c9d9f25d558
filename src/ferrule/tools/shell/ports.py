"""The ports that commands of the session listen on: told in the reply, and forwarded to the user."""

import time

from ferrule.core.tool import Context
from ferrule.settings import Settings
from ferrule.support.tasks import Tasks
from ferrule.tools.shell.starting import Begun
from ferrule.workspace.confinement import Confinement

_SETTLE_SECONDS = 0.4
"""So long a command that is left running is waited for until it listens; a later reply tells of one that is slower."""
_LOOK_SECONDS = 0.05
_FEW_TASKS = 4
"""With more of them nobody waits: whoever starts many at once starts no servers."""


async def told_ports(begun: Begun, ctx: Context) -> None:
    """Wait a little until a command that is left running listens somewhere, and say where."""
    confinement = ctx.need(Confinement)
    if confinement.inside() is None or ctx.need(Tasks).running >= _FEW_TASKS:
        return
    until = time.monotonic() + _SETTLE_SECONDS
    while not await tell_ports(ctx) and time.monotonic() < until:
        if await begun.running.wait(_LOOK_SECONDS) == "ended":
            return


async def tell_ports(ctx: Context) -> bool:
    """Say where commands have begun to listen, and forward those ports where the settings say so."""
    confinement = ctx.need(Confinement)
    fresh = confinement.listening()
    for one in fresh:
        forwarded = await confinement.forward(one.port, ctx.need(Settings).sandbox.forward)
        reached = f"; the user reaches it at http://127.0.0.1:{one.port}/" if forwarded else ""
        ctx.note(f"A command is listening on {one}{reached}.")
    return bool(fresh)
