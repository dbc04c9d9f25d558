"""A session without servers, as the tools about resources see it."""

from ferrule.core.elsewhere import Mixed, ServerResources
from ferrule.core.errors import ToolFailure
from ferrule.core.offered import Offered


class Unserved(Offered):
    """Nothing is offered, and whoever names a server is told that there is none."""

    async def resources(self, server: str | None, *, templates: bool = False, cursor: str = "") -> ServerResources:  # noqa: ARG002 - there is no second page
        if server:
            raise _none()
        return ServerResources((), templates=templates)

    async def read(self, server: str | None, uri: str) -> Mixed:  # noqa: ARG002 - nobody has it
        raise _none()


def _none() -> ToolFailure:
    return ToolFailure(
        "No MCP server is configured in this session, so there is nothing of theirs to read. The user can add one with "
        "`ferrule mcp add`.",
        code="mcp-server",
    )
