"""Connect to web hosts: proxies, name lookup and limits on parallel fetches.

A proxy is told the host and passes on data that it cannot read.

A name lookup can be slow if the name servers do not answer, and it cannot be stopped. On the event loop's own
threads a few of those would hold up every other name, all other work that needs a thread, and the end of the
program.

Only a few fetches run at once, fewer for one host, and equal requests share one fetch.
"""

import asyncio
import contextlib
import re
import socket
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from ferrule.sandbox.web_address import WebError
from ferrule.system.hosts import Bad, NetworkEndpoint, target
from ferrule.tools.web.content import apart

_HEAD_BYTES = 1 << 15


class Wire(Protocol):
    """A connection."""

    async def read(self, max_bytes: int) -> bytes: ...
    async def write(self, buffer: bytes) -> None: ...


class WebProxy(NamedTuple):
    """What stands between. Its name and its password are in no text that it makes of itself."""

    host: str
    port: int
    is_secured: bool
    credentials: bytes = b""

    def __str__(self) -> str:
        return f"the proxy {NetworkEndpoint(self.host, self.port)}"

    def __repr__(self) -> str:
        return str(self)

    async def tunnel(self, wire: Wire, where: NetworkEndpoint) -> None:
        """From here on what is written to the connection goes to that host. Raises WebError."""
        name = str(where).encode("ascii")
        head = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n" % (name, name)
        await wire.write(head + self.credentials + b"\r\n")
        heard = b""
        while b"\r\n\r\n" not in heard:
            piece = await wire.read(_HEAD_BYTES)
            heard += piece
            if not piece or len(heard) > _HEAD_BYTES:
                raise self._strange()
        found = re.match(rb"HTTP/1\.[01] ([0-9]{3})[^0-9]", heard)
        if found is None:
            raise self._strange()
        if not found[1].startswith(b"2"):
            raise WebError(
                f"The proxy {NetworkEndpoint(self.host, self.port)} (setting web.proxy) does not let {where} through: "
                f"it answers {int(found[1])}.",
                "unreachable",
            )
        if not heard.endswith(b"\r\n\r\n"):
            # Nobody was asked anything yet: what comes now would be taken for words of the site.
            raise self._strange()

    def _strange(self) -> WebError:
        return WebError(
            f"The proxy {NetworkEndpoint(self.host, self.port)} (setting web.proxy) does not answer like a proxy.",
            "unreachable",
        )


def proxy(url: str) -> WebProxy | None:
    """What a setting means; nothing where it is empty. Raises WebError."""
    if not url:
        return None
    try:
        parts = urlsplit(url)
        where = target(parts.netloc.rpartition("@")[2], port=443 if parts.scheme == "https" else 80)
    except (Bad, ValueError) as error:
        raise _unusable() from error
    if parts.scheme not in {"http", "https"} or parts.path not in {"", "/"} or parts.query:
        raise _unusable()
    return WebProxy(where.host, where.port, parts.scheme == "https", _credentials(parts.username, parts.password))


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and all that it came from; several at once where several addresses were tried."""
    waiting: list[BaseException] = [error]
    while waiting:
        one = waiting.pop(0)
        yield one
        waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        waiting += [one.__cause__] if one.__cause__ is not None else []


def explain_unreachable(error: BaseException) -> str:
    """Why no connection came about."""
    every = list(causes(error))
    if any(isinstance(one, socket.gaierror) for one in every):
        return "there is no such host"
    if any(isinstance(one, ConnectionRefusedError) for one in every):
        return "connection refused"
    return "nobody answers there"


def _unusable() -> WebError:
    return WebError("The setting web.proxy cannot be used; it is written as http://proxy.example:3128.", "bad-address")


def _credentials(name: str | None, password: str | None) -> bytes:
    if not name and not password:
        return b""

    words = f"{unquote(name or '')}:{unquote(password or '')}".encode()
    return b"Proxy-Authorization: Basic %b\r\n" % b64encode(words)


MOST = 32
"""Names at once, with those that nobody waits for any more."""
_places = threading.BoundedSemaphore(MOST)


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The addresses of a host. Raises OSError."""
    if not _places.acquire(blocking=False):
        raise OSError("too many names are being looked up")

    def work() -> Sequence[str]:
        try:
            return [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        finally:
            _places.release()

    try:
        return await apart(work, "ferrule-names")
    except RuntimeError as error:  # no thread can be started
        _places.release()
        raise OSError(str(error)) from error


T = TypeVar("T")

AT_ONCE = 8
PER_HOST = 4


class FetchSlots:
    """Places for fetches. Who gets none waits, and its time stands still."""

    def __init__(self, at_once: int = AT_ONCE, per_host: int = PER_HOST) -> None:
        self._all = asyncio.Semaphore(at_once)
        self._per_host = per_host
        self._hosts: dict[str, tuple[asyncio.Semaphore, set[object]]] = {}

    @contextlib.asynccontextmanager
    async def hold(self, host: str, limit: asyncio.Timeout) -> AsyncIterator[None]:
        # The host's place comes first: who waits for a slow host holds no place that another host could have.
        own, users = self._hosts.setdefault(host, (asyncio.Semaphore(self._per_host), set()))
        mark = object()
        users.add(mark)
        try:
            async with contextlib.AsyncExitStack() as stack:
                if own.locked() or self._all.locked():
                    await _without_time(limit, own, self._all)
                else:
                    await own.acquire()
                    await self._all.acquire()
                stack.callback(own.release)
                stack.callback(self._all.release)
                yield
        finally:
            users.discard(mark)
            if not users:
                self._hosts.pop(host, None)


async def _without_time(limit: asyncio.Timeout, *semaphores: asyncio.Semaphore) -> None:
    loop = asyncio.get_running_loop()
    when = limit.when()
    left = None if when is None else when - loop.time()
    limit.reschedule(None)
    taken: list[asyncio.Semaphore] = []
    try:
        for semaphore in semaphores:
            await semaphore.acquire()
            taken.append(semaphore)
    except BaseException:
        for semaphore in taken:
            semaphore.release()
        raise
    if left is not None:
        limit.reschedule(loop.time() + left)


class Sharing(Generic[T]):
    """One piece of work for all who want the same at the same time. It ends when nobody waits for it any more."""

    def __init__(self) -> None:
        self._running: dict[Hashable, tuple[asyncio.Task[T], set[object]]] = {}

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The outcome of `work`, which is begun only where none is under way for this key."""
        found = self._running.get(key)
        if found is None:
            task = asyncio.ensure_future(work())
            found = self._running[key] = (task, set())
            task.add_done_callback(lambda done: self._forget(key, done))
        task, waiting = found
        mark = object()
        waiting.add(mark)
        try:
            return await asyncio.shield(task)
        finally:
            waiting.discard(mark)
            if not waiting and not task.done():
                # Nobody joins what is being given up.
                self._forget(key, task)
                task.cancel()
                await asyncio.wait((task,))

    async def close(self) -> None:
        """End what is under way."""
        tasks = [task for task, _ in self._running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _forget(self, key: Hashable, task: "asyncio.Task[T]") -> None:
        found = self._running.get(key)
        if found is not None and found[0] is task:
            del self._running[key]
        if task.done() and not task.cancelled():
            task.exception()  # seen: where everybody has left, nobody else will ask for it
