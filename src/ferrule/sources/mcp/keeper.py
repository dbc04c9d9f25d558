"""The keeper: one task that holds the `mcp` package's client for one life of a server, from its start to its end."""

import asyncio
import contextlib
import logging
import math
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.core import __version__
from ferrule.core.errors import ToolFailure
from ferrule.sources.mcp import McpServerEntry
from ferrule.sources.mcp.config import start_folder
from ferrule.sources.mcp.transport import HttpTransport, ProcessTransport, describe_error
from ferrule.system.tree import Roster

if TYPE_CHECKING:
    from mcp import Client


_CLOSE_SECONDS = 5.0
"""So long the end of a connection may take: a server that does not let go is left."""
_LISTEN_SECONDS, _LISTEN_MOST_SECONDS = 5.0, 300.0
"""Before a stream of changes that was lost is opened again, and again."""
_UNKNOWN_SESSION = 404
_LOADED: list[bool] = []


class Wants(NamedTuple):
    """What a connection wants of each life of its server."""

    server: McpServerEntry
    environment: Mapping[str, str]
    folder: str
    roster: Roster | None
    result_bytes: int
    elicit: Any
    """As the package calls it; None where nobody can be asked."""
    roots: Any
    """As the package calls it; None where there are none."""
    changed: Callable[[], None]


class Keeper:
    """One life of a server. The package's scopes are entered and left in this one task; calls come from any."""

    def __init__(self, wants: Wants, mode: str) -> None:
        """Begin it, on the running loop. `mode` is the package's: "auto", or "legacy" for older servers."""
        self.mode = mode
        self.client: Client | None = None
        self.ready = False
        self.was_ready = False
        self.is_legacy = False
        """Does it speak the older protocol?"""
        self.over = False
        self.why = ""
        """Why it is over, as the end of a sentence about the server."""
        self.unsent: Any = None
        """The id of a message that ended it, because nobody was there to take it."""
        self.buried = False
        """Was its end counted?"""
        self.closing = False
        """Was its end asked for?"""
        self.transport: ProcessTransport | HttpTransport | None = None
        self.began = asyncio.get_running_loop().time()
        self._wants = wants
        self._scope: Any = None
        self._turned = asyncio.Event()
        """Set when it is ready, or over before that."""
        self._stopped = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"mcp {wants.server.name}")

    async def wait(self) -> None:
        """Wait until it is ready, or over before that."""
        await self._turned.wait()

    async def wait_until_over(self, seconds: float | None = None) -> None:
        """Wait until it is over, or for so long; giving up waiting ends nothing."""
        await asyncio.wait([self._task], timeout=seconds)

    def look(self) -> None:
        """An error that a call got may mean the end: a server that has forgotten us does not remember again."""
        if self.is_forgotten and isinstance(self.transport, HttpTransport):
            self.transport.fail("has forgotten this session; the next call opens another one")

    @property
    def is_forgotten(self) -> bool:
        """Has the server said that it does not know this session, as after it was started anew?"""
        return isinstance(self.transport, HttpTransport) and self.transport.forgotten > 0

    @property
    def is_untaken(self) -> bool:
        """Did it say so in a way that leaves no doubt that it has not taken the call?"""
        return isinstance(self.transport, HttpTransport) and self.transport.forgotten == _UNKNOWN_SESSION

    def status_reason(self, message: str) -> str:
        """What lies behind an error that the package made of an HTTP status; empty where it is another error."""
        if isinstance(self.transport, HttpTransport) and message in {"Server returned an error response", "Not Found"}:
            return self.transport.reason()
        return ""

    async def stop(self) -> None:
        """End it and wait for its end, however it comes."""
        self.closing = True
        self._stop()
        if self._scope is not None and not self.was_ready:
            self._scope.cancel()  # a start is given up; an end that has begun is not
        await asyncio.wait([self._task])

    @property
    def is_stopping(self) -> bool:
        """Is it over, or about to be?"""
        return self.over or self._stopped.is_set()

    @property
    def last_words(self) -> str:
        return "" if self.transport is None else self.transport.last_words

    def _stop(self) -> None:
        self._stopped.set()
        if self._scope is not None:
            if self.was_ready:
                self._scope.deadline = asyncio.get_running_loop().time() + _CLOSE_SECONDS
            elif self.transport is not None and self.transport.why:
                self._scope.cancel()

    async def _run(self) -> None:
        try:
            self._open()
            await load_package()
            await self._live()
        except ToolFailure as failure:
            self.why = self.why or failure.message
        except OSError as error:
            self.why = self._unstartable(error)
        except Exception as error:  # noqa: BLE001 - the package and what it is built on, with whatever a server made of it
            self.why = self.why or self._reason(error)
        finally:
            if self.transport is not None:
                self.transport.close()
                self.why = self.transport.why or self.why
            self.why = self.why or "was closed"
            self.ready, self.over, self.client = False, True, None
            self._stopped.set()
            self._turned.set()

    def _open(self) -> None:
        """Start the process before the package is loaded: the one takes as long as the other."""
        server = self._wants.server
        if server.transport != "stdio":
            self.transport = HttpTransport(server, body_bytes=self._wants.result_bytes, ended=self._stop)
            return
        self.transport = ProcessTransport(
            (server.command, *server.args),
            cwd=start_folder(server, self._wants.folder),
            env={**self._wants.environment, **server.env},
            roster=self._wants.roster,
            frame_bytes=self._wants.result_bytes,
            ended=self._stop,
        )

    async def _live(self) -> None:
        import anyio
        from mcp import Client
        from mcp_types import Implementation
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS  # loaded a moment ago

        assert self.transport is not None
        wants = self._wants
        deadline = self.began + wants.server.start_seconds
        with anyio.CancelScope(deadline=deadline) as self._scope:
            if self._stopped.is_set():
                return
            client = Client(
                self.transport,
                mode=self.mode,
                cache=None,
                client_info=Implementation(name="ferrule", version=__version__),
                elicitation_callback=wants.elicit,
                list_roots_callback=wants.roots,
                message_handler=self._hear,
            )
            async with client:
                self._scope.deadline = math.inf
                # An answer that does not fit the tool's own schema is delivered, and said: see `answers`.
                client.session.validate_tool_result = _skip_validation  # type: ignore[method-assign] # the package has no switch
                self.transport.sieve.version = client.protocol_version
                self.is_legacy = client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
                self.client, self.ready, self.was_ready = client, True, True
                self._turned.set()
                listening = asyncio.create_task(self._listen(client))
                try:
                    await self._stopped.wait()
                finally:
                    listening.cancel()
                    self.ready = False
                    await asyncio.wait([listening])
        if self._scope.cancelled_caught and not self.closing and not self.transport.why and self.client is None:
            self.why = f"did not answer within {wants.server.start_seconds:g} seconds of its start"

    async def _listen(self, client: "Client") -> None:
        """Have the server of the newer protocol say when its lists change; what comes is heard like all else."""
        from mcp.client.subscriptions import SubscriptionLost
        from mcp.shared.exceptions import MCPError
        from mcp_types import METHOD_NOT_FOUND
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS  # as above

        offered = client.server_capabilities
        tools, prompts, resources = (
            bool(getattr(one, "list_changed", False)) for one in (offered.tools, offered.prompts, offered.resources)
        )
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (tools or prompts or resources):
            return
        seconds, is_first, loop = _LISTEN_SECONDS, True, asyncio.get_running_loop()
        while True:
            began = loop.time()
            with contextlib.suppress(SubscriptionLost, TimeoutError):
                try:
                    async with client.listen(
                        tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
                    ) as subscription:
                        if not is_first:
                            self._wants.changed()  # something may have changed meanwhile
                        is_first = False
                        async for _ in subscription:
                            pass
                except MCPError as error:
                    if error.code == METHOD_NOT_FOUND:
                        return
            seconds = _LISTEN_SECONDS if loop.time() - began > _LISTEN_MOST_SECONDS else seconds
            await asyncio.sleep(seconds)
            seconds = min(2 * seconds, _LISTEN_MOST_SECONDS)

    async def _hear(self, message: Any) -> None:
        if getattr(message, "method", "").endswith("/list_changed"):
            self._wants.changed()

    def _reason(self, error: BaseException) -> str:
        """Why the package gave up, as the end of a sentence about the server."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        transport = self.transport
        if isinstance(transport, HttpTransport):
            is_unreachable = type(error).__module__.startswith("httpx2") and type(error).__name__ != "HTTPStatusError"
            if not is_unreachable and (reason := transport.reason()):
                return reason
            if is_unreachable:
                self.unsent = _unsent(error)
                return f"cannot be reached: {str(error) or type(error).__name__}"
        if type(error).__name__ == "ValidationError":
            return f"does not speak MCP as it should: {describe_error(error)}"
        return f"could not be spoken to: {' '.join(str(error).split())[:300] or type(error).__name__}"

    def _unstartable(self, error: OSError) -> str:
        server = self._wants.server
        if server.transport != "stdio":
            return f"cannot be reached: {error}"
        reason = error.strerror or str(error)
        return f"cannot be started with {server.command!r}: {reason}. Look at its entry in {server.source}"


def _unsent(error: BaseException) -> Any:
    """The id of the message that could not be sent, because there was no connection for it; None where there was."""
    import httpx2  # came with the package

    if not isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)) or error.request.method != "POST":
        return None
    try:
        return msgspec.json.decode(error.request.content)["id"]
    except (msgspec.DecodeError, TypeError, KeyError, httpx2.RequestNotRead):
        return None


async def _skip_validation(name: str, result: Any) -> None:
    """Instead of the package's own comparison, which would lose the answer."""


async def load_package() -> None:
    """Load the package, which takes a second, without holding up the event loop for so long."""
    if _LOADED:
        return

    loop = asyncio.get_running_loop()
    done: asyncio.Future[BaseException | None] = loop.create_future()

    def tell(error: BaseException | None) -> None:
        if not done.done():
            done.set_result(error)

    def load() -> None:
        error: BaseException | None = None
        try:
            import mcp.client.sse  # noqa: F401 - the rest comes with it
        except ImportError as problem:
            error = problem
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, error)

    thread = threading.Thread(target=load, name="ferrule mcp", daemon=True)
    thread.start()
    error = await done
    if error is not None:
        raise ToolFailure(
            f"cannot be spoken to: the Python package `mcp` is not there ({error}). "
            f"Install it with: {os.path.basename(sys.executable)} -m pip install 'ferrule[mcp]'"
        )
    _quiet()
    _LOADED.append(True)


def _quiet() -> None:
    """The package logs what servers do wrong; without this, Python would print it in the middle of everything."""
    for name in ("mcp", "client", "httpx2"):
        logging.getLogger(name).addHandler(logging.NullHandler())
