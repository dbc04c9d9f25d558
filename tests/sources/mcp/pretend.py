"""A connection to a server that is no process: it says what a test wrote down, and remembers what it was asked."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from ferrule.core.errors import ToolFailure
from ferrule.core.services import Mixed, ServerResource
from ferrule.sources.mcp import ListedPrompt, ListedTool, McpServerEntry, ServerListing
from ferrule.sources.mcp.connection import McpConnection

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def tool(name: str, words: str = "Reads a file.", **more: Any) -> ListedTool:
    return ListedTool(name, words, more.pop("schema", SCHEMA), **more)


def listing(*tools: ListedTool, prompts: tuple[ListedPrompt, ...] = (), **more: Any) -> ServerListing:
    return ServerListing("A server", "1", "", tuple(tools), prompts, **more)


class Script:
    """What a server says, and all that it was asked; a test may change it at any time."""

    def __init__(self, says: ServerListing | None = None) -> None:
        self.says = says or listing(tool("read"))
        self.fails = ""
        """A sentence, where it cannot be started."""
        self.hangs = False
        self.starts: list[McpServerEntry] = []
        self.environments: list[Mapping[str, str]] = []
        self.listings = 0
        self.is_restless = False
        """Does it say after every listing that its list has changed?"""
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.schemas: list[Any] = []
        self.progress: tuple[str, ...] = ()
        self.tell: Callable[[str], None] = print
        """Progress of the last call."""
        self.answer: Callable[[], Any] = lambda: Mixed(("done",))
        self.resources: list[ServerResource] = []
        self.closed = 0
        self.connections: list[Pretend] = []

    def change(self, says: ServerListing) -> None:
        """The server says that its list has changed."""
        self.says = says
        for one in self.connections:
            one.on_changed()

    def die(self) -> None:
        for one in self.connections:
            one.is_up = False


class Pretend(McpConnection):
    """Passes the same calls as a connection."""

    scripts: ClassVar[dict[str, Script]] = {}

    def __init__(self, server: McpServerEntry, **given: Any) -> None:
        self.server = server
        self.script = self.scripts[server.name]
        self.on_changed = given["on_changed"]
        self.is_up = False
        self.script.environments.append(given["environment"])
        self.script.connections.append(self)

    @property
    def is_running(self) -> bool:
        return self.is_up

    async def _up(self) -> Script:
        await asyncio.sleep(0)
        if self.script.hangs:
            await asyncio.Event().wait()
        if self.script.fails:
            raise ToolFailure(self.script.fails)
        if not self.is_up:
            self.is_up = True
            self.script.starts.append(self.server)
        return self.script

    async def listing(self) -> ServerListing:
        script = await self._up()
        script.listings += 1
        if script.is_restless:
            self.on_changed()
        return script.says

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Callable[[str], None],
        output_schema: Mapping[str, Any] | None = None,
        is_task: bool = False,
    ) -> Mixed:
        script = await self._up()
        script.calls.append((tool, arguments))
        script.schemas.append(output_schema)
        script.tell = progress
        for message in script.progress:
            progress(message)
            await asyncio.sleep(0)
        answer = script.answer()
        return cast("Mixed", await answer if asyncio.iscoroutine(answer) else answer)

    async def resources(self, *, templates: bool = False) -> list[ServerResource]:
        script = await self._up()
        return [] if templates else script.resources

    async def read(self, uri: str) -> Mixed:
        await self._up()
        return Mixed((f"{self.server.name}: {uri}",))

    async def prompt(self, name: str, arguments: Mapping[str, str]) -> str:
        await self._up()
        return f"{name} {dict(arguments)}"

    async def close(self) -> None:
        self.is_up = False
        self.script.closed += 1
