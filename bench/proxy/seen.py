"""The body that an upstream received, taken apart after the documents of its API, in no API's words."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Seen:
    """What a request says. Calls and results are numbered in the order of the calls, so that ids may differ."""

    system: str = ""
    turns: list[tuple[str, list[Any]]] = field(default_factory=list)
    tools: list[tuple[str, str, Any]] = field(default_factory=list)
    choice: str = ""
    parallel: bool | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    schema: Any = None

    def add(self, role: str, parts: Iterable[Any]) -> None:
        """More of what one side said; what follows on the same side is the same turn."""
        given = list(parts)
        if not given:
            return
        if self.turns and self.turns[-1][0] == role:
            self.turns[-1][1].extend(given)
        else:
            self.turns.append((role, given))


class _Ids:
    """Numbers the calls by their ids. Raises AssertionError for a result of no call, and for an id that comes twice."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._answered: set[int] = set()

    def made(self, id_: str) -> int:
        assert id_, "a call without an id"
        assert id_ not in self._numbers, f"two calls have the id {id_!r}"
        self._numbers[id_] = len(self._numbers)
        return self._numbers[id_]

    def answered(self, id_: str) -> int:
        assert id_ in self._numbers, f"a result for no call: {id_!r}"
        at = self._numbers[id_]
        assert at not in self._answered, f"two results for one call: {id_!r}"
        self._answered.add(at)
        return at


def seen(body: dict[str, Any], wire: str) -> Seen:
    return _READERS[wire](body)


def _anthropic(body: dict[str, Any]) -> Seen:
    system = body.get("system", "")
    out = Seen(
        system=system if isinstance(system, str) else "\n\n".join(block["text"] for block in system),
        tools=[(one["name"], one.get("description", ""), one["input_schema"]) for one in body.get("tools", ())],
        max_tokens=body["max_tokens"],
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        top_k=body.get("top_k"),
        stop=tuple(body.get("stop_sequences", ())),
        schema=(body.get("output_config", {}).get("format") or {}).get("schema"),
    )
    if choice := body.get("tool_choice"):
        out.choice = choice["name"] if choice["type"] == "tool" else choice["type"]
        if "disable_parallel_tool_use" in choice:
            out.parallel = not choice["disable_parallel_tool_use"]
    ids = _Ids()
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        out.add(message["role"], [_anthropic_part(block, ids) for block in blocks])
    return out


def _anthropic_part(block: dict[str, Any], ids: _Ids) -> Any:
    kind = block["type"]
    if kind == "text":
        return ("text", block["text"])
    if kind in {"image", "document"}:
        source = block["source"]
        if source["type"] == "url":
            return (kind, source["url"])
        return (kind if source["type"] == "base64" else "text document", source["data"])
    if kind == "tool_use":
        assert isinstance(block["input"], dict)
        return ("call", ids.made(block["id"]), block["name"], block["input"])
    if kind == "tool_result":
        content = block.get("content") or []
        parts = [("text", content)] if isinstance(content, str) else [_anthropic_part(one, ids) for one in content]
        return ("result", ids.answered(block["tool_use_id"]), parts, bool(block.get("is_error")))
    if kind == "thinking":
        return ("thinking", block["thinking"], block["signature"])
    return (kind, block)


def _choice(choice: Any) -> str:
    if choice is None or isinstance(choice, str):
        return {"required": "any", None: ""}.get(choice, choice or "")
    named = choice.get("function") or choice
    return str(named["name"])


def _openai_part(part: Any) -> Any:
    kind = part["type"]
    if kind in {"text", "input_text", "output_text"}:
        return ("text", part["text"])
    if kind in {"image_url", "input_image"}:
        url = part["image_url"]["url"] if kind == "image_url" else part["image_url"]
        return ("image", url.removeprefix("data:image/png;base64,"))
    if kind in {"file", "input_file"}:
        file = part["file"] if kind == "file" else part
        data = file.get("file_data") or file.get("file_url")
        return ("document", data.removeprefix("data:application/pdf;base64,"))
    return (kind, part)


def _openai_parts(content: Any) -> list[Any]:
    if content is None or content == "":
        return []
    return [("text", content)] if isinstance(content, str) else [_openai_part(part) for part in content]


def _arguments(given: str) -> Any:
    value = json.loads(given)
    assert isinstance(value, dict), "arguments that are no object"
    return value


def _chat(body: dict[str, Any]) -> Seen:
    form = (body.get("response_format") or {}).get("json_schema") or {}
    stop = body.get("stop") or ()
    out = Seen(
        tools=[
            (one["name"], one.get("description", ""), one.get("parameters", {}))
            for one in (tool.get("custom") or tool["function"] for tool in body.get("tools", ()))
        ],
        choice=_choice(body.get("tool_choice")),
        parallel=body.get("parallel_tool_calls"),
        max_tokens=body.get("max_tokens", body.get("max_completion_tokens")),
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        seed=body.get("seed"),
        schema=form.get("schema"),
    )
    assert body.get("stream_options", {"include_usage": True})["include_usage"], "no count of tokens was asked for"
    ids = _Ids()
    for message in body["messages"]:
        role = message["role"]
        parts = _openai_parts(message.get("content"))
        if role in {"system", "developer"} and not out.turns:
            out.system += ("\n\n" if out.system else "") + "".join(part[1] for part in parts)
        elif role == "tool":
            out.add("user", [("result", ids.answered(message["tool_call_id"]), parts, False)])
        elif role == "assistant":
            if thought := message.get("reasoning_content"):
                parts.insert(0, ("thinking", thought, ""))
            for one in message.get("tool_calls") or ():
                said = one.get("custom") or one["function"]
                given = {"input": said["input"]} if "custom" in one else _arguments(said["arguments"])
                parts.append(("call", ids.made(one["id"]), said["name"], given))
            out.add("assistant", parts)
        else:
            out.add(role, parts)
    return out


def _responses(body: dict[str, Any]) -> Seen:
    form = (body.get("text") or {}).get("format") or {}
    out = Seen(
        system=body.get("instructions") or "",
        tools=[
            (one.get("name", one["type"]), one.get("description", ""), one.get("parameters", {}))
            for one in body.get("tools", ())
        ],
        choice=_choice(body.get("tool_choice")),
        parallel=body.get("parallel_tool_calls"),
        max_tokens=body.get("max_output_tokens"),
        temperature=body.get("temperature"),
        top_p=body.get("top_p"),
        schema=form.get("schema"),
    )
    assert body.get("store") is False or "store" not in body, "the answer is kept by the host"
    ids = _Ids()
    given: Any = body["input"]
    items: list[Any] = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            role = item["role"]
            parts = _openai_parts(item["content"])
            if role in {"system", "developer"} and not out.turns:
                out.system += ("\n\n" if out.system else "") + "".join(part[1] for part in parts)
            else:
                out.add(role, parts)
        elif kind == "function_call":
            number = ids.made(item["call_id"])
            out.add("assistant", [("call", number, item["name"], _arguments(item["arguments"]))])
        elif kind == "agent_message":
            parts = [("text", part.get("text", part.get("encrypted_content"))) for part in item["content"]]
            out.add("user", parts)
        elif kind == "custom_tool_call":
            out.add("assistant", [("call", ids.made(item["call_id"]), item["name"], {"input": item["input"]})])
        elif kind in {"function_call_output", "custom_tool_call_output"}:
            out.add("user", [("result", ids.answered(item["call_id"]), _openai_parts(item["output"]), False)])
        elif kind == "reasoning":
            thought = "".join(str(summary["text"]) for summary in item["summary"])
            out.add("assistant", [("thinking", thought, item.get("encrypted_content", ""))])
        else:
            out.add("assistant", [(kind, item)])
    return out


_OPAQUE = frozenset(("args", "response", "parametersJsonSchema", "parameters", "responseJsonSchema", "responseSchema"))


def _camel(value: Any) -> Any:
    """The API takes its names in both spellings, and the maker's package writes both. What is inside of arguments and
    schemas are no names of the API."""
    if isinstance(value, list):
        return [_camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for name, one in value.items():
        head, *rest = name.split("_")
        camel = head + "".join(part.capitalize() for part in rest)
        out[camel] = one if camel in _OPAQUE else _camel(one)
    return out


def plain_base64(data: str) -> str:
    """Gemini's package writes the other alphabet."""
    return data.replace("-", "+").replace("_", "/")


def _gemini(given: dict[str, Any]) -> Seen:
    body = _camel(given)
    config = body.get("generationConfig", {})
    declared = [one for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())]
    out = Seen(
        system="".join(part["text"] for part in (body.get("systemInstruction") or {}).get("parts", ())),
        tools=[
            (one["name"], one.get("description", ""), one.get("parametersJsonSchema", one.get("parameters", {})))
            for one in declared
        ],
        max_tokens=config.get("maxOutputTokens"),
        temperature=config.get("temperature"),
        top_p=config.get("topP"),
        top_k=config.get("topK"),
        stop=tuple(config.get("stopSequences", ())),
        seed=config.get("seed"),
        schema=config.get("responseJsonSchema", config.get("responseSchema")),
    )
    calling = body.get("toolConfig", {}).get("functionCallingConfig", {})
    if calling:
        only = calling.get("allowedFunctionNames")
        out.choice = only[0] if only else calling["mode"].lower()
    ids = _Ids()
    for content in body["contents"]:
        role = {"model": "assistant"}.get(content.get("role", "user"), content.get("role", "user"))
        out.add(role, [_gemini_part(part, ids) for part in content["parts"]])
    return out


def _gemini_part(part: dict[str, Any], ids: _Ids) -> Any:
    if "functionCall" in part:
        made = part["functionCall"]
        return ("call", ids.made(made.get("id") or made["name"]), made["name"], made.get("args", {}))
    if "functionResponse" in part:
        given = part["functionResponse"]
        response = given["response"]
        assert isinstance(response, dict), "a response that is no object"
        failed = "error" in response
        said = next((value for value in response.values() if isinstance(value, str)), "")
        parts: list[Any] = [("text", said)] if said else []
        parts += [
            ("image", plain_base64(one["inlineData"]["data"])) for one in given.get("parts", ()) if "inlineData" in one
        ]
        return ("result", ids.answered(given.get("id") or given["name"]), parts, failed)
    for name in ("inlineData", "fileData"):
        if name in part:
            kind = "document" if part[name].get("mimeType") == "application/pdf" else "image"
            return (kind, plain_base64(part[name]["data"]) if "data" in part[name] else part[name]["fileUri"])
    if part.get("thought"):
        return ("thinking", part["text"], part.get("thoughtSignature", ""))
    return ("text", part["text"])


_READERS: dict[str, Callable[[dict[str, Any]], Seen]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
