"""Run a command line."""

import os
import time

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.outcomes import Ran
from ferrule.core.tool import Context, Tool
from ferrule.settings import Settings
from ferrule.support import process
from ferrule.support.beneath import describe
from ferrule.support.environment import quiet_environment
from ferrule.workspace.paths import Jail


class ShellArgs(Args, frozen=True, kw_only=True):
    command: str
    cwd: str = "."
    seconds: float | None = None
    """The command is stopped after this time."""
    most_seconds: float | None = None
    """A longer time is shortened to this."""
    background: bool = False
    tail_chars: int = 50_000
    tail_bytes: int | None = None
    """The tail and the command are cut to this together: the exit code must fit behind them, whatever they hold."""
    head_chars: int = 0
    """So many of the first characters are kept too."""
    flags: tuple[str, ...] = ()
    """What the shell itself is given before the command."""
    apart: bool = False
    """Are the errors kept apart from the output?"""


class Shell(Tool[ShellArgs, Ran]):
    """A fresh shell per call: nothing carries over, nothing is left running, an exit code is not a failure."""

    name = "shell"
    args = ShellArgs
    timed = False

    def access(self, args: ShellArgs, ctx: Context) -> tuple[Access, ...]:
        _check(args, ctx)  # before anybody is asked about it
        cwd = ctx.path(args.cwd)
        return (Access.command(args.command, cwd), Access.read(cwd))

    async def run(self, args: ShellArgs, ctx: Context) -> Ran:
        settings = ctx.need(Settings).shell
        cwd, roots = ctx.path(args.cwd), [root.path for root in ctx.need(Jail).roots]
        ctx.need(Jail).check(cwd)
        begun = time.perf_counter()
        seconds = _least(args.seconds, args.most_seconds, settings.seconds)
        try:
            ended = await process.run(
                [process.shell(outside=roots), *args.flags, "-c", args.command],
                cwd=cwd,
                env=quiet_environment(os.environ, keep=settings.keep_env),
                log=ctx.new_log(),
                log_limit_bytes=settings.log_mb << 20,
                tail_chars=args.tail_chars,
                head_chars=args.head_chars,
                apart=args.apart,
                on_output=lambda text: ctx.progress(_last_line(text)),
                seconds=seconds,
            )
        except OSError as error:
            raise ToolFailure(f"Cannot run it in {cwd}: {describe(error)}.", path=cwd) from error
        text = _kept(ended, args, cwd, ctx)
        if ended.log_error:
            ctx.drop_log()
            ctx.note(f"The full output could not be kept: {ended.log_error}.")
        elif ended.logged_bytes < ended.total_bytes:
            ctx.note(f"Only the first {ended.logged_bytes:,} of {ended.total_bytes:,} bytes of output were kept.")
        if ended.timed_out and seconds == settings.seconds:
            ctx.note(f"The command was stopped after {seconds:g} seconds (shell.seconds).")
        if ended.survivors_killed:
            ctx.note("Processes that the command left running were stopped.")
        timed_out_after = seconds if ended.timed_out else None
        took = time.perf_counter() - begun
        return Ran(args.command, cwd, text, ended.exit_code, timed_out_after, ended.errors, took)


def _check(args: ShellArgs, ctx: Context) -> None:
    if not args.command.strip():
        raise ToolFailure("The command is empty.")
    if args.background:
        raise ToolFailure(
            f"{ctx.param('background')}: this version leaves no command running. Run it in the foreground.",
            code="no-background",
        )
    if args.seconds is not None and args.seconds <= 0:
        raise BadArguments(f"{ctx.param('seconds')}: must be more than 0.")
    if args.seconds is not None and args.most_seconds is not None and args.seconds > args.most_seconds:
        ctx.note(f"{ctx.param('seconds')} was shortened to {args.most_seconds:g} seconds, the most there is.")


def _kept(ended: process.Finished, args: ShellArgs, cwd: str, ctx: Context) -> str:
    """What is shown of the output. The log is kept where that is not all."""
    if args.tail_bytes is None:
        if ended.missing_chars:
            # What stands between the ends is not output.
            shown_chars = len(ended.text) + len(ended.errors)
            ctx.keep_log(ended.logged_bytes, missing=max(1, ended.total_chars - shown_chars))
        return ended.text
    text = _within(ended.text, args.tail_bytes - len(args.command.encode(errors="replace")) - len(os.fsencode(cwd)))
    if len(text) < ended.total_chars:
        ctx.keep_log(ended.logged_bytes)
        ctx.note(f"Only the last {len(text):,} of {ended.total_chars:,} characters of output are shown.")
    return text


def _within(text: str, room: int) -> str:
    """The end of a text that has no more bytes than there is room for."""
    if len(text) * 4 <= room:
        return text
    raw = text.encode()
    return raw[max(0, len(raw) - max(0, room)) :].decode(errors="ignore")


def _least(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _last_line(text: str) -> str:
    return text.rstrip().rsplit("\n", 1)[-1][-200:]
