"""OpenAI Responses: definitions, choices, whole bodies and whole answers, in both directions."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from ferrule.wire import ids
from ferrule.wire.cleanup import closed
from ferrule.wire.content import reason_of
from ferrule.wire.conversation import freed, grouped
from ferrule.wire.fields import ENCRYPTED, LOGPROBS, bare, body_fields, known, others, own, present
from ferrule.wire.openai_responses.turns import (
    NAME,
    call_item,
    items_in,
    reasoning_item,
    turns_out,
    whole_turns_in,
)
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
    as_text,
    count_or_none,
    flag_or,
    list_or,
    object_or,
    refuse_failure,
    text_of,
    text_or,
    tokens,
)
from ferrule.wire.thinking import budget, carried, effort_of, is_own, own_word
from ferrule.wire.turn import (
    Asked,
    Choice,
    Definition,
    Extra,
    Foreign,
    Format,
    Part,
    Reason,
    Said,
    Text,
    Thinking,
    Usage,
    Use,
)

SEARCHES = MappingProxyType({"WebSearch": "web_search_preview"})
"""Claude Code's search as the one that this API has itself, for translating its definitions."""
LEAST_TOKENS = 16
"""The API refuses a smaller limit."""

_BODY = known(NAME, "body")
_FUNCTION = known(NAME, "tool:function")
_CUSTOM = known(NAME, "tool:custom")

_TOOLS = frozenset(
    (
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use_preview",
        "file_search",
        "image_generation",
        "local_shell",
        "mcp",
        "namespace",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    )
)
"""Tools that run inside of the API."""
_HOSTED = frozenset(
    (
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use",
        "computer_use_preview",
        "file_search",
        "image_generation",
        "mcp",
        "programmatic_tool_calling",
        "shell",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    )
)
"""Tools that run inside of the API and can be chosen."""

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
    made = ready(definitions, strict=strict, loosen=loosen, chat=False, close=close, host=host, model=model, wire=NAME)
    return [
        {"type": hosted[one.definition.name]} if one.definition.name in hosted else _definition_out(one) for one in made
    ]


def _definition_out(one: Ready) -> dict[str, Any]:
    if (kept := own(one.definition, NAME)) is not None:
        return kept
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
        found = function_in(tool, where)
        # A schema is closed where it is written; a caller's own goes back as it came.
        is_ours = not found.strict and not others(tool, _FUNCTION) and closed(found.schema) == found.schema
        return found if is_ours else replace(found, extra=Extra(NAME, tool))
    if kind != "custom" and kind not in _TOOLS:
        raise WireError(f"{where}.type must be function, custom or a tool of the API's own, and is {kind!r}.")
    if kind != "custom":
        return Definition(text_or(tool, "name", where) or kind, "", {}, extra=Extra(NAME, tool), hosted=True)
    form = object_or(tool, "format", where)
    grammar = grammar_in({} if form.get("type") == "text" else form, f"{where}.format")
    found = free_text(text_of(tool, "name", where), text_or(tool, "description", where), grammar)
    return replace(found, extra=Extra(NAME, tool)) if others(tool, _CUSTOM) or is_regex(form) else found


def choice_out(choice: Choice, free: Collection[str] = ()) -> str | dict[str, Any]:
    """`free` names the free-text tools, which are chosen in other words. `parallel` is a field of the body."""
    if (kept := own(choice, NAME)) is not None:
        said: str | dict[str, Any] = kept["tool_choice"]
        return said
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
        return own_choice(choice, NAME, allowed_in(given, "tool_choice"))
    if kind in _HOSTED:
        return own_choice(choice, NAME, Choice("tool", text_or(given, "name", "tool_choice") or kind))
    if kind not in {"function", "custom"}:
        raise WireError(f"tool_choice.type must be function, custom or allowed_tools, and is {kind!r}.")
    found = Choice("tool", text_of(given, "name", "tool_choice"))
    return found if kind == "function" else own_choice(choice, NAME, found)


def asked_out(
    asked: Asked, *, strict: bool = False, loosen: bool = False, host: str = "", marks: str = ""
) -> dict[str, Any]:
    """A body for `/v1/responses`. It holds the whole conversation, so nothing needs to be stored. Stop words have no
    place in this API."""
    more = body_fields(asked, NAME)
    out: dict[str, Any] = {
        "model": asked.model,
        **turns_out(freed(asked.turns, asked.definitions), marks=marks),
        "store": bool(asked.store),
    }
    tools = definitions_out(asked.definitions, strict=strict, loosen=loosen, host=host, model=asked.model)
    out |= offered(asked, tools, choice_out)
    if asked.max_tokens is not None:
        out["max_output_tokens"] = max(asked.max_tokens, LEAST_TOKENS)
    out |= present(**_thinking_out(asked, more), text=_text_out(asked, more) or None, **settings_out(asked, NAME))
    out |= {name: value for name, value in more.items() if name not in _MIXED}
    return {name: value for name, value in out.items() if value is not None}


_MIXED = frozenset(("include", "reasoning", "text"))
"""Fields of which a noun holds a part."""


def _thinking_out(asked: Asked, more: dict[str, Any]) -> dict[str, Any]:
    """What is said of reasoning, and what the answer is to include."""
    word, said = effort_of(asked), more.get("reasoning")
    include = list(more.get("include") or ())
    reasoning = None
    if isinstance(said, dict) and (said.get("effort") or "") == word:
        reasoning = said
    elif word:
        reasoning = {"effort": word, "summary": "auto"}
        # Without it, reasoning that is not stored cannot be sent back.
        include += [ENCRYPTED]
    if asked.logprobs:
        include += [LOGPROBS]
    return {"reasoning": reasoning, "include": list(dict.fromkeys(include)) or None}


def _text_out(asked: Asked, more: dict[str, Any]) -> dict[str, Any]:
    out = dict(more.get("text") or {})
    if asked.format is not None:
        kind, about = format_out(asked.format)
        out["format"] = {"type": kind, **about}
    return out | present(verbosity=asked.verbosity)


def asked_in(body: Any) -> Asked:
    given = as_object(body, "body")
    several = flag_or(given, "parallel_tool_calls", "body", otherwise=None)
    text = object_or(given, "text", "body")
    effort = text_or(object_or(given, "reasoning", "body"), "effort", "reasoning")
    return Asked(
        model=text_of(given, "model", "body"),
        turns=whole_turns_in(given),
        definitions=definitions_in(list_or(given, "tools", "body")),
        choice=parallel(choice_in(given.get("tool_choice")), several),
        max_tokens=count_or_none(given, "max_output_tokens", "body"),
        thinking_tokens=budget(effort),
        effort=own_word(effort),
        logprobs=True if LOGPROBS in list_or(given, "include", "body") else None,
        format=_format_in(object_or(text, "format", "text")),
        verbosity=text_or(text, "verbosity", "text"),
        store=flag_or(given, "store", "body", otherwise=None) or None,
        extra=_extra_in(given, text, effort),
        **settings_in(given, NAME),
    )


def _format_in(given: dict[str, Any]) -> Format | None:
    return format_in(text_of(given, "type", "text.format"), given, "text.format") if given else None


def _extra_in(body: dict[str, Any], text: dict[str, Any], effort: str) -> Extra | None:
    """What no noun holds, and what nouns hold only the meaning of."""
    more = {**others(body, _BODY), **tier_extra(body, NAME)}
    reasoning = object_or(body, "reasoning", "body")
    include = [as_text(one, f"body.include[{at}]") for at, one in enumerate(list_or(body, "include", "body"))]
    if reasoning and reasoning != {"effort": effort, "summary": "auto"}:
        more["reasoning"] = reasoning
    if set(include) - {LOGPROBS} != ({ENCRYPTED} if reasoning and "reasoning" not in more else set()):
        more["include"] = include
        if reasoning:
            more["reasoning"] = reasoning
    form = object_or(text, "format", "text")
    rest = {name: value for name, value in text.items() if name not in {"format", "verbosity"} and value is not None}
    if form and _format_in(form) is None:
        rest["format"] = form
    if rest:
        more["text"] = rest
    if body.get("store") is None:
        more["store"] = None
    return Extra(NAME, more) if more else None


def said_in(answer: Any) -> Said:
    given = as_object(answer, "answer")
    refuse_failure(given)
    if given.get("status") == "failed":
        raise WireError("The API answered that it failed, and not why.")
    items = as_list(given.get("output"), "output")
    parts = bare(part for turn in grouped(items_in(items, "output")) for part in turn.parts)
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
