"""The way of the library ddgs to its engines, played on loopback: a proxy behind which every engine answers."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from html import escape


class Engines:
    """What every engine says: host → status and page. Others say 404."""

    def __init__(self) -> None:
        self.url = ""
        self.pages: dict[str, tuple[int, str]] = {}
        self.asked: list[tuple[str, str]] = []
        """Host, and the line that it was asked with."""
        self.reached = asyncio.Event()
        """Somebody has connected."""
        self.stall: asyncio.Event | None = None
        """Nothing is said before this."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._answer(reader, writer, tls)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: ssl.SSLContext) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, authority, _ = head.split(" ", 2)
        assert method == "CONNECT"
        host = authority.partition(":")[0]
        self.reached.set()
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await writer.drain()
        if self.stall is not None:
            self.asked.append((host, ""))
            await self.stall.wait()
        await writer.start_tls(tls)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.asked.append((host, head.partition("\r\n")[0]))
        status, page = self.pages.get(host, (404, "<html><body>Nobody is here.</body></html>"))
        body = page.encode()
        kind = "Content-Type: text/html; charset=utf-8\r\nConnection: close\r\n"
        writer.write(f"HTTP/1.1 {status} X\r\n{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    async def close(self) -> None:
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def engines(tls: ssl.SSLContext) -> AsyncIterator[Engines]:
    played = Engines()
    listening = await asyncio.start_server(lambda r, w: played.serve(r, w, tls), "127.0.0.1", 0)
    played.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield played
    finally:
        listening.close()
        await played.close()


def mojeek(*rows: tuple[str, str, str]) -> str:
    """A page of results as that engine lays it out."""
    items = "".join(
        f'<li class="r{number}"><a class="ob" href="{escape(url)}"><p class="i">{escape(url)}</p></a>'
        f'<h2><a class="title" title="{escape(url)}" href="{escape(url)}">{escape(title)}</a></h2>'
        f'<p class="s">{snippet}</p></li>'
        for number, (title, url, snippet) in enumerate(rows, 1)
    )
    return f'<html><body><div class="results"><ul class="results-standard">{items}</ul></div></body></html>'


def duckduckgo(*rows: tuple[str, str, str]) -> str:
    """The same of another one."""
    items = "".join(
        f'<div class="links_main links_deep result__body"><h2 class="result__title">'
        f'<a class="result__a" href="{escape(url)}">{escape(title)}</a></h2>'
        f'<a class="result__snippet" href="{escape(url)}">{snippet}</a></div>'
        for title, url, snippet in rows
    )
    return f'<html><body><div class="serp__results"><div id="links" class="results">{items}</div></div></body></html>'
