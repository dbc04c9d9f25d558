"""Deltas into the events of a Messages stream."""

from typing import Any

from ferrule.wire.anthropic.turns import NAME
from ferrule.wire.delta import Begun, Block, Broke, Ended, TextPiece, ThinkingPiece, UseBegun, UseEnded, UsePiece
from ferrule.wire.failure import failure_of
from ferrule.wire.sse import Event, event
from ferrule.wire.stream import StreamWriter, encode, made_id
from ferrule.wire.thinking import carried
from ferrule.wire.turn import Reason, Thinking, Usage

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

    def _begin(self, delta: Begun, out: list[Event]) -> None:
        message: dict[str, Any] = {
            "id": delta.id or made_id("msg_"),
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

    def _text(self, delta: TextPiece, out: list[Event]) -> None:
        if self._kind != "text":
            self._start("text", {"text": ""}, "text_delta", "text", out)
        self._change(delta.text, out)

    def _thinking(self, delta: ThinkingPiece, out: list[Event]) -> None:
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

    def _sign(self, signature: str, sealed: str, out: list[Event]) -> None:
        if self._foreign:
            signature, self._foreign = carried(Thinking("", signature, sealed, self._foreign)), ""
        value = {"type": "signature_delta", "signature": signature}
        out.append(event("content_block_delta", {"type": "content_block_delta", "index": self._index, "delta": value}))

    def _use(self, delta: UseBegun, out: list[Event]) -> None:
        block = {"id": delta.id, "name": delta.name, "input": {}}
        self._start("tool_use", block, "input_json_delta", "partial_json", out)

    def _piece(self, delta: UsePiece, out: list[Event]) -> None:
        self._change(delta.text, out)

    def _used(self, _: UseEnded, out: list[Event]) -> None:
        self._stop(out)

    def _block(self, delta: Block, out: list[Event]) -> None:
        if delta.wire == NAME:
            self._stop(out)
            self._index += 1
            place = {"type": "content_block_start", "index": self._index}
            out.append(event("content_block_start", {**place, "content_block": delta.block}))
            out.append(event("content_block_stop", {"type": "content_block_stop", "index": self._index}))

    def _broke(self, delta: Broke, out: list[Event]) -> None:
        error = {"type": failure_of(delta.kind).anthropic, "message": delta.message}
        out.append(event("error", {"type": "error", "error": error}))

    def _end(self, delta: Ended, out: list[Event]) -> None:
        self._stop(out)
        value = {
            "type": "message_delta",
            "delta": {"stop_reason": _STOPS[delta.reason], "stop_sequence": None},
            "usage": _usage(delta.usage),
        }
        out.append(event("message_delta", value))
        out.append(event("message_stop", {"type": "message_stop"}))

    def _start(self, kind: str, block: dict[str, Any], change: str, field: str, out: list[Event]) -> None:
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

    def _change(self, text: str, out: list[Event]) -> None:
        out.append(Event("content_block_delta", self._head + encode(text) + b"}}"))

    def _stop(self, out: list[Event]) -> None:
        if self._kind:
            if self._foreign:
                self._sign("", "", out)
            out.append(event("content_block_stop", {"type": "content_block_stop", "index": self._index}))
            self._kind = ""
