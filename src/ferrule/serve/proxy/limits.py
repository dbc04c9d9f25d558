"""How much each host is asked: places, a queue, rates, and a rest for models that fail."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from ferrule.proxy_settings import Proxy
from ferrule.serve.proxy.errors import ProxyError

_MINUTE = 60.0


class HostLimits:
    """The requests that one host is working on, and those that wait for it."""

    def __init__(self, host: str, settings: Proxy, clock: Callable[[], float]) -> None:
        self._host = host
        self._settings = settings
        self._clock = clock
        self._free = settings.parallel
        self._queue: deque[asyncio.Future[None]] = deque()
        self._sent: deque[float] = deque()
        """When requests were sent during the last minute."""
        self._tokens: deque[tuple[float, int]] = deque()

    @property
    def busy(self) -> int:
        return self._settings.parallel - self._free

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold one of the host's places. Raises ProxyError if none gets free in time."""
        deadline = self._clock() + self._settings.queue_seconds
        await self._take()
        try:
            await self._rate(deadline)
            yield
        finally:
            self._give()

    def repeat(self) -> None:
        """Count a repetition, which is a request of its own to the host."""
        if self._settings.requests_a_minute is not None:
            self._sent.append(self._clock())

    def count(self, tokens: int) -> None:
        """Count tokens that were sent or received."""
        if self._settings.tokens_a_minute is not None:
            self._tokens.append((self._clock(), tokens))

    async def _take(self) -> None:
        if self._free:
            self._free -= 1
            return
        if len(self._queue) >= self._settings.queue:
            raise self._refusal(f"{len(self._queue)} requests wait for {self._host} already")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout(self._settings.queue_seconds):
                await turn
        except TimeoutError:
            self._leave(turn)
            seconds = self._settings.queue_seconds
            raise self._refusal(f"{self._host} had no free place for {seconds:g} seconds") from None
        except BaseException:
            self._leave(turn)
            raise

    def _leave(self, turn: "asyncio.Future[None]") -> None:
        if turn in self._queue:
            self._queue.remove(turn)
        elif turn.done() and not turn.cancelled():
            self._give()  # the place came at the same moment

    def _give(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def _rate(self, deadline: float) -> None:
        """Wait until the rates allow one more request."""
        while (seconds := self._wait()) > 0:
            if self._clock() + seconds > deadline:
                raise self._refusal(f"The rate that is set for {self._host} is used up", seconds)
            await asyncio.sleep(seconds)
        self.repeat()

    def _wait(self) -> float:
        """Seconds until the oldest of too many requests or tokens is a minute old; 0 if there are not too many."""
        now, settings = self._clock(), self._settings
        while self._sent and self._sent[0] <= now - _MINUTE:
            self._sent.popleft()
        while self._tokens and self._tokens[0][0] <= now - _MINUTE:
            self._tokens.popleft()
        most, tokens = settings.requests_a_minute, settings.tokens_a_minute
        waits = [0.0]
        if most is not None and len(self._sent) >= most:
            waits.append(self._sent[0] + _MINUTE - now)
        if tokens is not None and sum(count for _, count in self._tokens) >= tokens:
            waits.append(self._tokens[0][0] + _MINUTE - now)
        return max(waits)

    def _refusal(self, why: str, seconds: float = 1.0) -> ProxyError:
        return ProxyError("limit", f"{why}. Try again later, or raise the limits under [proxy].", seconds=seconds)


class Breaker:
    """Keeps a model from being asked for a while after it has failed several times in a row.

    Every request that begins gets a ticket, and comes back with it: one that began before the model was left alone, and
    ends while another one is finding out whether it is back, decides nothing.
    """

    def __init__(self, settings: Proxy, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._until = 0.0
        self._tickets = 0
        self._trial = 0
        """The ticket of the request that finds out whether the model is back; 0 if none does."""

    @property
    def seconds(self) -> float:
        """How long the model rests from now; 0 if it may be asked."""
        return max(0.0, self._until - self._clock())

    @property
    def is_open(self) -> bool:
        """Must the model be left alone? After its rest one request at a time finds out whether it is back."""
        return self.seconds > 0 or self._trial > 0

    def begin(self) -> int:
        """A request begins. Returns its ticket."""
        self._tickets += 1
        if self._has_failed:
            self._trial = self._tickets
        return self._tickets

    def succeed(self, ticket: int) -> None:  # noqa: ARG002 - whichever request it was, the model answers
        self._failures, self._until, self._trial = 0, 0.0, 0

    def fail(self, ticket: int) -> None:
        if self._has_failed and ticket != self._trial:
            return  # it was asked before the others failed, and tells nothing new
        self._failures += 1
        self.leave(ticket)
        if self._has_failed:
            self._until = self._clock() + self._settings.rest_seconds

    def leave(self, ticket: int) -> None:
        """The request ended without telling anything of the model."""
        if ticket == self._trial:
            self._trial = 0

    @property
    def _has_failed(self) -> bool:
        return self._failures >= self._settings.failures
