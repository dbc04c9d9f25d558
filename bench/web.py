"""The web: a page to Markdown, a page that is too large, and many pages at once, all from a server on this machine."""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from bench.measure import Row, peak_mb
from ferrule import Engine, Settings
from ferrule.settings import WebSettings

PAGE_BYTES = 1 << 20
_LARGE_BYTES = 20 << 20
_PAGES = 12
_AT_ONCE = 50
_GROWTH_MB = 100.0


def article(size: int) -> bytes:
    """A page as documentation is: navigation, headings, paragraphs with links, tables, and code."""
    parts = [
        "<!doctype html><html><head><title>A long page</title><style>p{margin:1em}</style>",
        "<script>var shown = 1;</script></head><body><nav><ul>",
        *(f'<li><a href="/part{at}">Part {at}</a></li>' for at in range(60)),
        "</ul></nav><main><article><h1>A long page</h1>",
    ]
    total, at = sum(map(len, parts)), 0
    while total < size - 200:
        at += 1
        part = (
            f"<h2 id=s{at}>Section {at}</h2><p>The <em>call</em> number {at} takes a <a href='/ref/{at}'>value</a> and"
            f" gives another one back; nothing of it is lost &amp; all of it is kept. It was so before.</p>"
            f"<table><tr><th>name</th><th>meaning</th></tr><tr><td>first{at}</td><td>what comes first</td></tr></table>"
            f'<pre><code class="language-python">def call_{at}(value):\n    return value + {at}\n</code></pre>'
        )
        parts.append(part)
        total += len(part)
    parts.append("</article></main><footer>End</footer></body></html>")
    return "".join(parts).encode()


class Pages:
    """What the server has, and how much of it was taken."""

    def __init__(self) -> None:
        self.page = article(PAGE_BYTES)
        self.sent = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ", 2)[1]
                if path == b"/robots.txt":
                    writer.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
                elif path.startswith(b"/endless"):
                    await self._endless(writer)
                    return
                else:
                    size = b"Content-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(self.page)
                    writer.write(b"HTTP/1.1 200 Ok\r\n" + size + self.page)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _endless(self, writer: asyncio.StreamWriter) -> None:
        """Twenty megabytes without saying so beforehand, as fast as they are taken."""
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        writer.write(b"HTTP/1.1 200 Ok\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
        piece = b"<p>text</p>" * 6000
        while self.sent < _LARGE_BYTES:
            writer.write(piece)
            self.sent += len(piece)
            await writer.drain()


@asynccontextmanager
async def session() -> AsyncIterator[tuple[Engine, Pages, str]]:
    pages = Pages()
    server = await asyncio.start_server(pages.serve, "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    settings = Settings(web=WebSettings(private_hosts=(host,), cache_seconds=0))
    with tempfile.TemporaryDirectory() as folder:
        workspace = os.path.join(folder, "workspace")
        os.mkdir(workspace)
        async with server, Engine(workspace, dialect="amp", settings=settings, state=folder) as engine:
            yield engine, pages, f"http://{host}"


async def fetched(engine: Engine, url: str) -> Any:
    return await engine.call("read_web_page", url=url, forceRefetch=True)


async def _one_page() -> list[float]:
    times = []
    async with session() as (engine, _, home):
        for at in range(_PAGES + 2):
            began = time.perf_counter()
            reply = await fetched(engine, f"{home}/page{at}")
            times.append(time.perf_counter() - began)
            assert reply.status == "done", reply.error
            assert "Section 1" in str(reply.result), str(reply.result)[:300]
    return times[2:]


async def _too_large() -> tuple[float, int]:
    async with session() as (engine, pages, home):
        began = time.perf_counter()
        reply = await fetched(engine, f"{home}/endless")
        took = time.perf_counter() - began
        assert reply.error is not None
        assert reply.error.error_code == "too-large", reply.error
        return took, pages.sent


async def many() -> tuple[float, float]:
    async with session() as (engine, _, home):
        await fetched(engine, f"{home}/warm")
        before = peak_mb()
        began = time.perf_counter()
        replies = await asyncio.gather(*(fetched(engine, f"{home}/page{at}") for at in range(_AT_ONCE)))
        took = time.perf_counter() - began
        assert all(reply.status == "done" for reply in replies), [r.error for r in replies if r.error][:2]
        grown = peak_mb() - before
    return grown, took


def rows() -> Iterator[Row]:
    times = asyncio.run(_one_page())
    yield Row(
        "a page of 1 MB, fetched and made Markdown",
        statistics.median(times),
        0.3,
        "s",
        f"{_PAGES} pages, the slowest in {max(times):.3f} s",
    )
    took, sent = asyncio.run(_too_large())
    yield Row(
        "a page of 20 MB: what the server could send before it was refused at 10 MB",
        sent / (1 << 20),
        15.0,
        "MB",
        f"after {took:.3f} s; what lies in the sockets between the two is counted",
    )
    # In a process of its own: the peak of this one may be that of another measurement.
    script = "import asyncio, bench.web; print(*asyncio.run(bench.web.many()))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    grown, took = map(float, said.split())
    yield Row(
        f"{_AT_ONCE} pages of 1 MB at once: growth of the peak memory",
        grown,
        _GROWTH_MB,
        "MB",
        f"in {took:.2f} s; 32 run at once (limits.parallel), and the replies have 13 MB of text",
    )
