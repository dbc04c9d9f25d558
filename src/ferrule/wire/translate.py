"""One API's requests and streams as another's: a body with what it loses, and bytes in, bytes out, as they come."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from ferrule.core.errors import ConfigError
from ferrule.wire.delta import Broke, Delta
from ferrule.wire.fields import SHAPES, Dropped, Passage, dropped
from ferrule.wire.sse import Event, EventReader, EventTooLongError, text
from ferrule.wire.stream import StreamReader, StreamWriter
from ferrule.wire.turn import Asked
from ferrule.wire.wire import load_wire

CUT = "The answer broke off before its end."


class Translated(NamedTuple):
    """A request in another API's words."""

    body: dict[str, Any]
    dropped: list[Dropped]
    """What the other API has no place for, and where it stood."""
    asked: Asked
    """The same in no API's words."""


def translate_body(body: Mapping[str, Any], source: str, target: str, **options: Any) -> Translated:
    """The body of one API as a body of another, both by their names. `options` are those of the other's `asked_out`.

    Raises WireError for what is no such body, and for what only its own API can do: tools that run inside of it, and
    conversations that it keeps. Raises ConfigError for a name of no model API.
    """
    for name in (source, target):
        if name not in SHAPES:
            raise ConfigError(f"No model API is called {name!r}. There are: {', '.join(SHAPES)}.")
    reads, writes = load_wire(source), load_wire(target)
    asked = reads.asked_in(body)
    written = writes.asked_out(asked, **options)
    # Without the conversation, which may be long: that is looked for in the body itself.
    short = replace(asked, turns=())
    back = writes.asked_in(writes.asked_out(short, **options))
    passage = Passage(source, target, short, back, bool(options.get("marks")))
    return Translated(written, dropped(body, passage), asked)


class Through(Protocol):
    """Something that deltas go through on their way, such as `GrokCalls`."""

    def put(self, delta: Delta) -> Sequence[Delta]: ...


class Translator:
    """Reads one API's stream and writes another's.

    An event that is too long breaks the answer off, and so does a stream that stops before the answer does.
    """

    def __init__(self, reader: StreamReader, writer: StreamWriter, *, through: Through | None = None) -> None:
        self._events = EventReader()
        self._reader = reader
        self._writer = writer
        self._through = through
        self._over = False

    def feed(self, chunk: bytes) -> bytes:
        """What these bytes become; often nothing."""
        if self._over:
            return b""
        out: list[bytes] = []
        try:
            self._hear(self._events.feed(chunk), out)
        except EventTooLongError as error:
            self._break_off(error, out)
        return b"".join(out)

    def end(self) -> bytes:
        """What the answer still needs, to be complete."""
        if self._over:
            return b""
        out: list[bytes] = []
        try:
            self._hear(self._events.end(), out)
        except EventTooLongError as error:
            self._break_off(error, out)
        else:
            self._finish(out)
        return b"".join(out)

    def _break_off(self, error: EventTooLongError, out: list[bytes]) -> None:
        self._say([Broke(str(error), "event-too-long")], out)
        self._finish(out)

    def _finish(self, out: list[bytes]) -> None:
        self._over = True
        if not self._reader.is_told:
            self._say([Broke(CUT, "cut")], out)
        self._say(self._reader.end(), out)

    def _hear(self, events: list[Event], out: list[bytes]) -> None:
        read = self._reader.read
        for event in events:
            if deltas := read(event):
                self._say(deltas, out)

    def _say(self, deltas: list[Delta], out: list[bytes]) -> None:
        if self._through is not None:
            deltas = [after for delta in deltas for after in self._through.put(delta)]
        write = self._writer.write
        for delta in deltas:
            for event in write(delta):
                if event.name:
                    out.append(text(event))
                else:
                    # What `text` does, without making bytes that are joined right after.
                    out += (b"data: ", event.data, b"\n\n")


def translate(
    reader: StreamReader, writer: StreamWriter, chunks: Iterable[bytes], *, through: Through | None = None
) -> Iterator[bytes]:
    """The chunks of one API's stream as another API would have sent them. The last ones make the answer complete."""
    translator = Translator(reader, writer, through=through)
    for chunk in chunks:
        if given := translator.feed(chunk):
            yield given
    if given := translator.end():
        yield given


async def translate_live(
    reader: StreamReader, writer: StreamWriter, chunks: AsyncIterable[bytes], *, through: Through | None = None
) -> AsyncIterator[bytes]:
    """The same for chunks that have to be waited for."""
    translator = Translator(reader, writer, through=through)
    async for chunk in chunks:
        if given := translator.feed(chunk):
            yield given
    if given := translator.end():
        yield given
