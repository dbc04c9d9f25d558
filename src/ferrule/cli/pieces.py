"""An answer of a model as the Messages API streams it, piece by piece."""

from typing import Any

from ferrule.wire.content import json_text


class Pieces:
    """One answer as the events in which the Messages API streams it."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._index = -1
        self._kind = ""

    def more(self, kind: str, text: str) -> list[dict[str, Any]]:
        """More of its words, or of its thinking."""
        events = []
        if kind != self._kind:
            events = [*self._begin(), *self._block({"type": kind, kind: ""})]
            self._kind = kind
        return [*events, self._delta({"type": f"{kind}_delta", kind: text})]

    def end(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """The calls, which are told whole, and the end."""
        events = self._begin()
        for block in message["content"]:
            if block["type"] == "tool_use":
                self._kind = "tool_use"
                events += self._block({**block, "input": {}})
                events.append(self._delta({"type": "input_json_delta", "partial_json": json_text(block["input"])}))
        events += self._close()
        stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        return [*events, {"type": "message_delta", "delta": stop, "usage": message["usage"]}, {"type": "message_stop"}]

    def _begin(self) -> list[dict[str, Any]]:
        if self._index >= 0:
            return []
        # How much it takes, and which message it is, nobody knows before its end.
        about = {"id": "", "type": "message", "role": "assistant", "model": self._model, "content": []}
        usage = {"input_tokens": 0, "output_tokens": 0}
        unknown = {"stop_reason": None, "stop_sequence": None, "usage": usage}
        return [{"type": "message_start", "message": {**about, **unknown}}]

    def _block(self, block: dict[str, Any]) -> list[dict[str, Any]]:
        before = self._close()
        self._index += 1
        return [*before, {"type": "content_block_start", "index": self._index, "content_block": block}]

    def _close(self) -> list[dict[str, Any]]:
        return [{"type": "content_block_stop", "index": self._index}] if self._index >= 0 else []

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": self._index, "delta": delta}
