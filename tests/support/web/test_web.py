"""A session's web: what is remembered, shared, bounded and closed, what a back end is asked, and what is certified."""

import asyncio
import contextlib
import math
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest

from ferrule.sandbox.web_address import Inside, WebError
from ferrule.tools.web.client import MOST_PAGES, Allowances, Got, Memory, Web
from tests.models.certificates import certificate
from tests.models.server import WAIT_SECONDS, Exchange, Server, serving

from .stubs import PUBLIC, Names, Sites, page, redirect, stubbed

URL = "https://public.example/a"


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextlib.asynccontextmanager
async def local(play: Callable[[Exchange], Awaitable[None]], **more: Any) -> AsyncIterator[tuple[Web, Server]]:
    """A server, and a web that may reach it under any name of some.example."""
    async with serving(more.pop("ssl", None)) as server:
        server.play(play)
        port = server.url.rpartition(":")[2]
        options = {name: more.pop(name) for name in ("tls",) if name in more}

        async def names(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        allowed = Allowances(private_hosts=(server.url.partition("//")[2], f"*.some.example:{port}"), **more)
        web = Web(allowed, resolver=names, **options)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                yield web, server
        finally:
            await web.close()
            await server.left()


async def test_a_page_is_remembered_for_a_while():
    clock = Clock()
    sites = Sites()
    web = stubbed(sites, clock=clock, cache_seconds=900)

    first = await web.get(URL)
    clock.now += 899
    second = await web.get("http://PUBLIC.example:80/b/../a#there")
    clock.now += 1
    third = await web.get(URL)

    assert [one.is_cached for one in (first, second, third)] == [False, True, False]  # type: ignore[union-attr]
    assert second.url == "http://PUBLIC.example:80/b/../a#there"
    assert len(sites.ways) == 2


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        pytest.param(page(cache_control="private, No-Store"), {}, id="site-says-no"),
        pytest.param(httpx2.Response(404), {}, id="missing"),
        pytest.param(httpx2.Response(500), {}, id="failed"),
        pytest.param(page(), {"fresh": True}, id="asked-for-anew"),
        pytest.param(page(), {"across": False}, id="other-redirects"),
    ],
)
async def test_a_page_is_fetched_again(answer, options):
    sites = Sites(answer)
    web = stubbed(sites)

    await web.get(URL)
    again = await web.get(URL, **options)

    assert (again.is_cached, len(sites.ways)) == (False, 2)  # type: ignore[union-attr]


async def test_nothing_is_remembered_where_the_user_wants_it_so():
    sites = Sites()
    web = stubbed(sites, cache_seconds=0)

    await web.get(URL)
    await web.get(URL)

    assert len(sites.ways) == 2


async def test_what_is_fetched_anew_is_what_is_remembered():
    sites = Sites(page("old"), page("new"))
    web = stubbed(sites)

    await web.get(URL)
    await web.get(URL, fresh=True)
    last = await web.get(URL)

    assert (last.body, last.is_cached) == (b"new", True)  # type: ignore[union-attr]


async def test_memory_is_bounded_in_bytes():
    sites = Sites(lambda _: page("a" * 4_000_000))
    web = stubbed(sites)

    for number in range(10):
        await web.get(f"{URL}{number}")

    assert web._memory._bytes <= 32_000_000
    assert (await web.get(f"{URL}9")).is_cached  # type: ignore[union-attr]
    assert not (await web.get(f"{URL}0")).is_cached  # type: ignore[union-attr]


async def test_headers_count_as_what_they_take_in_memory():
    memory = Memory(60, lambda: 0.0)
    for number in range(40):
        memory.put(number, Got(URL, URL, 200, "", "", b"", headers={str(each): "" for each in range(8_000)}))

    assert len(memory._pages) < 20


async def test_memory_is_bounded_in_pages():
    web = stubbed(Sites(lambda _: page()))

    for number in range(MOST_PAGES + 5):
        await web.get(f"{URL}{number}")

    assert len(web._memory._pages) == MOST_PAGES
    assert not (await web.get(f"{URL}0")).is_cached  # type: ignore[union-attr]


async def test_who_asks_for_the_same_at_the_same_time_shares_one_fetch():
    gate = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        await gate.wait()
        await exchange.whole(200, "here")

    async with local(play) as (web, server):
        urls = [f"{server.url}/#{number}" for number in range(20)]
        tasks = [asyncio.ensure_future(web.get(url, seconds=19.9 - number / 99)) for number, url in enumerate(urls)]
        await server.was_asked()
        tasks[0].cancel()
        gate.set()
        pages = await asyncio.gather(*tasks, return_exceptions=True)

        assert isinstance(pages[0], asyncio.CancelledError)
        assert [one.url for one in pages[1:] if isinstance(one, Got)] == urls[1:]
        assert len(server.asked) == 1


async def test_a_failure_is_shared_too():
    async with local(lambda exchange: exchange.send(b"garbage\r\n\r\n")) as (web, server):
        found = await asyncio.gather(*(web.get(server.url) for _ in range(5)), return_exceptions=True)

        assert {type(one) for one in found} == {WebError}
        assert len(server.asked) == 1


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"])
async def test_a_fetch_that_is_cancelled_closes_its_connection_at_once(sent):
    left = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        await exchange.send(sent)
        await exchange.gone()
        left.set()

    async with local(play) as (web, server):
        task = asyncio.ensure_future(web.get(server.url))
        await server.was_asked()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await left.wait()

        assert web._sharing._running == {}
        assert web._made is not None
        assert web._made.slots._hosts == {}


async def test_closing_ends_what_is_under_way_and_what_waits():
    async with local(lambda exchange: exchange.gone()) as (web, server):
        tasks = [asyncio.ensure_future(web.get(f"{server.url}/{number}")) for number in range(12)]
        await server.was_asked(4)
        await web.close()
        found = await asyncio.gather(*tasks, return_exceptions=True)

        assert {type(one) for one in found} == {WebError}
        with pytest.raises(WebError, match="The session has ended"):
            await web.get(server.url)


async def test_many_fetches_at_once_are_few_at_a_time():
    now: dict[str, int] = {}
    most: dict[str, int] = {}
    gate = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        for name in (exchange.headers["host"], "all"):
            now[name] = now.get(name, 0) + 1
            most[name] = max(most.get(name, 0), now[name])
        if len(most) > 2 and now["all"] == 8:
            gate.set()
        await gate.wait()
        for name in (exchange.headers["host"], "all"):
            now[name] -= 1
        await exchange.whole(200, "here")

    # What waits for its turn does not use up its time: all of them together take longer than one may.
    async with local(play, seconds=WAIT_SECONDS) as (web, server):
        port = server.url.rpartition(":")[2]
        urls = [f"http://host{number % 5}.some.example:{port}/{number}" for number in range(50)]
        pages = await asyncio.gather(*map(web.get, urls))

        assert [one.url for one in pages] == urls
        assert most.pop("all") == 8
        assert max(most.values()) <= 4
        assert len(server.asked) == 50


async def test_a_slow_host_does_not_hold_up_the_others():
    async def play(exchange: Exchange) -> None:
        if exchange.headers["host"].startswith("slow"):
            await exchange.gone()
        else:
            await exchange.whole(200, "here")

    async with local(play) as (web, server):
        port = server.url.rpartition(":")[2]
        slow = [asyncio.ensure_future(web.get(f"http://slow.some.example:{port}/{number}")) for number in range(20)]
        await server.was_asked(4)
        other = await web.get(f"http://other.some.example:{port}/")

        assert other.body == b"here"  # type: ignore[union-attr]
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)


async def test_a_back_end_is_asked_where_the_user_says():
    async def play(exchange: Exchange) -> None:
        if exchange.path == "/r":
            await exchange.send(b"HTTP/1.1 302 Found\r\nlocation: /search\r\ncontent-length: 0\r\n\r\n")
        else:
            await exchange.whole(200, {"method": exchange.method, "body": exchange.body.decode()})

    async with serving() as server:
        server.play(play)
        web = Web(Allowances(robots=True))
        posted = await web.ask(
            "POST", server.url + "/search", headers={"X-Key": "k", "Host": "evil.example", "accept": "x/y"}, data=b"{}"
        )
        found = await web.ask("GET", server.url + "/r", headers={"x-key": "k"})

        assert (posted.status, posted.body) == (200, b'{"method": "POST", "body": "{}"}')
        assert server.asked[0].headers["x-key"] == "k"
        assert server.asked[0].headers["host"] == server.url[7:]
        assert server.asked[0].headers["accept"] == "x/y"
        assert found.address == server.url + "/search"
        assert not (await web.ask("GET", server.url + "/search")).is_cached
        with pytest.raises(WebError):
            await web.get(server.url + "/search")


@pytest.mark.parametrize(
    ("method", "place"),
    [
        ("GET", "https://other.example/"),
        ("GET", "https://www.public.example/"),
        ("GET", "https://public.example:8443/"),
        ("GET", "http://127.0.0.1/"),
        ("GET", "http://public.example/"),
        ("POST", "/b"),
    ],
)
async def test_what_is_sent_to_a_back_end_goes_nowhere_else(method, place):
    sites = Sites(redirect(place))

    with pytest.raises(WebError):
        await stubbed(sites).ask(method, "https://public.example/", headers={"x-key": "k"})

    assert len(sites.ways) == 1


async def test_a_back_end_is_asked_as_it_is_written_and_only_it_may_be_private():
    names = Names({"search.example": ("10.0.0.9",)})
    sites = Sites()
    web = stubbed(sites, names)

    await web.ask("GET", "http://search.example:8888/x")

    assert sites.urls == ["http://search.example:8888/x"]
    with pytest.raises(WebError):
        await web.get("http://search.example:8888/x")
    with pytest.raises(WebError) as caught:
        await web.ask("GET", "http://169.254.169.254/latest/")
    assert caught.value.code == "private-address"


async def _refused(_: int) -> socket.socket:
    raise OSError("nobody is to connect here")


EVERYWHERE = Inside(listens=lambda _: True, connect=_refused)
"""Commands of a session listen on every port."""


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
async def test_no_command_of_the_session_stands_in_for_a_back_end(host):
    sites = Sites()
    web = Web(Allowances(robots=False), resolver=Names(), transport=sites, inside=lambda: EVERYWHERE)

    await web.ask("GET", f"http://{host}:8888/x")
    await web.get(f"http://{host}:8888/x")

    assert [way.inside for way in sites.ways] == [None, EVERYWHERE]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "searx.example"])
async def test_a_back_end_is_not_asked_where_a_port_of_a_session_is_forwarded(host, monkeypatch):
    monkeypatch.setattr("ferrule.system.hosts.FORWARDED", {8888})
    sites = Sites()

    with pytest.raises(WebError, match="a command of a session answers there"):
        await stubbed(sites, Names({"searx.example": ("127.0.0.1",)})).ask("GET", f"http://{host}:8888/x")

    assert sites.urls == []


@pytest.mark.parametrize(
    ("url", "is_private"),
    [
        (URL, False),
        ("http://localhost:8000/x", True),
        ("http://inner.example/", True),
        ("http://127.0.0.1:9000/x", True),
    ],
)
async def test_a_page_tells_whether_it_came_from_the_user_s_own_network(url, is_private):
    own = ("localhost:8000", "inner.example")
    web = Web(
        Allowances(robots=False, private_hosts=own),
        resolver=Names(),
        transport=Sites(),
        inside=lambda: EVERYWHERE._replace(listens=lambda port: port == 9000),
    )

    got = [await web.get(url), await web.get(url)]  # the second may be remembered

    assert [isinstance(one, Got) and one.is_private for one in got] == [is_private] * 2


@pytest.mark.parametrize("header", [{"x": "a\r\nb: c"}, {"x\r\n": "a"}, {"x": "é"}, {"x": "\0"}, {"x y": "z"}])
async def test_a_header_that_is_two_is_not_sent(header):
    async with serving() as server:
        with pytest.raises(WebError) as caught:
            await Web(Allowances()).ask("GET", server.url, headers=header)

        assert (caught.value.code, server.asked) == ("bad-address", [])


async def test_the_name_is_certified_while_the_judged_address_is_connected_to(tmp_path):
    public, context = certificate(tmp_path, "a.some.example")
    tls = ssl.create_default_context(cafile=public)
    seen: list[str] = []
    context.sni_callback = lambda _, name, __: seen.append(name)

    async with local(lambda exchange: exchange.whole(200, "here"), ssl=context, tls=tls) as (web, server):
        port = server.url.rpartition(":")[2]
        good = await web.get(f"https://a.some.example:{port}/")
        with pytest.raises(WebError) as caught:
            await web.get(f"https://b.some.example:{port}/")

        assert good.body == b"here"  # type: ignore[union-attr]
        assert seen == ["a.some.example", "b.some.example"]
        assert server.asked[0].headers["host"] == f"a.some.example:{port}"
        assert (caught.value.code, len(server.asked)) == ("tls", 1)
        assert "b.some.example" in caught.value.message


async def test_a_certificate_that_nobody_signed_is_not_trusted(tmp_path):
    _, context = certificate(tmp_path)

    async with local(lambda exchange: exchange.whole(200, "here"), ssl=context) as (web, server):
        with pytest.raises(WebError) as caught:
            await web.get(server.url)

        assert (caught.value.code, server.asked) == ("tls", [])
        assert "certificate" in caught.value.message


@contextlib.asynccontextmanager
async def speaking(sent: bytes, *, hang_up: bool) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A server that says this to whoever connects, before anything was asked."""
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        if hang_up:
            writer.close()
        else:
            with contextlib.suppress(ConnectionError):
                while await reader.read(4096):
                    pass
        writer.close()
        left.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", left
    finally:
        server.close()


@pytest.mark.parametrize(
    ("sent", "hang_up", "code"),
    [
        pytest.param(b"", False, "timed-out", id="stalls"),
        pytest.param(b"\x16\x03\x03", False, "timed-out", id="stalls-in-the-middle"),
        pytest.param(b"", True, "tls", id="hangs-up"),
        pytest.param(b"HTTP/1.1 400 Bad\r\n\r\n", True, "tls", id="speaks-plainly"),
        pytest.param(b"\x15\x03\x03\x00\x02\x02\x28", True, "tls", id="refuses"),
        pytest.param(b"SSH-2.0-x\r\n" * 9999, False, "tls", id="another-service"),
    ],
)
async def test_a_connection_that_cannot_be_secured_is_closed(sent, hang_up, code):
    async with speaking(sent, hang_up=hang_up) as (authority, left):
        web = Web(Allowances(private_hosts=(authority,)))
        with pytest.raises(WebError) as caught:
            await web.get(f"https://{authority}/", seconds=0.3 if code == "timed-out" else WAIT_SECONDS)

        assert caught.value.code == code
        async with asyncio.timeout(WAIT_SECONDS):
            await left.wait()


async def test_a_name_that_takes_too_long_to_look_up_is_left():
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    web = Web(Allowances(robots=False), resolver=never, transport=Sites())

    with pytest.raises(WebError) as caught:
        await web.get(URL, seconds=0.05)

    assert caught.value.code == "timed-out"


async def test_an_address_that_takes_too_long_is_left():
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(0)
    port = listening.getsockname()[1]
    filling = [socket.socket() for _ in range(4)]
    for one in filling:
        one.setblocking(False)
        with contextlib.suppress(OSError):
            one.connect(("127.0.0.1", port))
    try:
        web = Web(Allowances(private_hosts=(f"127.0.0.1:{port}",)))
        with pytest.raises(WebError) as caught:
            await web.get(f"http://127.0.0.1:{port}/", seconds=0.2)
        assert caught.value.code == "timed-out"
    finally:
        for one in (*filling, listening):
            one.close()


@pytest.mark.parametrize(
    ("allowed", "code"),
    [
        pytest.param({"private_hosts": ("a b",)}, "bad-address", id="hosts"),
        pytest.param({"proxy": "socks5://proxy.example:1080"}, "bad-address", id="kind-of-proxy"),
        pytest.param({"proxy": "proxy.example"}, "bad-address", id="no-address"),
        pytest.param({"user_agent": "a\r\nb: c"}, "bad-address", id="user-agent"),
        pytest.param({"private_hosts": ("http://me:secret@wiki",)}, "bad-address", id="hosts-with-a-password"),
        pytest.param({"proxy": "http://me:secret@a b:1"}, "bad-address", id="proxy-with-a-password"),
    ],
)
async def test_a_setting_that_cannot_be_used_is_said_to_be_so(allowed, code):
    with pytest.raises(WebError) as caught:
        await stubbed(Sites(), **allowed).get(URL)

    assert caught.value.code == code
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("entry", ["http://localhost:8000/", "https://wiki", "wiki/a"])
async def test_an_address_in_the_place_of_a_host_is_said_to_be_none(entry):
    with pytest.raises(WebError) as caught:
        await stubbed(Sites(), private_hosts=(entry,)).get(URL)

    assert caught.value.message == (
        f"The setting web.private_hosts cannot be used: '{entry}' in the list of hosts: an entry is `host` or"
        " `host:port`, as localhost:8000."
    )


async def test_no_limit_of_time_is_a_limit_too():
    found = await stubbed(Sites(page("hello")), seconds=math.inf, cache_seconds=math.inf).get("https://public.example/")

    assert isinstance(found, Got)
    assert found.body == b"hello"


async def test_the_user_may_say_who_asks():
    sites = Sites()
    await stubbed(sites, user_agent="Somebody/1.0").get(URL)

    assert sites.asked[0].headers["user-agent"] == "Somebody/1.0"


async def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx2", None)
    monkeypatch.delitem(sys.modules, "ferrule.tools.web.transport", raising=False)

    with pytest.raises(WebError) as caught:
        await Web(Allowances()).get(URL)

    assert caught.value.code == "no-package"
    assert "pip install 'ferrule[web]'" in caught.value.message


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (httpx2.ConnectTimeout("slow"), "timed-out"),
        (httpx2.ConnectError("no"), "unreachable"),
        (httpx2.RemoteProtocolError("no"), "unreachable"),
    ],
)
async def test_errors_of_another_transport_are_sentences_too(error, code):
    def fail(_: httpx2.Request) -> httpx2.Response:
        raise error

    sites = Sites(fail)
    with pytest.raises(WebError) as caught:
        await stubbed(sites).get(URL)

    assert (caught.value.code, sites.open) == (code, 0)


async def test_addresses_of_both_kinds_are_tried_in_turns():
    sites = Sites()
    names = Names({"public.example": ("2606:4700::1", "2606:4700::2", PUBLIC, "8.8.8.8")})
    await stubbed(sites, names).get(URL)

    assert [str(one) for one in sites.ways[0].addresses] == ["2606:4700::1", PUBLIC, "2606:4700::2", "8.8.8.8"]
