"""Run a command line, and ask the user for more than the session may touch."""

import functools
import os
import shlex
import time

from ferrule.core.access import Access
from ferrule.core.content import CommandResult
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import ADDS, RUNS, Args, Context, Tool
from ferrule.files.jail import Jail
from ferrule.sandbox.confinement import Confinement
from ferrule.settings import Settings
from ferrule.system.command import Finished
from ferrule.system.environment import describe_limit
from ferrule.system.highlights import SHARE, block, insert_highlights, subtract_newlines
from ferrule.system.tasks import Tasks
from ferrule.tools.shell import Left, Permitted
from ferrule.tools.shell.command import (
    CommandStart,
    begin,
    check_room,
    count_printed_lines,
    detach,
    leave,
    may_move,
    run_with_approval,
    snapshot_task,
    start_folder,
    wait_for_ports,
)


class ShellArgs(Args, frozen=True, kw_only=True):
    command: str
    cwd: str = "."
    seconds: float | None = None
    """The command is stopped after this time."""
    most_seconds: float | None = None
    """A longer time is shortened to this."""
    quiet_seconds: float | None = None
    """The command is stopped when it has printed nothing for so long."""
    background: bool = False
    """Is it left running, as a task?"""
    delay_seconds: float = 0.0
    """So long a command that is left running is waited for, in case it ends at once."""
    outside: bool = False
    """Does it run outside of what confines commands?"""
    detach: bool = False
    """Does it go on when the session ends? It then needs `outside` as well, and the user is always asked."""
    description: str = ""
    tail_chars: int = 50_000
    tail_bytes: int | None = None
    """The tail and the command are cut to this together: the exit code must fit behind them, whatever they hold."""
    head_chars: int = 0
    """So many of the first characters are kept too."""
    flags: tuple[str, ...] = ()
    """What the shell itself is given before the command."""
    apart: bool = False
    """Are the errors kept apart from the output?"""
    yields: bool = False
    """Does it become a task when its time is up, where that is safe, and is not stopped?"""
    carry: bool = False
    """Does it begin where the last one ended, unless it is told where?"""


class Shell(Tool[ShellArgs, CommandResult | Left]):
    """A fresh shell per call. Nothing is left running that is not a task, and an exit code is not a failure."""

    name = "shell"
    args = ShellArgs
    title = "Run a command"
    hints = RUNS
    timed = False
    extras = ("quiet_seconds", "detach")

    def access(self, args: ShellArgs, ctx: Context) -> tuple[Access, ...]:
        _check(args, ctx)  # before anybody is asked about it
        cwd = _folder(args, ctx)
        shell = "" if not _follows(args) else "moves" if may_move(args.command) else "follows"
        return (Access.command(args.command, cwd, shell=shell), Access.read(cwd))

    async def run(self, args: ShellArgs, ctx: Context) -> CommandResult | Left:
        cwd, decided = _folder(args, ctx), next(access for access in ctx.touches if access.kind == "command")
        if decided.folder != cwd and decided.mode != "read":
            # What was decided on was this command in another folder, and there it may do something else.
            raise ToolFailure(
                f"It was not run: an earlier command of the same message went to {cwd}. Send it again if it is "
                f"meant for that folder, or with `cd {decided.folder} &&` before it.",
                code="folder-changed",
            )
        cwd = decided.folder
        if args.detach:
            return detach(args.command, ctx, cwd=cwd)
        return await run_with_approval(functools.partial(self._once, args, ctx, cwd), ctx, outside=args.outside)

    async def _once(self, args: ShellArgs, ctx: Context, cwd: str, outside: bool) -> CommandResult | Left:  # noqa: FBT001 - `Once`
        if args.background:
            check_room(ctx)
        begun = await begin(
            args.command,
            ctx,
            cwd=cwd,
            head_chars=args.head_chars,
            tail_chars=args.tail_chars,
            flags=args.flags,
            apart=args.apart,
            outside=outside,
            carry=args.carry and not args.background and os.name == "posix",
            may_stay=args.background or args.yields,
        )
        if args.background:
            return await self._run_in_background(begun, args, ctx)
        if begun.carrier is None:
            return await self._run_to_end(begun, args, ctx)
        begun.carrier.set_out(ctx)
        try:
            outcome = await self._run_to_end(begun, args, ctx)
        finally:
            begun.carrier.part(ctx)
        if isinstance(outcome, CommandResult) and not was_stopped(outcome):
            begun.carrier.carry(cwd, ctx)
        return outcome

    async def _run_in_background(self, begun: CommandStart, args: ShellArgs, ctx: Context) -> CommandResult | Left:
        """A command that is left running, unless it ends at once."""
        begun_at = time.perf_counter()
        try:
            why = await begun.running.wait(args.delay_seconds) if args.delay_seconds > 0 else "time"
            if why != "ended":
                await wait_for_ports(begun, ctx)
        except BaseException:
            await begun.abandon()
            raise
        if why == "ended":
            begun.close()
            return _build_result(begun, args, ctx, took=time.perf_counter() - begun_at)
        task = leave(begun, ctx, args.description)
        return Left(snapshot_task(task, begun.running.news() if args.delay_seconds else ""))

    async def _run_to_end(self, begun: CommandStart, args: ShellArgs, ctx: Context) -> CommandResult | Left:
        """A command that is waited for, until its time is up."""
        settings = ctx.need(Settings).shell
        begun_at = time.perf_counter()
        seconds = _least(args.seconds, args.most_seconds, settings.seconds)
        quiet_seconds = _least(args.quiet_seconds, settings.quiet_seconds)
        tasks = ctx.need(Tasks)
        tasks.waited.append(begun.running)
        try:
            why = await begun.running.wait(seconds, quiet_seconds=quiet_seconds)
            released = why == "time" and begun.running not in tasks.waited
            yields = why == "time" and args.yields and tasks.has_room and may_go_on(args.command)
            if yields or released:
                text = _collect_output(begun, begun.running.result(), args, ctx)
                task = leave(begun, ctx, args.description)
                begun.running.news()  # it is told here
                if released:
                    ctx.note("The user has sent it to the background.")
                return Left(snapshot_task(task, text), after=None if released else seconds)
            if why != "ended":
                await begun.running.stop()
        except BaseException:
            await begun.abandon()
            raise
        finally:
            if begun.running in tasks.waited:
                tasks.waited.remove(begun.running)
        begun.close()
        if why == "time" and seconds == settings.seconds:
            ctx.note(f"The command was stopped after {seconds:g} seconds (shell.seconds).")
        if why == "quiet":
            whose = " (shell.quiet_seconds)" * (quiet_seconds == settings.quiet_seconds)
            ctx.note(f"The command was stopped after {quiet_seconds:g} seconds without output{whose}.")
        ran = _build_result(begun, args, ctx, took=time.perf_counter() - begun_at, stopped=why != "ended")
        return ran._replace(
            timed_out_after=seconds if why == "time" else None, quiet_after=quiet_seconds if why == "quiet" else None
        )


def was_stopped(outcome: CommandResult) -> bool:
    return outcome.timed_out_after is not None or outcome.quiet_after is not None


def may_go_on(command: str) -> bool:
    """May it go on when its time is up? Not what only sleeps, what works with git, which locks, or cannot be read."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return False
    return bool(words) and words[0] != "sleep" and "git" not in command


def _check(args: ShellArgs, ctx: Context) -> None:
    if not args.command.strip():
        raise ToolFailure("The command is empty.")
    if args.detach and not (args.outside and os.name == "posix"):
        raise BadArguments(
            "detach: what outlives the session cannot be confined; give `outside` too, on a POSIX system."
        )
    for name in ("seconds", "quiet_seconds"):
        if (value := getattr(args, name)) is not None and value <= 0:
            raise BadArguments(f"{ctx.param(name)}: must be more than 0.")
    if args.seconds is not None and args.most_seconds is not None and args.seconds > args.most_seconds:
        ctx.note(f"{ctx.param('seconds')} was shortened to {args.most_seconds:g} seconds, the most there is.")


def _folder(args: ShellArgs, ctx: Context) -> str:
    return start_folder(ctx) if _follows(args) else ctx.path(args.cwd)


def _follows(args: ShellArgs) -> bool:
    """Does it begin where the last one ended?"""
    return args.carry and args.cwd == "."


def _build_result(
    begun: CommandStart, args: ShellArgs, ctx: Context, *, took: float, stopped: bool = False
) -> CommandResult:
    finished = begun.running.result()
    text = _collect_output(begun, finished, args, ctx)
    if finished.log_error:
        ctx.drop_log()
        ctx.note(f"The full output could not be kept: {finished.log_error}.")
    elif finished.logged_bytes < finished.total_bytes:
        ctx.note(f"Only the first {finished.logged_bytes:,} of {finished.total_bytes:,} bytes of output were kept.")
    if finished.survivors_killed and not stopped:
        ctx.note("Processes that the command left running were stopped.")
    assert finished.exit_code is not None
    if limit := describe_limit(begun.limits, finished.exit_code, finished.errors or finished.text):
        ctx.note(limit)
    lines = count_printed_lines(begun, finished)
    return CommandResult(begun.command, begun.cwd, text, finished.exit_code, None, finished.errors, took, lines=lines)


def _collect_output(begun: CommandStart, finished: Finished, args: ShellArgs, ctx: Context) -> str:
    """What is shown of the output. The log is kept where that is not all."""
    found = begun.running.highlights
    if args.tail_bytes is None:
        text = finished.text if args.apart else insert_highlights(finished.text, finished.missing_chars, found)
        newlines = text.count("\n") + finished.errors.count("\n")
        ctx.mark(lambda: subtract_newlines(found(), newlines))
        if finished.missing_chars:
            # What stands between the ends is not output.
            shown_chars = len(finished.text) + len(finished.errors)
            ctx.keep_log(finished.logged_bytes, missing=max(1, finished.total_chars - shown_chars))
        return text
    room = args.tail_bytes - len(args.command.encode(errors="replace")) - len(os.fsencode(begun.cwd))
    text = _within(finished.text, room)
    if len(text) == finished.total_chars:
        return text
    ctx.keep_log(finished.logged_bytes)
    between = block(found().lines, text.split("\n"), chars=len(text) // SHARE)
    text = text[len(between) + 2 :] if between else text
    also = " Before them stand lines of the rest that look like errors or summaries, with their numbers." * bool(
        between
    )
    ctx.note(f"Only the last {len(text):,} of {finished.total_chars:,} characters of output are shown.{also}")
    return f"{between}\n\n{text}" if between else text


def _within(text: str, room: int) -> str:
    """The end of a text that has no more bytes than there is room for."""
    if len(text) * 4 <= room:
        return text
    raw = text.encode()
    return raw[max(0, len(raw) - max(0, room)) :].decode(errors="ignore")


def _least(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


_PATHS = 20
_REASON_CHARS = 500


class WidenArgs(Args, frozen=True, kw_only=True):
    network: bool = False
    """May commands use the network?"""
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    reason: str = ""


class Widen(Tool[WidenArgs, Permitted]):
    """Folders are opened by whoever lets this call in: it touches them. What is written there is still asked about."""

    name = "request_permissions"
    args = WidenArgs
    title = "Ask for more permissions"
    hints = ADDS
    timed = False

    def access(self, args: WidenArgs, ctx: Context) -> tuple[Access, ...]:
        paths = dict.fromkeys((*args.read, *args.write))
        if not paths and not args.network:
            raise BadArguments(f"{ctx.param('network')}: ask for the network, or for paths to read or write.")
        if len(paths) > _PATHS:
            raise BadArguments(f"{ctx.param('read')}: names more than {_PATHS} paths.")
        return tuple(Access.read(ctx.path(path)) for path in paths)

    async def run(self, args: WidenArgs, ctx: Context) -> Permitted:
        jail = ctx.need(Jail)
        network = False
        if args.network:
            why = f" ({' '.join(args.reason.split())[:_REASON_CHARS]})" if args.reason.strip() else ""
            network = await ctx.approve(f"let commands use the network for the rest of this session{why}")
            if network:
                ctx.need(Confinement).allow_network()
            else:
                ctx.note("The user did not allow the network.")
        for path in map(ctx.path, args.write):
            if jail.holds(path):
                ctx.need(Confinement).allow_write(path)
        return Permitted(
            network,
            tuple(path for path in map(ctx.path, args.read) if jail.holds(path)),
            tuple(path for path in map(ctx.path, args.write) if jail.holds(path)),
        )
