"""Implement `ferrule proxy`: let programs that speak one model API use models of any host.

Requests are shown as a live table in a terminal, and as a line each elsewhere.
"""

import asyncio
import contextlib
import importlib.util
import json
import os
import re
import secrets
import shutil
import signal
import sys
import time
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from ferrule.cli.options import finish, models
from ferrule.cli.show import DONE
from ferrule.core.errors import ConfigError
from ferrule.serve.http_server import check_token, is_loopback, listen
from ferrule.serve.proxy.records import Record, RequestRecords
from ferrule.serve.proxy.server import complaints, open_shop, routing_of, serve_proxy, start_of
from ferrule.serve.proxy.upstreams import check_targets
from ferrule.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ferrule.serve.proxy.exchange import Shop
    from ferrule.settings import Routing


_LISTEN = "127.0.0.1:8790"
_SECONDS = 0.5
"""How often the table is drawn."""
_END_SECONDS = 2.0
"""So long a program may take to end before it is killed."""


class _Options(NamedTuple):
    """What the command line says."""

    listen: str
    token: str
    is_given: bool
    """Is the token the user's own? Then it is not shown."""
    names: tuple[str, ...]
    tape: str
    log: str
    as_json: bool
    quiet: bool
    command: tuple[str, ...]


@click.command("proxy", context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.argument("command_line", nargs=-1, metavar="[-- PROGRAM [ARGS]...]", type=click.UNPROCESSED)
@click.option("--listen", metavar="HOST:PORT", help=f"Where to listen (default: {_LISTEN}, any port with PROGRAM).")
@click.option(
    "-m", "--model", metavar="HOST:MODEL", shell_complete=models, help="The model that answers every request."
)
@click.option(
    "--map", "rules", metavar="PATTERN=MODEL[,MODEL]...", multiple=True, help="A rule; later models are fallbacks."
)
@click.option("--profile", metavar="NAME", help="The routing under proxy.profiles.NAME in the settings.")
@click.option(
    "--token", envvar="FERRULE_PROXY_TOKEN", metavar="TOKEN", help="What clients must know; a random one without it."
)
@click.option("--name", "names", metavar="HOST", multiple=True, help="One more name that clients reach it by.")
@click.option(
    "--record",
    "tape",
    type=click.Path(),
    metavar="FILE",
    default="",
    help="Record all answers; --model scripted:FILE plays it.",
)
@click.option(
    "--log",
    type=click.Path(),
    metavar="FILE",
    default="",
    help="Append a JSON line for each request; no word of what was said.",
)
@click.option("--json", "as_json", is_flag=True, help="Print these lines on standard output.")
@click.option("--quiet", is_flag=True, help="Print no table and no lines.")
def command(
    *,
    command_line: tuple[str, ...],
    listen: str | None,
    model: str | None,
    rules: tuple[str, ...],
    profile: str | None,
    token: str | None,
    names: tuple[str, ...],
    tape: str,
    log: str,
    as_json: bool,
    quiet: bool,
) -> int:
    """Let any program that speaks a model API use models of any host.

    It serves the APIs of Anthropic (Messages), OpenAI (Chat Completions and Responses) and Gemini at one address, and
    asks the model that --model, --map or the settings under [proxy] name, with the keys that Ferrule has. A program
    behind -- is started with the address and a token in its environment, and the proxy ends with it.

    \b
    Examples:
      ferrule proxy --model openai:gpt-6.1-sol -- claude
      ferrule proxy --model anthropic:claude-opus-5-5 -- codex exec "add a test"
      ferrule proxy --map '*-haiku-*=ollama:qwen3' --map '*=openai:gpt-6-sol'
      ferrule proxy --record talk.jsonl --log requests.jsonl
    """
    if importlib.util.find_spec("uvicorn") is None:
        raise ConfigError("The proxy needs the package `uvicorn`: pip install 'ferrule[proxy]'.")
    if as_json and command_line:
        raise click.UsageError("--json prints on standard output, which is PROGRAM's: use --log FILE.")
    if command_line and shutil.which(command_line[0]) is None:
        raise click.UsageError(f"There is no program {command_line[0]!r} on PATH.")

    settings = load_settings()
    routing = routing_of(settings, profile, model, dict(map(_rule, rules)))
    check_targets(routing, settings.models)
    wrong = complaints(settings, routing)
    if model and any(name == model for name in wrong):
        raise ConfigError(f"{model} cannot be asked: {wrong[model]}")
    for name, why in wrong.items():
        click.echo(f"warning: {name}: {why}", err=True)
    options = _Options(
        listen=listen or ("127.0.0.1:0" if command_line else _LISTEN),
        token=secrets.token_urlsafe(32) if token is None else check_token(token),
        is_given=token is not None,
        names=names,
        tape=tape,
        log=log,
        as_json=as_json,
        quiet=quiet,
        command=command_line,
    )
    os.environ.pop("FERRULE_PROXY_TOKEN", None)
    return finish(_run_proxy(settings, routing, options))


def _rule(text: str) -> tuple[str, tuple[str, ...]]:
    pattern, equals, targets = text.partition("=")
    models_ = tuple(one.strip() for one in targets.split(",") if one.strip())
    if not equals or not pattern.strip() or not models_:
        raise click.UsageError(f"--map {text!r} is no rule: write PATTERN=HOST:MODEL, such as 'claude-*=ollama:qwen3'.")
    return pattern.strip(), models_


async def _run_proxy(settings: Settings, routing: "Routing", options: _Options) -> int:

    listening, host, port = listen(options.listen)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    with contextlib.ExitStack() as stack:
        stack.callback(listening.close)
        told = _build_listeners(options, stack)
        address = f"{host}:{port}"
        async with open_shop(
            settings, routing, token=options.token, told=told, tape=options.tape, address=address
        ) as shop:
            started = asyncio.Event()
            serving = asyncio.create_task(
                serve_proxy(shop, listening, host=host, token=options.token, names=options.names, ready=started.set)
            )
            try:
                await _first_of(asyncio.create_task(started.wait()), serving)
                if options.command:
                    _check_models(shop)
                    code = await _run_program(options, url, serving)
                else:
                    _greet(shop, options, host, url)
                    code = await _watch(shop, options, serving)
            finally:
                serving.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await serving
                _say_sum(shop, options)
            return code


def _check_models(shop: "Shop") -> None:
    """Raises ModelError where no request of a program could be answered."""
    if not shop.routes.names():
        shop.routes.chain("")


async def _first_of(*tasks: "asyncio.Task[Any]") -> None:
    """Wait for the first of several tasks; an error of it is raised."""
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


def _build_listeners(options: _Options, stack: contextlib.ExitStack) -> "list[Callable[[Record], object]]":
    """Who is told of requests that have ended. Raises ConfigError for a log that cannot be written."""
    told: list[Callable[[Record], object]] = []
    if options.log:
        told.append(_build_log_writer(stack.enter_context(_open_log(options.log)), options.log))
    if options.as_json:
        told.append(_build_log_writer(sys.stdout, "standard output"))
    elif not options.quiet and not options.command and not _has_table(options):
        told.append(lambda record: click.echo(line(record), err=True))
    return told


def _open_log(path: str) -> IO[str]:
    try:
        descriptor = os.open(os.path.expanduser(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}.") from error
    return os.fdopen(descriptor, "a", encoding="utf-8")


def _build_log_writer(file: IO[str], name: str) -> "Callable[[Record], object]":

    is_broken = False

    def write(record: "Record") -> None:
        nonlocal is_broken
        if is_broken:
            return
        try:
            print(json.dumps(msgspec.to_builtins(record)), file=file, flush=True)
        except (OSError, ValueError) as error:
            # Nobody who asks is to be kept from an answer by it.
            is_broken = True
            why = getattr(error, "strerror", None) or error
            click.echo(f"warning: {name} cannot be written any more ({why}); requests are still answered.", err=True)

    return write


async def _run_program(options: _Options, url: str, serving: "asyncio.Task[None]") -> int:
    """Run a program that asks the proxy, in this terminal. Returns its exit code."""
    start = start_of(options.command, url, options.token)
    with _interrupts_are_the_programs():  # from before it runs, and until it has ended
        process = await asyncio.create_subprocess_exec(*start.command, env=start.environment)
        ended = asyncio.create_task(process.wait())
        try:
            await _first_of(ended, serving)
            return _exit_code(await ended)
        finally:
            await _end(process, ended)


@contextlib.contextmanager
def _interrupts_are_the_programs() -> "Iterator[None]":
    """Ctrl-C reaches the program as well, as it is in this terminal: what it means is for the program to say."""
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, lambda: None)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows; not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


def _exit_code(code: int) -> int:
    """As a shell has it: a program that a signal has ended counts from 128 on."""
    return code if code >= 0 else 128 - code


async def _end(process: asyncio.subprocess.Process, ended: "asyncio.Task[int]") -> None:
    """End a program that still runs: asked first, and made to if it does not hear."""
    for end in (process.terminate, process.kill):
        if not ended.done():
            with contextlib.suppress(ProcessLookupError):
                end()
            await asyncio.wait((ended,), timeout=_END_SECONDS)


def _greet(shop: "Shop", options: _Options, host: str, url: str) -> None:
    """Say how clients reach the proxy."""
    token = "$FERRULE_PROXY_TOKEN" if options.is_given else options.token
    click.echo(f"Listening at {url}. Ctrl-C ends it.", err=True)
    if not is_loopback(host):
        click.echo(
            f"warning: {host} can be reached from other machines, and nothing is encrypted: whoever reads the token "
            "on the way can use your keys.",
            err=True,
        )
    for name, text in (
        ("ANTHROPIC_BASE_URL", url),
        ("ANTHROPIC_AUTH_TOKEN", token),
        ("OPENAI_BASE_URL", f"{url}/v1"),
        ("OPENAI_API_KEY", token),
        ("GOOGLE_GEMINI_BASE_URL", url),
        ("GEMINI_API_KEY", token),
    ):
        click.echo(f"  export {name}={text}", err=True)
    shown = ", ".join(shop.routes.names()) or "none: name one with --model, or set a key"
    click.echo(f"Models: {shown}", err=True)


async def _watch(shop: "Shop", options: _Options, serving: "asyncio.Task[None]") -> int:
    """Show what happens until the proxy ends."""
    if not _has_table(options):
        await serving
        return DONE
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(table(shop.records), console=console, auto_refresh=False) as live:
        try:
            while not serving.done():
                await asyncio.wait((serving,), timeout=_SECONDS)
                live.update(table(shop.records), refresh=True)
        finally:
            live.update(table(shop.records))
    serving.result()
    return DONE


def _has_table(options: _Options) -> bool:
    """Is there a live table? It ends with the sum of all requests, and stays when the proxy has ended."""
    is_wanted = sys.stderr.isatty() and not (options.quiet or options.as_json or options.command)
    return is_wanted and importlib.util.find_spec("rich") is not None


def _say_sum(shop: "Shop", options: _Options) -> None:
    if not options.quiet and not options.as_json and not _has_table(options) and shop.records.count:
        click.echo(summary(shop.records), err=True)


_ROWS = 20
_CLIENT_WIDTH = 14
_STATUS = 3
"""The column that is coloured."""
_COLOURS = {"done": "green", "failed": "red", "cancelled": "yellow"}


def line(record: Record) -> str:
    """A request that has ended, in one line."""
    words = [
        time.strftime("%H:%M:%S", time.localtime(record.at)),
        f"{record.status or '-'}",
        f"{record.api} {_route(record) or '?'}",
        f"{record.input:,} in ({record.cache_read:,} cached), {record.output:,} out",
    ]
    if record.cost is not None:
        words.append(f"${record.cost:.4f}")
    if record.first_ms is not None:
        words.append(f"first byte {_time(record.first_ms)}")
    if record.ms is not None:
        words.append(_time(record.ms))
    words += [
        f"{count} {what}" for count, what in ((record.retries, "retries"), (record.searches, "searches")) if count
    ]
    if record.tried:
        words.append(f"after {', '.join(record.tried)}")
    if record.dropped:
        words.append(f"left out: {', '.join(record.dropped)}")
    if record.error:
        words.append(record.error)
    return " · ".join(words)


def summary(records: RequestRecords) -> str:
    """What all requests made together."""
    usage = records.tokens()
    share = f", {usage.cache_read / usage.input:.0%} of them cached" if usage.cache_read and usage.input else ""
    cost = f", ${records.cost:.4f}" if records.cost else ""
    requests = f"{records.count:,} request{'s' * (records.count != 1)}"
    return f"{requests}, {usage.input:,} tokens in{share}, {usage.output:,} out{cost}"


def table(records: RequestRecords) -> Any:
    """The newest requests as a table of rich, and the sum of all."""
    from rich.console import Group  # only for a terminal
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, expand=True)
    made.add_column("time", no_wrap=True)
    made.add_column("client", no_wrap=True, overflow="ellipsis", max_width=_CLIENT_WIDTH)
    made.add_column("model", no_wrap=True, overflow="ellipsis", ratio=1)
    for name in ("status", "in", "cached", "out", "cost", "first", "total"):
        made.add_column(name, justify="right", no_wrap=True)
    newest = [*records.recent, *records.open.values()][-_ROWS:]
    for record in newest:
        colour = _COLOURS.get(record.state, "cyan")
        # Names come from clients: none of them may be taken for markup.
        cells = [Text(text, style=colour if at == _STATUS else "") for at, text in enumerate(_cells(record))]
        made.add_row(*cells, style="red" if record.state == "failed" else None)
    # A line that is not full comes last: the terminal writes ^C behind it, and must not need another one.
    return Group(made, Text(summary(records)))


def _cells(record: Record) -> list[str]:
    return [
        time.strftime("%H:%M:%S", time.localtime(record.at)),
        re.split(r"[ /]", record.client, maxsplit=1)[0] or record.api,
        _route(record),
        str(record.status) if record.status else record.state,
        f"{record.input:,}",
        f"{record.cache_read:,}",
        f"{record.output:,}",
        "" if record.cost is None else f"${record.cost:.4f}",
        "" if record.first_ms is None else _time(record.first_ms),
        "…" if record.ms is None else _time(record.ms),
    ]


def _route(record: Record) -> str:
    """What was asked for and who answers, once where both are the same."""
    if not record.model or not record.requested or record.model.endswith(record.requested):
        return record.model or record.requested
    return f"{record.requested} → {record.model}"


def _time(milliseconds: float) -> str:
    return f"{milliseconds:,.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:,.1f} s"
