"""Define the options shared by commands, their shell completion, and how commands run the engine.

A signal that ends the program first ends its calls.
"""

import asyncio
import contextlib
import math
import os
import select
import signal
import stat
import sys
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ferrule.cli.show import DONE, FAILED, INTERRUPTED, REFUSED, USAGE
from ferrule.core.call import Event, Reply, Reported
from ferrule.core.errors import ConfigError
from ferrule.dialects import FAMILIES, load_dialect
from ferrule.engine import Engine
from ferrule.permissions import MODES, Asker, Everybody, Nobody
from ferrule.settings import load_settings, state_folder
from ferrule.system.proc import is_ignored

if TYPE_CHECKING:
    from ferrule.agent import Limits


_MOST_THREADS = 100


def dialects(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return _match_prefix(FAMILIES, begun)


def modes(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return _match_prefix((mode.name for mode in MODES), begun)


def models(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Short names, the models that are known, and hosts; behind a host and its colon the models known there."""
    from ferrule.models.catalog import CATALOG, SHORT
    from ferrule.models.hosts import ROWS, host_names

    host, colon, *_rest = begun.partition(":")
    begins = ROWS[host].begins if host in ROWS else ()
    if colon:
        return _match_prefix((f"{host}:{row.begins}" for row in CATALOG if row.begins.startswith(begins or ())), begun)
    try:
        settings = load_settings().models
    except ConfigError:
        return _match_prefix(SHORT, begun)
    known = (row.begins for row in CATALOG)
    return _match_prefix([*SHORT, *settings.roles, *known, *(f"{host}:" for host in host_names(settings))], begun)


def tools(ctx: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The tools of the dialect that the line names, else of the settings'."""
    try:
        faces = load_dialect(ctx.params.get("dialect") or load_settings().dialect).faces
    except ConfigError:
        return []
    return _match_prefix((face.name for face in faces if face.shown), begun)


def thread_ids(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The ids of the newest threads."""
    from ferrule.system.sqlite import UnusableError
    from ferrule.tools.threads.store import ThreadStore

    store = ThreadStore(os.path.join(state_folder(), "threads"))
    try:
        return _match_prefix((about.id for about in store.list(limit=_MOST_THREADS)), begun)
    except UnusableError:
        return []
    finally:
        store.close()


def setting_keys(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The names of the settings."""
    from ferrule.cli.config import list_setting_keys  # as above

    try:
        return _match_prefix(list_setting_keys(), begun)
    except ConfigError:
        return []


def _match_prefix(names: Iterable[str], begun: str) -> list[str]:
    return [name for name in dict.fromkeys(names) if name.startswith(begun)]


F = TypeVar("F", bound=Callable[..., Any])
NO_ID = "?"
"""What --resume means without an id."""
_PATIENCE_SECONDS = 3.0
"""So long the first byte on standard input may take. Some programs hand a pipe to whatever they start, and never write
into it or close it."""


def _answer(ctx: click.Context, option: click.Parameter, said: bool) -> None:  # noqa: FBT001 - click's signature
    """Both are one answer to whatever asks: whoever gives both has made a mistake."""
    if said and ctx.params.get("answer") is not None:
        raise click.UsageError("Give --yes or --deny, not both.", ctx)
    ctx.params["answer"] = option.name if said else ctx.params.get("answer")


class Prompted(click.Command):
    """Says how a task is written that has several words."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message:
                raise
            how = f'A task of several words stands in quotes: ferrule {ctx.info_name} "what to do"'
            raise click.UsageError(f"{error.message}. {how}", ctx) from error


class Amount(click.FloatRange):
    """A number above 0; a word that is none is named as such."""

    name = "number"


def _finite(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """No number is ever more than one that is none, and a limit that is never met is no limit."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no number of that.")
    return value


LEFT_OUT = "ferrule.left_out"
"""Where a context has the options that nobody here knows; only a program that drives this one may give such."""


def _servers(ctx: click.Context, _: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """What the user has just written is to be right; another program's form may have servers that it runs itself."""
    if given and LEFT_OUT not in ctx.meta:
        from ferrule.sources.mcp.config import errors_of  # for whoever gives some

        if wrong := errors_of(given):
            raise click.UsageError("\n".join(f"--mcp-config: {line.removeprefix('--mcp-config: ')}" for line in wrong))
    return given


_OPTIONS = (
    click.option(
        "--dialect",
        metavar="NAME",
        shell_complete=dialects,
        help=f"The model family that is spoken: {', '.join(FAMILIES)}.",
    ),
    click.option(
        "-m",
        "--model",
        metavar="ID",
        shell_complete=models,
        help="The model to ask, as HOST:MODEL; `ferrule models` lists them.",
    ),
    click.option(
        "-C",
        "--workspace",
        type=click.Path(),
        metavar="DIR",
        default=".",
        help="The folder to work in (default: this one).",
    ),
    click.option(
        "--add-dir",
        "add_dirs",
        type=click.Path(),
        metavar="DIR",
        multiple=True,
        help="One more folder that may be touched.",
    ),
    click.option("--network", is_flag=True, help="Let commands in the sandbox use the network."),
    click.option(
        "--allow-host",
        "allow_hosts",
        metavar="HOST",
        multiple=True,
        help="Let commands in the sandbox reach this host, such as example.org or *.example.org.",
    ),
    click.option(
        "--mcp-config",
        metavar="JSON",
        multiple=True,
        callback=_servers,
        help="More MCP servers for this session: a file, or JSON.",
    ),
    click.option(
        "--permission-mode",
        metavar="MODE",
        shell_complete=modes,
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
_NAMES = frozenset(
    [
        "dialect",
        "model",
        "workspace",
        "add_dirs",
        "network",
        "allow_hosts",
        "mcp_config",
        "permission_mode",
        "yes",
        "deny",
    ]
)

_AGENT_OPTIONS = (
    click.option(
        "-r",
        "--resume",
        metavar="ID",
        default="",
        is_flag=False,
        flag_value=NO_ID,
        shell_complete=thread_ids,
        help="Go on with this conversation; see `ferrule threads`.",
    ),
    click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the last conversation in this folder."),
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
_LIMITS = (
    click.option("--max-turns", type=click.IntRange(1), help="How often the model may be asked."),
    click.option("--max-tokens", type=click.IntRange(1), help="How many tokens it may take."),
    click.option(
        "--max-cost",
        "--max-budget-usd",
        "max_cost",
        type=Amount(0),
        callback=_finite,
        help="How many dollars it may take.",
    ),
    click.option("--max-seconds", type=Amount(0, min_open=True), callback=_finite, help="How long it may take."),
)


def session_options(command: F) -> F:
    """Add them to a command that asks a model; they arrive as keywords, as `open_engine` takes them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def engine_options(*names: str) -> Callable[[F], F]:
    """Add them to a command that asks no model. Its help has those of the names alone; without names it has all."""

    def add(command: F) -> F:
        command = session_options(command)
        for option in command.__click_params__:  # type: ignore[attr-defined] # click's own
            if isinstance(option, click.Option) and option.name == "model":
                option.help = "Speak the dialect that this model knows best."
            # Taken all the same: a script may give the same options to every command.
            if names and option.name in _NAMES:
                option.hidden = option.name not in names
        return command

    return add


def agent_options(command: F) -> F:
    """Add those of commands that ask a model; `agent_session` understands them, with those of sessions."""
    command = limit_options(command)
    for option in reversed(_AGENT_OPTIONS):
        command = option(command)
    return command


def limit_options(command: F) -> F:
    """Add how much may be used; `take_limits` understands them."""
    for option in reversed(_LIMITS):
        command = option(command)
    return command


def take_limits(options: dict[str, Any]) -> "Limits | None":
    """Take the limits out of the options; None if there is none."""
    from ferrule.agent import Limits  # for commands that ask a model

    limits = Limits(*(options.pop(f"max_{name}") for name in Limits._fields))
    return limits if any(limit is not None for limit in limits) else None


def agent_session(
    *, resume: str, go_on: bool, replay: str, answer: str | None, model: str | None, **more: Any
) -> dict[str, Any]:
    """What a `Session` is given for these options."""
    if resume == NO_ID:
        raise click.UsageError(
            "--resume needs the id of a conversation: `ferrule threads` lists them, and `ferrule chat --resume` shows "
            "a list to choose from. --continue goes on with the last one."
        )
    if resume and go_on:
        raise click.UsageError("Give --resume or --continue, not both.")
    if replay and model:
        raise click.UsageError("Give --model or --replay, not both.")
    limits = take_limits(more)
    ask = more.pop("ask", None) or asker_of(answer, many=True)
    return {
        **more,
        "model": f"scripted:{replay}" if replay else model,
        "resume": "last" if go_on else resume,
        "limits": limits,
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
        from ferrule.cli.prompts import TerminalAsker, at_a_terminal  # only for people

        source = at_a_terminal()
        if source is not None:
            return TerminalAsker(source, many=many)
    return Nobody()


def show_report(event: Event) -> None:
    """Show what the user is to know and the model is not."""
    if isinstance(event, Reported):
        click.echo(f"warning: {event.sentence}", err=True)


def read_stdin() -> str:
    """All of standard input; what is not text is a usage error."""
    if sys.stdin is None:
        raise click.UsageError("Standard input is closed.")
    try:
        raw = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    except (OSError, ValueError) as error:
        raise click.UsageError(f"Standard input cannot be read: {error}.") from error
    return as_text(raw, "Standard input")


def read_piped_input() -> str:
    """What stands on standard input beside a task: all of a file or of a pipe, and nothing where there is neither."""
    try:
        descriptor = sys.stdin.fileno()
        kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    except (AttributeError, OSError, ValueError):
        return ""
    if kind == stat.S_IFREG:
        return read_stdin()
    if kind not in {stat.S_IFIFO, stat.S_IFSOCK}:
        return ""

    try:
        is_ready = bool(select.select([descriptor], [], [], _PATIENCE_SECONDS)[0])
    except OSError:  # Windows waits for no pipe
        return ""
    if is_ready:
        return read_stdin()
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


T = TypeVar("T")

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class StoppedError(Exception):
    """A signal asked the program to end; its calls have been cancelled and cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def finish(main: Coroutine[Any, Any, T]) -> T:
    """Run it to its end. SIGTERM and SIGHUP cancel it as ctrl-C does, so that no process outlives the program."""
    return asyncio.run(_until_signal(main))


async def _until_signal(main: Coroutine[Any, Any, T]) -> T:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    caught: list[int] = []

    def stop(number: int) -> None:
        caught.append(number)
        task.cancel()

    heeded = [number for number in _SIGNALS if not is_ignored(number)]  # `nohup` means the program to go on
    for number in heeded:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows; not the main thread
            loop.add_signal_handler(number, stop, number)
    try:
        return await main
    except asyncio.CancelledError:
        if caught:
            raise StoppedError(caught[0]) from None
        raise
    finally:
        for number in heeded:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(number)
