"""An answer in the words of each API: the events of a stream and the body of a whole answer, as the makers document
them. Nothing of the product is used for it."""

import json
from collections.abc import Callable
from typing import Any

from bench.proxy.talk import Answer, Call, Counted, Think, Words

MODEL = "upstream-model"
_CREATED = 1_790_000_000
_COUNTED = Counted()


def event(value: Any, name: str = "") -> bytes:
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


def named(*values: dict[str, Any]) -> list[bytes]:
    return [event(value, value["type"]) for value in values]


def stream(answer: Answer, wire: str) -> list[bytes]:
    """The events, each by itself."""
    return _STREAMS[wire](answer)


def whole(answer: Answer, wire: str) -> dict[str, Any]:
    return _WHOLES[wire](answer)


_STOPS = {
    "anthropic": {
        "end": "end_turn",
        "tools": "tool_use",
        "length": "max_tokens",
        "stopped": "stop_sequence",
        "refused": "refusal",
    },
    "openai-chat": {
        "end": "stop",
        "tools": "tool_calls",
        "length": "length",
        "stopped": "stop",
        "refused": "content_filter",
    },
    "gemini": {"end": "STOP", "tools": "STOP", "length": "MAX_TOKENS", "stopped": "STOP", "refused": "SAFETY"},
}


def _anthropic_usage(counted: Counted) -> dict[str, Any]:
    return {
        "input_tokens": counted.input - counted.cached - counted.written,
        "cache_read_input_tokens": counted.cached,
        "cache_creation_input_tokens": counted.written,
        "output_tokens": counted.output,
    }


def _anthropic_head(answer: Answer) -> dict[str, Any]:
    return {"id": f"msg_{answer.id}", "type": "message", "role": "assistant", "model": MODEL}


def _anthropic(answer: Answer) -> list[bytes]:
    usage = _anthropic_usage(answer.counted)
    start = {**_anthropic_head(answer), "content": [], "stop_reason": None, "stop_sequence": None}
    values: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**start, "usage": {**usage, "output_tokens": 1}}}
    ]
    for at, one in enumerate(answer.says):
        block: dict[str, Any]
        if isinstance(one, Think):
            block = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in one.pieces]
            deltas.append({"type": "signature_delta", "signature": one.signature or "c2ln"})
        elif isinstance(one, Words):
            block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in one.pieces]
        else:
            block = {"type": "tool_use", "id": one.id, "name": one.name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *one.pieces)]
        values.append({"type": "content_block_start", "index": at, "content_block": block})
        values += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        values.append({"type": "content_block_stop", "index": at})
    stop = {"stop_reason": _STOPS["anthropic"][answer.stop], "stop_sequence": None}
    values.append({"type": "message_delta", "delta": stop, "usage": usage})
    values.append({"type": "message_stop"})
    return named(*values)


def _anthropic_whole(answer: Answer) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    for one in answer.says:
        joined = "".join(one.pieces)
        if isinstance(one, Think):
            blocks.append({"type": "thinking", "thinking": joined, "signature": one.signature or "c2ln"})
        elif isinstance(one, Words):
            blocks.append({"type": "text", "text": joined})
        else:
            blocks.append({"type": "tool_use", "id": one.id, "name": one.name, "input": one.arguments})
    stop = {"stop_reason": _STOPS["anthropic"][answer.stop], "stop_sequence": None}
    return {**_anthropic_head(answer), "content": blocks, **stop, "usage": _anthropic_usage(answer.counted)}


def chat_usage(counted: Counted) -> dict[str, Any]:
    return {
        "prompt_tokens": counted.input,
        "completion_tokens": counted.output,
        "total_tokens": counted.input + counted.output,
        "prompt_tokens_details": {"cached_tokens": counted.cached},
    }


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk of a Chat stream."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "chatcmpl-answer_1", "object": "chat.completion.chunk", "created": _CREATED, "model": MODEL}
    return {**head, "choices": choices, **more}


def chat_end(finish: str, counted: Counted | None = _COUNTED) -> list[Any]:
    """What ends a Chat stream."""
    usage = [{**chunk({}), "choices": [], "usage": chat_usage(counted)}] if counted else []
    return [chunk({}, finish), *usage, "[DONE]"]


def chat_stream(*values: Any) -> list[bytes]:
    return [event(value) for value in values]


def _chat(answer: Answer) -> list[bytes]:
    out: list[Any] = [chunk({"role": "assistant", "content": ""})]
    at = 0
    for one in answer.says:
        if isinstance(one, Think):
            out += [chunk({"reasoning_content": piece}) for piece in one.pieces]
        elif isinstance(one, Words):
            out += [chunk({"content": piece}) for piece in one.pieces]
        else:
            kind, field = ("custom", "input") if one.is_text else ("function", "arguments")
            head = {"index": at, "id": one.id, "type": kind, kind: {"name": one.name, field: ""}}
            out.append(chunk({"tool_calls": [head]}))
            for piece in one.pieces:
                out.append(chunk({"tool_calls": [{"index": at, kind: {field: piece}}]}))
            at += 1
    values = [*out, *chat_end(_STOPS["openai-chat"][answer.stop], answer.counted)]
    named = {"id": f"chatcmpl-{answer.id}"}
    return chat_stream(*({**value, **named} if isinstance(value, dict) else value for value in values))


def _chat_whole(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    made = [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": "".join(one.pieces)}}
        for one in answer.says
        if isinstance(one, Call)
    ]
    if made:
        message["tool_calls"] = made
    choice = {"index": 0, "message": message, "finish_reason": _STOPS["openai-chat"][answer.stop], "logprobs": None}
    head = {"id": f"chatcmpl-{answer.id}", "object": "chat.completion", "created": _CREATED, "model": MODEL}
    return {**head, "choices": [choice], "usage": chat_usage(answer.counted)}


def _responses_usage(counted: Counted) -> dict[str, Any]:
    return {
        "input_tokens": counted.input,
        "input_tokens_details": {"cached_tokens": counted.cached, "cache_write_tokens": counted.written},
        "output_tokens": counted.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": counted.input + counted.output,
    }


def _responses_items(answer: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for at, one in enumerate(answer.says):
        joined = "".join(one.pieces)
        if isinstance(one, Think):
            items.append(
                {
                    "type": "reasoning",
                    "id": f"rs_{answer.id}_{at}",
                    "summary": [{"type": "summary_text", "text": joined}],
                    "encrypted_content": one.signature or "c2ln",
                }
            )
        elif isinstance(one, Words):
            content = [{"type": "output_text", "text": joined, "annotations": [], "logprobs": []}]
            head = {"type": "message", "id": f"msg_{answer.id}_{at}", "role": "assistant", "status": "completed"}
            items.append({**head, "content": content})
        elif one.is_text:
            head = {"type": "custom_tool_call", "id": f"ctc_{answer.id}_{at}", "status": "completed"}
            items.append({**head, "call_id": one.id, "name": one.name, "input": joined})
        else:
            items.append(
                {
                    "type": "function_call",
                    "id": f"fc_{answer.id}_{at}",
                    "call_id": one.id,
                    "name": one.name,
                    "arguments": joined,
                    "status": "completed",
                    **({"namespace": one.bundle} if one.bundle else {}),
                }
            )
    return items


def _responses_whole(answer: Answer) -> dict[str, Any]:
    why = {"length": "max_output_tokens", "refused": "content_filter"}.get(answer.stop)
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": _CREATED,
        "model": MODEL,
        "status": "incomplete" if why else "completed",
        "error": None,
        "incomplete_details": {"reason": why} if why else None,
        "output": _responses_items(answer),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _responses_usage(answer.counted),
    }


def _responses(answer: Answer) -> list[bytes]:
    done = _responses_whole(answer)
    start = {**done, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    values: list[dict[str, Any]] = [
        {"type": "response.created", "response": start},
        {"type": "response.in_progress", "response": start},
    ]
    for at, (one, item) in enumerate(zip(answer.says, done["output"], strict=True)):
        place = {"output_index": at, "item_id": item["id"]}
        values += _responses_item(one, item, place)
    last = "response.incomplete" if done["incomplete_details"] else "response.completed"
    values.append({"type": last, "response": done})
    return named(*({**value, "sequence_number": at} for at, value in enumerate(values)))


def _responses_item(one: Any, item: dict[str, Any], place: dict[str, Any]) -> list[dict[str, Any]]:
    joined, at = "".join(one.pieces), place["output_index"]
    bare: dict[str, Any] = {**item, "status": "in_progress"}
    middle: list[dict[str, Any]]
    if isinstance(one, Think):
        bare = {"type": "reasoning", "id": item["id"], "summary": []}
        where = {**place, "summary_index": 0}
        part = {"type": "summary_text", "text": joined}
        kind = "response.reasoning_summary"
        middle = [
            {"type": f"{kind}_part.added", **where, "part": {**part, "text": ""}},
            *({"type": f"{kind}_text.delta", **where, "delta": piece} for piece in one.pieces),
            {"type": f"{kind}_text.done", **where, "text": joined},
            {"type": f"{kind}_part.done", **where, "part": part},
        ]
    elif isinstance(one, Words):
        bare["content"] = []
        where = {**place, "content_index": 0}
        part = item["content"][0]
        middle = [
            {"type": "response.content_part.added", **where, "part": {**part, "text": ""}},
            *({"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []} for piece in one.pieces),
            {"type": "response.output_text.done", **where, "text": joined, "logprobs": []},
            {"type": "response.content_part.done", **where, "part": part},
        ]
    elif one.is_text:
        bare["input"] = ""
        kind = "response.custom_tool_call_input"
        middle = [
            *({"type": f"{kind}.delta", **place, "delta": piece} for piece in one.pieces),
            {"type": f"{kind}.done", **place, "input": joined},
        ]
    else:
        bare["arguments"] = ""
        kind = "response.function_call_arguments"
        middle = [
            *({"type": f"{kind}.delta", **place, "delta": piece} for piece in one.pieces),
            {"type": f"{kind}.done", **place, "name": one.name, "arguments": joined},
        ]
    return [
        {"type": "response.output_item.added", "output_index": at, "item": bare},
        *middle,
        {"type": "response.output_item.done", "output_index": at, "item": item},
    ]


def _gemini_usage(counted: Counted) -> dict[str, Any]:
    return {
        "promptTokenCount": counted.input,
        "candidatesTokenCount": counted.output,
        "cachedContentTokenCount": counted.cached,
        "totalTokenCount": counted.input + counted.output,
    }


def gemini_parts(answer: Answer) -> list[dict[str, Any]]:
    """The parts in the pieces in which they arrive; a signature stands on the part behind the thinking."""
    parts: list[dict[str, Any]] = []
    signature = ""
    for one in answer.says:
        signed = {"thoughtSignature": signature} if signature else {}
        if isinstance(one, Think):
            parts += [{"text": piece, "thought": True} for piece in one.pieces]
            signature = one.signature
            continue
        if isinstance(one, Words):
            parts += [
                {"text": piece, **(signed if at == len(one.pieces) - 1 else {})} for at, piece in enumerate(one.pieces)
            ]
        else:
            parts.append({"functionCall": {"id": one.id, "name": one.name, "args": one.arguments}, **signed})
        signature = ""
    return parts


def _gemini_chunk(answer: Answer, parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": parts}
    return {
        "candidates": [{"index": 0, "content": content, **more}],
        "modelVersion": MODEL,
        "responseId": answer.id,
        "usageMetadata": {**_gemini_usage(answer.counted), "candidatesTokenCount": 1},
    }


def _gemini(answer: Answer) -> list[bytes]:
    values = [_gemini_chunk(answer, [part]) for part in gemini_parts(answer)]
    last = _gemini_chunk(answer, [{"text": ""}], finishReason=_STOPS["gemini"][answer.stop])
    return [event(value) for value in (*values, {**last, "usageMetadata": _gemini_usage(answer.counted)})]


def _gemini_whole(answer: Answer) -> dict[str, Any]:
    made = _gemini_chunk(answer, gemini_parts(answer), finishReason=_STOPS["gemini"][answer.stop])
    return {**made, "usageMetadata": _gemini_usage(answer.counted)}


_STREAMS: dict[str, Callable[[Answer], list[bytes]]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
_WHOLES: dict[str, Callable[[Answer], dict[str, Any]]] = {
    "anthropic": _anthropic_whole,
    "openai-chat": _chat_whole,
    "openai-responses": _responses_whole,
    "gemini": _gemini_whole,
}


def error(wire: str, status: int, message: str, word: str = "") -> dict[str, Any]:
    """The body of an error."""
    if wire == "anthropic":
        words = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}
        words |= {404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error"}
        words |= {500: "api_error", 529: "overloaded_error", 503: "overloaded_error"}
        return {"type": "error", "error": {"type": word or words.get(status, "api_error"), "message": message}}
    if wire == "gemini":
        states = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
        states |= {429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE"}
        return {"error": {"code": status, "message": message, "status": word or states.get(status, "INTERNAL")}}
    kinds = {400: "invalid_request_error", 401: "invalid_request_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": word or None}}


def error_event(wire: str, message: str) -> bytes:
    """An error in the middle of a stream."""
    if wire == "anthropic":
        return event(error(wire, 529, message), "error")
    if wire == "openai-responses":
        value = {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": 9}
        return event(value, "error")
    return event(error(wire, 503, message))
