"""Run a command line and come back soon: with its end, or with a session to go on with."""

import functools
import time

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.outcomes import Ran
from ferrule.core.tasks import Left
from ferrule.core.tool import Context, Tool
from ferrule.support.limits import reached
from ferrule.support.tasks import Tasks
from ferrule.tools.shell.offer import offered
from ferrule.tools.shell.starting import KEPT_CHARS, begin, leave, middle_cut, printed_lines, seen, token_chars

_LEAST_SECONDS, _MOST_SECONDS = 0.25, 30.0


class ShellSessionArgs(Args, frozen=True, kw_only=True):
    command: str
    cwd: str = "."
    seconds: float = 10.0
    """After this time the call comes back, and the command goes on."""
    terminal: bool = False
    """Does it have a terminal, which can be typed into?"""
    most_tokens: float = 10_000
    outside: bool = False
    """Does it run outside of what confines commands?"""
    description: str = ""


class ShellSession(Tool[ShellSessionArgs, Ran | Left]):
    """What has not ended in time becomes a task."""

    name = "shell_session"
    args = ShellSessionArgs
    timed = False

    def access(self, args: ShellSessionArgs, ctx: Context) -> tuple[Access, ...]:
        if not args.command.strip():
            raise ToolFailure("The command is empty.")
        if args.most_tokens < 1:
            raise BadArguments(f"{ctx.param('most_tokens')}: must be at least 1.")
        cwd = ctx.path(args.cwd)
        return (Access.command(args.command, cwd), Access.read(cwd))

    async def run(self, args: ShellSessionArgs, ctx: Context) -> Ran | Left:
        return await offered(functools.partial(self._once, args, ctx), ctx, outside=args.outside)

    async def _once(self, args: ShellSessionArgs, ctx: Context, outside: bool) -> Ran | Left:  # noqa: FBT001 - `Once`
        begun = await begin(
            args.command,
            ctx,
            cwd=ctx.path(args.cwd),
            head_chars=KEPT_CHARS,
            tail_chars=KEPT_CHARS,
            stdin="terminal" if args.terminal else "none",
            outside=outside,
            may_stay=True,
        )
        begun_at = time.perf_counter()
        seconds = min(max(args.seconds, _LEAST_SECONDS), _MOST_SECONDS)
        try:
            why = await begun.running.wait(seconds)
            has_room = ctx.need(Tasks).has_room
            if why != "ended" and not has_room:
                await begun.running.stop()
        except BaseException:
            await begun.abandon()
            raise
        news = begun.running.news()
        total_chars = begun.running.news_chars
        shown = middle_cut(news, token_chars(args.most_tokens), total_chars, begun.running.found)
        if why != "ended" and has_room:
            task = leave(begun, ctx, args.description)
            return Left(seen(task, shown, total_chars=total_chars), after=seconds)
        begun.close()
        finished = begun.running.finished()
        assert finished.exit_code is not None
        if why != "ended":
            ctx.note(f"It was stopped, for {ctx.need(Tasks).most} tasks run already (shell.background_max).")
        if finished.survivors_killed and why == "ended":
            ctx.note("Processes that the command left running were stopped.")
        if limit := reached(begun.limits, finished.exit_code, finished.text):
            ctx.note(limit)
        if (finished.missing_chars or len(shown) < len(news)) and not finished.log_error:
            ctx.keep_log(finished.logged_bytes)
        took = time.perf_counter() - begun_at
        timed_out = seconds if why != "ended" else None
        total_chars = max(finished.total_chars, total_chars)
        lines = printed_lines(begun, finished)
        return Ran(begun.command, begun.cwd, shown, finished.exit_code, timed_out, "", took, None, total_chars, lines)
