"""Serve HTTP with uvicorn behind a guard.

The guard admits requests that name this machine, come from no foreign page, and have the token.
"""

import asyncio
import contextlib
import errno
import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from ferrule.core.errors import ConfigError

App = Callable[[Any, Any, Any], Awaitable[None]]
Scope = MutableMapping[str, Any]
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_HEADER_BYTES = 4096
_TOKEN_CHARS = 16
_REPLY_SECONDS = 0.3
"""So long the replies of calls that were cancelled may take on their way."""
_LAST_SECONDS = 2


class HttpGuard:
    """In front of the package's application; what it refuses, the application never sees."""

    def __init__(
        self,
        app: App,
        *,
        token: str,
        host: str,
        names: Iterable[str] = (),
        credentials: "Callable[[Scope], Iterable[str]] | None" = None,
        refusal: "Callable[[Scope, int, str], tuple[bytes, bytes]] | None" = None,
        open_paths: frozenset[str] = frozenset(),
    ) -> None:
        """`host` is where the server listens; `names` are more names that it is reached by.

        `credentials` finds what may be the token in a request, `refusal` gives the type and the body of a refusal, and
        `open_paths` need no token.
        """
        self._app = app
        self._credentials = credentials or (lambda scope: (bearer(scope),))
        self._refusal = refusal or _plain
        self._open_paths = open_paths
        self._token = token.encode()
        self._names = LOOPBACK | {name.lower() for name in names} | {host.lower().strip("[]")}
        self._by_address = not is_loopback(host)
        self._open: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    def close(self) -> None:
        """End the answers that are still being given: streams of events have no end of their own."""
        self._is_closed = True
        for task in self._open:
            task.cancel()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no other way is offered, and an application that does not answer refuses
        refused = self._find_refusal(scope)
        if refused is None:
            await self._let_in(scope, receive, send)
            return
        status, said, more = refused
        kind, body = self._refusal(scope, status, said)
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *more]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _let_in(self, scope: Scope, receive: Any, send: Any) -> None:
        """Let the application answer; one that is ended in the middle is ended properly."""
        begun = ended = False

        async def told(message: MutableMapping[str, Any]) -> None:
            nonlocal begun, ended
            begun = True
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._app(scope, receive, told)
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            task.uncancel()
            if not begun:
                await send({"type": "http.response.start", "status": 503, "headers": []})
            if not ended:
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._open.discard(task)

    def _find_refusal(self, scope: Scope) -> tuple[int, str, list[tuple[bytes, bytes]]] | None:
        """Status, words and headers of a refusal."""
        host = only(scope, b"host")
        name = None if host is None else _name(f"//{host}")
        if name is None or not self._is_ours(name):
            return 403, "This server is not known by that Host: a page elsewhere may be pretending to be it.\n", []
        origin = only(scope, b"origin", otherwise="")
        if origin != "" and not self._comes_from_us(origin, name):
            return 403, "Requests from pages of other origins are refused.\n", []
        if scope["path"] in self._open_paths:
            return None
        if not any(map(self._is_token, self._credentials(scope))):
            said = "The token is missing or wrong: send it as `Authorization: Bearer TOKEN`.\n"
            return 401, said, [(b"www-authenticate", b'Bearer realm="ferrule"')]
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def _is_ours(self, name: str) -> bool:
        """A name that we are known by; where other machines are let in, any address: nobody can make one point here."""
        return name in self._names or (self._by_address and _is_address(name))

    def _comes_from_us(self, origin: str | None, host: str) -> bool:
        if origin is None or not origin.startswith(("http://", "https://")):
            return False
        name = _name(origin)
        return name is not None and (name in self._names or name == host)


def bearer(scope: Scope) -> str:
    """The token of an `Authorization: Bearer` header; empty if there is none."""
    scheme, _, given = (only(scope, b"authorization") or "").partition(" ")
    return given if scheme.lower() == "bearer" else ""


def _plain(_: Scope, __: int, said: str) -> tuple[bytes, bytes]:
    return b"text/plain; charset=utf-8", said.encode()


def only(scope: Scope, name: bytes, otherwise: str | None = None) -> str | None:
    """The one header of that name; None where there are several, or something that is none."""
    found = [value for key, value in scope["headers"] if key == name]
    if not found:
        return otherwise
    if len(found) > 1 or len(found[0]) > _MOST_HEADER_BYTES:
        return None
    return bytes(found[0]).decode("latin-1")


def _name(address: str) -> str | None:
    """The host that an address names, and nothing else in it."""
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises where it is no number
    except ValueError:
        return None
    if parts.username is not None or parts.path or parts.query or parts.fragment or "\\" in address:
        return None
    return parts.hostname


def _is_address(name: str) -> bool:
    """No name that somebody else's server of names could have given out."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Can only this machine reach it?"""
    bare = host.lower().strip("[]")
    if bare == "localhost":
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


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


async def serve_app(
    guard: HttpGuard,
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
            await _wait_until_done(running, seconds=_REPLY_SECONDS)
        guard.close()
        await _wait_until_done(running)
        listening.close()
    if running.exception() is not None:
        raise ConfigError(f"The server has ended: {running.exception()}.")


async def _wait_until_done(running: "asyncio.Task[None]", seconds: float | None = None) -> None:
    """Wait for the end of the server, however often somebody cancels meanwhile."""
    while not running.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({running}, timeout=seconds)
            if seconds is not None:
                return
