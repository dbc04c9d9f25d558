"""Anthropic Messages: definitions, choices, whole bodies and whole answers, in both directions."""

import re
from collections.abc import Iterable
from typing import Any, Literal

from ferrule.wire.anthropic.turns import NAME, content_in, marked, said_block, turns_in, turns_out
from ferrule.wire.builtin import builtin
from ferrule.wire.content import reason_of
from ferrule.wire.fields import (
    bare,
    body_fields,
    cache_in,
    known,
    others,
    own,
    present,
    refuse_hosted,
    tier_in,
    tier_out,
)
from ferrule.wire.shape import (
    WireError,
    as_list,
    as_object,
    count_or_none,
    flag_or,
    list_or,
    number_or_none,
    object_or,
    refuse_failure,
    text_of,
    text_or,
    texts_of,
    tokens,
)
from ferrule.wire.thinking import budget, own_word
from ferrule.wire.turn import Asked, Choice, Definition, Extra, Format, Reason, Said, Usage, Use

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
_BODY = known(NAME, "body")
_TOOL = known(NAME, "tool")
_THINKING = known(NAME, "thinking:enabled")
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
    return marked({**out, "strict": True} if one.strict else out, one.cache)


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


def choice_out(choice: Choice) -> dict[str, Any]:
    out: dict[str, Any] = {"type": choice.kind}
    if choice.kind == "tool":
        out["name"] = choice.name
    if choice.parallel is not None and choice.kind != "none":
        out["disable_parallel_tool_use"] = not choice.parallel
    return out


def choice_in(choice: Any) -> Choice | None:
    if choice is None:
        return None
    given = as_object(choice, "tool_choice")
    said = text_of(given, "type", "tool_choice")
    kind = _CHOICES.get(said)
    if kind is None:
        raise WireError(f"tool_choice.type must be auto, any, none or tool, and is {said!r}.")
    alone = flag_or(given, "disable_parallel_tool_use", "tool_choice", otherwise=None)
    name = text_of(given, "name", "tool_choice") if kind == "tool" else ""
    return Choice(kind, name, None if alone is None else not alone)


def asked_out(asked: Asked) -> dict[str, Any]:
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


def _sampling_out(asked: Asked, *, thinks: bool) -> dict[str, Any]:
    """While it thinks, the API takes no other temperature than its own, and hardly cuts what it draws from."""
    given: dict[str, float | None] = {"top_p": asked.top_p}
    if thinks:
        given = {"top_p": asked.top_p if (asked.top_p or 0) >= LEAST_TOP_P else None}
    else:
        given["temperature"] = None if asked.temperature is None else min(asked.temperature, 1.0)
        given["top_k"] = asked.top_k
    return {name: value for name, value in given.items() if value is not None}


def _lengths_out(asked: Asked, more: dict[str, Any]) -> dict[str, Any]:
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


def _config_out(asked: Asked, own_config: Any) -> dict[str, Any]:
    """How hard to think is said here only to who has said it here: older models do not know the word."""
    out: dict[str, Any] = {}
    if isinstance(own_config, dict):
        out = dict(own_config)
    if asked.format is not None and asked.format.schema is not None:
        out["format"] = {"type": "json_schema", "schema": asked.format.schema}
    return out


def asked_in(body: Any) -> Asked:
    given = as_object(body, "body")
    config = object_or(given, "output_config", "body")
    metadata = object_or(given, "metadata", "body")
    effort = text_or(config, "effort", "output_config")
    tier = text_or(given, "service_tier", "body")
    return Asked(
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


def _format_in(given: dict[str, Any]) -> Format | None:
    if not given:
        return None
    return Format("schema", as_object(given.get("schema"), "output_config.format.schema"))


def _thinking_tokens(body: dict[str, Any], effort: str) -> int | None:
    said = _budget_in(object_or(body, "thinking", "body"))
    return budget(effort) if said is None else said


def _budget_in(thinking: dict[str, Any]) -> int | None:
    kind = text_or(thinking, "type", "thinking")
    if kind == "enabled":
        return count_or_none(thinking, "budget_tokens", "thinking")
    return 0 if kind == "disabled" else None


def said_in(answer: Any) -> Said:
    given = as_object(answer, "answer")
    refuse_failure(given)
    parts = bare(content_in(given.get("content"), "content"))
    stop = text_or(given, "stop_reason", "answer")
    return Said(
        id=text_or(given, "id", "answer"),
        model=text_or(given, "model", "answer"),
        parts=parts,
        reason=_REASONS.get(stop, "end") if stop else reason_of("end", parts),
        usage=_usage_in(object_or(given, "usage", "answer")),
    )


def said_out(said: Said) -> dict[str, Any]:
    """An answer for a client of this API; another API's thinking is packed so that it comes back with the next body."""
    blocks = [said_block(part) for part in said.parts]
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
