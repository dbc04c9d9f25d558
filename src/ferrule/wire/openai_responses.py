"""Convert whole OpenAI Responses requests and answers to and from neutral turns.

Streams are handled by `openai_responses_stream`.

A call and its result are tied by `call_id`, which is the id that the model gave the call. Calls that go out
carry no item id: the API would look for the item that it names.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeGuard

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
    as_text,
    budget,
    conversation,
    count_or_none,
    effort_of,
    flag_or,
    is_own,
    list_or,
    object_or,
    own_word,
    pack_thinking,
    refuse_failure,
    text_of,
    text_or,
    tokens,
    unpack_thinking,
)
from ferrule.wire.conversation import (
    Role,
    arguments_in,
    arguments_out,
    document_address,
    document_at,
    document_words,
    find_attachments,
    group_turns,
    mark_failure,
    omission_note,
    order_turns,
    picture,
    picture_address,
    reason_of,
    strip_failure_mark,
    system_words,
    unwrap_free_text,
    uses_of,
    words,
)
from ferrule.wire.fields import ENCRYPTED, LOGPROBS, bare, body_fields, cache_in, field_names, others, own, present
from ferrule.wire.schema import (
    ANYTHING,
    ToolSchema,
    choice_word,
    close_schema,
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

NAME = "openai-responses"
_ITEMS = {
    kind: field_names(NAME, f"item:{kind}")
    for kind in ("message", "function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output")
}
_TEXT = frozenset(("type", "text"))
_IMAGE = frozenset(("type", "image_url", "detail"))
_FILE = frozenset(("type", "file_data", "file_url", "filename"))
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS = {"input_text", "output_text", "text", "summary_text", "reasoning_text"}


def turns_out(turns: Sequence[Turn], *, marks: str = "") -> dict[str, Any]:
    """`instructions` and `input`. System turns at the beginning are instructions, later ones a developer's messages.

    What this API has no place for is left out: pictures of the model's, thinking that is not sealed or not its own.
    With `marks`, marks for the cache are written; a caller's own go back in any case.
    """
    uses, given = uses_of(turns), list(turns)
    first = next((at for at, turn in enumerate(given) if turn.role != "system" or not _is_plain(turn)), len(given))
    instructions = "\n\n".join(text for text in map(system_words, given[:first]) if text)
    items = [item for turn in order_turns(given[first:]) for item in _items_out(turn, uses, marks)]
    return {"instructions": instructions, "input": items} if instructions else {"input": items}


def _is_plain(turn: Turn) -> bool:
    return own(turn, NAME) is None and all(own(part, NAME) is None for part in turn.parts if isinstance(part, Text))


def _items_out(turn: Turn, uses: dict[str, Use], marks: str) -> Iterator[dict[str, Any]]:
    more = own(turn, NAME) or {}
    if turn.role == "system":
        texts = [_content_out(part, marks) for part in turn.parts if isinstance(part, Text)]
        said = texts if any(text.keys() != _TEXT for text in texts) else system_words(turn)
        yield {"type": "message", "role": "developer", "content": said, **more}
    elif turn.role == "assistant":
        yield from (item for part in turn.parts if (item := _item_out(part)))
    else:
        yield from (result_item(part, uses) for part in turn.parts if isinstance(part, Result))
        rest = [part for part in turn.parts if not isinstance(part, Result)]
        # An item of a kind of its own stands by itself, not among what the user says.
        yield from (part.block for part in rest if _is_item(part))
        if content := [_content_out(part, marks) for part in rest if not _is_item(part)]:
            is_words = len(content) == 1 and content[0].keys() == _TEXT
            said = content[0]["text"] if is_words else content
            yield {"type": "message", "role": "user", "content": said, **more}


def _is_item(part: Part) -> TypeGuard[Foreign]:
    return isinstance(part, Foreign) and part.wire == NAME and part.kind.endswith("_output")


def _item_out(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Foreign):
        return part.block if part.wire == NAME else None
    if (kept := own(part, NAME)) is not None:
        return kept  # nothing, for what stands in the message of the part before
    if isinstance(part, Text):
        return {"type": "message", "role": "assistant", "content": part.text} if part.text else None
    if isinstance(part, Use):
        return call_item(part)
    if isinstance(part, Thinking):
        # Nothing is stored, so reasoning that is not sealed could not be found by its id.
        return reasoning_item(part) if part.sealed and is_own(part, NAME) else None
    return None


def call_item(use: Use) -> dict[str, Any]:
    bundle = {"namespace": use.namespace} if use.namespace else {}
    if use.is_text:
        return {"type": "custom_tool_call", "call_id": use.id, "name": use.name, **bundle, "input": str(use.input)}
    return {"type": "function_call", "call_id": use.id, "name": use.name, **bundle, "arguments": arguments_out(use)}


def reasoning_item(part: Thinking) -> dict[str, Any]:
    """Reasoning as this API keeps it. Its id is held as the signature; a made-up one would not fit the seal."""
    out: dict[str, Any] = {"type": "reasoning"}
    if part.signature:
        out["id"] = part.signature
    out["summary"] = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {**out, "encrypted_content": part.sealed} if part.sealed else out


def result_item(result: Result, uses: dict[str, Use]) -> dict[str, Any]:
    if (kept := own(result, NAME)) is not None:
        return kept
    use = uses.get(result.id)
    kind = "custom_tool_call_output" if use is not None and use.is_text else "function_call_output"
    return {"type": kind, "call_id": result.id, "output": _output(result)}


def _output(result: Result) -> str | list[dict[str, Any]]:
    """Always there, even where it is empty; a list only where there are pictures or files."""
    if not find_attachments(result):
        return mark_failure(words(result), failed=result.failed)
    content = [_content_out(part) for part in result.parts]
    if not result.failed:
        return content
    if content[0]["type"] == "input_text":
        return [{**content[0], "text": mark_failure(content[0]["text"], failed=True)}, *content[1:]]
    return [{"type": "input_text", "text": mark_failure("", failed=True)}, *content]


def results_out(results: Sequence[Result], uses: Sequence[Use] = ()) -> list[dict[str, Any]]:
    """The items that answer the calls of the turn before; `uses` tells which of them were of free-text tools."""
    known = {use.id: use for use in uses}
    return [result_item(result, known) for result in results]


def _content_out(part: Part, marks: str = "") -> dict[str, Any]:
    if isinstance(part, Foreign):
        return part.block if part.wire == NAME else {"type": "input_text", "text": omission_note(part)}
    if (kept := own(part, NAME)) is not None:
        return kept
    assert isinstance(part, Text | Image | Document), "A turn of the user holds nothing else."
    return _with_mark(_bare_out(part), part.cache, marks)


def _bare_out(part: Text | Image | Document) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": picture_address(part), "detail": part.detail or "auto"}
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if part.text:
        return {"type": "input_text", "text": document_words(part)}
    if part.url:
        return {"type": "input_file", "file_url": part.url, **({"filename": part.title} if part.title else {})}
    # The API wants a name; from its ending it tells what the file is.
    name = part.title or ("document.pdf" if part.media_type == "application/pdf" else "document.txt")
    return {"type": "input_file", "filename": name, "file_data": document_address(part)}


def _with_mark(block: dict[str, Any], cache: Cache | None, marks: str) -> dict[str, Any]:
    if cache is None or not marks:
        return block
    span = {"ttl": cache.ttl} if cache.ttl in {"30m", "12h"} else {}
    return {**block, "prompt_cache_breakpoint": {"mode": "explicit", **span}}


def turns_in(body: Any) -> tuple[Turn, ...]:
    """The conversation of a body: its `instructions` and its `input`."""
    given = as_object(body, "body")
    if given.get("previous_response_id"):
        raise WireError("previous_response_id names a conversation that only the API has; send its items as input.")
    return whole_turns_in(given)


def whole_turns_in(body: dict[str, Any]) -> tuple[Turn, ...]:
    """The same, whatever else the body names."""
    instructions = text_or(body, "instructions", "body")
    system = (Turn("system", (Text(instructions),)),) if instructions else ()
    said = body.get("input")
    items = [{"role": "user", "content": said}] if isinstance(said, str) else list_or(body, "input", "body")
    turns = group_turns(items_in(items, "input"))
    first = next((at for at, turn in enumerate(turns) if turn.role != "system"), len(turns))
    # At the beginning it would be taken for instructions, and stays a message.
    leading = (replace(turn, extra=turn.extra or Extra(NAME, {"role": "developer"})) for turn in turns[:first])
    return (*system, *leading, *turns[first:])


def items_in(items: Iterable[Any], name: str) -> Iterator[Turn]:
    """Who said it and what, for each item."""
    for at, item in enumerate(items):
        where = f"{name}[{at}]"
        yield _item_in(as_object(item, where), where)


def _item_in(item: dict[str, Any], where: str) -> Turn:
    # What has neither a type nor a speaker refers to an item that the API keeps.
    kind = text_or(item, "type", where) or ("item_reference" if "role" not in item and "id" in item else "message")
    if kind == "message":
        return _message_in(item, where)
    names = _ITEMS.get(kind)
    extra = Extra(NAME, item) if names is not None and others(item, names) else None
    if kind == "function_call":
        values = arguments_in(text_or(item, "arguments", where))
        if isinstance(values, str):
            extra = Extra(NAME, item)  # a caller's own goes back as it came
        id_, bundle = text_of(item, "call_id", where), text_or(item, "namespace", where)
        use = Use(id_, text_of(item, "name", where), values, extra=extra, namespace=bundle)
        return Turn("assistant", (use,))
    if kind == "custom_tool_call":
        text, id_ = text_of(item, "input", where), text_of(item, "call_id", where)
        name, bundle = text_of(item, "name", where), text_or(item, "namespace", where)
        return Turn("assistant", (Use(id_, name, text, is_text=True, extra=extra, namespace=bundle),))
    if kind in {"function_call_output", "custom_tool_call_output"}:
        return Turn("user", (_result_in(item, where, extra),))
    if kind == "reasoning":
        return Turn("assistant", (_reasoning_in(item, where),))
    return Turn("user" if kind.endswith("_output") else "assistant", (Foreign(NAME, kind, item),))


def _result_in(item: dict[str, Any], where: str, extra: Extra | None) -> Result:
    given = _content_in(item.get("output"), f"{where}.output")
    parts, failed = strip_failure_mark(given)
    is_list = isinstance(item.get("output"), list) and not any(isinstance(part, Image | Document) for part in parts)
    if item.get("name") or is_list or any(not isinstance(part, Foreign) and part.extra is not None for part in given):
        extra = Extra(NAME, item)
    return Result(text_of(item, "call_id", where), parts, failed, text_or(item, "name", where), extra=extra)


def _reasoning_in(item: dict[str, Any], where: str) -> Thinking:
    told = _content_in(item.get("summary"), f"{where}.summary") or _content_in(item.get("content"), f"{where}.content")
    text = "\n\n".join(part.text for part in told if isinstance(part, Text))
    sealed = text_or(item, "encrypted_content", where)
    if found := unpack_thinking(text, sealed, NAME):
        return found
    made = Thinking(text, text_or(item, "id", where), sealed, NAME)
    # Reasoning that is not sealed is found by its id, which only a caller of this API can mean.
    return made if sealed and reasoning_item(made) == item else replace(made, extra=Extra(NAME, item))


def _message_in(item: dict[str, Any], where: str) -> Turn:
    said = text_of(item, "role", where)
    role = _ROLES.get(said)
    if role is None:
        raise WireError(f"{where}.role must be user, assistant, system or developer, and is {said!r}.")
    parts = _content_in(item.get("content"), f"{where}.content")
    more = others(item, _ITEMS["message"])
    if role == "assistant":
        if not more and all(not isinstance(part, Foreign) and part.extra is None for part in parts):
            return Turn(role, parts)
        # A message that has an id is one item, however many parts it has: the first of them holds it.
        parts = parts or (Text(""),)  # one that was cut before its first word
        holders = (Extra(NAME, item), *(Extra(NAME, {}) for _ in parts[1:]))
        texts = [part for part in parts if isinstance(part, Text)]
        if len(texts) != len(parts):
            return Turn(role, (Foreign(NAME, "message", item),))
        return Turn(role, tuple(replace(text, extra=one) for text, one in zip(texts, holders, strict=True)))
    if role == "user":
        return Turn(role, parts, Extra(NAME, more) if more else None)
    words = tuple(part for part in parts if isinstance(part, Text))
    if all(text.extra is None for text in words):
        words = (Text("\n\n".join(text.text for text in words)),)
    if said == "system" or more:
        more = {"role": said, **more}
    return Turn(role, words, Extra(NAME, more) if more else None)


def _content_in(content: Any, where: str) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_part_in(part, f"{where}[{at}]") for at, part in enumerate(as_list(content, where)))


def _part_in(given: Any, where: str) -> Part:
    part = as_object(given, where)
    kind = text_of(part, "type", where)
    if kind in _TEXTS:
        if part.keys() == _TEXT:
            return Text(text_of(part, "text", where))
        return Text(text_of(part, "text", where), cache_in(part), _keep_extra(part, _TEXT))
    if kind == "refusal":
        return Text(text_of(part, "refusal", where), extra=Extra(NAME, part))
    if kind == "input_image" and part.get("image_url") is not None:
        detail = text_or(part, "detail", where)
        found = picture(text_of(part, "image_url", where))
        return replace(
            found, detail="" if detail == "auto" else detail, cache=cache_in(part), extra=_keep_extra(part, _IMAGE)
        )
    if kind == "input_file":
        return _file_in(part, where)
    return Foreign(NAME, kind, part)


def _keep_extra(part: dict[str, Any], names: frozenset[str]) -> Extra | None:
    return Extra(NAME, part) if others(part, names) else None


def _file_in(part: dict[str, Any], where: str) -> Document | Foreign:
    """A file that the API itself keeps is known only to this API."""
    title, url = text_or(part, "filename", where), text_or(part, "file_url", where)
    found = document_at(text_or(part, "file_data", where), title)
    if url and not part.get("file_data"):
        found = Document("application/pdf", url=url, title=title)
    if found is None or part.get("file_id") or (url and part.get("file_data")):
        return Foreign(NAME, "input_file", part)
    is_whole = (title or url) and not others(part, _FILE)
    return replace(found, cache=cache_in(part), extra=None if is_whole else Extra(NAME, part))


SEARCHES = MappingProxyType({"WebSearch": "web_search_preview"})
"""Claude Code's search as the one that this API has itself, for translating its definitions."""
LEAST_TOKENS = 16
"""The API refuses a smaller limit."""

_BODY = field_names(NAME, "body")
_FUNCTION = field_names(NAME, "tool:function")
_CUSTOM = field_names(NAME, "tool:custom")

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


def _definition_out(one: ToolSchema) -> dict[str, Any]:
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
        is_ours = not found.strict and not others(tool, _FUNCTION) and close_schema(found.schema) == found.schema
        return found if is_ours else replace(found, extra=Extra(NAME, tool))
    if kind != "custom" and kind not in _TOOLS:
        raise WireError(f"{where}.type must be function, custom or a tool of the API's own, and is {kind!r}.")
    if kind != "custom":
        return Definition(text_or(tool, "name", where) or kind, "", {}, extra=Extra(NAME, tool), hosted=True)
    form = object_or(tool, "format", where)
    grammar = grammar_in({} if form.get("type") == "text" else form, f"{where}.format")
    found = free_text(text_of(tool, "name", where), text_or(tool, "description", where), grammar)
    return replace(found, extra=Extra(NAME, tool)) if others(tool, _CUSTOM) or is_regex(form) else found


def choice_out(choice: ToolChoice, free: Collection[str] = ()) -> str | dict[str, Any]:
    """`free` names the free-text tools, which are chosen in other words. `parallel` is a field of the body."""
    if (kept := own(choice, NAME)) is not None:
        said: str | dict[str, Any] = kept["tool_choice"]
        return said
    if choice.kind != "tool":
        return word_out(choice)
    return {"type": "custom" if choice.name in free else "function", "name": choice.name}


def choice_in(choice: Any) -> ToolChoice | None:
    if choice is None:
        return None
    if isinstance(choice, str):
        return choice_word(choice)
    given = as_object(choice, "tool_choice")
    kind = text_of(given, "type", "tool_choice")
    if kind == "allowed_tools":
        return own_choice(choice, NAME, tool_subset_in(given, "tool_choice"))
    if kind in _HOSTED:
        return own_choice(choice, NAME, ToolChoice("tool", text_or(given, "name", "tool_choice") or kind))
    if kind not in {"function", "custom"}:
        raise WireError(f"tool_choice.type must be function, custom or allowed_tools, and is {kind!r}.")
    found = ToolChoice("tool", text_of(given, "name", "tool_choice"))
    return found if kind == "function" else own_choice(choice, NAME, found)


def asked_out(
    asked: ModelRequest, *, strict: bool = False, loosen: bool = False, host: str = "", marks: str = ""
) -> dict[str, Any]:
    """A body for `/v1/responses`. It holds the whole conversation, so nothing needs to be stored. Stop words have no
    place in this API."""
    more = body_fields(asked, NAME)
    out: dict[str, Any] = {
        "model": asked.model,
        **turns_out(unwrap_free_text(asked.turns, asked.definitions), marks=marks),
        "store": bool(asked.store),
    }
    tools = definitions_out(asked.definitions, strict=strict, loosen=loosen, host=host, model=asked.model)
    out |= tools_out(asked, tools, choice_out)
    if asked.max_tokens is not None:
        out["max_output_tokens"] = max(asked.max_tokens, LEAST_TOKENS)
    out |= present(**_thinking_out(asked, more), text=_text_out(asked, more) or None, **settings_out(asked, NAME))
    out |= {name: value for name, value in more.items() if name not in _MIXED}
    return {name: value for name, value in out.items() if value is not None}


_MIXED = frozenset(("include", "reasoning", "text"))
"""Fields of which a noun holds a part."""


def _thinking_out(asked: ModelRequest, more: dict[str, Any]) -> dict[str, Any]:
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


def _text_out(asked: ModelRequest, more: dict[str, Any]) -> dict[str, Any]:
    out = dict(more.get("text") or {})
    if asked.format is not None:
        kind, about = format_out(asked.format)
        out["format"] = {"type": kind, **about}
    return out | present(verbosity=asked.verbosity)


def asked_in(body: Any) -> ModelRequest:
    given = as_object(body, "body")
    several = flag_or(given, "parallel_tool_calls", "body", otherwise=None)
    text = object_or(given, "text", "body")
    effort = text_or(object_or(given, "reasoning", "body"), "effort", "reasoning")
    return ModelRequest(
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


def _format_in(given: dict[str, Any]) -> ResponseFormat | None:
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


def said_in(answer: Any) -> ModelResponse:
    given = as_object(answer, "answer")
    refuse_failure(given)
    if given.get("status") == "failed":
        raise WireError("The API answered that it failed, and not why.")
    items = as_list(given.get("output"), "output")
    parts = bare(part for turn in group_turns(items_in(items, "output")) for part in turn.parts)
    return ModelResponse(
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


def said_out(said: ModelResponse, *, created: int = 0) -> dict[str, Any]:
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
        return {**call_item(part), "id": conversation.encode_id(part.id, conversation.ITEM), "status": "completed"}
    if isinstance(part, Thinking):
        if is_own(part, NAME):
            return {"id": f"rs_{seed}", **reasoning_item(part)}
        return reasoning_item(Thinking(part.text, f"rs_{seed}", pack_thinking(part), NAME))
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


__all__ = [
    "NAME",
    "SEARCHES",
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
