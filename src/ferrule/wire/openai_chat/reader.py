"""Chunks of a Chat stream into deltas."""

from typing import Any

import msgspec

from ferrule.wire.delta import Begun, Broke, Delta, TextPiece, ThinkingPiece, UsePiece
from ferrule.wire.openai_chat.turns import NAME
from ferrule.wire.stream import StreamReader, is_object, json_text
from ferrule.wire.turn import Reason, Usage

_REASONS: dict[str, Reason] = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Words(msgspec.Struct):
    """A piece of content, where a server sends a list of them."""

    type: str = ""
    text: str | None = None
    thinking: Any = None


class _Change(msgspec.Struct):
    content: str | list[_Words] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Change | None = None
    finish_reason: str | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None


class _Error(msgspec.Struct):
    message: str | None = None
    type: str | None = None
    code: str | int | None = None


class _Chunk(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: _Error | str | None = None


_DECODER = msgspec.json.Decoder(_Chunk, strict=False)


class _Call:
    """A call of which not everything may be known yet."""

    def __init__(self) -> None:
        self.at = -1
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        """All of the input so far: this API does not say where a call ends, only the input itself does."""


class ChatReader(StreamReader):
    """Reads the chunks of a Chat stream; of several choices only the first.

    A call begins when its id and its name are known; what came of its input before that follows at once. As the API
    does not say where a call ends, a call whose input is a whole JSON object ends when the next one begins, and
    every other one with the answer. A refusal is text, and `reasoning_content` is thinking.
    """

    def __init__(self) -> None:
        super().__init__(_DECODER)
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._last: _Call | None = None
        """The one that began last."""
        self._all: list[_Call] = []
        """In the order in which they were first heard of."""

    def _take(self, value: _Chunk) -> list[Delta]:
        deltas: list[Delta] = []
        if not self._begun and (value.id or value.choices):
            deltas.append(Begun(value.id or "", value.model or ""))
        if value.error:
            error = _Error(value.error) if isinstance(value.error, str) else value.error
            kind = error.type or str(error.code or "")
            deltas.append(Broke(error.message or "The API reported an error.", kind))
        if value.usage is not None:
            details = value.usage.prompt_tokens_details or _Details()
            self._usage = Usage(
                value.usage.prompt_tokens or 0,
                value.usage.completion_tokens or 0,
                details.cached_tokens or 0,
                details.cache_write_tokens or 0,
            )
        for choice in value.choices or ():
            if choice.index == 0:
                if choice.delta is not None:
                    self._change(choice.delta, deltas)
                if choice.finish_reason:
                    self._reason = _REASONS.get(choice.finish_reason, "end")
        return deltas

    def _change(self, change: _Change, deltas: list[Delta]) -> None:
        if thought := change.reasoning_content or change.reasoning:
            deltas.append(ThinkingPiece(thought, wire=NAME))
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
        call = self._meant(given, function.name or "")
        call.id = call.id or given.id or ""
        call.name = call.name or function.name or ""
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

    def _meant(self, given: _ToolCall, name: str) -> _Call:
        """The call that a piece belongs to. Some servers give no index, and some give all calls the same one."""
        if given.index is not None:
            known = self._by_index.get(given.index)
            is_other = known is not None and name and given.id and known.id not in {"", given.id}
            if known is None or is_other:
                known = self._by_index[given.index] = self._heard_of()
            return known
        if given.id:
            return self._by_id.get(given.id) or self._heard_of()
        return self._heard_of() if name or not self._all else self._all[-1]

    def _heard_of(self) -> _Call:
        call = _Call()
        self._all.append(call)
        return call

    def _begin_call(self, call: _Call, deltas: list[Delta]) -> None:
        if self._last is not None and is_object("".join(self._last.pieces)):
            deltas += self._used(self._last.at)
        self._last = call
        begun = self._use(call.name, call.id)
        call.at = begun.at
        deltas.append(begun)
        deltas.extend(UsePiece(call.at, piece) for piece in call.pieces)

    def _close(self, *, whole: bool) -> list[Delta]:
        deltas: list[Delta] = []
        for call in self._all:
            if call.at < 0:
                self._begin_call(call, deltas)
        for call in self._all:
            certain = whole and self._reason not in {"length", "refused"}
            deltas += self._used(call.at, whole=certain or is_object("".join(call.pieces)))
        # Asked for one tool by name, the API calls it and says "stop"; some servers always do.
        if self._reason == "end" and self._whole:
            self._reason = "tools"
        return deltas + super()._close(whole=whole)


def _texts(thinking: Any) -> list[str]:
    if isinstance(thinking, str):
        return [thinking]
    parts = thinking if isinstance(thinking, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in texts if isinstance(text, str) and text]
