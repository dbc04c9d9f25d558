"""Run the project's own checks: type checkers, linters, tests, and reviews by subagents."""

import time

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.checks import Check, CheckRun
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.tools.checks.board import Board
from ferrule.tools.checks.changes import UNCOMMITTED, changes, looks
from ferrule.tools.checks.choice import Ahead, Chosen, choose
from ferrule.tools.checks.command import is_missing
from ferrule.tools.checks.round import Round
from ferrule.workspace.paths import Jail


class CheckArgs(Args, frozen=True, kw_only=True):
    only: tuple[str, ...] = ()
    """Names of checks, globs of names, or kinds; all that run by default where nothing is said."""
    path: str = ""
    """A folder: only the checks below it."""
    review: bool | None = None
    """Are the reviews done? As the settings say where nothing is said."""
    diff: str = ""
    """What the reviews are about: a revision or a range of them."""


class RunChecks(Tool[CheckArgs, CheckRun]):
    """Every command is declared, and judged as if the shell had been asked for it; nothing else of it runs."""

    name = "check"
    args = CheckArgs
    timed = False
    extras = ("diff",)

    def access(self, args: CheckArgs, ctx: Context) -> tuple[Access, ...]:
        """All of the folder is read besides: nobody writes there before the reviews have read it."""
        chosen = choose(args.only, args.path, args.review, ctx, ctx.need(Ahead).looked(ctx.need(Jail)))
        there = [check for check in chosen.checks if not is_missing(check, ctx)]
        lines = [_access(check) for check in there]
        # A rule that denies one of them is told with the name of its check.
        ctx.spelled |= {f"check\0{check.folder}\0{check.command}": check.name for check in there}
        lines += looks(args.diff or UNCOMMITTED, ctx) if chosen.reviews else []
        return (*dict.fromkeys(lines), Access.read(ctx.path(args.path or ".")))

    async def run(self, args: CheckArgs, ctx: Context) -> CheckRun:
        began = time.monotonic()
        ctx.need(Ahead).forget()
        chosen: Chosen = await ctx.need(Threads).run(choose, args.only, args.path, args.review, ctx)
        for warning in chosen.warnings:
            ctx.note(warning)
        board = Board(ctx, len(chosen.checks) + len(chosen.reviews))
        if chosen.why_unreviewed and board.total and args.review is not False:
            ctx.note(f"The reviews of this project were not done: {chosen.why_unreviewed}.")
        # Revisions that are none are wrong before anything runs.
        changed = await changes(args.diff, ctx) if args.diff and chosen.reviews else None
        checked = await Round(ctx, board).run(chosen, args.diff or UNCOMMITTED, changed) if board.total else ()
        run = CheckRun(tuple(checked), time.monotonic() - began, root=ctx.need(Jail).folder)
        if not checked:
            run = run._replace(looked_in=chosen.looked_in, known=chosen.known, why_unreviewed=chosen.why_unreviewed)
            run = run._replace(covering=chosen.covering)
        board.done(run)
        return run


def _access(check: Check) -> Access:
    return Access.command(check.command, check.folder)
