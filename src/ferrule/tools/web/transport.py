"""One connection for one page: to a judged address, while the name stays what is asked for and what is certified.

It is a transport of `httpx2` over the connections of `httpcore2`. Nothing is taken from the environment but the
certificates that the system trusts; nothing is kept open, unpacked, followed or remembered.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import httpcore2
import httpx2

from ferrule.sandbox.web_address import CutOff, Way, WebError
from ferrule.system.hosts import NetworkEndpoint
from ferrule.tools.web.connect import WebProxy, causes, explain_unreachable

_HEAD_BYTES = 1 << 18
"""All that may come before a body begins: a few hundred headers, and what is said before them."""
_EACH_SECONDS = 4.0
"""So long one address of several may take before the next one is tried."""
_BROKEN = "peer closed connection"
"""How the parser of HTTP begins to say that a body ended too early."""
_IN_A_ROW = 64
"""So many pieces of a body are taken out of what has come before others have their turn."""


class Meter:
    """Counts what comes on a connection, and how much of it is of use."""

    def __init__(self, name: str, *, is_upgraded: bool) -> None:
        self._name = name
        self._left = _HEAD_BYTES
        self._has_head = False
        self.is_upgraded = is_upgraded
        """Is it a public site, which is only asked over https?"""
        self.is_securing = False

    def count(self, number: int) -> None:
        """So many bytes came. Raises WebError."""
        self._left -= number
        if self._left < 0:
            what = "far more around its page than the page itself" if self._has_head else "too many headers"
            raise WebError(f"{self._name} sent {what}.", "bad-answer")

    def head(self) -> None:
        """The headers are complete. What frames a body may be as much again, and little more."""
        self._has_head = True
        self._left = _HEAD_BYTES

    def use(self, number: int) -> None:
        """So many bytes of a body were among what came."""
        self._left += 2 * number


class PageTransport(httpx2.AsyncBaseTransport):
    """The connection to one page. It is opened by the first question and serves no other one."""

    def __init__(self, way: Way, *, tls: Callable[[], ssl.SSLContext], proxy: WebProxy | None = None) -> None:
        url = way.url
        self._url = httpcore2.URL(
            scheme=url.scheme, host=url.target.host, port=url.target.port, target=url.path.encode("ascii")
        )
        self._name = url.authority
        self._meter = Meter(self._name, is_upgraded=url.scheme == "https" and not way.is_private)
        self._connection = httpcore2.AsyncHTTPConnection(
            origin=self._url.origin,
            ssl_context=tls() if url.scheme == "https" else None,
            network_backend=_Roads(way, self._meter, proxy, tls),
        )

    async def _exchange(self, request: httpx2.Request) -> httpx2.Response:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        asked = httpcore2.Request(
            method=request.method, url=self._url, headers=request.headers.raw, content=request.stream
        )
        with _translate_errors(self._name, self._meter):
            answer = await self._connection.handle_async_request(asked)
        self._meter.head()
        assert isinstance(answer.stream, AsyncIterable)
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Pieces(answer.stream, self._name, self._meter),
        )

    handle_async_request = _exchange  # as the package calls it

    async def aclose(self) -> None:
        await self._connection.aclose()


class _Pieces(httpx2.AsyncByteStream):
    def __init__(self, pieces: AsyncIterable[bytes], name: str, meter: Meter) -> None:
        self._pieces = pieces
        self._name = name
        self._meter = meter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        iterator: Any = aiter(self._pieces)
        count = 0
        try:
            with _translate_errors(self._name, self._meter):
                async for piece in iterator:
                    self._meter.use(len(piece))
                    yield piece
                    count += 1
                    if count % _IN_A_ROW == 0:
                        # One read may hold ten thousand chunks of a byte each, and none of them waits for anything.
                        await asyncio.sleep(0)
        finally:
            await iterator.aclose()


class _Roads(httpcore2.AsyncNetworkBackend):
    """Connects to the judged addresses, whatever host it is asked for."""

    def __init__(self, way: Way, meter: Meter, proxy: WebProxy | None, tls: Callable[[], ssl.SSLContext]) -> None:
        self._way = way
        self._meter = meter
        self._proxy = proxy
        self._tls = tls
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the package's way to ask; the whole fetch has a deadline
        local_address: str | None = None,  # noqa: ARG002 - the package's way to ask
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 - the package's way to ask
    ) -> httpcore2.AsyncNetworkStream:
        where = self._way.url.target
        assert (host, port) == (where.host, where.port)
        if self._way.inside is not None:
            reader, writer = await asyncio.open_connection(sock=await self._way.inside.connect(port))
            return _Counted(_Stream(reader, writer), self._meter)
        if self._proxy is not None:
            with _between(self._proxy, self._meter):
                return await self._open_tunnel(self._proxy, where, timeout)
        *others, last = self._way.addresses
        for address in others:
            with contextlib.suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await self._open(str(address), port, _EACH_SECONDS)
        return await self._open(str(last), port, timeout)

    async def _open_tunnel(
        self,
        proxy: WebProxy,
        where: NetworkEndpoint,
        timeout: float | None,  # noqa: ASYNC109 - as above
    ) -> "_Counted":
        stream = await self._open(proxy.host, proxy.port, timeout)
        try:
            if proxy.is_secured:
                stream = await stream.start_tls(self._tls(), proxy.host, timeout)
            await proxy.tunnel(stream, where)
        except BaseException:
            await stream.aclose()
            raise
        return stream

    async def _open(self, host: str, port: int, seconds: float | None) -> "_Counted":
        return _Counted(await self._inner.connect_tcp(host, port, timeout=seconds), self._meter)


class _Stream(httpcore2.AsyncNetworkStream):
    """A connection to a command of the session, whose socket is there already."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as above
        async with asyncio.timeout(timeout):
            return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        self._writer.write(buffer)
        async with asyncio.timeout(timeout):
            await self._writer.drain()

    async def aclose(self) -> None:
        self._writer.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> "_Stream":
        async with asyncio.timeout(timeout):
            await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        return self

    def get_extra_info(self, info: str) -> Any:
        return None if info == "ssl_object" else self._writer.get_extra_info(info)


class _Counted(httpcore2.AsyncNetworkStream):
    """A connection that counts."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as above
        data = await self._inner.read(max_bytes, timeout)
        self._meter.count(len(data))
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> "_Counted":
        self._meter.is_securing = True
        try:
            secured = await self._inner.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            # The package closes only after errors that it knows, and a deadline is none of them.
            await self._inner.aclose()
            raise
        self._meter.is_securing = False
        return _Counted(secured, self._meter)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


@contextlib.contextmanager
def _translate_errors(name: str, meter: Meter) -> Iterator[None]:
    try:
        yield
    except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError, EOFError) as error:
        raise _network(name, meter, error) from error
    except httpcore2.RemoteProtocolError as error:
        text = str(error)
        if text.startswith(_BROKEN):
            raise CutOff(f"The connection to {name} broke off before the end.") from error
        if text.startswith("Server disconnected"):
            raise WebError(f"{name} closed the connection without an answer.", "bad-answer") from error
        raise WebError(f"What {name} answered is not proper HTTP: {text[:200]!a}.", "bad-answer") from error
    except httpcore2.LocalProtocolError as error:
        raise WebError(f"{name} cannot be asked like this: {str(error)[:200]!a}.", "bad-address") from error


@contextlib.contextmanager
def _between(proxy: WebProxy, meter: Meter) -> Iterator[None]:
    """What fails on the way to the proxy and in it says nothing about the site behind."""
    name = f"{proxy} (setting web.proxy)"
    try:
        yield
    except (httpcore2.NetworkError, httpcore2.TimeoutException, OSError, EOFError) as error:
        if (insecure := _insecure(name, meter, error)) is not None:
            raise insecure from error
        reason = "it broke the connection off" if isinstance(error, httpcore2.ReadError) else explain_unreachable(error)
        raise WebError(f"T{name[1:]} cannot be reached: {reason}.", "unreachable") from error


def _insecure(name: str, meter: Meter, error: Exception) -> WebError | None:
    """What is said of a connection that could not be secured; None where it is about something else."""
    for cause in causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            text = cause.verify_message or "it is not valid"
            return WebError(f"The certificate of {name} cannot be trusted: {text.rstrip('.')}.", "tls")
        if isinstance(cause, ssl.SSLError):
            text = (cause.reason or "no reason given").lower().replace("_", " ")
            return WebError(f"The connection to {name} could not be secured: {text}.", "tls")
    if meter.is_securing:
        return WebError(f"{name[0].upper()}{name[1:]} closed the connection while it was being secured.", "tls")
    return None


def _network(name: str, meter: Meter, error: Exception) -> WebError:
    if (insecure := _insecure(name, meter, error)) is not None:
        return insecure
    if isinstance(error, httpcore2.ReadError):
        return CutOff(f"The connection to {name} broke off before the end.")
    return WebError(
        f"{name} cannot be reached: nobody answers there"
        + (" over https, and public sites are asked over https only." if meter.is_upgraded else "."),
        "unreachable",
    )
