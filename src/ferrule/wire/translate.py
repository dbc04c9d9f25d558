"""Translate requests and streams from one model API to another.

A translated body comes with a list of the parts that it loses, and streams are translated as they arrive.

`GrokCalls` turns calls that Grok writes into its text as XML into real calls. It is off unless requested.
"""

import re
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from ferrule.core.errors import ConfigError
from ferrule.wire import AnswerEnd, Broke, Delta, ModelRequest, TextPiece, UseBegun, UseEnded, UsePiece, load_wire
from ferrule.wire.fields import SHAPES, BodyTranslation, Dropped, find_dropped
from ferrule.wire.stream import EventReader, EventTooLongError, ServerSentEvent, StreamReader, StreamWriter, text

CUT = "The answer broke off before its end."


class Translated(NamedTuple):
    """A request in another API's words."""

    body: dict[str, Any]
    dropped: list[Dropped]
    """What the other API has no place for, and where it stood."""
    asked: ModelRequest
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
    passage = BodyTranslation(source, target, short, back, bool(options.get("marks")))
    return Translated(written, find_dropped(body, passage), asked)


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

    def _hear(self, events: list[ServerSentEvent], out: list[bytes]) -> None:
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


_OPEN = "<xai:function_call"
_CLOSE = "</xai:function_call>"
_NAME = re.compile(r"""\s+name\s*=\s*(?:"([^"]*)"|'([^']*)')\s*>""")
_PARAMETER = re.compile(r"""<xai:parameter\s+name\s*=\s*(?:"([^"]*)"|'([^']*)')\s*>""")
_END = "</xai:parameter>"

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class GrokCalls:
    """Deltas on their way: text goes through, calls inside of it become calls.

    Text is held back only while it may be the beginning of a call. What never becomes one is given out as text.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        """Text that begins with `<xai:function_call` and whose end has not come."""
        self._tail = ""
        """The last characters of what was looked through, in which the end may have begun."""
        self._maybe = ""
        """The end of the text, where it may be the beginning of a call."""
        self._found = 0
        self._ats: dict[int, int] = {}
        self._calls = 0

    def put(self, delta: Delta) -> list[Delta]:
        """What this delta becomes."""
        out: list[Delta] = []
        if isinstance(delta, TextPiece):
            self._text(delta.text, out)
            return out
        self._let_go(out)
        match delta:
            case UseBegun():
                self._ats[delta.at] = self._calls
                self._calls += 1
                out.append(replace(delta, at=self._ats[delta.at]))
            case UsePiece():
                out.append(UsePiece(self._ats.get(delta.at, delta.at), delta.text))
            case UseEnded():
                out.append(UseEnded(self._ats.get(delta.at, delta.at), delta.cut))
            case AnswerEnd() if delta.reason == "end" and self._found:
                out.append(AnswerEnd("tools", delta.usage, delta.skipped))
            case _:
                out.append(delta)
        return out

    def _text(self, text: str, out: list[Delta]) -> None:
        text, self._maybe = self._maybe + text, ""
        at = 0
        while at < len(text):
            at = self._inside(text, at, out) if self._held else self._outside(text, at, out)

    def _outside(self, text: str, at: int, out: list[Delta]) -> int:
        """Where the text of a call begins; what stands before it is said."""
        start = text.find(_OPEN, at)
        if start >= 0:
            _say(text[at:start], out)
            self._held = [_OPEN]
            return start + len(_OPEN)
        end = len(text) - _partial_tag_length(text, at)
        _say(text[at:end], out)
        self._maybe = text[end:]
        return len(text)

    def _inside(self, text: str, at: int, out: list[Delta]) -> int:
        """Where the text after a call begins."""
        # The end may have begun in the piece before.
        seam = (self._tail + text[at : at + len(_CLOSE) - 1]).find(_CLOSE)
        found = text.find(_CLOSE, at) if seam < 0 else at + seam - len(self._tail)
        if seam < 0 and found < 0:
            self._held.append(text[at:])
            self._tail = (self._tail + text[at:][-len(_CLOSE) :])[-len(_CLOSE) + 1 :]
            return len(text)
        stop = found + len(_CLOSE)
        whole = "".join(self._held) + text[at:stop]
        self._held, self._tail = [], ""
        self._call(whole, out)
        return stop

    def _call(self, xml: str, out: list[Delta]) -> None:
        head = _NAME.match(xml, len(_OPEN))
        if head is None or not (head[1] or head[2]):
            _say(xml, out)
            return
        values = _parameters(xml, head.end())
        self._found += 1
        at = self._calls
        self._calls += 1
        out.append(UseBegun(at, f"toolu_grok_{self._found}", head[1] or head[2]))
        out.append(UsePiece(at, _encode(values).decode()))
        out.append(UseEnded(at))

    def _let_go(self, out: list[Delta]) -> None:
        _say("".join(self._held) + self._maybe, out)
        self._held, self._tail, self._maybe = [], "", ""


def _say(text: str, out: list[Delta]) -> None:
    if text:
        out.append(TextPiece(text))


def _partial_tag_length(text: str, at: int) -> int:
    """How many characters at the end of a text are the beginning of a call, as far as one can see."""
    most = min(len(_OPEN) - 1, len(text) - at)
    return next((size for size in range(most, 0, -1) if text.endswith(_OPEN[:size])), 0)


def _parameters(xml: str, at: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    while (head := _PARAMETER.search(xml, at)) is not None:
        end = xml.find(_END, head.end())
        if end < 0:
            break
        values[head[1] or head[2]] = _value(xml[head.end() : end])
        at = end + len(_END)
    return values


def _value(text: str) -> Any:
    """A parameter: JSON where it is JSON, otherwise the text itself."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
