"""A tool of an MCP server, as the engine calls it. What it says of itself is read when it is first looked at."""

import asyncio
import contextlib
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ferrule.core.access import Access
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context, Tool
from ferrule.sources.mcp.approval import PinnedTool
from ferrule.sources.mcp.server import ListedTool

if TYPE_CHECKING:
    from ferrule.core.elsewhere import Mixed
    from ferrule.core.tool import Args
    from ferrule.sources.mcp.held import Held


_OPEN: Mapping[str, Any] = {"type": "object"}


class McpTool(Tool[Any, "Mixed"]):
    """One tool of one server."""

    # Its arguments are whatever its own schema lets pass, under names that need not be Python's: they reach the server
    # as they are. Conversion into a plain dictionary changes nothing in them.
    args = cast("type[Args]", dict)
    source = "mcp"

    def __init__(self, held: "Held", tool: str, pinned: PinnedTool, *, name: str, short: str) -> None:
        """`tool` is what the server calls it."""
        server = held.server
        self.name = name
        self.short = short
        self.origin = server.name
        self.exposure = server.exposure
        self.timed = server.seconds is None
        self.tool = tool
        self.definition_chars = pinned.chars
        self._pinned = pinned
        self._held = held
        self._is_lost = False

    def is_still(self, pinned: PinnedTool, *, name: str, short: str) -> bool:
        """Is it the tool that is approved now, and does it know what that says of itself?"""
        return self._pinned == pinned and self.name == name and self.short == short and not self._is_lost

    @cached_property
    def definition(self) -> ListedTool:
        """The tool as its server has listed it."""
        found = self._held.find_definition(self.tool)
        if found is not None:
            return found
        self._is_lost = True
        lost = "Its description is not known any more; it is asked for again when the server is started."
        return ListedTool(self.tool, lost, _OPEN)

    @cached_property
    def schema(self) -> Mapping[str, Any]:  # type: ignore[override]  # read late, then as good as set
        return self.definition.schema

    @cached_property
    def words(self) -> str:  # type: ignore[override]  # read late, then as good as set
        return self.definition.words or self.definition.title

    @cached_property
    def output_schema(self) -> Mapping[str, Any] | None:  # type: ignore[override]  # read late, then as good as set
        return self.definition.output_schema

    @cached_property
    def hints(self) -> Mapping[str, Any]:  # type: ignore[override]  # read late, then as good as set
        return (
            {"title": self.definition.title, **self.definition.hints}
            if self.definition.title
            else self.definition.hints
        )

    def access(self, args: Any, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - nobody knows what it touches
        reads = self.hints.get("readOnlyHint") is True
        return (Access.server(self.origin, mode="read" if reads else "write"),)

    async def run(self, args: Any, ctx: Context) -> "Mixed":
        seconds = self._held.server.seconds
        if seconds is None:
            return await self._held.call(self.tool, args, ctx.progress)
        try:
            async with asyncio.timeout(seconds) as limit:

                def progress(message: str) -> None:
                    with contextlib.suppress(RuntimeError):  # it came when all was over
                        limit.reschedule(asyncio.get_running_loop().time() + seconds)
                    ctx.progress(message)

                return await self._held.call(self.tool, args, progress)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise ToolFailure(f"Tool execution timed out after {seconds:.12g} seconds", code="timed-out") from error
