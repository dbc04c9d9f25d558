"""Deltas into the chunks of a Chat stream."""

import time
from typing import Any

from ferrule.wire.delta import Begun, Broke, Delta, Ended, TextPiece, ThinkingPiece, UseBegun, UseEnded, UsePiece
from ferrule.wire.failure import failure_of
from ferrule.wire.sse import DONE, Event
from ferrule.wire.stream import StreamWriter, encode, made_id
from ferrule.wire.turn import Reason

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

    def write(self, delta: Delta) -> list[Event]:
        # Nearly all deltas of a long answer are pieces of one call.
        if type(delta) is UsePiece and delta.at == self._order.flowing and delta.text:
            return [Event("", self._pieces[delta.at] + encode(delta.text) + _PIECE_END)]
        return super().write(delta)

    def _begin(self, delta: Begun, out: list[Event]) -> None:
        self._head = b'{"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,' % (
            encode(delta.id or made_id("chatcmpl-")),
            self._created,
            encode(delta.model),
        )
        self._change({"role": "assistant", "content": ""}, out)

    def _text(self, delta: TextPiece, out: list[Event]) -> None:
        self._change({"content": delta.text}, out)

    def _thinking(self, delta: ThinkingPiece, out: list[Event]) -> None:
        if delta.text:
            self._change({"reasoning_content": delta.text}, out)

    def _use(self, delta: UseBegun, out: list[Event]) -> None:
        kind, field = ("custom", "input") if delta.is_text else ("function", "arguments")
        place = b'"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"%b":{"%b":'
        self._pieces[delta.at] = self._head + place % (delta.at, kind.encode(), field.encode())
        call = {"index": delta.at, "id": delta.id, "type": kind, kind: {"name": delta.name, field: ""}}
        self._change({"tool_calls": [call]}, out)

    def _piece(self, delta: UsePiece, out: list[Event]) -> None:
        out.append(Event("", self._pieces[delta.at] + encode(delta.text) + _PIECE_END))

    def _used(self, delta: UseEnded, out: list[Event]) -> None:
        pass

    def _broke(self, delta: Broke, out: list[Event]) -> None:
        kind = failure_of(delta.kind).openai
        error = {"message": delta.message, "type": kind, "param": None, "code": delta.kind or kind}
        out.append(Event("", encode({"error": error})))

    def _end(self, delta: Ended, out: list[Event]) -> None:
        self._change({}, out, _FINISHES[delta.reason])
        usage = delta.usage
        counted = {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        }
        out.append(Event("", self._head + b'"choices":[],"usage":%b}' % encode(counted)))
        out.append(DONE)

    def _change(self, change: dict[str, Any], out: list[Event], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": change, "finish_reason": finish}
        out.append(Event("", self._head + b'"choices":[%b]}' % encode(choice)))
