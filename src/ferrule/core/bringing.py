"""What a skill may bring into a session: rules, tools and servers."""

from collections.abc import Mapping, Sequence
from typing import Any


class Bringing:
    """The engine, as the skill tool reaches it: `ctx.need(Bringing)`. The engine gives its own subclass."""

    def allow(self, rules: Sequence[str]) -> tuple[str, ...]:
        """Let these rules allow calls until the session ends; those that were understood."""
        raise NotImplementedError

    async def tools(self, folder: str) -> tuple[str, ...]:
        """Add the toolbox that a skill carries; the names of its tools."""
        raise NotImplementedError

    async def servers(self, servers: Mapping[str, Any], origin: str) -> tuple[str, ...]:
        """Add the MCP servers of a skill's `mcp.json`; the names of their tools."""
        raise NotImplementedError

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a server's prompt, which counts as a skill."""
        raise NotImplementedError
