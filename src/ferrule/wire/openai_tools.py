"""What the two OpenAI APIs have in common: schemas made ready, free-text tools, choices, settings, forms of answers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ferrule.wire.cleanup import allows_strict, closed, loosened
from ferrule.wire.content import FREE
from ferrule.wire.fields import others, present, refuse_hosted, tier_in, tier_out
from ferrule.wire.hosts import for_host, host_row
from ferrule.wire.shape import (
    WireError,
    as_object,
    count_or_none,
    flag_or,
    number_or_none,
    object_or,
    text_of,
    text_or,
)
from ferrule.wire.turn import Asked, Choice, Definition, Extra, Format

ANYTHING = "start: /[\\s\\S]*/"
"""The grammar of a free-text tool that takes any text."""

_WORDS: dict[str, Literal["auto", "any", "none"]] = {"auto": "auto", "required": "any", "none": "none"}
_SPOKEN: dict[str, str] = {kind: word for word, kind in _WORDS.items()}


class Ready(NamedTuple):
    """A definition with the schema that is sent."""

    definition: Definition
    schema: Mapping[str, Any]
    strict: bool


def ready(
    definitions: Iterable[Definition],
    *,
    strict: bool,
    loosen: bool,
    chat: bool,
    close: bool,
    host: str,
    model: str,
    wire: str,
) -> Iterator[Ready]:
    """Definitions as a host takes them; none where it takes no tools. Strict only where the schema can be strict."""
    row = host_row(host, model) if host else None
    if row is not None and not row.tools:
        return
    wanted = strict or (row is not None and row.strict)
    for at, one in enumerate(definitions):
        if one.hosted and (one.extra is None or one.extra.wire != wire):
            refuse_hosted(one, at)
        schema = loosened(one.schema, chat=chat) if loosen else one.schema
        schema = for_host(schema, host, model) if host else schema
        is_strict = (wanted or bool(one.strict)) and allows_strict(schema)
        if not one.grammar and (close or is_strict):
            schema = closed(schema)
        if schema.get("type") != "object" or "properties" not in schema:
            schema = {"properties": {}, **schema, "type": "object"}
        yield Ready(one, schema, is_strict)


def function_in(holder: dict[str, Any], where: str) -> Definition:
    """A tool with a schema; without parameters it takes none."""
    schema = object_or(holder, "parameters", where) or {"type": "object", "properties": {}}
    strict = flag_or(holder, "strict", where, otherwise=None)
    # Not to be strict is what is said in any case.
    return Definition(
        text_of(holder, "name", where), text_or(holder, "description", where), schema, strict=strict or None
    )


def free_text(name: str, words: str, grammar: str) -> Definition:
    """A tool that takes free text, with the schema under which other APIs know it."""
    about = {"type": "string", "description": "The whole input of the tool, as text."}
    schema = {"type": "object", "properties": {FREE: about}, "required": [FREE], "additionalProperties": False}
    return Definition(name, words, schema, grammar)


def grammar_in(given: dict[str, Any], where: str) -> str:
    """The grammar that a format names, in lark; a format that names none lets any text pass."""
    if not given:
        return ANYTHING
    syntax, definition = text_of(given, "syntax", where), text_of(given, "definition", where)
    if syntax == "regex":
        return "start: /" + definition.replace("/", "\\/") + "/"
    if syntax != "lark":
        raise WireError(f"{where}.syntax must be lark or regex, and is {syntax!r}.")
    return definition


def is_regex(grammar: Any) -> bool:
    """Is a grammar written in other words than lark's? It is understood, and goes back as it came."""
    return isinstance(grammar, dict) and grammar.get("syntax") == "regex"


def word_out(choice: Choice) -> str:
    """A choice that names no tool, in one word."""
    return _SPOKEN[choice.kind]


def choice_word(choice: Any) -> Choice:
    """The inverse of `word_out`."""
    kind = _WORDS.get(choice)
    if kind is None:
        raise WireError(f"tool_choice must be auto, required, none or an object, and is {choice!r}.")
    return Choice(kind)


def allowed_in(given: dict[str, Any], where: str) -> Choice:
    """A choice among some tools: that it must be one is kept, and which ones only where it is a single one."""
    mode = text_of(given, "mode", where)
    tools = given.get("tools")
    if mode != "required":
        return Choice("auto")
    if not isinstance(tools, list) or len(tools) != 1:
        return Choice("any")
    tool = as_object(tools[0], f"{where}.tools[0]")
    named = tool if "name" in tool else object_or(tool, str(tool.get("type")), f"{where}.tools[0]")
    return Choice("tool", text_of(named, "name", f"{where}.tools[0]"))


def offered(
    asked: Asked, tools: list[dict[str, Any]], choice_out: Callable[[Choice, Collection[str]], Any]
) -> dict[str, Any]:
    """What a body says about its tools; nothing where it has none."""
    if not tools:
        return {}
    out: dict[str, Any] = {"tools": tools}
    if asked.choice is not None:
        free = {one.name for one in asked.definitions if one.grammar}
        out["tool_choice"] = choice_out(asked.choice, free)
        if asked.choice.parallel is not None:
            out["parallel_tool_calls"] = asked.choice.parallel
    return out


def parallel(choice: Choice | None, value: bool | None) -> Choice | None:  # noqa: FBT001 - what the body says
    """A choice together with what the body says about several calls at once."""
    if value is None:
        return choice
    chosen = choice or Choice()
    return Choice(chosen.kind, chosen.name, value, chosen.extra)


def settings_out(asked: Asked, wire: str) -> dict[str, Any]:
    """The settings that both APIs call by one name."""
    return present(
        temperature=asked.temperature,
        top_p=asked.top_p,
        top_logprobs=asked.top_logprobs,
        user=asked.user,
        metadata=asked.metadata,
        service_tier=tier_out(asked, wire),
        prompt_cache_key=asked.cache_key,
        stream=asked.stream or None,
    )


def settings_in(body: dict[str, Any], wire: str) -> dict[str, Any]:
    """The inverse, as fields of `Asked`."""
    return {
        "temperature": number_or_none(body, "temperature", "body"),
        "top_p": number_or_none(body, "top_p", "body"),
        "top_logprobs": count_or_none(body, "top_logprobs", "body"),
        "user": text_or(body, "user", "body"),
        "metadata": object_or(body, "metadata", "body") or None,
        "service_tier": tier_in(text_or(body, "service_tier", "body"), wire),
        "cache_key": text_or(body, "prompt_cache_key", "body"),
        "stream": bool(flag_or(body, "stream", "body", otherwise=False)),
    }


def tier_extra(body: dict[str, Any], wire: str) -> dict[str, Any]:
    """How urgent a request is, in a word that only this API has."""
    word = text_or(body, "service_tier", "body")
    return {"service_tier": word} if word and not tier_in(word, wire) else {}


_FORMATS: dict[str, Literal["text", "json", "schema"]] = {
    "text": "text",
    "json_object": "json",
    "json_schema": "schema",
}
_FORMS = {kind: word for word, kind in _FORMATS.items()}
_SCHEMA = frozenset(("type", "name", "schema", "strict", "description"))
NAMELESS = "answer"
"""The name of a schema that came without one: these APIs want one."""


def format_out(form: Format) -> tuple[str, dict[str, Any]]:
    """The type of a format, and its fields."""
    if form.kind != "schema":
        return _FORMS[form.kind], {}
    about = present(name=form.name or NAMELESS, schema=form.schema, strict=form.strict, description=form.words)
    return "json_schema", about


def format_in(kind: str, about: dict[str, Any], where: str) -> Format | None:
    """The inverse; None for a format that only one API knows."""
    known = _FORMATS.get(kind)
    if known is None or others(about, _SCHEMA):
        return None
    if known != "schema":
        return Format(known)
    name = text_or(about, "name", where)
    strict = flag_or(about, "strict", where, otherwise=None)
    schema = about.get("schema")
    return Format(
        "schema",
        None if schema is None else as_object(schema, f"{where}.schema"),
        "" if name == NAMELESS else name,
        text_or(about, "description", where),
        strict,
    )


def own_choice(choice: Any, wire: str, meant: Choice) -> Choice:
    """A choice of which a noun holds only a part: it goes back as it came."""
    return Choice(meant.kind, meant.name, meant.parallel, Extra(wire, {"tool_choice": choice}))
