"""Serve the engine's tools over MCP: one engine orders the calls of all clients.

Replies become results of `tools/call`: text, pictures, other parts, structured content, notes, and links to full
outputs. The list of tools, with titles and hints, is built once and rebuilt only after a change. The full outputs
of results that were cut are resources, but only those of this server's own calls.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

import anyio
import mcp_types as types
import msgspec
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.methods import serialize_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ferrule import __version__
from ferrule.core.call import Call, Done, EventStream, Progress, Reply, ToolsChanged
from ferrule.core.errors import ConfigError, FerruleError, UnknownTool
from ferrule.core.tool import AnyTool, copy_json
from ferrule.engine import Engine
from ferrule.output import clean, clean_value
from ferrule.permissions import visible
from ferrule.serve.mcp.client import ClientRequest, Clients, Roots
from ferrule.wire import result_of
from ferrule.wire.mcp import result_out

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

    Ctx = ServerRequestContext[Any, Any]


COMPLETE = {"resultType": "complete"}
"""What every result says from 2026-07-28 on; older versions leave it out."""
FRESH = {**COMPLETE, "ttlMs": 60_000, "cacheScope": "private"}
"""The same, for what a client may keep for a while."""
_ANY_STRUCTURE = "2026-07-28"
"""Before this version, a structured result is an object."""
_SINCE = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""A kind of part → the first version of the protocol that has it; the package does not look."""
_STRUCTURED_BYTES = 4 << 20
"""A JSON value cannot be cut: what is larger is an error, with the text that was cut beside it."""


def result(reply: Reply, version: str) -> dict[str, Any]:
    """A reply as a client of that version reads it; everything but success is an error that the model can read."""
    plain: dict[str, Any] = {**COMPLETE, **result_out(result_of(reply))}
    structured = reply.structured
    if reply.ok and structured is not None and (isinstance(structured, dict) or version >= _ANY_STRUCTURE):
        if len(msgspec.json.encode(structured)) > _STRUCTURED_BYTES:
            told = f"The structured result of {reply.name} is larger than {_STRUCTURED_BYTES:,} bytes and was left out."
            plain["content"] = [*plain["content"], {"type": "text", "text": told}]
            plain["isError"] = True
        else:
            plain["structuredContent"] = structured
    if not reply.output_id and not reply.parts:
        return plain
    whole = {**plain, "content": _content(reply, plain["content"])}
    return whole if _fits(whole, version) else plain


def _content(reply: Reply, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With the parts that have no words, and with a link to what was cut."""
    notes = told[-1:] if reply.notes else []
    if reply.ok and reply.parts:
        others = [part for part in reply.parts if part.get("type") not in ("text", "image")]
        # Where the text was cut, it stays cut.
        told = [*told[: len(told) - len(notes)], *others] if reply.output_id else list(reply.parts)
        told += notes
    return [*told, output_link(reply.output_id)] if reply.output_id else told


def output_link(output_id: str) -> dict[str, Any]:
    """Where the whole of a result that was cut can be read."""
    return {
        "type": "resource_link",
        "uri": output_uri(output_id),
        "name": f"output {output_id}",
        "description": "The full output.",
        "mimeType": "text/plain",
    }


def output_uri(output_id: str) -> str:
    return f"ferrule://output/{output_id}"


def _fits(out: dict[str, Any], version: str) -> bool:
    """Older versions know fewer kinds of parts, and a part that came from elsewhere may be anything."""
    if any(version < _SINCE.get(part.get("type", ""), "") for part in out["content"]):
        return False
    try:
        serialize_server_result("tools/call", version, out)
    except ValidationError:
        return False
    return True


_FLAGS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def annotations(tool: AnyTool) -> dict[str, Any] | None:
    """Return what a tool says of itself; None if that is nothing.

    It spares no question here: these are for those who show the tools to a person.
    """
    said = tool.hints
    kept: dict[str, Any] = {flag: said[flag] for flag in _FLAGS if isinstance(said.get(flag), bool)}
    title = tool.title or said.get("title")
    if isinstance(title, str) and title:
        kept = {"title": clean(title), **kept}
    return kept or None


_log = logging.getLogger("ferrule.serve")


class ToolListCache:
    """What clients are shown, by the version of the protocol that they speak."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tools: list[dict[str, Any]] | None = None
        self._by_version: dict[str, dict[str, Any]] = {}

    def forget(self) -> None:
        """The engine has other tools now."""
        self._tools = None
        self._by_version.clear()

    def result(self, version: str) -> dict[str, Any]:
        """The answer to `tools/list`; a tool that this version has no words for is left out and named in the log."""
        made = self._by_version.get(version)
        if made is None:
            made = self._by_version[version] = {**FRESH, "tools": self._filter_tools(version)}
        return made

    def schema(self, name: str) -> dict[str, Any] | None:
        """The input schema of an advertised tool."""
        return next((tool["inputSchema"] for tool in self._all() if tool["name"] == name), None)

    def _all(self) -> list[dict[str, Any]]:
        if self._tools is None:
            self._tools = [self._describe_tool(one) for one in self._engine.definitions("mcp")]
        return self._tools

    def _describe_tool(self, definition: dict[str, Any]) -> dict[str, Any]:
        tool = self._engine.registry.resolve(definition["name"]).tool
        out: dict[str, Any] = copy_json(definition)
        hints = annotations(tool)
        if hints is not None:
            out["annotations"] = hints
            if "title" in hints:
                out["title"] = hints["title"]
        # Older versions of the protocol know structured results only as objects.
        if tool.output_schema is not None and tool.output_schema.get("type") == "object":
            out["outputSchema"] = copy_json(tool.output_schema)
        cleaned: dict[str, Any] = clean_value(out)
        return cleaned

    def _filter_tools(self, version: str) -> list[dict[str, Any]]:
        """The tools that the protocol can carry: one schema that it cannot must not take the others with it."""
        tools = self._all()
        if _fits_version(tools, version):
            return tools
        kept = []
        for tool in tools:
            if _fits_version([tool], version):
                kept.append(tool)
            else:
                _log.warning("%s is left out: MCP %s cannot describe its schema.", tool["name"], version)
        return kept


def _fits_version(tools: list[dict[str, Any]], version: str) -> bool:

    try:
        serialize_server_result("tools/list", version, {**FRESH, "tools": tools})
    except (ValidationError, KeyError):
        return False
    return True


_PAGE_BYTES = 1 << 20
_MOST = 200


class Outputs:
    """Remembers what its calls have kept: the store itself also holds what other sessions of the user have."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        engine.name_outputs(lambda output_id: f"the resource {output_uri(output_id)} has it.")
        self._kept: dict[str, str] = {}

    def note(self, reply: Reply) -> bool:
        """Was an output kept that is not known yet?"""
        if reply.output_id is None or reply.output_id in self._kept:
            return False
        self._kept[reply.output_id] = reply.name
        if len(self._kept) > _MOST:
            self._kept.pop(next(iter(self._kept)))
        return True

    def list_resources(self) -> dict[str, Any]:
        """The answer to `resources/list`, the newest first."""
        kept = reversed(self._kept.items())
        return {
            **FRESH,
            "ttlMs": 0,
            "resources": [
                {
                    "uri": output_uri(output_id),
                    "name": f"output {output_id}",
                    "description": f"The full output of a call of {name}.",
                    "mimeType": "text/plain",
                }
                for output_id, name in kept
            ],
        }

    @staticmethod
    def templates() -> dict[str, Any]:
        """The answer to `resources/templates/list`."""
        pages = {
            "uriTemplate": f"{output_uri('{id}')}{{?offset}}",
            "name": "full output",
            "description": "The full output of a call whose result was cut, from a byte on.",
            "mimeType": "text/plain",
        }
        return {**FRESH, "resourceTemplates": [pages]}

    async def read(self, uri: str) -> dict[str, Any] | None:
        """The answer to `resources/read`, a page of it where it is long; None for what is not here."""
        try:
            parts = urlsplit(uri)
        except ValueError:
            return None
        output_id = parts.path.strip("/")
        if (parts.scheme, parts.netloc) != ("ferrule", "output") or output_id not in self._kept:
            return None
        asked = parse_qs(parts.query).get("offset", ["0"])[0]
        if not asked.isascii() or not asked.isdigit() or len(asked) > 18:
            return None
        try:
            page = (await self._engine.output(output_id)).read(int(asked), _PAGE_BYTES)
        except FerruleError:
            return None
        contents = [{"uri": uri, "mimeType": "text/plain", "text": clean(page.text)}]
        if page.next_offset is not None:
            rest = f"{output_uri(output_id)}?offset={page.next_offset}"
            contents.append({"uri": rest, "mimeType": "text/plain", "text": f"The output goes on: read {rest}"})
        return {**FRESH, "contents": contents}


_MOST_PROGRESS_CHARS = 2_000


class Serving:
    """An open engine behind a server of the package, as `async with`; `server` is what transports run.

    `clients` is the asker that the engine was made with, where questions are to go to the clients. With `roots` there
    is no engine until a client has named its folders.
    """

    def __init__(self, engine: Engine | None, clients: Clients | None = None, *, roots: Roots | None = None) -> None:
        self.engine = engine
        self._clients = clients or Clients()
        self._roots = roots
        self._heard: EventStream | None = None
        if engine is not None:
            self._place(engine)
        self._sessions: dict[int, ServerSession] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._calls = 0
        self.server = self._server()

    def _server(self) -> "Server[Any]":

        class Announcing(Server[Any]):
            """Says that its list of tools may change, on every transport; the one for HTTP cannot be told to."""

            def create_initialization_options(
                self, notification_options: NotificationOptions | None = None, *args: Any, **kwargs: Any
            ) -> Any:
                chosen = notification_options or NotificationOptions(tools_changed=True)
                return super().create_initialization_options(chosen, *args, **kwargs)

        self._bus = InMemorySubscriptionBus()
        server: Server[Any] = Announcing(
            "ferrule",
            version=__version__,
            title="Ferrule",
            instructions=self._instructions(),
            get_tool_input_schema=lambda name: None if self.engine is None else self._listing.schema(name),
            on_list_tools=self._list_tools,  # type: ignore[arg-type]  # a dictionary is taken as it is
            on_call_tool=self._call_tool,  # type: ignore[arg-type]  # the same
            on_list_resources=self._list_resources,  # type: ignore[arg-type]  # the same
            on_list_resource_templates=self._list_templates,  # type: ignore[arg-type]  # the same
            on_read_resource=self._read_resource,  # type: ignore[arg-type]  # the same
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        server.add_notification_handler("notifications/initialized", types.NotificationParams, self._on_initialized)
        server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._on_roots_changed
        )
        server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="ferrule"))
        return server

    def _place(self, engine: Engine) -> None:
        """Have this engine answer from now on."""
        self.engine = engine
        self._listing = ToolListCache(engine)
        self._outputs = Outputs(engine)

    async def _engine(self, ctx: "Ctx", *, anew: bool = False) -> Engine:
        """The engine that answers this client. Raises `ConfigError` where there is no workspace for one."""
        if self._roots is not None:
            engine = await self._roots.engine(ctx.session, anew=anew)
            if engine is not self.engine:
                is_first = self.engine is None
                self._place(engine)
                self._listen(engine)
                if not is_first:
                    self.on_tools_changed()
        assert self.engine is not None
        return self.engine

    async def _ready(self, ctx: "Ctx") -> None:
        """Have an engine, or answer with an error that says what to do."""
        try:
            await self._engine(ctx)
        except ConfigError as error:
            from mcp.shared.exceptions import MCPError  # loaded already

            raise MCPError(-32600, str(error)) from error

    def _instructions(self) -> str:
        if self.engine is None:
            return "" if self._roots is None else self._roots.welcome()
        folder = visible(self.engine.jail.folder)
        return (
            f"Tools over the folder {folder}. Relative paths start there; what lies outside is refused or asked about."
        )

    def on_tools_changed(self) -> None:
        """The engine has other tools now: tell every client that wants to know. To be called on the engine's loop."""
        self._listing.forget()

        self._tell(self._bus.publish, ToolsListChanged())
        for session in self._sessions.values():
            self._tell(session.send_tool_list_changed)

    def _tell(self, say: Callable[..., Awaitable[None]], *what: Any) -> None:
        """Say it without waiting for whoever does not listen."""
        task = asyncio.create_task(_quietly(say, *what))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def __aenter__(self) -> Self:
        if self.engine is not None:
            self._listen(self.engine)
        return self

    def _listen(self, engine: Engine) -> None:
        """Hear what becomes of the engine's tools, and of no other's."""
        if self._heard is not None:
            self._heard.close()
        self._load_deferred(engine)
        self._heard = engine.events()
        self._tell(self._watch, engine, self._heard)

    async def __aexit__(self, *_: object) -> None:
        if self._heard is not None:
            self._heard.close()
        for task in tuple(self._telling):
            task.cancel()
        await asyncio.gather(*self._telling, return_exceptions=True)

    async def _watch(self, engine: Engine, events: EventStream) -> None:
        """Pass on that the engine has other tools, as often as it says so."""
        async for event in events:
            # What is loaded now is told of once more, in an event of its own.
            if isinstance(event, ToolsChanged) and not self._load_deferred(engine):
                self.on_tools_changed()

    @staticmethod
    def _load_deferred(engine: Engine) -> bool:
        """Offer the deferred tools too: clients of MCP have their own ways to keep schemas from their models."""
        registry = engine.registry
        before = len(registry.visible_faces())
        registry.load(tuple(registry.deferred))
        return len(registry.visible_faces()) > before

    async def _on_initialized(self, ctx: "Ctx", params: Any) -> None:  # noqa: ARG002 - the package's signature
        """A client of the older versions is ready: it is told of changes until its connection ends."""
        connection = ctx.session._connection  # noqa: SLF001 - the package shows a handler no other way to its end
        if self._sessions.setdefault(id(connection), ctx.session) is ctx.session:
            connection.exit_stack.callback(self._sessions.pop, id(connection), None)

    async def _on_roots_changed(self, ctx: "Ctx", params: Any) -> None:  # noqa: ARG002 - the package's signature
        """The client has other roots now."""
        if self._roots is not None:
            with contextlib.suppress(ConfigError):  # whoever calls next is told
                await self._engine(ctx, anew=True)

    async def _list_tools(self, ctx: "Ctx", params: "types.PaginatedRequestParams | None") -> dict[str, Any]:
        _refuse_cursor(params)
        await self._ready(ctx)
        return self._listing.result(ctx.protocol_version)

    async def _list_resources(self, ctx: "Ctx", params: "types.PaginatedRequestParams | None") -> dict[str, Any]:
        _refuse_cursor(params)
        await self._ready(ctx)
        return self._outputs.list_resources()

    async def _list_templates(self, ctx: "Ctx", params: "types.PaginatedRequestParams | None") -> dict[str, Any]:  # noqa: ARG002 - the package's signature
        _refuse_cursor(params)
        return Outputs.templates()

    async def _read_resource(self, ctx: "Ctx", params: "types.ReadResourceRequestParams") -> dict[str, Any]:
        await self._ready(ctx)
        found = await self._outputs.read(params.uri)
        if found is None:
            code = -32602 if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else -32002
            raise MCPError(code, f"Resource not found: {clean(params.uri)[:200]}", {"uri": params.uri})
        return found

    async def _call_tool(self, ctx: "Ctx", params: "types.CallToolRequestParams") -> dict[str, Any]:
        try:
            engine = await self._engine(ctx)
        except ConfigError as error:  # in words that the model can pass on
            return {**COMPLETE, "content": [{"type": "text", "text": str(error)}], "isError": True}
        self._calls += 1
        call = Call(params.name, params.arguments or {}, f"mcp_{self._calls}")
        asked = ClientRequest(ctx, params)
        self._clients.add(call.id, asked)
        try:
            reply = await self._run(engine, call, ctx)
        finally:
            self._clients.remove(call.id)
        if asked.pending is not None and reply.status == "cancelled":
            return asked.input_required()
        _refuse_unknown(reply)
        if self._outputs.note(reply):
            self._tell(self._bus.publish, ResourcesListChanged())
        return result(reply, ctx.protocol_version)

    async def _run(self, engine: Engine, call: Call, ctx: "Ctx") -> Reply:
        """The reply; whoever gives up the request gives up this call, and waits until it has cleaned up."""
        wants_progress = ctx.meta is not None and ctx.meta.get("progress_token") is not None
        stream = engine.events() if wants_progress else None
        running = asyncio.create_task(engine.run([call]))
        telling = (
            None if stream is None else asyncio.create_task(_quietly(_tell_progress, stream, call.id, ctx.session))
        )
        try:
            await asyncio.wait({running})
            if telling is not None:
                await asyncio.wait({telling})
        finally:
            await _cancel_and_wait(task for task in (running, telling) if task is not None)
            if stream is not None:
                stream.close()
        return running.result()[0]


async def _tell_progress(stream: EventStream, call_id: str, session: "ServerSession") -> None:
    """Every progress of the call, counted, until it is done."""
    told = 0
    async for event in stream:
        if event.id != call_id:
            continue
        if isinstance(event, Done):
            return
        if isinstance(event, Progress):
            told += 1
            await session.report_progress(told, None, clean(event.message)[-_MOST_PROGRESS_CHARS:])


async def _cancel_and_wait(tasks: "Iterable[asyncio.Task[Any]]") -> None:
    """Cancel what still runs and wait for it, however often the request is cancelled meanwhile."""
    pending = {task for task in tasks if not task.done()}
    if not pending:
        return

    for task in pending:
        task.cancel()
    # Without the shield, a cancelled scope of anyio would wake this task in every turn of the loop.
    with anyio.CancelScope(shield=True):
        while pending:
            with contextlib.suppress(asyncio.CancelledError):
                _, pending = await asyncio.wait(pending)


async def _quietly(say: Callable[..., Awaitable[None]], *what: Any) -> None:
    """Who is told may be gone."""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await say(*what)


def _refuse_unknown(reply: Reply) -> None:
    """A tool that is not there is the client's mistake; what is wrong with the arguments is the model's."""
    if reply.error is not None and reply.error.error_code == UnknownTool.code:
        raise MCPError(-32602, f"Unknown tool: {reply.error.message}")


def _refuse_cursor(params: "types.PaginatedRequestParams | None") -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(-32602, "There is only one page here: no cursor of it was ever given out.")
