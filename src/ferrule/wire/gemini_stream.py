"""Convert Gemini streams to deltas and deltas to Gemini streams."""

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
    ThinkingPiece,
    Usage,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.gemini import NAME
from ferrule.wire.stream import ServerSentEvent, StreamReader, StreamWriter, encode, failure_of, is_object, make_id

_REASONS: dict[str, Reason] = {"STOP": "end", "MAX_TOKENS": "length", "OTHER": "end", "CONTINUATION": "length"}
"""Every other reason is a refusal, or a call that went wrong."""
_WRONG_CALLS = {
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MALFORMED_RESPONSE",
    "MISSING_THOUGHT_SIGNATURE",
}


class _FunctionCall(msgspec.Struct, rename="camel"):
    id: str | None = None
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"null")
    partial_args: Any = None
    will_continue: bool | None = None


class _Part(msgspec.Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None
    executable_code: dict[str, Any] | None = None
    code_execution_result: dict[str, Any] | None = None


class _Content(msgspec.Struct):
    parts: list[_Part] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    index: int | None = None
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _GeminiUsage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    cached_content_token_count: int | None = None


class _GeminiError(msgspec.Struct):
    message: str | None = None
    status: str | None = None
    code: int | str | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _GeminiChunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _GeminiUsage | None = None
    model_version: str | None = None
    response_id: str | None = None
    prompt_feedback: _Feedback | None = None
    error: _GeminiError | None = None


_NOTHING = msgspec.Raw(b"null")
_DECODER = msgspec.json.Decoder(_GeminiChunk, strict=False)


class GeminiReader(StreamReader):
    """Reads the chunks of `streamGenerateContent`; of several candidates only the first.

    Calls come whole. A signature that stands on a call or on text is a thinking of its own before it, with no words.
    Arguments in pieces (`partialArgs`) come only to whoever asks for them; such a call is cut, and the answer broke.
    The API has no last event: the answer ends with the stream.
    """

    def __init__(self) -> None:
        super().__init__(_DECODER)

    def _take(self, value: _GeminiChunk) -> list[Delta]:
        deltas: list[Delta] = []
        if not self._begun and value.error is None:
            deltas.append(AnswerStart(value.response_id or "", value.model_version or ""))
        if value.error is not None:
            kind = value.error.status or str(value.error.code or "")
            deltas.append(Broke(value.error.message or "The API reported an error.", kind))
        if (usage := value.usage_metadata) is not None:
            self._usage = Usage(
                (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
                (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
                usage.cached_content_token_count or 0,
            )
        if value.prompt_feedback is not None and value.prompt_feedback.block_reason:
            self._reason = "refused"
        for candidate in value.candidates or ():
            if not candidate.index:
                for part in (candidate.content and candidate.content.parts) or ():
                    self._part(part, deltas)
                if candidate.finish_reason:
                    self._finish(candidate.finish_reason, candidate.finish_message or "", deltas)
        return deltas

    def _part(self, part: _Part, deltas: list[Delta]) -> None:
        signature = part.thought_signature or ""
        if part.thought:
            if part.text or signature:
                deltas.append(ThinkingPiece(part.text or "", signature=signature, wire=NAME))
            return
        if signature:
            deltas.append(ThinkingPiece("", signature=signature, wire=NAME))
        if part.text:
            deltas.append(TextPiece(part.text))
        if part.executable_code is not None:
            deltas.append(ForeignBlock(NAME, {"executableCode": part.executable_code}))
        if part.code_execution_result is not None:
            deltas.append(ForeignBlock(NAME, {"codeExecutionResult": part.code_execution_result}))
        if (call := part.function_call) is not None:
            begun = self._use(call.name or "", call.id or "")
            deltas.append(begun)
            if call.partial_args or call.will_continue:
                deltas += self._end_use(begun.at, whole=False)
                deltas.append(Broke("The arguments of a call came in pieces (partialArgs).", "partial-arguments"))
                return
            # As it stands: nothing is gained from reading numbers and writing them again.
            deltas.append(UsePiece(begun.at, "{}" if call.args == _NOTHING else bytes(call.args).decode()))
            deltas += self._end_use(begun.at)

    def _finish(self, reason: str, message: str, deltas: list[Delta]) -> None:
        if reason in _WRONG_CALLS:
            self._reason = "end"
            deltas.append(Broke(message or "The model wrote a call that its API could not read.", reason))
        elif reason != "FINISH_REASON_UNSPECIFIED":
            self._reason = _REASONS.get(reason, "refused")

    def _close(self, *, whole: bool) -> list[Delta]:
        # The API has no reason of its own for an answer that ends in calls.
        if self._reason == "end" and self._whole:
            self._reason = "tools"
        return super()._close(whole=whole)


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

    def _begin(self, delta: AnswerStart, _: list[ServerSentEvent]) -> None:
        self._head = {"modelVersion": delta.model, "responseId": delta.id or make_id("")}

    def _text(self, delta: TextPiece, out: list[ServerSentEvent]) -> None:
        self._part({"text": delta.text}, out)

    def _thinking(self, delta: ThinkingPiece, out: list[ServerSentEvent]) -> None:
        signature = delta.signature if delta.wire in {"", NAME} else ""
        if delta.text:
            signed = {"thoughtSignature": signature} if signature else {}
            self._part({"text": delta.text, "thought": True, **signed}, out)
        elif signature:
            self._sign(out)
            self._signature = signature

    def _use(self, delta: UseBegun, _: list[ServerSentEvent]) -> None:
        self._call, self._pieces = delta, []

    def _piece(self, delta: UsePiece, _: list[ServerSentEvent]) -> None:
        self._pieces.append(delta.text)

    def _end_use(self, delta: UseEnded, out: list[ServerSentEvent]) -> None:
        assert self._call is not None
        if not delta.cut:
            text = "".join(self._pieces)
            args = msgspec.Raw(text.encode()) if is_object(text) else {"input": text}
            self._part({"functionCall": {"id": self._call.id, "name": self._call.name, "args": args}}, out)
        self._call, self._pieces = None, []

    def _block(self, delta: ForeignBlock, out: list[ServerSentEvent]) -> None:
        if delta.wire == NAME:
            self._part(delta.block, out)

    def _fail(self, delta: Broke, out: list[ServerSentEvent]) -> None:
        failure = failure_of(delta.kind)
        error = {"code": failure.status, "message": delta.message, "status": failure.gemini}
        out.append(ServerSentEvent("", encode({"error": error})))

    def _end(self, delta: AnswerEnd, out: list[ServerSentEvent]) -> None:
        self._sign(out)
        candidate = {"content": {"role": "model"}, "finishReason": _FINISHES[delta.reason], "index": 0}
        usage = {
            "promptTokenCount": delta.usage.input,
            "candidatesTokenCount": delta.usage.output,
            "cachedContentTokenCount": delta.usage.cache_read,
            "totalTokenCount": delta.usage.input + delta.usage.output,
        }
        out.append(ServerSentEvent("", encode({"candidates": [candidate], "usageMetadata": usage, **self._head})))

    def _sign(self, out: list[ServerSentEvent]) -> None:
        """A signature that nothing came after stands alone."""
        if self._signature:
            self._part({"text": ""}, out)

    def _part(self, part: dict[str, Any], out: list[ServerSentEvent]) -> None:
        if self._signature:
            part, self._signature = {**part, "thoughtSignature": self._signature}, ""
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
        out.append(ServerSentEvent("", encode({"candidates": [candidate], **self._head})))
