"""Deltas into the events of a Responses stream."""

import time
from typing import Any

from ferrule.wire.delta import Begun, Block, Broke, Ended, TextPiece, ThinkingPiece, UseBegun, UseEnded, UsePiece
from ferrule.wire.failure import failure_of
from ferrule.wire.openai_responses.bodies import usage_out
from ferrule.wire.openai_responses.turns import NAME
from ferrule.wire.sse import Event
from ferrule.wire.stream import StreamWriter, encode, made_id
from ferrule.wire.thinking import carried
from ferrule.wire.turn import Thinking, Usage

_INCOMPLETE = {"length": "max_output_tokens", "refused": "content_filter"}


class ResponsesWriter(StreamWriter):
    """Writes the events of a Responses stream: one item after the other, each said in pieces and then whole.

    Another API's thinking is sealed with what that API wants to have back, so that it comes back with the next call.
    """

    def __init__(self, *, created: int | None = None) -> None:
        super().__init__(free_text=True)
        self._created = int(time.time()) if created is None else created
        self._id = ""
        self._model = ""
        self._sequence = 0
        self._output: list[dict[str, Any]] = []
        self._item: dict[str, Any] = {}
        """The item that is open; empty if none is."""
        self._pieces: list[str] = []
        self._delta = ""
        self._head = b""
        """The name of the events that say a piece of the item, and how they begin."""
        self._thought = Thinking("")
        """What the API that thought wants to have back."""

    def _begin(self, delta: Begun, out: list[Event]) -> None:
        self._id, self._model = delta.id or made_id("resp_"), delta.model
        self._say("response.created", {"response": self._answer("in_progress")}, out)
        self._say("response.in_progress", {"response": self._answer("in_progress")}, out)

    def _text(self, delta: TextPiece, out: list[Event]) -> None:
        if self._item.get("type") != "message":
            item = {"type": "message", "id": self._item_id("msg"), "role": "assistant", "content": []}
            self._start(item, "response.output_text.delta", {"content_index": 0, "logprobs": []}, out)
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            self._say_of_item("response.content_part.added", {"content_index": 0, "part": part}, out)
        self._piece_of(delta.text, out)

    def _thinking(self, delta: ThinkingPiece, out: list[Event]) -> None:
        if self._item.get("type") != "reasoning" or self._thought.wire != delta.wire:
            item: dict[str, Any] = {"type": "reasoning", "id": self._item_id("rs"), "summary": []}
            self._start(item, "response.reasoning_summary_text.delta", {"summary_index": 0}, out)
            self._thought = Thinking("", wire=delta.wire)
        if delta.text:
            if not self._pieces:
                part = {"type": "summary_text", "text": ""}
                self._say_of_item("response.reasoning_summary_part.added", {"summary_index": 0, "part": part}, out)
            self._piece_of(delta.text, out)
        if delta.sealed or delta.signature:
            self._thought = Thinking("", delta.signature, delta.sealed, delta.wire)
            self._stop(out)

    def _use(self, delta: UseBegun, out: list[Event]) -> None:
        bundle = {"namespace": delta.namespace} if delta.namespace else {}
        if delta.is_text:
            item = {"type": "custom_tool_call", "id": f"ctc_{delta.id}", "call_id": delta.id, "name": delta.name}
            self._start({**item, **bundle, "input": ""}, "response.custom_tool_call_input.delta", {}, out)
        else:
            item = {"type": "function_call", "id": f"fc_{delta.id}", "call_id": delta.id, "name": delta.name}
            self._start({**item, **bundle, "arguments": ""}, "response.function_call_arguments.delta", {}, out)

    def _piece(self, delta: UsePiece, out: list[Event]) -> None:
        self._piece_of(delta.text, out)

    def _used(self, delta: UseEnded, out: list[Event]) -> None:
        self._stop(out, status="incomplete" if delta.cut else "completed")

    def _block(self, delta: Block, out: list[Event]) -> None:
        if delta.wire == NAME:
            self._stop(out)
            item = {"id": self._item_id("item"), **delta.block}
            place = {"output_index": len(self._output), "item": item}
            self._say("response.output_item.added", place, out)
            self._say("response.output_item.done", place, out)
            self._output.append(item)

    def _broke(self, delta: Broke, out: list[Event]) -> None:
        code = failure_of(delta.kind).openai
        error = {"type": code, "code": delta.kind or code, "message": delta.message, "param": None}
        # The API's own description has these fields beside each other, its packages look for an `error`.
        self._say("error", {**error, "type": "error", "error": error}, out)
        answer = self._answer("failed")
        answer["error"] = {"code": code, "message": delta.message}
        self._say("response.failed", {"response": answer}, out)

    def _end(self, delta: Ended, out: list[Event]) -> None:
        self._stop(out)
        status = "incomplete" if delta.reason in _INCOMPLETE else "completed"
        answer = self._answer(status, delta.usage)
        if status == "incomplete":
            answer["incomplete_details"] = {"reason": _INCOMPLETE[delta.reason]}
        self._say(f"response.{status}", {"response": answer}, out)

    def _start(self, item: dict[str, Any], delta: str, more: dict[str, Any], out: list[Event]) -> None:
        self._stop(out)
        self._item, self._pieces = {**item, "status": "in_progress"}, []
        self._delta = delta
        place = {"type": delta, "item_id": item["id"], "output_index": len(self._output), **more}
        self._head = encode(place)[:-1]
        self._say("response.output_item.added", {"output_index": len(self._output), "item": self._item}, out)

    def _piece_of(self, text: str, out: list[Event]) -> None:
        self._pieces.append(text)
        data = b'%b,"sequence_number":%d,"delta":%b}' % (self._head, self._sequence, encode(text))
        self._sequence += 1
        out.append(Event(self._delta, data))

    def _stop(self, out: list[Event], *, status: str = "completed") -> None:
        if not self._item:
            return
        item, whole = self._item, "".join(self._pieces)
        if item["type"] == "reasoning":
            self._seal(item)
        match item["type"]:
            case "message":
                part = {"type": "output_text", "text": whole, "annotations": [], "logprobs": []}
                item["content"] = [part]
                self._say_of_item("response.output_text.done", {"content_index": 0, "text": whole, "logprobs": []}, out)
                self._say_of_item("response.content_part.done", {"content_index": 0, "part": part}, out)
            case "reasoning" if whole:
                part = {"type": "summary_text", "text": whole}
                item["summary"] = [part]
                self._say_of_item("response.reasoning_summary_text.done", {"summary_index": 0, "text": whole}, out)
                self._say_of_item("response.reasoning_summary_part.done", {"summary_index": 0, "part": part}, out)
            case "function_call":
                item["arguments"] = whole
                self._say_of_item(
                    "response.function_call_arguments.done", {"name": item["name"], "arguments": whole}, out
                )
            case "custom_tool_call":
                item["input"] = whole
                self._say_of_item("response.custom_tool_call_input.done", {"input": whole}, out)
        item["status"] = status
        self._say("response.output_item.done", {"output_index": len(self._output), "item": item}, out)
        self._output.append(item)
        self._item = {}

    def _seal(self, item: dict[str, Any]) -> None:
        thought = self._thought
        sealed = thought.sealed if thought.wire in {"", NAME} else carried(thought)
        if sealed:
            item["encrypted_content"] = sealed

    def _say(self, kind: str, value: dict[str, Any], out: list[Event]) -> None:
        out.append(Event(kind, encode({"type": kind, **value, "sequence_number": self._sequence})))
        self._sequence += 1

    def _say_of_item(self, kind: str, value: dict[str, Any], out: list[Event]) -> None:
        self._say(kind, {"item_id": self._item["id"], "output_index": len(self._output), **value}, out)

    def _item_id(self, prefix: str) -> str:
        return f"{prefix}_{self._id.removeprefix('resp_')}_{len(self._output) + bool(self._item)}"

    def _answer(self, status: str, usage: Usage | None = None) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": self._model,
            "output": self._output,
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": usage and usage_out(usage),
        }
