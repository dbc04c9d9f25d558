"""Run a command line."""

import os

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import ToolFailure
from ferrule.core.outcomes import Ran
from ferrule.core.tool import Context, Tool
from ferrule.settings import Settings
from ferrule.support import process
from ferrule.support.beneath import describe
from ferrule.workspace.paths import Jail


class ShellArgs(Args, frozen=True, kw_only=True):
    command: str
    cwd: str = "."
    tail_chars: int = 50_000
    tail_bytes: int = 100_000
    """The tail and the command are cut to this together: the exit code must fit behind them, whatever they hold."""


class Shell(Tool[ShellArgs, Ran]):
    """A fresh shell per call: nothing carries over, nothing is left running, an exit code is not a failure."""

    name = "shell"
    args = ShellArgs
    timed = False

    def access(self, args: ShellArgs, ctx: Context) -> tuple[Access, ...]:
        cwd = ctx.path(args.cwd)
        return (Access.command(args.command, cwd), Access.read(cwd))

    async def run(self, args: ShellArgs, ctx: Context) -> Ran:
        settings = ctx.need(Settings).shell
        cwd, roots = ctx.path(args.cwd), [root.path for root in ctx.need(Jail).roots]
        if not args.command.strip():
            raise ToolFailure("The command is empty.")
        ctx.need(Jail).check(cwd)
        try:
            ended = await process.run(
                [process.shell(outside=roots), "-c", args.command],
                cwd=cwd,
                env=process.quiet_environment(os.environ, keep=settings.keep_env),
                log=ctx.new_log(),
                log_limit_bytes=settings.log_mb << 20,
                tail_chars=args.tail_chars,
                on_output=lambda text: ctx.progress(_last_line(text)),
                seconds=settings.seconds,
            )
        except OSError as error:
            raise ToolFailure(f"Cannot run it in {cwd}: {describe(error)}.", path=cwd) from error
        text = ended.text
        room = max(0, args.tail_bytes - len(args.command.encode(errors="replace")) - len(os.fsencode(cwd)))
        if len(text) * 4 > room:
            raw = text.encode()
            text = raw[max(0, len(raw) - room) :].decode(errors="ignore")
        if len(text) < ended.total_chars:
            ctx.keep_log(ended.logged_bytes)
            ctx.note(f"Only the last {len(text):,} of {ended.total_chars:,} characters of output are shown.")
        if ended.log_error:
            ctx.drop_log()
            ctx.note(f"The full output could not be kept: {ended.log_error}.")
        elif ended.logged_bytes < ended.total_bytes:
            ctx.note(f"Only the first {ended.logged_bytes:,} of {ended.total_bytes:,} bytes of output were kept.")
        if ended.timed_out:
            ctx.note(f"The command was stopped after {settings.seconds:g} seconds (shell.seconds).")
        if ended.survivors_killed:
            ctx.note("Processes that the command left running were stopped.")
        return Ran(args.command, cwd, text, ended.exit_code)


def _last_line(text: str) -> str:
    return text.rstrip().rsplit("\n", 1)[-1][-200:]
