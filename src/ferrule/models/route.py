"""The way to a host: straight or through the proxy that the environment names, and secured where its address is."""

import asyncio
import ssl
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from ferrule.models.errors import PROXY_ADVICE, cleaned
from ferrule.models.sockets import Stream, Unreachable, connected

CONNECT_SECONDS = 20.0
_PORTS = {"http": 80, "https": 443}
_LIMIT_BYTES = 1 << 16
_SET = "set HTTPS_PROXY (or HTTP_PROXY, for http) to http://HOST:PORT"


class Proxy(NamedTuple):
    """What stands between. Its name and its password are in no text that it makes of itself."""

    host: str
    port: int
    is_secured: bool
    credentials: tuple[tuple[bytes, bytes], ...]

    def __str__(self) -> str:
        return f"the proxy {_bracketed(self.host)}:{self.port}"

    def __repr__(self) -> str:
        return str(self)


class Route:
    """How connections to one host are opened. It is found out once."""

    def __init__(self, url: str, proxy: Proxy | None = None) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = _port(parts)
        self._base = parts.path
        self._context = _certificates() if parts.scheme == "https" else None
        self._proxy = proxy
        is_plain = proxy is not None and self._context is None
        self._origin = f"{parts.scheme}://{parts.netloc}" if is_plain else ""
        self.headers = proxy.credentials if proxy is not None and is_plain else ()
        """What a proxy wants to know with every question."""

    def target(self, path: str) -> bytes:
        """What is asked for; a proxy wants to hear it whole."""
        return f"{self._origin}{self._base}{path}".encode("ascii", "replace")

    async def open(self, quiet_seconds: float) -> Stream:
        """A connection over which the host can be asked. Raises Broken."""
        way = self._proxy
        if way is None:
            stream = await connected(self._host, self._port, seconds=CONNECT_SECONDS, quiet_seconds=quiet_seconds)
        else:
            stream = await self._through(way, quiet_seconds)
        if self._context is None:
            return stream
        try:
            await stream.secure(self._context, self._host, CONNECT_SECONDS)
        except BaseException:
            stream.close()
            raise
        return stream

    async def _through(self, way: Proxy, quiet_seconds: float) -> Stream:
        """The same by way of a proxy. Raises Unreachable, which says where the proxy was set."""
        try:
            return await self._passed_on(way, quiet_seconds)
        except Unreachable as error:
            if error.has_advice:
                raise
            variable = "HTTP_PROXY" if self._context is None else "HTTPS_PROXY"
            advice = f"{error}; look at {variable} and NO_PROXY"
            raise Unreachable(advice, passing=error.passing, has_advice=True) from None

    async def _passed_on(self, way: Proxy, quiet_seconds: float) -> Stream:
        """A connection that the proxy passes on, or takes questions over for a host that is not secured."""
        try:
            stream = await connected(way.host, way.port, seconds=CONNECT_SECONDS, quiet_seconds=quiet_seconds)
        except Unreachable as error:
            passing = error.passing and not error.nameless
            raise Unreachable(f"{way} cannot be reached: {error}", passing=passing) from None
        try:
            if way.is_secured:
                try:
                    await stream.secure(_certificates(), way.host, CONNECT_SECONDS)
                except Unreachable as error:
                    advised = error.has_advice
                    raise Unreachable(
                        f"{way} cannot be used: {error}", passing=error.passing, has_advice=advised
                    ) from None
            if self._context is not None:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await self._tunnel(stream, way)
        except TimeoutError:
            stream.close()
            raise Unreachable(f"{way} did not answer in time") from None
        except BaseException:
            stream.close()
            raise
        return stream

    async def _tunnel(self, stream: Stream, way: Proxy) -> None:
        """The proxy passes on what it cannot read."""
        import h11  # only who has a proxy pays for it here

        target = f"{_bracketed(self._host)}:{self._port}".encode()
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LIMIT_BYTES)
        head = http.send(h11.Request(method="CONNECT", target=target, headers=[(b"host", target), *way.credentials]))
        http.send(h11.EndOfMessage())
        await stream.write([head or b""])
        try:
            while (event := http.next_event()) is h11.NEED_DATA or isinstance(event, h11.InformationalResponse):
                if event is h11.NEED_DATA:
                    http.receive_data(await stream.read())
        except h11.RemoteProtocolError as error:
            raise Unreachable(f"what {way} says is no HTTP ({error})") from None
        if not isinstance(event, h11.Response):
            raise Unreachable(f"{way} hung up")
        status = event.status_code
        if status == 407:
            raise Unreachable(f"{way} {PROXY_ADVICE} (HTTP 407)", passing=False, has_advice=True)
        if not 200 <= status < 300:
            raise Unreachable(f"{way} does not let it through (HTTP {status})", passing=status >= 500 or status == 429)
        if http.trailing_data[0]:
            raise Unreachable(f"{way} said more than it was asked", passing=False)


def route(url: str) -> Route:
    """The way to an address, as the environment has it now. This machine itself is never reached through a proxy.

    Raises: Unreachable where a proxy is set that cannot be used.
    """
    try:
        parts = urlsplit(url)
        port = _port(parts)
    except ValueError:
        raise Unreachable("its address cannot be read", passing=False) from None
    host = parts.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return Route(url)
    from urllib.request import getproxies  # only who asks another machine pays for it

    proxies = getproxies()
    proxy = (proxies.get(parts.scheme) or proxies.get("all") or "").strip()
    if not proxy or _is_excepted(host, port, proxies.get("no", "")):
        return Route(url)
    return Route(url, _proxy(proxy if "://" in proxy else f"http://{proxy}"))


def _proxy(url: str) -> Proxy:
    # What is wrong is said without the address: it may hold a password.
    try:
        parts = urlsplit(url)
        port = _port(parts)
    except ValueError:
        raise Unreachable(f"the address of the proxy cannot be read: {_SET}", passing=False, has_advice=True) from None
    if parts.scheme not in _PORTS:
        kind = cleaned(parts.scheme)[:20] or "unknown"
        message = f"a proxy of the kind {kind} cannot be used for models: set HTTPS_PROXY to one of http or https"
        raise Unreachable(message, passing=False, has_advice=True)
    if not parts.hostname:
        raise Unreachable(f"the address of the proxy names no machine: {_SET}", passing=False, has_advice=True)
    return Proxy(parts.hostname, port, parts.scheme == "https", _credentials(parts.username, parts.password))


def _is_excepted(host: str, port: int, listed: str) -> bool:
    """Does NO_PROXY, or what the system has instead of it, name this machine? Networks may be named too."""
    from urllib.request import proxy_bypass  # as above

    names = [name.strip().removeprefix("*.").lower() for name in listed.split(",")]
    return "*" in names or proxy_bypass(host) or any(_is_named(host, port, name) for name in names if name)


def _is_named(host: str, port: int, name: str) -> bool:
    machine, _, number = name.rpartition(":")
    # The last part of an address of the sixth version is no port, unless the rest stands in brackets.
    if machine and number.isdigit() and (":" not in machine or machine.endswith("]")):
        if int(number) != port:
            return False
        name = machine
    name = name.strip("[]").lstrip(".")
    return host == name or (bool(name) and host.endswith(f".{name}")) or _is_within(host, name)


def _is_within(host: str, network: str) -> bool:
    import ipaddress  # only who has a proxy, and machines that are asked without it, pays for it

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS.get(parts.scheme, 0)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _certificates() -> ssl.SSLContext:
    """The same that `httpx2` trusts: those of the environment, else of the system."""
    import httpcore2  # only who has a secured line pays for it

    try:
        context = httpcore2.default_ssl_context()
    except OSError as error:  # that of ssl is one too
        reason = "there are none in it" if isinstance(error, ssl.SSLError) else error.strerror
        advice = f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR name cannot be read ({reason}): set it right"
        raise Unreachable(advice, passing=False, has_advice=True) from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def _credentials(name: str | None, password: str | None) -> tuple[tuple[bytes, bytes], ...]:
    if not name and not password:
        return ()
    from base64 import b64encode  # only who has a proxy pays for it

    words = f"{unquote(name or '')}:{unquote(password or '')}"
    return ((b"proxy-authorization", b"Basic " + b64encode(words.encode())),)
