"""A command that what confines it seems to have stopped may run again outside, if the user says so."""

from collections.abc import Awaitable, Callable

from ferrule.core.outcomes import Ran
from ferrule.core.tasks import Left
from ferrule.core.tool import Context
from ferrule.workspace.confinement import Confinement

Once = Callable[[bool], Awaitable[Ran | Left]]
"""Runs the command, outside or not."""

_END_CHARS = 4_000
"""So much of the end of an output is looked at."""


async def offered(once: Once, ctx: Context, *, outside: bool) -> Ran | Left:
    """Run it and, where it was denied something and the user agrees, run it again outside."""
    outcome = await once(outside)
    confinement = ctx.need(Confinement)
    if isinstance(outcome, Left) or outside or not outcome.exit_code or confinement.name == "none":
        return outcome
    denied = confinement.denied((outcome.output + outcome.errors)[-_END_CHARS:], outcome.exit_code)
    if not denied:
        return outcome
    if not await ctx.approve(f"run `{outcome.command}` in {outcome.cwd} again, outside the sandbox. {denied}"):
        ctx.note(f"{denied} With {ctx.param('outside')} the user is asked to run it outside the sandbox.")
        return outcome
    ctx.drop_log()
    ctx.note(f"{denied} It was run again outside the sandbox, as the user has agreed.")
    return await once(True)
