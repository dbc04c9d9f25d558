"""`ferrule run`: a task without a terminal."""

import asyncio
import contextlib
import io
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import click

from ferrule.agent.agent import Agent
from ferrule.agent.events import AgentEvent, Ended, Reason
from ferrule.agent.session import Session
from ferrule.cli.codes import DONE, FAILED, INTERRUPTED, LIMIT, REFUSED
from ferrule.cli.loop import finish
from ferrule.cli.options import agent_options, agent_session, session_options, typed_in
from ferrule.cli.outbox import Outbox, outbox

CODES: dict[Reason, int] = {
    "end": DONE,
    "refused": REFUSED,
    "hook": REFUSED,
    "interrupted": INTERRUPTED,
    "error": FAILED,
}
_MOMENT_SECONDS = 1.0
"""So long who reads is waited for where the program is to end."""


@click.command("run")
@click.argument("task", required=False)
@click.option(
    "--output",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="What is printed: the answer, one JSON object, or JSON lines as they come.",
)
@click.option(
    "--input",
    "given",
    type=click.Choice(["text", "stream-json"]),
    default="text",
    help="How the task comes in: as text, or as JSON lines, which reach the model while it works.",
)
@click.option("--partial", is_flag=True, help="With --output stream-json: also every piece of an answer.")
@click.option("--verbose", is_flag=True, help="Show the calls on standard error although it is no terminal.")
@agent_options
@session_options
def command(task: str | None, *, output: str, given: str, partial: bool, verbose: bool, **session: Any) -> int:
    """Have a model work on TASK until it is done. Without TASK, or with -, it is read from standard input.

    \b
    The answer goes to standard output, and what is done meanwhile to standard error.
    Where nobody can be asked, what would ask is refused: see --yes and --permission-mode.
    Ctrl-C stops the work, and once more ends it at once; --continue goes on with it.
    Exit codes: 0 done, 1 failed, 2 wrong use, 3 refused, 4 a limit was met, 130 interrupted.

    \b
    Examples:
      ferrule run "why does test_cart fail?" --model anthropic:claude-opus-5-5
      ferrule run "fix it" --continue --permission-mode acceptEdits --max-turns 30
      { echo "Review this change:"; git diff; } | ferrule run --output json
      ferrule run "list the endpoints" --model ollama:qwen3 --output stream-json
      ferrule run "tidy up" --yes --record tidy.jsonl
      ferrule run "tidy up" --yes --replay tidy.jsonl
    """
    if given == "stream-json" and (task is not None or output != "stream-json"):
        raise click.UsageError("--input stream-json takes no TASK, and needs --output stream-json.")
    if partial and output != "stream-json":
        raise click.UsageError("--partial needs --output stream-json.")
    text = None if given == "stream-json" else _task(task)
    if sys.stdout is None:
        raise click.UsageError("Standard output is closed: nobody would hear the answer.")
    box = outbox() if output != "text" else None
    write = box.write if box is not None else _write
    shown = Shown(_front(output, write, partial=partial, verbose=verbose), box, goes_on=text is None)
    try:
        return finish(_run(text, shown, session))
    except asyncio.CancelledError:
        # Pressed twice, or while nothing ran: all is closed by now.
        raise click.Abort from None


def _task(task: str | None) -> str:
    if task is None or task == "-":
        if sys.stdin is not None and sys.stdin.isatty():
            raise click.UsageError('There is no task: ferrule run "what to do". `ferrule chat` is for talking.')
        task = typed_in()
    if not task.strip():
        raise click.UsageError("The task is empty.")
    return task


def _front(
    output: str, write: Callable[[bytes], None], *, partial: bool, verbose: bool
) -> Callable[[AgentEvent], None]:
    if output == "text":
        from ferrule.cli.told import Told  # for people

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # what an old locale cannot say does not end the work
        shows_work = verbose or (sys.stderr is not None and sys.stderr.isatty())
        return Told(is_live=sys.stdout.isatty(), shows_work=shows_work).put
    from ferrule.cli.stream_json import StreamJson, line_of  # for programs

    if output == "stream-json":
        return StreamJson(write, partial=partial).put
    last = StreamJson(lambda _: None)

    def put(event: AgentEvent) -> None:
        last.put(event)
        if isinstance(event, Ended) and last.result is not None:
            write(line_of(last.result))
            last.result = None

    return put


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


class Shown:
    """Shows events until nobody looks any more; the work ends then."""

    def __init__(self, put: Callable[[AgentEvent], None], box: Outbox | None, *, goes_on: bool) -> None:
        """`goes_on`: a prompt that has ended may be followed by another one."""
        self._put = put
        self._box = box
        self._goes_on = goes_on
        if box is not None:
            box.broke = self._broke
        self.stop: Callable[[], None] = lambda: None
        self.broken: OSError | None = None

    def put(self, event: AgentEvent) -> None:
        if self.broken is not None:
            return
        try:
            self._put(event)
        except OSError as error:
            # Raised here, it would end a call or a writer of the store, and not the work.
            self._broke(error, is_over=isinstance(event, Ended) and not self._goes_on)

    async def drained(self, seconds: float | None = None) -> None:
        """Wait for whoever reads, at most so long."""
        if self._box is not None and self.broken is None:
            await self._box.drained(seconds)

    def _broke(self, error: OSError, *, is_over: bool = False) -> None:
        self.broken = error
        if not is_over:
            self.stop()


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


async def _run(task: str | None, shown: Shown, options: dict[str, Any]) -> int:
    """Work on the task, or on what comes in as lines."""
    stopping = Stopping()
    shown.stop = stopping.press
    with _interrupts(stopping.press):
        try:
            ended = await _worked(task, shown, stopping, options)
            await shown.drained(_MOMENT_SECONDS if stopping.pressed > 1 else None)
        except asyncio.CancelledError:
            if shown.broken is None:
                await shown.drained(_MOMENT_SECONDS)
                raise
    if shown.broken is not None:
        raise shown.broken
    return CODES.get(ended.reason, LIMIT)


async def _worked(task: str | None, shown: Shown, stopping: Stopping, options: dict[str, Any]) -> Ended:
    async with Session(**agent_session(**options), on_event=shown.put) as session:
        try:
            stopping.agent = session.agent
            ended = await (session.agent.run(task) if task is not None else _talk(session.agent))
        finally:
            stopping.is_closing = True
    stopping.is_closing = False
    return ended


async def _talk(agent: Agent) -> Ended:
    from ferrule.cli.inbox import Inbox, descriptor  # for programs that talk

    return await Inbox(agent, descriptor()).work()


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
