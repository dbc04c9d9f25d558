"""Read and write server-sent events, order deltas, mend JSON and assemble answers.

An answer begins once and ends once, and every call in it is numbered and ended. Deltas are put in an order that
every API can express: one thing after the other, with nothing left open.

Events may be almost JSON: bytes that are not text, and characters cut in two between events.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ferrule.core.content import Text
from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    Foreign,
    ForeignBlock,
    ModelResponse,
    Part,
    Reason,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Usage,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)

LIMIT_BYTES = 32 * 1024 * 1024
"""More than any API sends as one event; what is longer is an attack or no stream of events."""

_MARK = b"\xef\xbb\xbf"
_encode = msgspec.json.Encoder().encode


class ServerSentEvent(msgspec.Struct, frozen=True, gc=False):
    """One event; both ends of every stream speak in these."""

    name: str
    """Empty where the stream did not name it."""
    data: bytes


DONE = ServerSentEvent("", b"[DONE]")
"""How some APIs say that nothing more will come."""


class EventTooLongError(ValueError):
    """An event is longer than its reader takes."""


class EventReader:
    """Reads events out of bytes that arrive in pieces of any size."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._pending = bytearray()
        """The beginning of an event whose end has not come; its lines end in a line feed and no other way."""
        self._lead, self._name = b"data: ", ""
        """What the last event had before its data, and the name that this gave it."""
        self._is_too_long = False
        self._at_start = True
        self._after_return = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that these bytes complete.

        Raises EventTooLongError when there is nothing left to give before the event that is too long, and from then
        on every time.
        """
        if self._at_start:
            chunk = self._without_mark(chunk)
        if self._after_return or b"\r" in chunk:
            chunk = self._with_line_feeds(chunk)
        out: list[ServerSentEvent] = []
        if self._pending and self._pending[-1] == 0x0A and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._close(out)
        *blocks, rest = chunk.split(b"\n\n")
        if blocks and self._pending:
            self._pending += blocks[0]
            self._close(out)
            del blocks[0]
        self._read_all(blocks, out)
        self._pending += rest
        # One more than the limit: the first half of the blank line that ends an event may be here already.
        if len(self._pending) > self._limit_bytes + 1:
            self._is_too_long = True
        self._check(out)
        return out

    def end(self) -> list[ServerSentEvent]:
        """The last event of a stream that stopped without the blank line after it."""
        out: list[ServerSentEvent] = []
        self._close(out)
        self._check(out)
        return out

    def _check(self, out: list[ServerSentEvent]) -> None:
        if self._is_too_long:
            self._pending.clear()
            if not out:
                raise EventTooLongError(f"An event of this stream is longer than {self._limit_bytes:,} bytes.")

    def _close(self, out: list[ServerSentEvent]) -> None:
        block = bytes(self._pending).removesuffix(b"\n")
        self._pending.clear()
        self._read_all([block], out)

    def _read_all(self, blocks: list[bytes], out: list[ServerSentEvent]) -> None:
        lead, name, limit_bytes = self._lead, self._name, self._limit_bytes
        for block in blocks:
            if len(block) > limit_bytes or self._is_too_long:
                self._is_too_long = True
                return
            # Most events begin like the one before them.
            if block.startswith(lead) and b"\n" not in (data := block[len(lead) :]):
                out.append(ServerSentEvent(name, data))
            else:
                self._read(block, out)
                lead, name = self._lead, self._name

    def _read(self, block: bytes, out: list[ServerSentEvent]) -> None:
        """The event that some lines make, if they make one."""
        name = ""
        lines: list[bytes] = []
        for line in block.split(b"\n"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                lines.append(value)
            elif field == b"event":
                name = value.decode("utf-8", "replace")
        if lines:
            out.append(ServerSentEvent(name, b"\n".join(lines)))
            lead = block[: len(block) - len(lines[0])]
            is_named = lead.startswith(b"event:") and lead.endswith(b"\ndata: ") and lead.count(b"\n") == 1
            if len(lines) == 1 and (is_named or lead == b"data: "):
                self._lead, self._name = lead, name

    def _with_line_feeds(self, chunk: bytes) -> bytes:
        # A return at the very end is a line's end already; the line feed that may still follow belongs to it.
        if self._after_return and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._after_return = False
        if chunk:
            self._after_return = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _without_mark(self, chunk: bytes) -> bytes:
        self._pending += chunk
        if len(self._pending) < len(_MARK) and _MARK.startswith(self._pending):
            return b""
        chunk = bytes(self._pending).removeprefix(_MARK)
        self._pending.clear()
        self._at_start = False
        return chunk


def event(name: str, value: Any) -> ServerSentEvent:
    """An event that carries a value as JSON."""
    return ServerSentEvent(name, _encode(value))


def text(given: ServerSentEvent) -> bytes:
    """An event as it goes over the wire. JSON has no line breaks in it, and data is JSON."""
    if given.name:
        return b"event: %b\ndata: %b\n\n" % (given.name.encode(), given.data)
    return b"data: %b\n\n" % given.data


class EventSequencer:
    """Holds back what cannot be said yet, and loses none of it.

    Most APIs say one thing at a time, while calls may arrive interleaved: whatever begins during a call waits for
    the end of that call, in the order of begin. `together` is for an API that lets calls be interleaved.
    After `Broke` nothing is said any more: neither what was held back nor the end of a call is. An answer that seems to
    be whole and holds a call that is not, is said to have been too long.
    Without `free_text`, the text of a call that takes free text becomes the one parameter, `input`, of a JSON object.
    """

    def __init__(self, *, together: bool = False, free_text: bool = False) -> None:
        self._together = together
        self._free_text = free_text
        self._begun = False
        self._over = False
        self._was_cut = False
        self.flowing = -1
        """The call whose pieces go out as they come; -1 where there is none, or where they are still being changed."""
        self._open: dict[int, bool] = {}
        """The calls that were said to begin and not to end, and whether their text has to be put into JSON."""
        self._silent: set[int] = set()
        """Those of them that have said nothing yet."""
        self._waiting: dict[int, list[Delta]] = {}
        self._queue: deque[list[Delta]] = deque()

    def put(self, delta: Delta) -> Sequence[Delta]:
        """What can be said now."""
        if type(delta) is UsePiece and delta.at == self.flowing and delta.text:
            return (delta,)
        out: list[Delta] = []
        if self._over:
            return out
        if not self._begun:
            self._begun = True
            out.append(delta if isinstance(delta, AnswerStart) else AnswerStart("", ""))
        match delta:
            case AnswerStart():
                pass
            case Broke():
                self._over = True
                self.flowing = -1
                out.append(delta)
            case AnswerEnd():
                self._end(delta, out)
            case TextPiece() | ThinkingPiece() | ForeignBlock():
                self._words(delta, out)
            case UseBegun():
                self._use(delta, out)
            case UsePiece() | UseEnded():
                self._more(delta, out)
        return out

    def _words(self, delta: TextPiece | ThinkingPiece | ForeignBlock, out: list[Delta]) -> None:
        if _is_empty(delta):
            return
        if self._together or not self._open:
            out.append(delta)
        elif self._queue and not isinstance(self._queue[-1][0], UseBegun):
            self._queue[-1].append(delta)
        else:
            self._queue.append([delta])

    def _use(self, delta: UseBegun, out: list[Delta]) -> None:
        if delta.at in self._open or delta.at in self._waiting:
            return
        if self._together or not self._open:
            self._say(delta, out)
        else:
            self._waiting[delta.at] = [delta]
            self._queue.append(self._waiting[delta.at])

    def _more(self, delta: UsePiece | UseEnded, out: list[Delta]) -> None:
        if delta.at in self._open:
            self._say(delta, out)
            self._drain(out)
        elif (waiting := self._waiting.get(delta.at)) and not isinstance(waiting[-1], UseEnded):
            waiting.append(delta)

    def _drain(self, out: list[Delta]) -> None:
        while self._queue and not self._open:
            for delta in self._queue.popleft():
                if isinstance(delta, UseBegun):
                    del self._waiting[delta.at]
                self._say(delta, out)

    def _end(self, delta: AnswerEnd, out: list[Delta]) -> None:
        while self._open:
            self._say(UseEnded(next(iter(self._open)), cut=True), out)
            self._drain(out)
        self._over = True
        is_whole = delta.reason in {"end", "tools"}
        out.append(replace(delta, reason="length") if self._was_cut and is_whole else delta)

    def _say(self, delta: Delta, out: list[Delta]) -> None:
        match delta:
            case UseBegun(at=at):
                in_json = delta.is_text and not self._free_text
                self._open[at] = in_json
                if in_json:
                    out += (replace(delta, is_text=False), UsePiece(at, '{"input":"'))
                    return
                if not delta.is_text:
                    self._silent.add(at)
            case UsePiece(at=at, text=text):
                if not text:
                    return
                self._silent.discard(at)
                if self._open[at]:
                    out.append(UsePiece(at, _encode(text)[1:-1].decode()))
                    return
                self.flowing = at
            case UseEnded(at=at, cut=cut):
                if not cut and self._open[at]:
                    out.append(UsePiece(at, '"}'))
                elif not cut and at in self._silent:
                    out.append(UsePiece(at, "{}"))
                self._was_cut = self._was_cut or cut
                del self._open[at]
                self._silent.discard(at)
                self.flowing = -1
        out.append(delta)


def _is_empty(delta: TextPiece | ThinkingPiece | ForeignBlock) -> bool:
    if isinstance(delta, ForeignBlock) or delta.text:
        return False
    return not (isinstance(delta, ThinkingPiece) and (delta.signature or delta.sealed))


_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


class Mender:
    """Makes JSON readable again where the sender cut a text in the middle of a character.

    Such a sender writes half of a surrogate pair at the end of one event and the other half at the beginning of a
    later one. The first half is kept until the second comes. A half that has no other is no character: what stands in
    the middle of a text becomes the mark for one that could not be read.
    """

    def __init__(self) -> None:
        self._half = b""

    def mend(self, data: bytes) -> bytes:
        """The event with every half character joined, kept or replaced. Only for what could not be read as it is."""
        data = data.decode("utf-8", "replace").encode()
        out: list[bytes] = []
        done = 0
        open_half: re.Match[bytes] | None = None
        for found in _ESCAPE.finditer(data):
            code = int(found[1], 16) if found[1] else 0
            follows = open_half is not None and open_half.end() == found.start()
            if open_half is not None and not (follows and 0xDC00 <= code <= 0xDFFF):
                out.append(data[done : open_half.start()] + self._alone(data, open_half))
                done = open_half.end()
            if 0xDC00 <= code <= 0xDFFF and not follows:
                out.append(data[done : found.start()] + (self._half + found[0] if self._half else rb"\ufffd"))
                done = found.end()
                self._half = b""
            open_half = found if 0xD800 <= code <= 0xDBFF else None
        if open_half is not None:
            out.append(data[done : open_half.start()] + self._alone(data, open_half))
            done = open_half.end()
        out.append(data[done:])
        return b"".join(out)

    def _alone(self, data: bytes, half: re.Match[bytes]) -> bytes:
        """What stands for the first half of a pair that is not followed by the second in its own text."""
        if data[half.end() : half.end() + 1] != b'"':
            return rb"\ufffd"
        self._half = half[0]
        return b""


_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
encode = msgspec.json.Encoder().encode
_Say = Callable[[Any, list[ServerSentEvent]], None]
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def make_id(prefix: str) -> str:
    """An id for what came without one."""
    return f"{prefix}{os.urandom(12).hex()}"


def json_text(value: Any) -> str:
    return encode(value).decode()


def is_object(text: str) -> bool:
    """Is this a whole JSON object? If so, nothing can be missing at its end."""
    try:
        return isinstance(_object(text), dict)
    except _UNREADABLE:
        return False


class StreamReader:
    """Reads one answer. What it gives is always complete: `Begun` first, every call ended, one `Ended`, and that last.

    An event that cannot be read is skipped and counted; `Ended` says how many there were. Events of kinds that are
    not known here are passed over in silence: the APIs promise to add some.
    """

    def __init__(self, decoder: msgspec.json.Decoder[Any]) -> None:
        self.skipped = 0
        self.odd = 0
        """Events that were no JSON: those that were mended, and those that nobody could read."""
        self._decode = decoder.decode
        self._mender = Mender()
        self._begun = False
        self._over = False
        self._calls = 0
        self._open: dict[int, None] = {}
        self._ids: set[str] = set()
        self._whole = 0
        self._reason: Reason | None = None
        self._usage = Usage()

    @property
    def is_over(self) -> bool:
        """Did `Ended` come?"""
        return self._over

    @property
    def is_told(self) -> bool:
        """Did the API say how the answer ends? Where it did not, the stream was cut."""
        return self._over or self._reason is not None

    def read(self, event: ServerSentEvent) -> list[Delta]:
        """What an event says. Nothing more is read after the end of the answer."""
        if self._over:
            return []
        try:
            value = self._decode(event.data)
        except _UNREADABLE:
            deltas = self._read_badly(event)
        else:
            deltas = self._take(value)
        if deltas and not self._begun:
            self._begin(deltas)
        return deltas

    def end(self) -> list[Delta]:
        """What is missing of the answer when the stream stops, wherever it stops."""
        if self._over:
            return []
        deltas = self._close(whole=self._reason is not None)
        if not self._begun:
            self._begin(deltas)
        return deltas

    def _take(self, value: Any) -> list[Delta]:
        raise NotImplementedError

    def _begin(self, deltas: list[Delta]) -> None:
        self._begun = True
        if type(deltas[0]) is not AnswerStart:
            deltas.insert(0, AnswerStart("", ""))

    def _read_badly(self, event: ServerSentEvent) -> list[Delta]:
        data = event.data.strip()
        if data == DONE.data:
            return self._close(whole=True)
        if not data:
            return []
        self.odd += 1
        try:
            value = self._decode(self._mender.mend(data))
        except _UNREADABLE:
            if event.name == "error":
                return [Broke(data.decode("utf-8", "replace"))]
            self.skipped += 1
            return []
        return self._take(value)

    def _use(self, name: str, call_id: str, *, is_text: bool = False, namespace: str = "") -> UseBegun:
        at = self._calls
        self._calls += 1
        self._open[at] = None
        # Some servers give all calls the same id; their results could not be told apart.
        if not call_id or call_id in self._ids:
            call_id = make_id("call_")
        self._ids.add(call_id)
        return UseBegun(at, call_id, name, is_text, namespace)

    def _end_use(self, at: int, *, whole: bool = True) -> list[Delta]:
        """The end of a call, unless it ended before."""
        if at not in self._open:
            return []
        del self._open[at]
        self._whole += whole
        return [UseEnded(at, cut=not whole)]

    def _close(self, *, whole: bool) -> list[Delta]:
        """The end of the answer. Calls that are still open are whole if the API itself said that all is said."""
        self._over = True
        deltas: list[Delta] = []
        for at in list(self._open):
            deltas += self._end_use(at, whole=whole and self._reason not in {"length", "refused"})
        reason = self._reason or ("tools" if self._whole else "end")
        deltas.append(AnswerEnd(reason, self._usage, self.skipped))
        return deltas


class StreamWriter:
    """Writes one answer. However the deltas come, the events that go out are legal; after `Ended` nothing does.

    `Broke` becomes the API's own error, and nothing is written behind it: no answer that broke ends as if it were
    whole.
    """

    def __init__(self, *, together: bool = False, free_text: bool = False) -> None:
        self._order = EventSequencer(together=together, free_text=free_text)
        self._by: dict[type, _Say] = {
            AnswerStart: self._begin,
            TextPiece: self._text,
            ThinkingPiece: self._thinking,
            UseBegun: self._use,
            UsePiece: self._piece,
            UseEnded: self._end_use,
            ForeignBlock: self._block,
            Broke: self._fail,
            AnswerEnd: self._end,
        }

    def write(self, delta: Delta) -> list[ServerSentEvent]:
        """The events that say so; none where it has to wait for an earlier call to end."""
        out: list[ServerSentEvent] = []
        for one in self._order.put(delta):
            self._by[type(one)](one, out)
        return out

    def _begin(self, delta: AnswerStart, out: list[ServerSentEvent]) -> None:
        raise NotImplementedError

    def _text(self, delta: TextPiece, out: list[ServerSentEvent]) -> None:
        raise NotImplementedError

    def _thinking(self, delta: ThinkingPiece, out: list[ServerSentEvent]) -> None:
        raise NotImplementedError

    def _use(self, delta: UseBegun, out: list[ServerSentEvent]) -> None:
        raise NotImplementedError

    def _piece(self, delta: UsePiece, out: list[ServerSentEvent]) -> None:
        raise NotImplementedError

    def _end_use(self, delta: UseEnded, out: list[ServerSentEvent]) -> None:
        raise NotImplementedError

    def _block(self, delta: ForeignBlock, out: list[ServerSentEvent]) -> None:
        """A block of another API has no place."""

    def _fail(self, delta: Broke, out: list[ServerSentEvent]) -> None:
        raise NotImplementedError

    def _end(self, delta: AnswerEnd, out: list[ServerSentEvent]) -> None:
        raise NotImplementedError


_decode = msgspec.json.Decoder().decode


class _Open:
    """A part that is being said."""

    def __init__(self, begun: UseBegun | None = None, *, is_thinking: bool = False, wire: str = "") -> None:
        self.begun = begun
        self.is_thinking = is_thinking
        self.wire = wire
        self.pieces: list[str] = []
        self.signature = ""
        self.sealed = ""
        self.cut = False

    @property
    def is_said(self) -> bool:
        return bool(self.begun or any(self.pieces) or self.signature or self.sealed)


class Assembler:
    """Takes deltas and keeps what they make together. Parts stand in the order of their begin, each call once."""

    def __init__(self) -> None:
        self.broke: Broke | None = None
        """The first error that the API reported. What had been said until then is still there."""
        self._id = ""
        self._model = ""
        self._parts: list[_Open | Foreign] = []
        self._uses: dict[int, _Open] = {}
        self._reason: Reason = "end"
        self._usage = Usage()

    def put(self, delta: Delta) -> None:
        match delta:
            case TextPiece():
                self._words(is_thinking=False).pieces.append(delta.text)
            case ThinkingPiece():
                self._think(delta)
            case UseBegun() | UsePiece() | UseEnded():
                self._use(delta)
            case ForeignBlock():
                self._parts.append(Foreign(delta.wire, str(delta.block.get("type") or ""), delta.block))
            case AnswerStart():
                self._id, self._model = delta.id, delta.model
            case Broke():
                self.broke = self.broke or delta
            case AnswerEnd():
                self._reason, self._usage = delta.reason, delta.usage

    def _use(self, delta: UseBegun | UsePiece | UseEnded) -> None:
        use = self._uses.get(delta.at)
        if isinstance(delta, UseBegun):
            if use is None:
                use = self._uses[delta.at] = _Open(delta)
                self._parts.append(use)
        elif use is not None and isinstance(delta, UsePiece):
            use.pieces.append(delta.text)
        elif use is not None and isinstance(delta, UseEnded):
            use.cut = delta.cut

    def said(self) -> ModelResponse:
        """The answer so far; after `Ended` the whole of it."""
        parts = [part for part in self._parts if isinstance(part, Foreign) or part.is_said]
        made = tuple(self._part(part, is_last=part is parts[-1]) for part in parts)
        return ModelResponse(id=self._id, model=self._model, parts=made, reason=self._reason, usage=self._usage)

    def _words(self, *, is_thinking: bool, wire: str = "") -> _Open:
        last = self._parts[-1] if self._parts else None
        if (
            not isinstance(last, _Open)
            or last.begun is not None
            or last.is_thinking is not is_thinking
            or last.wire != wire
        ):
            last = _Open(is_thinking=is_thinking, wire=wire)
            self._parts.append(last)
        return last

    def _think(self, delta: ThinkingPiece) -> None:
        part = self._words(is_thinking=True, wire=delta.wire)
        # A signature and a seal end the thinking that they stand for.
        if part.signature or part.sealed:
            part = _Open(is_thinking=True, wire=delta.wire)
            self._parts.append(part)
        part.pieces.append(delta.text)
        part.signature, part.sealed = delta.signature, delta.sealed

    def _part(self, part: _Open | Foreign, *, is_last: bool) -> Part:
        if isinstance(part, Foreign):
            return part
        text = "".join(part.pieces)
        if part.begun is None:
            return Thinking(text, part.signature, part.sealed, part.wire) if part.is_thinking else Text(text)
        # Out of tokens before the first piece of input is no call without arguments.
        stopped_short = is_last and (self._reason in {"length", "refused"} or self.broke is not None)
        keeps_text = part.begun.is_text or part.cut or (stopped_short and not text)
        values = text if keeps_text else _input(text)
        return Use(part.begun.id, part.begun.name, values, part.begun.is_text, namespace=part.begun.namespace)


def _input(text: str) -> dict[str, Any] | str:
    """The object that was written; anything else stays the text that it is, for the engine to complain about."""
    if not text.strip():
        return {}
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def assemble(deltas: Iterable[Delta]) -> ModelResponse:
    """The answer that all deltas of a stream make."""
    assembler = Assembler()
    for delta in deltas:
        assembler.put(delta)
    return assembler.said()


class ApiFailure(NamedTuple):
    """One thing that goes wrong, as each API calls it."""

    anthropic: str
    openai: str
    """Its type in Chat, and its code in Responses."""
    gemini: str
    status: int
    """The number that Gemini puts beside its word."""
    others: tuple[str, ...] = ()
    """What else it is called: by models of ours, by servers that imitate an API, and by statuses of HTTP."""


_SERVER = ApiFailure("api_error", "server_error", "INTERNAL", 500, ("server", "500", "502"))
_FAILURES = (
    _SERVER,
    ApiFailure("api_error", "server_error", "UNAVAILABLE", 503, ("cut", "network", "none")),
    ApiFailure("overloaded_error", "server_is_overloaded", "UNAVAILABLE", 503, ("overloaded", "503", "529")),
    ApiFailure("rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED", 429, ("limit", "rate_limit", "429")),
    ApiFailure("billing_error", "insufficient_quota", "RESOURCE_EXHAUSTED", 429, ("402",)),
    ApiFailure("timeout_error", "timeout", "DEADLINE_EXCEEDED", 504, ("408", "504")),
    ApiFailure(
        "invalid_request_error",
        "invalid_prompt",
        "INVALID_ARGUMENT",
        400,
        ("bad", "invalid_request", "FAILED_PRECONDITION", "400", "422"),
    ),
    ApiFailure("invalid_request_error", "context_length_exceeded", "INVALID_ARGUMENT", 400, ("too-long",)),
    ApiFailure("request_too_large", "string_above_max_length", "INVALID_ARGUMENT", 400, ("413",)),
    ApiFailure("authentication_error", "invalid_api_key", "UNAUTHENTICATED", 401, ("no-key", "wrong-key", "401")),
    ApiFailure("permission_error", "permission_denied", "PERMISSION_DENIED", 403, ("403",)),
    ApiFailure("not_found_error", "model_not_found", "NOT_FOUND", 404, ("no-model", "404")),
)
_NAMED: Mapping[str, ApiFailure] = MappingProxyType(
    {
        word: failure
        for failure in reversed(_FAILURES)
        for word in (failure.anthropic, failure.openai, failure.gemini, *failure.others)
    }
)
"""By each of its names; of two that share one, the first."""


def failure_of(kind: str) -> ApiFailure:
    """What an error of this kind is; what nobody has heard of is a fault of the server's."""
    return _NAMED.get(kind, _SERVER)


_STREAMS = {
    "anthropic": ("anthropic_stream", "AnthropicReader", "AnthropicWriter"),
    "openai-chat": ("openai_chat_stream", "ChatReader", "ChatWriter"),
    "openai-responses": ("openai_responses_stream", "ResponsesReader", "ResponsesWriter"),
    "gemini": ("gemini_stream", "GeminiReader", "GeminiWriter"),
}
"""A format's name → the module of its streams, and what reads and writes one there."""


def load_reader(wire: str) -> StreamReader:
    """Return a reader for one stream of a wire format."""
    module, reader, _ = _STREAMS[wire]
    made = getattr(import_module(f"ferrule.wire.{module}"), reader)()
    assert isinstance(made, StreamReader)
    return made


def load_writer(wire: str) -> StreamWriter:
    """Return a writer for one stream of a wire format."""
    module, _, writer = _STREAMS[wire]
    made = getattr(import_module(f"ferrule.wire.{module}"), writer)()
    assert isinstance(made, StreamWriter)
    return made
