"""What the two OpenAI APIs have in common: schemas made ready, free-text tools, choices."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ferrule.wire.cleanup import allows_strict, closed, loosened
from ferrule.wire.content import FREE
from ferrule.wire.hosts import for_host, host_row
from ferrule.wire.shape import WireError, as_object, object_or, text_of, text_or
from ferrule.wire.turn import Asked, Choice, Definition

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
) -> Iterator[Ready]:
    """Definitions as a host takes them; none where it takes no tools. Strict only where the schema can be strict."""
    row = host_row(host, model) if host else None
    if row is not None and not row.tools:
        return
    wanted = strict or (row is not None and row.strict)
    for one in definitions:
        schema = loosened(one.schema, chat=chat) if loosen else one.schema
        schema = for_host(schema, host, model) if host else schema
        is_strict = wanted and allows_strict(schema)
        if not one.grammar and (close or is_strict):
            schema = closed(schema)
        if schema.get("type") != "object" or "properties" not in schema:
            schema = {"properties": {}, **schema, "type": "object"}
        yield Ready(one, schema, is_strict)


def function_in(holder: dict[str, Any], where: str) -> Definition:
    """A tool with a schema; without parameters it takes none."""
    schema = object_or(holder, "parameters", where) or {"type": "object", "properties": {}}
    return Definition(text_of(holder, "name", where), text_or(holder, "description", where), schema)


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
        out["tool_choice"] = choice_out(asked.choice, {one.name for one in asked.definitions if one.grammar})
        if asked.choice.parallel is not None:
            out["parallel_tool_calls"] = asked.choice.parallel
    return out


def parallel(choice: Choice | None, value: bool | None) -> Choice | None:  # noqa: FBT001 - what the body says
    """A choice together with what the body says about several calls at once."""
    if value is None:
        return choice
    chosen = choice or Choice()
    return Choice(chosen.kind, chosen.name, value)
