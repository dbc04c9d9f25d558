"""What a server lists, judged entry by entry and bounded, before anybody believes it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.core.elsewhere import ServerResource
from ferrule.output.clean import clean, clean_value
from ferrule.sources.mcp.server import ListedPrompt, ListedTool

if TYPE_CHECKING:
    from mcp_types import Prompt, Tool

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


def shown_name(entry: Any) -> str:
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
