"""Convert OpenAI Responses streams to deltas and deltas to Responses streams."""

import time
from typing import Any

import msgspec

from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    ForeignBlock,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Usage,
    UseBegun,
    UseEnded,
    UsePiece,
    pack_thinking,
)
from ferrule.wire.openai_responses import NAME, usage_out
from ferrule.wire.stream import ServerSentEvent, StreamReader, StreamWriter, encode, failure_of, json_text, make_id


class _ResponsesPart(msgspec.Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Any = None
    input: Any = None
    content: list[_ResponsesPart] | str | None = None
    summary: list[_ResponsesPart] | None = None
    encrypted_content: str | None = None
    status: str | None = None


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _ResponsesUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None


class _ResponsesError(msgspec.Struct):
    message: str | None = None
    code: str | int | None = None
    type: str | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _ResponseObject(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    output: list[dict[str, Any]] | None = None
    usage: _ResponsesUsage | None = None
    error: _ResponsesError | str | None = None
    incomplete_details: _Incomplete | None = None


class _ResponsesEvent(msgspec.Struct):
    type: str = ""
    delta: Any = None
    output_index: int | None = None
    content_index: int = 0
    summary_index: int = 0
    item_id: str | None = None
    item: dict[str, Any] | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: Any = None
    input: Any = None
    response: _ResponseObject | None = None
    error: _ResponsesError | str | None = None
    message: str | None = None
    code: str | int | None = None


_DECODER = msgspec.json.Decoder(_ResponsesEvent, strict=False)

_Key = tuple[str, int | str, int]
"""What is said, where in the output, and as which part of that."""

_WORDS = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_text": "reasoning",
    "response.reasoning_summary_text": "summary",
}
_CALLS = {"response.function_call_arguments", "response.custom_tool_call_input"}
_CALL_ITEMS = {"function_call", "custom_tool_call"}


class ResponsesReader(StreamReader):
    """Reads the events of a Responses stream.

    The API says most things up to four times: in pieces, then whole, then in the item, then in the answer. Whatever
    comes first is taken, and of the rest only what has not been said yet. A refusal is text. What the API's own tools
    did on its side comes as whole items.
    """

    def __init__(self) -> None:
        super().__init__(_DECODER)
        self._said: dict[_Key, int] = {}
        """How many characters of each thing were given out already."""
        self._places: dict[str, int | str] = {}
        """The id of an item → where it is."""
        self._uses: dict[int | str, int] = {}
        """Where in the output, or under which item id → the number of the call."""
        self._call_ids: dict[str, int] = {}
        self._spoke = False
        self._thought = False
        self._broken = False

    def _take(self, value: _ResponsesEvent) -> list[Delta]:
        deltas: list[Delta] = []
        kind, _, step = value.type.rpartition(".")
        place = self._place(value)
        if kind in _WORDS:
            index = value.summary_index if _WORDS[kind] == "summary" else value.content_index
            whole = value.refusal if value.text is None else value.text
            self._words((_WORDS[kind], place, index), value.delta, whole, deltas)
        elif kind in _CALLS:
            at = self._uses.get(place, self._uses.get(value.item_id or "", self._calls - 1))
            if at >= 0:
                self._input(at, value.delta, value.arguments if value.input is None else value.input, deltas)
        elif value.type == "response.output_item.added" and value.item is not None:
            item = self._parse_item(value.item)
            if item.type in _CALL_ITEMS:
                self._begin_call(item, place, deltas)
        elif value.type == "response.output_item.done" and value.item is not None:
            self._item(value.item, place, deltas)
        elif kind == "response" and value.response is not None:
            self._answer(value.response, step, deltas)
        elif value.type == "error":
            self._break(value.error or _ResponsesError(value.message, value.code), deltas)
        return deltas

    def _place(self, value: _ResponsesEvent) -> int | str:
        """Where in the output something is: by its number there, or by its id where a server gives no numbers.

        Ids alone would not do: some servers give one thing another id in each event.
        """
        known = value.item_id or str((value.item or {}).get("id") or "")
        if value.output_index is None:
            return self._places.setdefault(known, known) if known else 0
        if not known:
            return value.output_index
        place = self._places.setdefault(known, value.output_index)
        return place if isinstance(place, str) else value.output_index

    def _unsaid(self, key: _Key, piece: Any, whole: Any) -> str:
        """The piece, or what the pieces until now lack of the whole."""
        said = self._said.get(key, 0)
        new = _text(piece) or _text(whole)[said:]
        self._said[key] = said + len(new)
        return new

    def _words(self, key: _Key, piece: Any, whole: Any, deltas: list[Delta]) -> None:
        kind, place, index = key
        is_first = not self._said.get(key)
        new = self._unsaid(key, piece, whole)
        if not new:
            return
        if kind in {"text", "refusal"}:
            self._spoke = True
            deltas.append(TextPiece(new))
            return
        self._thought = True
        # Each part of a summary is a paragraph.
        if is_first and self._said.get((kind, place, index - 1)):
            new = "\n\n" + new
        deltas.append(ThinkingPiece(new, wire=NAME))

    def _begin_call(self, item: _Item, place: int | str, deltas: list[Delta]) -> int:
        begun = self._use(
            item.name or "",
            item.call_id or item.id or "",
            is_text=item.type == "custom_tool_call",
            namespace=item.namespace or "",
        )
        self._uses[place] = begun.at
        if item.id:
            self._uses[item.id] = begun.at
        self._call_ids[begun.id] = begun.at
        deltas.append(begun)
        return begun.at

    def _input(self, at: int, piece: Any, whole: Any, deltas: list[Delta]) -> None:
        if at in self._open and (new := self._unsaid(("input", at, 0), piece, whole)):
            deltas.append(UsePiece(at, new))

    def _parse_item(self, given: dict[str, Any]) -> _Item:
        """The fields of an item that mean something here; none where they are not of their kind."""
        try:
            return msgspec.convert(given, _Item, strict=False)
        except msgspec.ValidationError:
            self.skipped += 1
            return _Item()

    def _item(self, given: dict[str, Any], place: int | str, deltas: list[Delta]) -> None:
        item = self._parse_item(given)
        parts = item.content if isinstance(item.content, list) else ()
        if item.type in _CALL_ITEMS:
            at = self._call_ids.get(item.call_id or item.id or "")
            if at is None:
                at = self._begin_call(item, place, deltas)
            self._input(at, None, item.arguments if item.input is None else item.input, deltas)
            deltas += self._end_use(at, whole=item.status != "incomplete")
        elif item.type == "message":
            for index, part in enumerate(parts):
                kind = "refusal" if part.type == "refusal" else "text"
                self._words((kind, place, index), None, part.refusal if part.text is None else part.text, deltas)
        elif item.type == "reasoning":
            for kind, words in (("summary", item.summary or ()), ("reasoning", parts)):
                for index, part in enumerate(words):
                    self._words((kind, place, index), None, part.text, deltas)
            if (item.encrypted_content or item.id) and ("sealed", place, 0) not in self._said:
                self._said["sealed", place, 0] = 1
                self._thought = True
                # The API wants its own id back with the seal.
                deltas.append(ThinkingPiece("", item.id or "", item.encrypted_content or "", NAME))
        elif item.type and ("block", place, 0) not in self._said:
            self._said["block", place, 0] = 1
            deltas.append(ForeignBlock(NAME, given))

    def _answer(self, answer: _ResponseObject, step: str, deltas: list[Delta]) -> None:
        if not self._begun:
            deltas.append(AnswerStart(answer.id or "", answer.model or ""))
        if answer.usage is not None:
            details = answer.usage.input_tokens_details or _InputDetails()
            self._usage = Usage(
                answer.usage.input_tokens or 0,
                answer.usage.output_tokens or 0,
                details.cached_tokens or 0,
                details.cache_write_tokens or 0,
            )
        if step not in {"completed", "incomplete", "failed", "cancelled"}:
            return
        known = {"message"} if self._spoke else set()
        known |= {"reasoning"} if self._thought else set()
        for place, item in enumerate(answer.output or ()):
            if item.get("type") not in known:
                self._item(item, place, deltas)
        if step == "incomplete":
            why = answer.incomplete_details or _Incomplete()
            self._reason = "refused" if why.reason == "content_filter" else "length"
        elif step == "failed" and not self._broken:
            self._break(answer.error or _ResponsesError(), deltas)
        deltas += self._close(whole=step == "completed")

    def _break(self, error: _ResponsesError | str, deltas: list[Delta]) -> None:
        self._broken = True
        given = _ResponsesError(error) if isinstance(error, str) else error
        deltas.append(Broke(given.message or "The API reported an error.", str(given.code or given.type or "")))


def _text(value: Any) -> str:
    """Input is text; a server that sends an object instead means its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)


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

    def _begin(self, delta: AnswerStart, out: list[ServerSentEvent]) -> None:
        self._id, self._model = delta.id or make_id("resp_"), delta.model
        self._say("response.created", {"response": self._answer("in_progress")}, out)
        self._say("response.in_progress", {"response": self._answer("in_progress")}, out)

    def _text(self, delta: TextPiece, out: list[ServerSentEvent]) -> None:
        if self._item.get("type") != "message":
            item = {"type": "message", "id": self._item_id("msg"), "role": "assistant", "content": []}
            self._start(item, "response.output_text.delta", {"content_index": 0, "logprobs": []}, out)
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            self._say_of_item("response.content_part.added", {"content_index": 0, "part": part}, out)
        self._piece_of(delta.text, out)

    def _thinking(self, delta: ThinkingPiece, out: list[ServerSentEvent]) -> None:
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

    def _use(self, delta: UseBegun, out: list[ServerSentEvent]) -> None:
        bundle = {"namespace": delta.namespace} if delta.namespace else {}
        if delta.is_text:
            item = {"type": "custom_tool_call", "id": f"ctc_{delta.id}", "call_id": delta.id, "name": delta.name}
            self._start({**item, **bundle, "input": ""}, "response.custom_tool_call_input.delta", {}, out)
        else:
            item = {"type": "function_call", "id": f"fc_{delta.id}", "call_id": delta.id, "name": delta.name}
            self._start({**item, **bundle, "arguments": ""}, "response.function_call_arguments.delta", {}, out)

    def _piece(self, delta: UsePiece, out: list[ServerSentEvent]) -> None:
        self._piece_of(delta.text, out)

    def _end_use(self, delta: UseEnded, out: list[ServerSentEvent]) -> None:
        self._stop(out, status="incomplete" if delta.cut else "completed")

    def _block(self, delta: ForeignBlock, out: list[ServerSentEvent]) -> None:
        if delta.wire == NAME:
            self._stop(out)
            item = {"id": self._item_id("item"), **delta.block}
            place = {"output_index": len(self._output), "item": item}
            self._say("response.output_item.added", place, out)
            self._say("response.output_item.done", place, out)
            self._output.append(item)

    def _fail(self, delta: Broke, out: list[ServerSentEvent]) -> None:
        code = failure_of(delta.kind).openai
        error = {"type": code, "code": delta.kind or code, "message": delta.message, "param": None}
        # The API's own description has these fields beside each other, its packages look for an `error`.
        self._say("error", {**error, "type": "error", "error": error}, out)
        answer = self._answer("failed")
        answer["error"] = {"code": code, "message": delta.message}
        self._say("response.failed", {"response": answer}, out)

    def _end(self, delta: AnswerEnd, out: list[ServerSentEvent]) -> None:
        self._stop(out)
        status = "incomplete" if delta.reason in _INCOMPLETE else "completed"
        answer = self._answer(status, delta.usage)
        if status == "incomplete":
            answer["incomplete_details"] = {"reason": _INCOMPLETE[delta.reason]}
        self._say(f"response.{status}", {"response": answer}, out)

    def _start(self, item: dict[str, Any], delta: str, more: dict[str, Any], out: list[ServerSentEvent]) -> None:
        self._stop(out)
        self._item, self._pieces = {**item, "status": "in_progress"}, []
        self._delta = delta
        place = {"type": delta, "item_id": item["id"], "output_index": len(self._output), **more}
        self._head = encode(place)[:-1]
        self._say("response.output_item.added", {"output_index": len(self._output), "item": self._item}, out)

    def _piece_of(self, text: str, out: list[ServerSentEvent]) -> None:
        self._pieces.append(text)
        data = b'%b,"sequence_number":%d,"delta":%b}' % (self._head, self._sequence, encode(text))
        self._sequence += 1
        out.append(ServerSentEvent(self._delta, data))

    def _stop(self, out: list[ServerSentEvent], *, status: str = "completed") -> None:
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
        sealed = thought.sealed if thought.wire in {"", NAME} else pack_thinking(thought)
        if sealed:
            item["encrypted_content"] = sealed

    def _say(self, kind: str, value: dict[str, Any], out: list[ServerSentEvent]) -> None:
        out.append(ServerSentEvent(kind, encode({"type": kind, **value, "sequence_number": self._sequence})))
        self._sequence += 1

    def _say_of_item(self, kind: str, value: dict[str, Any], out: list[ServerSentEvent]) -> None:
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
