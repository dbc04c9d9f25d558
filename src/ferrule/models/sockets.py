"""A connection as HTTP needs it: bytes in order, waited for no longer than is sensible, and secured.

asyncio's own streams and those of other packages cost several rounds of the event loop for every piece that is read or
written. The harness time of a turn is measured in fewer.
"""

import asyncio
import errno
import os
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from ferrule.support.hosts import is_forwarded

_HIGH_BYTES = 1 << 18
"""So much may wait to be read before the other side is asked to stop."""
_HEAD_START_SECONDS = 0.25
"""A machine with several addresses has so long for each before the next one is tried beside it."""
_NOT_NOW = float("inf")
_ALIVE_SECONDS = (30, 15)
"""After so much silence the other machine is asked whether it is there, and again after so much: routers on the way
forget a line that nobody uses, and then nobody says that it is gone."""
_ALIVE_TIMES = 4
_UNHEARD_SECONDS = 90
"""What the other machine has not confirmed for so long has not reached it. Linux only."""


class Broken(Exception):  # noqa: N818 - it is judged by whoever reads, and never leaves
    """The line does not stand any more, or what came on it is no HTTP."""


class Unreachable(Broken):
    """The line never stood."""

    def __init__(
        self,
        why: str,
        *,
        passing: bool = True,
        refused: bool = False,
        nameless: bool = False,
        has_advice: bool = False,
    ) -> None:
        super().__init__(why)
        self.passing = passing
        """May another try help?"""
        self.refused = refused
        """Is the machine there, and does nobody listen on it?"""
        self.nameless = nameless
        """Is there no machine of that name?"""
        self.has_advice = has_advice
        """Is it said already what to do?"""


class Silent(Broken):
    """Nothing came for too long."""


class Stream(asyncio.Protocol):
    """One connection. A side that says nothing for `quiet_seconds` has broken off."""

    def __init__(self, quiet_seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._quiet_seconds = quiet_seconds
        self._transport: asyncio.Transport | None = None
        self._waiting = bytearray()
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._until = _NOT_NOW
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False
        self._is_full = False
        self._is_paused = False
        self.has_heard = False
        """Has anything come since this was last taken back?"""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        _keep_alive(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        self.has_heard = True
        if len(self._waiting) > _HIGH_BYTES and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        _wake(self._reader)
        _wake(self._writer)

    def eof_received(self) -> None:
        self._is_over = True
        _wake(self._reader)
        _wake(self._writer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._error = exc
        _wake(self._reader)
        _wake(self._writer)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        _wake(self._writer)

    @property
    def is_fresh(self) -> bool:
        """Is it open, is all said, and has nobody spoken unasked? A host that does has closed it, or lost its way."""
        transport = self._transport
        if transport is None or transport.is_closing() or self._is_over:
            return False
        return not self._waiting and not transport.get_write_buffer_size()

    @property
    def has_waiting(self) -> bool:
        """Can something be read without waiting for it?"""
        return bool(self._waiting) or self._is_over

    def deadline(self) -> float:
        """When whoever should speak from now on has been silent for too long."""
        return self._loop.time() + self._quiet_seconds

    async def read(self, until: float | None = None) -> bytes:
        """What has come; nothing at the end. Raises Broken."""
        while not self._waiting:
            if self._error is not None:
                raise Broken(why(self._error))
            if self._is_over:
                return b""
            self._reader = self._loop.create_future()
            await self._within(self._reader, self.deadline() if until is None else until)
        data = bytes(self._waiting)
        self._waiting.clear()
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    async def write(self, pieces: Iterable[bytes]) -> None:
        """Sends them. A side that hangs up or answers meanwhile may have said why, so that is for the reader to see."""
        for piece in pieces:
            if self._transport is None or self._transport.is_closing():
                return
            self._transport.write(piece)
            while self._is_full and not self._is_over and not self._waiting:
                self._writer = self._loop.create_future()
                await self._within(self._writer, self.deadline())

    def close(self) -> None:
        """At once: what was not read is of no use to anybody, and the other side need not go on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()
        # The transport says so later; whoever waits need not.
        self._is_over = True
        _wake(self._reader)
        _wake(self._writer)

    async def secure(self, context: ssl.SSLContext, host: str, seconds: float) -> None:
        """From here on nobody on the way can read it, and the other side is who it says. Raises Unreachable."""
        assert self._transport is not None
        if self._waiting or self._is_over:
            # What came before would be taken for words of the other side, and anybody may have said it.
            self.close()
            raise Unreachable("it spoke, or hung up, before the connection was secured")
        try:
            secured = await self._loop.start_tls(
                self._transport, self, context, server_hostname=host, ssl_handshake_timeout=seconds
            )
        except (OSError, ssl.SSLError) as error:
            self.close()
            wrong = isinstance(error, ssl.SSLCertVerificationError) or _is_plain(error)
            raise Unreachable(why(error), passing=not wrong, has_advice=wrong) from None
        if secured is None:
            raise Unreachable("the connection was closed while it was being secured")
        self._transport = secured

    async def _within(self, future: "asyncio.Future[None]", until: float) -> None:
        # One timer for many waits: it looks again when it rings too early. This is done for every piece.
        self._until = until
        if self._timer is None or self._timer.when() > until:
            self._set(until)
        try:
            await future
        finally:
            self._until = _NOT_NOW

    def _set(self, until: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(until, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._until == _NOT_NOW:
            return
        if self._loop.time() < self._until:
            self._set(self._until)
            return
        for future in (self._reader, self._writer):
            if future is not None and not future.done():
                future.set_exception(Silent("nothing came for too long"))


async def connected(host: str, port: int, *, seconds: float, quiet_seconds: float) -> Stream:
    """A connection to a machine. Its name is looked up in a thread. Raises Unreachable."""
    if is_forwarded(host, port):
        raise Unreachable("a command of this session answers there, and no model", passing=False)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds):
            _, stream = await loop.create_connection(
                lambda: Stream(quiet_seconds), host, port, happy_eyeballs_delay=_HEAD_START_SECONDS
            )
    except TimeoutError:
        raise Unreachable("nobody answered in time") from None
    except OSError as error:
        said = why(error, host)
        refused = said == os.strerror(errno.ECONNREFUSED).lower()
        raise Unreachable(said, refused=refused, nameless=_is_nameless(error)) from None
    except (UnicodeError, OverflowError, ValueError):
        raise Unreachable("this is no name of a machine", passing=False) from None
    return stream


def _is_nameless(error: OSError) -> bool:
    from socket import EAI_NONAME, gaierror  # asyncio has it already

    return isinstance(error, gaierror) and error.errno == EAI_NONAME


def _keep_alive(connection: Any) -> None:
    import socket  # asyncio has it already

    idle, between = _ALIVE_SECONDS
    wanted = {
        "TCP_KEEPIDLE": idle,
        "TCP_KEEPALIVE": idle,
        "TCP_KEEPINTVL": between,
        "TCP_KEEPCNT": _ALIVE_TIMES,
        "TCP_USER_TIMEOUT": _UNHEARD_SECONDS * 1000,
    }
    # It is a help where the system has it, and no reason to fail where it has not.
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, number in wanted.items():
            if (option := getattr(socket, name, None)) is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, number)


def _wake(future: "asyncio.Future[None] | None") -> None:
    if future is not None and not future.done():
        future.set_result(None)


def _is_plain(error: Exception) -> bool:
    return isinstance(error, ssl.SSLError) and error.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST"}


def why(error: Exception, host: str = "") -> str:
    """What an error of the system says, in its own words and without what it is about."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate cannot be trusted ({error.verify_message}); if it is signed by an authority of your own, "
            "set SSL_CERT_FILE to the certificate of that"
        )
    if _is_plain(error):
        return "it does not speak HTTPS there; where it is to be asked without, its address begins with http://"
    if isinstance(error, ssl.SSLError):
        return (error.reason or "the connection could not be secured").lower().replace("_", " ")
    if not isinstance(error, OSError):
        return str(error) or type(error).__name__
    from socket import gaierror  # asyncio has it already

    if isinstance(error, gaierror):
        return f"the name {host} is not known ({(error.strerror or 'no address').lower()})"
    if error.errno:
        return os.strerror(error.errno).lower()
    import re  # only for a machine with several addresses, none of which answers

    found = dict.fromkeys(os.strerror(int(number)).lower() for number in re.findall(r"\[Errno (\d{1,5})\]", str(error)))
    return ", ".join(found) or str(error) or type(error).__name__
