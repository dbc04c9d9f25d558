"""The line itself: secured and verified, through proxies, and closed when it is no longer needed."""

import asyncio

import pytest

from ferrule.models.model import ModelError
from ferrule.wire.delta import Ended

from .certificates import certificate
from .conftest import asking, heard, question
from .server import WAIT_SECONDS, Exchange, serving
from .spoken import ALL, ANTHROPIC

APIS = [pytest.param(one, id=one.api) for one in ALL]


async def streaming(exchange: Exchange) -> None:
    await exchange.stream(ANTHROPIC.stream)


@pytest.mark.parametrize("spoken", APIS)
async def test_a_secured_line_carries_turns_over_one_connection(spoken, tmp_path, monkeypatch):
    public, context = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", public)

    async def play(exchange: Exchange) -> None:
        await exchange.stream(spoken.stream)

    async with serving(ssl=context) as server, asking(server) as asker:
        server.play(play)
        model = asker.model(spoken)
        said = [await asker.said(model) for _ in range(3)]
        assert [one.parts for one in said] == [spoken.parts] * 3
        assert server.connections == 1


async def test_a_large_body_goes_over_a_secured_line(tmp_path, monkeypatch):
    from ferrule.wire.turn import Text, Turn

    public, context = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", public)
    async with serving(ssl=context) as server, asking(server) as asker:
        server.play(streaming)
        await asker.said(asker.model(ANTHROPIC), question(Turn("user", (Text("x" * 3_000_000),))))
        assert len(server.asked[0].body) > 3_000_000


async def test_a_certificate_that_nobody_vouches_for_ends_it_at_once(tmp_path):
    _, context = certificate(tmp_path)
    async with serving(ssl=context) as server, asking(server) as asker:
        server.play(streaming)
        with pytest.raises(ModelError, match="certificate cannot be trusted") as caught:
            await asker.said(asker.model(ANTHROPIC))
        assert caught.value.kind == "network"
        assert asker.sleeps.seconds == []
        assert server.asked == []


async def test_a_model_that_is_closed_leaves_no_connection(server, asker):
    gone = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        await exchange.stream(ANTHROPIC.stream)
        await exchange.gone()
        gone.set()

    server.play(play)
    model = asker.model(ANTHROPIC)
    await asker.said(model)
    await model.close()

    await asyncio.wait_for(gone.wait(), WAIT_SECONDS)


BROKEN = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="another protocol"),
    pytest.param(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", id="no chunk"),
    pytest.param(b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 300_000, id="endless header"),
    pytest.param(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 10\r\n\r\ndata", id="short body"
    ),
]


@pytest.mark.parametrize("data", BROKEN)
async def test_what_is_no_http_is_a_failure_that_may_pass(server, asker, data):
    async def play(exchange: Exchange) -> None:
        await exchange.send(data)
        exchange.writer.close()

    server.play(play, streaming)

    again, deltas = await heard(asker.model(ANTHROPIC))

    assert len(again) == 1
    assert deltas[-1].reason == "tools"


@pytest.mark.parametrize("at", range(8))
async def test_an_end_that_comes_in_two_parts_keeps_nobody_waiting_and_the_connection_open(server, asker, at):
    told = asyncio.Event()
    end = b"\r\n0\r\n\r\n"

    async def play(exchange: Exchange) -> None:
        await exchange.begin()
        data = b"%x\r\n%b" % (len(ANTHROPIC.stream), ANTHROPIC.stream)
        await exchange.send(data + end[:at])
        await asyncio.wait_for(told.wait(), WAIT_SECONDS)
        await exchange.send(end[at:])

    server.play(play)
    model = asker.model(ANTHROPIC)
    async with asyncio.timeout(WAIT_SECONDS):
        for _ in range(2):
            told.clear()
            async for delta in model.ask(question()):
                if isinstance(delta, Ended):
                    told.set()
            # The rest is read in the background, which gets its turn while a tool would run.
            while model._line._finishing:
                await asyncio.sleep(0)

    assert server.connections == 1
