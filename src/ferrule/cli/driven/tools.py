"""Tools of MCP servers that run inside the program that started this one: each message to them is a request."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from ferrule.cli.driven.peer import Peer, PeerError
from ferrule.core.access import Access
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.tool import Context, Tool
from ferrule.output.clean import clean, clean_value
from ferrule.sources.mcp.results import MOST_ENTRIES, MOST_PAGES, McpResultReader
from ferrule.sources.mcp.results import fault as tool_fault
from ferrule.sources.mcp.server import fault, full_names

if TYPE_CHECKING:
    from ferrule.core.elsewhere import Mixed
    from ferrule.core.tool import Args


_VERSION = "2025-06-18"
_START_SECONDS = 30.0


def inside(config: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """What of `--mcp-config` is for everybody, and the names of the servers that the other program has inside."""
    kept, names = [], []
    for text in config:
        try:
            servers = dict(msgspec.json.decode(text)["mcpServers"]) if text.lstrip().startswith("{") else {}
        except (msgspec.DecodeError, KeyError, TypeError, ValueError):
            servers = {}  # whoever reads it says what is wrong with it
        own = [name for name, entry in servers.items() if isinstance(entry, dict) and entry.get("type") == "sdk"]
        names += own
        rest = {name: entry for name, entry in servers.items() if name not in own}
        if not own:
            kept.append(text)
        elif rest:
            kept.append(msgspec.json.encode({"mcpServers": rest}).decode())
    return tuple(kept), names


async def tools_of(server: str, peer: Peer) -> tuple[list["PeerTool"], list[str]]:
    """All tools of one server, and sentences about those that cannot be used. Raises: ConfigError."""
    if why := fault(server):
        raise ConfigError(f"The MCP server {clean(server)!r} cannot be used: {why}.")
    line = PeerServer(server, peer)
    try:
        async with asyncio.timeout(_START_SECONDS):
            entries = await line.list_tools()
    except (PeerError, TimeoutError) as error:
        why = str(error) or f"it did not list its tools within {_START_SECONDS:g} seconds"
        raise ConfigError(f"The MCP server {server} cannot be used: {clean(why).removesuffix('.')}.") from error
    wrong = [(entry, tool_fault("tools/list", entry)) for entry in entries]
    warnings = [f"A tool of the MCP server {server} is left out. {why}" for _, why in wrong if why]
    usable = list({entry["name"]: entry for entry, why in wrong if not why}.values())
    names = full_names(server, [entry["name"] for entry in usable])
    return [PeerTool(line, entry, names[entry["name"]]) for entry in usable], warnings


class PeerServer:
    """The way to one server."""

    def __init__(self, server: str, peer: Peer) -> None:
        self.server = server
        self._peer = peer
        self._count = 0

    async def list_tools(self) -> list[dict[str, Any]]:
        """Introduce this program, and have the tools listed. Raises: PeerError."""
        about = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "ferrule", "version": "1"}}
        await self.ask("initialize", about)
        message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._peer.ask("mcp_message", server_name=self.server, message=message)
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            page = await self.ask("tools/list", cursor)
            tools = page.get("tools")
            found += tools if isinstance(tools, list) else ()
            if not page.get("nextCursor") or len(found) > MOST_ENTRIES:
                break
            cursor = {"cursor": page["nextCursor"]}
        return found[:MOST_ENTRIES]

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request. Raises: PeerError."""
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        said = await self._peer.ask("mcp_message", server_name=self.server, message=message)
        answer = said.get("mcp_response")
        if not isinstance(answer, dict):
            raise PeerError("its answer is no message of MCP")
        if isinstance(answer.get("error"), dict):
            raise PeerError(str(answer["error"].get("message") or "it does not say why"))
        result = answer.get("result")
        return result if isinstance(result, dict) else {}


class PeerTool(Tool[Any, "Mixed"]):
    """One tool of such a server."""

    args = cast("type[Args]", dict)
    source = "mcp"

    def __init__(self, line: PeerServer, entry: Mapping[str, Any], name: str) -> None:
        self.name = name
        self.origin = line.server
        self.tool = str(entry["name"])
        self.schema = clean_value(entry["inputSchema"])
        self.words = clean(str(entry.get("description") or entry.get("title") or ""))
        self.output_schema = entry.get("outputSchema")
        hints = entry.get("annotations")
        self.hints = clean_value(hints) if isinstance(hints, dict) else {}
        self._line = line

    def access(self, args: Any, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - nobody knows what it touches
        reads = self.hints.get("readOnlyHint") is True
        return (Access.server(self.origin, mode="read" if reads else "write"),)

    async def run(self, args: Any, ctx: Context) -> "Mixed":  # noqa: ARG002 - it needs nothing of this machine
        from mcp_types import CallToolResult  # for whoever has such servers
        from pydantic import ValidationError

        try:
            said = await self._line.ask("tools/call", {"name": self.tool, "arguments": args})
            result = CallToolResult.model_validate(said)
        except PeerError as error:
            raise ToolFailure(
                f"The MCP server {self.origin} could not run {self.tool}: {error}", code="mcp-error"
            ) from error
        except ValidationError as error:
            raise ToolFailure(
                f"The MCP server {self.origin} answered with no result of a tool.", code="mcp-answer"
            ) from error
        return await McpResultReader().read_result(self.tool, result, self.output_schema)
