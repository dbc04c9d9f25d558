"""`ferrule`: finds the command, and turns every error into one line and an exit code."""

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence

import click

from ferrule import __version__
from ferrule.cli.options import StoppedError
from ferrule.cli.show import BUG, DONE, FAILED, INTERRUPTED, USAGE
from ferrule.core.errors import FerruleError, near
from ferrule.system import proc
from ferrule.system.proc import hold_none_back

COMMANDS = {
    "chat": "Talk to an agent at the terminal; so does `ferrule` alone.",
    "call": "Run one tool call and print its reply.",
    "run": "Have a model work on a task.",
    "exec": "Run a message of calls from JSON lines.",
    "check": "Run the project's own checks: types, lint, tests, reviews.",
    "tools": "List the tools, or show one.",
    "models": "List the hosts and models, or test one.",
    "permissions": "Show the rules, and what they say about a call.",
    "proxy": "Let other agents use models of any host, over any model API.",
    "mcp": "Serve the tools over MCP, and manage the servers whose tools are used.",
    "skills": "List the skills, or show one.",
    "threads": "List, show, search, export, rewind and delete the conversations that are kept.",
    "tasks": "List the commands that were left running, or end one.",
    "undo": "Take back the last write.",
    "redo": "Write again what was undone.",
    "output": "Print a full output that was kept.",
    "config": "Show and change the settings.",
    "login": "Keep the key of a host, or show where each key comes from.",
    "logout": "Remove a key that `ferrule login` has kept.",
    "doctor": "Check what this machine has.",
    "demo": "See an agent mend a small project; no key, no network.",
    "completion": "Print the script that completes a line in bash, zsh or fish.",
    "version": "Print the version.",
}
_BESIDE = {
    "exec": ("call", "exec_command"),
    "redo": ("undo", "redo_command"),
    "output": ("undo", "output_command"),
    "chat": ("talk.command", "command"),
    "logout": ("login", "logout"),
    "version": ("main", "version_command"),
}
"""Commands that stand in the module of another one, and what each is there."""
ALIASES = {"sessions": "threads"}
"""Names that people try, and the commands that they mean."""
_OWN = {"-h", "--help", "-V", "--version"}
"""What `ferrule` itself takes; every other option without a command is for the chat, or for `run` in a pipe."""


class Lazy(click.Group):
    """Loads the module of a command when that command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        module, name = _BESIDE.get(cmd_name, (cmd_name, "command"))
        command = getattr(importlib.import_module(f"ferrule.cli.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and args[0] not in ALIASES and not args[0].startswith("-"):
            meant = near(args[0], [*COMMANDS, *ALIASES], most=1)
            hint = f" Did you mean {meant[0]!r}?" if meant else " `ferrule --help` lists them."
            hint += f" A task of one word stands behind --: ferrule -- {args[0]}"
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("-V", "--version", is_flag=True, help="Print the version and exit.")
@click.pass_context
def cli(ctx: click.Context, *, version: bool) -> None:
    """A coding agent, and the tool engine under it.

    \b
    Examples:
      ferrule
      ferrule "why does test_cart fail?"
      ferrule --continue
      ferrule demo
      ferrule login anthropic
      ferrule run "why does test_cart fail?" --model ollama:qwen3
      ferrule call Read '{"path": "README.md"}'
      ferrule call Grep '{"pattern": "TODO"}' --json
      ferrule check
      ferrule tools show edit_file
      ferrule undo
    """
    if version:
        click.echo(f"ferrule {__version__}")
    elif ctx.invoked_subcommand is None:
        # At a terminal one wants to talk; everybody else is told what there is.
        if _is_terminal():
            ctx.exit(ctx.invoke(_chat()))
        click.echo(ctx.get_help())


@click.command("version")
def version_command() -> None:
    """Print the version."""
    click.echo(f"ferrule {__version__}")


def with_command(args: list[str]) -> list[str]:
    """The arguments with the command that is meant where none is named: a task, or options of the chat."""
    first = args[0] if args else ""
    is_task = first == "--" or (any(sign.isspace() for sign in first.strip()) or first.rstrip().endswith("?"))
    if first == "help":
        return [*args[1:], "--help"]
    if not args or first in COMMANDS or first in ALIASES or first in _OWN:
        return args
    if first.startswith("-") and first != "--":
        # Options stand behind a command that is named, and `main` says so.
        if any(word in COMMANDS or word in ALIASES for word in args):
            return args
    elif not is_task:
        return args
    rest = ["--", " ".join(args[1:])] if first == "--" else args
    is_printed = first != "--" and not {"-p", "--print"}.isdisjoint(args)  # as Claude Code has it
    return ["chat" if _is_terminal() and not is_printed else "run", *rest]


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdout is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _chat() -> click.Command:
    from ferrule.cli.talk.command import command  # for who names no command

    return command


def main(args: Sequence[str] | None = None) -> None:
    """The entry point. No traceback ever reaches a user."""
    proc.take()
    hold_none_back()
    sys.exit(run(args))


def run(args: Sequence[str] | None = None) -> int:
    """One command line, as an exit code."""
    try:
        code = cli.main(
            args=with_command(sys.argv[1:] if args is None else list(args)), prog_name="ferrule", standalone_mode=False
        )
    except click.ClickException as error:
        _show(error)
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # as in _give_up_output
        return DONE
    except StoppedError as error:
        return 128 + error.number
    except FerruleError as error:
        click.echo(f"ferrule: {error}", err=True)
        return USAGE
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else DONE
    except OSError as error:
        click.echo(f"ferrule: {error.strerror or error}: {error.filename or 'standard output'}", err=True)
        with contextlib.suppress(OSError, AttributeError, ValueError):
            _give_up_output()
        return FAILED
    except Exception as error:  # the last line of defence between a bug and a person
        if os.environ.get("FERRULE_DEBUG"):
            raise
        click.echo(f"ferrule: a bug: {type(error).__name__}: {error}", err=True)
        click.echo("Set FERRULE_DEBUG=1 to see where, and please report it.", err=True)
        return BUG
    return code if isinstance(code, int) else DONE


def _give_up_output() -> None:
    """Have what cannot be written go nowhere: Python would complain once more while it flushes, and exit with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _show(error: click.ClickException) -> None:
    error.show()
    if isinstance(error, click.NoSuchOption) and error.ctx is not None and error.ctx.parent is None:
        click.echo(f"Options come after the command: ferrule COMMAND {error.option_name}", err=True)
