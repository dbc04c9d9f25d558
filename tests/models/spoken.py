"""What the four APIs say, byte by byte as they say it: thinking with a signature, words, a call, and usage."""

import json
from typing import Any, NamedTuple

from ferrule.core.content import Text
from ferrule.wire import Part, Thinking, Usage, Use

WORDS = "Größe: 日本 👩‍💻."
SIGNATURE = "+//+yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f4OHi4+Q="
INPUT = {"path": "a/ü.py", "n": 3}


class Spoken(NamedTuple):
    """A whole answer on one wire."""

    api: str
    host: str
    model: str
    stream: bytes
    parts: tuple[Part, ...]
    usage: Usage
    path: str


def events(*values: Any, named: bool = False) -> bytes:
    """Events as a server sends them."""
    out = b""
    for value in values:
        data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        name = f"event: {value['type']}\n" if named else ""
        out += f"{name}data: {data}\n\n".encode()
    return out


def _block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


ANTHROPIC = Spoken(
    "anthropic",
    "anthropic",
    "claude-opus-4-5",
    events(
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-4-5",
                "content": [],
                "stop_reason": None,
                "usage": {
                    "input_tokens": 10,
                    "cache_read_input_tokens": 70,
                    "cache_creation_input_tokens": 20,
                    "output_tokens": 1,
                },
            },
        },
        {"type": "ping"},
        *_block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Hm, ü"},
            {"type": "thinking_delta", "thinking": "ber das."},
            {"type": "signature_delta", "signature": SIGNATURE},
        ),
        *_block(
            1,
            {"type": "text", "text": ""},
            {"type": "text_delta", "text": WORDS[:4]},
            {"type": "text_delta", "text": WORDS[4:]},
        ),
        *_block(
            2,
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"path":"a/ü'},
            {"type": "input_json_delta", "partial_json": '.py","n":3}'},
        ),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 55}},
        {"type": "message_stop"},
        named=True,
    ),
    (Thinking("Hm, über das.", SIGNATURE, wire="anthropic"), Text(WORDS), Use("toolu_1", "Read", INPUT)),
    Usage(100, 55, 70, 20),
    "/v1/messages",
)


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o", "choices": [choice]}


CHAT = Spoken(
    "openai-chat",
    "deepseek",
    "deepseek-reasoner",
    events(
        _chunk({"role": "assistant", "content": ""}),
        _chunk({"reasoning_content": "Hm, ü"}),
        _chunk({"reasoning_content": "ber das."}),
        _chunk({"content": WORDS[:4]}),
        _chunk({"content": WORDS[4:]}),
        _chunk({"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "Read", "arguments": ""}}]}),
        _chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"path":"a/ü'}}]}),
        _chunk({"tool_calls": [{"index": 0, "function": {"arguments": '.py","n":3}'}}]}),
        _chunk({}, "tool_calls"),
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "gpt-4o",
            "choices": [],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 55,
                "total_tokens": 155,
                "prompt_tokens_details": {"cached_tokens": 70},
            },
        },
        "[DONE]",
    ),
    (Thinking("Hm, über das.", wire="openai-chat"), Text(WORDS), Use("call_1", "Read", INPUT)),
    Usage(100, 55, 70),
    "/chat/completions",
)

_REASONING = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm, über das."}]}
_CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "Read", "arguments": json.dumps(INPUT)}
_MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": WORDS, "annotations": []}],
}

RESPONSES = Spoken(
    "openai-responses",
    "openai",
    "gpt-5.2",
    events(
        {"type": "response.created", "response": {"id": "resp_1", "model": "gpt-5.2", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**_REASONING, "summary": []}},
        {
            "type": "response.reasoning_summary_text.delta",
            "item_id": "rs_1",
            "output_index": 0,
            "summary_index": 0,
            "delta": "Hm, über das.",
        },
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {**_REASONING, "encrypted_content": SIGNATURE},
        },
        {"type": "response.output_item.added", "output_index": 1, "item": {**_MESSAGE, "content": []}},
        {
            "type": "response.output_text.delta",
            "item_id": "msg_1",
            "output_index": 1,
            "content_index": 0,
            "delta": WORDS[:4],
        },
        {
            "type": "response.output_text.delta",
            "item_id": "msg_1",
            "output_index": 1,
            "content_index": 0,
            "delta": WORDS[4:],
        },
        {"type": "response.output_item.done", "output_index": 1, "item": _MESSAGE},
        {"type": "response.output_item.added", "output_index": 2, "item": {**_CALL, "arguments": ""}},
        {
            "type": "response.function_call_arguments.delta",
            "item_id": "fc_1",
            "output_index": 2,
            "delta": json.dumps(INPUT),
        },
        {"type": "response.output_item.done", "output_index": 2, "item": _CALL},
        {
            "type": "response.completed",
            "response": {
                "id": "resp_1",
                "model": "gpt-5.2",
                "status": "completed",
                "output": [{**_REASONING, "encrypted_content": SIGNATURE}, _MESSAGE, _CALL],
                "usage": {
                    "input_tokens": 100,
                    "input_tokens_details": {"cached_tokens": 70},
                    "output_tokens": 55,
                    "total_tokens": 155,
                },
            },
        },
        named=True,
    ),
    (
        Thinking("Hm, über das.", "rs_1", SIGNATURE, wire="openai-responses"),
        Text(WORDS),
        Use("call_1", "Read", INPUT),
    ),
    Usage(100, 55, 70),
    "/responses",
)


def _candidate(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": list(parts)}, **more}],
        "modelVersion": "gemini-3-pro",
        "responseId": "r1",
    }


GEMINI = Spoken(
    "gemini",
    "gemini",
    "gemini-3-pro",
    events(
        _candidate({"text": "Hm, über das.", "thought": True}),
        _candidate({"text": WORDS[:4]}),
        _candidate({"text": WORDS[4:]}),
        _candidate(
            {"functionCall": {"id": "call_1", "name": "Read", "args": INPUT}, "thoughtSignature": SIGNATURE},
        ),
        {
            **_candidate({"text": ""}, finishReason="STOP"),
            "usageMetadata": {
                "promptTokenCount": 100,
                "candidatesTokenCount": 50,
                "thoughtsTokenCount": 5,
                "cachedContentTokenCount": 70,
                "totalTokenCount": 155,
            },
        },
    ),
    (
        Thinking("Hm, über das.", wire="gemini"),
        Text(WORDS),
        Thinking("", SIGNATURE, wire="gemini"),
        Use("call_1", "Read", INPUT),
    ),
    Usage(100, 55, 70),
    "/models/gemini-3-pro:streamGenerateContent?alt=sse",
)

ALL = (ANTHROPIC, CHAT, RESPONSES, GEMINI)
