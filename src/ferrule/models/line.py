"""The line to one host: connections that stay open from one turn to the next, and what comes back on them.

This is `httpx2` taken apart: its parser of HTTP (`h11`) and its choice of certificates, without the layers between that
a turn would wait for. Nothing here follows a redirection, keeps a cookie or unpacks a body.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferrule.models.asking import Begun, Connection, Head, Headers
from ferrule.models.sockets import Broken, Silent, Unreachable

if TYPE_CHECKING:
    from ferrule.models.route import Route

_FINISH_SECONDS = 5.0
_IDLE = 8
"""So many connections are kept open at most, unless the caller says more; subagents ask at the same time."""
_IDLE_SECONDS = 300.0
"""A connection that nobody asks over for so long is closed."""


class Incoming:
    """What came back: a status, headers, and the pieces of the body as they arrive."""

    def __init__(self, line: "Line", connection: Connection, begun: Begun) -> None:
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
        except Broken:
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


class Line:
    """The connections to one host."""

    def __init__(self, url: str, *, quiet_seconds: float, idle: int = _IDLE) -> None:
        self._base = url
        self._quiet_seconds = quiet_seconds
        self.most_idle = idle
        """So many connections are kept open while nobody asks over them."""
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._finishing: set[asyncio.Task[None]] = set()
        self._route: Route | None = None
        self._heads: dict[tuple[str, str, Headers], Head] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.is_closed = False
        self.has_stood = False
        """Was the host there once?"""

    async def send(self, method: str, path: str, headers: Headers, pieces: Sequence[bytes] = ()) -> Incoming:
        """Ask, and hear how the answer begins. Raises Broken."""
        self._check()
        if self._route is None:
            from ferrule.models.route import route  # the first turn pays for it

            self._route = route(self._base)
        head = self._heads.get((method, path, headers))
        if head is None:
            head = Head(method, self._route.target(path), (*headers, *self._route.headers))
            self._heads[method, path, headers] = head
        connection = await self._waiting()
        if connection is not None:
            try:
                return Incoming(self, connection, await connection.ask(head, pieces))
            except Silent:
                self.drop(connection)
                raise
            except Broken:
                self.drop(connection)
                # The host had closed it, as hosts do after a while: it has not even heard the question. Where it
                # has said anything, it has, and might be made to do the same twice.
                if connection.has_heard:
                    raise
            except BaseException:
                self.drop(connection)
                raise
        self._check()
        connection = Connection(await self._route.open(self._quiet_seconds))
        self.has_stood = True
        self._open.add(connection)
        try:
            self._check()
            return Incoming(self, connection, await connection.ask(head, pieces))
        except BaseException:
            self.drop(connection)
            raise

    def _check(self) -> None:
        if self.is_closed:
            raise Unreachable("the model was closed", passing=False)

    async def _waiting(self) -> Connection | None:
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

    def drop(self, connection: Connection) -> None:
        """Nothing more goes over it."""
        self._open.discard(connection)
        connection.close()

    def give_back(self, connection: Connection) -> None:
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

    def finish(self, connection: Connection) -> None:
        """What is left of an answer is read while others work, for a while."""
        task = asyncio.get_running_loop().create_task(self._finish(connection))
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    async def _finish(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(_FINISH_SECONDS):
                while await connection.piece() is not None:
                    pass
            self.give_back(connection)
        except (Broken, TimeoutError):
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
