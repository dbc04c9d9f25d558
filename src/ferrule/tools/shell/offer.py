"""A command that the sandbox has stopped: what stopped it is told, and the user may let it through."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

from ferrule.core.outcomes import Ran
from ferrule.core.tasks import Left
from ferrule.core.tool import Context
from ferrule.support.tasks import Tasks
from ferrule.tools.shell.ports import tell_ports
from ferrule.workspace.confinement import Confinement

Once = Callable[[bool], Awaitable[Ran | Left]]
"""Runs the command, outside or not."""

_END_CHARS = 4_000
"""So much of the end of an output is looked at."""
_GRACE_SECONDS = 1.0
"""So long a command may take to give up by itself after it asked for a name, before the user is asked."""


async def offered(once: Once, ctx: Context, *, outside: bool) -> Ran | Left:
    """Run it and, where it was denied something and the user agrees, run it again with that."""
    confinement = ctx.need(Confinement)
    if outside or confinement.name == "none":
        return await once(outside)
    outcome = await _within(once, ctx, confinement)
    for warning in confinement.warnings():
        ctx.note(warning)
    if isinstance(outcome, Left):
        return outcome
    if ctx.need(Tasks).running:  # nothing else outlives its command
        await tell_ports(ctx)
    denied = confinement.denied((outcome.output + outcome.errors)[-_END_CHARS:], outcome.exit_code or 0)
    if not denied:
        return outcome
    if not outcome.exit_code:  # it succeeded, or hid the failure in a pipe
        ctx.note(denied)
        return outcome
    if not await ctx.approve(f"run `{outcome.command}` in {outcome.cwd} again, outside the sandbox. {denied}"):
        ctx.note(f"{denied} With {ctx.param('outside')} the user is asked to run it outside the sandbox.")
        return outcome
    ctx.drop_log()
    ctx.note(f"{denied} It was run again outside the sandbox, as the user has agreed.")
    return await once(True)


async def _within(once: Once, ctx: Context, confinement: Confinement) -> Ran | Left:
    """Run it inside. When it asks for a host by name, the user is asked then, and not after all of its retries."""
    running = asyncio.ensure_future(once(False))
    try:
        heard = asyncio.ensure_future(confinement.names_asked())
        try:
            await asyncio.wait((running, heard), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await asyncio.wait((running,), timeout=_GRACE_SECONDS)
            if running.done():
                return running.result()
        finally:
            heard.cancel()
        names = confinement.asked()
        question = asyncio.ensure_future(ctx.approve(_sentence(names)))
        try:
            await asyncio.wait((running, question), return_when=asyncio.FIRST_COMPLETED)
            if running.done() or not question.result():
                return await running
        finally:
            question.cancel()
        for name in names:
            confinement.allow_host(name)
        ctx.note(f"The user allowed {', '.join(names)} for this session; the command was started again.")
    finally:
        if not running.done():
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
    ctx.drop_log()
    return await once(False)


def _sentence(names: Sequence[str]) -> str:
    return (
        f"let commands reach {', '.join(names)} for this session: the command asks for it, and the sandbox has no "
        "network. `--allow-host` or the setting sandbox.hosts allows it for good"
    )
