"""What tools from elsewhere come back with, and tools that are about them."""

import base64
from typing import Any, NamedTuple

from ferrule.core.content import Picture


class McpContent(NamedTuple):
    """A part of an answer that is neither text nor a picture: sound, a link, something embedded."""

    kind: str
    """As MCP names it: audio, resource_link, resource."""
    block: dict[str, Any]
    """The part as MCP writes it."""
    words: str
    """What is said in its place where it cannot be shown."""


class Mixed(NamedTuple):
    """What a tool from elsewhere answered."""

    parts: tuple[str | Picture | McpContent, ...]
    structured: Any = None
    """The same as a JSON value, where the tool gives one."""
    failed: bool = False
    """Does the tool itself say that it failed?"""


class ToolsFound(NamedTuple):
    """Tools that a search has found; they are loaded from now on."""

    query: str
    tools: tuple["ToolFound", ...]
    definitions_follow: bool = False
    """Does the model get their whole definitions with its next turn?"""


class ToolFound(NamedTuple):
    """One tool that a search has found."""

    name: str
    words: str
    schema: Any


class SkillLoaded(NamedTuple):
    """A skill's instructions, with its arguments and the output of its commands in them."""

    name: str
    folder: str
    """What its relative paths start from; empty for one that is no folder."""
    text: str
    brought: tuple[str, ...] = ()
    """Names of the tools that it has brought."""
    allowed: tuple[str, ...] = ()
    """Rules that hold from now on, as it wrote them."""
    files: tuple[str, ...] = ()
    """Names of what lies beside its instructions, folders with a slash at their end."""


class ServerResource(NamedTuple):
    """Something that an MCP server offers to be read, or a template of such."""

    server: str
    uri: str
    name: str
    words: str = ""
    media_type: str = ""


class ServerResources(NamedTuple):
    """What servers offer; `templates` tells which kind was asked for."""

    resources: tuple[ServerResource, ...]
    templates: bool = False
    silent: tuple[tuple[str, str], ...] = ()
    """Servers that could not be asked, each with the reason."""
    next_cursor: str = ""


def render_outcome(outcome: Any) -> Any:
    """An outcome as text or a JSON value, for tools whose words are their own; parts where there is a picture."""
    if not isinstance(outcome, Mixed):
        return outcome
    parts = outcome.parts
    if not any(isinstance(part, Picture) for part in parts):
        if not parts and outcome.structured is not None:
            return outcome.structured
        return "\n".join(
            part if isinstance(part, str) else part.words for part in parts if not isinstance(part, Picture)
        )
    return [_render_part(part) for part in parts]


def _render_part(part: str | Picture | McpContent) -> dict[str, str]:
    if isinstance(part, Picture):
        data = base64.b64encode(part.data).decode()
        return {"type": "image", "media_type": part.media_type, "data": data}
    return {"type": "text", "text": part if isinstance(part, str) else part.words}


def has_failed(outcome: Any) -> bool:
    """Does the tool itself say that it failed?"""
    return isinstance(outcome, Mixed) and outcome.failed
