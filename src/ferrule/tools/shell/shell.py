"""Run a command line."""

import os

from ferrule.core.access import EVERYTHING, Access
from ferrule.core.args import Args
from ferrule.core.errors import ToolFailure
from ferrule.core.outcomes import Ran
from ferrule.core.tool import Context, Tool
from ferrule.settings import Settings
from ferrule.support import process
from ferrule.workspace.paths import Jail


class ShellArgs(Args, frozen=True, kw_only=True):
    command: str
    cwd: str = "."
    tail_chars: int = 50_000


class Shell(Tool[ShellArgs, Ran]):
    """A fresh shell per call: nothing carries over, nothing is left running, an exit code is not a failure."""

    name = "shell"
    args = ShellArgs
    timed = False

    def access(self, args: ShellArgs, ctx: Context) -> tuple[Access, ...]:
        return (EVERYTHING, Access.process(args.command), Access.read(ctx.path(args.cwd)))

    async def run(self, args: ShellArgs, ctx: Context) -> Ran:
        settings = ctx.need(Settings).shell
        cwd, roots = ctx.path(args.cwd), [root.path for root in ctx.need(Jail).roots]
        if not args.command.strip():
            raise ToolFailure("The command is empty.")
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
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise ToolFailure(f"Cannot run in {cwd}: {error.strerror}.", path=cwd) from error
        if ended.truncated:
            ctx.keep_log(ended.logged_bytes)
            ctx.note(f"Only the last {args.tail_chars:,} of {ended.total_chars:,} characters of output are shown.")
        if ended.log_error:
            ctx.note(f"The full output could not be kept: {ended.log_error}.")
        elif ended.logged_bytes < ended.total_bytes:
            ctx.note(f"Only the first {ended.logged_bytes:,} of {ended.total_bytes:,} bytes of output were kept.")
        if ended.timed_out:
            ctx.note(f"The command was stopped after {settings.seconds:g} seconds (shell.seconds).")
        if ended.survivors_killed:
            ctx.note("Processes that the command left running were stopped.")
        return Ran(args.command, cwd, ended.text, ended.exit_code)


def _last_line(text: str) -> str:
    return text.rstrip().rsplit("\n", 1)[-1][-200:]
