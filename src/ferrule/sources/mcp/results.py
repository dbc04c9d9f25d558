"""Convert the answers of an MCP server to outcomes, and keep out of its lists what cannot be used.

Contents that cannot be shown are replaced by words. Lists are checked entry by entry and bounded before they are
used: a tool that cannot be used is left out, and the others stay.
"""

import binascii
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.arguments.schema import judge, local_target
from ferrule.core.content import Picture
from ferrule.core.errors import ConfigError
from ferrule.core.services import McpContent, Mixed, ServerResource
from ferrule.documents import BadPicture, fit
from ferrule.output import clean, clean_value
from ferrule.sources.mcp import ListedPrompt, ListedTool, ServerListing

if TYPE_CHECKING:
    from jsonschema_rs import Validator
    from mcp_types import CallToolResult, GetPromptResult, Prompt, ReadResourceResult, Tool


_PARTS = 1_000
_SHOWN_CHARS = 200
_TEXT_ENDS = ("+json", "+xml", "+yaml")
_TEXTS = frozenset(
    f"application/{kind}"
    for kind in (
        *("json", "x-ndjson", "jsonl", "json5", "xml", "yaml", "x-yaml", "toml", "x-toml", "csv", "sql", "graphql"),
        *(
            "javascript",
            "x-javascript",
            "ecmascript",
            "typescript",
            "x-typescript",
            "x-python",
            "x-sh",
            "x-shellscript",
        ),
        *("x-httpd-php", "x-tex", "x-latex", "rtf", "x-www-form-urlencoded", "x-sql", "x-ruby", "x-perl"),
    )
)
"""Media types that are text though their names do not begin so."""


class McpResultReader:
    """Reads what one server answers; it remembers the output schemas that it has seen."""

    def __init__(self) -> None:
        self._judges: dict[str, tuple[Mapping[str, Any], Validator | None]] = {}

    async def read_result(self, tool: str, result: "CallToolResult", output_schema: Mapping[str, Any] | None) -> Mixed:
        """A tool's answer. What does not fit the tool's own output schema is delivered, and said.

        The call has run, and may have changed something: to hide its answer would only make a model call it again.
        """
        parts = await _parts(result.content)
        structured = result.structured_content
        if output_schema is not None and not result.is_error:
            misfit = self._misfit(tool, structured, output_schema)
            if misfit:
                parts.append(f"[{misfit}]")
        return Mixed(tuple(parts), structured, failed=result.is_error)

    def _misfit(self, tool: str, structured: Any, schema: Mapping[str, Any]) -> str:
        if structured is None:
            return "The tool has an output schema, and its answer has no structured content."
        known = self._judges.get(tool)
        if known is None or known[0] is not schema:
            try:
                known = (schema, judge(dict(schema)))
            except ConfigError:
                known = (schema, None)
            self._judges[tool] = known
        try:
            error = None if known[1] is None else next(iter(known[1].iter_errors(structured)), None)
        except ValueError:
            return "The structured content could not be compared with the tool's output schema."
        if error is None:
            return ""
        return f"The structured content does not fit the tool's output schema: {error.message[:_SHOWN_CHARS]}"


async def contents(result: "ReadResourceResult") -> Mixed:
    """What a resource holds."""
    return Mixed(tuple([await _resource(one, {}) for one in result.contents[:_PARTS]]))


async def prompt_text(result: "GetPromptResult") -> str:
    """A prompt's messages as one text; who says what is told where more than one says something."""
    said = []
    for message in result.messages[:_PARTS]:
        part = (await _parts([message.content]))[0]
        if isinstance(part, Picture):
            part = f"[An image of the type {part.media_type}.]"
        said.append((message.role, part if isinstance(part, str) else part.words))
    if len(said) == 1:
        return said[0][1]
    return "\n\n".join(f"{role.capitalize()}: {text}" for role, text in said)


async def _parts(content: Any) -> list[str | Picture | McpContent]:
    parts: list[str | Picture | McpContent] = []
    for block in content[:_PARTS]:
        if block.type == "text":
            parts.append(block.text)
        elif block.type == "image":
            parts.append(await _picture(block.data, block.mime_type, "image", _block(block)))
        elif block.type == "audio":
            size_bytes = len(_decode_base64(block.data) or b"")
            words = f"[Audio of the type {block.mime_type[:_SHOWN_CHARS]}, {size_bytes:,} bytes.]"
            parts.append(McpContent("audio", _block(block), words))
        elif block.type == "resource_link":
            about = f": {block.description}" if block.description else ""
            parts.append(
                McpContent(
                    "resource_link", _block(block), f"[A link to the resource {block.uri} ({block.name}){about}]"
                )
            )
        else:
            parts.append(await _resource(block.resource, _block(block)))
    if len(content) > _PARTS:
        parts.append(f"[{len(content) - _PARTS:,} more parts are left out.]")
    return parts


async def _resource(resource: Any, block: dict[str, Any]) -> str | Picture | McpContent:
    block = block or {"type": "resource", "resource": _block(resource)}
    text = getattr(resource, "text", None)
    if text is not None:
        return McpContent("resource", block, text)
    media_type = resource.mime_type or "application/octet-stream"
    data = _decode_base64(resource.blob)
    words = None if data is None else _text(data, media_type)
    if words is None and media_type.startswith("image/"):
        return await _picture(resource.blob, media_type, "resource", block)
    if data is None:
        return McpContent("resource", block, f"[The resource {resource.uri}, which is not valid base64.]")
    if words is None:
        words = f"[The resource {resource.uri} of the type {media_type[:_SHOWN_CHARS]}, {len(data):,} bytes.]"
    return McpContent("resource", block, words)


def _text(data: bytes, media_type: str) -> str | None:
    """Bytes as the text that their media type says that they are; None where it does not say so, or they are none."""
    kind, _, parameters = media_type.lower().partition(";")
    kind = kind.strip()
    if not kind.startswith("text/") and not kind.endswith(_TEXT_ENDS) and kind not in _TEXTS:
        return None
    charset = re.search(r'(?:^|[;\s])charset\s*=\s*"?([\w.:-]+)', parameters)
    try:
        text = data.decode("utf-8-sig" if charset is None or charset[1] in {"utf-8", "utf8"} else charset[1])
    except (LookupError, ValueError):
        return None
    return None if "\0" in text else text


async def _picture(data: str, media_type: str, kind: str, block: dict[str, Any]) -> Picture | McpContent:
    """A picture as model APIs take it; one that they would refuse would cost every later turn of the session."""
    raw = _decode_base64(data)
    if raw is None:
        return McpContent(kind, block, "[An image that is not valid base64.]")
    try:
        fitted = await fit(raw)
    except BadPicture as error:
        words = f"[An image of the type {media_type[:_SHOWN_CHARS]}, {len(raw):,} bytes, that cannot be shown. {error}]"
        return McpContent(kind, block, words)
    return Picture("", fitted.media_type, fitted.data)


def _decode_base64(data: str) -> bytes | None:
    try:
        return binascii.a2b_base64(data.encode("ascii"), strict_mode=True)
    except (ValueError, UnicodeEncodeError):
        return None


def _block(block: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = block.model_dump(by_alias=True, exclude_none=True, mode="json")
    return dumped


LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
MOST_ENTRIES = 10_000
MOST_PAGES = 1_000
_NAME_CHARS = 256
_WORDS_CHARS = 16_384
_URI_CHARS = 8_192
_SCHEMA_BYTES = 256 << 10
_SCHEMA_DEPTH = 64
_TOTAL_BYTES = 32 << 20
_ARGUMENTS = 100

Fetch = Callable[[str | None], Awaitable[tuple[list[Any], str | None]]]
"""A cursor → the entries of that page, and the cursor of the next one."""


def fault(method: str, entry: Any) -> str:
    """Why an entry of a list cannot be used; empty where it can. Small things are mended in it."""
    if not isinstance(entry, dict):
        return "It is not an object."
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        return "It has no name."
    if len(name) > _NAME_CHARS:
        return f"Its name has {len(name):,} characters; {_NAME_CHARS} are the most."
    if clean(name) != name or "\n" in name or "\t" in name:
        return "Its name has characters that steer a terminal or hide from a reader."
    for key in ("description", "title"):
        words = entry.get(key)
        if isinstance(words, str) and len(words) > _WORDS_CHARS:
            entry[key] = words[:_WORDS_CHARS] + " […]"
    return _tool_fault(entry) if method == "tools/list" else ""


def _tool_fault(entry: dict[str, Any]) -> str:
    schema = entry.get("inputSchema")
    if isinstance(schema, dict) and "type" not in schema:
        entry["inputSchema"] = {"type": "object", **schema}  # arguments are an object in any case
    for key, what in (("inputSchema", "schema"), ("outputSchema", "output schema")):
        schema = entry.get(key)
        if schema is None and key == "outputSchema":
            continue
        if not isinstance(schema, dict):
            return f"Its {what} is not an object."
        if _depth(schema) > _SCHEMA_DEPTH:
            return f"Its {what} is nested deeper than {_SCHEMA_DEPTH} levels."
        size_bytes = len(msgspec.json.encode(schema))
        if size_bytes > _SCHEMA_BYTES:
            return f"Its {what} has {size_bytes:,} bytes; {_SCHEMA_BYTES:,} are the most."
    return ""


def _depth(value: Any) -> int:
    """How deep a JSON value is nested; it stops to count a little beyond what is allowed."""
    depth, level = 0, [value]
    while level and depth <= _SCHEMA_DEPTH:
        inner: list[Any] = []
        for member in level:
            if isinstance(member, dict):
                inner.extend(member.values())
            elif isinstance(member, list):
                inner.extend(member)
        depth, level = depth + 1, [member for member in inner if isinstance(member, (dict, list))]
    return depth


def display_name(entry: Any) -> str:
    """A name for people, of whatever was sent in place of an entry."""
    name = entry.get("name") if isinstance(entry, dict) else None
    words = " ".join(clean(name).split())[:100] if isinstance(name, str) else ""
    return words or "(without a name)"


async def pages(fetch: Fetch) -> tuple[list[Any], str]:
    """All entries of a list that comes in pages, and why it was not read to its end, where it was not."""
    found: list[Any] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        entries, cursor = await fetch(cursor)
        found += entries[: MOST_ENTRIES - len(found)]
        if not cursor:
            return found, ""
        if len(found) >= MOST_ENTRIES:
            return found, f"The server lists more than {MOST_ENTRIES:,} of them."
        if cursor in seen:
            return found, "The server leads back to a page that it has given before."
        seen.add(cursor)
    return found, f"The server has more than {MOST_PAGES:,} pages of them."


def tools(listed: "list[Tool]", *, tasks: bool = False) -> tuple[tuple[ListedTool, ...], list[tuple[str, str]]]:
    """The tools of a list, each name once, and those that are left out with the reason. `tasks`: can it run any?"""
    found: dict[str, ListedTool] = {}
    rejected: list[tuple[str, str]] = []
    left_bytes = _TOTAL_BYTES
    for tool in listed:
        schema = clean_value(tool.input_schema)
        output_schema = None if tool.output_schema is None else clean_value(tool.output_schema)
        words = clean(tool.description or "")
        left_bytes -= len(msgspec.json.encode((schema, output_schema))) + len(words)
        if tool.name in found:
            rejected.append((tool.name, "It is listed twice; the first one is used."))
        elif left_bytes < 0:
            rejected.append((tool.name, f"All that the server lists has more than {_TOTAL_BYTES:,} bytes."))
        elif (is_task := _is_task(tool)) and not tasks:
            rejected.append((tool.name, "It runs as a task only, and the server says that it runs none."))
        else:
            hints: dict[str, Any] = {}
            if tool.annotations is not None:
                hints = clean_value(tool.annotations.model_dump(by_alias=True, exclude_none=True, mode="json"))
            title = clean(tool.title or hints.get("title") or "")[:_NAME_CHARS]
            found[tool.name] = ListedTool(tool.name, words, schema, output_schema, hints, title, is_task)
    return tuple(found.values()), rejected


def _is_task(tool: "Tool") -> bool:
    return tool.execution is not None and tool.execution.task_support == "required"


def prompts(listed: "list[Prompt]") -> tuple[ListedPrompt, ...]:
    """The prompts of a list, each name once."""
    found: dict[str, ListedPrompt] = {}
    for prompt in listed:
        arguments = tuple(
            (clean(one.name)[:_NAME_CHARS], clean(one.description or "")[:_WORDS_CHARS], bool(one.required))
            for one in (prompt.arguments or [])[:_ARGUMENTS]
        )
        found.setdefault(prompt.name, ListedPrompt(prompt.name, clean(prompt.description or ""), arguments))
    return tuple(found.values())


def resources(server: str, listed: list[Any]) -> list[ServerResource]:
    """Resources or templates of them; those with an address that nobody could write are left out."""
    found = []
    for one in listed:
        uri = str(getattr(one, "uri_template", None) or getattr(one, "uri", ""))
        if uri and len(uri) <= _URI_CHARS and clean(uri) == uri:
            words = clean(one.description or one.title or "")
            found.append(ServerResource(server, uri, one.name, words, clean(one.mime_type or "")[:_NAME_CHARS]))
    return found


MOST_TOOLS = 1000
_DEPTH = 48
_TOOL_NAME_CHARS = 512
_TOOL_WORDS_CHARS = 16_000
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
        title=_words(listing.title[:_TOOL_NAME_CHARS]),
        version=_words(listing.version[:_TOOL_NAME_CHARS]),
        guidance=_words(listing.guidance),
        tools=tuple(tools.values()),
        prompts=tuple(reversed(prompts.values())),
        has_resources=listing.has_resources,
    )
    return QuarantineResult(kept, tuple(out))


def usable(tool: ListedTool) -> ListedTool:
    """The tool, its schema an object's. Raises `ConfigError` with the reason why it cannot be used."""
    if not _is_name(tool.name):
        raise ConfigError(f"its name is empty, longer than {_TOOL_NAME_CHARS} characters, or has some that nobody sees")
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
        title=_words(tool.title[:_TOOL_NAME_CHARS]),
        is_task=tool.is_task,
    )


def _usable(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError("its schema is not an object")
    schema = dict(given) if "type" in given else {"type": "object", **given}
    if schema["type"] != "object":
        raise ConfigError("its schema is about something else than an object")
    _measure(schema)
    for part in _schema_parts(schema):
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


def _schema_parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
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

    for part in _schema_parts(schema):
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
        if isinstance(value, bool) or (isinstance(value, str) and len(value) <= _TOOL_NAME_CHARS)
    }


def _is_sayable(prompt: ListedPrompt) -> bool:
    return _is_name(prompt.name) and all(_is_name(name) for name, _, _ in prompt.arguments)


def _clean_prompt(prompt: ListedPrompt) -> ListedPrompt:
    arguments = tuple((name, _words(words), needed) for name, words, needed in prompt.arguments)
    return ListedPrompt(prompt.name, _words(prompt.words), arguments)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _TOOL_NAME_CHARS and name == name.strip() and name.isprintable() and clean(name) == name


def _line(text: str) -> str:
    """A few words of a server's, for a sentence of ours: they cannot begin a line of their own."""
    return " ".join(clean(text[:_TOOL_NAME_CHARS]).split())


def _words(text: str) -> str:
    return clean(text if len(text) <= _TOOL_WORDS_CHARS else text[:_TOOL_WORDS_CHARS] + " […]")
