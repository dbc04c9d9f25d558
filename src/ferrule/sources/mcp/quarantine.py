"""Looking at what a server lists before any of it is shown: a tool that cannot be used stays out, the others go on."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ferrule.arguments.schema import judge, local_target
from ferrule.core.errors import ConfigError
from ferrule.output.clean import clean, clean_value
from ferrule.sources.mcp.server import ListedPrompt, ListedTool, ServerListing

MOST_TOOLS = 1000
_SCHEMA_BYTES = 256 << 10
_DEPTH = 48
_NAME_CHARS = 512
_WORDS_CHARS = 16_000
"""Of one description; what is longer is cut, for it would only fill the model's memory."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
_WEIGHT = 2_000
"""How many parts of a schema may have to be looked at for one value: parts that refer to each other double quickly."""


class QuarantineResult(NamedTuple):
    """A listing of which everything can be used, and the names of what was left out, each with the reason."""

    listing: ServerListing
    out: tuple[tuple[str, str], ...] = ()


def filter_listing(listing: ServerListing) -> QuarantineResult:
    """What of a listing can be used; its texts hold nothing that steers a terminal or hides from a reader."""
    tools: dict[str, ListedTool] = {}
    out = [(_line(name), _line(reason)) for name, reason in listing.rejected[:MOST_TOOLS]]
    for tool in listing.tools[:MOST_TOOLS]:
        name = _line(tool.name)
        if tool.name in tools:
            out.append((name, "the server lists it twice; the first one is used"))
            continue
        try:
            tools[tool.name] = usable(tool)
        except ConfigError as error:
            out.append((name, _line(str(error))))
    if len(listing.tools) > MOST_TOOLS:
        out.append((f"{len(listing.tools) - MOST_TOOLS} more", f"a server has at most {MOST_TOOLS} tools"))
    sayable = [prompt for prompt in listing.prompts[:MOST_TOOLS] if _is_sayable(prompt)]
    prompts = {prompt.name: _clean_prompt(prompt) for prompt in reversed(sayable)}
    kept = ServerListing(
        title=_words(listing.title[:_NAME_CHARS]),
        version=_words(listing.version[:_NAME_CHARS]),
        guidance=_words(listing.guidance),
        tools=tuple(tools.values()),
        prompts=tuple(reversed(prompts.values())),
        has_resources=listing.has_resources,
    )
    return QuarantineResult(kept, tuple(out))


def usable(tool: ListedTool) -> ListedTool:
    """The tool, its schema an object's. Raises `ConfigError` with the reason why it cannot be used."""
    if not _is_name(tool.name):
        raise ConfigError(f"its name is empty, longer than {_NAME_CHARS} characters, or has some that nobody sees")
    output = tool.output_schema
    if output is not None:
        try:
            output = _usable(output)
        except ConfigError:
            output = None  # what it takes can be used all the same
    return ListedTool(
        name=tool.name,
        words=_words(tool.words),
        schema=_usable(tool.schema),
        output_schema=output,
        hints=_hints(tool.hints),
        title=_words(tool.title[:_NAME_CHARS]),
        is_task=tool.is_task,
    )


def _usable(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError("its schema is not an object")
    schema = dict(given) if "type" in given else {"type": "object", **given}
    if schema["type"] != "object":
        raise ConfigError("its schema is about something else than an object")
    _measure(schema)
    for part in _parts(schema):
        _check(part)
    _weigh(schema)
    # As it will come back from the file where it is kept: a pin must say the same of both.
    cleaned: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(clean_value(schema)))
    try:
        judge(cleaned)
    except ConfigError as error:
        raise ConfigError(str(error).replace("The tool's schema", "its schema", 1)) from error
    return cleaned


def _measure(schema: dict[str, Any]) -> None:
    """Level by level, so that no depth can exhaust the stack."""
    level: list[Any] = [schema]
    for _ in range(_DEPTH):
        level = [
            member
            for holder in level
            for member in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(member, dict | list)
        ]
        if not level:
            break
    else:
        raise ConfigError(f"its schema is nested more than {_DEPTH} levels deep")
    try:
        size = len(msgspec.json.encode(schema))
    except (TypeError, ValueError) as error:
        raise ConfigError("its schema holds something that is not JSON") from error
    if size > _SCHEMA_BYTES:
        raise ConfigError(f"its schema has more than {_SCHEMA_BYTES:,} bytes")


def _parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    level: list[Any] = [schema]
    while level:
        holder = level.pop()
        if isinstance(holder, dict):
            yield holder
        members = holder.values() if isinstance(holder, dict) else holder
        level += [member for member in members if isinstance(member, dict | list)]


def _check(part: Mapping[str, Any]) -> None:
    for key in _REFERENCES:
        reference = part.get(key)
        # The validator fetches nothing anyway; here the reason is told, also where nobody would follow it.
        if isinstance(reference, str) and reference != "#" and not reference.startswith("#/"):
            raise ConfigError(f"its schema refers to {reference[:100]!r}; only its own parts can be referred to")
    # A cleaned name would be another one than the server knows.
    if any(clean(name) != name for name in part):
        raise ConfigError("its schema has names with characters that nobody sees")


def _weigh(schema: dict[str, Any]) -> None:
    weights: dict[int, int] = {}

    def weight(part: Any, depth: int) -> int:
        if not isinstance(part, dict):
            return 1
        if depth > 2 * _DEPTH:
            raise ConfigError("its schema refers from part to part without an end")
        if id(part) not in weights:
            weights[id(part)] = 1  # what refers back to itself ends there, as it does in the validator
            total = 1 + sum(weight(inner, depth + 1) for inner in _in_place(schema, part))
            if total > _WEIGHT:
                raise ConfigError("its schema would take too long to check: its parts refer to each other too often")
            weights[id(part)] = total
        return weights[id(part)]

    for part in _parts(schema):
        weight(part, 0)


def _in_place(root: dict[str, Any], part: Mapping[str, Any]) -> Iterator[Any]:
    """The parts of a schema that look at the same value as it does."""
    for key in _IN_PLACE:
        inner = part.get(key)
        if isinstance(inner, list):
            yield from inner
        elif key == "dependentSchemas" and isinstance(inner, dict):
            yield from inner.values()
        elif inner is not None:
            yield inner
    for key in _REFERENCES:
        target = local_target(root, part.get(key))
        if target is not None:
            yield target[0]


def _hints(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Annotations that are a truth value or a short text; others nobody knows."""
    return {
        clean(name): clean(value) if isinstance(value, str) else value
        for name, value in hints.items()
        if isinstance(value, bool) or (isinstance(value, str) and len(value) <= _NAME_CHARS)
    }


def _is_sayable(prompt: ListedPrompt) -> bool:
    return _is_name(prompt.name) and all(_is_name(name) for name, _, _ in prompt.arguments)


def _clean_prompt(prompt: ListedPrompt) -> ListedPrompt:
    arguments = tuple((name, _words(words), needed) for name, words, needed in prompt.arguments)
    return ListedPrompt(prompt.name, _words(prompt.words), arguments)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _NAME_CHARS and name == name.strip() and name.isprintable() and clean(name) == name


def _line(text: str) -> str:
    """A few words of a server's, for a sentence of ours: they cannot begin a line of their own."""
    return " ".join(clean(text[:_NAME_CHARS]).split())


def _words(text: str) -> str:
    return clean(text if len(text) <= _WORDS_CHARS else text[:_WORDS_CHARS] + " […]")
