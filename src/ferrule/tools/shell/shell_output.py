"""Read what a task has printed, or what an agent of the background has said last."""

import time

from ferrule.core.access import Access
from ferrule.core.delegated import last_words, subagents
from ferrule.core.errors import BadArguments
from ferrule.core.subagents import Worked
from ferrule.core.tasks import TaskRead
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.tools.shell.named import TaskArgs, agent_seen, named
from ferrule.tools.shell.pattern import Pattern
from ferrule.tools.shell.starting import middle_cut, seen

_MOST_SECONDS = 600.0


class ShellOutputArgs(TaskArgs, frozen=True, kw_only=True):
    block: bool = False
    """Is its end waited for?"""
    seconds: float = 30.0
    """For so long at most."""
    until: str | None = None
    """Or until it has printed what this regular expression matches."""
    news: bool = False
    """Only what was not told before?"""
    only: str | None = None
    """Only lines that this regular expression matches."""
    lines: int | None = None
    """Only so many of the last lines."""
    most_chars: int = 30_000


class ShellOutput(Tool[ShellOutputArgs, TaskRead]):
    """It waits for no other call, and no other waits for it."""

    name = "shell_output"
    args = ShellOutputArgs
    timed = False
    extras = ("task_id", "number", "until")

    def access(self, args: ShellOutputArgs, ctx: Context) -> tuple[Access, ...]:
        task = named(args, ctx)  # before it waits for anything
        if isinstance(task, Worked) and args.until is not None:
            raise BadArguments(f"{ctx.param('until')}: {task.id} is an agent; only its end can be waited for.")
        if args.seconds < 0:
            raise BadArguments(f"{ctx.param('seconds')}: must be at least 0.")
        if args.lines is not None and args.lines < 1:
            raise BadArguments(f"{ctx.param('lines')}: must be at least 1.")
        for name, pattern in (("until", args.until), ("only", args.only)):
            if pattern is not None:
                Pattern(pattern, ctx.param(name))
        return ()

    async def run(self, args: ShellOutputArgs, ctx: Context) -> TaskRead:
        task, begun = named(args, ctx), time.perf_counter()
        if isinstance(task, Worked):
            return await self._said(task, args, ctx)
        until = None if args.until is None else Pattern(args.until, ctx.param("until"))
        waits = args.block or until is not None
        why = await task.running.wait(min(args.seconds, _MOST_SECONDS) if waits else 0.0, until=until)
        if until is not None:
            until.check()
        news, finished = task.running.news(), task.running.finished()
        output = news if args.news else finished.text + finished.errors
        is_whole = args.only is None and args.lines is None
        total_chars = (task.running.news_chars if args.news else finished.total_chars) if is_whole else 0
        found = task.running.found if is_whole and not args.news else None
        output = await _asked_for(output, args, ctx)
        task.told = task.told or task.running.ended
        return TaskRead(
            seen(
                task,
                middle_cut(output, args.most_chars, total_chars, found),
                total_chars=max(total_chars, len(output)),
            ),
            "running" if why in ("time", "quiet") and not waits else "time" if why == "quiet" else why,
            time.perf_counter() - begun,
        )

    async def _said(self, agent: Worked, args: ShellOutputArgs, ctx: Context) -> TaskRead:
        begun = time.perf_counter()
        now = await subagents(ctx).seen(agent.id, min(args.seconds, _MOST_SECONDS) if args.block else 0.0) or agent
        output = await _asked_for(last_words(now), args, ctx)
        return TaskRead(
            agent_seen(now, middle_cut(output, args.most_chars), total_chars=len(output)),
            "ended" if now.status != "running" else "time" if args.block else "running",
            time.perf_counter() - begun,
        )


async def _asked_for(output: str, args: ShellOutputArgs, ctx: Context) -> str:
    """The lines of it that the caller wants."""
    if args.only is not None:
        output = await ctx.need(Threads).run(Pattern(args.only, ctx.param("only")).lines, output)
    if args.lines is not None:
        output = "".join(output.splitlines(keepends=True)[-args.lines :])
    return output
