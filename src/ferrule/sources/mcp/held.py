"""One server in a session: nothing of it runs before it is approved, and nothing is offered that is not pinned."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.sources.mcp.kept_listings import KeptListings
from ferrule.sources.mcp.pins import Pin, PinnedTool, Pins, State, guidance_pin, prompt_pin, tool_pin
from ferrule.sources.mcp.server import ListedPrompt, ListedTool, Listing, Server

if TYPE_CHECKING:
    from ferrule.core.elsewhere import Mixed
    from ferrule.sources.mcp.approval import Approval, Approve
    from ferrule.sources.mcp.connection import Connection

_CODE = "mcp-server"
_ROUNDS = 5
"""How often a server that says again and again that its list has changed is asked for it; then the next call does."""
_BACKSTOP = 2
"""A connection keeps its own time limit; this many times that, it is not waited for any more."""


class Shared(msgspec.Struct, frozen=True):
    """What the servers of a session have in common."""

    pins: Pins
    listings: KeptListings
    workspace: str
    opening: "Callable[[Server, Callable[[], None]], Connection]"
    """A connection to a server, and what it calls when the server says that its list has changed."""
    approve: "Approve | None"
    asking: asyncio.Lock
    """One question at a time."""
    news: Callable[[], None]
    """Told that what is offered has changed."""


class Look(msgspec.Struct, frozen=True):
    """What is approved of a server."""

    state: State
    pin: Pin | None
    """None where nothing is pinned of it, or where it may not be used."""
    is_listed: bool = False


class Held:
    """A server that may be used, if it is approved."""

    def __init__(self, server: Server, shared: Shared) -> None:
        self.server = server
        self.error = ""
        """Why it could not be used the last time, as a sentence."""
        self._shared = shared
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self._is_checked = False
        """Was it listed, and compared with the pins, since it was started?"""
        self._usable: dict[str, ListedTool] = {}
        """The tools that may be called, as far as the server that runs now was looked at."""
        self._is_closed = False
        self._listing: Listing | None = None
        self._definitions: dict[str, ListedTool] | None = None
        """Of its tools, as they are pinned; None where nobody has looked yet."""
        self._refused: set[str] = set()
        self._later: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._connection is not None and self._connection.running

    @property
    def is_shut(self) -> bool:
        """Is it never started, because it is configured so?"""
        return self.server.disabled or self.server.permission == "deny"

    @property
    def is_listed(self) -> bool:
        """Are its tools known?"""
        return self.look().is_listed

    @property
    def _key(self) -> str:
        return self._shared.pins.key(self.server)

    def look(self) -> "Look":
        """What is approved of it, at this moment; nothing of it is loaded."""
        state, pin = self._shared.pins.look(self.server)
        if pin is None or not pin.is_listed or self.is_shut:
            return Look(state, None if self.is_shut else pin)
        is_listed = self._listing is not None or self._shared.listings.is_kept(self._key)
        return Look(state, pin, is_listed=is_listed)

    def tools(self, look: "Look | None" = None) -> dict[str, PinnedTool]:
        """The tools that may be used now."""
        look = look or self.look()
        if look.pin is None or not look.is_listed:
            return {}
        without = {*look.pin.withheld, *look.pin.gone}
        return {name: one for name, one in look.pin.tools.items() if name not in without and self.wants(name)}

    def withheld(self, look: "Look | None" = None) -> tuple[str, ...]:
        """The tools that are not approved as they are."""
        pin = (look or self.look()).pin
        return () if pin is None else tuple(filter(self.wants, pin.withheld))

    def wants(self, tool: str) -> bool:
        if not self.server.include:
            return True
        from ferrule.permissions.rules.wildcard import Wildcard  # for servers of which only some tools are wanted

        return any(Wildcard((tuple(glob.split("*")),)).matches(tool) for glob in self.server.include)

    def listed(self, tool: str) -> ListedTool | None:
        """A tool's definition, as it was approved; None where it is lost."""
        if self._definitions is None:
            pin, listing = self.look().pin, self.listing()
            said = listing.tools if pin is not None and listing is not None else ()
            pinned = {} if pin is None else pin.tools
            self._definitions = {one.name: one for one in said if pinned.get(one.name) == tool_pin(one)}
        return self._definitions.get(tool)

    def prompts(self) -> list[ListedPrompt]:
        """The prompts that may be used now."""
        pin = self.look().pin
        if pin is None or not pin.prompts:
            return []
        listing = self.listing()
        return [one for one in listing.prompts if pin.prompts.get(one.name) == prompt_pin(one)] if listing else []

    def guidance(self) -> str:
        """Its instructions, where the user has approved them as they are."""
        look = self.look()
        pin = look.pin if look.state == "approved" else None
        if pin is None or not pin.guidance or pin.is_guidance_withheld:
            return ""
        listing = self.listing()
        return listing.guidance if listing is not None and guidance_pin(listing.guidance) == pin.guidance else ""

    def listing(self) -> Listing | None:
        """What was approved of its last listing."""
        if self._listing is None:
            self._listing = self._shared.listings.get(self._key)
        return self._listing

    async def connection(self) -> "Connection":
        """The server, running, and listed since it was started. Raises `ToolFailure`."""
        if self._connection is not None and self._connection.running and self._is_checked:
            return self._connection
        async with self._turn:
            if self._connection is None or not self._connection.running or not self._is_checked:
                try:
                    await self._start()
                except ToolFailure as error:
                    self.error = error.message
                    raise
                except ConfigError as error:
                    self.error = str(error)
                    raise ToolFailure(str(error), code=_CODE) from error
                self.error = ""
            assert self._connection is not None
            return self._connection

    async def call(self, tool: str, values: Mapping[str, Any], progress: Callable[[str], None]) -> "Mixed":
        """Call one of its tools. Raises `ToolFailure`, also for a tool that is not approved as it is now."""
        before = None if self.is_running else self._offered()
        connection = await self.connection()
        if before is not None and self._offered() != before:
            self._shared.news()  # the user has approved something that the session does not know yet
        listed = self._usable.get(tool)
        if listed is None:
            raise ToolFailure(self._not_offered(tool), code=_CODE)
        return await connection.call(
            tool, values, progress=progress, output_schema=listed.output_schema, is_task=listed.is_task
        )

    def _not_offered(self, tool: str) -> str:
        name = self.server.name
        if tool in self.withheld():
            return (
                f"The MCP server {name} has changed the tool {tool} since the user approved it, so it was not called. "
                f"The user can look at it with `ferrule mcp approve {name}`."
            )
        return f"The MCP server {name} does not have the tool {tool} any more."

    async def _start(self) -> None:
        if self._is_closed:
            raise ToolFailure(f"The MCP server {self.server.name} was closed with its session.", code=_CODE)
        if self.is_shut:
            raise ToolFailure(f"The MCP server {self.server.name} is switched off in {self.server.source}.", code=_CODE)
        await self._approved()
        self._is_checked = False
        if self._connection is None:
            self._connection = self._shared.opening(self.server, self._on_changed)
        seconds = _BACKSTOP * self.server.start_seconds
        try:
            async with asyncio.timeout(seconds) as limit:
                listing = await self._connection.listing()
        except TimeoutError as error:
            if not limit.expired():
                raise
            why = f"The MCP server {self.server.name} has not answered for {seconds:g} seconds."
            raise ToolFailure(why, code="mcp-timeout") from error
        await self._check(listing)
        self._is_checked = True

    async def _approved(self) -> None:
        """Nothing of a server that others wrote runs before the user has seen how it is started."""
        pins, server = self._shared.pins, self.server
        pins.forget_scripts()
        if pins.look(server)[0] == "approved":
            return
        pins.refresh()
        state, _ = pins.look(server)
        if state == "approved":
            return
        from ferrule.sources.mcp.approval import start_question  # only a question pays for it

        start = pins.start(server)
        if not await self._ask(start_question(server, self._shared.workspace, is_changed=state == "changed"), start):
            raise ToolFailure(self.unapproved(), code=_CODE)
        self._listing = self._definitions = None
        pins.approve(server, start)

    def unapproved(self) -> str:
        """Why it is not used, where it is not approved."""
        name, state = self.server.name, self.look().state
        why = "has changed since it was approved" if state == "changed" else "has not been approved"
        return (
            f"The MCP server {name} of {self.server.source} {why}, so nothing of it is started. Look at it with "
            f"`ferrule mcp approve {name}`."
        )

    async def _ask(self, question: "Approval", about: str) -> bool:
        if self._shared.approve is None or about in self._refused:
            return False
        async with self._shared.asking:
            is_approved = await self._shared.approve(question)
        if not is_approved:
            self._refused.add(about)  # nobody is asked the same twice in a session
        return is_approved

    async def _check(self, raw: Listing) -> None:
        """Compare what the server says with what is pinned of it, and keep what is approved."""
        from ferrule.sources.mcp.compare import compared  # whoever starts a server pays for it

        self._shared.pins.refresh()  # another session may have asked the user meanwhile
        is_foreign = self._shared.pins.is_foreign(self.server)
        found = compared(raw, self.look().pin, self.listing(), self.wants, is_foreign=is_foreign)
        is_approved = False
        if not found.is_approved:
            from ferrule.sources.mcp.approval import tools_question  # only a question pays for it

            question = tools_question(self.server, found.differences(), is_first=found.is_first)
            is_approved = await self._ask(question, found.fingerprint())
        pin, kept = found.settled(is_approved=is_approved)
        self._shared.pins.put(
            self.server, lambda before: msgspec.structs.replace(pin, start=before.start, folder=before.folder)
        )
        if kept != self.listing() or not self._shared.listings.is_kept(self._key):
            self._listing = kept
            self._shared.listings.put(self._key, kept)
        self._definitions = None
        usable = self.tools()
        self._usable = {tool.name: tool for tool in kept.tools if tool.name in usable}

    def _on_changed(self) -> None:
        """The server says that its list has changed. However often it says so, it is asked one time after another."""
        self._is_checked = False
        if self._later is None or self._later.done():
            self._later = asyncio.get_running_loop().create_task(self._look_again())

    async def _look_again(self) -> None:
        before = self._offered()
        for _ in range(_ROUNDS):
            if self._is_checked or not self.is_running:
                break
            try:
                await self.connection()
            except ToolFailure:
                break
        if self._offered() != before:
            self._shared.news()

    def _offered(self) -> tuple[Any, ...]:
        look = self.look()
        if look.pin is None:
            return ()
        pin = look.pin
        told = (pin.withheld, pin.has_resources, pin.guidance, pin.is_guidance_withheld)
        return self.tools(look), pin.prompts, *told

    def forget(self) -> None:
        """Nothing of it is approved any more."""
        self._listing = self._definitions = None
        self._is_checked = False
        self._usable.clear()
        self._refused.clear()

    async def stop(self) -> None:
        """End it. Whoever needs it next starts it again, and what the user refused is asked about once more."""
        async with self._turn:
            connection, self._connection = self._connection, None
            self._is_checked = False
            self._refused.clear()
            if connection is not None:
                await connection.close()

    async def close(self) -> None:
        self._is_closed = True
        if self._later is not None:
            self._later.cancel()
            await asyncio.wait([self._later])
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
