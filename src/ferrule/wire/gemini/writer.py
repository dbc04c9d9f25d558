"""Deltas into the chunks of a Gemini stream."""

from typing import Any

import msgspec

from ferrule.wire.delta import Begun, Block, Broke, Ended, TextPiece, ThinkingPiece, UseBegun, UseEnded, UsePiece
from ferrule.wire.failure import failure_of
from ferrule.wire.gemini.turns import NAME
from ferrule.wire.sse import Event
from ferrule.wire.stream import StreamWriter, encode, is_object, made_id
from ferrule.wire.turn import Reason

_FINISHES: dict[Reason, str] = {
    "end": "STOP",
    "tools": "STOP",
    "length": "MAX_TOKENS",
    "stopped": "STOP",
    "refused": "SAFETY",
}


class GeminiWriter(StreamWriter):
    """Writes the chunks of `streamGenerateContent`.

    A call is held back until it is whole, and one that was cut is left out. The API has no place for sealed thinking.
    """

    def __init__(self) -> None:
        super().__init__()
        self._head: dict[str, str] = {}
        self._signature = ""
        """One that came without words: it belongs to what comes next."""
        self._call: UseBegun | None = None
        self._pieces: list[str] = []

    def _begin(self, delta: Begun, _: list[Event]) -> None:
        self._head = {"modelVersion": delta.model, "responseId": delta.id or made_id("")}

    def _text(self, delta: TextPiece, out: list[Event]) -> None:
        self._part({"text": delta.text}, out)

    def _thinking(self, delta: ThinkingPiece, out: list[Event]) -> None:
        signature = delta.signature if delta.wire in {"", NAME} else ""
        if delta.text:
            signed = {"thoughtSignature": signature} if signature else {}
            self._part({"text": delta.text, "thought": True, **signed}, out)
        elif signature:
            self._sign(out)
            self._signature = signature

    def _use(self, delta: UseBegun, _: list[Event]) -> None:
        self._call, self._pieces = delta, []

    def _piece(self, delta: UsePiece, _: list[Event]) -> None:
        self._pieces.append(delta.text)

    def _used(self, delta: UseEnded, out: list[Event]) -> None:
        assert self._call is not None
        if not delta.cut:
            text = "".join(self._pieces)
            args = msgspec.Raw(text.encode()) if is_object(text) else {"input": text}
            self._part({"functionCall": {"id": self._call.id, "name": self._call.name, "args": args}}, out)
        self._call, self._pieces = None, []

    def _block(self, delta: Block, out: list[Event]) -> None:
        if delta.wire == NAME:
            self._part(delta.block, out)

    def _broke(self, delta: Broke, out: list[Event]) -> None:
        failure = failure_of(delta.kind)
        error = {"code": failure.status, "message": delta.message, "status": failure.gemini}
        out.append(Event("", encode({"error": error})))

    def _end(self, delta: Ended, out: list[Event]) -> None:
        self._sign(out)
        candidate = {"content": {"role": "model"}, "finishReason": _FINISHES[delta.reason], "index": 0}
        usage = {
            "promptTokenCount": delta.usage.input,
            "candidatesTokenCount": delta.usage.output,
            "cachedContentTokenCount": delta.usage.cache_read,
            "totalTokenCount": delta.usage.input + delta.usage.output,
        }
        out.append(Event("", encode({"candidates": [candidate], "usageMetadata": usage, **self._head})))

    def _sign(self, out: list[Event]) -> None:
        """A signature that nothing came after stands alone."""
        if self._signature:
            self._part({"text": ""}, out)

    def _part(self, part: dict[str, Any], out: list[Event]) -> None:
        if self._signature:
            part, self._signature = {**part, "thoughtSignature": self._signature}, ""
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
        out.append(Event("", encode({"candidates": [candidate], **self._head})))
