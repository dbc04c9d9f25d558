"""OpenAI Chat Completions: definitions, choices, whole bodies and whole answers, in both directions."""

from collections.abc import Collection, Iterable
from typing import Any, Literal

from msgspec.structs import replace

from ferrule.wire.content import reason_of
from ferrule.wire.conversation import freed
from ferrule.wire.fields import bare, body_fields, cache_in, known, others, own, present
from ferrule.wire.openai_chat.turns import NAME, message_in, message_out, turns_in, turns_out
from ferrule.wire.openai_tools import (
    ANYTHING,
    Ready,
    allowed_in,
    choice_word,
    format_in,
    format_out,
    free_text,
    function_in,
    grammar_in,
    is_regex,
    offered,
    own_choice,
    parallel,
    ready,
    settings_in,
    settings_out,
    tier_extra,
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
from ferrule.wire.thinking import budget, effort_of, own_word
from ferrule.wire.turn import Asked, Choice, Definition, Extra, Format, Reason, Said, Text, Turn, Usage, Use

Marks = Literal["", "breakpoint", "cache_control"]
"""How marks for the cache are written: not at all, in OpenAI's own words, or in Anthropic's, which OpenRouter takes."""

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


_BODY = known(NAME, "body")
_TOOL = frozenset(("type", "function"))
_FUNCTION = known(NAME, "function")
_CUSTOM = frozenset(("type", "custom"))
_CUSTOM_FIELDS = known(NAME, "custom")
_FORMAT = known(NAME, "format")


def definitions_out(
    definitions: Iterable[Definition], *, strict: bool = False, loosen: bool = False, host: str = "", model: str = ""
) -> list[dict[str, Any]]:
    """Schemas as they are advertised, unless `loosen` cleans up a foreign tool's, or a `host` takes less."""
    made = ready(definitions, strict=strict, loosen=loosen, chat=True, close=False, host=host, model=model, wire=NAME)
    return [own(one.definition, NAME) or _definition_out(one) for one in made]


def _definition_out(one: Ready) -> dict[str, Any]:
    if one.definition.grammar:
        return _custom_out(one.definition)
    function = {
        "name": one.definition.name,
        "description": one.definition.words,
        "parameters": one.schema,
        "strict": one.strict,
    }
    return {"type": "function", "function": function}


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
        function = as_object(tool.get("function"), f"{where}.function")
        found = function_in(function, f"{where}.function")
        # A strict schema is closed where it is written; a caller's own goes back as it came.
        if not found.strict and not others(tool, _TOOL) and not others(function, _FUNCTION):
            return found
        return replace(found, cache=cache_in(tool), extra=Extra(NAME, tool))
    if kind != "custom":
        raise WireError(f"{where}.type must be function or custom, and is {kind!r}.")
    custom, inside = as_object(tool.get("custom"), f"{where}.custom"), f"{where}.custom"
    form = object_or(custom, "format", inside)
    grammar = grammar_in(object_or(form, "grammar", f"{inside}.format"), f"{inside}.format.grammar")
    found = free_text(text_of(custom, "name", inside), text_or(custom, "description", inside), grammar)
    is_whole = not others(tool, _CUSTOM) and not others(custom, _CUSTOM_FIELDS) and not is_regex(form.get("grammar"))
    return found if is_whole else replace(found, extra=Extra(NAME, tool))


def choice_out(choice: Choice, free: Collection[str] = ()) -> str | dict[str, Any]:
    """`free` names the free-text tools, which are chosen in other words. `parallel` is a field of the body."""
    if (kept := own(choice, NAME)) is not None:
        said: str | dict[str, Any] = kept["tool_choice"]
        return said
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
        return own_choice(choice, NAME, allowed_in(inner, f"tool_choice.{kind}"))
    found = Choice("tool", text_of(inner, "name", f"tool_choice.{kind}"))
    return found if kind == "function" else own_choice(choice, NAME, found)


def asked_out(
    asked: Asked, *, strict: bool = False, loosen: bool = False, host: str = "", marks: Marks = ""
) -> dict[str, Any]:
    """A body for `/v1/chat/completions`."""
    more = body_fields(asked, NAME)
    out: dict[str, Any] = {"model": asked.model, **turns_out(freed(asked.turns, asked.definitions), marks=marks)}
    tools = definitions_out(asked.definitions, strict=strict, loosen=loosen, host=host, model=asked.model)
    out |= offered(asked, tools, choice_out)
    most = "max_tokens" if "max_tokens" in more else "max_completion_tokens"
    out |= present(
        **{most: asked.max_tokens},
        reasoning_effort=effort_of(asked),
        response_format=None if asked.format is None else _format_out(asked.format),
        stop=list(asked.stop) or None,
        seed=asked.seed,
        frequency_penalty=asked.frequency_penalty,
        presence_penalty=asked.presence_penalty,
        n=asked.n,
        logprobs=asked.logprobs,
        verbosity=asked.verbosity,
        store=asked.store,
        **settings_out(asked, NAME),
        stream_options={"include_usage": True} if asked.stream else None,
    )
    out |= {name: value for name, value in more.items() if name != "max_tokens"}
    return {name: value for name, value in out.items() if value is not None}


def _format_out(form: Format) -> dict[str, Any]:
    kind, about = format_out(form)
    return {"type": kind, "json_schema": about} if about else {"type": kind}


def _format_in(given: dict[str, Any]) -> Format | None:
    if not given or others(given, _FORMAT):
        return None
    where = "response_format.json_schema"
    return format_in(
        text_of(given, "type", "response_format"), object_or(given, "json_schema", "response_format"), where
    )


def asked_in(body: Any) -> Asked:
    given = as_object(body, "body")
    several = flag_or(given, "parallel_tool_calls", "body", otherwise=None)
    most = count_or_none(given, "max_completion_tokens", "body")
    effort = text_or(given, "reasoning_effort", "body")
    return Asked(
        model=text_of(given, "model", "body"),
        turns=turns_in(given),
        definitions=definitions_in(list_or(given, "tools", "body")),
        choice=parallel(choice_in(given.get("tool_choice")), several),
        max_tokens=count_or_none(given, "max_tokens", "body") if most is None else most,
        thinking_tokens=budget(effort),
        effort=own_word(effort),
        stop=texts_of(given, "stop", "body"),
        top_k=count_or_none(given, "top_k", "body"),
        seed=count_or_none(given, "seed", "body"),
        frequency_penalty=number_or_none(given, "frequency_penalty", "body"),
        presence_penalty=number_or_none(given, "presence_penalty", "body"),
        n=count_or_none(given, "n", "body"),
        logprobs=flag_or(given, "logprobs", "body", otherwise=None),
        format=_format_in(object_or(given, "response_format", "body")),
        verbosity=text_or(given, "verbosity", "body"),
        store=flag_or(given, "store", "body", otherwise=None),
        extra=_extra_in(given, most),
        **settings_in(given, NAME),
    )


def _extra_in(body: dict[str, Any], most: int | None) -> Extra | None:
    """What no noun holds, and what nouns hold only the meaning of."""
    more = {**others(body, _BODY), **tier_extra(body, NAME)}
    if most is None and body.get("max_tokens") is not None:
        more["max_tokens"] = body["max_tokens"]
    if body.get("top_k") is not None:
        more["top_k"] = body["top_k"]  # of some servers that imitate the API; OpenAI itself refuses it
    form = object_or(body, "response_format", "body")
    if form and _format_in(form) is None:
        more["response_format"] = form
    options = body.get("stream_options")
    if options != ({"include_usage": True} if body.get("stream") else None):
        more["stream_options"] = options
    return Extra(NAME, more) if more else None


def said_in(answer: Any) -> Said:
    given = as_object(answer, "answer")
    refuse_failure(given)
    choices = as_list(given.get("choices"), "choices")
    if not choices:
        raise WireError("choices must hold an answer, and is empty.")
    first = as_object(choices[0], "choices[0]")
    message = as_object(first.get("message"), "choices[0].message")
    parts = bare(message_in(message, "choices[0].message"))
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
