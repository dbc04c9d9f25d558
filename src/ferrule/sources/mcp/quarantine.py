"""Looking at what a server lists before any of it is shown: a tool that cannot be used stays out, the others go on."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.sources.mcp.server import ListedPrompt, ListedTool, Listing

MOST_TOOLS = 1000
_SCHEMA_BYTES = 256 << 10
_DEPTH = 48
_NAME_CHARS = 512
_WORDS_CHARS = 16_000
"""Of one description; what is longer is cut, for it would only fill the model's memory."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class Looked(NamedTuple):
    """A listing of which everything can be used, and the names of what was left out, each with the reason."""

    listing: Listing
    out: tuple[tuple[str, str], ...] = ()


def looked_at(listing: Listing) -> Looked:
    """What of a listing can be used."""
    tools: dict[str, ListedTool] = {}
    out = [(name[:_NAME_CHARS], reason) for name, reason in listing.rejected[:MOST_TOOLS]]
    for tool in listing.tools[:MOST_TOOLS]:
        if tool.name in tools:
            out.append((tool.name, "the server lists it twice; the first one is used"))
            continue
        try:
            tools[tool.name] = usable(tool)
        except ConfigError as error:
            out.append((tool.name[:_NAME_CHARS], str(error)))
    if len(listing.tools) > MOST_TOOLS:
        out.append((f"{len(listing.tools) - MOST_TOOLS} more", f"a server has at most {MOST_TOOLS} tools"))
    prompts = {prompt.name: _shortened(prompt) for prompt in reversed(listing.prompts[:MOST_TOOLS]) if prompt.name}
    kept = listing._replace(
        tools=tuple(tools.values()), prompts=tuple(reversed(prompts.values())), guidance=_words(listing.guidance)
    )
    return Looked(kept._replace(rejected=()), tuple(out))


def usable(tool: ListedTool) -> ListedTool:
    """The tool, its schema an object's. Raises `ConfigError` with the reason why it cannot be used."""
    if not tool.name.strip() or len(tool.name) > _NAME_CHARS:
        raise ConfigError(f"its name is empty or longer than {_NAME_CHARS} characters")
    schema = _object(tool.schema)
    _check(schema)
    output = tool.output_schema
    if output is not None:
        try:
            _check(_object(output))
        except ConfigError:
            output = None  # what it takes can be used all the same
    return tool._replace(words=_words(tool.words), title=_words(tool.title), schema=schema, output_schema=output)


def _object(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise ConfigError("its schema is not an object")
    if "type" not in schema:
        return {"type": "object", **schema}
    if schema["type"] != "object":
        raise ConfigError("its schema is about something else than an object")
    return dict(schema)


def _check(schema: dict[str, Any]) -> None:
    _measure(schema)
    from ferrule.arguments.judge import judge  # whoever has a server's list pays for the validator
    from ferrule.output.clean import clean

    for name in _names(schema):
        if clean(name) != name or not name.isprintable():
            raise ConfigError("its schema names a parameter with characters that nobody sees")
    judge(schema)


def _measure(schema: dict[str, Any]) -> None:
    """Level by level, so that no depth can exhaust the stack."""
    level: list[Any] = [schema]
    for _ in range(_DEPTH):
        deeper: list[Any] = []
        for holder in level:
            if isinstance(holder, dict):
                _refuse_remote(holder)
            members = holder.values() if isinstance(holder, dict) else holder
            deeper += [member for member in members if isinstance(member, dict | list)]
        if not deeper:
            break
        level = deeper
    else:
        raise ConfigError(f"its schema is nested more than {_DEPTH} levels deep")
    try:
        size = len(msgspec.json.encode(schema))
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        raise ConfigError("its schema holds something that is not JSON") from error
    if size > _SCHEMA_BYTES:
        raise ConfigError(f"its schema has more than {_SCHEMA_BYTES:,} bytes")


def _refuse_remote(holder: Mapping[str, Any]) -> None:
    # The validator fetches nothing anyway; here the reason is told, also where the reference is never followed.
    for key in _REFERENCES:
        reference = holder.get(key)
        if isinstance(reference, str) and not reference.startswith("#"):
            raise ConfigError(f"its schema refers to {reference[:100]!r}; nothing is fetched")


def _names(schema: Mapping[str, Any]) -> list[str]:
    """The names of all parameters, at every depth."""
    found: list[str] = []
    level: list[Any] = [schema]
    while level:
        holder = level.pop()
        members = list(holder.values()) if isinstance(holder, dict) else holder
        if isinstance(holder, dict) and isinstance(holder.get("properties"), dict):
            found += holder["properties"]
        level += [member for member in members if isinstance(member, dict | list)]
    return found


def _shortened(prompt: ListedPrompt) -> ListedPrompt:
    return prompt._replace(words=_words(prompt.words))


def _words(text: str) -> str:
    return text if len(text) <= _WORDS_CHARS else text[:_WORDS_CHARS] + " […]"
