"""A server of pages on this machine, an engine that may read them, and a second name for the same server."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address
from typing import Any, NamedTuple, Self

import msgspec

from ferrule import Engine, Settings
from ferrule.sandbox.web_address import Way
from ferrule.settings import WebSettings
from ferrule.tools.web.client import Allowances, Web
from ferrule.tools.web.content import Converter
from ferrule.tools.web.transport import PageTransport

WAIT_SECONDS = 60
_HERE, _PUBLIC = "127.0.0.1", "93.184.215.14"
NAMES = ("one.example", "www.one.example", "two.example", "three.example")


class Answered(NamedTuple):
    body: bytes = b""
    kind: str = "text/html"
    status: int = 200
    to: str = ""


Site = dict[str, "Answered | Callable[[], Answered]"]


def page(text: str, kind: str = "text/html; charset=utf-8", status: int = 200) -> Answered:
    return Answered(text.encode(), kind, status)


def moved(to: str, status: int = 302) -> Answered:
    return Answered(status=status, to=to)


class Pages:
    """Serves what `site` has by host and path, as `one.example/a`, or by path alone."""

    def __init__(self) -> None:
        self.site: Site = {}
        self.asked: list[str] = []
        self.port = 0
        self.public: tuple[str, ...] = ()
        """Names that are looked up as a public site; the others are hosts that the user has named as their own."""

    def at(self, path: str, host: str = NAMES[0]) -> str:
        return f"http://{host}:{self.port}{path}"

    def web(self, **allowed: Any) -> Web:
        hosts = tuple(f"{name}:{self.port}" for name in NAMES if name not in self.public)

        async def names(host: str, port: int) -> list[str]:
            if host.startswith("nowhere."):
                raise OSError("no such name")
            return [_PUBLIC] if host in self.public else [_HERE]

        def line(way: Way) -> PageTransport:
            return PageTransport(
                way._replace(addresses=(ip_address(_HERE),)), tls=ssl.create_default_context, proxy=None
            )

        return Web(Allowances(private_hosts=hosts, **allowed), resolver=names, transport=line)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            path = head.split(" ", 2)[1]
            host = next(line for line in head.split("\r\n") if line.lower().startswith("host:"))[5:].strip()
            where = host.partition(":")[0] + path
            self.asked.append(where)
            found = self.site.get(where) or self.site.get(path) or page("Nothing is here.", "text/plain", 404)
            answer = found() if callable(found) else found
            lines = [f"HTTP/1.1 {answer.status} x", f"Content-Length: {len(answer.body)}", "Connection: close"]
            lines += [f"Content-Type: {answer.kind}"] if answer.kind else []
            lines += [f"Location: {answer.to}"] if answer.to else []
            writer.write("\r\n".join([*lines, "", ""]).encode() + answer.body)
            await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def opened(
    folder: Any, site: Callable[[Pages], Site], *, dialect: str = "amp", settings: Settings | None = None, **more: Any
) -> AsyncIterator[tuple[Engine, Pages]]:
    """An engine on an empty workspace that reaches the site, with somebody who says yes."""
    async with asyncio.timeout(WAIT_SECONDS), Pages() as pages:
        pages.site = site(pages)
        given = {"ask": lambda question: question.kind == "call", **more}
        async with Engine(folder, dialect=dialect, settings=settings or Settings(), **given) as engine:
            arm(engine, pages)
            yield engine, pages


def arm(engine: Engine, pages: Pages) -> None:
    """Have the engine reach the pages."""
    engine.give("Web", pages.web)
    engine.give("Converter", Converter)


def small(**models: Any) -> Settings:
    """Settings with a small model."""
    settings = Settings(web=WebSettings())
    return msgspec.structs.replace(
        settings, models=msgspec.structs.replace(settings.models, **(models or {"small": "scripted:small"}))
    )
