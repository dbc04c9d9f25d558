"""Hold one MCP server in a session, and compare its listing with the pins.

Nothing of a server runs before it is approved, and nothing is offered that is not pinned. Tools and prompts that
are new or changed are detected here.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.permissions.rules import Wildcard
from ferrule.sources.mcp import ListedPrompt, ListedTool, McpServerEntry, ServerListing
from ferrule.sources.mcp.approval import (
    Difference,
    KeptListings,
    Pin,
    PinnedTool,
    ServerPins,
    State,
    fingerprint,
    guidance_pin,
    prompt_pin,
    prompt_text,
    start_question,
    tool_pin,
    tool_text,
    tools_question,
)
from ferrule.sources.mcp.results import filter_listing

if TYPE_CHECKING:
    from ferrule.core.services import Mixed
    from ferrule.sources.mcp.approval import Approval, Approve
    from ferrule.sources.mcp.connection import McpConnection


_CODE = "mcp-server"
_ROUNDS = 5
"""How often a server that says again and again that its list has changed is asked for it; then the next call does."""
_BACKSTOP = 2
"""A connection keeps its own time limit; this many times that, it is not waited for any more."""


class McpSessionContext(msgspec.Struct, frozen=True):
    """What the servers of a session have in common."""

    pins: ServerPins
    listings: KeptListings
    workspace: str
    opening: "Callable[[McpServerEntry, Callable[[], None]], McpConnection]"
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

    def __init__(self, server: McpServerEntry, shared: McpSessionContext) -> None:
        self.server = server
        self.error = ""
        """Why it could not be used the last time, as a sentence."""
        self._shared = shared
        self._connection: McpConnection | None = None
        self._turn = asyncio.Lock()
        self._is_checked = False
        """Was it listed, and compared with the pins, since it was started?"""
        self._usable: dict[str, ListedTool] = {}
        """The tools that may be called, as far as the server that runs now was looked at."""
        self._is_closed = False
        self._listing: ServerListing | None = None
        self._definitions: dict[str, ListedTool] | None = None
        """Of its tools, as they are pinned; None where nobody has looked yet."""
        self._refused: set[str] = set()
        self._later: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._connection is not None and self._connection.is_running

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

        return any(Wildcard((tuple(glob.split("*")),)).matches(tool) for glob in self.server.include)

    def find_definition(self, tool: str) -> ListedTool | None:
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

    def listing(self) -> ServerListing | None:
        """What was approved of its last listing."""
        if self._listing is None:
            self._listing = self._shared.listings.get(self._key)
        return self._listing

    async def connection(self) -> "McpConnection":
        """The server, running, and listed since it was started. Raises `ToolFailure`."""
        if self._connection is not None and self._connection.is_running and self._is_checked:
            return self._connection
        async with self._turn:
            if self._connection is None or not self._connection.is_running or not self._is_checked:
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
        before = None if self.is_running else self._snapshot()
        connection = await self.connection()
        if before is not None and self._snapshot() != before:
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
        await self._ensure_approved()
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

    async def _ensure_approved(self) -> None:
        """Nothing of a server that others wrote runs before the user has seen how it is started."""
        pins, server = self._shared.pins, self.server
        pins.forget_scripts()
        if pins.look(server)[0] == "approved":
            return
        pins.refresh()
        state, _ = pins.look(server)
        if state == "approved":
            return

        start = pins.start(server)
        if not await self._ask(start_question(server, self._shared.workspace, is_changed=state == "changed"), start):
            raise ToolFailure(self.explain_unapproved(), code=_CODE)
        self._listing = self._definitions = None
        pins.approve(server, start)

    def explain_unapproved(self) -> str:
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

    async def _check(self, raw: ServerListing) -> None:
        """Compare what the server says with what is pinned of it, and keep what is approved."""
        self._shared.pins.refresh()  # another session may have asked the user meanwhile
        is_foreign = self._shared.pins.is_foreign(self.server)
        found = compare_listing(raw, self.look().pin, self.listing(), self.wants, is_foreign=is_foreign)
        is_approved = False
        if not found.is_approved:
            question = tools_question(self.server, found.differences(), is_first=found.is_first)
            is_approved = await self._ask(question, found.fingerprint())
        pin, kept = found.settle_pin(is_approved=is_approved)
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
        before = self._snapshot()
        for _ in range(_ROUNDS):
            if self._is_checked or not self.is_running:
                break
            try:
                await self.connection()
            except ToolFailure:
                break
        if self._snapshot() != before:
            self._shared.news()

    def _snapshot(self) -> tuple[Any, ...]:
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


class ListingComparison(NamedTuple):
    """A listing that was looked at, beside the pin that was there before."""

    pin: Pin | None
    """None, or one that was never listed: then everything is pinned as it is."""
    old: ServerListing | None
    """What was approved before."""
    new: ServerListing
    tools: Mapping[str, PinnedTool]
    prompts: Mapping[str, str]
    out: tuple[tuple[str, str], ...]
    wants: Callable[[str], bool]
    is_foreign: bool
    """Did others write it? Then the instructions that it lists first are asked about too: the model reads them."""

    @property
    def is_first(self) -> bool:
        return self.pin is None or not self.pin.is_listed

    def names(self) -> tuple[list[str], list[str]]:
        """The tools and the prompts that the user has not approved as they are."""
        if self.pin is None or self.is_first:
            return [], []
        tools = [name for name, one in self.tools.items() if self.wants(name) and self.pin.tools.get(name) != one]
        return tools, [name for name, one in self.prompts.items() if self.pin.prompts.get(name) != one]

    @property
    def has_other_guidance(self) -> bool:
        """Has the server instructions that the user has not approved as they are?"""
        known = None if self.pin is None or self.is_first else self.pin.guidance
        if known is None:
            return self.is_foreign and bool(self.new.guidance)
        return bool(self.new.guidance) and known != guidance_pin(self.new.guidance)

    @property
    def is_approved(self) -> bool:
        """Is all of it as the user has approved it?"""
        return not any(self.names()) and not self.has_other_guidance

    def fingerprint(self) -> str:
        """One hash of all that is not approved."""
        tools, prompts = self.names()
        guidance = self.new.guidance if self.has_other_guidance else ""
        return fingerprint(
            [[(name, self.tools[name]) for name in tools], [(one, self.prompts[one]) for one in prompts], guidance]
        )

    def differences(self) -> "list[Difference]":
        """The same in full, old beside new."""
        pin = self.pin or Pin("")
        tools, prompts = self.names()
        old = self.old or ServerListing("", "", "", ())
        found = []
        if self.has_other_guidance:
            approved = old.guidance if guidance_pin(old.guidance) == pin.guidance else ""
            found.append(Difference("instructions", "", approved if pin.guidance else None, self.new.guidance))
        before, now = _by_name(old.tools), _by_name(self.new.tools)
        found += [
            Difference("tool", name, _text(tool_text, before, name, pin.tools), tool_text(now[name])) for name in tools
        ]
        before, now = _by_name(old.prompts), _by_name(self.new.prompts)
        return found + [
            Difference("prompt", name, _text(prompt_text, before, name, pin.prompts), prompt_text(now[name]))
            for name in prompts
        ]

    def settle_pin(self, *, is_approved: bool) -> tuple[Pin, ServerListing]:
        """The pin from now on, and what is kept of the listing; `is_approved` tells what the user said."""
        tools, prompts = dict(self.tools), dict(self.prompts)
        if self.pin is not None and not self.is_first:
            unapproved, _ = self.names()
            tools = self.pin.tools | ({name: self.tools[name] for name in unapproved} if is_approved else {})
            prompts = self.pin.prompts | (dict(self.prompts) if is_approved else {})
        is_withheld = self.has_other_guidance and not is_approved
        pin = msgspec.structs.replace(
            self.pin or Pin(""),
            is_listed=True,
            tools=tools,
            prompts=prompts,
            withheld=tuple(name for name, one in self.tools.items() if tools.get(name) != one),
            gone=tuple(name for name in tools if name not in self.tools),
            quarantined=self.out,
            has_resources=self.new.has_resources,
            guidance=self._guidance_hash(is_withheld=is_withheld),
            is_guidance_withheld=is_withheld,
        )
        return pin, self._merge_listing(pin)

    def _guidance_hash(self, *, is_withheld: bool) -> str:
        """The hash of the instructions that are approved now. Those of before stay so: a server may go back to them."""
        before = (self.pin.guidance or "") if self.pin is not None and not self.is_first else ""
        return before if is_withheld or not self.new.guidance else guidance_pin(self.new.guidance)

    def _merge_listing(self, pin: Pin) -> ServerListing:
        """What is approved of the listing; of a tool that is not, what was approved before: a question shows both."""
        approved = [one for one in self.new.tools if pin.tools.get(one.name) == self.tools[one.name]]
        there = {one.name for one in approved}
        before = self.old.tools if self.old is not None else ()
        approved += [one for one in before if one.name not in there and pin.tools.get(one.name) == tool_pin(one)]
        prompts = tuple(one for one in self.new.prompts if pin.prompts.get(one.name) == self.prompts[one.name])
        guidance = self.new.guidance
        if pin.is_guidance_withheld:
            guidance = self.old.guidance if self.old is not None else ""
        return self.new._replace(tools=tuple(approved), prompts=prompts, guidance=guidance)


def compare_listing(
    raw: ServerListing,
    pin: Pin | None,
    old: ServerListing | None,
    wants: Callable[[str], bool],
    *,
    is_foreign: bool = False,
) -> ListingComparison:
    """What a server has just listed, looked at and compared. `wants` tells which tools are asked about."""
    new, out = filter_listing(raw)
    tools = {tool.name: tool_pin(tool) for tool in new.tools}
    return ListingComparison(
        pin, old, new, tools, {one.name: prompt_pin(one) for one in new.prompts}, out, wants, is_foreign
    )


def _text(show: Callable[[Any], str], before: Mapping[str, Any], name: str, pinned: Mapping[str, Any]) -> str | None:
    return show(before.get(name)) if name in pinned else None


def _by_name(several: Iterable[Any]) -> dict[str, Any]:
    return {one.name: one for one in several}
