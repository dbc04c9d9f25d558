"""The line itself: secured and verified, through proxies, and closed when it is no longer needed."""

import asyncio
import contextlib
import socket
import threading

import pytest

from ferrule.core.content import Text
from ferrule.models import ModelError
from ferrule.models import connection as line
from ferrule.wire import AnswerEnd, Turn

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
                if isinstance(delta, AnswerEnd):
                    told.set()
            # The rest is read in the background, which gets its turn while a tool would run.
            while model._line._finishing:
                await asyncio.sleep(0)

    assert server.connections == 1


@pytest.fixture
def names(monkeypatch):
    """What the machine's own book of names says, as a test wants it, and in which threads it was asked."""
    asked: list[int] = []
    answers: dict[str, list[str]] = {}

    def look(host, port, *_, **__):
        asked.append(threading.get_ident())
        if host not in answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        kinds = {True: socket.AF_INET6, False: socket.AF_INET}
        return [
            (kinds[":" in one], socket.SOCK_STREAM, 6, "", (one, port, 0, 0) if ":" in one else (one, port))
            for one in answers[host]
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look)
    return answers, asked


async def test_a_machine_of_which_the_first_address_does_not_answer_is_asked_at_the_next(server, asker, names):
    answers, asked = names
    answers["localhost"] = ["::1", "127.0.0.1"]
    server.play(streaming)

    again, deltas = await heard(asker.model(ANTHROPIC, url=server.url.replace("127.0.0.1", "localhost")))

    assert again == []
    assert isinstance(deltas[-1], AnswerEnd)
    # Nobody else waits while a name is looked up.
    assert asked
    assert threading.get_ident() not in asked


async def test_a_name_that_nobody_knows_is_said_with_the_name(asker, names):
    with pytest.raises(ModelError, match=r"the name no-such\.localhost is not known") as caught:
        await heard(asker.model(ANTHROPIC, url="http://no-such.localhost:1", retries=0))
    assert caught.value.kind == "network"


async def test_a_machine_that_answers_at_none_of_its_addresses_says_why_once(server, asker, names):
    answers, _ = names
    listening = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()
    answers["two.localhost"] = ["::1", "127.0.0.1"]

    with pytest.raises(ModelError) as caught:
        await heard(asker.model(ANTHROPIC, url=f"http://two.localhost:{port}", retries=0))

    assert str(caught.value).count("connection refused") == 1
    assert "Errno" not in str(caught.value)


async def test_many_at_once_have_a_connection_each_and_few_stay_open(server, asker, monkeypatch):
    everybody = asyncio.Barrier(12)

    async def play(exchange: Exchange) -> None:
        await everybody.wait()
        await exchange.stream(ANTHROPIC.stream)

    server.play(play)
    model = asker.model(ANTHROPIC)
    beside = [model.beside(f"c{at}") for at in range(11)]
    monkeypatch.setattr(line, "_IDLE_SECONDS", 0.05)

    async with asyncio.timeout(WAIT_SECONDS):
        said = await asyncio.gather(*(asker.said(one) for one in (model, *beside)))
        assert [one.parts for one in said] == [ANTHROPIC.parts] * 12
        assert server.connections == 12
        assert len(model._line._idle) <= 8
        # Nobody closes the model: those that nobody needs are closed after a while.
        await server.left()
    assert model._line._open == set()


@pytest.mark.parametrize("when", ["before the answer", "in its middle"])
async def test_whoever_asks_while_the_model_is_closed_hears_so_at_once(server, asker, when):
    reached = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        if when == "in its middle":
            await exchange.begin()
            await exchange.chunk(ANTHROPIC.stream[:700])
        reached.set()
        await exchange.gone()

    server.play(play)
    model = asker.model(ANTHROPIC)
    asks = [asyncio.create_task(heard(one)) for one in (model, model.beside("b"), model.beside("c"))]
    async with asyncio.timeout(WAIT_SECONDS):
        while len(server.asked) < 3:
            reached.clear()
            await reached.wait()
        await model.close()
        failed = await asyncio.gather(*asks, return_exceptions=True)
        await server.left()

    assert [getattr(one, "kind", one) for one in failed] == ["cut"] * 3
    assert all("was closed while it was asked" in str(one) for one in failed)
    assert asker.sleeps.seconds == []
    with pytest.raises(ModelError, match="was closed"):
        await heard(model)


async def test_a_connection_that_is_opened_while_the_model_is_closed_does_not_stay(server, asker, names):
    answers, _ = names
    answers["slow.localhost"] = ["127.0.0.1"]
    model = asker.model(ANTHROPIC, url=server.url.replace("127.0.0.1", "slow.localhost"))
    server.play(streaming)
    ask = asyncio.create_task(heard(model))
    await asyncio.sleep(0)
    await model.close()

    with pytest.raises(ModelError, match="closed"):
        await asyncio.wait_for(ask, WAIT_SECONDS)
    await server.left()
    assert server.asked == []


async def test_a_host_that_refuses_before_it_has_read_everything_is_heard():
    """It neither reads on nor hangs up: what it said is not waited past."""
    refused = b"HTTP/1.1 413 Too large\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(refused)
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(left.wait(), WAIT_SECONDS)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening, serving() as server, asking(server) as asker, asyncio.timeout(WAIT_SECONDS):
        model = asker.model(ANTHROPIC, url=f"http://127.0.0.1:{port}")
        with pytest.raises(ModelError) as caught:
            await heard(model, question(Turn("user", (Text("x" * 30_000_000),))))
        left.set()
        assert caught.value.kind == "too-long"
        # What was not sent is no beginning of the next question.
        assert model.line._idle == []
        listening.close()


async def test_a_line_that_nobody_uses_is_kept_alive_and_seen_to_be_dead(server, asker):
    """A router that forgets it says nothing: without this the next turn would wait for an answer that cannot come."""
    server.play(streaming)
    model = asker.model(ANTHROPIC)
    await asker.said(model)

    connection = model._line._idle[0]._stream._transport.get_extra_info("socket")

    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 15
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
