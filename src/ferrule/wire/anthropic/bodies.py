"""Anthropic Messages: definitions, choices, whole bodies and whole answers, in both directions."""

from collections.abc import Iterable
from typing import Any, Literal

from ferrule.wire.anthropic.turns import content_in, said_block, turns_in, turns_out
from ferrule.wire.builtin import builtin
from ferrule.wire.content import reason_of
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
from ferrule.wire.thinking import budget
from ferrule.wire.turn import Asked, Choice, Definition, Reason, Said, Usage, Use

MAX_TOKENS = 8_192
"""Asked for where the caller says nothing: this API wants a number."""
LEAST_THINKING_TOKENS = 1_024

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
_CHOICES: dict[str, Literal["auto", "any", "none", "tool"]] = {
    "auto": "auto",
    "any": "any",
    "none": "none",
    "tool": "tool",
}


def definitions_out(definitions: Iterable[Definition]) -> list[dict[str, Any]]:
    """The schemas in it are the definitions' own: whoever wants to change one copies it first."""
    return [
        {
            "name": one.name,
            "description": one.words,
            "input_schema": one.schema if one.schema.get("type") == "object" else {**one.schema, "type": "object"},
        }
        for one in definitions
    ]


def definitions_in(definitions: Any) -> tuple[Definition, ...]:
    return tuple(_definition_in(one, f"tools[{at}]") for at, one in enumerate(as_list(definitions, "tools")))


def _definition_in(given: Any, where: str) -> Definition:
    tool = as_object(given, where)
    kind = text_or(tool, "type", where, "custom")
    if found := builtin(kind, text_or(tool, "name", where)):
        return found
    if kind != "custom":
        raise WireError(f"{where}.type is {kind!r}: a tool that runs inside of its own API and cannot be carried over.")
    schema = as_object(tool.get("input_schema"), f"{where}.input_schema")
    return Definition(text_of(tool, "name", where), text_or(tool, "description", where), schema)


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
    out: dict[str, Any] = {"model": asked.model, **_lengths_out(asked), **turns_out(asked.turns)}
    if asked.definitions:
        out["tools"] = definitions_out(asked.definitions)
        if asked.choice is not None:
            out["tool_choice"] = choice_out(asked.choice)
    # With thinking, the API takes no other temperature than its own.
    if asked.temperature is not None and out.get("thinking", {}).get("type") != "enabled":
        out["temperature"] = min(asked.temperature, 1.0)
    if asked.stop:
        out["stop_sequences"] = list(asked.stop)
    if asked.stream:
        out["stream"] = True
    return out


def _lengths_out(asked: Asked) -> dict[str, Any]:
    """The API wants fewer tokens of thinking than tokens at all, and not too few."""
    wanted = asked.thinking_tokens
    if not wanted:
        disabled = {} if wanted is None else {"thinking": {"type": "disabled"}}
        return {"max_tokens": asked.max_tokens or MAX_TOKENS, **disabled}
    thinking = max(wanted, LEAST_THINKING_TOKENS)
    most = asked.max_tokens or thinking + MAX_TOKENS
    thinking = min(thinking, most - 1)
    if thinking < LEAST_THINKING_TOKENS:
        return {"max_tokens": most}
    return {"max_tokens": most, "thinking": {"type": "enabled", "budget_tokens": thinking}}


def asked_in(body: Any) -> Asked:
    given = as_object(body, "body")
    return Asked(
        model=text_of(given, "model", "body"),
        turns=turns_in(given),
        definitions=definitions_in(list_or(given, "tools", "body")),
        choice=choice_in(given.get("tool_choice")),
        max_tokens=count_or_none(given, "max_tokens", "body"),
        thinking_tokens=_thinking_tokens(given),
        temperature=number_or_none(given, "temperature", "body"),
        stop=texts_of(given, "stop_sequences", "body"),
        stream=bool(flag_or(given, "stream", "body", otherwise=False)),
    )


def _thinking_tokens(body: dict[str, Any]) -> int | None:
    thinking = object_or(body, "thinking", "body")
    kind = text_or(thinking, "type", "thinking")
    if kind == "enabled":
        return count_or_none(thinking, "budget_tokens", "thinking")
    if kind == "disabled":
        return 0
    return budget(text_or(object_or(body, "output_config", "body"), "effort", "output_config"))


def said_in(answer: Any) -> Said:
    given = as_object(answer, "answer")
    refuse_failure(given)
    parts = content_in(given.get("content"), "content")
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
