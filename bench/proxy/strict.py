"""What a host refuses: the laws of each API's bodies, over the body as it came.

They are those that the makers' hosts enforce with status 400 and their packages do not know.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from bench.proxy.seen import Seen, seen

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MOST_MARKS = 4


def check(body: dict[str, Any], wire: str) -> Seen:
    """What a body says. Raises AssertionError where a host would refuse it, and KeyError where a field is missing."""
    _CHECKS[wire](body)
    found = seen(body, wire)
    names = [name for name, _, _ in found.tools]
    assert len(set(names)) == len(names), f"a tool is declared twice: {sorted(names)}"
    pattern = _GEMINI_NAME if wire == "gemini" else _NAME
    for name in names:
        assert pattern.fullmatch(name), f"no name of a tool: {name!r}"
    for name, _, schema in found.tools:
        assert isinstance(schema, dict), f"{name} has no schema"
    assert found.turns, "nothing is asked"
    return found


def _anthropic(body: dict[str, Any]) -> None:
    assert body["max_tokens"] >= 1
    for tool in body.get("tools", ()):
        if "input_schema" in tool:
            assert tool["input_schema"]["type"] == "object", tool["name"]
    messages = body["messages"]
    assert messages[0]["role"] == "user", f"it begins with {messages[0]['role']}"
    marks = json.dumps(body).count('"cache_control": {')
    assert marks <= _MOST_MARKS, f"{marks} marks for the cache"
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role, content = message["role"], message["content"]
        assert role in {"user", "assistant", "system"}, role
        assert content, f"message {at} is empty"
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            assert block["type"] != "text" or block["text"].strip(), f"an empty text in message {at}"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if waiting or results:
            assert role == "user", f"calls are followed by {role}"
            assert sorted(results) == sorted(waiting), f"calls {waiting} are answered by {results} in message {at}"
            first = [block["type"] == "tool_result" for block in blocks[: len(results)]]
            assert all(first), f"something stands before the results of message {at}"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert all(map(_CALL_ID.fullmatch, waiting)), waiting
        assert not waiting or role == "assistant"
    assert not waiting, f"calls without an answer: {waiting}"


def _chat(body: dict[str, Any]) -> None:
    waiting: list[str] = []
    for at, message in enumerate(body["messages"]):
        role, content = message["role"], message.get("content")
        if role == "tool":
            assert message["tool_call_id"] in waiting, f"message {at} answers no call that is open: {waiting}"
            waiting.remove(message["tool_call_id"])
            assert isinstance(content, str | list), f"message {at} has no content"
            continue
        assert not waiting, f"calls without an answer before message {at}: {waiting}"
        assert role in {"system", "developer", "user", "assistant"}, role
        if role == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
            assert content or waiting, f"message {at} says nothing"
        else:
            assert content, f"message {at} is empty"
        if role != "user" and isinstance(content, list):
            kinds = {part["type"] for part in content}
            assert kinds <= {"text", "refusal"}, f"{kinds} in a message of {role}"
    assert not waiting, f"calls without an answer: {waiting}"


_OUTPUTS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}


def _responses(body: dict[str, Any]) -> None:
    items = body["input"]
    if isinstance(items, str):
        return
    waiting: dict[str, str] = {}
    ids = [item["id"] for item in items if item.get("id")]
    assert len(set(ids)) == len(ids), f"two items have the same id: {ids}"
    for at, item in enumerate(items):
        kind = item.get("type", "message")
        if kind in _OUTPUTS:
            assert item["call_id"] not in waiting
            waiting[item["call_id"]] = _OUTPUTS[kind]
        elif kind in _OUTPUTS.values():
            assert waiting.pop(item["call_id"], "") == kind, f"item {at} answers no call that is open"
            assert isinstance(item["output"], str | list)
        elif kind == "message":
            assert item["role"] in {"user", "assistant", "system", "developer"}, item["role"]
            assert item["content"], f"item {at} is empty"
            if isinstance(item["content"], list):
                wanted = {"output_text", "refusal"} if item["role"] == "assistant" else {"input_text", "input_image"}
                kinds = {part["type"] for part in item["content"]}
                assert kinds <= wanted | {"input_file"}, f"{kinds} in a message of {item['role']}"
        if kind == "reasoning":
            follows = items[at + 1].get("type", "message") if at + 1 < len(items) else "nothing"
            assert follows in {*_OUTPUTS, "message", "reasoning"}, f"thinking is followed by {follows}"
    assert not waiting, f"calls without an answer: {sorted(waiting)}"


def _gemini(body: dict[str, Any]) -> None:
    contents = body["contents"]
    assert contents[0].get("role", "user") == "user", f"it begins with {contents[0]['role']}"
    waiting: list[str] = []
    for at, content in enumerate(contents):
        role = content.get("role", "user")
        assert role in {"user", "model"}, role
        parts = content["parts"]
        assert parts, f"content {at} is empty"
        for part in parts:
            assert set(part) - {"thought", "thoughtSignature"}, f"an empty part in content {at}"
        answered = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
        if waiting or answered:
            assert role == "user", f"calls are followed by {role}"
            assert sorted(answered) == sorted(waiting), f"calls {waiting} are answered by {answered} in content {at}"
        waiting = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
        assert not waiting or role == "model"
    assert not waiting, f"calls without an answer: {waiting}"


_CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
