"""Implement `ferrule run`: work on a task without a terminal.

Options can give rules, tools and instructions for this one run. If the user gives a form for the answer, the model
calls a tool whose input is the answer.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

from ferrule.agent import AgentEvent, Began, Called, Ended, Reason
from ferrule.agent.attachments import Prompt, attach
from ferrule.agent.session import Session
from ferrule.arguments.schema import judge
from ferrule.cli.options import (
    LEFT_OUT,
    Prompted,
    agent_options,
    agent_session,
    finish,
    read_piped_input,
    read_stdin,
    session_options,
)
from ferrule.cli.printer import EventDisplay, front, outbox, plainly
from ferrule.cli.refusals import Refusals, refusal_lines
from ferrule.cli.session_flags import FITTING, FLAGS, Fitting, SessionFlags, add_fitting_options, session_flags
from ferrule.cli.show import DONE, FAILED, INTERRUPTED, LIMIT, REFUSED
from ferrule.core.call import Done
from ferrule.core.content import Image
from ferrule.core.errors import ConfigError, FerruleError
from ferrule.core.tool import Context, Tool
from ferrule.permissions import Everybody, Nobody

if TYPE_CHECKING:
    from ferrule.agent.agent import Agent
    from ferrule.cli.driven import Driver
    from ferrule.core.access import Access
    from ferrule.core.tool import Args
    from ferrule.hooks import Hook


CODES: dict[Reason, int] = {
    "end": DONE,
    "stopped": DONE,
    "refused": REFUSED,
    "hook": REFUSED,
    "interrupted": INTERRUPTED,
    "error": FAILED,
    "undone": FAILED,
}
_MOMENT_SECONDS = 1.0
"""So long who reads is waited for where the program is to end."""


class Dashed(Prompted):
    """Says how a task is written that looks like an option, and leaves out what only other programs know.

    Programs that drive this one give it flags of Claude Code, of which there are more with every release.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if _is_driven(args):
            args, ctx.meta[LEFT_OUT] = self._split_unknown(args)
        is_task = any(argument.startswith("-") and " " in argument.partition("=")[0] for argument in args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if not is_task:
                raise
            how = 'A task that begins with a dash stands at the end, behind --: ferrule run -- "- do this"'
            raise click.UsageError(f"{error.format_message()} {how}", ctx) from error

    def _split_unknown(self, args: list[str]) -> tuple[list[str], list[str]]:
        """The arguments without options that nobody here knows, and those."""
        takes_value = {
            name: not (isinstance(one, click.Option) and one.is_flag) for one in self.params for name in one.opts
        }
        kept: list[str] = []
        unknown: list[str] = []
        rest = list(args)
        while rest:
            first = rest.pop(0)
            name, has_value, _ = first.partition("=")
            if not first.startswith("--") or first == "--":
                kept.append(first)
            elif name in takes_value or name == "--help":
                kept.append(first)
                if takes_value.get(name) and not has_value:
                    kept += rest[:1]
                    del rest[:1]
            else:
                unknown.append(name)
                if not has_value and rest and not rest[0].startswith("-"):
                    rest.pop(0)
        return kept, unknown


def _is_driven(args: list[str]) -> bool:
    """Does another program give the task, as lines?"""
    pairs = zip(args, (*args[1:], ""), strict=False)
    return any(
        one.replace("=", " ") in {"--input stream-json", "--input-format stream-json"}
        or (one in {"--input", "--input-format"} and value == "stream-json")
        for one, value in pairs
    )


@click.command("run", cls=Dashed)
@click.argument("task", required=False)
@click.option(
    "--output",
    "--output-format",
    "output",
    type=click.Choice(["text", "json", "stream-json"]),
    help="What is printed: the answer (text), one JSON object, or JSON lines as they come.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --output json.")
@click.option("--quiet", "-q", is_flag=True, help="Show no calls on standard error, at a terminal either.")
@click.option(
    "--input",
    "--input-format",
    "given",
    type=click.Choice(["text", "stream-json"]),
    default="text",
    help="How the task comes in: as text, or as JSON lines, which reach the model while it works.",
)
@click.option(
    "--partial",
    "--include-partial-messages",
    "partial",
    is_flag=True,
    help="With --output stream-json: also every piece of an answer.",
)
@click.option(
    "--image", "images", type=click.Path(), metavar="FILE", multiple=True, help="Show the model this picture."
)
@click.option(
    "--file",
    "files",
    type=click.Path(),
    metavar="FILE",
    multiple=True,
    help="Give the model this file with the task: a picture, a PDF or a text.",
)
@click.option("--verbose", is_flag=True, help="Show the calls on standard error although it is no terminal.")
@click.option(
    "--permission-prompt-tool",
    "asked",
    metavar="stdio",
    help="With --input stream-json: the program that writes the lines is asked.",
)
@click.option(
    "--json-schema",
    metavar="JSON",
    default="",
    help="The answer is an object of this form, a JSON Schema or its file; --output json has it as structured_output.",
)
@click.option("-p", "--print", is_flag=True, hidden=True, expose_value=False, help="Nothing: it is always so.")
@click.option(
    "--include-hook-events",
    "hook_events",
    is_flag=True,
    help="With --output stream-json: also every hook that is run.",
)
@add_fitting_options
@session_flags
@agent_options
@session_options
def command(
    task: str | None,
    *,
    output: str | None,
    as_json: bool,
    quiet: bool,
    given: str,
    partial: bool,
    verbose: bool,
    asked: str | None,
    images: tuple[str, ...],
    files: tuple[str, ...],
    hook_events: bool,
    **session: Any,
) -> int:
    """Have a model work on TASK until it is done. Without TASK, or with -, it is read from standard input.

    What is piped in beside a TASK belongs to it.

    The answer goes to standard output, and what is done meanwhile to standard error.
    Where nobody can be asked, what would ask is refused: see --yes and --permission-mode.

    Ctrl-C stops the work, and once more ends it at once; --continue goes on with it.

    Exit codes: 0 done, 1 failed, 2 wrong use, 3 refused, 4 a limit was met, 130 interrupted.
    3 is also the end of a run in which calls were refused: standard error names them.

    \b
    Examples:
      ferrule run "why does test_cart fail?" --model anthropic:claude-opus-5-5
      ferrule run "fix it" --continue --permission-mode acceptEdits --max-turns 30
      ferrule run "why is the button cut off?" --image shot.png --file design.pdf
      git diff | ferrule run "review this change" --json
      ferrule run "list the endpoints" --model ollama:qwen3 --output stream-json
      ferrule run "tidy up" --yes --record tidy.jsonl
      ferrule run "tidy up" --yes --replay tidy.jsonl
    """
    output = _output(output, as_json=as_json)
    if quiet and verbose:
        raise click.UsageError("Give --quiet or --verbose, not both.")
    if given == "stream-json" and (task is not None or output != "stream-json"):
        raise click.UsageError("--input stream-json takes no TASK, and needs --output stream-json.")
    if given == "stream-json" and (images or files):
        raise click.UsageError("--image and --file belong to a TASK; in lines, pictures and files are content blocks.")
    if partial and output != "stream-json":
        raise click.UsageError("--partial needs --output stream-json.")
    if asked and (given != "stream-json" or session["answer"]):
        raise click.UsageError("--permission-prompt-tool needs --input stream-json, and neither --yes nor --deny.")
    if session["json_schema"] and output == "text":
        raise click.UsageError("--json-schema needs --output json or --output stream-json.")
    text, piped = (None, "") if given == "stream-json" else _task(task)
    if sys.stdout is None:
        raise click.UsageError("Standard output is closed: nobody would hear the answer.")
    box = outbox() if output != "text" else None
    write = box.write if box is not None else plainly
    work = Work(text, session, write, asks=asked == "stdio", piped=piped, attached=(images, files))
    if asked and asked != "stdio":
        work.warnings.append(f"--permission-prompt-tool {asked} is left out: what would ask is refused.")
    left_out = click.get_current_context().meta.get(LEFT_OUT, ())
    work.warnings += [f"There is no option {name} here: it is left out." for name in left_out]
    told = front(
        output, write, partial=partial, verbose=verbose, quiet=quiet, form=work.form, hooks=hook_events, asks=work.asks
    )
    shown = EventDisplay(told, box, goes_on=text is None)
    try:
        return finish(_run(work, shown))
    except asyncio.CancelledError:
        # Pressed twice, or while nothing ran: all is closed by now.
        raise click.Abort from None


def _task(task: str | None) -> tuple[str, str]:
    """What the user wants done, and what was piped in beside it."""
    piped = ""
    if task is None or task == "-":
        if sys.stdin is not None and sys.stdin.isatty():
            raise click.UsageError('There is no task: ferrule run "what to do". `ferrule chat` is for talking.')
        task = read_stdin()
        if not task.strip():
            raise click.UsageError('Standard input is empty, so there is no task: ferrule run "what to do".')
    elif task.strip():
        piped = read_piped_input()
    if not task.strip():
        raise click.UsageError("The task is empty.")
    return task, piped


class Stopping:
    """Ends the work: first by a word to the agent, then by force. What closes the session is let alone."""

    def __init__(self) -> None:
        self._task = asyncio.current_task()
        self.pressed = 0
        self.agent: Agent | None = None
        self.is_closing = False

    def press(self) -> None:
        self.pressed += 1
        if self.is_closing or self._task is None:
            return
        if self.pressed == 1 and self.agent is not None and self.agent.is_running:
            self.agent.interrupt()
        else:
            self._task.cancel()


def _output(given: str | None, *, as_json: bool) -> str:
    if as_json and given not in {None, "json"}:
        raise click.UsageError(f"Give --json or --output {given}, not both.")
    return "json" if as_json else given or "text"


class Work:
    """What is to be done, and what the session for it is given."""

    def __init__(
        self,
        task: str | None,
        options: dict[str, Any],
        write: Callable[[bytes], None],
        *,
        asks: bool,
        piped: str = "",
        attached: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    ) -> None:
        """Without a `task` it comes in as lines; `asks`: whoever writes them answers questions too.

        `piped` came beside the task, and belongs to it. Who wrote that is not known. `attached` are the paths of
        pictures and of other files.
        """
        self.task = task
        self.piped = piped
        self.attached = attached
        self.flags = SessionFlags({name: options.pop(name) for name in FLAGS})
        self.warnings = self.flags.warnings
        """What the user is told once the session is open."""
        options = _with_flags(options, self.flags)
        self.fitting = Fitting(**{name: options.pop(name) for name in FITTING})
        self.form = _form(options.pop("json_schema"), self.fitting, options)
        self.options = options if (mode := self.fitting.mode) is None else {**options, "mode": mode}
        self.write = write
        self.asks = asks
        self.refusals = Refusals(is_asked=asks)
        """Of the session, once it is open."""

    async def prompt(self) -> Prompt:
        """The task with all that belongs to it. Raises: ConfigError, click.UsageError."""
        assert self.task is not None
        words = f"{self.task}\n\n{self.piped}" if self.piped.strip() else self.task
        images, files = self.attached
        if not images and not files:
            return words
        shown = [await attach(path) for path in (*images, *files)]
        for part in shown[: len(images)]:
            if not isinstance(part, Image):
                raise click.UsageError(f"--image takes pictures only; --file takes other files. This is none: {part}")
        return [words, *shown]


def _with_flags(options: dict[str, Any], flags: SessionFlags) -> dict[str, Any]:
    """What a session is given for the flags."""
    if options["permission_mode"] == "auto":
        flags.warnings.append("There is no permission mode auto here: what would ask is asked about, as in default.")
        options["permission_mode"] = "default"
    return {
        **options,
        "model": options["model"] or flags.model or None,
        "over": flags.over,
        "hooks": tuple(flags.hooks),
        "mcp_config": (*options["mcp_config"], *flags.servers),
        "add_dirs": (*options["add_dirs"], *flags.folders),
        "thread": flags.thread,
        "fork": flags.fork,
        "fallback": flags.fallback,
    }


def _form(text: str, fitting: Fitting, options: dict[str, Any]) -> "AnswerForm | None":
    """The form that the answer is to have, if it is; the session is given what that needs."""
    if not text:
        return None

    form = AnswerForm(text)
    fitting.append(form.words)
    tool = form.tool()
    fitting.extra = (tool.name,)
    fitting.is_done = lambda: form.value is not None
    options |= {"tools": (tool,), "hooks": (*options["hooks"], form.hook())}
    return form


async def _run(work: Work, shown: EventDisplay) -> int:
    """Work on the task, or on what comes in as lines."""
    stopping = Stopping()
    shown.stop = stopping.press
    with _interrupts(stopping.press):
        try:
            ended = await (_lines(work, shown, stopping) if work.task is None else _run_session(work, shown, stopping))
            await shown.drain(_MOMENT_SECONDS if stopping.pressed > 1 else None)
        except asyncio.CancelledError:
            if shown.broken is None:
                await shown.drain(_MOMENT_SECONDS)
                raise
        except (FerruleError, click.ClickException):
            await shown.drain(_MOMENT_SECONDS)
            raise
    if shown.broken is not None:
        raise shown.broken
    if ended.reason == "end" and work.form is not None and work.form.value is None:
        return LIMIT
    code = CODES.get(ended.reason, LIMIT)
    # A program that talks in lines reads of refusals there, and takes any other end than 0 for a crash.
    is_hindered = work.task is not None and work.refusals.is_hindered
    return REFUSED if code == DONE and is_hindered else code


async def _lines(work: Work, shown: EventDisplay, stopping: Stopping) -> Ended:
    from ferrule.cli.driven import Driver  # for programs that talk

    may_bypass = work.options["permission_mode"] == "bypassPermissions"
    async with Driver(work.write, may_bypass=may_bypass) as driver:
        work.options = driver.prepare(work.fitting, work.flags, work.options, asks=work.asks)
        with driver.report_failure():
            return await _run_session(work, shown, stopping, driver)


async def _run_session(work: Work, shown: EventDisplay, stopping: Stopping, driver: "Driver | None" = None) -> Ended:
    given = agent_session(**work.options)
    refusals = Refusals(is_asked=not isinstance(given["ask"], Nobody | Everybody))
    work.refusals = refusals

    def put(event: AgentEvent) -> None:
        refusals.put(event)
        shown.put(event)

    async with Session(**given, on_event=put) as session:
        try:
            stopping.agent = session.agent
            if session.why_model:
                click.echo(f"{session.model.name}, {session.why_model}", err=True)
            work.flags.give(session)
            work.fitting.fit(session)
            if driver is not None:
                shown.offer(driver.init_fields(session))
            for warning in work.warnings:
                session.agent.talk.warn(warning)
                if work.task is None:  # the lines tell a program, and this whoever looks at its own output
                    click.echo(f"warning: {warning}", err=True)
            if driver is not None:
                ended = await driver.work(session)
            else:
                ended = await session.agent.run(await work.prompt(), written=work.task)
            from ferrule.cli.tasks import left_running  # when all is done

            if sentence := left_running(session.engine):
                click.echo(f"warning: {sentence}", err=True)
        finally:
            stopping.is_closing = True
    stopping.is_closing = False
    if work.task is not None and (lines := refusal_lines(refusals)):
        click.echo(lines, err=True)
    return ended


@contextlib.contextmanager
def _interrupts(press: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C is told."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGINT, press)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows; not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


NAME = "StructuredOutput"
_WORDS = f"When you are done, give your answer by calling {NAME}, once, as your last call. Its input is the answer."
_AGAIN = f"Your answer is not given yet: call {NAME} with it."


class AnswerForm:
    """The form, and the answer of the prompt that is worked on."""

    def __init__(self, text: str) -> None:
        """`text` is a JSON Schema of an object, or the path of one. Raises: ConfigError."""
        self.schema = _schema(text)
        self.words = _WORDS
        self.value: dict[str, Any] | None = None
        """None while there is none."""
        self._given: dict[str, dict[str, Any]] = {}
        self._main = ""

    def tool(self) -> "Answering":
        return Answering(self.schema, self._given)

    def hook(self) -> "Hook":
        """Sends the model back to work that wants to end without an answer."""
        from ferrule.hooks import Hook  # for whoever wants a form

        return Hook("Stop", function=self._stop, source="--json-schema")

    def _stop(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"decision": "block", "reason": _AGAIN} if self.value is None else {}

    def put(self, event: AgentEvent) -> None:
        """An answer is what the session itself gives: a subagent has the tool too, and its own task."""
        if isinstance(event, Began) and event.thread == (self._main or event.thread):
            self._main, self.value = event.thread, None
        elif isinstance(event, Called) and event.thread == self._main and isinstance(event.call, Done):
            self.value = self._given.pop(event.call.reply.id, self.value)


class Answering(Tool[Any, str]):
    """Takes the answer."""

    args = cast("type[Args]", dict)
    name = NAME
    words = "Give your final answer, in the form that was asked for."

    def __init__(self, schema: dict[str, Any], given: dict[str, dict[str, Any]]) -> None:
        self.schema = schema
        self._given = given

    def access(self, args: Any, ctx: Context) -> "tuple[Access, ...]":  # noqa: ARG002 - it touches nothing
        return ()

    async def run(self, args: Any, ctx: Context) -> str:
        self._given[ctx.call_id] = dict(args)
        return "The answer is taken. Nothing more is needed."


def _schema(text: str) -> dict[str, Any]:
    where = "--json-schema"
    try:
        if not text.lstrip().startswith("{"):
            where = os.path.expanduser(text)
            with open(where, "rb") as file:
                text = file.read().decode("utf-8-sig")
        schema = msgspec.json.decode(text)
    except OSError as error:
        raise ConfigError(f"The form {where} cannot be read: {error.strerror}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{where} is no JSON: {error}.") from error
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ConfigError(f"{where} has to be the JSON Schema of an object.")
    judge(schema)
    return {"type": "object", **schema}
