"""Serve an HTTP proxy as the way out of the sandbox, which connects only to the hosts of a list.

It speaks CONNECT, and plain http with whole addresses. It does not see the inside of a tunnel: the host that a
program names within the encryption is not checked. A host is resolved once, all of its addresses are judged, and
the connection goes to one of the judged addresses.

Heads of HTTP messages are parsed so that no header can be read in two ways.
"""

import asyncio
import base64
import contextlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from socket import SOCK_STREAM
from typing import TYPE_CHECKING, NamedTuple

from ferrule.system.hosts import Address, Bad, NetworkEndpoint, entries, leads_inside, target

if TYPE_CHECKING:
    import socket


_HOP_BY_HOP = {b"connection", b"keep-alive", b"proxy-authorization", b"proxy-connection", b"te", b"trailer", b"upgrade"}
_WORDS = {400: "Bad Request", 403: "Forbidden", 407: "Proxy Authentication Required", 411: "Length Required"}
_WORDS |= {431: "Request Header Fields Too Large", 502: "Bad Gateway", 503: "Service Unavailable"}


class ProxyRefusal(Exception):  # noqa: N818 - what the other side is told
    """An answer that ends the exchange."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class ProxyRequest(NamedTuple):
    """What the other side wants."""

    target: NetworkEndpoint
    head: bytes
    """What the host is told; nothing for a tunnel."""
    body_bytes: int = 0


def header(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(rb"[\x00\r\n]", value):
        raise ProxyRefusal(400, "A header is not well formed.")
    return name.lower(), value.strip(b" \t")


def plain(method: bytes, wanted: NetworkEndpoint, path: str, headers: Sequence[tuple[bytes, bytes]]) -> ProxyRequest:
    """One message to that host, which cannot be followed by one to another host on the same connection."""
    lengths = [value for name, value in headers if name == b"content-length"]
    if any(name == b"transfer-encoding" for name, _ in headers):
        raise ProxyRefusal(411, "The sandbox's proxy takes bodies of plain http only with their length.")
    if len(lengths) > 1 or not all(re.fullmatch(rb"[0-9]{1,15}", length) for length in lengths):
        raise ProxyRefusal(400, "The length of the body is not clear.")
    host = str(wanted).removesuffix(":80")
    named = {each.strip().lower() for name, value in headers if name == b"connection" for each in value.split(b",")}
    # A length that is dropped on demand would make the body the next message.
    dropped = _HOP_BY_HOP | {b"host"} | named - {b"content-length"}
    kept = [(name, value) for name, value in headers if name not in dropped]
    lines = [b"%s %s HTTP/1.1" % (method, path.encode()), b"host: " + host.encode(), b"connection: close"]
    lines += [name + b": " + value for name, value in kept]
    return ProxyRequest(wanted, b"\r\n".join(lines) + b"\r\n\r\n", int(lengths[0]) if lengths else 0)


def answer(refusal: ProxyRefusal) -> bytes:
    body = f"{refusal}\n".encode()
    ask = b'Proxy-Authenticate: Basic realm="ferrule"\r\n' if refusal.status == 407 else b""
    # Programs that show no body show these words.
    words = str(refusal).encode("ascii", "replace") if refusal.status == 403 else _WORDS[refusal.status].encode()
    head = b"HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n" % (refusal.status, words)
    return head + ask + b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)


Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, as text. Raises OSError."""

_HEAD_BYTES = 32 << 10
_CHUNK_BYTES = 1 << 16
_AT_ONCE = 128
_REMEMBERED = 100
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 30.0
_IDLE_SECONDS = 600.0
_LINGER_SECONDS = 2.0


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the system knows them."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
    return [str(each[4][0]) for each in found]


class SandboxProxy:
    """Lets the hosts of a list through while it runs. With an empty list it lets nothing through."""

    def __init__(self, hosts: Sequence[str], *, private: bool = False, resolver: Resolver = resolve) -> None:
        """`private`: the hosts may be on this machine or in its own network. Raises ValueError for a bad list."""
        self._entries = entries(hosts)
        self._private = private
        self._resolver = resolver
        self._token = ""
        self._servers: list[asyncio.Server] = []
        self._running: set[asyncio.Task[None]] = set()
        self.refused: list[str] = []
        """What was not let through, as `host:port`, each once, the last ones of many."""
        self.address = ""
        """`http://…@127.0.0.1:port`, once it runs on a port of this machine."""

    async def start(self) -> None:
        """Listen on a port of this machine, with a password. Raises OSError."""
        self._token = secrets.token_urlsafe(24)
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_HEAD_BYTES)
        self.address = f"http://ferrule:{self._token}@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._servers.append(server)

    async def serve(self, listener: "socket.socket") -> None:
        """Listen on a socket of a network that nobody else is in. Raises OSError."""
        # Whoever is cancelled here must be able to close it.
        server = await asyncio.start_server(self._accept, sock=listener, limit=_HEAD_BYTES, start_serving=False)
        self._servers.append(server)
        await server.start_serving()

    @property
    def port(self) -> int:
        """The port at which it listens; 0 where it does not."""
        return int(self._servers[0].sockets[0].getsockname()[1]) if self._servers else 0

    def allow(self, host: str) -> None:
        """Let one more host through. Raises ValueError for what is none."""
        self._entries = (*self._entries, *entries((host,)))

    def take_refused(self) -> list[str]:
        """What was refused since this was last asked: a later command is not to be blamed for it."""
        taken = self.refused[:]
        self.refused.clear()
        return taken

    async def close(self) -> None:
        """Stop listening, end what is under way, and leave nothing behind."""
        for server in self._servers:
            server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._servers.clear()
        self.address = ""

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                order = await self._order(reader)
            far_reader, far_writer = await self._connect(order.target)
            try:
                await _exchange(order, reader, writer, far_reader, far_writer)
            finally:
                far_writer.close()
        except ProxyRefusal as refusal:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_LINGER_SECONDS):
                    await _tell(refusal, reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            return  # one of the two is gone; there is nobody to tell
        finally:
            writer.close()

    async def _order(self, reader: asyncio.StreamReader) -> ProxyRequest:
        if len(self._running) > _AT_ONCE:
            raise ProxyRefusal(503, "There are too many connections at once.")
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise ProxyRefusal(431, "The head of the message is too long.") from error
        first, *lines = head[:-4].split(b"\r\n")
        headers = [header(line) for line in lines]
        if self._token:
            self._check_credentials(headers)
        method, _, rest = first.partition(b" ")
        where, _, version = rest.partition(b" ")
        if not re.fullmatch(rb"[A-Z]{1,20}", method) or version not in {b"HTTP/1.1", b"HTTP/1.0"}:
            raise ProxyRefusal(400, "This is no message of HTTP.")
        try:
            text = where.decode("utf-8")
            if method == b"CONNECT":
                return ProxyRequest(self._check_allowed(target(text)), b"")
            found = re.fullmatch(r"http://([^/?#]*)([/?][^#\x00-\x20\x7f]*)?", text, re.IGNORECASE)
            if found is None:
                raise ProxyRefusal(400, "The sandbox's proxy takes CONNECT, or an address that begins with http://.")
            wanted = self._check_allowed(target(found[1], port=80))
        except (Bad, UnicodeDecodeError) as error:
            raise ProxyRefusal(400, str(error) if isinstance(error, Bad) else "The address is not readable.") from error
        path = found[2] or "/"
        return plain(method, wanted, path if path.startswith("/") else "/" + path, headers)

    def _check_credentials(self, headers: Sequence[tuple[bytes, bytes]]) -> None:

        wanted = b"Basic " + base64.b64encode(f"ferrule:{self._token}".encode())
        given = [value for name, value in headers if name == b"proxy-authorization"]
        if len(given) != 1 or not hmac.compare_digest(given[0], wanted):
            raise ProxyRefusal(407, "This proxy is for the commands of one session only.")

    def _check_allowed(self, wanted: NetworkEndpoint) -> NetworkEndpoint:
        if not any(entry.covers(wanted) for entry in self._entries):
            self._refuse(wanted, "is not in the list of hosts that the setting sandbox.hosts allows")
        return wanted

    def _refuse(self, wanted: NetworkEndpoint, why: str) -> None:
        name = str(wanted)
        if name in self.refused:
            self.refused.remove(name)
        self.refused.append(name)
        del self.refused[:-_REMEMBERED]
        raise ProxyRefusal(403, f"The sandbox refused {name}: it {why}.")

    async def _connect(self, wanted: NetworkEndpoint) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                addresses = [wanted.address] if wanted.address else await self._addresses(wanted)
                for last, address in enumerate(addresses, 1 - len(addresses)):
                    try:
                        return await asyncio.open_connection(str(address), wanted.port, limit=_HEAD_BYTES)
                    except OSError:
                        if last == 0:
                            raise
        except TimeoutError as error:
            raise ProxyRefusal(502, f"{wanted} does not answer.") from error
        except OSError as error:
            raise ProxyRefusal(502, f"{wanted} cannot be reached: {error.strerror or error}.") from error
        raise ProxyRefusal(502, f"{wanted} has no address.")

    async def _addresses(self, wanted: NetworkEndpoint) -> list[Address]:
        """All of them are judged, and one that leads inside spoils the others: a name is not half trustworthy."""
        try:
            found = [ip_address(each) for each in await self._resolver(wanted.host, wanted.port)]
        except (OSError, UnicodeError, ValueError) as error:
            raise ProxyRefusal(502, f"{wanted.host} cannot be resolved.") from error
        for address in found:
            why = leads_inside(address, private=self._private)
            if why:
                self._refuse(wanted, f"is not public ({why}), and sandbox.hosts does not name that address")
        return list(dict.fromkeys(found))


async def _tell(refusal: ProxyRefusal, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer, and read what is still coming: a connection that is closed over it loses the answer."""
    writer.write(answer(refusal))
    await writer.drain()
    writer.write_eof()
    while await reader.read(_CHUNK_BYTES):
        pass


async def _exchange(
    order: ProxyRequest,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    """Carry bytes both ways until both sides are done, or nothing moves for long."""
    if order.head:
        far_writer.write(order.head)
    else:
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    most = order.body_bytes if order.head else None
    moved = _Moved()
    there = asyncio.ensure_future(_copy(reader, far_writer, moved, most))
    back = asyncio.ensure_future(_copy(far_reader, writer, moved, None))
    try:
        # The host's end of the connection ends it: a command that wants no more has closed it by then.
        while not back.done():
            moved.lately = False
            await asyncio.wait((back,), timeout=_IDLE_SECONDS)
            if not moved.lately and not back.done():
                return
        await back
    finally:
        there.cancel()
        back.cancel()
        await asyncio.gather(there, back, return_exceptions=True)


class _Moved:
    """Has anything moved since the last look?"""

    lately = False


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter, moved: _Moved, most: int | None) -> None:
    left = most
    while left is None or left > 0:
        data = await source.read(_CHUNK_BYTES if left is None else min(left, _CHUNK_BYTES))
        if not data:
            break
        moved.lately = True
        left = None if left is None else left - len(data)
        sink.write(data)
        await sink.drain()
    if most is None and sink.can_write_eof():
        sink.write_eof()
