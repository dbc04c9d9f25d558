"""Print the conversation of `ferrule run` in each of its forms, and read and write JSON lines.

Messages may arrive while an agent works or while it waits. A reader of the output that is slow or stuck does not
delay the loop.
"""

import asyncio
import contextlib
import io
import os
import queue
import select
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Protocol

import click
import msgspec

from ferrule.agent import AgentEvent, Ended, Spent
from ferrule.agent.agent import Agent
from ferrule.agent.attachments import Prompt, prompt_parts
from ferrule.cli.prompts import piece
from ferrule.core.content import Document, Image
from ferrule.core.errors import ConfigError

if TYPE_CHECKING:
    from ferrule.cli.driven import Control, Peer
    from ferrule.cli.run import AnswerForm
    from ferrule.cli.stream_json import StreamJson


LINE_BYTES = 1 << 24
_SILENT = ("keep_alive", "control_cancel_request")
"""Lines that want nothing."""
_FORM = '{"type":"user","message":{"role":"user","content":[{"type":"text","text":"..."}]}}'


class Inbox:
    """Reads standard input: a message that comes while the agent works reaches it there, any other is its next prompt.

    What the other program asks for, and its answers, stand among its messages.
    """

    def __init__(self, descriptor: int, peer: "Peer") -> None:
        self._descriptor = descriptor
        self._peer = peer
        self._agent: Agent | None = None
        self._control: Control | None = None
        self.first: tuple[str, dict[str, Any]] | None = None
        """The `initialize` that the lines begin with, where they do: its id, and what it wants."""
        self._early: list[tuple[str, dict[str, Any]]] = []
        """Requests that came before anybody could answer them."""
        self._waiting: list[tuple[Prompt, str]] = []
        """Prompts, each with the id of its message."""
        self._came = asyncio.Event()
        self._number = 0

    async def begin(self) -> None:
        """Read from now on, and wait for the first line. Raises: click.UsageError."""
        self._reading = asyncio.create_task(self._read())
        try:
            await self._came.wait()
            if self._has_failed:
                self._reading.result()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])

    async def work(self, agent: Agent, control: "Control") -> Ended:
        """Work until the input is at its end and nothing is left to do, or until the user interrupts.

        Raises: click.UsageError for a line that is no message; the work is stopped first.
        """
        self._agent, self._control = agent, control
        early, self._early = self._early, []
        for request in early:
            await control.answer(*request)
        ended: Ended | None = None
        while (found := await self._next(agent)) is not None:
            prompt, key = found
            control.begin(key)
            ended = await self._run_prompt(agent, prompt)
            if ended.reason == "interrupted" and not control.is_interrupted:
                break
        if self._reading.done():
            self._reading.result()  # a wrong line, which has stopped the work
        if ended is None:
            if self.first is not None:
                return Ended(thread=agent.thread, reason="end", text="", spent=Spent(), total=Spent())
            raise click.UsageError("There is no task: standard input was empty.")
        return ended

    async def _run_prompt(self, agent: Agent, prompt: Prompt) -> Ended:
        work = asyncio.create_task(agent.run(prompt))
        try:
            await asyncio.wait([work, self._reading], return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and self._has_failed:
                agent.interrupt()
            await asyncio.wait([work])
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait([work])
        try:
            return work.result()
        except ConfigError as error:
            # A picture that nobody can send, for one: whoever sent it is told, and may send something else.
            spent = agent.spent
            ended = Ended(thread=agent.thread, reason="error", text="", spent=Spent(), total=spent, error=str(error))
            agent.talk.tell(ended)
            return ended

    @property
    def _has_failed(self) -> bool:
        return self._reading.done() and self._reading.exception() is not None

    async def _next(self, agent: Agent) -> tuple[Prompt, str] | None:
        """The next prompt and the id of its message; None at the end of the input."""
        while True:
            # What came too late for the model to hear it is the next prompt.
            if late := agent.talk.take_unheard():
                return late, ""
            if self._waiting and not self._has_failed:
                return self._waiting.pop(0)
            if self._reading.done():
                return None
            self._came.clear()
            await self._came.wait()

    async def _read(self) -> None:
        try:
            async for line in lines(self._descriptor):
                self._number += 1
                if line.strip():
                    await self._take(line)
        finally:
            self._peer.end()
            # Whoever waits looks again once this task is over.
            asyncio.get_running_loop().call_soon(self._came.set)

    async def _take(self, line: bytes) -> None:
        said = _decode_line(line)
        kind = said.get("type")
        if kind == "control_response" and isinstance(said.get("response"), dict):
            self._peer.hear(said["response"])
        elif kind == "control_request" and isinstance(said.get("request"), dict):
            await self._take_request(str(said.get("request_id")), said["request"])
        elif kind not in _SILENT:
            await self._prompt(prompt_of(said, self._number), str(said.get("uuid") or ""))

    async def _take_request(self, key: str, request: dict[str, Any]) -> None:
        if self._control is not None:
            await self._control.answer(key, request)
        elif request.get("subtype") == "initialize" and not (self.first or self._early or self._waiting):
            self.first = (key, request)
        else:
            self._early.append((key, request))
        self._came.set()

    async def _prompt(self, prompt: Prompt, key: str) -> None:
        agent = self._agent
        if agent is not None and agent.is_running:
            try:
                agent.steer(await prompt_parts(prompt))
            except ConfigError as error:
                agent.talk.warn(f"A message was left out: {error}")
            self._came.set()  # it may have come too late
        else:
            self._waiting.append((prompt, key))
            self._came.set()


async def lines(descriptor: int) -> AsyncIterator[bytes]:
    """The lines of a descriptor; the last one needs no newline."""
    rest: list[bytes] = []
    size_bytes = 0
    while raw := await piece(descriptor):
        *whole, last = raw.split(b"\n")
        for end in whole:
            yield b"".join((*rest, end))
            rest, size_bytes = [], 0
        rest.append(last)
        size_bytes += len(last)
        if size_bytes > LINE_BYTES:
            raise click.UsageError(f"A line of standard input is longer than {LINE_BYTES >> 20} MiB.")
    if rest := [part for part in rest if part]:
        yield b"".join(rest)


def prompt_of(said: dict[str, Any], number: int) -> Prompt:
    """What a message says: words, or words with pictures and files among them. Raises: click.UsageError."""
    try:
        content = {"user": said["message"]["content"]}[said["type"]]
        parts: list[str | Image | Document]
        parts = [content] if isinstance(content, str) else [_part(block) for block in content]
    except (KeyError, TypeError) as error:
        raise click.UsageError(f"Line {number} of standard input is no message. Each line is {_FORM}.") from error
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        return parts
    prompt = "\n".join(texts)
    if not prompt.strip():
        raise click.UsageError(f"Line {number} of standard input is an empty message.")
    return prompt


def _part(block: dict[str, Any]) -> str | Image | Document:
    """One block of a message, in the form of the Messages API. Raises: KeyError, TypeError."""
    if block["type"] == "text":
        return str({"text": block["text"]}["text"])
    source, title = block["source"], str(block.get("title") or "")
    kind, media_type = source["type"], str(source.get("media_type") or "")
    url = str(source["url"]) if kind == "url" else ""
    data = str(source["data"]) if kind == "base64" else ""
    if block["type"] == "document":
        text = str(source["data"]) if kind == "text" else ""
        return Document(media_type or "text/plain", data, text=text, url=url, title=title)
    return {"image": Image(media_type, data or {"url": ""}[kind], url=url, title=title)}[block["type"]]


def _decode_line(line: bytes) -> dict[str, Any]:
    """The object of a line; an empty one where it is none, which is no message."""
    try:
        said = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def descriptor() -> int:
    """Where lines come from. Raises: ConfigError."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError) as error:
        raise ConfigError("Standard input is closed: no message can come in.") from error


class Outbox:
    """Writes lines in their order, on a thread of its own. Who ends the program need not wait for the reader."""

    def __init__(self) -> None:
        self.broke: Callable[[OSError], object] = lambda _: None
        """Told on the loop, when nobody reads any more."""
        self._lines: queue.SimpleQueue[bytes | Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def write(self, line: bytes) -> None:
        if self._thread is None:
            sys.stdout.flush()
            loop = asyncio.get_running_loop()
            # A daemon: an interpreter that ends does not wait for it. It holds no lock of Python's own streams.
            arguments = (loop, sys.stdout.fileno())
            self._thread = threading.Thread(target=self._drain, args=arguments, name="ferrule-output", daemon=True)
            self._thread.start()
        self._lines.put(line)

    async def drain(self, seconds: float | None = None) -> None:
        """Wait until all is written, or for so long."""
        if self._thread is None:
            return
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        self._lines.put(lambda: _tell(loop, done.set))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), seconds)

    def _drain(self, loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
        is_broken = False
        while True:
            line = self._lines.get()
            if callable(line):
                line()
                continue
            try:
                while line and not is_broken:
                    line = line[_write_some(descriptor, line) :]
            except OSError as error:
                is_broken = True
                _tell(loop, self.broke, error)


def _write_some(descriptor: int, line: bytes) -> int:
    try:
        return os.write(descriptor, line)
    except BlockingIOError:
        select.select([], [descriptor], [])
        return 0


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[..., object], *arguments: object) -> None:
    with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever waited
        loop.call_soon_threadsafe(what, *arguments)


def outbox() -> Outbox | None:
    """One for standard output; None where that is no file of the system."""
    try:
        sys.stdout.fileno()
    except (OSError, ValueError):
        return None
    return Outbox()


def front(
    output: str,
    write: Callable[[bytes], None],
    *,
    partial: bool,
    verbose: bool,
    quiet: bool = False,
    form: "AnswerForm | None" = None,
    hooks: bool = False,
    asks: bool = False,
) -> "ConversationRenderer":
    if output == "text":
        from ferrule.cli.render import TranscriptPrinter  # for people

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # what an old locale cannot say does not end the work
        shows_work = not quiet and (verbose or (sys.stderr is not None and sys.stderr.isatty()))
        return TranscriptPrinter(is_live=sys.stdout.isatty(), shows_work=shows_work)
    from ferrule.cli.stream_json import StreamJson, line_of  # for programs

    if output == "stream-json":
        return StreamJson(write, partial=partial, form=form, hooks=hooks, asks=asks)
    return _LastLinePrinter(StreamJson(lambda _: None, form=form), lambda line: write(line_of(line)))


class ConversationRenderer(Protocol):
    """Shows a conversation."""

    def put(self, event: AgentEvent) -> None: ...


class _LastLinePrinter:
    """Shows the last line alone."""

    def __init__(self, lines: "StreamJson", write: Callable[[dict[str, Any]], None]) -> None:
        self._lines = lines
        self._write = write

    def put(self, event: AgentEvent) -> None:
        self._lines.put(event)
        if isinstance(event, Ended) and self._lines.result is not None:
            self._write(self._lines.result)
            self._lines.result = None


def plainly(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


class EventDisplay:
    """Shows events until nobody looks any more; the work ends then."""

    def __init__(self, front: ConversationRenderer, box: Outbox | None, *, goes_on: bool) -> None:
        """`goes_on`: a prompt that has ended may be followed by another one."""
        self._front = front
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
            self._front.put(event)
        except OSError as error:
            # Raised here, it would end a call or a writer of the store, and not the work.
            self._broke(error, is_over=isinstance(event, Ended) and not self._goes_on)

    def offer(self, offered: dict[str, Any]) -> None:
        """Have the first line of a session tell of these, if there is such a line."""
        if hasattr(self._front, "offered"):
            self._front.offered = offered

    async def drain(self, seconds: float | None = None) -> None:
        """Wait for whoever reads, at most so long."""
        if self._box is not None and self.broken is None:
            await self._box.drain(seconds)

    def _broke(self, error: OSError, *, is_over: bool = False) -> None:
        self.broken = error
        if not is_over:
            self.stop()
