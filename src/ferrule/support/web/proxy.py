"""A proxy that the user has set: it is told a host and passes on what it cannot read."""

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from ferrule.support.hosts import Bad, Target, target
from ferrule.support.web.errors import WebError

_HEAD_BYTES = 1 << 15


class Wire(Protocol):
    """A connection."""

    async def read(self, max_bytes: int) -> bytes: ...
    async def write(self, buffer: bytes) -> None: ...


class Proxy(NamedTuple):
    """What stands between. Its name and its password are in no text that it makes of itself."""

    host: str
    port: int
    is_secured: bool
    credentials: bytes = b""

    def __str__(self) -> str:
        return f"the proxy {Target(self.host, self.port)}"

    def __repr__(self) -> str:
        return str(self)

    async def tunnel(self, wire: Wire, where: Target) -> None:
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
                f"The proxy {Target(self.host, self.port)} (setting web.proxy) does not let {where} through: "
                f"it answers {int(found[1])}.",
                "unreachable",
            )
        if not heard.endswith(b"\r\n\r\n"):
            # Nobody was asked anything yet: what comes now would be taken for words of the site.
            raise self._strange()

    def _strange(self) -> WebError:
        return WebError(
            f"The proxy {Target(self.host, self.port)} (setting web.proxy) does not answer like a proxy.", "unreachable"
        )


def proxy(url: str) -> Proxy | None:
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
    return Proxy(where.host, where.port, parts.scheme == "https", _credentials(parts.username, parts.password))


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and all that it came from; several at once where several addresses were tried."""
    waiting: list[BaseException] = [error]
    while waiting:
        one = waiting.pop(0)
        yield one
        waiting += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        waiting += [one.__cause__] if one.__cause__ is not None else []


def unreached(error: BaseException) -> str:
    """Why no connection came about."""
    from socket import gaierror  # whoever has a proxy that is not there pays for it

    every = list(causes(error))
    if any(isinstance(one, gaierror) for one in every):
        return "there is no such host"
    if any(isinstance(one, ConnectionRefusedError) for one in every):
        return "connection refused"
    return "nobody answers there"


def _unusable() -> WebError:
    return WebError("The setting web.proxy cannot be used; it is written as http://proxy.example:3128.", "bad-address")


def _credentials(name: str | None, password: str | None) -> bytes:
    if not name and not password:
        return b""
    from base64 import b64encode  # only who has a proxy with a password pays for it

    words = f"{unquote(name or '')}:{unquote(password or '')}".encode()
    return b"Proxy-Authorization: Basic %b\r\n" % b64encode(words)
