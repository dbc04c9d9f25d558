"""The fields of the four APIs' bodies: which noun of `ferrule.wire` holds each, and which have no place elsewhere.

A field that stands in no table is its API's own. It is kept as `Extra`, goes back to that API as it came, and is named
among what was dropped where a body goes to another API.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from ferrule.core.content import Cache, Extra
from ferrule.wire import Definition, Foreign, ModelRequest, Part, WireError, origin

Noun = str | Callable[[Any], "str | None"]
Shape = Mapping[str, Noun] | str
"""The fields of an object and their nouns: empty for what needs no noun of its own, `>shape` for what holds more, a
function where the value decides. A name in place of a table is the noun of the whole object."""


class Dropped(NamedTuple):
    """A field that the other API has no place for."""

    name: str
    where: str
    """Its path in the body that was translated."""


TWINS = frozenset(("moderation", "prompt_cache_options", "prompt_cache_retention", "safety_identifier"))
"""Fields of a body that both OpenAI APIs have under one name and with one meaning."""
_OPENAI = frozenset(("openai-chat", "openai-responses"))

NEEDED = MappingProxyType(
    {
        "anthropic": ("mcp_servers", "container", "thread"),
        "openai-chat": ("web_search_options", "functions"),
        "openai-responses": ("previous_response_id", "conversation", "prompt"),
        "gemini": ("cachedContent",),
    }
)
"""What a request depends on and only its own API can have: without it, the answer would be to another question."""

ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
_MODEL = frozenset(("assistant", "model"))
_FILES = frozenset(("image", "document", "address", "title", "address title"))


def _include_kind(value: Any) -> str | None:
    return "" if isinstance(value, list) and set(map(str, value)) <= {ENCRYPTED, LOGPROBS} else None


def _empty_kind(value: Any) -> str | None:
    """A field of answers that clients send back empty."""
    return None if value else ""


def _media(blob: Mapping[str, Any]) -> str:
    kind = str(blob.get("mimeType") or blob.get("mime_type") or "")
    if not kind or kind.startswith("image/"):
        return "image"
    return "document" if is_document(kind) else "other"


def _grammar(value: Any) -> str | None:
    return "grammar" if isinstance(value, Mapping) and value.get("type") == "grammar" else ""


def _block_kind(block: Mapping[str, Any]) -> str:
    """A file that the API keeps, or one made of blocks, is a kind of its own."""
    kind, source = str(block.get("type")), block.get("source")
    if kind not in {"image", "document"} or not isinstance(source, Mapping):
        return kind
    form = source.get("type")
    if form == "url" and kind == "document":
        return "document at"
    return kind if form in {"base64", "url", "text"} else f"{kind} of its own"


def _file_kind(part: Mapping[str, Any], file: Any) -> str:
    """The same for the OpenAI APIs."""
    kind = str(part.get("type"))
    if kind not in {"file", "input_file"} or not isinstance(file, Mapping):
        return kind
    if file.get("file_id") or bool(file.get("file_url")) == bool(file.get("file_data")):
        return f"{kind} of its own"
    return f"{kind} at" if file.get("file_url") else kind


def _choice_kind(choice: Mapping[str, Any]) -> str:
    """A choice among tools is known elsewhere only if it is of one that must be used."""
    if choice.get("type") != "allowed_tools":
        return "one"
    allowed = choice.get("allowed_tools", choice)
    return "one" if allowed.get("mode") == "required" and len(allowed.get("tools") or ()) == 1 else "some"


def _calling_kind(config: Mapping[str, Any]) -> str:
    names = config.get("allowedFunctionNames") or config.get("allowed_function_names") or ()
    return "one" if not names or (config.get("mode") == "ANY" and len(names) == 1) else "some"


def is_document(media_type: str) -> bool:
    """Is it a kind of file that all four APIs read?"""
    return media_type == "application/pdf" or media_type.startswith("text/")


_ANTHROPIC: dict[str, Shape] = {
    "body": {
        "model": "",
        "max_tokens": "",
        "messages": ">message",
        "system": ">block",
        "tools": ">tool",
        "tool_choice": ">choice",
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "stop_sequences": "stop",
        "stream": "",
        "thinking": ">thinking",
        "output_config": ">output",
        "metadata": ">metadata",
        "service_tier": "service_tier",
    },
    "thinking:enabled": {"type": "", "budget_tokens": "thinking_tokens"},
    "thinking:disabled": {"type": "thinking_tokens"},
    "thinking:adaptive": {"type": "thinking_tokens"},
    "output": {"effort": "thinking_tokens", "format": ">format"},
    "format": {"type": "", "schema": "format"},
    "metadata": {"user_id": "user"},
    "choice": {"type": "choice", "name": "", "disable_parallel_tool_use": "choice.parallel"},
    "message": {"role": "", "content": ">block"},
    "block:text": {"type": "", "text": "", "cache_control": "cache"},
    "block:image": {"type": "", "source": ">image", "cache_control": "cache"},
    "image": {"type": "", "media_type": "", "data": "image", "url": "image"},
    "block:document": {"type": "", "source": ">document", "title": "title", "cache_control": "cache"},
    "block:document at": {"type": "", "source": ">document", "title": "address title", "cache_control": "cache"},
    "document": {"type": "", "media_type": "", "data": "document", "url": "address"},
    "block:tool_use": {"type": "", "id": "", "name": "", "input": "", "cache_control": "cache"},
    "block:tool_result": {
        "type": "",
        "tool_use_id": "",
        "content": ">block",
        "is_error": "",
        "cache_control": "cache",
    },
    "block:thinking": "thinking",
    "block:redacted_thinking": "thinking",
    "tool": {
        "type": "",
        "name": "",
        "description": "",
        "input_schema": "",
        "strict": "strict",
        "cache_control": "cache",
    },
}
_MARKS = {"prompt_cache_breakpoint": "cache", "cache_control": "cache"}
_CHAT: dict[str, Shape] = {
    "body": {
        "model": "",
        "messages": ">message",
        "tools": ">tool",
        "tool_choice": ">choice",
        "parallel_tool_calls": "choice.parallel",
        "max_tokens": "",
        "max_completion_tokens": "",
        "reasoning_effort": "thinking_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "stop": "stop",
        "stream": "",
        "stream_options": "",
        "seed": "seed",
        "frequency_penalty": "frequency_penalty",
        "presence_penalty": "presence_penalty",
        "n": "n",
        "logprobs": "logprobs",
        "top_logprobs": "top_logprobs",
        "response_format": ">format",
        "verbosity": "verbosity",
        "user": "user",
        "metadata": "metadata",
        "service_tier": "service_tier",
        "prompt_cache_key": "cache_key",
        "store": "store",
    },
    "choice:one": {"type": "choice", "function": "", "custom": "", "allowed_tools": ""},
    "choice:some": {"type": "choice", "allowed_tools": ">allowed"},
    "allowed": {"mode": ""},
    "format": {"type": "format", "json_schema": ">schema"},
    "schema": {"name": "format.name", "schema": "", "strict": "format.strict", "description": "format.words"},
    "message:system": {"role": "", "content": ">part"},
    "message:developer": {"role": "", "content": ">part"},
    "message:user": {"role": "", "content": ">part"},
    "message:tool": {"role": "", "tool_call_id": "", "content": ">part", "name": "tool"},
    "message:assistant": {
        "role": "",
        "content": ">part",
        "tool_calls": ">call",
        "refusal": "",
        "annotations": _empty_kind,
        "reasoning_content": "thinking",
        "reasoning": "thinking",
        "reasoning_details": "thinking",
    },
    "part:text": {"type": "", "text": "", **_MARKS},
    "part:refusal": {"type": "", "refusal": ""},
    "part:image_url": {"type": "", "image_url": ">address", **_MARKS},
    "address": {"url": "image", "detail": "detail"},
    "part:file": {"type": "", "file": ">file", **_MARKS},
    "file": {"file_data": "document", "filename": "title"},
    "call:function": {"id": "", "type": "", "function": ""},
    "call:custom": {"id": "", "type": "", "custom": ""},
    "tool:function": {"type": "", "function": ">function", **_MARKS},
    "function": {"name": "", "description": "", "parameters": "", "strict": "strict"},
    "tool:custom": {"type": "", "custom": ">custom"},
    "custom": {"name": "", "description": "", "format": _grammar},
}
_TEXT: Shape = {"type": "", "text": "", "annotations": _empty_kind, "logprobs": _empty_kind, **_MARKS}
_RESPONSES: dict[str, Shape] = {
    "body": {
        "model": "",
        "input": ">item",
        "instructions": "",
        "tools": ">tool",
        "tool_choice": ">choice",
        "parallel_tool_calls": "choice.parallel",
        "max_output_tokens": "",
        "reasoning": ">reasoning",
        "temperature": "temperature",
        "top_p": "top_p",
        "top_logprobs": "top_logprobs",
        "stream": "",
        "text": ">text",
        "user": "user",
        "metadata": "metadata",
        "service_tier": "service_tier",
        "prompt_cache_key": "cache_key",
        "store": "store",
        "include": _include_kind,
    },
    "choice:one": {"type": "choice", "name": "", "mode": "", "tools": ""},
    "choice:some": {"type": "choice", "mode": ""},
    "reasoning": {"effort": "thinking_tokens", "summary": ""},
    "text": {"format": ">format", "verbosity": "verbosity"},
    "format": {
        "type": "format",
        "name": "format.name",
        "schema": "",
        "strict": "format.strict",
        "description": "format.words",
    },
    "item:message": {"type": "", "role": "", "content": ">content"},
    "item:function_call": {"type": "", "call_id": "", "name": "", "namespace": "namespace", "arguments": ""},
    "item:custom_tool_call": {"type": "", "call_id": "", "name": "", "namespace": "namespace", "input": ""},
    "item:function_call_output": {"type": "", "call_id": "", "output": ">content", "name": "tool"},
    "item:custom_tool_call_output": {"type": "", "call_id": "", "output": ">content", "name": "tool"},
    "item:reasoning": "thinking",
    "content:input_text": _TEXT,
    "content:output_text": _TEXT,
    "content:text": _TEXT,
    "content:refusal": {"type": "", "refusal": ""},
    "content:input_image": {"type": "", "image_url": "image", "detail": "detail", **_MARKS},
    "content:input_file": {"type": "", "file_data": "document", "filename": "title", **_MARKS},
    "content:input_file at": {"type": "", "file_url": "address", "filename": "address title", **_MARKS},
    "tool:function": {"type": "", "name": "", "description": "", "parameters": "", "strict": "strict"},
    "tool:custom": {"type": "", "name": "", "description": "", "format": _grammar},
}
_GEMINI: dict[str, Shape] = {
    "body": {
        "model": "",
        "contents": ">content",
        "systemInstruction": ">content",
        "tools": ">tool",
        "toolConfig": ">choice",
        "generationConfig": ">settings",
        "serviceTier": "service_tier",
        "store": "store",
    },
    "settings": {
        "maxOutputTokens": "",
        "temperature": "temperature",
        "topP": "top_p",
        "topK": "top_k",
        "stopSequences": "stop",
        "candidateCount": "n",
        "seed": "seed",
        "frequencyPenalty": "frequency_penalty",
        "presencePenalty": "presence_penalty",
        "responseLogprobs": "logprobs",
        "logprobs": "top_logprobs",
        "responseMimeType": "format",
        "responseSchema": "",
        "responseJsonSchema": "",
        "thinkingConfig": ">thinking",
    },
    "thinking": {"thinkingBudget": "thinking_tokens", "thinkingLevel": "thinking_tokens", "includeThoughts": ""},
    "choice": {"functionCallingConfig": ">calling"},
    "calling:one": {"mode": "choice", "allowedFunctionNames": ""},
    "calling:some": {"mode": "choice"},
    "content": {"role": "", "parts": ">part"},
    "part:thought": "thinking",
    "part": {
        "text": "",
        "thought": "",
        "thoughtSignature": "thinking",
        "inlineData": ">blob",
        "fileData": ">file",
        "functionCall": ">call",
        "functionResponse": ">response",
    },
    "blob:image": {"mimeType": "", "data": "image"},
    "blob:document": {"mimeType": "", "data": "document", "displayName": "title"},
    "file:image": {"mimeType": "", "fileUri": "image"},
    "file:document": {"mimeType": "", "fileUri": "address", "displayName": "address title"},
    "call": {"id": "", "name": "", "args": ""},
    "response": {"id": "", "name": "", "response": "", "parts": ">part"},
    "tool": {"functionDeclarations": ">declaration"},
    "declaration": {"name": "", "description": "", "parameters": "", "parametersJsonSchema": ""},
}
SHAPES: Mapping[str, Mapping[str, Shape]] = MappingProxyType(
    {"anthropic": _ANTHROPIC, "openai-chat": _CHAT, "openai-responses": _RESPONSES, "gemini": _GEMINI}
)
"""For each API: its objects, by the name of the shape and, behind a colon, of the kind."""

_KINDS: Mapping[str, Mapping[str, Callable[[Mapping[str, Any]], Any]]] = MappingProxyType(
    {
        "anthropic": {
            "block": _block_kind,
            "thinking": lambda one: one.get("type"),
        },
        "openai-chat": {
            "message": lambda one: one.get("role"),
            "choice": _choice_kind,
            "part": lambda one: _file_kind(one, one.get("file")),
            "call": lambda one: one.get("type") or "function",
            "tool": lambda one: one.get("type") or "function",
        },
        "openai-responses": {
            "choice": _choice_kind,
            "item": lambda one: one.get("type") or ("message" if "role" in one else "item_reference"),
            "content": lambda one: _file_kind(one, one),
            "tool": lambda one: one.get("type"),
        },
        "gemini": {
            "calling": _calling_kind,
            "part": lambda one: "thought" if one.get("thought") else "",
            "blob": _media,
            "file": _media,
        },
    }
)
"""How the kind of an object is told, for the shapes that have several."""

LACKS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "anthropic": frozenset(("said file", "detail", "grammar", "namespace", "tool")),
        "openai-chat": frozenset(("said file", "address", "address title", "cache", "namespace", "tool")),
        "openai-responses": frozenset(("said file", "cache", "tool")),
        "gemini": frozenset(("address title", "cache", "detail", "grammar", "namespace", "strict", "title")),
    }
)
"""The nouns of a conversation and of tools that an API has no place for. What holds for the nouns of a body is seen
when it is written and read again."""


def fields(wire: str, body: Mapping[str, Any]) -> Iterator[tuple[str, str | None, Any, str]]:
    """The fields of a body: the path, the noun (None for what is the API's own), the value, and who says it."""
    yield from _walk(wire, "body", body, "", "")


def _walk(wire: str, name: str, value: Any, path: str, role: str) -> Iterator[tuple[str, str | None, Any, str]]:
    if isinstance(value, list | tuple):
        for at, member in enumerate(value):
            yield from _walk(wire, name, member, f"{path}[{at}]", role)
        return
    if not isinstance(value, Mapping):
        return  # words that stand in place of a list of parts
    kind = _KINDS[wire].get(name)
    shape = SHAPES[wire].get(f"{name}:{kind(value) or ''}".rstrip(":") if kind is not None else name)
    if shape is None or isinstance(shape, str):
        yield path, shape, value, role
        return
    role = str(value.get("role") or role)
    for key, member in value.items():
        if member is None or member == []:
            continue
        where = f"{path}.{key}" if path else key
        noun = shape.get(_SPELLINGS.get(wire, str)(key))
        noun = noun(member) if callable(noun) else noun
        if noun is not None and noun.startswith(">"):
            yield from _walk(wire, noun[1:], member, where, role)
        else:
            yield where, noun, member, role


_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
"""All that a body loses onto its own API: a model that thinks refuses other values than its own."""


class BodyTranslation(NamedTuple):
    """A body on its way from one API to another."""

    source: str
    target: str
    asked: ModelRequest
    """What the body says."""
    back: ModelRequest
    """What the other API's body says, read again."""
    marks: bool = False
    """Are marks for the cache written to an API that not all servers know them from?"""


def find_dropped(body: Mapping[str, Any], passage: BodyTranslation) -> list[Dropped]:
    """What a body loses on its way. What was asked need have no turns: those are looked for in the body itself."""
    is_own = passage.source == passage.target
    found = []
    for path, noun, value, role in fields(passage.source, body):
        if is_own and noun not in _SAMPLING:
            continue
        if noun is None:
            lost = not (path in TWINS and {passage.source, passage.target} == _OPENAI) and not _is_default(path, value)
        else:
            lost = _is_lost("said file" if noun in _FILES and role in _MODEL else noun, value, passage)
        if lost:
            found.append(Dropped(_name(path, value), path))
    return found


def _name(path: str, value: Any) -> str:
    """The name of a field, or the kind of a block that was dropped whole."""
    if path.endswith("]") and isinstance(value, Mapping) and isinstance(value.get("type"), str):
        return str(value["type"])
    return path.rpartition(".")[2]


def _is_lost(noun: str, value: Any, passage: BodyTranslation) -> bool:
    if noun == "thinking":
        return not _is_packed(value, passage.target)
    if noun in LACKS[passage.target]:
        return not (noun == "cache" and passage.marks) and not (noun == "strict" and not value)
    holder, _, member = noun.partition(".")
    if holder not in ModelRequest.__struct_fields__:
        return False
    wanted, kept = getattr(passage.asked, holder), getattr(passage.back, holder)
    if member:
        wanted, kept = getattr(wanted, member, None), getattr(kept, member, None)
    return _is_empty(kept) and not (_is_empty(wanted) and _is_default(noun, value))


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", ())


def _is_default(name: str, value: Any) -> bool:
    """Does it only say what holds in any case?"""
    return (name, value) in (("store", False), ("background", False), ("n", 1), ("logprobs", False))


def _is_packed(value: Any, target: str) -> bool:
    """Thinking of the target's own, which comes back through a client of another API."""
    return isinstance(value, Mapping) and origin(value) == target


def camel(name: str) -> str:
    """A name in the spelling of Gemini's JSON."""
    if "_" not in name:
        return name
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_SPELLINGS: Mapping[str, Callable[[str], str]] = MappingProxyType({"gemini": camel})
"""How the names of a body are read, where an API takes two spellings."""


def field_names(wire: str, name: str) -> frozenset[str]:
    """The fields of a shape that nouns hold."""
    shape = SHAPES[wire][name]
    assert not isinstance(shape, str)
    return frozenset(shape)


def others(holder: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """The fields that have no noun; null and an empty list say nothing."""
    if holder.keys() <= names:
        return {}
    return {key: value for key, value in holder.items() if key not in names and value is not None and value != []}


def present(**values: Any) -> dict[str, Any]:
    """The fields that say something."""
    return {name: value for name, value in values.items() if value is not None and value != ""}


def own(thing: Any, wire: str) -> dict[str, Any] | None:
    """What an API itself had said of something; None where it is another's, or nothing."""
    extra: Extra | None = thing.extra
    return extra.fields if extra is not None and extra.wire == wire else None


def bare(parts: Iterable[Part]) -> tuple[Part, ...]:
    """What a model said, without what its API says of it besides: that is not for sending back."""
    return tuple(
        part if isinstance(part, Foreign) or part.extra is None else msgspec.structs.replace(part, extra=None)
        for part in parts
    )


def body_fields(asked: ModelRequest, wire: str) -> dict[str, Any]:
    """The fields of a body that have no noun and go to this API. Raises WireError where it cannot do without others."""
    extra = asked.extra
    if extra is None:
        return {}
    if extra.wire == wire:
        return extra.fields
    for name in NEEDED[extra.wire]:
        if extra.fields.get(name):
            raise WireError(f"{name} names what only {extra.wire} has, and cannot be carried over: leave it out.")
    return {name: extra.fields[name] for name in TWINS & extra.fields.keys()} if {extra.wire, wire} == _OPENAI else {}


def refuse_hosted(definition: Definition, at: int) -> None:
    """Raises WireError for a tool that runs inside of another API."""
    if definition.hosted:
        raise WireError(
            f"tools[{at}] is {definition.name!r}: a tool that runs inside of its own API and cannot be carried over."
        )


def cache_in(block: Mapping[str, Any]) -> Cache | None:
    """The mark that asks an API to keep what it has read, by either of its names."""
    mark = block.get("cache_control") or block.get("prompt_cache_breakpoint")
    if not isinstance(mark, Mapping):
        return None
    ttl = mark.get("ttl")
    return Cache(ttl if isinstance(ttl, str) else "")


_TIERS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "anthropic": {"auto": "auto", "standard": "standard_only"},
        "openai-chat": {"auto": "auto", "standard": "default", "flex": "flex", "priority": "priority"},
        "openai-responses": {"auto": "auto", "standard": "default", "flex": "flex", "priority": "priority"},
        "gemini": {"standard": "standard", "flex": "flex", "priority": "priority"},
    }
)


def tier_out(asked: ModelRequest, wire: str) -> str:
    """The API's own word for how urgent a request is; empty where it has none."""
    return _TIERS[wire].get(asked.service_tier, "")


def tier_in(word: str, wire: str) -> str:
    """The inverse; empty for a word that only one API has."""
    return next((tier for tier, said in _TIERS[wire].items() if said == word), "")
