"""Convert whole Anthropic Messages requests and answers to and from neutral turns.

Streams are handled by `anthropic_stream`.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from ferrule.core.content import Cache, Document, Extra, Image, Text
from ferrule.wire import (
    Content,
    Definition,
    Foreign,
    ModelRequest,
    ModelResponse,
    Part,
    Reason,
    ResponseFormat,
    Result,
    Thinking,
    ToolChoice,
    Turn,
    Usage,
    Use,
    WireError,
    as_list,
    as_object,
    budget,
    conversation,
    count_or_none,
    flag_or,
    is_own,
    list_or,
    number_or_none,
    object_or,
    own_word,
    pack_thinking,
    refuse_failure,
    text_of,
    text_or,
    texts_of,
    tokens,
    unpack_thinking,
)
from ferrule.wire.conversation import Role, object_out, omission_note, order_turns, plain_text, reason_of
from ferrule.wire.fields import (
    bare,
    body_fields,
    cache_in,
    field_names,
    others,
    own,
    present,
    refuse_hosted,
    tier_in,
    tier_out,
)
from ferrule.wire.schema import builtin

NAME = "anthropic"
_SILENT = "The tool failed and said nothing."
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_MESSAGE = field_names(NAME, "message")
_KNOWN = {
    kind: field_names(NAME, f"block:{kind}") for kind in ("text", "image", "document", "tool_use", "tool_result")
} | {
    "thinking": frozenset(("type", "thinking", "signature")),
    "redacted_thinking": frozenset(("type", "data")),
}
_PDF = "application/pdf"


def turns_out(turns: Sequence[Turn]) -> dict[str, Any]:
    """`system` and `messages`. What this API refuses is left out: blank text, and thinking without a signature."""
    given = list(turns)
    # What a caller of this API has said in the middle as the system stays there; all else stands above.
    above = [turn for turn in given if turn.role == "system" and own(turn, NAME) is None]
    rest = order_turns(turn for turn in given if turn.role != "system" or own(turn, NAME) is not None)
    messages = [_message_out(turn, blocks) for turn in rest if (blocks := _blocks_out(turn))]
    system = _system_out(order_turns(above))
    return {"system": system, "messages": messages} if system else {"messages": messages}


def _system_out(turns: Sequence[Turn]) -> str | list[dict[str, Any]]:
    """One text, or blocks where something is said of one of them."""
    texts = [part for turn in turns for part in turn.parts if isinstance(part, Text) and part.text]
    if all(text.cache is None and text.extra is None for text in texts):
        return "\n\n".join(text.text for text in texts)
    return [block for text in texts if (block := _block_out(text, is_user=True)) is not None]


def _message_out(turn: Turn, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": turn.role, "content": blocks, **(own(turn, NAME) or {})}


def _blocks_out(turn: Turn) -> list[dict[str, Any]]:
    return [block for part in turn.parts if (block := _block_out(part, is_user=turn.role == "user")) is not None]


def _block_out(part: Part, *, is_user: bool) -> dict[str, Any] | None:
    if not isinstance(part, Foreign) and (kept := own(part, NAME)) is not None:
        return kept
    if isinstance(part, Text):
        return mark_block({"type": "text", "text": part.text}, part.cache) if part.text.strip() else None
    if isinstance(part, Use):
        use = {
            "type": "tool_use",
            "id": conversation.encode_id(part.id, conversation.PLAIN),
            "name": part.name,
            "input": object_out(part),
        }
        return mark_block(use, part.cache)
    if isinstance(part, Result):
        return _result_out(part)
    if isinstance(part, Thinking):
        return _thinking_out(part) if is_own(part, NAME) else None
    if isinstance(part, Image):
        return mark_block({"type": "image", "source": _source_out(part)}, part.cache) if is_user else None
    if isinstance(part, Document):
        return _document_out(part) if is_user else None
    if part.wire == NAME:
        return part.block
    return {"type": "text", "text": omission_note(part)} if is_user else None


def _thinking_out(part: Thinking) -> dict[str, Any] | None:
    if part.sealed and not part.signature:
        return {"type": "redacted_thinking", "data": part.sealed}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature} if part.signature else None


def mark_block(block: dict[str, Any], cache: Cache | None) -> dict[str, Any]:
    """A block with the mark that has the API keep what it has read until there."""
    if cache is None:
        return block
    # Other APIs have other spans of time; this one refuses them.
    span = {"ttl": cache.ttl} if cache.ttl in {"5m", "1h"} else {}
    return {**block, "cache_control": {"type": "ephemeral", **span}}


def _source_out(image: Image) -> dict[str, Any]:
    if image.url:
        return {"type": "url", "url": image.url}
    return {"type": "base64", "media_type": image.media_type, "data": image.data}


def _document_out(document: Document) -> dict[str, Any]:
    if document.url:
        source = {"type": "url", "url": document.url}
    elif document.media_type == _PDF:
        source = {"type": "base64", "media_type": _PDF, "data": document.data}
    elif text := plain_text(document):
        source = {"type": "text", "media_type": "text/plain", "data": text}
    else:
        return {"type": "text", "text": omission_note(Foreign("", f"document ({document.media_type})", {}))}
    block = {"type": "document", "source": source}
    return mark_block({**block, "title": document.title} if document.title else block, document.cache)


def _result_out(result: Result) -> dict[str, Any]:
    if (kept := own(result, NAME)) is not None:
        return kept
    content = [block for part in result.parts if (block := _block_out(part, is_user=True)) is not None]
    out: dict[str, Any] = {"type": "tool_result", "tool_use_id": conversation.encode_id(result.id, conversation.PLAIN)}
    if result.failed:
        out["is_error"] = True
        # The API refuses a failure without words.
        content = content or [{"type": "text", "text": _SILENT}]
    if content:
        out["content"] = content
    return mark_block(out, result.cache)


def turns_in(body: Any) -> tuple[Turn, ...]:
    """The conversation of a body: its `system` and its `messages`."""
    given = as_object(body, "body")
    system = content_in(given.get("system"), "system") if given.get("system") else ()
    turns = [Turn("system", tuple(_only_text(part) for part in system))] if system else []
    for at, one in enumerate(list_or(given, "messages", "body")):
        where = f"messages[{at}]"
        message = as_object(one, where)
        role = _ROLES.get(text_of(message, "role", where))
        if role is None:
            raise WireError(f"{where}.role must be user or assistant, and is {message['role']!r}.")
        more = others(message, _MESSAGE)
        extra = Extra(NAME, more) if more or role == "system" else None
        turns.append(Turn(role, content_in(message.get("content"), f"{where}.content"), extra))
    return tuple(turns)


def _only_text(part: Part) -> Text:
    if isinstance(part, Text):
        return part
    raise WireError("system must be text only.")


def content_in(content: Any, where: str) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_block_in(block, f"{where}[{at}]") for at, block in enumerate(as_list(content, where)))


def _block_in(given: Any, where: str) -> Part:
    block = as_object(given, where)
    kind = text_of(block, "type", where)
    names = _KNOWN.get(kind)
    if names is None:
        return Foreign(NAME, kind, block)
    part = _parse_block(block, kind, where)
    # What has more fields than the noun goes back whole.
    if isinstance(part, Foreign) or not others(block, names):
        return part
    return msgspec.structs.replace(part, extra=Extra(NAME, block))


def _parse_block(block: dict[str, Any], kind: str, where: str) -> Part:
    cache = cache_in(block) if "cache_control" in block else None
    if kind == "text":
        return Text(text_of(block, "text", where), cache)
    if kind == "tool_use":
        values = as_object(block.get("input", {}), f"{where}.input")
        id_ = conversation.decode_id(text_of(block, "id", where), conversation.PLAIN)
        return Use(id_, text_of(block, "name", where), values, cache=cache)
    if kind == "tool_result":
        return _result_in(block, where, cache)
    if kind == "image":
        return _image_in(block, where, cache)
    if kind == "document":
        return _document_in(block, where, cache)
    if kind == "thinking":
        words, signature = text_of(block, "thinking", where), text_or(block, "signature", where)
        return unpack_thinking(words, signature, NAME) or Thinking(words, signature, wire=NAME)
    return Thinking("", sealed=text_of(block, "data", where), wire=NAME)


def _image_in(block: dict[str, Any], where: str, cache: Cache | None) -> Image | Foreign:
    source = as_object(block.get("source"), f"{where}.source")
    kind = text_of(source, "type", f"{where}.source")
    if kind == "base64":
        media_type, data = text_of(source, "media_type", f"{where}.source"), text_of(source, "data", f"{where}.source")
        return Image(media_type, data, cache=cache)
    if kind == "url":
        return Image("", "", text_of(source, "url", f"{where}.source"), cache=cache)
    return Foreign(NAME, "image", block)


def _document_in(block: dict[str, Any], where: str, cache: Cache | None) -> Document | Foreign:
    """A file that the API itself keeps, or one that is made of blocks, is known only to this API."""
    source, inside = as_object(block.get("source"), f"{where}.source"), f"{where}.source"
    title = text_or(block, "title", where)
    kind = source.get("type")
    if kind == "base64":
        return Document(
            text_or(source, "media_type", inside, _PDF), text_of(source, "data", inside), title=title, cache=cache
        )
    if kind == "text":
        media_type = text_or(source, "media_type", inside, "text/plain")
        return Document(media_type, text=text_of(source, "data", inside), title=title, cache=cache)
    if kind == "url":
        return Document(_PDF, url=text_of(source, "url", inside), title=title, cache=cache)
    return Foreign(NAME, "document", block)


def _result_in(block: dict[str, Any], where: str, cache: Cache | None) -> Result:
    content = block.get("content")
    given = () if content is None or content == "" else content_in(content, f"{where}.content")
    parts = tuple(part for part in given if isinstance(part, Content))
    if len(parts) != len(given):
        raise WireError(f"{where}.content must be text, images and documents only.")
    failed = bool(flag_or(block, "is_error", where, otherwise=False))
    if failed and parts == (Text(_SILENT),):
        parts = ()
    return Result(
        conversation.decode_id(text_of(block, "tool_use_id", where), conversation.PLAIN), parts, failed, cache=cache
    )


def results_out(results: Sequence[Result], uses: Sequence[Use] = ()) -> list[dict[str, Any]]:  # noqa: ARG001 - other wires look
    """The one message that answers the calls of the turn before."""
    return [{"role": "user", "content": [_result_out(result) for result in results]}] if results else []


def answer_block(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Thinking) and not is_own(part, NAME):
        return {"type": "thinking", "thinking": part.text, "signature": pack_thinking(part)}
    if isinstance(part, Thinking) and not part.sealed:
        # Words without a signature may be shown, but not sent back; `turns_out` leaves them out.
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    return _block_out(part, is_user=False)


MAX_TOKENS = 8_192
"""Asked for where the caller says nothing: this API wants a number."""
LEAST_THINKING_TOKENS = 1_024
LEAST_TOP_P = 0.95
"""While it thinks, the API takes no less."""

_REASONS: dict[str, Reason] = {
    "end_turn": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
    "stop_sequence": "stopped",
}
_STOPS: dict[Reason, str] = {
    "end": "end_turn",
    "tools": "tool_use",
    "length": "max_tokens",
    "refused": "refusal",
    "stopped": "stop_sequence",
}
_BODY = field_names(NAME, "body")
_TOOL = field_names(NAME, "tool")
_THINKING = field_names(NAME, "thinking:enabled")
_HOSTED = re.compile(r"_\d{8}$|^tool_search_tool_|^mcp_toolset$")
"""The types of tools that run inside of the API: mostly they end in a date."""
_MIXED = frozenset(("metadata", "output_config", "thinking"))
"""Fields of which a noun holds a part."""
_CHOICES: dict[str, Literal["auto", "any", "none", "tool"]] = {
    "auto": "auto",
    "any": "any",
    "none": "none",
    "tool": "tool",
}


def definitions_out(definitions: Iterable[Definition]) -> list[dict[str, Any]]:
    """The schemas in it are the definitions' own: whoever wants to change one copies it first."""
    return [_definition_out(one, at) for at, one in enumerate(definitions)]


def _definition_out(one: Definition, at: int) -> dict[str, Any]:
    if (kept := own(one, NAME)) is not None:
        return kept
    refuse_hosted(one, at)
    out = {
        "name": one.name,
        "description": one.words,
        "input_schema": one.schema if one.schema.get("type") == "object" else {**one.schema, "type": "object"},
    }
    return mark_block({**out, "strict": True} if one.strict else out, one.cache)


def definitions_in(definitions: Any) -> tuple[Definition, ...]:
    """A tool that runs inside of the API is read too, but goes back only there."""
    return tuple(_definition_in(one, f"tools[{at}]") for at, one in enumerate(as_list(definitions, "tools")))


def _definition_in(given: Any, where: str) -> Definition:
    tool = as_object(given, where)
    kind = text_or(tool, "type", where, "custom")
    cache = cache_in(tool) if "cache_control" in tool else None
    if found := builtin(kind, text_or(tool, "name", where)):
        return Definition(found.name, found.words, found.schema, cache=cache, extra=Extra(NAME, tool))
    if kind != "custom" and not _HOSTED.search(kind):
        raise WireError(f"{where}.type must be custom or a tool of the API's own, and is {kind!r}.")
    if kind != "custom":
        return Definition(text_or(tool, "name", where) or kind, "", {}, extra=Extra(NAME, tool), hosted=True)
    schema = as_object(tool.get("input_schema"), f"{where}.input_schema")
    name, words = text_of(tool, "name", where), text_or(tool, "description", where)
    strict = flag_or(tool, "strict", where, otherwise=None)
    extra = Extra(NAME, tool) if others(tool, _TOOL) or strict is False else None
    return Definition(name, words, schema, strict=strict, cache=cache, extra=extra)


def choice_out(choice: ToolChoice) -> dict[str, Any]:
    out: dict[str, Any] = {"type": choice.kind}
    if choice.kind == "tool":
        out["name"] = choice.name
    if choice.parallel is not None and choice.kind != "none":
        out["disable_parallel_tool_use"] = not choice.parallel
    return out


def choice_in(choice: Any) -> ToolChoice | None:
    if choice is None:
        return None
    given = as_object(choice, "tool_choice")
    said = text_of(given, "type", "tool_choice")
    kind = _CHOICES.get(said)
    if kind is None:
        raise WireError(f"tool_choice.type must be auto, any, none or tool, and is {said!r}.")
    alone = flag_or(given, "disable_parallel_tool_use", "tool_choice", otherwise=None)
    name = text_of(given, "name", "tool_choice") if kind == "tool" else ""
    return ToolChoice(kind, name, None if alone is None else not alone)


def asked_out(asked: ModelRequest) -> dict[str, Any]:
    """A body for `/v1/messages`."""
    more = body_fields(asked, NAME)
    out: dict[str, Any] = {"model": asked.model, **_lengths_out(asked, more), **turns_out(asked.turns)}
    if asked.definitions:
        out["tools"] = definitions_out(asked.definitions)
        if asked.choice is not None:
            out["tool_choice"] = choice_out(asked.choice)
    out |= _sampling_out(asked, thinks=out.get("thinking", {}).get("type") == "enabled")
    out |= present(
        stop_sequences=list(asked.stop) or None,
        output_config=_config_out(asked, more.get("output_config")) or None,
        metadata=({**more.get("metadata", {}), **present(user_id=asked.user)}) or None,
        service_tier=tier_out(asked, NAME),
        stream=asked.stream or None,
    )
    return out | {name: value for name, value in more.items() if name not in _MIXED}


def _sampling_out(asked: ModelRequest, *, thinks: bool) -> dict[str, Any]:
    """While it thinks, the API takes no other temperature than its own, and hardly cuts what it draws from."""
    given: dict[str, float | None] = {"top_p": asked.top_p}
    if thinks:
        given = {"top_p": asked.top_p if (asked.top_p or 0) >= LEAST_TOP_P else None}
    else:
        given["temperature"] = None if asked.temperature is None else min(asked.temperature, 1.0)
        given["top_k"] = asked.top_k
    return {name: value for name, value in given.items() if value is not None}


def _lengths_out(asked: ModelRequest, more: dict[str, Any]) -> dict[str, Any]:
    """The API wants fewer tokens of thinking than tokens at all, and not too few.

    What a caller of this API has said of it, in `more`, goes out as it came while it still holds.
    """
    wanted, said = asked.thinking_tokens, more.get("thinking")
    word = (more.get("output_config") or {}).get("effort") or ""
    holds = wanted == budget(word)
    if said is not None and (holds if (own_budget := _budget_in(said)) is None else own_budget == wanted):
        return {"max_tokens": asked.max_tokens or MAX_TOKENS, "thinking": said}
    if not wanted or (word and holds):
        disabled = {"thinking": {"type": "disabled"}} if wanted == 0 else {}
        return {"max_tokens": asked.max_tokens or MAX_TOKENS, **disabled}
    thinking = max(wanted, LEAST_THINKING_TOKENS)
    most = asked.max_tokens or thinking + MAX_TOKENS
    thinking = min(thinking, most - 1)
    if thinking < LEAST_THINKING_TOKENS:
        return {"max_tokens": most}
    return {"max_tokens": most, "thinking": {"type": "enabled", "budget_tokens": thinking}}


def _config_out(asked: ModelRequest, own_config: Any) -> dict[str, Any]:
    """How hard to think is said here only to who has said it here: older models do not know the word."""
    out: dict[str, Any] = {}
    if isinstance(own_config, dict):
        out = dict(own_config)
    if asked.format is not None and asked.format.schema is not None:
        out["format"] = {"type": "json_schema", "schema": asked.format.schema}
    return out


def asked_in(body: Any) -> ModelRequest:
    given = as_object(body, "body")
    config = object_or(given, "output_config", "body")
    metadata = object_or(given, "metadata", "body")
    effort = text_or(config, "effort", "output_config")
    tier = text_or(given, "service_tier", "body")
    return ModelRequest(
        model=text_of(given, "model", "body"),
        turns=turns_in(given),
        definitions=definitions_in(list_or(given, "tools", "body")),
        choice=choice_in(given.get("tool_choice")),
        max_tokens=count_or_none(given, "max_tokens", "body"),
        thinking_tokens=_thinking_tokens(given, effort),
        effort=own_word(effort),
        temperature=number_or_none(given, "temperature", "body"),
        top_p=number_or_none(given, "top_p", "body"),
        top_k=count_or_none(given, "top_k", "body"),
        stop=texts_of(given, "stop_sequences", "body"),
        stream=bool(flag_or(given, "stream", "body", otherwise=False)),
        format=_format_in(object_or(config, "format", "output_config")),
        user=text_or(metadata, "user_id", "metadata"),
        service_tier=tier_in(tier, NAME),
        extra=_extra_in(given, config, metadata, tier),
    )


def _extra_in(body: dict[str, Any], config: dict[str, Any], metadata: dict[str, Any], tier: str) -> Extra | None:
    """What no noun holds, and what nouns hold only the meaning of."""
    more = others(body, _BODY)
    thinking = object_or(body, "thinking", "body")
    if thinking and (thinking.get("type") not in {"enabled", "disabled"} or others(thinking, _THINKING)):
        more["thinking"] = thinking
    if rest := {name: value for name, value in config.items() if name != "format" and value is not None}:
        more["output_config"] = rest
        if thinking:
            more["thinking"] = thinking
    if rest := {name: value for name, value in metadata.items() if name != "user_id" and value is not None}:
        more["metadata"] = rest
    if tier and not tier_in(tier, NAME):
        more["service_tier"] = tier
    return Extra(NAME, more) if more else None


def _format_in(given: dict[str, Any]) -> ResponseFormat | None:
    if not given:
        return None
    return ResponseFormat("schema", as_object(given.get("schema"), "output_config.format.schema"))


def _thinking_tokens(body: dict[str, Any], effort: str) -> int | None:
    said = _budget_in(object_or(body, "thinking", "body"))
    return budget(effort) if said is None else said


def _budget_in(thinking: dict[str, Any]) -> int | None:
    kind = text_or(thinking, "type", "thinking")
    if kind == "enabled":
        return count_or_none(thinking, "budget_tokens", "thinking")
    return 0 if kind == "disabled" else None


def said_in(answer: Any) -> ModelResponse:
    given = as_object(answer, "answer")
    refuse_failure(given)
    parts = bare(content_in(given.get("content"), "content"))
    stop = text_or(given, "stop_reason", "answer")
    return ModelResponse(
        id=text_or(given, "id", "answer"),
        model=text_or(given, "model", "answer"),
        parts=parts,
        reason=_REASONS.get(stop, "end") if stop else reason_of("end", parts),
        usage=_usage_in(object_or(given, "usage", "answer")),
    )


def said_out(said: ModelResponse) -> dict[str, Any]:
    """An answer for a client of this API; another API's thinking is packed so that it comes back with the next body."""
    blocks = [answer_block(part) for part in said.parts]
    return {
        "id": said.id,
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": [block for block in blocks if block is not None],
        "stop_reason": _STOPS[said.reason],
        "stop_sequence": None,
        "usage": _usage_out(said.usage),
    }


def calls_in(answer: Any) -> tuple[Use, ...]:
    return tuple(part for part in said_in(answer).parts if isinstance(part, Use))


def _usage_in(usage: dict[str, Any]) -> Usage:
    read, write = tokens(usage, "cache_read_input_tokens"), tokens(usage, "cache_creation_input_tokens")
    return Usage(tokens(usage, "input_tokens") + read + write, tokens(usage, "output_tokens"), read, write)


def _usage_out(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": max(0, usage.input - usage.cache_read - usage.cache_write),
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    }


__all__ = [
    "NAME",
    "asked_in",
    "asked_out",
    "calls_in",
    "choice_in",
    "choice_out",
    "definitions_in",
    "definitions_out",
    "results_out",
    "said_in",
    "said_out",
    "turns_in",
    "turns_out",
]
