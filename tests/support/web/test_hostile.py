"""Servers that drip, bomb, flood, stall and lie: every one of them ends in a sentence, and reads no more than allowed.

What was read is counted at the server: bytes that the other side did not take stay in its buffers.
"""

import asyncio
import contextlib
import gzip
import itertools
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from ferrule.sandbox.web_address import WebError
from ferrule.tools.web.client import Allowances, Got, Web
from ferrule.tools.web.transport import Meter, _Pieces
from tests.models.server import WAIT_SECONDS, Exchange, Server, serving
from tests.rows import each_row

MOST = 1 << 18
SLACK = 16 << 20
"""What the buffers of two sockets may hold; what a server sends in vain is far more."""
SHORT_SECONDS = 0.3
"""For servers that would never end."""


@contextlib.asynccontextmanager
async def asked(play: Callable[[Exchange], Awaitable[None]]) -> AsyncIterator[tuple[Web, Server]]:
    async with serving() as server:
        server.play(play)
        web = Web(Allowances(private_hosts=(server.url[7:],), most_bytes=MOST, seconds=WAIT_SECONDS, hops=3))
        try:
            yield web, server
        finally:
            await web.close()
            await server.left()


async def failing(play: Callable[[Exchange], Awaitable[None]], **options: Any) -> WebError:
    async with asked(play) as (web, server):
        with pytest.raises(WebError) as caught:
            await web.get(server.url + "/page", **options)
    assert caught.value.message.endswith(".")
    assert caught.value.message.isprintable()
    return caught.value


async def got(play: Callable[[Exchange], Awaitable[None]], **options: Any) -> Got:
    async with asked(play) as (web, server):
        page = await web.get(server.url + "/page", **options)
    assert isinstance(page, Got)
    return page


def says(head: str, body: bytes = b"", *, close: bool = True) -> Callable[[Exchange], Awaitable[None]]:
    """The head is written as it is, but for its line ends."""

    async def play(exchange: Exchange) -> None:
        await exchange.send(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
        if close:
            exchange.writer.close()
        else:
            await exchange.gone()

    return play


def packed(data: bytes, *encodings: str) -> Callable[[Exchange], Awaitable[None]]:
    head = "HTTP/1.1 200 OK\ncontent-type: text/plain\ncontent-length: "
    return says(f"{head}{len(data)}\ncontent-encoding: {', '.join(encodings)}", data)


async def test_a_page_comes_whole():
    page = await got(says("HTTP/1.1 200 OK\nContent-Type: Text/HTML; Charset=UTF-8\ncontent-length: 5", b"hello"))

    assert (page.status, page.media_type, page.charset, page.body) == (200, "text/html", "utf-8", b"hello")
    assert (page.why_partial, page.is_cached, page.headers["content-length"]) == ("", False, "5")


async def test_a_body_that_ends_with_the_connection_comes_whole():
    page = await got(says("HTTP/1.0 200 OK\ncontent-type: text/plain", b"hello"))

    assert (page.body, page.why_partial) == (b"hello", "")


async def test_a_page_of_exactly_the_size_that_is_allowed_comes_whole():
    page = await got(says(f"HTTP/1.1 200 OK\ncontent-length: {MOST}", b"a" * MOST))

    assert len(page.body) == MOST


@pytest.mark.parametrize("status", [404, 410, 500, 503])
async def test_a_page_that_is_missing_is_a_page_with_that_status(status):
    page = await got(says(f"HTTP/1.1 {status} No\ncontent-length: 5", b"sorry"))

    assert (page.status, page.body) == (status, b"sorry")


async def test_what_is_sent_says_who_asks_and_nothing_else():
    async with asked(says("HTTP/1.1 200 OK\nset-cookie: a=b\ncontent-length: 0")) as (web, server):
        await web.get(server.url + "/a?b=c#d", fresh=True)
        page = await web.get(server.url + "/a?b=c#d", fresh=True)

        first, second = server.asked
        assert (first.method, first.path) == ("GET", "/a?b=c")
        assert set(first.headers) == {"host", "user-agent", "accept", "accept-encoding", "connection"}
        assert first.headers["host"] == server.url[7:]
        assert first.headers["user-agent"].startswith("Ferrule/")
        assert first.headers["accept-encoding"] == "gzip, deflate"
        assert first.headers["accept"].startswith("text/markdown, text/html;")
        assert "cookie" not in second.headers
        assert "set-cookie" not in page.headers  # type: ignore[union-attr]


@each_row(
    ("data", "encodings"),
    [
        pytest.param(gzip.compress(b"hello" * 9), ["gzip"], id="gzip"),
        pytest.param(gzip.compress(b"hello" * 9), ["x-gzip"], id="old-name"),
        pytest.param(gzip.compress(b"hello" * 9), ["GZIP", "identity"], id="capitals"),
        pytest.param(zlib.compress(b"hello" * 9), ["deflate"], id="deflate"),
        pytest.param(zlib.compressobj(wbits=-15).compress(b"") or b"", ["identity"], id="nothing"),
        pytest.param(gzip.compress(b"hello" * 4) + gzip.compress(b"hello" * 5), ["gzip"], id="two-in-a-row"),
        pytest.param(gzip.compress(b"hello" * 9) + b"\0\0\0", ["gzip"], id="padding"),
        pytest.param(gzip.compress(zlib.compress(b"hello" * 9)), ["deflate", "gzip"], id="two-layers"),
    ],
)
async def test_what_is_packed_is_unpacked(data, encodings):
    page = await got(packed(data, *encodings))

    assert page.body == (b"hello" * 9 if data else b"")


async def test_what_is_packed_without_its_wrapping_is_unpacked():
    packer = zlib.compressobj(wbits=-15)
    page = await got(packed(packer.compress(b"hello" * 9) + packer.flush(), "deflate"))

    assert page.body == b"hello" * 9


@pytest.mark.parametrize(
    ("make", "encodings"),
    [
        pytest.param(lambda: gzip.compress(bytes(MOST * 1000)), ["gzip"], id="a-thousand-to-one"),
        pytest.param(lambda: gzip.compress(bytes(MOST + 1)), ["gzip"], id="one-byte-too-many"),
        pytest.param(lambda: gzip.compress(gzip.compress(bytes(MOST * 1000))), ["gzip", "gzip"], id="bomb-in-a-gift"),
        pytest.param(lambda: zlib.compress(bytes(MOST * 100)), ["deflate"], id="deflate"),
        pytest.param(lambda: b"".join(gzip.compress(bytes(MOST // 2)) for _ in range(9)), ["gzip"], id="many-in-a-row"),
    ],
)
async def test_a_bomb_does_not_go_off(make, encodings):
    data = make()
    assert len(data) < MOST
    error = await failing(packed(data, *encodings))

    assert error.code == "too-large"
    assert "0.25 MB" in error.message
    assert "web.most_mb" in error.message


@each_row(
    ("data", "encodings"),
    [
        pytest.param(b"hello", ["gzip"], id="not-packed"),
        pytest.param(b"hello", ["br"], id="not-offered"),
        pytest.param(b"hello", ["zstd"], id="not-offered-either"),
        pytest.param(b"hello", ["gzip", "gzip", "gzip"], id="three-layers"),
        pytest.param(b"hello", ["gzip"] * 500, id="five-hundred-layers"),
        pytest.param(b"\x1f\x8b\x08" + b"\xff" * 90, ["gzip"], id="garbage"),
        pytest.param(b"hello", ["nonsense\x80"], id="nonsense"),
        pytest.param(gzip.compress(b"") * 1001, ["gzip"], id="many-empty-ones"),
        pytest.param(gzip.compress(gzip.compress(b"") * 9999), ["gzip", "gzip"], id="many-empty-ones-in-a-gift"),
    ],
)
async def test_what_cannot_be_unpacked_is_no_page(data, encodings):
    assert (await failing(packed(data, *encodings))).code == "bad-answer"


async def test_a_packed_page_that_is_cut_is_given_as_far_as_it_goes():
    data = gzip.compress(bytes(range(256)) * 50 + b"end", compresslevel=0)
    page = await got(packed(data[:-40], "gzip"))

    assert page.body.startswith(bytes(range(256)))
    assert page.why_partial.endswith(".")


async def test_a_body_that_is_announced_as_too_large_is_not_read():
    async with asked(says("HTTP/1.1 200 OK\ncontent-length: 20000000", close=False)) as (web, server):
        with pytest.raises(WebError) as caught:
            await web.get(server.url)

    assert caught.value.code == "too-large"


def endless(sent: list[int], head: str, piece: bytes) -> Callable[[Exchange], Awaitable[None]]:
    async def play(exchange: Exchange) -> None:
        await exchange.send(head.replace("\n", "\r\n").encode() + b"\r\n")
        while True:
            await exchange.send(piece)
            sent.append(len(piece))

    return play


CHUNKED = "HTTP/1.1 200 OK\ntransfer-encoding: chunked\n"


@pytest.mark.parametrize(
    ("head", "piece", "code"),
    [
        pytest.param("HTTP/1.0 200 OK\n", b"a" * 8192, "too-large", id="body"),
        pytest.param(CHUNKED, b"2000\r\n" + b"a" * 8192 + b"\r\n", "too-large", id="chunks"),
        pytest.param(CHUNKED, b"1\r\na\r\n" * 1000, "bad-answer", id="tiny-chunks"),
        pytest.param(CHUNKED, b"1;" + b"x" * 8000 + b"\r\na\r\n", "bad-answer", id="chunk-extensions"),
        pytest.param(CHUNKED, b"1" * 8192, "bad-answer", id="size-of-a-chunk"),
        pytest.param(CHUNKED + "\n0", b"x: y\r\n" * 1000, "bad-answer", id="trailers"),
        pytest.param("HTTP/1.1 200 OK", b"x-y: z\r\n" * 1000, "bad-answer", id="headers"),
        pytest.param("HTTP/1.1 200 OK\nx-y: ", b"z" * 8192, "bad-answer", id="one-header"),
        pytest.param("HTTP/1.1 ", b"2" * 8192, "bad-answer", id="first-line"),
        pytest.param("HTTP/1.1 100 Continue\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 300, "bad-answer", id="continue"),
        pytest.param("HTTP/1.1 103 Hints\n", b"HTTP/1.1 103 Hints\r\nlink: a\r\n\r\n" * 300, "bad-answer", id="hints"),
        pytest.param("HTTP/1.0 200 OK\ncontent-encoding: gzip\n", gzip.compress(b""), "bad-answer", id="empty-gzips"),
        pytest.param("garbage", b"garbage\r\n" * 999, "bad-answer", id="garbage"),
    ],
)
async def test_what_never_ends_is_ended(head, piece, code):
    sent: list[int] = []

    error = await failing(endless(sent, head, piece))

    assert error.code == code
    assert sum(sent) < SLACK


STALLS = {
    "in-headers": b"HTTP/1.1 200 OK\r\nx-y:",
    "before-anything": b"",
    "after-continue": b"HTTP/1.1 100 Continue\r\n\r\n",
    "in-a-picture": b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n\x89PNG",
    "in-a-failure": b"HTTP/1.1 500 No\r\ncontent-type: text/plain\r\n\r\nsorry",
    "in-unknown-bytes": b"HTTP/1.1 200 OK\r\n\r\na\0b",
    "before-the-body": b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n",
}


@pytest.mark.parametrize("sent", [pytest.param(sent, id=name) for name, sent in STALLS.items()])
async def test_a_server_that_stalls_is_left(sent):
    async def play(exchange: Exchange) -> None:
        await exchange.send(sent)
        await exchange.gone()

    error = await failing(play, seconds=SHORT_SECONDS)

    assert error.code == "timed-out"
    assert "web.seconds" in error.message


async def test_a_limit_that_is_not_that_of_the_settings_is_said_by_its_own_name():
    async with asked(lambda exchange: exchange.gone()) as (web, server):
        with pytest.raises(WebError) as caught:
            await web.get(server.url, seconds=SHORT_SECONDS, limit_said="2 s (timeout)")

    assert caught.value.message.endswith("/ took longer than 2 s (timeout).")


async def test_the_beginning_of_a_text_that_drips_is_given_and_marked():
    kinds = ["text/html", "application/json", "image/svg+xml", ""]

    async def play(exchange: Exchange) -> None:
        kind = kinds[int(exchange.path[1:])]
        named = f"content-type: {kind}\r\n" if kind else ""
        await exchange.send(f"HTTP/1.1 200 OK\r\n{named}\r\nbegins".encode())
        for _ in itertools.count():
            await exchange.send(b".")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await exchange.gone()
                    return

    # Long enough for a busy machine to begin; it takes as long in any case.
    async with asked(play) as (web, server):
        pages = await asyncio.gather(*(web.get(f"{server.url}/{number}", seconds=2.0) for number in range(len(kinds))))

    for page in pages:
        assert isinstance(page, Got)
        assert page.body.startswith(b"begins.")
        assert page.body.strip(b".") == b"begins"
        assert "web.seconds" in page.why_partial


CUTS = {
    "length-too-large": ("HTTP/1.1 200 OK\ncontent-type: text/plain\ncontent-length: 100", b"begins"),
    "chunk-cut": ("HTTP/1.1 200 OK\ncontent-type: text/plain\ntransfer-encoding: chunked", b"a\r\nbegins"),
    "no-last-chunk": ("HTTP/1.1 200 OK\ncontent-type: text/plain\ntransfer-encoding: chunked", b"6\r\nbegins\r\n"),
}


@pytest.mark.parametrize(("head", "body"), [pytest.param(*row, id=name) for name, row in CUTS.items()])
async def test_the_beginning_of_a_text_that_is_cut_is_given_and_marked(head, body):
    page = await got(says(head, body))

    assert page.body == b"begins"
    assert "broke off" in page.why_partial
    error = await failing(says(head.replace("text/plain", "image/png"), body))
    assert error.code == "bad-answer"


async def test_a_part_of_a_page_is_not_remembered():
    async with asked(says(*CUTS["length-too-large"])) as (web, server):
        await web.get(server.url)
        page = await web.get(server.url)

        assert (page.is_cached, len(server.asked)) == (False, 2)  # type: ignore[union-attr]


@each_row(
    ("head", "body"),
    [
        pytest.param("HTTP/1.1 200 OK\ncontent-length: 5\ncontent-length: 6", b"hello!", id="two-lengths"),
        pytest.param("HTTP/1.1 200 OK\ncontent-length: -5", b"hello", id="negative-length"),
        pytest.param("HTTP/1.1 200 OK\ncontent-length: 5,6", b"hello", id="list-of-lengths"),
        pytest.param("HTTP/1.1 200 OK\ncontent-length: 0x5", b"hello", id="length-in-hex"),
        pytest.param("HTTP/1.1 200 OK\ncontent-length: " + "9" * 5000, b"hello", id="length-of-length"),
        pytest.param("HTTP/1.1 200 OK\ntransfer-encoding: chunked", b"zz\r\nhello", id="no-size"),
        pytest.param("HTTP/1.1 200 OK\ntransfer-encoding: chunked", b"-5\r\nhello\r\n0\r\n\r\n", id="negative-size"),
        pytest.param("HTTP/1.1 200 OK\ntransfer-encoding: chunked", b"3\r\nhello\r\n0\r\n\r\n", id="wrong-size"),
        pytest.param("HTTP/1.1 200 OK\ntransfer-encoding: chunked", b"f" * 40 + b"\r\nhello", id="size-of-a-planet"),
        pytest.param("HTTP/1.1 200 OK\ntransfer-encoding: gzip", b"hello", id="unknown-transfer"),
        pytest.param("HTTP/1.1 200 OK\nno colon", b"", id="header-without-colon"),
        pytest.param("HTTP/1.1 200 OK\n: x", b"", id="header-without-name"),
        pytest.param("HTTP/1.1 200 OK\nx: a\0b", b"", id="nul-in-a-header"),
        pytest.param("HTTP/1.1 200 OK\nx: a\rlocation: /b", b"", id="half-a-line-end"),
        pytest.param("HTTP/1.1 20 OK", b"", id="short-status"),
        pytest.param("HTTP/1.1 101 Switching Protocols\nupgrade: h2c\nconnection: upgrade", b"x", id="switching"),
        pytest.param("HTTP/1.1 302 Found\nlocation: /a\nlocation: /b", b"", id="two-places"),
        pytest.param("SSH-2.0-OpenSSH_9.9", b"", id="another-service"),
        pytest.param("", b"", id="empty-line"),
    ],
)
async def test_an_answer_that_is_no_answer_is_said_to_be_none(head, body):
    assert (await failing(says(head, body))).code == "bad-answer"


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n"])
async def test_a_server_that_hangs_up_says_nothing(sent):
    async def play(exchange: Exchange) -> None:
        await exchange.send(sent)
        exchange.cut()

    assert (await failing(play)).code == "bad-answer"


async def test_a_place_with_a_line_end_splits_nothing():
    error = await failing(says("HTTP/1.1 302 Found\nlocation: /a%0d%0aset-cookie:x\ncontent-length: 0"))

    assert error.code == "too-many-redirects"


async def test_a_redirect_is_followed_without_reading_what_comes_with_it():
    sent: list[int] = []

    async def play(exchange: Exchange) -> None:
        if exchange.path == "/end":
            await exchange.whole(200, "here", kind="text/plain")
        else:
            await endless(sent, "HTTP/1.1 302 Found\nlocation: /end\n", b"a" * 8192)(exchange)

    page = await got(play)

    assert page.body == b"here"
    assert sum(sent) < SLACK


async def test_endless_redirects_end():
    numbers = itertools.count()

    async def play(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 302 Found\r\nlocation: /%d\r\ncontent-length: 0\r\n\r\n" % next(numbers))

    error = await failing(play)

    assert (error.code, next(numbers)) == ("too-many-redirects", 4)


async def test_redirects_that_drip_are_one_fetch_with_one_deadline():
    numbers = itertools.count()

    async def play(exchange: Exchange) -> None:
        if next(numbers) == 2:
            await exchange.gone()
        else:
            await exchange.send(b"HTTP/1.1 302 Found\r\nlocation: /%d\r\ncontent-length: 0\r\n\r\n" % next(numbers))

    assert (await failing(play, seconds=SHORT_SECONDS)).code == "timed-out"


async def test_nobody_listens():
    async with serving() as server:
        url = server.url
    web = Web(Allowances(private_hosts=(url[7:],)))

    with pytest.raises(WebError) as caught:
        await web.get(url)

    assert caught.value.code == "unreachable"


async def test_the_next_address_is_tried_where_the_first_one_leads_nowhere():
    async with serving() as server:
        server.play(lambda exchange: exchange.whole(200, "here"))
        port = server.url.rpartition(":")[2]

        async def names(host: str, port: int) -> list[str]:
            return ["127.0.0.3", "127.0.0.2", "127.0.0.1"]

        web = Web(Allowances(private_hosts=(f"some.example:{port}",)), resolver=names)
        page = await web.get(f"http://some.example:{port}/")

        assert page.body == b"here"  # type: ignore[union-attr]
        assert server.asked[0].headers["host"] == f"some.example:{port}"


async def test_progress_is_told_now_and_then():
    told: list[str] = []
    times = itertools.count(0, 0.1)

    async def play(exchange: Exchange) -> None:
        await exchange.begin("text/plain")
        for _ in range(60):
            await exchange.chunk(b"a" * 1000)
            await asyncio.sleep(0)
        await exchange.end()

    async with serving() as server:
        server.play(play)
        web = Web(Allowances(private_hosts=(server.url[7:],)), clock=lambda: next(times))
        await web.get(server.url, tell=told.append)
        told_of = [line for line in told if server.url in line]

    assert told == told_of
    assert len(told) <= 30


async def test_a_body_of_very_many_pieces_leaves_others_their_turn():
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield b"x"

    async def count() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    turns: list[int] = []
    other = asyncio.create_task(count())
    body = b"".join([piece async for piece in _Pieces(pieces(), "a.example", Meter("a.example", is_upgraded=False))])
    other.cancel()

    assert len(body) == 10_000
    assert len(turns) > 100
