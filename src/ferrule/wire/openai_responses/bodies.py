"""OpenAI Responses: definitions, choices, whole bodies and whole answers, in both directions."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ferrule.wire import ids
from ferrule.wire.content import reason_of
from ferrule.wire.conversation import freed, grouped
from ferrule.wire.openai_responses.turns import (
    NAME,
    call_item,
    items_in,
    reasoning_item,
    turns_in,
    turns_out,
)
from ferrule.wire.openai_tools import (
    ANYTHING,
    Ready,
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
    tokens,
)
from ferrule.wire.thinking import budget, carried, effort, is_own
from ferrule.wire.turn import Asked, Choice, Definition, Foreign, Part, Reason, Said, Text, Thinking, Usage, Use

SEARCHES = MappingProxyType({"WebSearch": "web_search_preview"})
"""Claude Code's search as the one that this API has itself, for translating its definitions."""
LEAST_TOKENS = 16
"""The API refuses a smaller limit."""

_INCOMPLETE: dict[str, Reason] = {"max_output_tokens": "length", "content_filter": "refused"}
_WHY: dict[Reason, str] = {reason: word for word, reason in _INCOMPLETE.items()}


def definitions_out(
    definitions: Iterable[Definition],
    *,
    strict: bool = False,
    loosen: bool = False,
    close: bool = True,
    host: str = "",
    model: str = "",
    hosted: Mapping[str, str] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Schemas as they are advertised, but closed; `loosen` cleans up a foreign tool's, and a `host` may take less.

    `hosted` gives, for names of tools, the type of a tool that the API runs itself instead: see `SEARCHES`.
    """
    made = ready(definitions, strict=strict, loosen=loosen, chat=False, close=close, host=host, model=model)
    return [
        {"type": hosted[one.definition.name]} if one.definition.name in hosted else _definition_out(one) for one in made
    ]


def _definition_out(one: Ready) -> dict[str, Any]:
    if one.definition.grammar:
        return _custom_out(one.definition)
    return {
        "type": "function",
        "name": one.definition.name,
        "description": one.definition.words,
        "parameters": one.schema,
        "strict": one.strict,
    }


def _custom_out(one: Definition) -> dict[str, Any]:
    form = {"type": "grammar", "syntax": "lark", "definition": one.grammar}
    return {
        "type": "custom",
        "name": one.name,
        "description": one.words,
        "format": {"type": "text"} if one.grammar == ANYTHING else form,
    }


def definitions_in(definitions: Any) -> tuple[Definition, ...]:
    return tuple(_definition_in(one, f"tools[{at}]") for at, one in enumerate(as_list(definitions, "tools")))


def _definition_in(given: Any, where: str) -> Definition:
    tool = as_object(given, where)
    kind = text_of(tool, "type", where)
    if kind == "function":
        return function_in(tool, where)
    if kind != "custom":
        raise WireError(f"{where}.type is {kind!r}: a tool that runs inside of its own API and cannot be carried over.")
    form = object_or(tool, "format", where)
    grammar = grammar_in({} if form.get("type") == "text" else form, f"{where}.format")
    return free_text(text_of(tool, "name", where), text_or(tool, "description", where), grammar)


def choice_out(choice: Choice, free: Collection[str] = ()) -> str | dict[str, Any]:
    """`free` names the free-text tools, which are chosen in other words. `parallel` is a field of the body."""
    if choice.kind != "tool":
        return word_out(choice)
    return {"type": "custom" if choice.name in free else "function", "name": choice.name}


def choice_in(choice: Any) -> Choice | None:
    if choice is None:
        return None
    if isinstance(choice, str):
        return choice_word(choice)
    given = as_object(choice, "tool_choice")
    kind = text_of(given, "type", "tool_choice")
    if kind == "allowed_tools":
        return allowed_in(given, "tool_choice")
    if kind not in {"function", "custom"}:
        raise WireError(f"tool_choice.type must be function, custom or allowed_tools, and is {kind!r}.")
    return Choice("tool", text_of(given, "name", "tool_choice"))


def asked_out(asked: Asked, *, strict: bool = False, loosen: bool = False, host: str = "") -> dict[str, Any]:
    """A body for `/v1/responses`. It holds the whole conversation, so nothing needs to be stored. Stop words have no
    place in this API."""
    out: dict[str, Any] = {"model": asked.model, **turns_out(freed(asked.turns, asked.definitions)), "store": False}
    tools = definitions_out(asked.definitions, strict=strict, loosen=loosen, host=host, model=asked.model)
    out |= offered(asked, tools, choice_out)
    if asked.max_tokens is not None:
        out["max_output_tokens"] = max(asked.max_tokens, LEAST_TOKENS)
    if asked.thinking_tokens is not None:
        out["reasoning"] = {"effort": effort(asked.thinking_tokens), "summary": "auto"}
        # Without it, reasoning that is not stored cannot be sent back.
        out["include"] = ["reasoning.encrypted_content"]
    if asked.temperature is not None:
        out["temperature"] = asked.temperature
    if asked.stream:
        out["stream"] = True
    return out


def asked_in(body: Any) -> Asked:
    given = as_object(body, "body")
    several = flag_or(given, "parallel_tool_calls", "body", otherwise=None)
    return Asked(
        model=text_of(given, "model", "body"),
        turns=turns_in(given),
        definitions=definitions_in(list_or(given, "tools", "body")),
        choice=parallel(choice_in(given.get("tool_choice")), several),
        max_tokens=count_or_none(given, "max_output_tokens", "body"),
        thinking_tokens=budget(text_or(object_or(given, "reasoning", "body"), "effort", "reasoning")),
        temperature=number_or_none(given, "temperature", "body"),
        stream=bool(flag_or(given, "stream", "body", otherwise=False)),
    )


def said_in(answer: Any) -> Said:
    given = as_object(answer, "answer")
    refuse_failure(given)
    if given.get("status") == "failed":
        raise WireError("The API answered that it failed, and not why.")
    items = as_list(given.get("output"), "output")
    parts = tuple(part for turn in grouped(items_in(items, "output")) for part in turn.parts)
    return Said(
        id=text_or(given, "id", "answer"),
        model=text_or(given, "model", "answer"),
        parts=parts,
        reason=reason_of(_reason_in(given, items), parts),
        usage=_usage_in(object_or(given, "usage", "answer")),
    )


def _reason_in(answer: dict[str, Any], items: Iterable[Any]) -> Reason:
    why = text_or(object_or(answer, "incomplete_details", "answer"), "reason", "incomplete_details")
    if why:
        return _INCOMPLETE.get(why, "end")
    contents = (item.get("content") for item in items if item.get("type") == "message")
    refused = any(
        part.get("type") == "refusal" for content in contents if isinstance(content, list) for part in content
    )
    return "refused" if refused else "end"


def said_out(said: Said, *, created: int = 0) -> dict[str, Any]:
    """An answer for a client of this API; `created` is in seconds since 1970."""
    why = _WHY.get(said.reason)
    output = [item for at, part in enumerate(said.parts) if (item := _output_item(part, f"{said.id}_{at}")) is not None]
    return {
        "id": said.id,
        "object": "response",
        "created_at": created,
        "status": "completed" if why is None else "incomplete",
        "error": None,
        "incomplete_details": None if why is None else {"reason": why},
        "instructions": None,
        "metadata": {},
        "model": said.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": usage_out(said.usage),
    }


def _output_item(part: Part, seed: str) -> dict[str, Any] | None:
    if isinstance(part, Text):
        content = [{"type": "output_text", "text": part.text, "annotations": []}]
        message = {"type": "message", "id": f"msg_{seed}", "status": "completed", "role": "assistant"}
        return {**message, "content": content}
    if isinstance(part, Use):
        return {**call_item(part), "id": ids.outgoing(part.id, ids.ITEM), "status": "completed"}
    if isinstance(part, Thinking):
        if is_own(part, NAME):
            return {"id": f"rs_{seed}", **reasoning_item(part)}
        return reasoning_item(Thinking(part.text, f"rs_{seed}", carried(part), NAME))
    return part.block if isinstance(part, Foreign) and part.wire == NAME else None


def calls_in(answer: Any) -> tuple[Use, ...]:
    return tuple(part for part in said_in(answer).parts if isinstance(part, Use))


def _usage_in(usage: dict[str, Any]) -> Usage:
    details = object_or(usage, "input_tokens_details", "usage")
    return Usage(
        tokens(usage, "input_tokens"),
        tokens(usage, "output_tokens"),
        tokens(details, "cached_tokens"),
        tokens(details, "cache_write_tokens"),
    )


def usage_out(usage: Usage) -> dict[str, Any]:
    """Tokens as the API counts them."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }
