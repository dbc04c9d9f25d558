"""Manage the MCP servers of a session, their tools and their resources.

The tools of a server are known from its last run, so a server is started only when it is needed. Resources are
requested from several servers at once and returned in pages.

What it says of itself is read when it is first looked at.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ferrule.core.access import Access
from ferrule.core.errors import ConfigError, ToolFailure, near
from ferrule.core.services import INSTRUCTIONS, Mixed, Offered, ServerResource, ServerResources
from ferrule.core.tool import Context, Tool
from ferrule.sources import SourceTools
from ferrule.sources.mcp import (
    PREFIX,
    Layer,
    ListedTool,
    McpServerEntry,
    OfferedPrompt,
    ServerState,
    full_names,
    server_of,
    short_names,
)
from ferrule.sources.mcp.approval import KeptListings, PinnedTool, ServerPins
from ferrule.sources.mcp.config import Configured, expand_variables, find_rejection, skill_servers
from ferrule.sources.mcp.held import Held, Look, McpSessionContext

if TYPE_CHECKING:
    from ferrule.core.tool import Args
    from ferrule.sources.mcp.approval import Approve
    from ferrule.sources.mcp.config import Allowed
    from ferrule.sources.mcp.connection import McpConnection, Opening


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


_AT_ONCE = 8
"""How many servers are started at the same moment."""


class Servers(Offered):
    """All servers of a session, by name."""

    def __init__(
        self,
        configured: Configured,
        *,
        state_folder: str,
        workspace: str,
        opening: "Opening",
        approve: "Approve | None" = None,
        on_changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`approve` asks the user; without it, what is not approved is withheld. `on_changed` is told of new lists."""
        self.on_changed = on_changed
        self._opening = opening
        self._allowed: tuple[Allowed, ...] = ()
        self._warnings: tuple[str, ...] = ()
        self._is_shut = False
        self._shared = McpSessionContext(
            pins=ServerPins(state_folder, workspace),
            listings=KeptListings(state_folder),
            workspace=workspace,
            opening=self._connection,
            approve=approve,
            asking=asyncio.Lock(),
            news=self._tell,
        )
        self._held: dict[str, Held] = {}
        self._made: dict[str, McpTool] = {}
        """By their full names."""
        self._names: set[str] = set()
        self._take(configured)

    def _tell(self) -> None:
        self.on_changed()

    def _take(self, configured: Configured) -> list[Held]:
        self._allowed += configured.allowed
        self._warnings += configured.warnings
        self._is_shut = self._is_shut or configured.is_shut
        taken = []
        for server in configured.servers:
            if server.name.casefold() in self._names:
                self._warnings += (
                    f"{server.source}: the MCP server {server.name} is not used, because there is one of that name.",
                )
                continue
            self._names.add(server.name.casefold())
            held = self._held[server.name] = Held(server, self._shared)
            taken.append(held)
        return taken

    def source_tools(self) -> SourceTools:
        """The tools as they were approved and listed last. Nothing is started, and nothing of a server is loaded."""
        looks = [(held, held.look()) for held in self._held.values()]
        warnings = [worry for held, look in looks for worry in self._worries(held, look)]
        return SourceTools(self._tools(looks), (*self._warnings, *warnings))

    def find_unlisted(self) -> tuple[str, ...]:
        """The servers whose tools are not known yet, and that could be asked for them."""
        return tuple(name for name, held in self._held.items() if self._is_unlisted(held))

    async def connect(self, names: Sequence[str] | None = None) -> SourceTools:
        """Start the servers that are named, or those that were never listed, and list their tools.

        All tools that are known now, and warnings about these servers.
        """
        self._shared.pins.refresh()
        wanted = self.find_unlisted() if names is None else tuple(dict.fromkeys(names))
        warnings = [self._unknown(name) for name in wanted if name not in self._held]
        several = [self._held[name] for name in wanted if name in self._held]
        warnings += await self._list_servers(several)
        return SourceTools(self._tools((held, held.look()) for held in self._held.values()), tuple(warnings))

    async def add(self, entries: Mapping[str, Any], source: str, *, layer: Layer = "skill") -> SourceTools:
        """Take in the servers of a skill's `mcp.json`; their tools, and warnings about them."""
        before = len(self._warnings)
        taken = self._take(skill_servers(entries, source=source, layer=layer))
        warnings = [*self._warnings[before:], *await self._list_servers([held for held in taken if not held.is_listed])]
        return SourceTools(self._tools((held, held.look()) for held in taken), tuple(warnings))

    async def _list_servers(self, several: Sequence[Held]) -> list[str]:
        places = asyncio.Semaphore(_AT_ONCE)

        async def one(held: Held) -> list[str]:
            async with places:
                try:
                    await held.connection()
                except ToolFailure as error:
                    return [error.message]
            return self._worries(held, held.look())

        found = await asyncio.gather(*map(one, several))
        if self._shared.pins.obstacle:
            found.append([self._shared.pins.obstacle])
        return [warning for warnings in found for warning in warnings]

    def _tools(self, looks: Iterable[tuple[Held, Look]]) -> tuple[McpTool, ...]:
        tools: list[McpTool] = []
        for held, look in looks:
            usable = held.tools(look)
            if not usable or look.pin is None:
                continue
            # By all that was ever approved of it: what is left out must not change what the others are called.
            full, short = full_names(held.server.name, list(look.pin.tools)), short_names(list(look.pin.tools))
            tools += [self._tool(held, tool, one, full[tool], short[tool]) for tool, one in usable.items()]
        return tuple(tools)

    def _tool(self, held: Held, tool: str, pinned: PinnedTool, name: str, short: str) -> McpTool:
        """A tool that has not changed is the same as before: nobody has to read again what it says of itself."""
        made = self._made.get(name)
        if made is None or not made.is_still(pinned, name=name, short=short):
            made = self._made[name] = McpTool(held, tool, pinned, name=name, short=short)
        return made

    def _worries(self, held: Held, look: Look) -> list[str]:
        name, pin = held.server.name, look.pin
        if held.is_shut:
            return []
        if look.state != "approved":
            return [held.explain_unapproved()]
        worries = []
        if withheld := held.withheld(look):
            worries.append(
                f"The MCP server {name} offers these tools in another form than was approved, or newly, so they are "
                f"withheld: {', '.join(withheld[:20])}. Look at them with `ferrule mcp approve {name}`."
            )
        if pin is not None and pin.is_guidance_withheld:
            worries.append(
                f"The MCP server {name} has instructions that were not approved as they are, so the model is not shown "
                f"any of it. Look at them with `ferrule mcp approve {name}`."
            )
        if pin is not None:
            faults = [(tool, why.rstrip(".")) for tool, why in pin.quarantined]
            worries += [f"The MCP server {name}: the tool {tool} is not used: {why}." for tool, why in faults]
        return worries

    def _may_start(self, held: Held, look: Look) -> bool:
        if held.is_shut or self._is_shut:
            return False
        return self._shared.approve is not None or look.state == "approved"

    def _is_unlisted(self, held: Held) -> bool:
        look = held.look()
        return self._may_start(held, look) and not look.is_listed

    def serves(self, tool_name: str) -> str | None:
        """The server that a tool's full name speaks of, where its tools are not known yet and it could be asked."""
        held = self._held.get(server_of(tool_name))
        return held.server.name if held is not None and self._is_unlisted(held) else None

    def rules(self) -> tuple[tuple[str, str], ...]:
        """What the configuration says to all calls of a server: allow or deny, and the rule's text."""
        servers = [held.server for held in self._held.values() if held.server.permission != "ask"]
        return tuple((server.permission, f"{PREFIX}{server.name}") for server in servers)

    def states(self) -> "list[ServerState]":
        """Every configured server, for people."""
        return [self._state(held) for held in self._held.values()]

    def _state(self, held: Held) -> "ServerState":

        server, look = held.server, held.look()
        state: str = look.state
        if held.is_shut:
            state = "disabled" if server.disabled else "denied"
        elif state == "approved":
            state = "running" if held.is_running else "listed" if look.is_listed else "unlisted"
        return ServerState(
            name=server.name,
            layer=server.layer,
            transport=server.transport,
            source=server.source,
            state=state,
            tools=len(held.tools(look)),
            withheld=held.withheld(look),
            quarantined=() if look.pin is None else look.pin.quarantined,
            guidance_chars=len(held.guidance()),
            is_guidance_withheld=look.pin is not None and look.pin.is_guidance_withheld,
            error=held.error,
        )

    def forget(self, name: str) -> None:
        """Keep nothing of what was approved of a server. Raises `ConfigError`."""
        held = self._held.get(name)
        if held is None:
            raise ConfigError(self._unknown(name))
        self._shared.listings.drop(self._shared.pins.key(held.server))
        self._shared.pins.forget(held.server)
        held.forget()

    def prompts(self) -> "tuple[OfferedPrompt, ...]":
        """The prompts that are known now; nothing is started."""
        return tuple(
            OfferedPrompt(name, one.name, one.words, one.arguments)
            for name, held in self._held.items()
            for one in held.prompts()
        )

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a prompt. Raises `ToolFailure`."""
        held = self._lookup_server(server)
        connection = await held.connection()
        if not any(one.name == name for one in held.prompts()):
            raise ToolFailure(f"The MCP server {server} has no prompt {name} that is approved.", code="mcp-server")
        return await connection.prompt(name, arguments)

    def guidance(self) -> dict[str, str]:
        """Server → its instructions, of those that have any that are approved; nothing is started."""
        found = {name: held.guidance() for name, held in self._held.items()}
        return {name: words for name, words in found.items() if words}

    async def resources(self, server: str | None, *, templates: bool = False, cursor: str = "") -> "ServerResources":
        """What one server, or every server that has any, offers to be read."""
        asked = [self._lookup_server(server)] if server else self._with_resources()
        return await list_resources(asked, templates=templates, cursor=cursor, alone=bool(server))

    async def read(self, server: str | None, uri: str) -> "Mixed":
        """One resource, from the server that was named or from the one that offers it."""
        if uri.startswith(INSTRUCTIONS):
            return self._instructions(uri.removeprefix(INSTRUCTIONS))

        held = self._lookup_server(server) if server else await holder(self._with_resources(), uri)
        return await (await held.connection()).read(uri)

    def _instructions(self, server: str) -> "Mixed":

        words = self._lookup_server(server).guidance()
        if not words:
            raise ToolFailure(f"The MCP server {server} has no instructions that are approved.", code="mcp-server")
        return Mixed((words,))

    def has_resources(self) -> bool:
        """Does a server, as far as they are known, offer anything to be read?"""
        pins = (look.pin for look in (held.look() for held in self._held.values()) if look.state == "approved")
        return any(pin is not None and pin.has_resources for pin in pins)

    def _with_resources(self) -> list[Held]:
        """Servers that may have some, and that may be started without a question."""
        found = []
        for held in self._held.values():
            look = held.look()
            if not held.is_shut and look.state == "approved":
                pin = look.pin
                if pin is None or not pin.is_listed or pin.has_resources:
                    found.append(held)
        return found

    def _lookup_server(self, server: str) -> Held:
        held = self._held.get(server)
        if held is None:
            raise ToolFailure(self._unknown(server), code="mcp-server")
        return held

    def _unknown(self, name: str) -> str:
        close = near(name[:100], self._held)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"There are {', '.join(self._held) or 'none'}."
        return f"There is no MCP server called {name[:100]!r}. {hint}"

    def _connection(self, server: McpServerEntry, on_changed: Callable[[], None]) -> "McpConnection":
        # Decided once more: what is rejected may only show when its variables are known.
        here = {"WORKSPACE": self._shared.workspace, "CLAUDE_PROJECT_DIR": self._shared.workspace}
        ready = expand_variables(server, {**self._opening.environment, **here})
        if self._is_shut or find_rejection(ready, self._allowed) is not None:
            raise ConfigError(f"The MCP server {server.name} is rejected by amp.mcpPermissions.")
        return self._opening.connection(ready, self._shared.workspace, on_changed)

    async def stop(self, name: str) -> None:
        """End one server; it is started again when it is needed. Raises `ToolFailure` where there is none."""
        await self._lookup_server(name).stop()

    async def close(self) -> None:
        """End all servers."""
        await asyncio.gather(*(held.close() for held in self._held.values()))


PAGE = 200
"""How many are handed out at once."""


async def list_resources(several: Sequence[Held], *, templates: bool, cursor: str, alone: bool) -> ServerResources:
    """The resources of all of them; `alone` means that one was asked for by name, so its failure is the caller's."""
    start = _start(cursor)
    answers = await asyncio.gather(*(_fetch_resources(held, templates=templates) for held in several))
    found: list[ServerResource] = []
    silent: list[tuple[str, str]] = []
    for held, answer in zip(several, answers, strict=True):
        if not isinstance(answer, ToolFailure):
            found += answer
        elif alone:
            raise answer
        else:
            silent.append((held.server.name, answer.message))
    more = str(start + PAGE) if len(found) > start + PAGE else ""
    return ServerResources(tuple(found[start : start + PAGE]), templates, tuple(silent), more)


async def holder(several: Sequence[Held], uri: str) -> Held:
    """The one that offers a resource. Raises `ToolFailure` where none does, or more than one."""
    offering = list(several)
    if len(offering) > 1:
        answers = await asyncio.gather(*(_fetch_resources(held, templates=False) for held in several))
        pairs = zip(several, answers, strict=True)
        offering = [held for held, answer in pairs if not isinstance(answer, ToolFailure) and _has(answer, uri)]
    if len(offering) == 1:
        return offering[0]
    names = ", ".join(held.server.name for held in offering or several)
    if not names:
        raise ToolFailure("There is no MCP server with resources.", code="mcp-server")
    which = "Several servers offer it" if offering else "No server lists it"
    raise ToolFailure(f"{which}; say which server it is to come from: {names}.", code="mcp-server")


def _start(cursor: str) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise ToolFailure("The cursor is not one that was given out. Leave it out to begin anew.")
    return int(cursor)


async def _fetch_resources(held: Held, *, templates: bool) -> list[ServerResource] | ToolFailure:
    try:
        return await (await held.connection()).resources(templates=templates)
    except ToolFailure as error:
        return error


def _has(resources: Sequence[ServerResource], uri: str) -> bool:
    return any(one.uri == uri for one in resources)
