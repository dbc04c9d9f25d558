"""OpenAI Chat Completions: definitions, choices, whole bodies and whole answers, in both directions."""

from collections.abc import Collection, Iterable
from typing import Any

from ferrule.wire.content import reason_of
from ferrule.wire.conversation import freed
from ferrule.wire.openai_chat.turns import message_in, message_out, turns_in, turns_out
from ferrule.wire.openai_tools import (
    ANYTHING,
    allowed_in,
    choice_word,
    free_text,
    function_in,
    grammar_in,
    offered,
    parallel,
    ready,
    word_out,
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
from ferrule.wire.thinking import budget, effort
from ferrule.wire.turn import Asked, Choice, Definition, Reason, Said, Text, Turn, Usage, Use

_REASONS: dict[str, Reason] = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refused",
}
_STOPS: dict[Reason, str] = {
    "end": "stop",
    "tools": "tool_calls",
    "length": "length",
    "refused": "content_filter",
    "stopped": "stop",
}


def definitions_out(
    definitions: Iterable[Definition], *, strict: bool = False, loosen: bool = False, host: str = "", model: str = ""
) -> list[dict[str, Any]]:
    """Schemas as they are advertised, unless `loosen` cleans up a foreign tool's, or a `host` takes less."""
    made = ready(definitions, strict=strict, loosen=loosen, chat=True, close=False, host=host, model=model)
    return [
        _custom_out(one.definition)
        if one.definition.grammar
        else {
            "type": "function",
            "function": {
                "name": one.definition.name,
                "description": one.definition.words,
                "parameters": one.schema,
                "strict": one.strict,
            },
        }
        for one in made
    ]


def _custom_out(one: Definition) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "text"}
    if one.grammar != ANYTHING:
        form = {"type": "grammar", "grammar": {"syntax": "lark", "definition": one.grammar}}
    return {"type": "custom", "custom": {"name": one.name, "description": one.words, "format": form}}


def definitions_in(definitions: Any) -> tuple[Definition, ...]:
    return tuple(_definition_in(one, f"tools[{at}]") for at, one in enumerate(as_list(definitions, "tools")))


def _definition_in(given: Any, where: str) -> Definition:
    tool = as_object(given, where)
    kind = text_or(tool, "type", where, "function")
    if kind == "function":
        return function_in(as_object(tool.get("function"), f"{where}.function"), f"{where}.function")
    if kind != "custom":
        raise WireError(f"{where}.type must be function or custom, and is {kind!r}.")
    custom, inside = as_object(tool.get("custom"), f"{where}.custom"), f"{where}.custom"
    form = object_or(custom, "format", inside)
    grammar = grammar_in(object_or(form, "grammar", f"{inside}.format"), f"{inside}.format.grammar")
    return free_text(text_of(custom, "name", inside), text_or(custom, "description", inside), grammar)


def choice_out(choice: Choice, free: Collection[str] = ()) -> str | dict[str, Any]:
    """`free` names the free-text tools, which are chosen in other words. `parallel` is a field of the body."""
    if choice.kind != "tool":
        return word_out(choice)
    kind = "custom" if choice.name in free else "function"
    return {"type": kind, kind: {"name": choice.name}}


def choice_in(choice: Any) -> Choice | None:
    if choice is None:
        return None
    if isinstance(choice, str):
        return choice_word(choice)
    given = as_object(choice, "tool_choice")
    kind = text_of(given, "type", "tool_choice")
    if kind not in {"function", "custom", "allowed_tools"}:
        raise WireError(f"tool_choice.type must be function, custom or allowed_tools, and is {kind!r}.")
    inner = as_object(given.get(kind), f"tool_choice.{kind}")
    if kind == "allowed_tools":
        return allowed_in(inner, f"tool_choice.{kind}")
    return Choice("tool", text_of(inner, "name", f"tool_choice.{kind}"))


def asked_out(asked: Asked, *, strict: bool = False, loosen: bool = False, host: str = "") -> dict[str, Any]:
    """A body for `/v1/chat/completions`."""
    out: dict[str, Any] = {"model": asked.model, **turns_out(freed(asked.turns, asked.definitions))}
    tools = definitions_out(asked.definitions, strict=strict, loosen=loosen, host=host, model=asked.model)
    out |= offered(asked, tools, choice_out)
    if asked.max_tokens is not None:
        out["max_completion_tokens"] = asked.max_tokens
    if asked.thinking_tokens is not None:
        out["reasoning_effort"] = effort(asked.thinking_tokens)
    if asked.temperature is not None:
        out["temperature"] = asked.temperature
    if asked.stop:
        out["stop"] = list(asked.stop)
    if asked.stream:
        out |= {"stream": True, "stream_options": {"include_usage": True}}
    return out


def asked_in(body: Any) -> Asked:
    given = as_object(body, "body")
    several = flag_or(given, "parallel_tool_calls", "body", otherwise=None)
    most = count_or_none(given, "max_completion_tokens", "body")
    return Asked(
        model=text_of(given, "model", "body"),
        turns=turns_in(given),
        definitions=definitions_in(list_or(given, "tools", "body")),
        choice=parallel(choice_in(given.get("tool_choice")), several),
        max_tokens=count_or_none(given, "max_tokens", "body") if most is None else most,
        thinking_tokens=budget(text_or(given, "reasoning_effort", "body")),
        temperature=number_or_none(given, "temperature", "body"),
        stop=texts_of(given, "stop", "body"),
        stream=bool(flag_or(given, "stream", "body", otherwise=False)),
    )


def said_in(answer: Any) -> Said:
    given = as_object(answer, "answer")
    refuse_failure(given)
    choices = as_list(given.get("choices"), "choices")
    if not choices:
        raise WireError("choices must hold an answer, and is empty.")
    first = as_object(choices[0], "choices[0]")
    message = as_object(first.get("message"), "choices[0].message")
    parts = message_in(message, "choices[0].message")
    reason = _REASONS.get(text_or(first, "finish_reason", "choices[0]"), "end")
    if refusal := text_or(message, "refusal", "choices[0].message"):
        parts, reason = (*parts, Text(refusal)), "refused"
    return Said(
        id=text_or(given, "id", "answer"),
        model=text_or(given, "model", "answer"),
        parts=parts,
        reason=reason_of(reason, parts),
        usage=_usage_in(object_or(given, "usage", "answer")),
    )


def said_out(said: Said, *, created: int = 0) -> dict[str, Any]:
    """An answer for a client of this API; `created` is in seconds since 1970."""
    message = message_out(Turn("assistant", said.parts), is_answer=True) or {"role": "assistant", "content": None}
    return {
        "id": said.id,
        "object": "chat.completion",
        "created": created,
        "model": said.model,
        "choices": [
            {
                "index": 0,
                "message": {"refusal": None, **message},
                "logprobs": None,
                "finish_reason": _STOPS[said.reason],
            }
        ],
        "usage": _usage_out(said.usage),
    }


def calls_in(answer: Any) -> tuple[Use, ...]:
    return tuple(part for part in said_in(answer).parts if isinstance(part, Use))


def _usage_in(usage: dict[str, Any]) -> Usage:
    details = object_or(usage, "prompt_tokens_details", "usage")
    return Usage(
        tokens(usage, "prompt_tokens"),
        tokens(usage, "completion_tokens"),
        tokens(details, "cached_tokens"),
        tokens(details, "cache_write_tokens"),
    )


def _usage_out(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
    }
