"""`ferrule run`: a task without a terminal."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import click
import msgspec

from ferrule.agent.events import AgentEvent, Ended, Reason
from ferrule.agent.session import Session
from ferrule.cli.codes import DONE, FAILED, INTERRUPTED, LIMIT, REFUSED
from ferrule.cli.loop import finish
from ferrule.cli.options import agent_options, agent_session, session_options, typed_in
from ferrule.core.errors import ConfigError
from ferrule.models.model import ModelError

_CODES: dict[Reason, int] = {
    "end": DONE,
    "refused": REFUSED,
    "hook": REFUSED,
    "interrupted": INTERRUPTED,
    "error": FAILED,
}
_LINE_BYTES = 1 << 24


@click.command("run")
@click.argument("task", required=False)
@click.option(
    "--output",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="What is printed: the answer, one JSON object, or JSON lines as they come.",
)
@click.option(
    "--input", "given", type=click.Choice(["text", "stream-json"]), default="text", help="How the task comes in."
)
@click.option("--partial", is_flag=True, help="With stream-json: also every piece of an answer.")
@click.option("--verbose", is_flag=True, help="Show the calls on standard error although it is no terminal.")
@agent_options
@session_options
def command(task: str | None, *, output: str, given: str, partial: bool, verbose: bool, **session: Any) -> int:
    """Have a model work on TASK until it is done; without TASK it is read from standard input.

    \b
    The answer goes to standard output, what is done meanwhile to standard error. What would ask is refused where
    nobody can be asked: see --yes and --permission-mode. Ctrl-C stops the work; --continue goes on with it.
    Exit codes: 0 done, 1 failed, 2 wrong use, 3 refused, 4 a limit was met, 130 interrupted.

    \b
    Examples:
      ferrule run "why does test_cart fail?" --model anthropic:claude-opus-5-5
      ferrule run "fix it" --continue --permission-mode acceptEdits --max-turns 30
      git diff | ferrule run "review this change: $(cat)" --output json
      ferrule run "list the endpoints" --model ollama:qwen3 --output stream-json
      ferrule run "tidy up" --record tidy.jsonl && ferrule run "tidy up" --replay tidy.jsonl
    """
    if given == "stream-json" and (task is not None or output != "stream-json"):
        raise click.UsageError("--input stream-json takes no TASK, and needs --output stream-json.")
    text = "" if given == "stream-json" else _task(task)
    shown = _shown(output, partial=partial, verbose=verbose)
    try:
        return finish(_run(text, shown, session, lines=given == "stream-json"))
    except (ModelError, ConfigError) as error:
        raise click.UsageError(str(error)) from error


def _task(task: str | None) -> str:
    if task is None or task == "-":
        if sys.stdin is not None and sys.stdin.isatty():
            raise click.UsageError('There is no task: ferrule run "what to do". `ferrule chat` is for talking.')
        task = typed_in()
    if not task.strip():
        raise click.UsageError("The task is empty.")
    return task


def _shown(output: str, *, partial: bool, verbose: bool) -> Callable[[AgentEvent], None]:
    if output == "text":
        from ferrule.cli.told import Told  # for people

        shows_work = verbose or (sys.stderr is not None and sys.stderr.isatty())
        return Told(is_live=sys.stdout.isatty(), shows_work=shows_work).put
    from ferrule.cli.stream_json import StreamJson  # for programs

    if output == "stream-json":
        return StreamJson(_write, partial=partial).put
    last = StreamJson(lambda _: None)

    def put(event: AgentEvent) -> None:
        last.put(event)
        if isinstance(event, Ended) and last.result is not None:
            _write(msgspec.json.encode(last.result) + b"\n")
            last.result = None

    return put


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


async def _run(
    task: str,
    shown: Callable[[AgentEvent], None],
    options: dict[str, Any],
    *,
    lines: bool,
) -> int:
    async with Session(**agent_session(**options), on_event=shown) as session:
        agent = session.agent
        with _interrupts(agent.interrupt):
            if not lines:
                return _code((await agent.run(task)).reason)
            reason: Reason = "end"
            prompts = _prompts()
            async for prompt in prompts:
                reason = await _steered(session, prompt, prompts)
            return _code(reason)


async def _steered(session: Session, prompt: str, prompts: AsyncIterator[str]) -> Reason:
    """Work on a prompt; lines that come meanwhile reach the model while it works."""
    work = asyncio.create_task(session.agent.run(prompt))
    listening = asyncio.create_task(_steer(session, prompts))
    try:
        await asyncio.wait([work])
    finally:
        listening.cancel()
        await asyncio.wait([listening])
    return work.result().reason


async def _steer(session: Session, prompts: AsyncIterator[str]) -> None:
    async for text in prompts:
        session.agent.steer(text)


def _code(reason: Reason) -> int:
    return _CODES.get(reason, LIMIT)


@contextlib.contextmanager
def _interrupts(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C once stops the work; twice ends the program."""
    loop, pressed = asyncio.get_running_loop(), []
    task = asyncio.current_task()
    assert task is not None

    def press() -> None:
        pressed.append(True)
        if len(pressed) == 1:
            stop()
        else:
            task.cancel()

    try:
        loop.add_signal_handler(signal.SIGINT, press)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows; not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _prompts() -> AsyncIterator[str]:
    """What the lines of standard input ask for."""
    while True:
        line = await asyncio.to_thread(sys.stdin.buffer.readline, _LINE_BYTES)
        if not line:
            return
        if line.strip():
            yield _prompt(line)


def _prompt(line: bytes) -> str:
    try:
        said = msgspec.json.decode(line)
        content = {"user": said["message"]["content"]}[said["type"]]
        texts = [content] if isinstance(content, str) else [block["text"] for block in content]
        return "\n".join(texts)
    except (msgspec.DecodeError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise click.UsageError(
            'Each line is {"type":"user","message":{"role":"user","content":[{"type":"text","text":"..."}]}}.'
        ) from error
