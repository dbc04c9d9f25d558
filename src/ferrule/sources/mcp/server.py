"""An MCP server as somebody has configured it, and what it has said of itself."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.tool import Exposure

Transport = Literal["stdio", "http", "sse"]
Layer = Literal["managed", "user", "project", "session", "skill"]
Permission = Literal["allow", "ask", "deny"]


class Server(msgspec.Struct, frozen=True, kw_only=True):
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


class Listing(NamedTuple):
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
