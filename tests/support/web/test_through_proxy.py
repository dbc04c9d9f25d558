"""Through the user's proxy: everything goes through it, it looks names up, and addresses are judged all the same."""

import asyncio
import contextlib
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ferrule.sandbox.web_address import WebError
from ferrule.tools.web.client import Allowances, Web
from ferrule.tools.web.connect import proxy
from tests.models.certificates import certificate
from tests.models.server import WAIT_SECONDS, Exchange, Server, serving
from tests.rows import each_row

from .stubs import Names, Sites, redirect, stubbed


async def unknown(host: str, port: int) -> list[str]:
    raise AssertionError(f"{host} was looked up")


def passing_on(target: Server, wants: str = ""):
    """What a proxy does. It knows all names by heart: they are this one server."""

    async def play(exchange: Exchange) -> None:
        assert exchange.method == "CONNECT"
        assert exchange.headers["host"] == exchange.path
        if wants and exchange.headers.get("proxy-authorization") != f"Basic {b64encode(wants.encode()).decode()}":
            await exchange.whole(407, "Who are you?", kind="text/plain")
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", int(target.url.rpartition(":")[2]))
        await exchange.send(b"HTTP/1.1 200 Connection established\r\nx: y\r\n\r\n")
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.gather(copied(exchange.reader, writer), copied(reader, exchange.writer))
        finally:
            writer.close()

    return play


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def between(
    site_tls: Any = None, proxy_tls: Any = None, **options: Any
) -> AsyncIterator[tuple[Web, Server, Server]]:
    """A web behind a proxy, the proxy, and the one site behind it."""
    wants = options.pop("wants", "")
    tls = options.pop("tls", None)
    async with serving(site_tls) as site, serving(proxy_tls) as middle:
        site.play(lambda exchange: exchange.whole(200, "here", kind="text/plain"))
        middle.play(passing_on(site, wants))
        url = middle.url.replace("//", f"//{options.pop('credentials', '')}")
        web = Web(Allowances(proxy=url, robots=False, **options), resolver=unknown, tls=tls)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                yield web, middle, site
        finally:
            await web.close()
            await middle.left()


async def test_pages_come_through_a_tunnel_and_names_are_left_to_the_proxy(tmp_path):
    public, context = certificate(tmp_path, "public.example")
    tls = ssl.create_default_context(cafile=public)

    async with between(context, tls=tls) as (web, middle, site):
        page = await web.get("http://public.example/a")

        assert page.address == "https://public.example/a"  # type: ignore[union-attr]
        assert [one.path for one in middle.asked] == ["public.example:443"]
        assert [one.path for one in site.asked] == ["/a"]
        assert "proxy-authorization" not in site.asked[0].headers


async def test_plain_pages_go_through_a_tunnel_too():
    async with between() as (web, middle, site):
        page = await web.get("http://public.example:8080/a")

        assert page.body == b"here"  # type: ignore[union-attr]
        assert [one.path for one in middle.asked] == ["public.example:8080"]
        assert site.asked[0].headers["host"] == "public.example:8080"


async def test_a_proxy_may_be_secured_itself(tmp_path):
    public, context = certificate(tmp_path, "public.example")
    tls = ssl.create_default_context(cafile=public)

    async with between(context, context, tls=tls) as (web, middle, _):
        page = await web.get("https://public.example/a")

        assert page.body == b"here"  # type: ignore[union-attr]
        assert len(middle.asked) == 1


async def test_a_proxy_may_want_a_password_and_nobody_else_learns_it():
    async with between(wants="Aladdin:open sésame", credentials="Aladdin:open%20s%C3%A9same@") as (web, _, site):
        await web.get("http://public.example:8080/a")

        assert "proxy-authorization" not in site.asked[0].headers

    async with between(wants="Aladdin:open", credentials="Aladdin:secret@") as (web, _, site):
        with pytest.raises(WebError) as caught:
            await web.get("http://public.example:8080/a")

        assert (caught.value.code, site.asked) == ("unreachable", [])
        assert "407" in caught.value.message
        assert "secret" not in caught.value.message
    assert "secret" not in repr(proxy("http://Aladdin:secret@proxy.example:3128"))


async def test_the_certificate_behind_the_proxy_is_looked_at(tmp_path):
    public, context = certificate(tmp_path, "other.example")

    async with between(context, tls=ssl.create_default_context(cafile=public)) as (web, _, site):
        with pytest.raises(WebError) as caught:
            await web.get("https://public.example/a")

        assert (caught.value.code, site.asked) == ("tls", [])


@each_row(
    "host",
    [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "a.localhost",
        "router.local",
        "metadata.google.internal",
        "home.arpa",
        "localhost.localdomain",
        "kubernetes.default.svc",
        "wiki.corp",
        "wiki",
    ],
)
@each_row("port", ["", ":8080"])
async def test_what_is_inside_is_refused_here(host, port):
    async with between() as (web, middle, _):
        with pytest.raises(WebError) as caught:
            await web.get(f"http://{host}{port}/")

        assert (caught.value.code, middle.asked) == ("private-address", [])


async def test_the_users_own_hosts_go_through_it_as_well():
    async with between(private_hosts=("wiki", "127.0.0.1:9")) as (web, middle, _):
        await web.get("http://wiki/")
        await web.get("http://127.0.0.1:9/")

        assert [one.path for one in middle.asked] == ["wiki:80", "127.0.0.1:9"]


async def test_hops_are_judged_behind_a_proxy():
    sites = Sites(redirect("https://other.example/"), redirect("https://127.0.0.1/"))
    names = Names()

    with pytest.raises(WebError) as caught:
        await stubbed(sites, names, proxy="http://proxy.example:3128").get("https://public.example/")

    assert caught.value.code == "private-address"
    assert (names.asked, sites.urls) == ([], ["https://public.example/", "https://other.example/"])


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", id="refuses"),
        pytest.param(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\n\r\n", id="redirects"),
        pytest.param(b"garbage\r\n\r\n", id="garbage"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\nforged", id="speaks-for-the-site"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 9000 + b"\r\n", id="floods"),
        pytest.param(b"", id="hangs-up"),
        pytest.param(b"HTTP/1.1 2000 OK\r\n\r\n", id="no-status"),
    ],
)
async def test_a_proxy_that_does_not_let_it_through_is_named(said):
    async def play(exchange: Exchange) -> None:
        await exchange.send(said)
        exchange.writer.close()

    async with serving() as middle:
        middle.play(play)
        web = Web(Allowances(proxy=middle.url, robots=False), resolver=unknown)
        with pytest.raises(WebError) as caught:
            await web.get("http://public.example:8080/")

        assert caught.value.code == "unreachable"
        assert "web.proxy" in caught.value.message


async def test_a_proxy_that_stalls_is_given_up():
    async with serving() as middle:
        middle.play(Exchange.gone)
        stalled = Web(Allowances(proxy=middle.url, robots=False, seconds=0.2), resolver=unknown)
        with pytest.raises(WebError) as caught:
            await stalled.get("https://public.example/")
        assert caught.value.code == "timed-out"
        await middle.left()


@pytest.mark.parametrize("robots", [True, False])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_proxy_that_is_not_there_is_named_and_not_the_site(robots, scheme, host):
    async with serving() as middle:
        port = middle.url.rpartition(":")[2]
    web = Web(Allowances(proxy=f"{scheme}://me:secret@{host}:{port}", robots=robots), resolver=unknown)

    with pytest.raises(WebError) as caught:
        await web.get("https://public.example/")

    said = f"The proxy {host}:{port} (setting web.proxy) cannot be reached: connection refused."
    assert (caught.value.message, caught.value.code) == (said, "unreachable")


async def test_the_name_of_a_proxy_that_nobody_knows_is_said_to_be_none():
    web = Web(Allowances(proxy="http://me:secret@proxy.invalid:3128", robots=False), resolver=unknown)

    with pytest.raises(WebError) as caught:
        await web.get("https://public.example/")

    assert caught.value.message == (
        "The proxy proxy.invalid:3128 (setting web.proxy) cannot be reached: there is no such host."
    )


async def test_a_proxy_whose_certificate_is_not_in_order_is_named_and_not_the_site(tmp_path):
    _, context = certificate(tmp_path, "other.example")

    async with between(None, context, tls=ssl.create_default_context()) as (web, middle, _):
        with pytest.raises(WebError) as caught:
            await web.get("https://public.example/a")

    assert caught.value.code == "tls"
    assert caught.value.message.startswith(f"The certificate of the proxy {middle.url[8:]} (setting web.proxy) cannot")


async def test_a_proxy_that_cannot_be_secured_is_named_and_not_the_site():
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as middle:
        port = middle.sockets[0].getsockname()[1]
        web = Web(Allowances(proxy=f"https://127.0.0.1:{port}", robots=False), resolver=unknown)
        with pytest.raises(WebError) as caught:
            await web.get("https://public.example/a")

    assert caught.value.code == "tls"
    assert "(setting web.proxy)" in caught.value.message
    assert "public.example" not in caught.value.message


async def test_the_proxy_of_the_environment_is_nobodys_business(monkeypatch):
    async with serving() as site, serving() as middle:
        site.play(lambda exchange: exchange.whole(200, "here"))
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"):
            monkeypatch.setenv(name, middle.url)
        page = await Web(Allowances(private_hosts=(site.url[7:],))).get(site.url)

        assert page.body == b"here"  # type: ignore[union-attr]
        assert middle.asked == []
