"""The way out of a network namespace: what connects to a port inside is carried to the proxy's socket outside."""

import _socket
import contextlib
import os
import select
from typing import NoReturn

_CHUNK_BYTES = 1 << 16
_AT_ONCE = 256


def forward(listener: "_socket.socket", proxy: bytes) -> NoReturn:
    """Carry bytes both ways for as long as this process lives."""
    try:
        _Carrier(listener, proxy).carry()
    finally:
        os._exit(0)


class _End:
    """One side of a connection, what waits to be written to it, and its other side."""

    def __init__(self, socket: "_socket.socket") -> None:
        socket.setblocking(False)
        self.socket = socket
        self.waiting = b""
        self.reading = True
        self.closing = False
        self.other = self


class _Carrier:
    def __init__(self, listener: "_socket.socket", proxy: bytes) -> None:
        self._listener = listener
        self._proxy = proxy
        self._poll = select.poll()
        self._ends: dict[int, _End] = {}

    def carry(self) -> None:
        self._listener.setblocking(False)
        self._poll.register(self._listener.fileno(), select.POLLIN)
        while True:
            for number, event in self._poll.poll():
                if number == self._listener.fileno():
                    self._accept()
                elif number in self._ends:
                    self._turn(self._ends[number], event)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            number, _ = self._listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - the light module has no other
            inside = _socket.socket(fileno=number)
            outside = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            try:
                if len(self._ends) >= 2 * _AT_ONCE:
                    raise BlockingIOError
                outside.connect(self._proxy)
            except OSError:
                inside.close()
                outside.close()
                return
            one, two = _End(inside), _End(outside)
            one.other, two.other = two, one
            for end in (one, two):
                self._ends[end.socket.fileno()] = end
                self._watch(end)

    def _watch(self, end: _End) -> None:
        wanted = (select.POLLIN if end.reading and not end.other.waiting else 0) | (
            select.POLLOUT if end.waiting else 0
        )
        # A side that is not waited for would wake the loop without end once the peer has hung up.
        if wanted:
            self._poll.register(end.socket.fileno(), wanted)
        else:
            with contextlib.suppress(KeyError):
                self._poll.unregister(end.socket.fileno())

    def _turn(self, end: _End, event: int) -> None:
        try:
            if event & select.POLLOUT:
                end.waiting = end.waiting[end.socket.send(end.waiting) :]
            if event & ~select.POLLOUT and end.reading and not end.other.waiting:
                data = end.socket.recv(_CHUNK_BYTES)
                end.other.waiting = data
                end.reading = bool(data)
                end.other.closing = not data
            for side in (end, end.other):
                if side.closing and not side.waiting:
                    side.closing = False
                    side.socket.shutdown(_socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:
            self._drop(end)
            return
        if not end.reading and not end.other.reading and not end.waiting and not end.other.waiting:
            self._drop(end)
            return
        self._watch(end)
        self._watch(end.other)

    def _drop(self, end: _End) -> None:
        for side in (end, end.other):
            self._ends.pop(side.socket.fileno(), None)
            with contextlib.suppress(KeyError):
                self._poll.unregister(side.socket.fileno())
            side.socket.close()
