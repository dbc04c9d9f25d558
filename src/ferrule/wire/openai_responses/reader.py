"""Events of a Responses stream into deltas."""

from typing import Any

import msgspec

from ferrule.wire.delta import Begun, Block, Broke, Delta, TextPiece, ThinkingPiece, UsePiece
from ferrule.wire.openai_responses.turns import NAME
from ferrule.wire.stream import StreamReader, json_text
from ferrule.wire.turn import Usage


class _Words(msgspec.Struct):
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
    content: list[_Words] | str | None = None
    summary: list[_Words] | None = None
    encrypted_content: str | None = None
    status: str | None = None


class _InputDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None


class _Error(msgspec.Struct):
    message: str | None = None
    code: str | int | None = None
    type: str | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Answer(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    output: list[dict[str, Any]] | None = None
    usage: _Usage | None = None
    error: _Error | str | None = None
    incomplete_details: _Incomplete | None = None


class _Event(msgspec.Struct):
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
    response: _Answer | None = None
    error: _Error | str | None = None
    message: str | None = None
    code: str | int | None = None


_DECODER = msgspec.json.Decoder(_Event, strict=False)

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

    def _take(self, value: _Event) -> list[Delta]:
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
            item = self._known(value.item)
            if item.type in _CALL_ITEMS:
                self._begin_call(item, place, deltas)
        elif value.type == "response.output_item.done" and value.item is not None:
            self._item(value.item, place, deltas)
        elif kind == "response" and value.response is not None:
            self._answer(value.response, step, deltas)
        elif value.type == "error":
            self._break(value.error or _Error(value.message, value.code), deltas)
        return deltas

    def _place(self, value: _Event) -> int | str:
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

    def _known(self, given: dict[str, Any]) -> _Item:
        """The fields of an item that mean something here; none where they are not of their kind."""
        try:
            return msgspec.convert(given, _Item, strict=False)
        except msgspec.ValidationError:
            self.skipped += 1
            return _Item()

    def _item(self, given: dict[str, Any], place: int | str, deltas: list[Delta]) -> None:
        item = self._known(given)
        parts = item.content if isinstance(item.content, list) else ()
        if item.type in _CALL_ITEMS:
            at = self._call_ids.get(item.call_id or item.id or "")
            if at is None:
                at = self._begin_call(item, place, deltas)
            self._input(at, None, item.arguments if item.input is None else item.input, deltas)
            deltas += self._used(at, whole=item.status != "incomplete")
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
            deltas.append(Block(NAME, given))

    def _answer(self, answer: _Answer, step: str, deltas: list[Delta]) -> None:
        if not self._begun:
            deltas.append(Begun(answer.id or "", answer.model or ""))
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
            self._break(answer.error or _Error(), deltas)
        deltas += self._close(whole=step == "completed")

    def _break(self, error: _Error | str, deltas: list[Delta]) -> None:
        self._broken = True
        given = _Error(error) if isinstance(error, str) else error
        deltas.append(Broke(given.message or "The API reported an error.", str(given.code or given.type or "")))


def _text(value: Any) -> str:
    """Input is text; a server that sends an object instead means its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json_text(value)
