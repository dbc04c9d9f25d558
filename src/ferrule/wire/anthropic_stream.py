"""Convert Anthropic Messages streams to deltas and deltas to Messages streams."""

from typing import Any

import msgspec

from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    ForeignBlock,
    Reason,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Usage,
    UseBegun,
    UseEnded,
    UsePiece,
    pack_thinking,
)
from ferrule.wire.anthropic import NAME
from ferrule.wire.stream import (
    ServerSentEvent,
    StreamReader,
    StreamWriter,
    encode,
    event,
    failure_of,
    json_text,
    make_id,
)

_REASONS: dict[str, Reason] = {
    "end_turn": "end",
    "pause_turn": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "stop_sequence": "stopped",
    "refusal": "refused",
}


_KNOWN = frozenset(("", "text", "thinking", "redacted_thinking", "tool_use"))


class _AnthropicUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct):
    id: str = ""
    model: str = ""
    usage: _AnthropicUsage | None = None


class _ContentBlock(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


class _AnthropicDelta(msgspec.Struct):
    type: str = ""
    partial_json: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _AnthropicError(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _AnthropicEvent(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _AnthropicDelta | None = None
    content_block: dict[str, Any] | None = None
    message: _Message | None = None
    usage: _AnthropicUsage | None = None
    error: _AnthropicError | None = None


_LEAD = b'{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":'
_string = msgspec.json.Decoder(str).decode
_DECODER = msgspec.json.Decoder(_AnthropicEvent, strict=False)


class AnthropicReader(StreamReader):
    """Reads the events of a Messages stream.

    What the API's own tools did on its side comes as whole blocks.
    """

    def __init__(self) -> None:
        super().__init__(_DECODER)
        self._uses: dict[int, int] = {}
        """Block index → the number of the call that it is."""
        self._inputs: dict[int, str] = {}
        """Input that came whole with the start of its block, in case that no piece of it follows."""
        self._others: dict[int, dict[str, Any]] = {}
        """Block index → a block that only this API knows; its input is in `_inputs`."""
        self._counted = _AnthropicUsage()
        self._lead, self._at = b"{", -1
        """How an event begins that brings more input for the call that began last, and the number of that call."""

    def read(self, event: ServerSentEvent) -> list[Delta]:
        data = event.data
        # Nearly all events of a long answer are such pieces. What does not look exactly like one takes the long way.
        if data.startswith(self._lead) and data.endswith(b"}}") and self._at in self._open:
            try:
                text = _string(data[len(self._lead) : -2])
            except (msgspec.DecodeError, UnicodeDecodeError):
                return super().read(event)
            if text and not self._inputs:
                return [UsePiece(self._at, text)]
        return super().read(event)

    def _take(self, value: _AnthropicEvent) -> list[Delta]:
        change = value.delta
        match value.type:
            case "content_block_delta" if change is not None:
                return self._change(value.index, change)
            case "content_block_start" if value.content_block is not None:
                try:
                    block = msgspec.convert(value.content_block, _ContentBlock, strict=False)
                except msgspec.ValidationError:
                    self.skipped += 1
                    return []
                return self._block(value.index, block, value.content_block)
            case "content_block_stop":
                return self._stop(value.index)
            case "message_start" if value.message is not None:
                self._count(value.message.usage)
                return [] if self._begun else [AnswerStart(value.message.id, value.message.model, self._usage)]
            case "message_delta":
                if change is not None and change.stop_reason:
                    self._reason = _REASONS.get(change.stop_reason, "end")
                self._count(value.usage)
            case "message_stop":
                return self._close(whole=True)
            case "error":
                error = value.error or _AnthropicError()
                return [Broke(error.message or "The API reported an error.", error.type or "")]
        return []

    def _change(self, index: int, change: _AnthropicDelta) -> list[Delta]:
        if index in self._others:
            self._inputs[index] = self._inputs.get(index, "") + (change.partial_json or "")
            return []
        if change.type == "input_json_delta":
            at = self._uses.get(index)
            if at is None or not change.partial_json:
                return []
            if self._inputs:
                self._inputs.pop(index, None)
            return [UsePiece(at, change.partial_json)]
        if change.type == "text_delta" and change.text:
            return [TextPiece(change.text)]
        if change.type == "thinking_delta" and change.thinking:
            return [ThinkingPiece(change.thinking, wire=NAME)]
        if change.type == "signature_delta" and change.signature:
            return [ThinkingPiece("", signature=change.signature, wire=NAME)]
        return []

    def _block(self, index: int, block: _ContentBlock, whole: dict[str, Any]) -> list[Delta]:
        self._uses.pop(index, None)
        self._others.pop(index, None)
        self._lead, self._at = b"{", -1
        if block.type == "tool_use":
            begun = self._use(block.name or "", block.id or "")
            self._uses[index] = self._at = begun.at
            self._lead = _LEAD % index
            if block.input:
                self._inputs[index] = block.input if isinstance(block.input, str) else json_text(block.input)
            return [begun]
        if block.type == "text" and block.text:
            return [TextPiece(block.text)]
        if block.type == "thinking" and (block.thinking or block.signature):
            return [ThinkingPiece(block.thinking or "", signature=block.signature or "", wire=NAME)]
        if block.type == "redacted_thinking" and block.data:
            return [ThinkingPiece("", sealed=block.data, wire=NAME)]
        if block.type not in _KNOWN:
            self._others[index] = whole
        return []

    def _stop(self, index: int) -> list[Delta]:
        if (other := self._others.pop(index, None)) is not None:
            return [ForeignBlock(NAME, _with_input(other, self._inputs.pop(index, "")))]
        at = self._uses.pop(index, None)
        if at is None:
            return []
        whole = self._inputs.pop(index, None)
        return [*([UsePiece(at, whole)] if whole else ()), *self._end_use(at)]

    def _count(self, usage: _AnthropicUsage | None) -> None:
        """Later counts replace earlier ones; what is not counted again stays."""
        if usage is None:
            return
        for name in _AnthropicUsage.__struct_fields__:
            if (value := getattr(usage, name)) is not None:
                setattr(self._counted, name, value)
        counted = self._counted
        read, written = counted.cache_read_input_tokens or 0, counted.cache_creation_input_tokens or 0
        self._usage = Usage((counted.input_tokens or 0) + read + written, counted.output_tokens or 0, read, written)


def _with_input(block: dict[str, Any], pieces: str) -> dict[str, Any]:
    """A block together with the input that came after its start."""
    try:
        values = msgspec.json.decode(pieces or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        values = {}
    return {**block, "input": values} if values else block


_STOPS: dict[Reason, str] = {
    "end": "end_turn",
    "tools": "tool_use",
    "length": "max_tokens",
    "stopped": "stop_sequence",
    "refused": "refusal",
}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }


class AnthropicWriter(StreamWriter):
    """Writes the events of a Messages stream: one block open at a time, all of the usage at the very end.

    Another API's thinking is signed with what that API wants to have back, packed, so that it comes back with the next
    call.
    """

    def __init__(self) -> None:
        super().__init__()
        self._index = -1
        self._kind = ""
        """What the open block is; empty if none is open."""
        self._head = b""
        self._foreign = ""
        """The wire whose thinking the open block is, if it is another API's."""

    def _begin(self, delta: AnswerStart, out: list[ServerSentEvent]) -> None:
        message: dict[str, Any] = {
            "id": delta.id or make_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": delta.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _usage(delta.usage),
        }
        out.append(event("message_start", {"type": "message_start", "message": message}))
        out.append(event("ping", {"type": "ping"}))

    def _text(self, delta: TextPiece, out: list[ServerSentEvent]) -> None:
        if self._kind != "text":
            self._start("text", {"text": ""}, "text_delta", "text", out)
        self._change(delta.text, out)

    def _thinking(self, delta: ThinkingPiece, out: list[ServerSentEvent]) -> None:
        foreign = "" if delta.wire == NAME else delta.wire
        sealed = delta.sealed and not foreign
        if delta.text or delta.signature or foreign:
            if self._kind != "thinking" or self._foreign != foreign:
                self._start("thinking", {"thinking": "", "signature": ""}, "thinking_delta", "thinking", out)
                self._foreign = foreign
            if delta.text:
                self._change(delta.text, out)
        if delta.signature or (delta.sealed and foreign):
            self._sign(delta.signature, delta.sealed, out)
            # The signature holds for what was thought until here.
            self._stop(out)
        if sealed:
            self._start("redacted_thinking", {"data": delta.sealed}, "", "", out)
            self._stop(out)

    def _sign(self, signature: str, sealed: str, out: list[ServerSentEvent]) -> None:
        if self._foreign:
            signature, self._foreign = pack_thinking(Thinking("", signature, sealed, self._foreign)), ""
        value = {"type": "signature_delta", "signature": signature}
        out.append(event("content_block_delta", {"type": "content_block_delta", "index": self._index, "delta": value}))

    def _use(self, delta: UseBegun, out: list[ServerSentEvent]) -> None:
        block = {"id": delta.id, "name": delta.name, "input": {}}
        self._start("tool_use", block, "input_json_delta", "partial_json", out)

    def _piece(self, delta: UsePiece, out: list[ServerSentEvent]) -> None:
        self._change(delta.text, out)

    def _end_use(self, _: UseEnded, out: list[ServerSentEvent]) -> None:
        self._stop(out)

    def _block(self, delta: ForeignBlock, out: list[ServerSentEvent]) -> None:
        if delta.wire == NAME:
            self._stop(out)
            self._index += 1
            place = {"type": "content_block_start", "index": self._index}
            out.append(event("content_block_start", {**place, "content_block": delta.block}))
            out.append(event("content_block_stop", {"type": "content_block_stop", "index": self._index}))

    def _fail(self, delta: Broke, out: list[ServerSentEvent]) -> None:
        error = {"type": failure_of(delta.kind).anthropic, "message": delta.message}
        out.append(event("error", {"type": "error", "error": error}))

    def _end(self, delta: AnswerEnd, out: list[ServerSentEvent]) -> None:
        self._stop(out)
        value = {
            "type": "message_delta",
            "delta": {"stop_reason": _STOPS[delta.reason], "stop_sequence": None},
            "usage": _usage(delta.usage),
        }
        out.append(event("message_delta", value))
        out.append(event("message_stop", {"type": "message_stop"}))

    def _start(self, kind: str, block: dict[str, Any], change: str, field: str, out: list[ServerSentEvent]) -> None:
        self._stop(out)
        self._index += 1
        self._kind = kind
        value = {"type": "content_block_start", "index": self._index, "content_block": {"type": kind, **block}}
        out.append(event("content_block_start", value))
        self._head = b'{"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":' % (
            self._index,
            change.encode(),
            field.encode(),
        )

    def _change(self, text: str, out: list[ServerSentEvent]) -> None:
        out.append(ServerSentEvent("content_block_delta", self._head + encode(text) + b"}}"))

    def _stop(self, out: list[ServerSentEvent]) -> None:
        if self._kind:
            if self._foreign:
                self._sign("", "", out)
            out.append(event("content_block_stop", {"type": "content_block_stop", "index": self._index}))
            self._kind = ""
