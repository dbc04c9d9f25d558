"""The way to a host: straight or through the proxy that the environment names, and secured where its address is."""

import ssl
from typing import Any
from urllib.parse import unquote, urlsplit

from ferrule.core.errors import ConfigError
from ferrule.models.sockets import Broken, Stream, Unreachable, connected

CONNECT_SECONDS = 20.0
_PORTS = {"http": 80, "https": 443}
_LIMIT_BYTES = 1 << 16


class Route:
    """How connections to one host are opened. It is found out once."""

    def __init__(self, url: str, proxy: str) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or _PORTS[parts.scheme]
        self._base = parts.path
        self._context = _certificates() if parts.scheme == "https" else None
        self._proxy = urlsplit(proxy) if proxy else None
        self._origin = ""
        self.headers: list[tuple[bytes, bytes]] = []
        """What a proxy wants to know with every question."""
        if self._proxy is None:
            return
        if self._proxy.scheme not in _PORTS or not self._proxy.hostname:
            raise ConfigError(f"A proxy of the kind {self._proxy.scheme} cannot be used for models: use http or https.")
        if self._context is None:
            self._origin = f"{parts.scheme}://{parts.netloc}"
            self.headers = _credentials(self._proxy.username, self._proxy.password)

    def target(self, path: str) -> bytes:
        """What is asked for; a proxy wants to hear it whole."""
        return f"{self._origin}{self._base}{path}".encode("ascii", "replace")

    async def open(self, quiet_seconds: float) -> Stream:
        """A connection over which the host can be asked. Raises Broken."""
        way = self._proxy
        host, port = self._host, self._port
        if way is not None:
            host, port = way.hostname or "", way.port or _PORTS[way.scheme]
        stream = await connected(host, port, seconds=CONNECT_SECONDS, quiet_seconds=quiet_seconds)
        try:
            if way is not None and way.scheme == "https":
                await stream.secure(_certificates(), host, CONNECT_SECONDS)
            if self._context is not None:
                if way is not None:
                    await self._tunnel(stream)
                await stream.secure(self._context, self._host, CONNECT_SECONDS)
        except BaseException:
            stream.close()
            raise
        return stream

    async def _tunnel(self, stream: Stream) -> None:
        """The proxy passes on what it cannot read."""
        import h11  # only who has a proxy pays for it here

        assert self._proxy is not None
        name = f"[{self._host}]" if ":" in self._host else self._host
        target = f"{name}:{self._port}".encode()
        headers = [(b"host", target), *_credentials(self._proxy.username, self._proxy.password)]
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LIMIT_BYTES)
        head = http.send(h11.Request(method="CONNECT", target=target, headers=headers))
        http.send(h11.EndOfMessage())
        await stream.write(head or b"")
        try:
            while (event := http.next_event()) is h11.NEED_DATA or isinstance(event, h11.InformationalResponse):
                if event is h11.NEED_DATA:
                    http.receive_data(await stream.read())
        except h11.RemoteProtocolError as error:
            raise Broken(f"what the proxy says is no HTTP ({error})") from None
        if not isinstance(event, h11.Response) or not 200 <= event.status_code < 300:
            status = getattr(event, "status_code", 0)
            raise Unreachable(f"the proxy does not let it through (HTTP {status})", passing=status >= 500)


def route(url: str) -> Route:
    """The way to an address, as the environment has it now. This machine itself is never reached through a proxy."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return Route(url, "")
    from urllib.request import getproxies, proxy_bypass  # only who asks another machine pays for it

    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(host):
        return Route(url, "")
    return Route(url, proxy if "://" in proxy else f"http://{proxy}")


def _certificates() -> ssl.SSLContext:
    """The same that `httpx2` trusts: those of the environment, else of the system."""
    import httpcore2  # only who has a secured line pays for it

    context = httpcore2.default_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _credentials(name: str | None, password: str | None) -> list[tuple[bytes, bytes]]:
    if not name:
        return []
    from base64 import b64encode  # only who has a proxy pays for it

    words: Any = f"{unquote(name)}:{unquote(password or '')}"
    return [(b"proxy-authorization", b"Basic " + b64encode(words.encode()))]
