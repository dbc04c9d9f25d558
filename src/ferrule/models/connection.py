"""Keep HTTP connections to a host open between turns, directly or through a proxy.

This uses the parts of `httpx2`: its HTTP parser (`h11`) and its choice of certificates, without the layers
between them that would delay a turn. Nothing here follows redirects, keeps cookies or unpacks bodies. The head of
a request is written once and reused.

The streams of asyncio and of other packages cost several rounds of the event loop for each read or write, which
is too much for the harness time of a turn. So the byte stream is implemented here, with its own timeouts and TLS.

The proxy is taken from the environment.
"""

import asyncio
import errno
import ipaddress
import os
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from socket import EAI_NONAME, gaierror
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import h11
import httpcore2

from ferrule.models import PROXY_ADVICE, BrokenConnection, Silent, Unreachable, clean_text
from ferrule.system.hosts import is_forwarded

_HIGH_BYTES = 1 << 18
"""So much may wait to be read before the other side is asked to stop."""
_HEAD_START_SECONDS = 0.25
"""A machine with several addresses has so long for each before the next one is tried beside it."""
_NOT_NOW = float("inf")
_ALIVE_SECONDS = (30, 15)
"""After so much silence the other machine is asked whether it is there, and again after so much: routers on the way
forget a line that nobody uses, and then nobody says that it is gone."""
_ALIVE_TIMES = 4
_UNHEARD_SECONDS = 90
"""What the other machine has not confirmed for so long has not reached it. Linux only."""


class Stream(asyncio.Protocol):
    """One connection. A side that says nothing for `quiet_seconds` has broken off."""

    def __init__(self, quiet_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._quiet_seconds = quiet_seconds
        self._transport: asyncio.Transport | None = None
        self._waiting = bytearray()
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._until = _NOT_NOW
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False
        self._is_full = False
        self._is_paused = False
        self.has_heard = False
        """Has anything come since this was last taken back?"""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        _keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        self.has_heard = True
        if len(self._waiting) > _HIGH_BYTES and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        _wake(self._reader)
        _wake(self._writer)

    def eof_received(self) -> None:
        self._is_over = True
        _wake(self._reader)
        _wake(self._writer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._error = exc
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        _wake(self._writer)

    @property
    def is_fresh(self) -> bool:
        """Is it open, is all said, and has nobody spoken unasked? A host that does has closed it, or lost its way."""
        transport = self._transport
        if transport is None or transport.is_closing() or self._is_over:
            return False
        return not self._waiting and not transport.get_write_buffer_size()

    @property
    def has_waiting(self) -> bool:
        """Can something be read without waiting for it?"""
        return bool(self._waiting) or self._is_over

    def deadline(self) -> float:
        """When whoever should speak from now on has been silent for too long."""
        return self._loop.time() + self._quiet_seconds

    async def read(self, until: float | None = None) -> bytes:
        """What has come; nothing at the end. Raises Broken."""
        while not self._waiting:
            if self._error is not None:
                raise BrokenConnection(why(self._error))
            if self._is_over:
                return b""
            self._reader = self._loop.create_future()
            await self._within(self._reader, self.deadline() if until is None else until)
        data = bytes(self._waiting)
        self._waiting.clear()
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    async def write(self, pieces: Iterable[bytes]) -> None:
        """Sends them. A side that hangs up or answers meanwhile may have said why, so that is for the reader to see."""
        for piece in pieces:
            if self._transport is None or self._transport.is_closing():
                return
            self._transport.write(piece)
            while self._is_full and not self._is_over and not self._waiting:
                self._writer = self._loop.create_future()
                await self._within(self._writer, self.deadline())

    def close(self) -> None:
        """At once: what was not read is of no use to anybody, and the other side need not go on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        # The transport says so later; whoever waits need not.
        self._is_over = True
        _wake(self._reader)
        _wake(self._writer)

    async def secure(self, context: ssl.SSLContext, host: str, seconds: float) -> None:
        """From here on nobody on the way can read it, and the other side is who it says. Raises Unreachable."""
        assert self._transport is not None
        if self._waiting or self._is_over:
            # What came before would be taken for words of the other side, and anybody may have said it.
            self.close()
            raise Unreachable("it spoke, or hung up, before the connection was secured")
        try:
            secured = await self._loop.start_tls(
                self._transport, self, context, server_hostname=host, ssl_handshake_timeout=seconds
            )
        except (OSError, ssl.SSLError) as error:
            self.close()
            wrong = isinstance(error, ssl.SSLCertVerificationError) or _is_plain(error)
            raise Unreachable(why(error), passing=not wrong, has_advice=wrong) from None
        if secured is None:
            raise Unreachable("the connection was closed while it was being secured")
        self._transport = secured

    async def _within(self, future: "asyncio.Future[None]", until: float) -> None:
        # One timer for many waits: it looks again when it rings too early. This is done for every piece.
        self._until = until
        if self._timer is None or self._timer.when() > until:
            self._set(until)
        try:
            await future
        finally:
            self._until = _NOT_NOW

    def _set(self, until: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(until, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._until == _NOT_NOW:
            return
        if self._loop.time() < self._until:
            self._set(self._until)
            return
        for future in (self._reader, self._writer):
            if future is not None and not future.done():
                future.set_exception(Silent("nothing came for too long"))


async def open_stream(host: str, port: int, *, seconds: float, quiet_seconds: float) -> Stream:
    """A connection to a machine. Its name is looked up in a thread. Raises Unreachable."""
    if is_forwarded(host, port):
        raise Unreachable("a command of this session answers there, and no model", passing=False)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds):
            _, stream = await loop.create_connection(
                lambda: Stream(quiet_seconds), host, port, happy_eyeballs_delay=_HEAD_START_SECONDS
            )
    except TimeoutError:
        raise Unreachable("nobody answered in time") from None
    except OSError as error:
        said = why(error, host)
        refused = said == os.strerror(errno.ECONNREFUSED).lower()
        raise Unreachable(said, refused=refused, nameless=_is_nameless(error)) from None
    except (UnicodeError, OverflowError, ValueError):
        raise Unreachable("this is no name of a machine", passing=False) from None
    return stream


def _is_nameless(error: OSError) -> bool:

    return isinstance(error, gaierror) and error.errno == EAI_NONAME


def _keep_alive(connection: Any) -> None:

    idle, between = _ALIVE_SECONDS
    wanted = {
        "TCP_KEEPIDLE": idle,
        "TCP_KEEPALIVE": idle,
        "TCP_KEEPINTVL": between,
        "TCP_KEEPCNT": _ALIVE_TIMES,
        "TCP_USER_TIMEOUT": _UNHEARD_SECONDS * 1000,
    }
    # It is a help where the system has it, and no reason to fail where it has not.
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, number in wanted.items():
            if (option := getattr(socket, name, None)) is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, number)


def _wake(future: "asyncio.Future[None] | None") -> None:
    if future is not None and not future.done():
        future.set_result(None)


def _is_plain(error: Exception) -> bool:
    return isinstance(error, ssl.SSLError) and error.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST"}


def why(error: Exception, host: str = "") -> str:
    """What an error of the system says, in its own words and without what it is about."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate cannot be trusted ({error.verify_message}); if it is signed by an authority of your own, "
            "set SSL_CERT_FILE to the certificate of that"
        )
    if _is_plain(error):
        return "it does not speak HTTPS there; where it is to be asked without, its address begins with http://"
    if isinstance(error, ssl.SSLError):
        return (error.reason or "the connection could not be secured").lower().replace("_", " ")
    if not isinstance(error, OSError):
        return str(error) or type(error).__name__

    if isinstance(error, gaierror):
        return f"the name {host} is not known ({(error.strerror or 'no address').lower()})"
    if error.errno:
        return os.strerror(error.errno).lower()

    found = dict.fromkeys(os.strerror(int(number)).lower() for number in re.findall(r"\[Errno (\d{1,5})\]", str(error)))
    return ", ".join(found) or str(error) or type(error).__name__


Headers = tuple[tuple[bytes, bytes], ...]

_VERSIONS = (b"1.1", b"1.0")
_HEAD_BYTES = 1 << 16
_MOST_INFORMATION = 64
"""So many times a host may say that an answer is yet to come."""
_SMALL_BYTES = 1 << 16
"""What is shorter goes out together with what is beside it."""


class ResponseHead(NamedTuple):
    """How an answer begins."""

    status: int
    headers: dict[str, str]


class RequestHead:
    """How a question begins: checked and written once for all questions of its kind."""

    def __init__(self, method: str, target: bytes, headers: Headers) -> None:

        try:
            self.event = h11.Request(method=method, target=target, headers=list(headers))
        except h11.LocalProtocolError:
            # What is wrong with them is not said: they hold a key.
            raise Unreachable("its address or its headers cannot be used", passing=False) from None
        written = h11.Connection(h11.CLIENT).send(self.event)
        assert written is not None
        self._data = written.removesuffix(b"\r\n")

    def with_body(self, pieces: Sequence[bytes]) -> Iterator[bytes]:
        """All that is sent, in as few pieces as need no long one to be copied."""
        if not pieces:
            yield self._data + b"\r\n"
            return
        small = [self._data, b"content-length: %d\r\n\r\n" % sum(map(len, pieces))]
        for piece in pieces:
            if len(piece) < _SMALL_BYTES:
                small.append(piece)
                continue
            if small:
                yield b"".join(small)
                small.clear()
            yield piece
        if small:
            yield b"".join(small)


class HttpConnection:
    """One connection, and HTTP on it: one question after the other."""

    def __init__(self, stream: Stream) -> None:

        self._stream = stream
        self._http: Any = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        self.is_done = True
        """Was the last answer read to its end?"""
        self.free_since = 0.0

    @property
    def is_free(self) -> bool:
        """Can the next question go over it?"""
        return self.is_done and self._stream.is_fresh

    @property
    def has_heard(self) -> bool:
        """Did anything come since the last question?"""
        return self._stream.has_heard

    async def ask(self, head: RequestHead, pieces: Sequence[bytes]) -> ResponseHead:
        """Raises Broken."""
        self.is_done = False
        stream, http = self._stream, self._http
        stream.has_heard = False
        # What is sent was written and checked before; the parser only has to know what was asked.
        http.send(head.event)
        http.send(h11.EndOfMessage())
        await stream.write(head.with_body(pieces))
        # All of the head has to come in time: otherwise one byte now and then would hold it up for ever.
        until = stream.deadline()
        for _ in range(_MOST_INFORMATION):
            event = await self._event(until)
            if type(event) is h11.Response:
                if event.http_version not in _VERSIONS:
                    raise BrokenConnection("it speaks another version of HTTP")
                pairs = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers)
                return ResponseHead(event.status_code, dict(pairs))
            if type(event) is not h11.InformationalResponse or event.status_code == 101:
                break
        raise BrokenConnection("it said something that is no answer")

    async def piece(self, *, wait: bool = True) -> bytes | None:
        """The next piece of the body, None at its end; without waiting, None also where it is not here yet.

        Raises: Broken.
        """
        if self.is_done:
            return None
        event = await self._event(wait=wait)
        if event is h11.NEED_DATA:
            return None
        if type(event) is h11.Data:
            return bytes(event.data)
        http = self._http
        # What came behind the end would be taken for the answer to the next question.
        if http.our_state is h11.DONE and http.their_state is h11.DONE and http.trailing_data == (b"", False):
            http.start_next_cycle()
        else:
            self.close()
        self.is_done = True
        return None

    def _next(self) -> Any:

        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise BrokenConnection(f"what it says is no HTTP ({error})") from None

    async def _event(self, until: float | None = None, *, wait: bool = True) -> Any:

        while (event := self._next()) is h11.NEED_DATA and (wait or self._stream.has_waiting):
            data = await self._stream.read(until)
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise BrokenConnection("it closed the connection without an answer")
            self._http.receive_data(data)
        return event

    def close(self) -> None:
        self._stream.close()


_FINISH_SECONDS = 5.0
_IDLE = 8
"""So many connections are kept open at most, unless the caller says more; subagents ask at the same time."""
_IDLE_SECONDS = 300.0
"""A connection that nobody asks over for so long is closed."""


class HttpResponse:
    """What came back: a status, headers, and the pieces of the body as they arrive."""

    def __init__(self, line: "ConnectionPool", connection: HttpConnection, begun: ResponseHead) -> None:
        self.status, self.headers = begun
        self._line = line
        self._connection = connection
        self._is_left = False

    async def piece(self) -> bytes | None:
        """The next piece of the body, None at its end. Raises Broken."""
        data = await self._connection.piece()
        if data is None:
            self._leave()
        return data

    async def head(self, limit_bytes: int) -> bytes:
        """The beginning of the body, as much of it as there is and is wanted. Raises Broken."""
        body = bytearray()
        while len(body) < limit_bytes and (piece := await self.piece()) is not None:
            body += piece
        return bytes(body[:limit_bytes])

    async def finish(self) -> None:
        """All that is wanted has come. Where the end of the body has not, it is waited for while others work."""
        try:
            while await self._connection.piece(wait=False):
                pass
        except BrokenConnection:
            self.close()
        if self._connection.is_done:
            self._leave()
        elif not self._is_left:
            self._is_left = True
            self._line.finish(self._connection)

    def close(self) -> None:
        """Nothing more is wanted: the other side sees at once that nobody listens."""
        if not self._is_left:
            self._is_left = True
            self._line.drop(self._connection)

    def _leave(self) -> None:
        if not self._is_left:
            self._is_left = True
            self._line.give_back(self._connection)


class ConnectionPool:
    """The connections to one host."""

    def __init__(self, url: str, *, quiet_seconds: float, idle: int = _IDLE) -> None:
        self._base = url
        self._quiet_seconds = quiet_seconds
        self.most_idle = idle
        """So many connections are kept open while nobody asks over them."""
        self._open: set[HttpConnection] = set()
        self._idle: list[HttpConnection] = []
        self._finishing: set[asyncio.Task[None]] = set()
        self._route: Route | None = None
        self._heads: dict[tuple[str, str, Headers], RequestHead] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.is_closed = False
        self.has_stood = False
        """Was the host there once?"""

    async def send(self, method: str, path: str, headers: Headers, pieces: Sequence[bytes] = ()) -> HttpResponse:
        """Ask, and hear how the answer begins. Raises Broken."""
        self._check()
        if self._route is None:
            self._route = route(self._base)
        head = self._heads.get((method, path, headers))
        if head is None:
            head = RequestHead(method, self._route.target(path), (*headers, *self._route.headers))
            self._heads[method, path, headers] = head
        connection = await self._take_idle()
        if connection is not None:
            try:
                return HttpResponse(self, connection, await connection.ask(head, pieces))
            except Silent:
                self.drop(connection)
                raise
            except BrokenConnection:
                self.drop(connection)
                # The host had closed it, as hosts do after a while: it has not even heard the question. Where it
                # has said anything, it has, and might be made to do the same twice.
                if connection.has_heard:
                    raise
            except BaseException:
                self.drop(connection)
                raise
        self._check()
        connection = HttpConnection(await self._route.open(self._quiet_seconds))
        self.has_stood = True
        self._open.add(connection)
        try:
            self._check()
            return HttpResponse(self, connection, await connection.ask(head, pieces))
        except BaseException:
            self.drop(connection)
            raise

    def _check(self) -> None:
        if self.is_closed:
            raise Unreachable("the model was closed", passing=False)

    async def _take_idle(self) -> HttpConnection | None:
        """A connection that is open and free, if there is one."""
        if not self._idle and self._finishing:
            # What is missing of the last body is mostly here already and only waits for its turn.
            await asyncio.sleep(0)
        while self._idle:
            connection = self._idle.pop()
            if connection.is_free:
                return connection
            self.drop(connection)
        return None

    def drop(self, connection: HttpConnection) -> None:
        """Nothing more goes over it."""
        self._open.discard(connection)
        connection.close()

    def give_back(self, connection: HttpConnection) -> None:
        """It is free again, unless it is closed or there are enough."""
        if self.is_closed or not connection.is_free or len(self._idle) >= self.most_idle:
            self.drop(connection)
            return
        loop = asyncio.get_running_loop()
        connection.free_since = loop.time()
        self._idle.append(connection)
        # One timer for many questions: it looks again when it rings too early.
        if self._timer is None:
            self._timer = loop.call_later(_IDLE_SECONDS, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        oldest = loop.time() - _IDLE_SECONDS
        # The last one given back is the first one taken, so that those at the beginning have waited longest.
        while self._idle and self._idle[0].free_since <= oldest:
            self.drop(self._idle.pop(0))
        if self._idle:
            self._timer = loop.call_at(self._idle[0].free_since + _IDLE_SECONDS, self._sweep, loop)

    def finish(self, connection: HttpConnection) -> None:
        """What is left of an answer is read while others work, for a while."""
        task = asyncio.get_running_loop().create_task(self._finish(connection))
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    async def _finish(self, connection: HttpConnection) -> None:
        try:
            async with asyncio.timeout(_FINISH_SECONDS):
                while await connection.piece() is not None:
                    pass
            self.give_back(connection)
        except (BrokenConnection, TimeoutError):
            self.drop(connection)
        except BaseException:
            self.drop(connection)
            raise

    async def close(self) -> None:
        """Ends all connections, also those over which somebody is just asking."""
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        tasks = list(self._finishing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._idle.clear()
        while self._open:
            self._open.pop().close()


CONNECT_SECONDS = 20.0
_PORTS = {"http": 80, "https": 443}
_LIMIT_BYTES = 1 << 16
_SET = "set HTTPS_PROXY (or HTTP_PROXY, for http) to http://HOST:PORT"


class ForwardProxy(NamedTuple):
    """What stands between. Its name and its password are in no text that it makes of itself."""

    host: str
    port: int
    is_secured: bool
    credentials: tuple[tuple[bytes, bytes], ...]

    def __str__(self) -> str:
        return f"the proxy {_bracket_host(self.host)}:{self.port}"

    def __repr__(self) -> str:
        return str(self)


class Route:
    """How connections to one host are opened. It is found out once."""

    def __init__(self, url: str, proxy: ForwardProxy | None = None) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = _port(parts)
        self._base = parts.path
        self._context = _certificates() if parts.scheme == "https" else None
        self._proxy = proxy
        is_plain = proxy is not None and self._context is None
        self._origin = f"{parts.scheme}://{parts.netloc}" if is_plain else ""
        self.headers = proxy.credentials if proxy is not None and is_plain else ()
        """What a proxy wants to know with every question."""

    def target(self, path: str) -> bytes:
        """What is asked for; a proxy wants to hear it whole."""
        return f"{self._origin}{self._base}{path}".encode("ascii", "replace")

    async def open(self, quiet_seconds: float) -> Stream:
        """A connection over which the host can be asked. Raises Broken."""
        way = self._proxy
        if way is None:
            stream = await open_stream(self._host, self._port, seconds=CONNECT_SECONDS, quiet_seconds=quiet_seconds)
        else:
            stream = await self._through(way, quiet_seconds)
        if self._context is None:
            return stream
        try:
            await stream.secure(self._context, self._host, CONNECT_SECONDS)
        except BaseException:
            stream.close()
            raise
        return stream

    async def _through(self, way: ForwardProxy, quiet_seconds: float) -> Stream:
        """The same by way of a proxy. Raises Unreachable, which says where the proxy was set."""
        try:
            return await self._connect_via_proxy(way, quiet_seconds)
        except Unreachable as error:
            if error.has_advice:
                raise
            variable = "HTTP_PROXY" if self._context is None else "HTTPS_PROXY"
            advice = f"{error}; look at {variable} and NO_PROXY"
            raise Unreachable(advice, passing=error.passing, has_advice=True) from None

    async def _connect_via_proxy(self, way: ForwardProxy, quiet_seconds: float) -> Stream:
        """A connection that the proxy passes on, or takes questions over for a host that is not secured."""
        try:
            stream = await open_stream(way.host, way.port, seconds=CONNECT_SECONDS, quiet_seconds=quiet_seconds)
        except Unreachable as error:
            passing = error.passing and not error.nameless
            raise Unreachable(f"{way} cannot be reached: {error}", passing=passing) from None
        try:
            if way.is_secured:
                try:
                    await stream.secure(_certificates(), way.host, CONNECT_SECONDS)
                except Unreachable as error:
                    advised = error.has_advice
                    raise Unreachable(
                        f"{way} cannot be used: {error}", passing=error.passing, has_advice=advised
                    ) from None
            if self._context is not None:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self._tunnel(stream, way)
        except TimeoutError:
            stream.close()
            raise Unreachable(f"{way} did not answer in time") from None
        except BaseException:
            stream.close()
            raise
        return stream

    async def _tunnel(self, stream: Stream, way: ForwardProxy) -> None:
        """The proxy passes on what it cannot read."""
        target = f"{_bracket_host(self._host)}:{self._port}".encode()
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LIMIT_BYTES)
        head = http.send(h11.Request(method="CONNECT", target=target, headers=[(b"host", target), *way.credentials]))
        http.send(h11.EndOfMessage())
        await stream.write([head or b""])
        try:
            while (event := http.next_event()) is h11.NEED_DATA or isinstance(event, h11.InformationalResponse):
                if event is h11.NEED_DATA:
                    http.receive_data(await stream.read())
        except h11.RemoteProtocolError as error:
            raise Unreachable(f"what {way} says is no HTTP ({error})") from None
        if not isinstance(event, h11.Response):
            raise Unreachable(f"{way} hung up")
        status = event.status_code
        if status == 407:
            raise Unreachable(f"{way} {PROXY_ADVICE} (HTTP 407)", passing=False, has_advice=True)
        if not 200 <= status < 300:
            raise Unreachable(f"{way} does not let it through (HTTP {status})", passing=status >= 500 or status == 429)
        if http.trailing_data[0]:
            raise Unreachable(f"{way} said more than it was asked", passing=False)


def route(url: str) -> Route:
    """The way to an address, as the environment has it now. This machine itself is never reached through a proxy.

    Raises: Unreachable where a proxy is set that cannot be used.
    """
    try:
        parts = urlsplit(url)
        port = _port(parts)
    except ValueError:
        raise Unreachable("its address cannot be read", passing=False) from None
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return Route(url)

    proxies = getproxies()
    proxy = (proxies.get(parts.scheme) or proxies.get("all") or "").strip()
    if not proxy or _is_excepted(host, port, proxies.get("no", "")):
        return Route(url)
    return Route(url, _proxy(proxy if "://" in proxy else f"http://{proxy}"))


def _proxy(url: str) -> ForwardProxy:
    # What is wrong is said without the address: it may hold a password.
    try:
        parts = urlsplit(url)
        port = _port(parts)
    except ValueError:
        raise Unreachable(f"the address of the proxy cannot be read: {_SET}", passing=False, has_advice=True) from None
    if parts.scheme not in _PORTS:
        kind = clean_text(parts.scheme)[:20] or "unknown"
        message = f"a proxy of the kind {kind} cannot be used for models: set HTTPS_PROXY to one of http or https"
        raise Unreachable(message, passing=False, has_advice=True)
    if not parts.hostname:
        raise Unreachable(f"the address of the proxy names no machine: {_SET}", passing=False, has_advice=True)
    return ForwardProxy(parts.hostname, port, parts.scheme == "https", _credentials(parts.username, parts.password))


def _is_excepted(host: str, port: int, listed: str) -> bool:
    """Does NO_PROXY, or what the system has instead of it, name this machine? Networks may be named too."""
    names = [name.strip().removeprefix("*.").lower() for name in listed.split(",")]
    return "*" in names or proxy_bypass(host) or any(_is_named(host, port, name) for name in names if name)


def _is_named(host: str, port: int, name: str) -> bool:
    machine, _, number = name.rpartition(":")
    # The last part of an address of the sixth version is no port, unless the rest stands in brackets.
    if machine and number.isdigit() and (":" not in machine or machine.endswith("]")):
        if int(number) != port:
            return False
        name = machine
    name = name.strip("[]").lstrip(".")
    return host == name or (bool(name) and host.endswith(f".{name}")) or _is_within(host, name)


def _is_within(host: str, network: str) -> bool:

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS.get(parts.scheme, 0)


def _bracket_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _certificates() -> ssl.SSLContext:
    """The same that `httpx2` trusts: those of the environment, else of the system."""
    try:
        context = httpcore2.default_ssl_context()
    except OSError as error:  # that of ssl is one too
        reason = "there are none in it" if isinstance(error, ssl.SSLError) else error.strerror
        advice = f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR name cannot be read ({reason}): set it right"
        raise Unreachable(advice, passing=False, has_advice=True) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def _credentials(name: str | None, password: str | None) -> tuple[tuple[bytes, bytes], ...]:
    if not name and not password:
        return ()

    words = f"{unquote(name or '')}:{unquote(password or '')}"
    return ((b"proxy-authorization", b"Basic " + b64encode(words.encode())),)
