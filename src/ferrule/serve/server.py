"""The engine as an MCP server: what its clients ask, answered by one engine that orders the calls of them all."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Self

from ferrule.core.call import Call
from ferrule.core.errors import ConfigError, UnknownTool
from ferrule.core.events import Done, EventStream, Progress, ToolsChanged
from ferrule.core.reply import Reply
from ferrule.engine import Engine
from ferrule.output.clean import clean
from ferrule.permissions.asker import visible
from ferrule.serve.asking import Asked, Clients
from ferrule.serve.listing import Listing
from ferrule.serve.outputs import Outputs
from ferrule.serve.results import COMPLETE, result
from ferrule.serve.roots import Roots

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.server.session import ServerSession

    Ctx = ServerRequestContext[Any, Any]

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
        import mcp_types as types  # the package takes a second to load: only servers and clients pay for it
        from mcp.server.lowlevel import NotificationOptions, Server
        from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        from ferrule import __version__

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
        server.add_notification_handler("notifications/initialized", types.NotificationParams, self._joined)
        server.add_notification_handler("notifications/roots/list_changed", types.NotificationParams, self._moved)
        server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="ferrule"))
        return server

    def _place(self, engine: Engine) -> None:
        """Have this engine answer from now on."""
        self.engine = engine
        self._listing = Listing(engine)
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
                    self.changed()
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

    def changed(self) -> None:
        """The engine has other tools now: tell every client that wants to know. To be called on the engine's loop."""
        self._listing.forget()
        from mcp.server.subscriptions import ToolsListChanged  # loaded already

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
                self.changed()

    @staticmethod
    def _load_deferred(engine: Engine) -> bool:
        """Offer the deferred tools too: clients of MCP have their own ways to keep schemas from their models."""
        registry = engine.registry
        before = len(registry.shown())
        registry.load(tuple(registry.deferred))
        return len(registry.shown()) > before

    async def _joined(self, ctx: "Ctx", params: Any) -> None:  # noqa: ARG002 - the package's signature
        """A client of the older versions is ready: it is told of changes until its connection ends."""
        connection = ctx.session._connection  # noqa: SLF001 - the package shows a handler no other way to its end
        if self._sessions.setdefault(id(connection), ctx.session) is ctx.session:
            connection.exit_stack.callback(self._sessions.pop, id(connection), None)

    async def _moved(self, ctx: "Ctx", params: Any) -> None:  # noqa: ARG002 - the package's signature
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
        return self._outputs.listed()

    async def _list_templates(self, ctx: "Ctx", params: "types.PaginatedRequestParams | None") -> dict[str, Any]:  # noqa: ARG002 - the package's signature
        _refuse_cursor(params)
        return Outputs.templates()

    async def _read_resource(self, ctx: "Ctx", params: "types.ReadResourceRequestParams") -> dict[str, Any]:
        await self._ready(ctx)
        found = await self._outputs.read(params.uri)
        if found is None:
            from mcp.shared.exceptions import MCPError  # loaded already
            from mcp_types.version import MODERN_PROTOCOL_VERSIONS

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
        asked = Asked(ctx, params)
        self._clients.add(call.id, asked)
        try:
            reply = await self._run(engine, call, ctx)
        finally:
            self._clients.remove(call.id)
        if asked.pending is not None and reply.status == "cancelled":
            return asked.input_required()
        _refuse_unknown(reply)
        if self._outputs.note(reply):
            from mcp.server.subscriptions import ResourcesListChanged  # loaded already

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
            await _ended(task for task in (running, telling) if task is not None)
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


async def _ended(tasks: "Iterable[asyncio.Task[Any]]") -> None:
    """Cancel what still runs and wait for it, however often the request is cancelled meanwhile."""
    pending = {task for task in tasks if not task.done()}
    if not pending:
        return
    import anyio  # loaded already, by the package

    for task in pending:
        task.cancel()
    # Without the shield, a cancelled scope of anyio would wake this task in every turn of the loop.
    with anyio.CancelScope(shield=True):
        while pending:
            with contextlib.suppress(asyncio.CancelledError):
                _, pending = await asyncio.wait(pending)


async def _quietly(say: Callable[..., Awaitable[None]], *what: Any) -> None:
    """Who is told may be gone."""
    import anyio  # loaded already

    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await say(*what)


def _refuse_unknown(reply: Reply) -> None:
    """A tool that is not there is the client's mistake; what is wrong with the arguments is the model's."""
    if reply.error is not None and reply.error.error_code == UnknownTool.code:
        from mcp.shared.exceptions import MCPError  # loaded already

        raise MCPError(-32602, f"Unknown tool: {reply.error.message}")


def _refuse_cursor(params: "types.PaginatedRequestParams | None") -> None:
    if params is not None and params.cursor is not None:
        from mcp.shared.exceptions import MCPError  # loaded already

        raise MCPError(-32602, "There is only one page here: no cursor of it was ever given out.")
