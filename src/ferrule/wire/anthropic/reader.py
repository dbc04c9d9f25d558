"""Events of a Messages stream into deltas."""

from typing import Any

import msgspec

from ferrule.wire.anthropic.turns import NAME
from ferrule.wire.delta import Begun, Block, Broke, Delta, TextPiece, ThinkingPiece, UsePiece
from ferrule.wire.sse import Event
from ferrule.wire.stream import StreamReader, json_text
from ferrule.wire.turn import Reason, Usage

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


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct):
    id: str = ""
    model: str = ""
    usage: _Usage | None = None


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


class _Change(msgspec.Struct):
    type: str = ""
    partial_json: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _Error(msgspec.Struct):
    type: str | None = None
    message: str | None = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _Change | None = None
    content_block: dict[str, Any] | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: _Error | None = None


_LEAD = b'{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":'
_string = msgspec.json.Decoder(str).decode
_DECODER = msgspec.json.Decoder(_Event, strict=False)


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
        self._counted = _Usage()
        self._lead, self._at = b"{", -1
        """How an event begins that brings more input for the call that began last, and the number of that call."""

    def read(self, event: Event) -> list[Delta]:
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

    def _take(self, value: _Event) -> list[Delta]:
        change = value.delta
        match value.type:
            case "content_block_delta" if change is not None:
                return self._change(value.index, change)
            case "content_block_start" if value.content_block is not None:
                try:
                    block = msgspec.convert(value.content_block, _Block, strict=False)
                except msgspec.ValidationError:
                    self.skipped += 1
                    return []
                return self._block(value.index, block, value.content_block)
            case "content_block_stop":
                return self._stop(value.index)
            case "message_start" if value.message is not None:
                self._count(value.message.usage)
                return [] if self._begun else [Begun(value.message.id, value.message.model, self._usage)]
            case "message_delta":
                if change is not None and change.stop_reason:
                    self._reason = _REASONS.get(change.stop_reason, "end")
                self._count(value.usage)
            case "message_stop":
                return self._close(whole=True)
            case "error":
                error = value.error or _Error()
                return [Broke(error.message or "The API reported an error.", error.type or "")]
        return []

    def _change(self, index: int, change: _Change) -> list[Delta]:
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

    def _block(self, index: int, block: _Block, whole: dict[str, Any]) -> list[Delta]:
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
            return [Block(NAME, _with_input(other, self._inputs.pop(index, "")))]
        at = self._uses.pop(index, None)
        if at is None:
            return []
        whole = self._inputs.pop(index, None)
        return [*([UsePiece(at, whole)] if whole else ()), *self._used(at)]

    def _count(self, usage: _Usage | None) -> None:
        """Later counts replace earlier ones; what is not counted again stays."""
        if usage is None:
            return
        for name in _Usage.__struct_fields__:
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
