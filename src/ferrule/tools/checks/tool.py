"""Run the project's own checks: type checkers, linters, tests, and reviews by subagents.

Several checks run at once, but never two that need the same thing. Reviews run beside them.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Sequence

from ferrule.core.access import Access
from ferrule.core.tool import RUNS, Args, Context, Tool
from ferrule.files.jail import Jail
from ferrule.settings.schema import Settings
from ferrule.system.threads import Threads
from ferrule.tools.checks.changes import UNCOMMITTED, ChangedFiles, changes, command_accesses
from ferrule.tools.checks.choice import Ahead, CheckSelection, choose
from ferrule.tools.checks.manifests import ALONE
from ferrule.tools.checks.outcomes import Check, Checked, CheckRun
from ferrule.tools.checks.run import Board, CheckOutput, is_missing, report_missing, run_check

_TICK_SECONDS = 1.0
_PIECE_BYTES = 1 << 20
_CHANGED = (
    "It was not run: the command is not one that the call was let in with, for the files that it comes from were "
    "changed meanwhile. Run the checks again."
)
_Tasks = Sequence["asyncio.Task[list[Checked]]"]


class Round:
    """Runs what was chosen. Cancelling it ends all of it."""

    def __init__(self, ctx: Context, board: Board) -> None:
        self._ctx = ctx
        self._board = board
        self._slots = asyncio.Semaphore(ctx.need(Settings).checks.parallel)
        self._shared: dict[str, asyncio.Lock] = {}
        self._let_in = {(access.key, access.folder) for access in ctx.touches if access.kind == "command"}
        self._ended: list[CheckOutput] = []

    async def run(self, chosen: CheckSelection, about: str, changed: ChangedFiles | None = None) -> list[Checked]:
        """In the order in which they were found, whatever order they ended in."""
        beside = [asyncio.create_task(self._one(check)) for check in chosen.checks if check.shares != ALONE]
        tasks = list(beside)
        # What writes to the files of the project runs by itself, when the others have seen them as they are.
        if alone := [check for check in chosen.checks if check.shares == ALONE]:
            tasks.append(asyncio.create_task(self._after(alone, beside)))
        reviews = [asyncio.create_task(self._review(chosen, about, changed))] if chosen.reviews else []
        try:
            await self._until_done([*tasks, *reviews])
            found = {one.check: one for task in tasks for one in task.result()}
            checked = [found[check] for check in chosen.checks]
            self._ended.sort(key=lambda ended: checked.index(ended.checked))
            await self._keep()
        finally:
            for ended in self._ended:
                with contextlib.suppress(OSError):
                    os.unlink(ended.log)
        return [*checked, *(one for task in reviews for one in task.result())]

    async def _until_done(self, tasks: _Tasks) -> None:
        """Wait for all of them; however this ends, none of them is left."""
        pending = set(tasks)
        try:
            while pending:
                done, pending = await asyncio.wait(pending, timeout=_TICK_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
                failed = [task for task in done if task.exception() is not None]
                for task in failed[:1]:
                    task.result()
                if pending:
                    self._board.tell()
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _after(self, checks: Sequence[Check], others: _Tasks) -> list[Checked]:
        if others:
            await asyncio.wait(others)
        return [one for check in checks for one in await self._one(check)]

    async def _one(self, check: Check) -> list[Checked]:
        checked = await self._run_check(check)
        self._board.ended(checked)
        return [checked]

    async def _run_check(self, check: Check) -> Checked:
        if is_missing(check, self._ctx):
            return report_missing(check)
        if (check.command, check.folder) not in self._let_in:
            return Checked(check, "skipped", why=_CHANGED)
        lock = self._shared.setdefault(check.shares, asyncio.Lock()) if check.shares else contextlib.nullcontext()
        async with lock, self._slots:  # in this order: whoever waits for another check takes no slot
            self._board.began(check)
            ended = await run_check(check, self._ctx)
            self._ended.append(ended)
        return ended.checked

    async def _review(self, chosen: CheckSelection, about: str, changed: ChangedFiles | None) -> list[Checked]:
        from ferrule.tools.checks.review import review_all  # where there is a model

        return await review_all(chosen.reviews, about, changed, self._ctx, self._board)

    async def _keep(self) -> None:
        """Keep the whole outputs together, under headings, where something is wrong and not all that was said of it is
        in the outcome."""
        printed = [ended for ended in self._ended if ended.log]
        if all(ended.is_whole or ended.checked.status == "passed" for ended in printed):
            return
        path = self._ctx.new_log()
        if path is None:
            return
        try:
            size = await self._ctx.need(Threads).run(_join_logs, path, printed)
        except OSError as error:
            self._ctx.drop_log()
            self._ctx.note(f"The whole outputs could not be kept: {error.strerror}.")
            return
        self._ctx.keep_log(size)


def _join_logs(path: str, printed: Sequence[CheckOutput]) -> int:
    """Write all logs into one. How many bytes it has."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as whole:
        for checked, log, _ in printed:
            end = f"exit code {checked.exit_code}, {checked.seconds:.1f} s"
            heading = f"==> {checked.check.name}: {checked.check.command} (in {checked.check.folder}; {end}) <==\n"
            whole.write(heading.encode(errors="backslashreplace"))
            with open(log, "rb") as part:
                while piece := part.read(_PIECE_BYTES):
                    whole.write(piece)
            whole.write(b"\n\n")
        return whole.tell()


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
    title = "Run the project's checks"
    hints = RUNS
    timed = False
    extras = ("diff",)

    def access(self, args: CheckArgs, ctx: Context) -> tuple[Access, ...]:
        """All of the folder is read besides: nobody writes there before the reviews have read it."""
        chosen = choose(args.only, args.path, args.review, ctx, ctx.need(Ahead).discovery_for(ctx.need(Jail)))
        there = [check for check in chosen.checks if not is_missing(check, ctx)]
        lines = [_access(check) for check in there]
        # A rule that denies one of them is told with the name of its check.
        ctx.spelled |= {f"check\0{check.folder}\0{check.command}": check.name for check in there}
        lines += command_accesses(args.diff or UNCOMMITTED, ctx) if chosen.reviews else []
        return (*dict.fromkeys(lines), Access.read(ctx.path(args.path or ".")))

    async def run(self, args: CheckArgs, ctx: Context) -> CheckRun:
        began = time.monotonic()
        ctx.need(Ahead).forget()
        chosen: CheckSelection = await ctx.need(Threads).run(choose, args.only, args.path, args.review, ctx)
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
