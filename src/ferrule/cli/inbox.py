"""Messages of the user that come in as JSON lines, while an agent works and while it waits."""

import asyncio
import sys
from collections.abc import AsyncIterator

import click
import msgspec

from ferrule.agent.agent import Agent
from ferrule.agent.events import Ended
from ferrule.cli.terminal import piece
from ferrule.core.errors import ConfigError

LINE_BYTES = 1 << 24
_FORM = '{"type":"user","message":{"role":"user","content":[{"type":"text","text":"..."}]}}'


class Inbox:
    """Reads standard input: a line that comes while the agent works reaches it there, any other is its next prompt."""

    def __init__(self, agent: Agent, descriptor: int) -> None:
        self._agent = agent
        self._descriptor = descriptor
        self._waiting: list[str] = []
        self._came = asyncio.Event()

    async def work(self) -> Ended:
        """Work until the input is at its end and nothing is left to do, or until the user interrupts.

        Raises: click.UsageError for a line that is no message; the work is stopped first.
        """
        reading = asyncio.create_task(self._read())
        try:
            ended: Ended | None = None
            while (prompt := await self._next(reading)) is not None:
                ended = await self._worked(prompt, reading)
                if ended.reason == "interrupted":
                    break
        finally:
            reading.cancel()
            await asyncio.wait([reading])
        if reading.done() and not reading.cancelled():
            reading.result()  # a wrong line, which has stopped the work
        if ended is None:
            raise click.UsageError("There is no task: standard input was empty.")
        return ended

    async def _worked(self, prompt: str, reading: "asyncio.Task[None]") -> Ended:
        work = asyncio.create_task(self._agent.run(prompt))
        try:
            await asyncio.wait([work, reading], return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and reading.done() and reading.exception() is not None:
                self._agent.interrupt()
            await asyncio.wait([work])
        finally:
            if not work.done():
                work.cancel()
                await asyncio.wait([work])
        return work.result()

    async def _next(self, reading: "asyncio.Task[None]") -> str | None:
        """The next prompt; None at the end of the input."""
        # What came too late for the model to hear it is the next prompt.
        late, self._agent.talk.steering = self._agent.talk.steering, []
        if late:
            return "\n\n".join(late)
        while not self._waiting and not reading.done():
            self._came.clear()
            await self._came.wait()
        if reading.done() and reading.exception() is not None:
            return None
        return self._waiting.pop(0) if self._waiting else None

    async def _read(self) -> None:
        try:
            number = 0
            async for line in lines(self._descriptor):
                number += 1
                if line.strip():
                    self._take(prompt_of(line, number))
        finally:
            # Whoever waits looks again once this task is over.
            asyncio.get_running_loop().call_soon(self._came.set)

    def _take(self, prompt: str) -> None:
        if self._agent.is_running:
            self._agent.steer(prompt)
        else:
            self._waiting.append(prompt)
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


def prompt_of(line: bytes, number: int) -> str:
    """The words of a message. Raises: click.UsageError."""
    try:
        said = msgspec.json.decode(line)
        content = {"user": said["message"]["content"]}[said["type"]]
        texts = [content] if isinstance(content, str) else [{"text": block["text"]}[block["type"]] for block in content]
        prompt = "\n".join(texts)
    except (msgspec.DecodeError, KeyError, TypeError, UnicodeDecodeError, RecursionError) as error:
        raise click.UsageError(
            f"Line {number} of standard input is no message of text. Each line is {_FORM}."
        ) from error
    if not prompt.strip():
        raise click.UsageError(f"Line {number} of standard input is an empty message.")
    return prompt


def descriptor() -> int:
    """Where lines come from. Raises: ConfigError."""
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError) as error:
        raise ConfigError("Standard input is closed: no message can come in.") from error
