"""The line to one host: connections that stay open from one turn to the next, and what comes back on them.

This is `httpx2` taken apart: its parser of HTTP (`h11`) and its choice of certificates, without the layers between that
a turn would wait for. Nothing here follows a redirection, keeps a cookie or unpacks a body.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrule.models.sockets import Broken, Silent, Stream, Unreachable

if TYPE_CHECKING:
    from ferrule.models.route import Route

Headers = Sequence[tuple[bytes, bytes]]

_FINISH_SECONDS = 5.0
_IDLE = 8
"""So many connections are kept open at most; subagents ask at the same time."""
_HEAD_BYTES = 1 << 16


class Begun(NamedTuple):
    """How an answer begins."""

    status: int
    headers: dict[str, str]


class Connection:
    """One connection, and HTTP on it: one question after the other."""

    def __init__(self, stream: Stream) -> None:
        import h11  # the first turn pays for it

        self._stream = stream
        self._http: Any = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        self.is_done = True
        """Was the last answer read to its end?"""

    @property
    def is_free(self) -> bool:
        """Can the next question go over it?"""
        return self.is_done and self._stream.is_fresh

    async def ask(self, method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> Begun:
        """Raises Broken."""
        import h11  # here already

        self.is_done = False
        http = self._http
        try:
            head = http.send(h11.Request(method=method, target=target, headers=headers))
            data = head + http.send(h11.Data(data=body)) if body else head
            http.send(h11.EndOfMessage())
        except h11.LocalProtocolError:
            # What is wrong with them is not said: they hold a key.
            raise Unreachable("its address or its headers cannot be used", passing=False) from None
        await self._stream.write(data)
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                pairs = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers)
                return Begun(event.status_code, dict(pairs))
            if not isinstance(event, h11.InformationalResponse):
                raise Broken("it said something that is no answer")

    async def piece(self, *, wait: bool = True) -> bytes | None:
        """The next piece of the body, None at its end; without waiting, None also where it is not here yet.

        Raises: Broken.
        """
        import h11  # here already

        if self.is_done:
            return None
        event = await self._event(wait=wait)
        if event is h11.NEED_DATA:
            return None
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self.close()
        self.is_done = True
        return None

    def _next(self) -> Any:
        import h11  # here already

        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise Broken(f"what it says is no HTTP ({error})") from None

    async def _event(self, *, wait: bool = True) -> Any:
        import h11  # here already

        while (event := self._next()) is h11.NEED_DATA and (wait or self._stream.has_waiting):
            data = await self._stream.read()
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise Broken("it closed the connection without an answer")
            self._http.receive_data(data)
        return event

    def close(self) -> None:
        self._stream.close()


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
            self._connection.close()

    def _leave(self) -> None:
        if not self._is_left:
            self._is_left = True
            self._line.give_back(self._connection)


class Line:
    """The connections to one host."""

    def __init__(self, url: str, *, quiet_seconds: float) -> None:
        self._base = url
        self._quiet_seconds = quiet_seconds
        self._idle: list[Connection] = []
        self._finishing: set[asyncio.Task[None]] = set()
        self._route: Route | None = None

    async def send(self, method: str, path: str, headers: Headers, body: bytes = b"") -> Incoming:
        """Ask, and hear how the answer begins. Raises Broken."""
        if self._route is None:
            from ferrule.models.route import route  # the first turn pays for it

            self._route = route(self._base)
        target = self._route.target(path)
        given = [*headers, *self._route.headers]
        if body:
            given.append((b"content-length", b"%d" % len(body)))
        connection = await self._waiting()
        if connection is not None:
            try:
                return Incoming(self, connection, await connection.ask(method, target, given, body))
            except Silent:
                connection.close()
                raise
            except Broken:
                # The host had closed it, as hosts do after a while. A new one tells whether that was all.
                connection.close()
            except BaseException:
                connection.close()
                raise
        connection = Connection(await self._route.open(self._quiet_seconds))
        try:
            return Incoming(self, connection, await connection.ask(method, target, given, body))
        except BaseException:
            connection.close()
            raise

    async def _waiting(self) -> Connection | None:
        """A connection that is open and free, if there is one."""
        if not self._idle and self._finishing:
            # What is missing of the last body is mostly here already and only waits for its turn.
            await asyncio.sleep(0)
        while self._idle:
            connection = self._idle.pop()
            if connection.is_free:
                return connection
            connection.close()
        return None

    def give_back(self, connection: Connection) -> None:
        """It is free again, unless it is closed or there are enough."""
        if connection.is_free and len(self._idle) < _IDLE:
            self._idle.append(connection)
        else:
            connection.close()

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
            connection.close()
        except BaseException:
            connection.close()
            raise

    async def close(self) -> None:
        """Ends all connections."""
        tasks = list(self._finishing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._idle:
            self._idle.pop().close()
