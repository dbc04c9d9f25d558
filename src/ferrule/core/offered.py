"""What MCP servers offer beside tools, as the tools for it reach it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferrule.core.elsewhere import Mixed, ServerResources  # a session that only knows its servers has none of them

INSTRUCTIONS = "ferrule://instructions/"
"""Before a server's name, the address of its instructions: a prompt shows only their beginning where they are long."""


class Offered:
    """The session's servers: `ctx.need(Offered)`. The engine gives its own subclass."""

    async def resources(self, server: str | None, *, templates: bool = False, cursor: str = "") -> "ServerResources":
        """What one server, or every server, offers to be read. Raises `ToolFailure` for an unknown server."""
        raise NotImplementedError

    async def read(self, server: str | None, uri: str) -> "Mixed":
        """One resource, from the server that was named or from the one that offers it."""
        raise NotImplementedError
