"""Streams through the proxy: pings, clients that go away, repetitions, fallbacks, and answers that break off."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from ferrule.wire.stream import EventReader
from tests.models.server import Exchange, Play, Server, serving
from tests.serve.proxy.proxied import (
    APIS,
    BY_API,
    LIMIT_SECONDS,
    ROUTES,
    TOKEN,
    Holding,
    Proxied,
    ask,
    call_piece,
    fails,
    happened,
    hosts,
    piece,
    proxied,
    talks,
    words,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
PING = {"anthropic": b'event: ping\ndata: {"type":"ping"}\n\n', "gemini": b"\n\n"}
COMMENT = b": keep-alive\n\n"
LAST = {"anthropic": b"message_stop", "openai-chat": b"[DONE]", "openai-responses": b"response.completed"}
"""What only a whole answer has."""
BROKEN = {
    "anthropic": b"event: error",
    "openai-chat": b'data: {"error":',
    "openai-responses": b"event: response.failed",
    "gemini": b'data: {"error":',
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers():
    async with serving() as first, serving() as second:
        yield first, second


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(servers):
    rules = {"chain": ("up0:m", "up1:m"), "*": "up0:m"}
    async with proxied(hosts(*servers), models=rules, failures=10_000) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pinging(servers):
    """A proxy that keeps streams alive after a very short silence."""
    async with proxied(hosts(servers[0]), failures=10_000, ping_seconds=0.02) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def proxy(running: Proxied) -> AsyncIterator[Proxied]:
    async with fresh(running):
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def pinged(pinging: Proxied) -> AsyncIterator[Proxied]:
    async with fresh(pinging):
        yield pinging


@contextlib.asynccontextmanager
async def fresh(shared: Proxied) -> AsyncIterator[None]:
    """Nothing is left of a test for the next one."""
    yield
    await shared.until(lambda: shared.shop.records.open == {})
    shared.ended.clear()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def unrepeated(servers):
    """A proxy that asks once."""
    async with proxied(hosts(servers[0]), failures=10_000, retries=0) as made:
        yield made


@pytest.fixture
def server(servers: tuple[Server, Server]) -> Server:
    servers[0].asked.clear()
    return servers[0]


@pytest.fixture
def other(servers: tuple[Server, Server]) -> Server:
    servers[1].asked.clear()
    return servers[1]


async def record(proxy: Proxied):
    """What is kept of the one request of a test."""
    await proxy.until(lambda: proxy.ended)
    assert len(proxy.ended) == 1
    return proxy.ended[0]


def values(stream: bytes) -> list:
    """The JSON of every event of a stream; each of them is whole."""
    reader = EventReader()
    events = [*reader.feed(stream), *reader.end()]
    return [json.loads(one.data) for one in events if one.data != b"[DONE]"]


def breaks(begun: bytes, *, cleanly: bool = False) -> Play:
    """A host that says something and breaks off, or ends as if that had been all."""

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.chunk(begun)
        if cleanly:
            await exchange.end()
        else:
            exchange.cut()

    return play


@pytest.mark.parametrize("api", APIS)
async def test_a_stream_is_kept_alive_while_its_host_thinks_and_then_goes_on(pinged, server, api):
    play = Holding()
    server.play(play)

    async with pinged.streaming(api) as reading:
        assert reading.response.status_code == 200
        assert reading.response.headers["content-type"].startswith("text/event-stream")
        await reading.until(PING.get(api, COMMENT) * 3)
        play.let_go.set()
        whole = await reading.rest()

    assert b"done" in whole
    assert LAST.get(api, b"STOP") in whole
    assert (await record(pinged)).status == 200


@pytest.mark.parametrize("api", APIS)
async def test_pings_come_between_events_and_never_after_the_end(pinged, server, api):
    play = Holding(piece("one ") + piece("two "))
    server.play(play)

    async with pinged.streaming(api) as reading:
        await reading.until(b"two ", PING.get(api, COMMENT))
        play.let_go.set()
        whole = await reading.rest()

    assert values(whole)
    assert whole.rstrip().endswith((b"}", b"[DONE]"))


async def test_a_list_of_events_gets_no_pings_within_it(pinged, server):
    play = Holding(piece("one "))
    server.play(play)
    path = ROUTES["gemini"].path(True).replace("?alt=sse", "")
    asking = asyncio.create_task(pinged.post(path, ask("gemini", "Hello.", stream=True), ROUTES["gemini"].headers))
    await happened(play.held)
    await asyncio.sleep(0.05)  # pings of others would come by now; that none does is seen below
    play.let_go.set()
    response = await asking

    assert response.headers["content-type"] == "application/json"
    assert [row["candidates"][0]["content"]["parts"] for row in response.json()[:1]] == [[{"text": "one "}]]


@pytest.mark.parametrize("api", APIS)
async def test_after_a_ping_an_error_comes_as_an_event(pinged, server, api):
    let_go = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        await asyncio.wait_for(let_go.wait(), LIMIT_SECONDS)
        await exchange.whole(400, {"error": {"message": "Not so."}})

    server.play(play)
    async with pinged.streaming(api) as reading:
        await reading.until(PING.get(api, COMMENT))
        let_go.set()
        whole = await reading.rest()

    assert reading.response.status_code == 200
    assert BROKEN[api] in whole
    assert b"Not so." in whole
    assert LAST.get(api, b"STOP") not in whole
    kept = await record(pinged)
    assert (kept.status, kept.error) == (400, "bad")


@contextlib.asynccontextmanager
async def not_reading(proxy: Proxied) -> AsyncIterator[None]:
    """A client that asks for a stream and reads nothing of it."""
    body = json.dumps(ask("anthropic", "Hello.", stream=True)).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {TOKEN}\r\ncontent-length: {len(body)}\r\n\r\n"
    lazy = socket.socket()
    lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lazy.setblocking(False)
    with lazy:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(lazy, ("127.0.0.1", proxy.port))
        await loop.sock_sendall(lazy, head.encode() + body)
        yield


async def test_nor_does_it_hold_up_the_end_of_the_proxy(server):
    async def much(exchange: Exchange) -> None:
        await exchange.begin()
        while True:
            await exchange.chunk(piece("x" * 60_000))

    server.play(much)
    async with asyncio.timeout(LIMIT_SECONDS):
        async with proxied(hosts(server)) as proxy, not_reading(proxy):
            await server.was_asked()
            transport = server.asked[0].writer.transport
            await proxy.until(lambda: transport.get_write_buffer_size() > 0)
        assert proxy.shop.records.open == {}


async def test_a_client_that_does_not_read_holds_up_nobody_else(pinged, server):
    flood = piece("x" * 60_000)
    let_go = asyncio.Event()

    sent = 0

    async def much(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.begin()
        with contextlib.suppress(ConnectionError):
            for _ in range(400):
                await exchange.chunk(flood)
                sent += 1
            await exchange.end()

    async def silent(exchange: Exchange) -> None:
        await exchange.begin()
        await asyncio.wait_for(let_go.wait(), LIMIT_SECONDS)
        await exchange.chunk(words("done"))
        await exchange.end()

    server.play(much, silent)
    async with not_reading(pinged):
        await server.was_asked()
        # The host can say no more, as the proxy can say no more to its client.
        transport = server.asked[0].writer.transport
        await pinged.until(lambda: transport.get_write_buffer_size() > 0 and sent > 30)

        async with pinged.streaming("anthropic") as reading:
            await reading.until(PING["anthropic"] * 4)
            let_go.set()
            assert b"message_stop" in await reading.rest()
    await pinged.until(lambda: len(pinged.ended) == 2)
    assert sorted(one.state for one in pinged.ended) == ["cancelled", "done"]


@pytest.mark.parametrize("api", APIS)
async def test_a_client_that_goes_away_closes_the_connection_to_the_host(proxy, server, api):
    play = Holding(piece("one "))
    server.play(play)

    async with proxy.streaming(api) as reading:
        await reading.until(b"one ")
    await happened(play.gone)

    kept = await record(proxy)
    assert (kept.state, kept.status) == ("cancelled", 499)
    assert proxy.shop.upstreams.limits()["up0"].busy == 0
    assert proxy.shop.records.open == {}


@pytest.mark.parametrize("end", ["the client goes", "the host breaks off"])
async def test_half_an_answer_is_paid_for_as_well(proxy, server, end):
    begun = piece("one two three four five six ")
    play = Holding(begun) if end == "the client goes" else breaks(begun)
    server.play(play)

    async with proxy.streaming("anthropic", "word " * 100) as reading:
        await reading.until(b"one ")
        if end == "the host breaks off":
            await reading.rest()

    kept = await record(proxy)
    assert kept.is_estimate
    assert 50 < kept.input < 300
    assert 3 < kept.output < 20
    assert kept.cost
    assert proxy.shop.records.costs()["cost"] >= kept.cost


@pytest.mark.parametrize("stream", [True, False])
async def test_so_does_one_that_waits_for_the_answer_to_begin(proxy, server, stream):
    play = Holding()
    server.play(play)

    asking = asyncio.create_task(proxy.ask("openai-chat", stream=stream))
    await happened(play.held)
    asking.cancel()
    await happened(play.gone)

    assert (await record(proxy)).state == "cancelled"


async def test_one_that_goes_away_while_it_waits_for_its_turn_leaves_the_queue(server):
    play = Holding()
    server.play(play, talks("second"))
    async with proxied(hosts(server), parallel=1) as proxy:
        limits = proxy.shop.upstreams.find("up0:m").limits
        first = asyncio.create_task(proxy.ask("openai-chat"))
        await happened(play.held)
        second = asyncio.create_task(proxy.ask("openai-chat", stream=True))
        await proxy.until(lambda: limits.queue_length == 1)
        second.cancel()
        await proxy.until(lambda: limits.queue_length == 0)
        play.let_go.set()

        assert (await first).status_code == 200
        assert (await proxy.ask("openai-chat")).status_code == 200
        await proxy.until(lambda: len(proxy.ended) == 3)
        assert limits.busy == 0
        assert [one.state for one in proxy.ended] == ["cancelled", "done", "done"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "failure",
    [fails(500), fails(529), fails(429), breaks(b": nothing yet\n\n")],
    ids=["500", "529", "429", "cut"],
)
async def test_before_the_first_word_a_host_is_asked_again(proxy, server, stream, failure):
    server.play(failure, talks("Here it is."))

    response = await proxy.ask("openai-responses", stream=stream)

    assert response.status_code == 200
    assert "Here it is." in response.text
    assert len(server.asked) == 2
    assert (await record(proxy)).retries == 1


async def test_it_is_asked_no_more_often_than_the_settings_say(proxy, server):
    server.play(fails(500))

    response = await proxy.ask("openai-chat", stream=True)

    assert response.status_code == 502
    assert len(server.asked) == 3
    kept = await record(proxy)
    assert (kept.retries, kept.status, kept.state) == (2, 502, "failed")


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "begun",
    [
        piece("one "),
        piece("one ") + call_piece("", name="Read"),
        piece("one ") + call_piece('{"path": "a', name="Read"),
    ],
    ids=["words", "a call's name", "half a call"],
)
@pytest.mark.parametrize("cleanly", [True, False], ids=["ends", "breaks"])
async def test_after_the_first_word_it_is_never_asked_again_and_the_answer_ends_with_an_error(
    proxy, server, other, api, begun, cleanly
):
    server.play(breaks(begun, cleanly=cleanly), talks("never"))
    other.play(talks("never"))

    response = await proxy.ask(api, stream=True, model="chain")

    assert response.status_code == 200
    assert BROKEN[api] in response.content
    assert LAST.get(api, b'"finishReason"') not in response.content
    assert len(server.asked) == 1
    assert other.asked == []
    assert values(response.content)
    kept = await record(proxy)
    assert (kept.state, kept.error, kept.status) == ("failed", "server", 502)


async def test_half_a_call_that_nobody_was_told_of_can_be_asked_for_again(proxy, server):
    server.play(breaks(call_piece('{"path": "a', name="Read")), talks("Here it is."))

    response = await proxy.ask("gemini", stream=True)  # its calls are told whole

    assert response.status_code == 200
    assert BROKEN["gemini"] not in response.content
    assert "Here it is." in response.text
    assert "Read" not in response.text


NONSENSE = {
    "no JSON": b"data: {this is not\n\n",
    "bytes": b"data: \xff\xfe\n\n",
    "half an event": b'data: {"choices": [{"delta": {"cont\n\n',
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
async def test_nonsense_within_a_stream_ends_it_with_an_error(proxy, server, api, nonsense):
    seen = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        await exchange.chunk(piece("one "))
        await asyncio.wait_for(seen.wait(), LIMIT_SECONDS)
        await exchange.chunk(nonsense + words("rest"))
        await exchange.end()

    server.play(play)
    async with proxy.streaming(api) as reading:
        await reading.until(b"one ")
        seen.set()
        whole = await reading.rest()

    assert BROKEN[api] in whole
    assert LAST.get(api, b"STOP") not in whole
    assert values(whole)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "play",
    [
        breaks(piece("one ")),
        breaks(piece("one "), cleanly=True),
        breaks(call_piece('{"path": "a', name="Read")),
        breaks(piece("one ") + b"data: {no\n\n" + words("x"), cleanly=True),
    ],
    ids=["cut", "ends early", "half a call", "nonsense"],
)
async def test_an_answer_in_one_piece_is_whole_or_an_error(unrepeated, server, api, play):
    server.play(play)

    response = await unrepeated.ask(api)

    assert response.status_code == 502
    assert "error" in response.json()


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(fails(429, retry_after="30"), id="limit"),
        pytest.param(fails(503), id="overloaded"),
        pytest.param(fails(401), id="wrong-key"),
        pytest.param(fails(404, "The model m does not exist."), id="no-model"),
        pytest.param(fails(413), id="too-long"),
        pytest.param(fails(404, "nothing here"), id="wrong-address"),
        pytest.param(fails(302, location="http://127.0.0.1:1/"), id="elsewhere"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_when_a_model_cannot_answer_the_next_one_does(proxy, server, other, failure, stream):
    server.play(failure)
    other.play(talks("from the second"))

    response = await proxy.ask("anthropic", stream=stream, model="chain")

    assert response.status_code == 200
    assert "from the second" in response.text
    assert response.headers["x-ferrule-model"] == "up1:m"
    kept = await record(proxy)
    assert (kept.model, kept.tried, kept.status) == ("up1:m", ("up0:m",), 200)


async def test_a_host_that_answers_with_a_page_gives_way_too(proxy, server, other):
    async def page(exchange: Exchange) -> None:
        await exchange.whole(200, "<html>Log in</html>", "text/html")

    server.play(page)
    other.play(talks("from the second"))

    assert "from the second" in (await proxy.ask("gemini", model="chain")).text
    assert (await proxy.ask("gemini", model="asked")).status_code == 502


async def test_a_wrong_request_is_wrong_for_all_and_no_other_model_is_asked(proxy, server, other):
    server.play(fails(400, "Your request is wrong."))
    other.play(talks("never"))

    response = await proxy.ask("openai-chat", model="chain")

    assert response.status_code == 400
    assert "Your request is wrong." in response.json()["error"]["message"]
    assert other.asked == []


async def test_when_all_fail_the_client_hears_of_what_will_pass(proxy, server, other):
    server.play(fails(429, retry_after="30"))
    other.play(fails(401))

    response = await proxy.ask("openai-chat", stream=True, model="chain")

    assert response.status_code == 429
    assert response.headers["retry-after"] == "30"
    kept = await record(proxy)
    assert kept.tried == ("up0:m",)


STATUSES: list[tuple[int, dict[str, str], dict[str, int], str]] = [
    (400, {}, {"anthropic": 400, "openai-chat": 400, "openai-responses": 400, "gemini": 400}, "bad"),
    (401, {}, {"anthropic": 403, "openai-chat": 403, "openai-responses": 403, "gemini": 403}, "forbidden"),
    (413, {}, {"anthropic": 400, "openai-chat": 400, "openai-responses": 400, "gemini": 400}, "too-long"),
    (429, {}, {"anthropic": 429, "openai-chat": 429, "openai-responses": 429, "gemini": 429}, "limit"),
    (500, {}, {"anthropic": 502, "openai-chat": 502, "openai-responses": 502, "gemini": 502}, "server"),
    (503, {}, {"anthropic": 529, "openai-chat": 503, "openai-responses": 503, "gemini": 503}, "overloaded"),
]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("status", "headers", "expected", "kind"), STATUSES, ids=[str(row[0]) for row in STATUSES])
async def test_the_failures_of_hosts_have_the_clients_status(proxy, server, api, status, headers, expected, kind):
    server.play(fails(status, "So it is.", **headers))

    response = await proxy.ask(api, stream=True)

    assert response.status_code == expected[api]
    assert "So it is." in response.text
    assert response.headers.get("x-should-retry") == (None if kind in {"limit", "server", "overloaded"} else "false")
    assert (await record(proxy)).error == kind


async def test_a_conversation_that_is_too_long_is_said_in_the_clients_words(proxy, server):
    server.play(fails(413))

    said = {api: (await proxy.ask(api)).text for api in APIS}

    assert "prompt is too long" in said["anthropic"]
    assert "context_length_exceeded" in said["openai-chat"]
    assert "context_length_exceeded" in said["openai-responses"]
    assert "exceeds the maximum number of tokens" in said["gemini"]


async def test_errors_of_a_list_of_events_are_members_of_a_list(proxy, server):
    path = ROUTES["gemini"].path(True).replace("?alt=sse", "")
    body, headers = ask("gemini", "Hello.", stream=True), ROUTES["gemini"].headers

    server.play(fails(400))
    refused = await proxy.post(path, body, headers)
    server.play(breaks(piece("one ")))
    broken = await proxy.post(path, body, headers)

    assert (refused.status_code, refused.json()[0]["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert broken.status_code == 200
    assert [next(iter(row)) for row in broken.json()] == ["candidates", "error"]


async def test_a_host_that_falls_silent_is_given_up(server):
    play = Holding(piece("one "))
    server.play(play)
    models = msgspec.structs.replace(hosts(server), quiet_seconds=0.05)
    async with proxied(models) as proxy:
        response = await proxy.ask("anthropic", stream=True)

    assert BROKEN["anthropic"] in response.content
    assert b"one " in response.content
    assert b"message_stop" not in response.content


@pytest.mark.parametrize("api", APIS)
async def test_a_proxy_that_is_ended_ends_its_streams_with_an_error(server, api):
    play = Holding(piece("one "))
    server.play(play)
    async with proxied(hosts(server)) as proxy, proxy.streaming(api) as reading:
        await reading.until(b"one ")
        proxy.stop()
        whole = await reading.rest()

    assert BROKEN[api] in whole
    assert b"being ended" in whole
    assert LAST.get(api, b"STOP") not in whole
    assert proxy.shop.records.open == {}


async def test_three_hundred_streams_at_once_each_get_their_own_answer(server):
    async def echo(exchange: Exchange) -> None:
        said = exchange.value["messages"][-1]["content"]
        await exchange.begin()
        for at in range(3):
            await exchange.chunk(piece(f"{said}-{at} "))
        await exchange.chunk(words("end"))
        await exchange.end()

    server.play(echo)
    async with proxied(hosts(server), ping_seconds=0.05) as proxy:

        async def one(number: int) -> bool:
            response = await proxy.ask(APIS[number % 4], f"n{number}", stream=True)
            return response.status_code == 200 and all(f"n{number}-{at} " in response.text for at in range(3))

        assert all(await asyncio.gather(*map(one, range(300))))
        await proxy.until(lambda: len(proxy.ended) == 300)
        limits = proxy.shop.upstreams.find("up0:m").limits
        assert (limits.busy, limits.queue_length, proxy.shop.records.open) == (0, 0, {})


@pytest.mark.parametrize("api", ["anthropic", "openai-responses", "gemini"])
async def test_what_a_host_says_in_its_own_api_reaches_every_other(servers, api):
    spoken = BY_API[api]
    server = servers[0]

    async def play(exchange: Exchange) -> None:
        await exchange.stream(spoken.stream)

    server.play(play)
    async with proxied(hosts(server, api=api)) as proxy:
        for client in APIS:
            response = await proxy.ask(client, stream=True)
            assert response.status_code == 200
            assert BROKEN[client] not in response.content
            assert LAST.get(client, b"STOP") in response.content
