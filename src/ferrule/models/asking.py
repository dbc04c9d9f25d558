"""HTTP on one connection: a question whose head was written before, and the answer as its parser takes it apart."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ferrule.models.sockets import Broken, Stream, Unreachable

Headers = tuple[tuple[bytes, bytes], ...]

_VERSIONS = (b"1.1", b"1.0")
_HEAD_BYTES = 1 << 16
_MOST_INFORMATION = 64
"""So many times a host may say that an answer is yet to come."""
_SMALL_BYTES = 1 << 16
"""What is shorter goes out together with what is beside it."""


class Begun(NamedTuple):
    """How an answer begins."""

    status: int
    headers: dict[str, str]


class Head:
    """How a question begins: checked and written once for all questions of its kind."""

    def __init__(self, method: str, target: bytes, headers: Headers) -> None:
        import h11  # the first turn pays for it

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


class Connection:
    """One connection, and HTTP on it: one question after the other."""

    def __init__(self, stream: Stream) -> None:
        import h11  # here already

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

    async def ask(self, head: Head, pieces: Sequence[bytes]) -> Begun:
        """Raises Broken."""
        import h11  # here already

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
                    raise Broken("it speaks another version of HTTP")
                pairs = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers)
                return Begun(event.status_code, dict(pairs))
            if type(event) is not h11.InformationalResponse or event.status_code == 101:
                break
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
        import h11  # here already

        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise Broken(f"what it says is no HTTP ({error})") from None

    async def _event(self, until: float | None = None, *, wait: bool = True) -> Any:
        import h11  # here already

        while (event := self._next()) is h11.NEED_DATA and (wait or self._stream.has_waiting):
            data = await self._stream.read(until)
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise Broken("it closed the connection without an answer")
            self._http.receive_data(data)
        return event

    def close(self) -> None:
        self._stream.close()
