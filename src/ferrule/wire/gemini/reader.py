"""Chunks of a Gemini stream into deltas."""

from typing import Any

import msgspec

from ferrule.wire.delta import Begun, Block, Broke, Delta, TextPiece, ThinkingPiece, UsePiece
from ferrule.wire.gemini.turns import NAME
from ferrule.wire.stream import StreamReader
from ferrule.wire.turn import Reason, Usage

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


class _Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    cached_content_token_count: int | None = None


class _Error(msgspec.Struct):
    message: str | None = None
    status: str | None = None
    code: int | str | None = None


class _Feedback(msgspec.Struct, rename="camel"):
    block_reason: str | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _Usage | None = None
    model_version: str | None = None
    response_id: str | None = None
    prompt_feedback: _Feedback | None = None
    error: _Error | None = None


_NOTHING = msgspec.Raw(b"null")
_DECODER = msgspec.json.Decoder(_Chunk, strict=False)


class GeminiReader(StreamReader):
    """Reads the chunks of `streamGenerateContent`; of several candidates only the first.

    Calls come whole. A signature that stands on a call or on text is a thinking of its own before it, with no words.
    Arguments in pieces (`partialArgs`) come only to whoever asks for them; such a call is cut, and the answer broke.
    The API has no last event: the answer ends with the stream.
    """

    def __init__(self) -> None:
        super().__init__(_DECODER)

    def _take(self, value: _Chunk) -> list[Delta]:
        deltas: list[Delta] = []
        if not self._begun and value.error is None:
            deltas.append(Begun(value.response_id or "", value.model_version or ""))
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
            deltas.append(Block(NAME, {"executableCode": part.executable_code}))
        if part.code_execution_result is not None:
            deltas.append(Block(NAME, {"codeExecutionResult": part.code_execution_result}))
        if (call := part.function_call) is not None:
            begun = self._use(call.name or "", call.id or "")
            deltas.append(begun)
            if call.partial_args or call.will_continue:
                deltas += self._used(begun.at, whole=False)
                deltas.append(Broke("The arguments of a call came in pieces (partialArgs).", "partial-arguments"))
                return
            # As it stands: nothing is gained from reading numbers and writing them again.
            deltas.append(UsePiece(begun.at, "{}" if call.args == _NOTHING else bytes(call.args).decode()))
            deltas += self._used(begun.at)

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
