"""The options that every command takes, and the engine that they describe."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from ferrule.core.call import Call
from ferrule.core.reply import Reply
from ferrule.engine import Engine
from ferrule.permissions.asker import Asker, Everybody, Nobody

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--dialect", metavar="NAME", help="The model family whose tools are meant (default: amp)."),
    click.option("--workspace", metavar="DIR", default=".", help="The folder to work in (default: this one)."),
    click.option("--add-dir", "add_dirs", metavar="DIR", multiple=True, help="One more folder that may be touched."),
    click.option("--yes", "answer", flag_value="yes", help="Allow what would ask. It opens no other folder."),
    click.option("--deny", "answer", flag_value="deny", help="Deny what would ask (the default without a terminal)."),
)


def session_options(command: F) -> F:
    """Add them to a command; they arrive as `dialect`, `workspace`, `add_dirs` and `answer`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def open_engine(
    *, dialect: str | None, workspace: str, add_dirs: tuple[str, ...], answer: str | None, **more: Any
) -> Engine:
    """The engine that the options describe, not opened yet."""
    return Engine(workspace, dialect=dialect, add_dirs=add_dirs, ask=_asker(answer), **more)


def _asker(answer: str | None) -> Asker:
    if answer == "yes":
        return Everybody()
    if answer is None and sys.stdin.isatty() and sys.stderr.isatty():
        from ferrule.cli.terminal import Terminal  # noqa: PLC0415 - only for people

        return Terminal()
    return Nobody()


def parse_call(line: str | bytes, where: str) -> Call:
    """A call object from JSON; a wrong one is a usage error of one line."""
    try:
        return msgspec.json.decode(line, type=Call)
    except msgspec.ValidationError as error:
        raise click.UsageError(f"{where}: {error}.") from error
    except msgspec.DecodeError as error:
        raise click.UsageError(f"{where}: not JSON: {error}.") from error


def exit_code(replies: list[Reply]) -> int:
    """0 all done, 1 a tool failed, 2 a call was written wrong, 3 a call was refused, 130 stopped."""
    codes = {_code(reply) for reply in replies}
    return next((code for code in (130, 2, 1, 3) if code in codes), 0)


def _code(reply: Reply) -> int:
    if reply.status == "done":
        return 0
    if reply.status == "rejected-by-user":
        return 3
    if reply.status == "cancelled":
        return 130
    wrong = reply.error is not None and reply.error.error_code in ("unknown-tool", "bad-arguments")
    return 2 if wrong else 1
