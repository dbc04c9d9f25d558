"""MCP over streamable HTTP: the package's application behind a guard, on uvicorn."""

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ferrule.core.errors import ConfigError
from ferrule.serve.event_log import EventLog
from ferrule.serve.guard import Guard
from ferrule.serve.server import Serving

PATH = "/mcp"
_TOKEN_CHARS = 16
_BODY_BYTES = 32 << 20
_REPLY_SECONDS = 0.3
"""So long the replies of calls that were cancelled may take on their way."""
_LAST_SECONDS = 2
_RETRY_MILLISECONDS = 1_000
"""After which a client whose connection broke may come back for the rest."""


def check_token(token: str) -> str:
    """A token that a header can carry, and that nobody guesses."""
    if len(token) < _TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"The token is too weak: it needs {_TOKEN_CHARS} or more letters, digits and signs, without blanks. "
            "Leave it out, and a random one is made."
        )
    return token


def listen(address: str) -> tuple[socket.socket, str, int]:
    """A socket that listens at `HOST:PORT`, `:PORT` or `PORT`, with its host and port; 0 means any free port."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ConfigError(f"{address!r} is no address: write HOST:PORT, such as 127.0.0.1:8765.")
    try:
        family = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)[0][0]
        made = socket.create_server((host, int(port)), family=family)
        # Connections have it from here: asyncio sets it only where it sees that a socket is for TCP. Without it the
        # second half of every answer waits for the client's word that it has the first one, which takes 40 ms.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (")[0]
        hint = " Port 0 takes any that is free." if error.errno == errno.EADDRINUSE else ""
        raise ConfigError(f"Cannot listen at {address}: {reason}.{hint}") from error
    return made, host, int(made.getsockname()[1])


async def serve_http(
    serving: Serving,
    listening: socket.socket,
    *,
    host: str,
    token: str,
    names: Sequence[str] = (),
    ready: Callable[[], object] = lambda: None,
) -> None:
    """Serve every client that has the token until this task is cancelled. `ready` is called when it listens."""

    def stop() -> None:
        if serving.engine is not None:
            serving.engine.cancel()

    await serve_app(Guard(_app(serving), token=token, host=host, names=names), listening, ready=ready, stop=stop)


async def serve_app(
    guard: Guard,
    listening: socket.socket,
    *,
    ready: Callable[[], object],
    stop: Callable[[], object] = lambda: None,
) -> None:
    """Serve an application behind its guard until this task is cancelled. `stop` then ends what it is doing."""
    import uvicorn  # only servers over HTTP pay for it

    class Quiet(uvicorn.Server):
        """Leaves signals to the program, which ends its calls first."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    config = uvicorn.Config(
        guard,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_LAST_SECONDS,
        lifespan="on",
        ws="none",  # an offer of it comes to the application, which refuses it in words
    )
    server = Quiet(config)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await asyncio.shield(running)
    finally:
        server.should_exit = True
        if not running.done():
            stop()
            await _done(running, seconds=_REPLY_SECONDS)
        guard.close()
        await _done(running)
        listening.close()
    if running.exception() is not None:
        raise ConfigError(f"The server has ended: {running.exception()}.")


def _app(serving: Serving) -> Any:
    """The package's application, in which every session keeps its own events for a client that comes back."""
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.applications import Starlette
    from starlette.routing import Route

    class Resumable(StreamableHTTPSessionManager):
        @property
        def event_store(self) -> Any:
            """Asked for once for each session."""
            return EventLog()

        @event_store.setter
        def event_store(self, _: Any) -> None:
            """The package has none to give."""

    manager = Resumable(
        app=serving.server,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard has looked
        retry_interval=_RETRY_MILLISECONDS,
        max_request_body_size=_BODY_BYTES,
    )
    return Starlette(routes=[Route(PATH, endpoint=StreamableHTTPASGIApp(manager))], lifespan=lambda _: manager.run())


async def _done(running: "asyncio.Task[None]", seconds: float | None = None) -> None:
    """Wait for the end of the server, however often somebody cancels meanwhile."""
    while not running.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({running}, timeout=seconds)
            if seconds is not None:
                return
