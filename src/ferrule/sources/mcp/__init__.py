"""Define MCP servers as configured and as listed, and the names of their tools in a session.

A tool is called `mcp__{server}__{tool}`, in characters that every model API takes. A server's name has no `__`
and ends in no `_`, so the first `__` after the prefix is its end: a rule about `mcp__git` can mean no other
server. The part before the tool is never cut.
"""

import hashlib
import re
from collections.abc import Container, Mapping, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.tool import Exposure

Transport = Literal["stdio", "http", "sse"]
Layer = Literal["managed", "user", "project", "session", "skill"]
Permission = Literal["allow", "ask", "deny"]


class McpServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a configuration, whichever form it was written in. Variables are not expanded yet."""

    name: str
    transport: Transport
    layer: Layer
    source: str
    """Where it was written, for people."""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    """Where it runs; the workspace where nothing is said."""
    url: str = ""
    headers: Mapping[str, str] = {}
    disabled: bool = False
    include: tuple[str, ...] = ()
    """Globs of the tools that are wanted; none means all."""
    exposure: Exposure | None = None
    permission: Permission = "ask"
    """What is said to its calls where no rule speaks about them."""
    seconds: float | None = None
    """A time limit for its calls; progress starts it anew. The engine's own where nothing is said."""
    start_seconds: float = 30.0


class ListedTool(NamedTuple):
    """A tool as a server has listed it."""

    name: str
    words: str
    schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    hints: Mapping[str, Any] = {}
    title: str = ""
    is_task: bool = False
    """Does the server run it as a task only?"""


class ListedPrompt(NamedTuple):
    """A prompt as a server has listed it."""

    name: str
    words: str
    arguments: tuple[tuple[str, str, bool], ...] = ()
    """Name, description, and whether it is required."""


class ServerListing(NamedTuple):
    """All that a server offers, as it said."""

    title: str
    version: str
    guidance: str
    """The server's instructions."""
    tools: tuple[ListedTool, ...]
    prompts: tuple[ListedPrompt, ...] = ()
    has_resources: bool = False
    rejected: tuple[tuple[str, str], ...] = ()
    """Tools that could not be used, by name, each with the reason: nothing of them is kept."""


PREFIX = "mcp__"
MOST_CHARS = 64
SERVER_CHARS = 40
_HASH_CHARS = 8
_PLAIN = r"[A-Za-z0-9_-]+"


def fault(server: str) -> str:
    """Why that cannot be the name of a server, and what to do; empty where it can."""
    if not re.fullmatch(_PLAIN, server):
        return "a name consists of the letters a to z, digits, _ and -; give it another one"
    if "__" in server or server[0] == "_" or server[-1] == "_":
        return "a name has no two _ in a row, and none at its beginning or end; give it another one"
    if len(server) > SERVER_CHARS:
        return f"a name has at most {SERVER_CHARS} characters; give it a shorter one"
    return ""


def full_names(server: str, tools: Sequence[str]) -> dict[str, str]:
    """A server's tools → what they are called in a session, each differently, in whatever order they come."""
    return _assign_names(f"{PREFIX}{server}__", tools)


def short_names(tools: Sequence[str]) -> dict[str, str]:
    """The same without the server, for families that say it only where two tools share a name."""
    return _assign_names("", tools)


def server_of(name: str) -> str:
    """The server that a tool's full name speaks of; empty where it is no such name."""
    if not name.startswith(PREFIX):
        return ""
    server, found, tool = name[len(PREFIX) :].partition("__")
    return server if found and tool and not fault(server) else ""


def _assign_names(prefix: str, tools: Sequence[str]) -> dict[str, str]:
    room = MOST_CHARS - len(prefix)
    # A tool that needs no change keeps its name, whatever others there are: what the user has said about it stays true.
    if tools and all(0 < len(tool) <= room for tool in tools) and re.fullmatch(_PLAIN, "".join(tools)):
        return {tool: prefix + tool for tool in tools}  # as nearly always, and a session begins with a thousand of them
    names = {tool: tool for tool in tools if len(tool) <= room and re.fullmatch(_PLAIN, tool)}
    used = set(names)
    cleaned = {tool: _clean(tool) or "_" for tool in sorted(set(tools) - used)}
    wanted: dict[str, int] = {}
    for plain in cleaned.values():
        wanted[plain] = wanted.get(plain, 0) + 1
    for tool, plain in cleaned.items():
        is_free = len(plain) <= room and wanted[plain] == 1 and plain not in used
        names[tool] = plain if is_free else _hash_name(plain[: room - _HASH_CHARS - 1], tool, used)
        used.add(names[tool])
    return {tool: prefix + names[tool] for tool in tools}


def _hash_name(plain: str, tool: str, used: Container[str]) -> str:
    for salt in count():
        text = f"{salt}\0{tool}".encode("utf-8", "surrogatepass")
        name = f"{plain}_{hashlib.blake2b(text, digest_size=_HASH_CHARS // 2).hexdigest()}"
        if name not in used:
            break
    return name


def _clean(tool: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", tool)


class OfferedPrompt(msgspec.Struct, frozen=True):
    """A prompt of a server, which counts as a skill."""

    server: str
    name: str
    words: str
    arguments: tuple[tuple[str, str, bool], ...]
    """Name, description, and whether it is required."""


class ServerState(msgspec.Struct, frozen=True):
    """A server, for people."""

    name: str
    layer: Layer
    transport: Transport
    source: str
    state: str
    """disabled, denied, new, changed, unlisted, listed or running."""
    tools: int
    withheld: tuple[str, ...] = ()
    quarantined: tuple[tuple[str, str], ...] = ()
    error: str = ""
    guidance_chars: int = 0
    """How long its instructions are, where the model is shown them."""
    is_guidance_withheld: bool = False
