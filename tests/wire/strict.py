"""What the four APIs refuse in a request, after their documentation: each rule that a conversation can break.

The real APIs forgive some of it on some days. A conversation that breaks none of these rules is taken by all of them.
"""

import json
import re
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any


class RefusedError(AssertionError):
    """The API would answer with 400."""


def _need(holds: Any, rule: str, where: Any = "") -> None:
    if not holds:
        raise RefusedError(f"{rule} {str(where)[:300]}")


def _unique(ids: Iterable[str], rule: str) -> None:
    given = list(ids)
    _need(len(set(given)) == len(given), rule, given)


_ID = re.compile(r"[A-Za-z0-9_-]+")


def check_anthropic(body: dict[str, Any]) -> None:
    """Messages API: `messages`, `tool_use`, `thinking`."""
    messages = body["messages"]
    _need(messages, "messages: at least one message is required")
    _need(messages[0]["role"] == "user", "messages: first message must use the user role")
    _need(messages[-1]["role"] == "user", "this model does not support assistant message prefill", messages[-1])
    _need(all(one["role"] in {"user", "assistant"} for one in messages), "messages: unexpected role")
    for block in _system(body):
        _need(block["text"].strip(), "system: text content blocks must be non-empty")
    # Several messages of one side in a row are one.
    runs = [
        (role, [block for message in run for block in message["content"]])
        for role, run in groupby(messages, key=lambda one: one["role"])
    ]
    for message in messages:
        _need(isinstance(message["content"], list) and message["content"], "all messages must have non-empty content")
    uses: list[str] = []
    for at, (role, blocks) in enumerate(runs):
        for block in blocks:
            _anthropic_block(block, role)
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        uses += calls
        behind = runs[at + 1][1] if at + 1 < len(runs) else []
        _anthropic_results(calls, behind)
        before = runs[at - 1][1] if at else []
        known = {block["id"] for block in before if block["type"] == "tool_use"}
        for block in blocks:
            if block["type"] == "tool_result":
                _need(block["tool_use_id"] in known, "unexpected tool_use_id in tool_result", block)
    _unique(uses, "tool_use ids must be unique")
    _need(not uses or body.get("tools"), "requests with tool_use blocks must define tools")
    _anthropic_thinking(body)


def _system(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body.get("system", [])
    return [{"text": given}] if isinstance(given, str) else given


def _anthropic_block(block: dict[str, Any], role: str) -> None:
    kind = block["type"]
    allowed = {"user": {"text", "image", "document", "tool_result"}}.get(
        role, {"text", "thinking", "redacted_thinking", "tool_use"}
    )
    _need(kind in allowed, f"{role} messages cannot hold {kind} blocks")
    if kind == "text":
        _need(block["text"].strip(), "text content blocks must contain non-whitespace text", block)
    elif kind == "thinking":
        _need(block.get("signature"), "thinking.signature: Field required", block)
        _need("zq-anthropic" in block["signature"], "Invalid signature in thinking block", block)
    elif kind == "redacted_thinking":
        _need("zq-anthropic" in block["data"], "Invalid data in redacted_thinking block", block)
    elif kind == "tool_use":
        _need(_ID.fullmatch(block["id"]), "tool_use.id: String should match pattern", block)
        _need(isinstance(block["input"], dict), "tool_use.input: Input should be a valid dictionary", block)
    elif kind == "tool_result":
        content = block.get("content")
        _need(content is None or content, "tool_result.content must not be an empty list", block)
        _need(content or not block.get("is_error"), "content cannot be empty if is_error is true", block)
        for one in content if isinstance(content, list) else ():
            _anthropic_block(one, "user")


def _anthropic_results(calls: list[str], behind: list[dict[str, Any]]) -> None:
    first = []
    for block in behind:
        if block["type"] != "tool_result":
            break
        first.append(block["tool_use_id"])
    _need(sorted(calls) == sorted(first) or not calls, "tool_use without tool_result blocks immediately after", calls)
    later = [block for block in behind[len(first) :] if block["type"] == "tool_result"]
    _need(not later, "tool_result blocks must come first in the message", later)


def _anthropic_thinking(body: dict[str, Any]) -> None:
    thinking = body.get("thinking", {})
    if thinking.get("type") == "enabled":
        _need(thinking["budget_tokens"] < body["max_tokens"], "max_tokens must be greater than budget_tokens")
        _need(body.get("temperature", 1) == 1, "temperature may only be set to 1 when thinking is enabled")


def check_chat(body: dict[str, Any]) -> None:
    """Chat Completions, and what its imitators read more closely: arguments that are JSON."""
    messages = body["messages"]
    _need(messages, "messages must not be empty")
    _need(messages[-1]["role"] in {"user", "tool"}, "Expected last role User or Tool", messages[-1])
    waiting: list[str] = []
    ids: list[str] = []
    for message in messages:
        role = message["role"]
        _need(role in {"system", "developer", "user", "assistant", "tool"}, "unknown role", role)
        if role == "tool":
            _need(message["tool_call_id"] in waiting, "'tool' must be a response to a preceding 'tool_calls'", message)
            waiting.remove(message["tool_call_id"])
            _need(isinstance(message["content"], str), "tool content must be text", message)
            continue
        _need(not waiting, "'tool_calls' must be followed by tool messages responding to each", waiting)
        _chat_content(message)
        for call in message.get("tool_calls") or ():
            _need(call["id"], "tool_calls.id is empty", call)
            ids.append(call["id"])
            waiting.append(call["id"])
            if call["type"] == "function":
                _need(_is_object(call["function"]["arguments"]), "arguments must be a JSON object", call)
        _need(message.get("tool_calls") != [], "tool_calls must not be empty")
    _need(not waiting, "'tool_calls' must be followed by tool messages responding to each", waiting)
    _unique(ids, "duplicate tool_call_id")
    _need(not ids or body.get("tools"), "tool calls without tools")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _chat_content(message: dict[str, Any]) -> None:
    content = message.get("content")
    if content is None:
        _need(message["role"] == "assistant" and message.get("tool_calls"), "content must not be null", message)
        return
    _need(content, "content must not be empty", message)
    if isinstance(content, str):
        _need(content.strip(), "content must not be blank", message)
    for part in content if isinstance(content, list) else ():
        _need(part["type"] != "text" or part["text"].strip(), "text parts must not be blank", part)
        _need(message["role"] == "user" or part["type"] == "text", "only the user may show pictures", part)


def check_responses(body: dict[str, Any]) -> None:
    """Responses API without stored state: calls, outputs, reasoning items."""
    items = body["input"]
    _need(items, "input must not be empty")
    _need(not body.get("store"), "nothing is stored")
    waiting: dict[str, str] = {}
    ids = [item["call_id"] for item in items if item["type"].endswith("_call")]
    _unique(ids, "duplicate call_id")
    last = items[-1]
    _need(last["type"].endswith("_output") or last.get("role") != "assistant", "input ends with the assistant", last)
    for at, item in enumerate(items):
        kind = item["type"]
        if kind.endswith("_call"):
            _need(kind != "function_call" or _is_object(item["arguments"]), "arguments must be a JSON object", item)
            waiting[item["call_id"]] = kind
        elif kind.endswith("_call_output"):
            made = waiting.pop(item["call_id"], "")
            _need(made, "No tool call found for function call output", item)
            _need(f"{made}_output" == kind, "the output must be of the call's kind", item)
            _need(item["output"] != [], "output must not be an empty list", item)
        elif kind == "reasoning":
            _need(item.get("encrypted_content"), "reasoning item not found: items are not persisted", item)
            _need("zq-responses" in item["encrypted_content"], "The encrypted content could not be verified", item)
            after = items[at + 1] if at + 1 < len(items) else {"type": "none"}
            follows = (
                after["type"].endswith("_call") or after["type"] == "reasoning" or after.get("role") == "assistant"
            )
            _need(follows, "reasoning was provided without its required following item", item)
        else:
            _need(kind == "message", "unknown item", item)
            is_own = item["role"] == "assistant"
            _need(is_own or not waiting, "No tool output found for function call", waiting)
            _need(item["content"] and (not isinstance(item["content"], str) or item["content"].strip()), "blank", item)
            for part in item["content"] if isinstance(item["content"], list) else ():
                _need(part["type"] != "input_text" or part["text"].strip(), "text must not be blank", part)
    _need(not waiting, "No tool output found for function call", waiting)
    _need(not ids or body.get("tools"), "calls without tools")


def check_gemini(body: dict[str, Any]) -> None:
    """`generateContent`: turns, function calls and their responses."""
    contents = body["contents"]
    _need(contents, "contents is not specified")
    _need(contents[0]["role"] == "user", "the first content must be the user's")
    _need(contents[-1]["role"] == "user", "Please ensure that multiturn requests end with a user role", contents[-1])
    ids: list[str] = []
    for at, content in enumerate(contents):
        parts = content["parts"]
        _need(parts, "contents.parts must not be empty", content)
        for part in parts:
            _gemini_part(part)
        before: dict[str, Any] = contents[at - 1] if at else {"role": "", "parts": []}
        made = [part["functionCall"] for part in before["parts"] if "functionCall" in part]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        ids += [call["id"] for call in calls if "id" in call]
        same = sorted((one["name"], one.get("id", "")) for one in made)
        _need(
            same == sorted((one["name"], one.get("id", "")) for one in answers),
            "the number of function response parts is equal to the number of function call parts of the turn before",
            content,
        )
        _need(not calls or content["role"] == "model", "only the model calls functions")
        _need(not calls or before["role"] == "user", "function call turn comes immediately after a user turn", content)
        _need(content["role"] != "model" or before["role"] == "user", "two contents of the model in a row", content)
    _unique(ids, "duplicate id of a function call")
    _need(not ids or body.get("tools"), "function calls without tools")


def _gemini_part(part: dict[str, Any]) -> None:
    data = {"text", "functionCall", "functionResponse", "inlineData", "fileData"} & part.keys()
    _need(len(data) == 1, "required oneof field 'data' must have one initialized field", part)
    signature = part.get("thoughtSignature", "")
    _need(
        not signature or "zq-gemini" in signature or signature == "skip_thought_signature_validator",
        "bad signature",
        part,
    )
    if "text" in part:
        _need(part["text"] or signature, "must have a text parameter", part)
    if "functionResponse" in part:
        _need(isinstance(part["functionResponse"]["response"], dict), "response must be a struct", part)
    if "functionCall" in part:
        _need(isinstance(part["functionCall"]["args"], dict), "args must be a struct", part)


def check_gemini_signed(body: dict[str, Any]) -> None:
    """Models that think by a level: the first call of each step must be signed."""
    check_gemini(body)
    for content in body["contents"]:
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls:
            _need(calls[0].get("thoughtSignature"), "Function call is missing a thought_signature", content)


STRICT: dict[tuple[str, str], Callable[[dict[str, Any]], None]] = {
    ("anthropic", "claude-opus-4-5"): check_anthropic,
    ("anthropic", "claude-opus-5"): check_anthropic,
    ("deepseek", "deepseek-chat"): check_chat,
    ("openrouter", "some/model"): check_chat,
    ("openai", "gpt-5.2"): check_responses,
    ("gemini", "gemini-2.5-pro"): check_gemini,
    ("gemini", "gemini-3-pro"): check_gemini_signed,
}
"""Hosts and models of each kind, and what the API refuses."""
