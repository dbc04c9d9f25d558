"""Convert whole OpenAI Chat Completions requests and answers to and from neutral turns.

Streams are handled by `openai_chat_stream`.

The messages of the results come right behind the calls, before anything that the user wrote. They hold only
text, so pictures follow in a message of the user, behind all results.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ferrule.core.content import Cache, Document, Extra, Image, Text
from ferrule.wire import (
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
    count_or_none,
    effort_of,
    flag_or,
    is_own,
    list_or,
    number_or_none,
    object_or,
    own_word,
    refuse_failure,
    text_of,
    text_or,
    texts_of,
    tokens,
)
from ferrule.wire.conversation import (
    arguments_in,
    arguments_out,
    document_address,
    document_at,
    document_words,
    find_attachments,
    group_turns,
    json_text,
    label,
    mark_failure,
    name_of,
    omission_note,
    order_turns,
    picture,
    picture_address,
    reason_of,
    strip_failure_mark,
    system_words,
    unwrap_free_text,
    uses_of,
    words_or_pointer,
)
from ferrule.wire.fields import bare, body_fields, cache_in, field_names, others, own, present
from ferrule.wire.schema import (
    ANYTHING,
    ToolSchema,
    choice_word,
    format_in,
    format_out,
    free_text,
    function_in,
    grammar_in,
    is_regex,
    own_choice,
    parallel,
    ready,
    settings_in,
    settings_out,
    tier_extra,
    tool_subset_in,
    tools_out,
    word_out,
)

NAME = "openai-chat"
_MESSAGES = {
    role: field_names(NAME, f"message:{role}") for role in ("system", "developer", "user", "tool", "assistant")
}
_TEXT = frozenset(("type", "text"))
_ADDRESS = field_names(NAME, "address")
_FILE = field_names(NAME, "file")
_CALLS = {kind: field_names(NAME, f"call:{kind}") for kind in ("function", "custom")}


def turns_out(turns: Sequence[Turn], *, marks: str = "") -> dict[str, Any]:
    """`messages`. What this API has no place for is left out: pictures of the model's, and other APIs' thinking.

    `marks` says how marks for the cache are written: see `Marks`. A caller's own go back in any case.
    """
    uses = uses_of(turns)
    return {"messages": [message for turn in order_turns(turns) for message in _messages_out(turn, uses, marks)]}


def _messages_out(turn: Turn, uses: dict[str, Use], marks: str) -> Iterator[dict[str, Any]]:
    more = own(turn, NAME) or {}
    if turn.role == "system":
        texts = [_content_out(part, marks) for part in turn.parts if isinstance(part, Text)]
        said = texts if any(text.keys() != _TEXT for text in texts) else system_words(turn)
        yield {"role": "system", "content": said, **more}
    elif turn.role == "assistant":
        if message := message_out(turn):
            yield {**message, **more}
    else:
        results = [part for part in turn.parts if isinstance(part, Result)]
        yield from _results_out(results, uses, marks)
        if content := [_content_out(part, marks) for part in turn.parts if not isinstance(part, Result)]:
            is_words = len(content) == 1 and content[0].keys() == _TEXT
            yield {"role": "user", "content": content[0]["text"] if is_words else content, **more}


def _results_out(results: Sequence[Result], uses: dict[str, Use], marks: str = "") -> Iterator[dict[str, Any]]:
    for result in results:
        text = mark_failure(words_or_pointer(result), failed=result.failed)
        # A mark stands on the result, or on the last part of it.
        cache = result.cache or next((part.cache for part in result.parts[-1:] if not isinstance(part, Foreign)), None)
        block = _with_mark({"type": "text", "text": text}, cache, marks)
        content = text if block.keys() == _TEXT else [block]
        yield own(result, NAME) or {"role": "tool", "tool_call_id": result.id, "content": content}
    shown: list[dict[str, Any]] = []
    for result in results:
        if files := find_attachments(result):
            shown.append({"type": "text", "text": label(result, name_of(result, uses))})
            shown += map(_content_out, files)
    if shown:
        yield {"role": "user", "content": shown}


def results_out(results: Sequence[Result], uses: Sequence[Use] = ()) -> list[dict[str, Any]]:
    """The messages that answer the calls of the turn before."""
    return list(_results_out(results, {use.id: use for use in uses}))


def _content_out(part: Part, marks: str = "") -> dict[str, Any]:
    if isinstance(part, Foreign):
        return part.block if part.wire == NAME else {"type": "text", "text": omission_note(part)}
    if (kept := own(part, NAME)) is not None:
        return kept
    assert isinstance(part, Text | Image | Document), "A turn of the user holds nothing else."
    return _with_mark(_bare_out(part), part.cache, marks)


def _bare_out(part: Text | Image | Document) -> dict[str, Any]:
    if isinstance(part, Image):
        detail = {"detail": part.detail} if part.detail else {}
        return {"type": "image_url", "image_url": {"url": picture_address(part), **detail}}
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if part.text:
        return {"type": "text", "text": document_words(part)}
    if part.url:
        return {"type": "text", "text": omission_note(part)}
    # The API wants a name; from its ending it tells what the file is.
    name = part.title or ("document.pdf" if part.media_type == "application/pdf" else "document.txt")
    return {"type": "file", "file": {"filename": name, "file_data": document_address(part)}}


def _with_mark(block: dict[str, Any], cache: Cache | None, marks: str) -> dict[str, Any]:
    if cache is None or not marks:
        return block
    if marks == "breakpoint":
        span = {"ttl": cache.ttl} if cache.ttl in {"30m", "12h"} else {}
        return {**block, "prompt_cache_breakpoint": {"mode": "explicit", **span}}
    span = {"ttl": cache.ttl} if cache.ttl in {"5m", "1h"} else {}
    return {**block, "cache_control": {"type": "ephemeral", **span}}


def message_out(turn: Turn, *, is_answer: bool = False) -> dict[str, Any] | None:
    """What the model said, as one message; None where nothing of it has a place here.

    `reasoning_content` is not OpenAI's own word, but the one of the servers that think in this format. It goes back
    only to them; an answer shows it to the client in any case.
    """
    texts = [part for part in turn.parts if isinstance(part, Text)]
    calls = [_call_out(part) for part in turn.parts if isinstance(part, Use)]
    thoughts = [
        part.text
        for part in turn.parts
        if isinstance(part, Thinking) and part.text and (is_answer or (part.wire and is_own(part, NAME)))
    ]
    # Thinking alone is an answer, but no message: the API wants words or calls.
    if not texts and not calls and not (thoughts and is_answer):
        return None
    content: str | list[dict[str, Any]] | None = "".join(text.text for text in texts) if texts else None
    # What is said of one text keeps it apart from the others. An answer is one text in any case.
    if not is_answer and any(own(text, NAME) is not None for text in texts):
        content = [_content_out(text) for text in texts]
    out: dict[str, Any] = {"role": "assistant", "content": content}
    if details := [] if is_answer else _details_out(turn):
        out["reasoning_details"] = details
    elif thoughts:
        out["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        out["tool_calls"] = calls
    return out


def _details_out(turn: Turn) -> list[Any]:
    """What a host had said of its thinking, as it came."""
    for part in turn.parts:
        if isinstance(part, Thinking) and part.sealed and part.wire == NAME:
            try:
                return msgspec.json.decode(part.sealed, type=list[Any])
            except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                continue  # another's seal
    return []


def _call_out(use: Use) -> dict[str, Any]:
    if (kept := own(use, NAME)) is not None:
        return kept
    if use.is_text:
        return {"id": use.id, "type": "custom", "custom": {"name": use.name, "input": str(use.input)}}
    return {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": arguments_out(use)}}


def turns_in(body: Any) -> tuple[Turn, ...]:
    """The conversation of a body: its `messages`."""
    given = as_object(body, "body")
    messages = list_or(given, "messages", "body")
    return group_turns(_turn_in(message, f"messages[{at}]") for at, message in enumerate(messages))


def _turn_in(given: Any, where: str) -> Turn:
    message = as_object(given, where)
    role = text_of(message, "role", where)
    if role not in _MESSAGES:
        raise WireError(f"{where}.role must be system, developer, user, assistant or tool, and is {role!r}.")
    more = others(message, _MESSAGES[role])
    extra = Extra(NAME, more) if more else None
    if role == "assistant":
        refusal = text_or(message, "refusal", where)
        refused = {"type": "refusal", "refusal": refusal}
        said = message_in(message, where)
        return Turn("assistant", (*said, *((Text(refusal, extra=Extra(NAME, refused)),) if refusal else ())), extra)
    parts = _content_in(message.get("content"), f"{where}.content")
    if role == "tool":
        return Turn("user", (_result_in(message, parts, where, is_whole=not more),))
    if role == "user":
        return Turn("user", parts, extra)
    texts = tuple(part for part in parts if isinstance(part, Text))
    if all(text.extra is None for text in texts):
        texts = (Text("\n\n".join(text.text for text in texts)),)
    if role == "developer":
        extra = Extra(NAME, {"role": role, **more})
    return Turn("system", texts, extra)


def _result_in(message: dict[str, Any], parts: tuple[Part, ...], where: str, *, is_whole: bool) -> Result:
    kept, failed = strip_failure_mark(parts)
    # A list of parts goes back as one, not as the text that is made of it.
    is_whole = is_whole and (len(parts) <= 1 and all(not isinstance(p, Text) or p.extra is None for p in parts))
    extra = None if is_whole else Extra(NAME, message)
    return Result(text_of(message, "tool_call_id", where), kept, failed, text_or(message, "name", where), extra=extra)


def message_in(message: dict[str, Any], where: str) -> tuple[Part, ...]:
    """What the model said: its thinking, its words, its calls."""
    thought = text_or(message, "reasoning_content", where) or text_or(message, "reasoning", where)
    details = list_or(message, "reasoning_details", where)
    sealed = json_text(details) if details else ""
    parts: list[Part] = [Thinking(thought, sealed=sealed, wire=NAME)] if thought or sealed else []
    if message.get("content"):
        parts += _content_in(message["content"], f"{where}.content")
    calls = list_or(message, "tool_calls", where)
    parts += (_call_in(call, f"{where}.tool_calls[{at}]") for at, call in enumerate(calls))
    return tuple(parts)


def _call_in(given: Any, where: str) -> Use:
    call = as_object(given, where)
    id_, kind = text_of(call, "id", where), text_or(call, "type", where, "function")
    extra = Extra(NAME, call) if kind in _CALLS and others(call, _CALLS[kind]) else None
    if kind == "custom":
        custom, inside = as_object(call.get("custom"), f"{where}.custom"), f"{where}.custom"
        return Use(id_, text_of(custom, "name", inside), text_of(custom, "input", inside), is_text=True, extra=extra)
    function, inside = as_object(call.get("function"), f"{where}.function"), f"{where}.function"
    arguments = function.get("arguments")
    # Some servers send the object itself.
    values = arguments if isinstance(arguments, dict) else arguments_in(text_or(function, "arguments", inside))
    if isinstance(values, str):
        extra = Extra(NAME, call)  # a caller's own goes back as it came
    return Use(id_, text_of(function, "name", inside), values, extra=extra)


def _content_in(content: Any, where: str) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_part_in(part, f"{where}[{at}]") for at, part in enumerate(as_list(content, where)))


def _part_in(given: Any, where: str) -> Part:
    part = as_object(given, where)
    kind = text_of(part, "type", where)
    if kind == "text":
        cache = None if part.keys() == _TEXT else cache_in(part)
        return Text(text_of(part, "text", where), cache, _keep_extra(part, _TEXT))
    if kind == "refusal":
        return Text(text_of(part, "refusal", where), extra=Extra(NAME, part))
    if kind == "image_url":
        return _image_in(part, where)
    if kind == "file":
        return _file_in(part, where)
    return Foreign(NAME, kind, part)


def _keep_extra(part: dict[str, Any], names: frozenset[str]) -> Extra | None:
    return Extra(NAME, part) if others(part, names) else None


def _image_in(part: dict[str, Any], where: str) -> Image:
    address = part.get("image_url")
    holder = {"url": address} if isinstance(address, str) else as_object(address, f"{where}.image_url")
    found = picture(text_of(holder, "url", f"{where}.image_url"))
    extra = _keep_extra(part, frozenset(("type", "image_url"))) or (
        Extra(NAME, part) if others(holder, _ADDRESS) else None
    )
    return replace(found, detail=text_or(holder, "detail", f"{where}.image_url"), cache=cache_in(part), extra=extra)


def _file_in(part: dict[str, Any], where: str) -> Document | Foreign:
    """A file that the API itself keeps is known only to this API."""
    file = as_object(part.get("file"), f"{where}.file")
    address = text_or(file, "file_data", f"{where}.file")
    found = document_at(address, text_or(file, "filename", f"{where}.file"))
    if found is None or others(file, _FILE):
        return Foreign(NAME, "file", part)
    is_whole = found.title and not others(part, frozenset(("type", "file")))
    return replace(found, cache=cache_in(part), extra=None if is_whole else Extra(NAME, part))


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


_BODY = field_names(NAME, "body")
_TOOL = frozenset(("type", "function"))
_FUNCTION = field_names(NAME, "function")
_CUSTOM = frozenset(("type", "custom"))
_CUSTOM_FIELDS = field_names(NAME, "custom")
_FORMAT = field_names(NAME, "format")


def definitions_out(
    definitions: Iterable[Definition], *, strict: bool = False, loosen: bool = False, host: str = "", model: str = ""
) -> list[dict[str, Any]]:
    """Schemas as they are advertised, unless `loosen` cleans up a foreign tool's, or a `host` takes less."""
    made = ready(definitions, strict=strict, loosen=loosen, chat=True, close=False, host=host, model=model, wire=NAME)
    return [own(one.definition, NAME) or _definition_out(one) for one in made]


def _definition_out(one: ToolSchema) -> dict[str, Any]:
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


def choice_out(choice: ToolChoice, free: Collection[str] = ()) -> str | dict[str, Any]:
    """`free` names the free-text tools, which are chosen in other words. `parallel` is a field of the body."""
    if (kept := own(choice, NAME)) is not None:
        said: str | dict[str, Any] = kept["tool_choice"]
        return said
    if choice.kind != "tool":
        return word_out(choice)
    kind = "custom" if choice.name in free else "function"
    return {"type": kind, kind: {"name": choice.name}}


def choice_in(choice: Any) -> ToolChoice | None:
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
        return own_choice(choice, NAME, tool_subset_in(inner, f"tool_choice.{kind}"))
    found = ToolChoice("tool", text_of(inner, "name", f"tool_choice.{kind}"))
    return found if kind == "function" else own_choice(choice, NAME, found)


def asked_out(
    asked: ModelRequest, *, strict: bool = False, loosen: bool = False, host: str = "", marks: Marks = ""
) -> dict[str, Any]:
    """A body for `/v1/chat/completions`."""
    more = body_fields(asked, NAME)
    out: dict[str, Any] = {
        "model": asked.model,
        **turns_out(unwrap_free_text(asked.turns, asked.definitions), marks=marks),
    }
    tools = definitions_out(asked.definitions, strict=strict, loosen=loosen, host=host, model=asked.model)
    out |= tools_out(asked, tools, choice_out)
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


def _format_out(form: ResponseFormat) -> dict[str, Any]:
    kind, about = format_out(form)
    return {"type": kind, "json_schema": about} if about else {"type": kind}


def _format_in(given: dict[str, Any]) -> ResponseFormat | None:
    if not given or others(given, _FORMAT):
        return None
    where = "response_format.json_schema"
    return format_in(
        text_of(given, "type", "response_format"), object_or(given, "json_schema", "response_format"), where
    )


def asked_in(body: Any) -> ModelRequest:
    given = as_object(body, "body")
    several = flag_or(given, "parallel_tool_calls", "body", otherwise=None)
    most = count_or_none(given, "max_completion_tokens", "body")
    effort = text_or(given, "reasoning_effort", "body")
    return ModelRequest(
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


def said_in(answer: Any) -> ModelResponse:
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
    return ModelResponse(
        id=text_or(given, "id", "answer"),
        model=text_or(given, "model", "answer"),
        parts=parts,
        reason=reason_of(reason, parts),
        usage=_usage_in(object_or(given, "usage", "answer")),
    )


def said_out(said: ModelResponse, *, created: int = 0) -> dict[str, Any]:
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
