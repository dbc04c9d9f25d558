"""The laws of each API's streams, over the bytes as they came: what packages forgive, other clients do not."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from bench.proxy.talk import APIS


class Event(NamedTuple):
    name: str
    data: str


def events(raw: bytes) -> list[Event]:
    """The events of a stream. Raises AssertionError for bytes that are none."""
    out: list[Event] = []
    text = raw.decode("utf-8")
    assert "\r" not in text or "\r\n" in text, "lines that end in a carriage return alone"
    blocks = text.replace("\r\n", "\n").split("\n\n")
    assert blocks[-1].strip() == "", f"the stream ends within an event: {blocks[-1][:200]!r}"
    for block in blocks[:-1]:
        name, data = "", []
        for line in block.strip("\n").split("\n"):
            if line.startswith(":") or not line:
                continue
            field, _, value = line.partition(":")
            assert field in {"event", "data", "id", "retry"}, f"a line that is no field: {line[:200]!r}"
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
        if data:
            out.append(Event(name, "\n".join(data)))
    return out


def check(raw: bytes, api: str) -> None:
    """Raises AssertionError unless these are the bytes of a legal answer, whole or broken off with an error."""
    _CHECKS[api](events(raw))


@cache
def _adapter(api: str) -> Any:
    """Takes an event by the types of the maker's package, all fields included."""
    from pydantic import TypeAdapter

    if api == "anthropic":
        from anthropic.types import RawMessageStreamEvent

        return TypeAdapter(RawMessageStreamEvent)
    if api == "openai-chat":
        from openai.types.chat import ChatCompletionChunk

        return TypeAdapter(ChatCompletionChunk)
    if api == "openai-responses":
        from openai.types.responses import ResponseStreamEvent

        return TypeAdapter(ResponseStreamEvent)
    from google.genai.types import GenerateContentResponse

    return TypeAdapter(GenerateContentResponse)


_CODES = frozenset(("server_is_overloaded", "context_length_exceeded", "insufficient_quota", "slow_down"))
"""Codes of failed responses that OpenAI's own client program looks for, and the types of its package do not list."""


def fits(value: dict[str, Any], api: str) -> None:
    """Raises for an event that is not of the types of the maker's package."""
    if value.get("type") == "response.failed" and value["response"]["error"]["code"] in _CODES:
        error = {**value["response"]["error"], "code": "server_error"}
        value = {**value, "response": {**value["response"], "error": error}}
    _adapter(api).validate_python(value)


def _anthropic(given: list[Event]) -> None:
    values = [json.loads(one.data) for one in given]
    assert [one.name for one in given] == [value["type"] for value in values], "an event's name is not its type"
    kinds = [value["type"] for value in values if value["type"] != "ping"]
    assert kinds, "an empty stream"
    if kinds == ["error"]:
        return  # refused before it began, behind a ping
    broke = kinds[-1] == "error"
    assert kinds[0] == "message_start", f"it begins with {kinds[0]}"
    assert kinds.count("message_start") == 1, f"{kinds.count('message_start')} message_start"
    assert broke or kinds[-2:] == ["message_delta", "message_stop"], f"it ends with {kinds[-2:]}"
    assert kinds.count("message_stop") == (not broke)
    assert kinds.count("message_delta") == (not broke)
    assert kinds.count("error") == broke, "something behind an error"
    start = values[next(at for at, value in enumerate(values) if value["type"] == "message_start")]["message"]
    assert start["id"], "an answer without an id"
    assert start["content"] == []
    assert start["stop_reason"] is None
    _anthropic_blocks(values, broke=broke)
    for value in values:
        if value["type"] not in {"ping", "error"}:
            fits(value, "anthropic")


_DELTAS = {
    "text": {"text_delta", "citations_delta"},
    "tool_use": {"input_json_delta"},
    "server_tool_use": {"input_json_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
}


def _anthropic_blocks(values: list[dict[str, Any]], *, broke: bool) -> None:
    block: dict[str, Any] | None = None
    begun = 0
    ids: list[str] = []
    text = ""
    for value in values:
        kind = value["type"]
        if kind == "content_block_start":
            assert block is None, "a block began inside of another"
            assert value["index"] == begun, f"block {value['index']} where {begun} was to come"
            block, text = value["content_block"], ""
            begun += 1
            if block["type"] == "tool_use":
                ids.append(block["id"])
                assert block["id"]
                assert block["name"]
        elif kind == "content_block_delta":
            assert block is not None, "a piece of no block"
            assert value["index"] == begun - 1, "a piece of a block that is closed"
            assert value["delta"]["type"] in _DELTAS.get(block["type"], set()), (block["type"], value["delta"]["type"])
            text += value["delta"].get("partial_json", "")
        elif kind == "content_block_stop":
            assert block is not None, "the end of no block"
            assert value["index"] == begun - 1
            if block["type"] == "tool_use" and text:
                # An answer that stopped for its length may end within a call; it is told by its reason.
                stopped = [one["delta"]["stop_reason"] for one in values if one["type"] == "message_delta"]
                if stopped != ["max_tokens"]:
                    assert isinstance(json.loads(text), dict), "arguments that are no object"
            block = None
        elif kind == "message_delta":
            assert block is None, "a block was left open"
    assert broke or block is None, "a block was left open"
    assert len(set(ids)) == len(ids), f"two calls have the same id: {ids}"


def _chat(given: list[Event]) -> None:
    assert given, "an empty stream"
    done = given[-1].data == "[DONE]"
    values = [json.loads(one.data) for one in (given[:-1] if done else given)]
    assert all(one.name == "" for one in given), "Chat events have no names"
    broke = "error" in values[-1]
    assert done or broke, "no [DONE] and no error"
    assert sum("error" in value for value in values) == broke, "something behind an error"
    chunks = [value for value in values if "error" not in value]
    finishes = []
    starts: dict[int, dict[str, Any]] = {}
    pieces: dict[int, str] = {}
    for value in chunks:
        fits(value, "openai-chat")
        assert value["object"] == "chat.completion.chunk"
        assert value["id"] == chunks[0]["id"], "the id changes"
        for choice in value["choices"]:
            if choice.get("finish_reason"):
                finishes.append(choice["finish_reason"])
            for call in choice["delta"].get("tool_calls") or ():
                at = call["index"]
                if at not in starts:
                    assert at == len(starts), f"call {at} where {len(starts)} was to come"
                    assert call["id"]
                    assert call["function"]["name"]
                    starts[at] = call
                else:
                    assert not call.get("id") or call["id"] == starts[at]["id"], "a call changes its id"
                    assert not (call.get("function") or {}).get("name"), "a call is named twice"
                pieces[at] = pieces.get(at, "") + ((call.get("function") or {}).get("arguments") or "")
    assert len(finishes) == (not broke), f"finish reasons: {finishes}"
    ids = [call["id"] for call in starts.values()]
    assert len(set(ids)) == len(ids), f"two calls have the same id: {ids}"
    if finishes == ["tool_calls"]:
        for text in pieces.values():
            assert text == "" or isinstance(json.loads(text), dict), "arguments that are no object"


def _responses(given: list[Event]) -> None:
    # All clients pass over this end of a Chat stream, and over names that are missing.
    given = given[:-1] if given and given[-1].data == "[DONE]" else given
    values = [json.loads(one.data) for one in given]
    names = [(one.name or value["type"], value["type"]) for one, value in zip(given, values, strict=True)]
    assert all(name == kind for name, kind in names), "an event's name is not its type"
    kinds = [value["type"] for value in values]
    assert kinds, "an empty stream"
    ends = {"response.completed", "response.incomplete", "response.failed", "error"}
    assert kinds[-1] in ends, f"it ends with {kinds[-1]}"
    assert sum(kind in ends for kind in kinds) == 1, "something behind the end"
    broke = kinds[-1] in {"response.failed", "error"}
    if broke and len(kinds) == 1:
        return
    assert kinds[0] == "response.created", f"it begins with {kinds[0]}"
    assert kinds.count("response.created") == 1
    numbers = [value["sequence_number"] for value in values]
    assert numbers == sorted(set(numbers)), f"numbers out of order: {numbers}"
    _responses_items(values, broke=broke)
    for value in values:
        fits(value, "openai-responses")


def _responses_items(values: list[dict[str, Any]], *, broke: bool) -> None:
    open_items: dict[int, dict[str, Any]] = {}
    done: list[dict[str, Any]] = []
    texts: dict[tuple[str, str, int], str] = {}
    begun = 0
    for value in values:
        kind = value["type"]
        if kind == "response.output_item.added":
            assert value["output_index"] == begun, f"item {value['output_index']} where {begun} was to come"
            open_items[begun] = value["item"]
            begun += 1
        elif kind == "response.output_item.done":
            opened = open_items.pop(value["output_index"])
            assert opened["id"] == value["item"]["id"], "an item changes its id"
            assert opened["type"] == value["item"]["type"]
            done.append(value["item"])
            for key in ("arguments",):
                if key in value["item"]:
                    said = texts.get((opened["id"], "response.function_call_arguments", 0), "")
                    assert value["item"][key] == said, "an item is not what its pieces were"
        elif kind.endswith(".delta"):
            assert value["output_index"] in open_items, f"{kind} of no open item"
            assert open_items[value["output_index"]]["id"] == value["item_id"]
            place = (value["item_id"], kind.removesuffix(".delta"), _part(value))
            texts[place] = texts.get(place, "") + value["delta"]
        elif kind.endswith("_text.done") or kind == "response.function_call_arguments.done":
            place = (value["item_id"], kind.removesuffix(".done"), _part(value))
            assert texts.get(place, "") == value.get("text", value.get("arguments")), f"{kind} is not its pieces"
        elif kind in {"response.completed", "response.incomplete"}:
            assert not open_items, "an item was left open"
            assert value["response"]["output"] == done, "the last event tells of other items"
    ids = [item["call_id"] for item in done if "call_id" in item]
    assert len(set(ids)) == len(ids), f"two calls have the same id: {ids}"
    assert broke or not open_items


def _part(value: dict[str, Any]) -> int:
    return int(value.get("content_index", value.get("summary_index", 0)))


def _gemini(given: list[Event]) -> None:
    values = [json.loads(one.data) for one in given]
    assert values, "an empty stream"
    broke = "error" in values[-1]
    assert sum("error" in value for value in values) == broke, "something behind an error"
    chunks = [value for value in values if "error" not in value]
    candidates = [one for value in chunks for one in value.get("candidates") or ()]
    finishes = [one["finishReason"] for one in candidates if one.get("finishReason")]
    assert len(finishes) == (not broke), f"finish reasons: {finishes}"
    for value in chunks:
        fits(value, "gemini")
    ids = [
        part["functionCall"]["id"]
        for one in candidates
        for part in (one.get("content") or {}).get("parts") or ()
        if (part.get("functionCall") or {}).get("id")
    ]
    assert len(set(ids)) == len(ids), f"two calls have the same id: {ids}"


_CHECKS: dict[str, Callable[[list[Event]], None]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
assert tuple(_CHECKS) == APIS
