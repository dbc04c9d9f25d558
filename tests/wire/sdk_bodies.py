"""Requests made of the official packages' own types, every field of them sooner or later, with values that can be found
again: no two texts and no two numbers are the same."""

import random
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typing_extensions

from ferrule.wire.fields import camel

_WRAPPERS = {typing_extensions.Required, typing_extensions.NotRequired, typing.Required, typing.NotRequired}
_REQUIRED = {typing_extensions.Required, typing.Required}
_LISTS = {list, Iterable, Sequence}
_DEPTH = 5


class Maker:
    """Makes values of types. The same seed makes the same values."""

    def __init__(self, seed: int, rename: Callable[[str], str] = str, often: float = 0.4) -> None:
        self.random = random.Random(seed)
        self._rename = rename
        self._often = often
        self._made = 0
        self.fixed: dict[tuple[str, str], Callable[[], Any]] = {}
        """What stands in a field of a type whatever its hint says, by the names of both."""
        self.left_out: set[tuple[str, str]] = set()
        """Fields that are not made."""

    def word(self) -> str:
        self._made += 1
        return f"zq{self._made:04}zq"

    def number(self) -> int:
        self._made += 1
        return 20_000 + self._made

    def part(self) -> float:
        self._made += 1
        return 0.5 + self._made / 1e5

    def make(self, hint: Any, depth: int = 0) -> Any:
        """A value of a type."""
        hint = _bare(hint)
        origin = get_origin(hint)
        if hint is Any or hint is object:
            return self.word()
        if origin is Literal:
            return self.random.choice(get_args(hint))
        if origin in {typing.Union, types.UnionType}:
            return self.make(self.random.choice(_members(hint)), depth)
        if typing_extensions.is_typeddict(hint):
            return self.fields(hint, depth)
        if origin is dict or origin is Mapping or hint is dict:
            values = get_args(hint)
            return {self.word(): self.make(values[1], depth + 1) if values else self.word()}
        if origin in _LISTS or getattr(origin, "__name__", "") in {"Iterable", "SequenceNotStr", "Sequence"}:
            return [self.make(get_args(hint)[0], depth + 1) for _ in range(self.random.randint(1, 2))]
        if isinstance(hint, type) and issubclass(hint, str) and hasattr(hint, "__members__"):
            return self.random.choice([one.value for one in hint if "UNSPECIFIED" not in one.value])  # type: ignore[attr-defined]
        return _PLAIN[hint](self)

    def fields(self, hint: Any, depth: int = 0, only: Iterable[str] | None = None) -> dict[str, Any]:
        """An object of a type: what it must have, and some of the rest."""
        hints = _hints(hint)
        out: dict[str, Any] = {}
        for name, inner in hints.items():
            if (hint.__name__, name) in self.left_out or (only is not None and name not in only):
                continue
            is_wanted = get_origin(inner) in _REQUIRED or (depth < _DEPTH and self.random.random() < self._often)
            if (only is None and not is_wanted) or not _can_be_made(inner):
                continue
            fixed = self.fixed.get((hint.__name__, name)) or self.fixed.get(("", name)) or _LENGTHS.get(name)
            out[self._rename(name)] = fixed() if fixed is not None else self.make(inner, depth + 1)
        return out


_LENGTHS: dict[str, Callable[[], int]] = dict.fromkeys(
    ("max_tokens", "max_completion_tokens", "max_output_tokens"), lambda: 90_000
)
"""Budgets of thinking are made to fit them, and must not look like another number that was made."""
_PLAIN: dict[Any, Callable[[Maker], Any]] = {
    str: Maker.word,
    int: Maker.number,
    float: Maker.part,
    bool: lambda maker: maker.random.random() < 0.5,
    bytes: lambda maker: maker.word(),
    type(None): lambda maker: None,
}


@cache
def _hints(hint: Any) -> dict[str, Any]:
    return get_type_hints(hint, include_extras=True)


def _bare(hint: Any) -> Any:
    while get_origin(hint) in _WRAPPERS or get_origin(hint) is typing.Annotated:
        hint = get_args(hint)[0]
    return hint


def _members(hint: Any) -> list[Any]:
    found = [one for one in get_args(hint) if one is not type(None) and _can_be_made(one)]
    return found or [type(None)]


def _can_be_made(hint: Any) -> bool:
    hint = _bare(hint)
    origin = get_origin(hint)
    if origin in {typing.Union, types.UnionType}:
        return any(_can_be_made(one) for one in get_args(hint) if one is not type(None))
    if getattr(origin, "__name__", "") in {"IO", "PathLike"}:
        return False
    if origin is not None or hint in _PLAIN or hint in {Any, object, dict} or typing_extensions.is_typeddict(hint):
        return not (origin is not None and get_args(hint) and not all(map(_could, get_args(hint))))
    return isinstance(hint, type) and issubclass(hint, str) and hasattr(hint, "__members__")


def _could(hint: Any) -> bool:
    return not isinstance(hint, type) or get_origin(hint) is not None or _can_be_made(hint)


def kinds(union: Any) -> dict[str, Any]:
    """The members of a union of objects, by the word in their `type`."""
    found = {}
    for one in get_args(union):
        if typing_extensions.is_typeddict(one):
            words = get_args(_unoptional(get_type_hints(one).get("type")))
            found.update(dict.fromkeys(words or ("",), one))
    return found


def _unoptional(hint: Any) -> Any:
    hint = _bare(hint)
    if get_origin(hint) in {typing.Union, types.UnionType}:
        return next(_bare(one) for one in get_args(hint) if one is not type(None))
    return hint


SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
PDF = "JVBERi0xLjQK"


def anthropic_body(seed: int, *, hosted: bool = True) -> dict[str, Any]:
    import anthropic.types.beta as beta
    import anthropic.types.beta.message_create_params as params

    maker = Maker(seed)
    maker.fixed = {
        ("", "input_schema"): lambda: {**SCHEMA, "description": maker.word()},
        ("", "schema"): lambda: {**SCHEMA, "description": maker.word()},
        ("", "budget_tokens"): lambda: 1_024 + maker.random.randint(0, 900),
        ("BetaBase64PDFSourceParam", "data"): maker.word,
        ("BetaTextBlockParam", "text"): maker.word,
    }
    body = maker.fields(params.MessageCreateParamsStreaming if seed % 2 else params.MessageCreateParamsNonStreaming)
    body = {name: value for name, value in body.items() if name not in {"betas", "messages", "tools", "tool_choice"}}
    for name, make in (("temperature", maker.part), ("top_p", maker.part), ("top_k", maker.number)):
        if maker.random.random() < 0.5 and body.get("thinking", {}).get("type") != "enabled":
            body[name] = make()
    blocks = kinds(beta.BetaContentBlockParam)
    said = {
        name: one
        for name, one in blocks.items()
        if name in {"text", "thinking", "redacted_thinking"} or "tool_use" in name
    }
    heard = {name: one for name, one in blocks.items() if name not in said and name != "tool_result"}
    heard = {name: one for name, one in heard.items() if not name.endswith("_result") or name == "search_result"}
    messages = []
    for _ in range(maker.random.randint(1, 3)):
        messages.append({"role": "user", "content": _some(maker, heard)})
        answer = [
            {**block, "input": {maker.word(): maker.word()}} if "input" in block else block
            for block in _some(maker, said)
        ]
        messages.append({"role": "assistant", "content": answer})
        uses = [block["id"] for block in answer if block["type"] == "tool_use"]
        if uses:
            results = [
                {"content": maker.word(), **maker.fields(blocks["tool_result"], 3), "tool_use_id": id_} for id_ in uses
            ]
            messages.append({"role": "user", "content": results + _some(maker, {"text": blocks["text"]})})
    body["messages"] = messages
    tools = kinds(beta.BetaToolUnionParam)
    own = ("bash_20250124", "text_editor_20250728")
    wanted = {name: one for name, one in tools.items() if hosted or name == "custom" or name in own}
    if maker.random.random() < 0.7:
        body["tools"] = _some(maker, {"custom": tools["custom"]}) + _some(maker, wanted)
        body["tool_choice"] = maker.make(beta.BetaToolChoiceParam)
    if not hosted:
        for name in ("mcp_servers", "container", "thread"):
            body.pop(name, None)
    return body


def _some(maker: Maker, choices: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = list(choices)
    picked = [maker.random.choice(names) for _ in range(maker.random.randint(1, 3))]
    return [maker.fields(choices[name], 2) for name in picked]


def chat_body(seed: int, *, hosted: bool = True) -> dict[str, Any]:
    import openai.types.chat as chat
    import openai.types.chat.completion_create_params as params

    maker = Maker(seed)
    maker.fixed = {
        ("", "parameters"): lambda: {**SCHEMA, "description": maker.word()},
        ("", "schema"): lambda: {**SCHEMA, "description": maker.word()},
        ("ChatCompletionAllowedToolsParam", "tools"): lambda: [
            {"type": "function", "function": {"name": maker.word()}}
        ],
        ("FileFile", "file_data"): lambda: f"data:application/pdf;base64,{maker.word()}",
        ("ImageURL", "url"): lambda: f"https://example.com/{maker.word()}",
        ("", "arguments"): lambda: f'{{"path":"{maker.word()}"}}',
        ("", "syntax"): lambda: "lark",
    }
    # A file is in the body, or it is the API's own.
    maker.left_out = {("FileFile", "file_id")} if seed % 3 else {("FileFile", "file_data")}
    streams = params.CompletionCreateParamsStreaming if seed % 2 else params.CompletionCreateParamsNonStreaming
    body = maker.fields(streams)
    for name in ("messages", "tools", "tool_choice", "parallel_tool_calls"):
        body.pop(name, None)
    if "max_tokens" in body:
        body.pop("max_completion_tokens", None)
    messages: list[dict[str, Any]] = [maker.fields(chat.ChatCompletionSystemMessageParam, 2)]
    parts = kinds(chat.ChatCompletionContentPartParam)
    for _ in range(maker.random.randint(1, 3)):
        user = maker.fields(chat.ChatCompletionUserMessageParam, 2)
        user["content"] = _some(maker, parts) if maker.random.random() < 0.7 else maker.word()
        assistant = maker.fields(chat.ChatCompletionAssistantMessageParam, 2)
        assistant["content"] = assistant.get("content") or maker.word()
        results = [
            {**maker.fields(chat.ChatCompletionToolMessageParam, 2), "tool_call_id": call["id"]}
            for call in assistant.get("tool_calls") or ()
        ]
        messages += [user, assistant, *results]
        if maker.random.random() < 0.3:
            messages.append(maker.fields(chat.ChatCompletionDeveloperMessageParam, 2))
    body["messages"] = messages
    if maker.random.random() < 0.7:
        body["tools"] = _some(maker, kinds(chat.ChatCompletionToolUnionParam))
        body["tool_choice"] = maker.make(chat.ChatCompletionToolChoiceOptionParam)
        body["parallel_tool_calls"] = maker.random.random() < 0.5
    if not hosted:
        for name in ("web_search_options", "functions"):
            body.pop(name, None)
    return body


def responses_body(seed: int, *, hosted: bool = True) -> dict[str, Any]:
    import openai.types.responses as responses
    import openai.types.responses.response_create_params as params
    import openai.types.responses.response_input_item_param as items
    import openai.types.responses.tool_param as tools

    maker = Maker(seed)
    maker.fixed = {
        ("", "parameters"): lambda: {**SCHEMA, "description": maker.word()},
        ("", "schema"): lambda: {**SCHEMA, "description": maker.word()},
        ("ToolChoiceAllowedParam", "tools"): lambda: [{"type": "function", "name": maker.word()}],
        ("", "file_data"): lambda: f"data:application/pdf;base64,{maker.word()}",
        ("", "image_url"): lambda: f"https://example.com/{maker.word()}",
        ("", "arguments"): lambda: f'{{"path":"{maker.word()}"}}',
        ("", "call_id"): maker.word,
        ("", "syntax"): lambda: "lark",
    }
    streams = params.ResponseCreateParamsStreaming if seed % 2 else params.ResponseCreateParamsNonStreaming
    body = {
        name: value for name, value in maker.fields(streams).items() if name not in {"input", "tools", "tool_choice"}
    }
    body["model"] = maker.word()
    named = kinds(items.ResponseInputItemParam)
    calls = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
    listed: list[dict[str, Any]] = []
    for _ in range(maker.random.randint(1, 3)):
        message = maker.fields(responses.EasyInputMessageParam, 2)
        message["role"] = maker.random.choice(["user", "developer", "system"])
        if message["role"] != "user":
            message["content"] = [maker.fields(responses.ResponseInputTextParam, 3)]
        listed.append(message)
        own = maker.random.choice([name for name in named if name not in {*calls, *calls.values(), "message", ""}])
        if hosted:
            listed.append(maker.fields(named[own], 3))
        listed.append(maker.fields(responses.ResponseOutputMessageParam, 2))
        call = maker.random.choice(list(calls))
        use = maker.fields(named[call], 3)
        listed += [use, {**maker.fields(named[calls[call]], 3), "call_id": use["call_id"]}]
    body["input"] = listed
    kinds_ = kinds(tools.ToolParam)
    wanted = kinds_ if hosted else {name: kinds_[name] for name in ("function", "custom")}
    if maker.random.random() < 0.7:
        body["tools"] = _some(maker, wanted)
        body["tool_choice"] = maker.make(params.ToolChoice) if hosted else "auto"
    else:
        body.pop("parallel_tool_calls", None)
    if not hosted:
        for name in ("previous_response_id", "conversation", "prompt"):
            body.pop(name, None)
    return body


def gemini_body(seed: int, *, hosted: bool = True) -> dict[str, Any]:
    from google.genai import types

    maker = Maker(seed, camel)
    schema = {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}}
    maker.fixed = {
        ("", "parameters"): lambda: {**schema, "description": maker.word()},
        ("", "response_schema"): lambda: {**schema, "description": maker.word()},
        ("", "response"): lambda: {maker.random.choice(["output", "error", "result", "x"]): maker.word()},
        ("FunctionDeclarationDict", "response"): lambda: {**schema, "description": maker.word()},
        ("", "parameters_json_schema"): lambda: {**SCHEMA, "description": maker.word()},
        ("", "response_json_schema"): lambda: {**SCHEMA, "description": maker.word()},
        ("", "response_mime_type"): lambda: "application/json",
        ("", "mime_type"): lambda: maker.random.choice(["image/png", "application/pdf", "audio/wav"]),
        ("", "args"): lambda: {maker.word(): maker.word()},
        ("", "mode"): lambda: maker.random.choice(["AUTO", "ANY", "NONE", "VALIDATED"]),
        ("", "top_k"): maker.number,
        ("", "thinking_budget"): lambda: 4_000,
        ("", "service_tier"): lambda: maker.random.choice(["flex", "standard", "priority"]),
    }
    body: dict[str, Any] = {"model": maker.word(), "contents": []}
    settings = maker.fields(types.GenerationConfigDict)
    if {"responseSchema", "responseJsonSchema"} <= settings.keys():
        del settings["responseSchema"]
    if {"responseSchema", "responseJsonSchema"} & settings.keys():
        settings["responseMimeType"] = "application/json"
    if settings:
        body["generationConfig"] = settings
    more = maker.fields(
        types.GenerateContentConfigDict, only=("safety_settings", "labels", "cached_content", "service_tier", "store")
    )
    body |= {
        name: value
        for name, value in more.items()
        if maker.random.random() < 0.5 and (hosted or name != "cachedContent")
    }
    body["systemInstruction"] = {"parts": [{"text": maker.word()}]}
    meta = ("media_resolution", "part_metadata", "video_metadata")

    def part(*names: str) -> dict[str, Any]:
        wanted = [maker.random.choice(names), *(name for name in meta if maker.random.random() < 0.2)]
        made = maker.fields(types.PartDict, 2, only=wanted)
        for call in ("functionCall", "functionResponse"):
            if call in made:
                made[call] |= {"name": maker.word(), "id": maker.word()}
        for blob in ("inlineData", "fileData"):
            if blob in made:
                made[blob] |= {"mimeType": made[blob].get("mimeType") or "image/png"}
                made[blob] |= {"data": maker.word()} if blob == "inlineData" else {"fileUri": maker.word()}
        return made

    heard = ["text", "inline_data", "file_data"]
    said = ["text", "function_call", "executable_code", "code_execution_result", "inline_data"]
    for _ in range(maker.random.randint(1, 3)):
        user = [part(*heard) for _ in range(maker.random.randint(1, 3))]
        model = [part(*said) for _ in range(maker.random.randint(1, 3))]
        body["contents"] += [{"role": "user", "parts": user}, {"role": "model", "parts": model}]
        answers = []
        for one in model:
            if "functionCall" in one:
                answer = part("function_response")
                answer["functionResponse"] |= {"id": one["functionCall"]["id"], "name": one["functionCall"]["name"]}
                answer["functionResponse"].setdefault("response", {"output": maker.word()})
                answers.append(answer)
        if answers:
            body["contents"].append({"role": "user", "parts": answers})
    if maker.random.random() < 0.7:
        declared = [maker.fields(types.FunctionDeclarationDict, 2) | {"name": maker.word()} for _ in range(2)]
        for one in declared:
            if {"parameters", "parametersJsonSchema"} <= one.keys():
                del one["parameters"]
        body["tools"] = [{"functionDeclarations": declared}]
        if hosted:
            body["tools"] += [{"googleSearch": {}}, {"urlContext": {}}]
        body["toolConfig"] = maker.fields(types.ToolConfigDict)
    return body


BODIES: dict[str, Callable[..., dict[str, Any]]] = {
    "anthropic": anthropic_body,
    "openai-chat": chat_body,
    "openai-responses": responses_body,
    "gemini": gemini_body,
}
