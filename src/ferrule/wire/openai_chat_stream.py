"""Convert OpenAI Chat Completions streams to deltas and deltas to such streams."""

import time
from typing import Any

import msgspec

from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    Reason,
    TextPiece,
    ThinkingPiece,
    Usage,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.openai_chat import NAME
from ferrule.wire.stream import (
    DONE,
    ServerSentEvent,
    StreamReader,
    StreamWriter,
    encode,
    failure_of,
    is_object,
    json_text,
    make_id,
)

_REASONS: dict[str, Reason] = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "model_length": "length",
    "content_filter": "refused",
    "sensitive": "refused",
}
_FAILED = {"error", "insufficient_system_resource", "network_error", "abort"}
"""What servers call an answer that they could not bring to its end."""


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _Custom(msgspec.Struct):
    name: str | None = None
    input: str | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    custom: _Custom | None = None


class _ChatPart(msgspec.Struct):
    """A piece of content, where a server sends a list of them."""

    type: str = ""
    text: str | None = None
    thinking: Any = None


class _ChatDelta(msgspec.Struct):
    content: str | list[_ChatPart] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    tool_calls: list[_ToolCall] | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _ChatUsage(msgspec.Struct):
    """Some servers have words of their own for what they had in their cache."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    cached_tokens: int | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _ChatDelta | None = None
    finish_reason: str | None = None
    usage: _ChatUsage | None = None


class _ChatError(msgspec.Struct):
    message: str | None = None
    type: str | None = None
    code: str | int | None = None


class _ChatChunk(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _ChatUsage | None = None
    error: _ChatError | str | None = None
    object: Any = None
    message: Any = None
    code: Any = None


_DECODER = msgspec.json.Decoder(_ChatChunk, strict=False)


class _Call:
    """A call of which not everything may be known yet."""

    def __init__(self) -> None:
        self.at = -1
        self.id = ""
        self.name = ""
        self.is_text = False
        self.pieces: list[str] = []
        """All of the input so far: this API does not say where a call ends, only the input itself does."""


class ChatReader(StreamReader):
    """Reads the chunks of a Chat stream; of several choices only the first.

    A call begins when its id and its name are known; what came of its input before that follows at once. As the API
    does not say where a call ends, a call whose input is a whole JSON object ends when the next one begins, and
    every other one with the answer. A refusal is text, `reasoning_content` is thinking, `reasoning_details` its seal.
    """

    def __init__(self) -> None:
        super().__init__(_DECODER)
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._last: _Call | None = None
        """The one that began last."""
        self._all: list[_Call] = []
        """In the order in which they were first heard of."""
        self._details: list[dict[str, Any]] = []
        """What a host that passes on other APIs' thinking wants to have back as it came."""

    def _take(self, value: _ChatChunk) -> list[Delta]:
        deltas: list[Delta] = []
        if not self._begun and (value.id or value.choices):
            deltas.append(AnswerStart(value.id or "", value.model or ""))
        if value.error or value.object == "error":
            error = value.error or _ChatError(str(value.message or ""), code=str(value.code or ""))
            error = _ChatError(error) if isinstance(error, str) else error
            kind = error.type or str(error.code or "")
            deltas.append(Broke(error.message or "The API reported an error.", kind))
        self._count(value.usage)
        for choice in value.choices or ():
            if choice.index == 0:
                self._choice(choice, deltas)
        return deltas

    def _choice(self, choice: _Choice, deltas: list[Delta]) -> None:
        self._count(choice.usage)
        if choice.delta is not None:
            self._change(choice.delta, deltas)
        if choice.finish_reason in _FAILED:
            if not any(type(delta) is Broke for delta in deltas):
                deltas.append(Broke(f"The answer was not finished ({choice.finish_reason})."))
        elif choice.finish_reason:
            self._reason = _REASONS.get(choice.finish_reason, "end")

    def _count(self, usage: _ChatUsage | None) -> None:
        if usage is not None:
            details = usage.prompt_tokens_details or _Details()
            self._usage = Usage(
                usage.prompt_tokens or 0,
                usage.completion_tokens or 0,
                details.cached_tokens or usage.prompt_cache_hit_tokens or usage.cached_tokens or 0,
                details.cache_write_tokens or 0,
            )

    def _change(self, change: _ChatDelta, deltas: list[Delta]) -> None:
        if thought := change.reasoning_content or change.reasoning:
            deltas.append(ThinkingPiece(thought, wire=NAME))
        if change.reasoning_details:
            _put_details(self._details, change.reasoning_details)
        if isinstance(change.content, str):
            if change.content:
                deltas.append(TextPiece(change.content))
        else:
            for words in change.content or ():
                if words.text:
                    deltas.append(TextPiece(words.text))
                elif words.thinking:
                    deltas.extend(ThinkingPiece(text, wire=NAME) for text in _texts(words.thinking))
        if change.refusal:
            deltas.append(TextPiece(change.refusal))
        for given in change.tool_calls or ():
            self._call(given, deltas)

    def _call(self, given: _ToolCall, deltas: list[Delta]) -> None:
        function = given.function or _Function()
        if given.custom is not None:
            function = _Function(given.custom.name, given.custom.input)
        call = self._find_call(given, function.name or "")
        call.id = call.id or given.id or ""
        call.name = call.name or function.name or ""
        call.is_text = call.is_text or given.custom is not None
        if call.id:
            self._by_id.setdefault(call.id, call)
        arguments = function.arguments
        piece = json_text(arguments) if isinstance(arguments, dict) else arguments or ""
        if piece:
            call.pieces.append(piece)
        if call.at >= 0:
            if piece:
                deltas.append(UsePiece(call.at, piece))
        elif call.id and call.name:
            self._begin_call(call, deltas)

    def _find_call(self, given: _ToolCall, name: str) -> _Call:
        """The call that a piece belongs to. Some servers give no index, and some give all calls the same one."""
        if given.index is not None:
            known = self._by_index.get(given.index)
            if known is None or (name and _is_other(known, given)):
                known = self._by_index[given.index] = self._add_call()
            return known
        if given.id:
            return self._by_id.get(given.id) or self._add_call()
        return self._add_call() if name or not self._all else self._all[-1]

    def _add_call(self) -> _Call:
        call = _Call()
        self._all.append(call)
        return call

    def _begin_call(self, call: _Call, deltas: list[Delta]) -> None:
        if self._last is not None and is_object("".join(self._last.pieces)):
            deltas += self._end_use(self._last.at)
        self._last = call
        begun = self._use(call.name, call.id, is_text=call.is_text)
        call.at = begun.at
        deltas.append(begun)
        deltas.extend(UsePiece(call.at, piece) for piece in call.pieces)

    def _close(self, *, whole: bool) -> list[Delta]:
        deltas: list[Delta] = []
        for call in self._all:
            # Without a name it is no call: pieces that belong to nothing.
            if call.at < 0 and call.name:
                self._begin_call(call, deltas)
        for call in self._all:
            certain = whole and self._reason not in {"length", "refused"}
            deltas += self._end_use(call.at, whole=certain or is_object("".join(call.pieces)))
        if self._details and whole and self._reason not in {"length", "refused"}:
            deltas.append(ThinkingPiece("", sealed=json_text(self._details), wire=NAME))
        # Asked for one tool by name, the API calls it and says "stop"; some servers always do.
        if self._reason == "end" and self._whole:
            self._reason = "tools"
        return deltas + super()._close(whole=whole)


def _is_other(known: _Call, given: _ToolCall) -> bool:
    """Is it another call than the one that has its index?"""
    if given.id:
        return known.id not in {"", given.id}
    # Neither has an id: what is whole does not go on.
    return not known.id and bool(known.name) and is_object("".join(known.pieces))


def _put_details(details: list[dict[str, Any]], pieces: list[Any]) -> None:
    """Pieces of one thought come one after the other; its words go on, and what else is said of it holds."""
    for piece in pieces:
        if not isinstance(piece, dict):
            continue
        last = details[-1] if details else {}
        if "data" in piece or not last or any(last.get(key) != piece.get(key) for key in ("type", "index")):
            details.append(dict(piece))
            continue
        for key, value in piece.items():
            if key in {"text", "summary"} and isinstance(value, str):
                last[key] = (last.get(key) or "") + value
            elif value is not None:
                last[key] = value


def _texts(thinking: Any) -> list[str]:
    if isinstance(thinking, str):
        return [thinking]
    parts = thinking if isinstance(thinking, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in texts if isinstance(text, str) and text]


_FINISHES: dict[Reason, str] = {
    "end": "stop",
    "tools": "tool_calls",
    "length": "length",
    "stopped": "stop",
    "refused": "content_filter",
}
_PIECE_END = b'}}]},"finish_reason":null}]}'


class ChatWriter(StreamWriter):
    """Writes the chunks of a Chat stream, usage in a chunk of its own before the end.

    The API has no place for the signature of a thinking, nor for thinking that is sealed.
    """

    def __init__(self, *, created: int | None = None, free_text: bool = False) -> None:
        """With `free_text` a call of a free-text tool is one of a custom tool, for clients that have such tools."""
        super().__init__(together=True, free_text=free_text)
        self._created = int(time.time()) if created is None else created
        self._head = b""
        self._pieces: dict[int, bytes] = {}
        """For each call, what stands before a piece of its input."""

    def write(self, delta: Delta) -> list[ServerSentEvent]:
        # Nearly all deltas of a long answer are pieces of one call.
        if type(delta) is UsePiece and delta.at == self._order.flowing and delta.text:
            return [ServerSentEvent("", self._pieces[delta.at] + encode(delta.text) + _PIECE_END)]
        return super().write(delta)

    def _begin(self, delta: AnswerStart, out: list[ServerSentEvent]) -> None:
        self._head = b'{"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,' % (
            encode(delta.id or make_id("chatcmpl-")),
            self._created,
            encode(delta.model),
        )
        self._change({"role": "assistant", "content": ""}, out)

    def _text(self, delta: TextPiece, out: list[ServerSentEvent]) -> None:
        self._change({"content": delta.text}, out)

    def _thinking(self, delta: ThinkingPiece, out: list[ServerSentEvent]) -> None:
        if delta.text:
            self._change({"reasoning_content": delta.text}, out)

    def _use(self, delta: UseBegun, out: list[ServerSentEvent]) -> None:
        kind, field = ("custom", "input") if delta.is_text else ("function", "arguments")
        place = b'"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"%b":{"%b":'
        self._pieces[delta.at] = self._head + place % (delta.at, kind.encode(), field.encode())
        call = {"index": delta.at, "id": delta.id, "type": kind, kind: {"name": delta.name, field: ""}}
        self._change({"tool_calls": [call]}, out)

    def _piece(self, delta: UsePiece, out: list[ServerSentEvent]) -> None:
        out.append(ServerSentEvent("", self._pieces[delta.at] + encode(delta.text) + _PIECE_END))

    def _end_use(self, delta: UseEnded, out: list[ServerSentEvent]) -> None:
        pass

    def _fail(self, delta: Broke, out: list[ServerSentEvent]) -> None:
        kind = failure_of(delta.kind).openai
        error = {"message": delta.message, "type": kind, "param": None, "code": delta.kind or kind}
        out.append(ServerSentEvent("", encode({"error": error})))

    def _end(self, delta: AnswerEnd, out: list[ServerSentEvent]) -> None:
        self._change({}, out, _FINISHES[delta.reason])
        usage = delta.usage
        counted = {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        }
        out.append(ServerSentEvent("", self._head + b'"choices":[],"usage":%b}' % encode(counted)))
        out.append(DONE)

    def _change(self, change: dict[str, Any], out: list[ServerSentEvent], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": change, "finish_reason": finish}
        out.append(ServerSentEvent("", self._head + b'"choices":[%b]}' % encode(choice)))
