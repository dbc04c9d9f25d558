"""The options that every command takes, and the engine that they describe."""

import math
import os
import stat
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ferrule.cli.codes import DONE, FAILED, INTERRUPTED, REFUSED, USAGE
from ferrule.core.events import Event, Reported
from ferrule.core.reply import Reply
from ferrule.dialects.dialect import FAMILIES
from ferrule.engine import Engine
from ferrule.permissions.asker import Asker, Everybody, Nobody

F = TypeVar("F", bound=Callable[..., Any])
_COMPLETED = 100
_PATIENCE_SECONDS = 3.0
"""So long the first byte on standard input may take. Some programs hand a pipe to whatever they start, and never write
into it or close it."""


def _answer(ctx: click.Context, option: click.Parameter, said: bool) -> None:  # noqa: FBT001 - click's signature
    """Both are one answer to whatever asks: whoever gives both has made a mistake."""
    if said and ctx.params.get("answer") is not None:
        raise click.UsageError("Give --yes or --deny, not both.", ctx)
    ctx.params["answer"] = option.name if said else ctx.params.get("answer")


def _finite(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """No number is ever more than one that is none, and a limit that is never met is no limit."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of that.")
    return value


_OPTIONS = (
    click.option("--dialect", metavar="NAME", help=f"The model family that is spoken: {', '.join(FAMILIES)}."),
    click.option(
        "--model",
        metavar="ID",
        help="The model: run, chat and check ask it, as HOST:MODEL; the others speak the dialect that it knows best.",
    ),
    click.option("--workspace", metavar="DIR", default=".", help="The folder to work in (default: this one)."),
    click.option("--add-dir", "add_dirs", metavar="DIR", multiple=True, help="One more folder that may be touched."),
    click.option("--network", is_flag=True, help="Let commands in the sandbox use the network."),
    click.option(
        "--allow-host",
        "allow_hosts",
        metavar="HOST",
        multiple=True,
        help="Let commands in the sandbox reach this host, such as example.org or *.example.org.",
    ),
    click.option(
        "--mcp-config", metavar="JSON", multiple=True, help="More MCP servers for this session: a file, or JSON."
    ),
    click.option(
        "--permission-mode",
        metavar="MODE",
        help="What happens where no rule speaks: default, acceptEdits, plan, dontAsk or bypassPermissions.",
    ),
    click.option(
        "--yes",
        is_flag=True,
        callback=_answer,
        expose_value=False,
        help="Allow what would ask. It opens no other folder.",
    ),
    click.option(
        "--deny",
        is_flag=True,
        callback=_answer,
        expose_value=False,
        help="Deny what would ask (the default without a terminal).",
    ),
)


def thread_ids(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """For shells that complete a line: the ids of the newest threads that begin so."""
    from ferrule.settings import state_folder  # for whoever presses tab
    from ferrule.support.sqlite import UnusableError
    from ferrule.workspace.thread_store import ThreadStore

    store = ThreadStore(os.path.join(state_folder(), "threads"))
    try:
        return [about.id for about in store.list(limit=_COMPLETED) if about.id.startswith(begun)]
    except UnusableError:
        return []
    finally:
        store.close()


_AGENT_OPTIONS = (
    click.option(
        "--resume",
        metavar="ID",
        default="",
        shell_complete=thread_ids,
        help="Go on with this conversation; see `ferrule threads`.",
    ),
    click.option("--continue", "go_on", is_flag=True, help="Go on with the last conversation in this folder."),
    click.option("--max-turns", type=click.IntRange(1), help="How often the model may be asked."),
    click.option("--max-tokens", type=click.IntRange(1), help="How many tokens it may take."),
    click.option(
        "--max-cost",
        "--max-budget-usd",
        "max_cost",
        type=click.FloatRange(0),
        callback=_finite,
        help="How many dollars it may take.",
    ),
    click.option(
        "--max-seconds", type=click.FloatRange(0, min_open=True), callback=_finite, help="How long it may take."
    ),
    click.option(
        "--record", type=click.Path(), metavar="FILE", default="", help="Record the conversation in this file."
    ),
    click.option(
        "--replay",
        type=click.Path(),
        metavar="FILE",
        default="",
        help="Play a recorded conversation in the place of a model.",
    ),
)


def session_options(command: F) -> F:
    """Add them to a command; they arrive as keywords, as `open_engine` takes them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def agent_options(command: F) -> F:
    """Add those of commands that ask a model; `agent_session` understands them, with those of sessions."""
    for option in reversed(_AGENT_OPTIONS):
        command = option(command)
    return command


def agent_session(
    *, resume: str, go_on: bool, replay: str, answer: str | None, model: str | None, **more: Any
) -> dict[str, Any]:
    """What a `Session` is given for these options."""
    from ferrule.agent.budget import Limits  # for commands that ask a model

    if resume and go_on:
        raise click.UsageError("Give --resume or --continue, not both.")
    if replay and model:
        raise click.UsageError("Give --model or --replay, not both.")
    limits = Limits(*(more.pop(f"max_{name}") for name in Limits._fields))
    ask = more.pop("ask", None) or asker_of(answer, many=True)
    return {
        **more,
        "model": f"scripted:{replay}" if replay else model,
        "resume": "last" if go_on else resume,
        "limits": limits if any(limit is not None for limit in limits) else None,
        "ask": ask,
    }


def open_engine(
    *,
    dialect: str | None,
    model: str | None,
    workspace: str,
    add_dirs: tuple[str, ...],
    answer: str | None,
    many: bool = True,
    ask: Asker | None = None,
    **more: Any,
) -> Engine:
    """The engine that the options describe, not opened yet; `many` calls may ask more than once.

    `ask` answers where the options leave questions open, in the place of a person at the terminal.
    """
    if dialect is not None and model is not None:
        raise click.UsageError("Give --dialect or --model, not both.")
    asker = ask if ask is not None and answer is None else asker_of(answer, many=many)
    return Engine(workspace, dialect=dialect, model=model, add_dirs=add_dirs, ask=asker, **more)


def asker_of(answer: str | None, *, many: bool) -> Asker:
    """Whoever answers questions, as --yes, --deny and the terminal have it."""
    if answer == "yes":
        return Everybody()
    if answer is None and sys.stderr is not None and sys.stderr.isatty():
        from ferrule.cli.terminal import Terminal, at_a_terminal  # only for people

        source = at_a_terminal()
        if source is not None:
            return Terminal(source, many=many)
    return Nobody()


def show_report(event: Event) -> None:
    """Show what the user is to know and the model is not."""
    if isinstance(event, Reported):
        click.echo(f"warning: {event.sentence}", err=True)


def typed_in() -> str:
    """All of standard input; what is not text is a usage error."""
    if sys.stdin is None:
        raise click.UsageError("Standard input is closed.")
    try:
        raw = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    except (OSError, ValueError) as error:
        raise click.UsageError(f"Standard input cannot be read: {error}.") from error
    return as_text(raw, "Standard input")


def piped_in() -> str:
    """What stands on standard input beside a task: all of a file or of a pipe, and nothing where there is neither."""
    try:
        descriptor = sys.stdin.fileno()
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    except (AttributeError, OSError, ValueError):
        return ""
    if kind == stat.S_IFREG:
        return typed_in()
    if kind not in {stat.S_IFIFO, stat.S_IFSOCK}:
        return ""
    import select  # for pipes

    try:
        is_ready = bool(select.select([descriptor], [], [], _PATIENCE_SECONDS)[0])
    except OSError:  # Windows waits for no pipe
        return ""
    if is_ready:
        return typed_in()
    click.echo(
        f"warning: Nothing has come on standard input for {_PATIENCE_SECONDS:g} s, so it is left alone. Where nothing "
        "is to come, add </dev/null; `ferrule run -` waits for a task that comes slowly.",
        err=True,
    )
    return ""


def as_text(raw: bytes, what: str) -> str:
    """Bytes from outside as text, whatever the locale says."""
    try:
        return raw.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{what} is not UTF-8 text (byte {error.start + 1}).") from error


def exit_code(replies: list[Reply]) -> int:
    """That of the most serious reply."""
    codes = {_code(reply) for reply in replies}
    return next((code for code in (INTERRUPTED, USAGE, FAILED, REFUSED) if code in codes), DONE)


def _code(reply: Reply) -> int:
    if reply.status == "done":
        return DONE
    if reply.status == "rejected-by-user":
        return REFUSED
    if reply.status == "cancelled":
        return INTERRUPTED
    wrong = reply.error is not None and reply.error.error_code in ("unknown-tool", "bad-arguments")
    return USAGE if wrong else FAILED
