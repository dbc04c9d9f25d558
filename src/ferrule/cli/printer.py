"""What `ferrule run` shows of a conversation, in each of its forms, until nobody looks any more."""

import io
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ferrule.agent.events import AgentEvent, Ended
from ferrule.cli.lines import Outbox

if TYPE_CHECKING:
    from ferrule.cli.run import AnswerForm
    from ferrule.cli.stream_json import StreamJson


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
