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
from ferrule.workspace.paths import Jail

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
    outcome, is_refused = await _within(once, ctx, confinement)
    await _tell(outcome, ctx, confinement)
    if isinstance(outcome, Left):
        return outcome
    names = confinement.asked()
    denied = confinement.denied((outcome.output + outcome.errors)[-_END_CHARS:], outcome.exit_code or 0)
    if not denied:
        return outcome
    if not outcome.exit_code:  # it succeeded, or hid the failure in a pipe
        ctx.note(denied)
        return outcome
    if names and not is_refused:
        said = await ctx.approve_hosts(_sentence(names))
        if said != "no":
            return await _again(once, ctx, confinement, names, said)
        is_refused = True
    again = f"run `{outcome.command}` in {outcome.cwd} again, outside the sandbox. {denied}"
    if is_refused or not await ctx.approve(again):
        ctx.note(f"{denied} With {ctx.param('outside')} the user is asked to run it outside the sandbox.")
        return outcome
    ctx.drop_log()
    ctx.note(f"{denied} It was run again outside the sandbox, as the user has agreed.")
    return await once(True)


async def _tell(outcome: Ran | Left, ctx: Context, confinement: Confinement) -> None:
    """Say what the sandbox did beside letting the command run."""
    for warning in confinement.warnings():
        ctx.note(warning)
    await tell_set_aside(ctx)
    if isinstance(outcome, Ran):
        if ctx.need(Tasks).running:  # nothing else outlives its command
            await tell_ports(ctx)
        if said := await confinement.passed_over(outcome.command):
            ctx.note(said)


async def tell_set_aside(ctx: Context) -> None:
    """Say what commands wrote that other programs obey; where a person agrees, it goes back to its place."""
    confinement = ctx.need(Confinement)
    for aside, contents in confinement.set_aside():
        shown = ctx.need(Jail).shown(aside.path)
        if contents and await ctx.approve(
            f"A command {aside.why} {shown}, which other programs obey", planted=contents
        ):
            if confinement.bring_back(aside, contents):
                ctx.note(f"A command {aside.why} {shown}, which other programs obey; the user lets it stay.")
                continue
            ctx.note(f"The user would let {shown} stay, but something else is there by now.")
        ctx.note(str(aside))


async def _within(once: Once, ctx: Context, confinement: Confinement) -> tuple[Ran | Left, bool]:
    """Run it inside, and tell whether a host was refused: who was offered the way outside then is not asked again.

    When it asks for a host by name, the user is asked then, and not after all of its retries.
    """
    running = asyncio.ensure_future(once(False))
    try:
        heard = asyncio.ensure_future(confinement.names_asked())
        try:
            await asyncio.wait((running, heard), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await asyncio.wait((running,), timeout=_GRACE_SECONDS)
            if running.done():
                return running.result(), False
        finally:
            heard.cancel()
        names = confinement.asked()
        question = asyncio.ensure_future(ctx.approve_hosts(_sentence(names)))
        try:
            await asyncio.wait((running, question), return_when=asyncio.FIRST_COMPLETED)
            said = question.result() if question.done() else "no"
            if said == "no":
                return await running, question.done()
        finally:
            question.cancel()
    finally:
        if not running.done():
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
    return await _again(once, ctx, confinement, names, said), False


async def _again(once: Once, ctx: Context, confinement: Confinement, names: Sequence[str], said: str) -> Ran | Left:
    """Run it again with the hosts that it asked for, or outside, as the user said."""
    ctx.drop_log()
    if said == "outside":
        ctx.note("It was run again outside the sandbox, as the user has agreed.")
        return await once(True)
    for name in names:
        confinement.allow_host(name, for_good=said == "always")
    span = "from now on in this workspace" if said == "always" else "for this session"
    ctx.note(f"The user allowed {', '.join(names)} {span}; the command was started again.")
    return await once(False)


def _sentence(names: Sequence[str]) -> str:
    return f"The command wants to reach {', '.join(names)}, which the sandbox does not allow"
