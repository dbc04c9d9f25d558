"""A connection to one MCP server: started when it is needed, started again when it died, harmful to nobody else.

Stub: the contract between helpers.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ferrule.core.elsewhere import Mixed, ServerResource
from ferrule.sources.mcp.server import Listing, Server

Elicit = Callable[[str, str, Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
"""Server's name, its message and the JSON Schema of what it asks for → the values, or None for no."""


class Connection:
    """One server. Every method starts it first where it does not run; failures are `ToolFailure`s with a sentence."""

    def __init__(
        self,
        server: Server,
        *,
        environment: Mapping[str, str],
        folder: str,
        roots: tuple[str, ...] = (),
        on_changed: Callable[[], None] = lambda: None,
        elicit: Elicit | None = None,
        roster: object | None = None,
        result_bytes: int = 32 << 20,
    ) -> None:
        """`server` has its variables expanded already; `folder` is the workspace."""

    @property
    def running(self) -> bool:
        raise NotImplementedError

    async def listing(self) -> Listing:
        raise NotImplementedError

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Callable[[str], None],
        output_schema: Mapping[str, Any] | None = None,
    ) -> Mixed:
        """Cancelling it cancels the call at the server."""
        raise NotImplementedError

    async def resources(self, *, templates: bool = False) -> list[ServerResource]:
        raise NotImplementedError

    async def read(self, uri: str) -> Mixed:
        raise NotImplementedError

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError
