"""Give the commands of a session a shared network with its own loopback, and a private folder for /tmp.

The network is that of a cell. The engine asks the cell for sockets in it: with those it serves the proxy and the
resolver there, connects to the ports on which commands listen, and forwards ports to the user.

The resolver records the names that are asked for and resolves none of them. Nothing is forwarded: a name that is
sent to a resolver outside would carry data out of the sandbox.
"""

import asyncio
import contextlib
import re
import secrets
import socket
import struct
import sys
from collections.abc import Callable
from typing import NamedTuple

from ferrule import sandbox as profile
from ferrule.sandbox import spawner
from ferrule.sandbox.proxy import SandboxProxy
from ferrule.system.hosts import FORWARDED

PORT = 53
_HEAD_BYTES = 12
_MOST_BYTES = 4096
_MOST_AT_ONCE = 64
_REMEMBERED = 100
_RESPONSE, _RECURSION, _NO_SUCH_NAME, _NOT_UNDERSTOOD = 0x8000, 0x0080, 3, 1
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)+")
_LOCAL = (".arpa", ".local", ".localhost", ".localdomain", ".internal", ".lan", ".home")
"""Names that programs ask for by themselves, or that mean nothing outside of a network."""


class Resolver:
    """Answers on one socket until it is closed."""

    def __init__(self, listener: socket.socket, heard: Callable[[str], None]) -> None:
        """`heard` is called for every name that a program asks for, on the running loop."""
        self._listener = listener
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(listener.fileno(), self._read)

    def close(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()

    def _read(self) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                data, sender = self._listener.recvfrom(_MOST_BYTES)
            except OSError:
                return
            name, answer = answer_query(data)
            if answer:
                with contextlib.suppress(OSError):
                    self._listener.sendto(answer, sender)
            if name and _NAME.fullmatch(name) and not name.endswith(_LOCAL):
                self._heard(name)


def answer_query(data: bytes) -> tuple[str, bytes]:
    """The name that a query asks for, and the answer that there is none; nothing for what is no query."""
    if len(data) < _HEAD_BYTES:
        return "", b""
    number, flags, questions = struct.unpack_from("!3H", data)
    if flags & _RESPONSE:
        return "", b""
    name, end = _question(data)
    if questions != 1 or not end:
        return "", struct.pack("!6H", number, _RESPONSE | _RECURSION | _NOT_UNDERSTOOD, 0, 0, 0, 0)
    head = struct.pack("!6H", number, _RESPONSE | (flags & 0x0100) | _RECURSION | _NO_SUCH_NAME, 1, 0, 0, 0)
    return name, head + data[_HEAD_BYTES:end]


def _question(data: bytes) -> tuple[str, int]:
    """The name in the question, in small letters, and where the question ends; 0 where it is malformed."""
    labels: list[str] = []
    at = _HEAD_BYTES
    while at < len(data) and (size := data[at]):
        if size > 63 or at + 1 + size > len(data) or len(labels) > 127:
            return "", 0
        labels.append(data[at + 1 : at + 1 + size].decode("ascii", "replace").lower())
        at += 1 + size
    end = at + 5  # the empty label, the type and the class
    return (".".join(labels), end) if end <= len(data) else ("", 0)


class UnresolvedNames:
    """The names that were asked for and not answered, each once, the last ones of many."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self.heard = asyncio.Event()
        """Set when a name was asked for, until `take`."""

    def add(self, name: str) -> None:
        self._names.pop(name, None)
        self._names[name] = None
        while len(self._names) > _REMEMBERED:
            del self._names[next(iter(self._names))]
        self.heard.set()

    def look(self) -> list[str]:
        return list(self._names)

    def take(self) -> list[str]:
        """All of them, once: a later command is not to be blamed for them."""
        taken = list(self._names)
        self._names.clear()
        self.heard.clear()
        return taken


_OWN_PORTS = frozenset({profile.PORT, PORT})
_CONNECT_SECONDS = 10.0
_CHUNK_BYTES = 1 << 16
_MOST_FORWARDED = 32
KNOWN_SERVICES = frozenset(
    {
        1025, 1080, 1433, 1434, 1521, 1883, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3306, 3389, 4222, 4369, 5432,
        5433, 5601, 5671, 5672, 5984, 6333, 6334, 6379, 6380, 6443, 7000, 7199, 7473, 7474, 7687, 7860, 8086, 8123,
        8200, 8300, 8301, 8302, 8500, 8529, 8600, 8983, 9042, 9092, 9093, 9160, 9200, 9300, 9411, 9600, 10250, 10255,
        11210, 11211, 11434, 15672, 16379, 19530, 26257, 27017, 27018, 27019, 28015, 29015, 33060, 50051, 61613, 61616,
    }
)  # fmt: skip
"""Ports of databases, caches, queues, model servers and container engines: programs outside trust who answers there."""
_LEAST_PORT = 1024
_LOOPBACK_6 = bytes(12) + (1).to_bytes(4, sys.byteorder)


class ListenerAddress(NamedTuple):
    """Where a command of the session listens."""

    host: str
    """127.0.0.1 or ::1, also for one that listens on every address."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Machine:
    """The network of one session's commands. It exists from the first command on, and ends with the session."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(8)
        self.names = UnresolvedNames()
        self.proxy = SandboxProxy(())
        self.allowed: list[str] = []
        """Hosts that the user allowed in the session."""
        self.forwarded: dict[int, _Both] = {}
        """The ports of the user's own loopback that lead to those of the session."""
        self._loop: asyncio.AbstractEventLoop | None = None
        """Where they are served."""
        self._starting = asyncio.Lock()
        self._channel: spawner.Channel | None = None
        self._resolver: Resolver | None = None
        self._carried: set[asyncio.Task[None]] = set()

    async def start(self, kind: spawner.CellKind, hosts: tuple[str, ...]) -> None:
        """Serve the proxy and the resolver in the network of a cell, once; again where it is a new one. OSError."""
        async with self._starting:
            await self._start(kind, hosts)

    async def _start(self, kind: spawner.CellKind, hosts: tuple[str, ...]) -> None:
        channel = spawner.cell(kind)
        if channel is self._channel:
            return
        await self._stop_serving()
        self.proxy = SandboxProxy((*hosts, *self.allowed))
        await self.proxy.serve(channel.new_socket(socket.AF_INET, socket.SOCK_STREAM, profile.PORT))
        with contextlib.suppress(OSError):  # a kernel that keeps low ports from us: then names simply fail
            listener = channel.new_socket(socket.AF_INET, socket.SOCK_DGRAM, PORT)
            self._resolver = Resolver(listener, self.names.add)
        self._channel = channel

    def allow(self, host: str) -> None:
        """The user lets the session's commands reach this host. Raises ValueError for what is none."""
        self.proxy.allow(host)
        self.allowed.append(host)

    def listeners(self) -> list[ListenerAddress]:
        """Where commands listen now; not what the engine itself serves there."""
        if self._channel is None:
            return []
        try:
            rows = self._channel.listeners()
        except OSError:  # the cell has ended, and with it all that listened
            return []
        found = {listener for row in rows if (listener := _listener(row)) and listener.port not in _OWN_PORTS}
        return sorted(found, key=lambda one: (one.port, one.host))

    def listens(self, port: int) -> bool:
        """Does a command of the session listen there?"""
        return any(one.port == port for one in self.listeners())

    async def connect(self, port: int) -> socket.socket:
        """A connection to what a command of the session listens on. Raises OSError."""
        wanted = [one for one in self.listeners() if one.port == port]
        if self._channel is None or not wanted:
            raise ConnectionRefusedError(f"No command of this session listens on port {port}.")
        hosts = dict.fromkeys((wanted[0].host, "127.0.0.1", "::1"))
        for last, host in enumerate(hosts, 1 - len(hosts)):
            made = self._channel.new_socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await asyncio.get_running_loop().sock_connect(made, (host, port))
            except BaseException as error:
                made.close()
                if last == 0 or not isinstance(error, OSError):
                    raise
            else:
                return made
        raise AssertionError

    async def forward(self, port: int) -> str:
        """Have the user reach a port of the session on 127.0.0.1 and ::1. Gives why not, or nothing."""
        if port in self.forwarded:
            return ""
        if len(self.forwarded) >= _MOST_FORWARDED:
            return f"{_MOST_FORWARDED} ports are forwarded already."
        taken: list[socket.socket] = []
        try:
            for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
                one = socket.socket(family, socket.SOCK_STREAM)
                taken.append(one)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    one.bind((host, port))
                    one.listen(64)
                    one.setblocking(False)
                except OSError:
                    if family == socket.AF_INET:
                        raise
                    taken.remove(one)  # a machine without IPv6
                    one.close()
        except OSError as error:
            for one in taken:
                one.close()
            return f"Port {port} is not free outside: {error.strerror or error}."
        servers = [await asyncio.start_server(self._carry(port), sock=one, start_serving=False) for one in taken]
        self._loop = asyncio.get_running_loop()
        self.forwarded[port] = _Both(servers)
        FORWARDED.add(port)
        for server in servers:
            await server.start_serving()
        return ""

    def forwards_by_itself(self, port: int) -> bool:
        """May a port be forwarded without being asked for? Not those of services that programs outside trust."""
        return port >= _LEAST_PORT and port not in KNOWN_SERVICES

    def stop_forwards(self) -> None:
        """Close the forwards of ports on which nothing listens any more."""
        ports = {one.port for one in self.listeners()} if self.forwarded else set()
        for port in [port for port in self.forwarded if port not in ports]:
            self._stop_forward(port)

    def command_ended(self) -> None:
        """A command has ended, on whatever thread that is noticed: with it may have ended what was forwarded."""
        if self.forwarded and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and with it every forward
                self._loop.call_soon_threadsafe(self.stop_forwards)

    def _stop_forward(self, port: int) -> None:
        self.forwarded.pop(port).close()
        FORWARDED.discard(port)

    def stop_commands(self) -> None:
        """End all that runs in this network. The next command gets a new one."""
        spawner.end_machine(self.name)

    async def close(self) -> None:
        for port in list(self.forwarded):
            self._stop_forward(port)
        for task in self._carried:
            task.cancel()
        await asyncio.gather(*self._carried, return_exceptions=True)
        await self._stop_serving()
        spawner.end_machine(self.name)

    async def _stop_serving(self) -> None:
        await self.proxy.close()
        if self._resolver is not None:
            self._resolver.close()
            self._resolver = None
        self._channel = None

    def _carry(self, port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._carry_to(port, reader, writer))
            self._carried.add(task)
            task.add_done_callback(self._carried.discard)

        return accept

    async def _carry_to(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(sock=await self.connect(port))
        except (OSError, TimeoutError):
            writer.close()
            return
        try:
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        except OSError:
            pass  # one of the two is gone
        finally:
            writer.close()
            far_writer.close()


class _Both:
    """The servers of one port, closed together."""

    def __init__(self, servers: list[asyncio.Server]) -> None:
        self._servers = servers

    def close(self) -> None:
        for server in self._servers:
            server.close()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(_CHUNK_BYTES):
        sink.write(data)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()


def _listener(row: bytes) -> ListenerAddress | None:
    """From the kernel's own form: an address in hexadecimal, each 4 bytes in this machine's order, and a port."""
    address, _, port = row.partition(b":")
    try:
        number = int(port, 16)
        raw = bytes.fromhex(address.decode())
    except ValueError:
        return None
    return ListenerAddress("::1" if raw == _LOOPBACK_6 else "127.0.0.1", number)
