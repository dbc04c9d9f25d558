"""The two ends that the `mcp` package reads from and writes to, as its transports have them."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

    from ferrule.sources.mcp.sieve import Sieve

_FULL_MESSAGES = 256

SENT: ContextVar[list[Any] | None] = ContextVar("ferrule mcp requests", default=None)
"""The ids of the messages that a call has given to the package so far: it numbers them by itself."""


class _Entered:
    """A stream is its own context, and leaving it closes it."""

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        raise NotImplementedError


class Incoming(_Entered):
    """Messages of a process, in their order."""

    def __init__(self, full: Callable[[], None], drained: Callable[[], None]) -> None:
        """`full` is called when too many wait, and `drained` when all of them were taken."""
        self._full = full
        self._drained = drained
        self._messages: deque[SessionMessage] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False

    def put(self, message: "SessionMessage") -> None:
        if not self._ended:
            self._messages.append(message)
            if len(self._messages) > _FULL_MESSAGES:
                self._full()
            self._wake()

    def end(self) -> None:
        """Nothing more comes; what is there is still given out."""
        self._ended = True
        self._wake()

    async def receive(self) -> "SessionMessage":
        while not self._messages:
            if self._ended:
                import anyio  # came with the package

                raise anyio.EndOfStream
            self._drained()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._messages.popleft()

    def __aiter__(self) -> "Incoming":
        return self

    async def __anext__(self) -> "SessionMessage":
        import anyio  # as above

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._messages.clear()
        self.end()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Outgoing(_Entered):
    """Where messages for a process go. They are written one after the other, and none by halves."""

    def __init__(
        self, write: "Callable[[SessionMessage], None]", room: Callable[[], "asyncio.Future[None] | None"]
    ) -> None:
        """`room` is None where there is some, or what to wait for before it is asked again."""
        self._write = write
        self._room = room

    async def send(self, item: "SessionMessage", /) -> None:
        while (waiting := self._room()) is not None:
            await asyncio.wait([waiting])
        self._write(item)

    async def aclose(self) -> None:
        """The process is closed as a whole, by whoever has started it."""


class SiftedIncoming(_Entered):
    """A reading end of the package's own, seen through a sieve."""

    def __init__(self, inner: Any, sieve: "Sieve", ended: Callable[[], None]) -> None:
        """`ended` is called when nothing more can come."""
        self._inner = inner
        self._sieve = sieve
        self._ended = ended

    @property
    def last_context(self) -> Any:
        """The package carries the sender's variables along by this name."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        while True:
            item = await self._inner.receive()
            if isinstance(item, Exception) or self._sieve.let_in(item.message):
                return item

    def __aiter__(self) -> "SiftedIncoming":
        return self

    async def __anext__(self) -> Any:
        while True:
            try:
                item = await self._inner.__anext__()
            except StopAsyncIteration:
                self._ended()
                raise
            if isinstance(item, Exception) or self._sieve.let_in(item.message):
                return item

    async def aclose(self) -> None:
        await self._inner.aclose()


class SiftedOutgoing(_Entered):
    """A writing end of the package's own, seen through a sieve."""

    def __init__(self, inner: Any, sieve: "Sieve") -> None:
        self._inner = inner
        self._sieve = sieve

    async def send(self, item: "SessionMessage", /) -> None:
        self._sieve.let_out(item.message)
        if (ids := SENT.get()) is not None:
            ids.append(getattr(item.message, "id", None))
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()
