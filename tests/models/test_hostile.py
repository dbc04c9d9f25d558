"""Hosts that mean harm or are broken: everything is bounded, nothing hangs, and every failure says what it was."""

import asyncio
import gc
import gzip
import os
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.core.content import Text
from ferrule.models import ModelError, connection, http
from ferrule.models import connection as asking_module

from .conftest import asking, heard
from .server import WAIT_SECONDS, Exchange, serving
from .spoken import ANTHROPIC, CHAT

OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
STREAM = ANTHROPIC.stream
LENGTH = b"content-length: %d\r\n\r\n"
HALF = STREAM[: len(STREAM) // 2]
END = b"0\r\n\r\n"


def chunked(data: bytes, more: bytes = b"") -> bytes:
    return b"%x%b\r\n%b\r\n" % (len(data), more, data)


def says(*pieces: bytes, stay: bool = False):
    """Sends this, and hangs up unless it is to stay."""

    async def play(exchange: Exchange) -> None:
        for piece in pieces:
            await exchange.send(piece)
        if stay:
            await exchange.gone()
        exchange.writer.close()

    return play


async def streaming(exchange: Exchange) -> None:
    await exchange.stream(STREAM)


CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
FINE = [
    pytest.param(says(OK + LENGTH % len(STREAM) + STREAM), id="closed exactly at the end"),
    pytest.param(says(OK + b"\r\n" + STREAM), id="no length"),
    pytest.param(says(b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + STREAM), id="HTTP/1.0"),
    pytest.param(says(b"HTTP/1.1 100 Continue\r\n\r\n", OK + LENGTH % len(STREAM) + STREAM), id="100"),
    pytest.param(says(b"HTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" * 20, CHUNKED + chunked(STREAM) + END), id="103"),
    pytest.param(says(CHUNKED + chunked(STREAM, b';a="b";c') + END), id="extensions of chunks"),
    pytest.param(says(CHUNKED + chunked(STREAM) + b"0\r\nx-trailer: y\r\n\r\n"), id="trailers"),
    pytest.param(says(CHUNKED + chunked(STREAM) + END + b"HTTP/1.1 500 X\r\n\r\nevil"), id="garbage behind"),
    pytest.param(says(CHUNKED + chunked(STREAM), stay=True), id="no end of the body, and nobody hangs up"),
    pytest.param(says(OK + LENGTH % (len(STREAM) + 9) + STREAM), id="a length that is too long"),
    pytest.param(says(CHUNKED + chunked(STREAM + STREAM) + END), id="events after the end"),
    pytest.param(says(CHUNKED + chunked(STREAM.replace(b"\n", b"\r")) + END), id="returns only"),
    pytest.param(says(CHUNKED + chunked(STREAM.replace(b"\n", b"\r\n")) + END), id="returns and line feeds"),
    pytest.param(says(CHUNKED + chunked(b"\xef\xbb\xbf: hi\n\n" + STREAM) + END), id="a mark and a comment"),
    pytest.param(says(CHUNKED + chunked(STREAM.removesuffix(b"\n\n")) + END), id="no blank line at the end"),
    pytest.param(says(CHUNKED + chunked(b"data: \x00\xff\x00\n\n" + STREAM) + END), id="an event of no text"),
    pytest.param(says(CHUNKED + b"".join(chunked(bytes([one])) for one in STREAM) + END), id="a byte per chunk"),
]


@pytest.mark.parametrize("play", FINE)
async def test_what_is_odd_but_whole_is_heard_and_the_next_question_is_answered_too(server, asker, play):
    server.play(play, streaming)
    model = asker.model(ANTHROPIC)

    for _ in range(2):
        async with asyncio.timeout(WAIT_SECONDS):
            again, deltas = await heard(model)
        assert again == []
        assert deltas[-1].reason == "tools"
    assert len(server.asked) == 2


async def _endless_headers(exchange: Exchange) -> None:
    await exchange.send(OK)
    for _ in range(100):
        await exchange.send(b"x-more: " + b"y" * 10_000 + b"\r\n")
    await exchange.gone()


BAD = [
    pytest.param(_endless_headers, "network", "no HTTP", id="headers without end"),
    pytest.param(says(OK + b"x: " + b"y" * 1_000_000 + b"\r\n\r\n"), "network", "no HTTP", id="a header of a megabyte"),
    pytest.param(says(b"HTTP/1.1 100 Continue\r\n\r\n" * 2000, stay=True), "network", "no answer", id="100 for ever"),
    pytest.param(says(b"HTTP/1.1 101 Switch\r\nupgrade: x\r\n\r\n", stay=True), "network", "no", id="101"),
    pytest.param(says(OK + LENGTH % len(HALF) + HALF), "cut", "broke off", id="a length that is too short"),
    pytest.param(says(OK + LENGTH % len(STREAM) + HALF), "cut", "broke off", id="cut before its length"),
    pytest.param(says(CHUNKED + b"ffffffffffffffffffff\r\nx"), "cut", "broke", id="an overflowing size"),
    pytest.param(says(CHUNKED + b"-5\r\nx", stay=True), "cut", "broke off", id="a size below nothing"),
    pytest.param(says(CHUNKED + b"5;" + b"x" * 200_000, stay=True), "cut", "broke off", id="an extension for ever"),
    pytest.param(
        says(CHUNKED + chunked(HALF) + b"0\r\n" + b"x: y\r\n" * 20_000, stay=True),
        "cut",
        "broke",
        id="trailers for ever",
    ),
    pytest.param(says(OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nabcdef"), "network", "no", id="two lengths"),
    pytest.param(says(OK + b"content-length: -1\r\n\r\n"), "network", "no HTTP", id="a length below nothing"),
    pytest.param(says(OK + b"transfer-encoding: gzip\r\n\r\n", stay=True), "network", "no HTTP", id="packed transfer"),
    pytest.param(
        says(OK + b"content-encoding: gzip\r\n\r\n" + gzip.compress(STREAM)), "bad", "packed its answer", id="gzip"
    ),
    pytest.param(says(OK + b"content-encoding: br\r\n\r\nxx", stay=True), "bad", "packed its answer", id="br"),
    pytest.param(says(b"HTTP/1.1 204 No\r\n\r\n"), "bad", "HTTP 204", id="204"),
    pytest.param(
        says(b"HTTP/1.1 307 Go\r\nlocation: https://evil.example/\r\ncontent-length: 0\r\n\r\n"),
        "bad",
        "not followed",
        id="elsewhere",
    ),
    pytest.param(says(b"\x16\x03\x01\x02\x00\x01", stay=True), "network", "no HTTP", id="TLS where none is meant"),
    pytest.param(says(b"\x00" * 100_000, stay=True), "network", "no HTTP", id="zeros"),
    pytest.param(says(b"HTTP/9.9 200 OK\r\n\r\n"), "network", "another version", id="another version"),
    pytest.param(says(b"HTTP/1.1 99999999999 OK\r\n\r\n"), "network", "no HTTP", id="no status"),
    pytest.param(says(b"HTTP/1.1 200 OK\r\na b: c\r\n\r\n"), "network", "no HTTP", id="no header"),
    pytest.param(says(b"HTTP/1.1 200 OK\r\na: b\x00c\r\n\r\n"), "network", "no HTTP", id="a header with a zero"),
    pytest.param(says(CHUNKED + chunked(b"data: hi\n\n" * 9) + END), "cut", "broke off", id="events that say nothing"),
    pytest.param(says(CHUNKED + END), "cut", "broke off", id="an empty body"),
    pytest.param(says(b""), "network", "without an answer", id="nothing at all"),
]


@pytest.mark.parametrize(("play", "kind", "words"), BAD)
async def test_what_is_broken_is_one_plain_sentence_and_a_closed_connection(server, asker, play, kind, words):
    server.play(play)

    async with asyncio.timeout(WAIT_SECONDS):
        with pytest.raises(ModelError) as caught:
            await heard(asker.model(ANTHROPIC, retries=0))

    assert (caught.value.kind, words in str(caught.value)) == (kind, True), str(caught.value)
    assert len(str(caught.value)) < 800
    assert str(caught.value).isprintable()
    # Without the model being closed: a connection that is of no use does not stay.
    await server.left()


SLOW = [
    pytest.param([b""], id="nothing"),
    pytest.param([bytes([one]) for one in OK[:40]], id="one byte of the head now and then"),
    pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n"] * 40, id="nothing but what is no answer"),
]


@pytest.mark.parametrize("pieces", SLOW)
async def test_a_head_that_comes_too_slowly_is_not_waited_for(server, asker, pieces):
    """However it comes, all of it has to be there within the time that a host may be silent."""
    stopped = asyncio.Event()

    async def play(exchange: Exchange) -> None:
        for piece in pieces:
            await exchange.send(piece)
            try:
                async with asyncio.timeout(0.1):
                    await exchange.gone()
            except TimeoutError:
                continue
            stopped.set()
            return
        await exchange.gone()
        stopped.set()

    server.play(play)
    async with asyncio.timeout(WAIT_SECONDS):
        with pytest.raises(ModelError, match=r"said nothing for 0\.3 seconds"):
            await heard(asker.model(ANTHROPIC, retries=0, quiet_seconds=0.3))
        await stopped.wait()


async def test_a_refusal_that_comes_too_slowly_is_not_waited_for(server, asker, monkeypatch):
    monkeypatch.setattr("ferrule.models.http._REFUSAL_SECONDS", 0.2)
    server.play(says(b"HTTP/1.1 400 No\r\ncontent-length: 99\r\n\r\nwell", stay=True))

    async with asyncio.timeout(WAIT_SECONDS):
        with pytest.raises(ModelError, match="HTTP 400"):
            await heard(asker.model(ANTHROPIC))
        await server.left()


async def _no_event(exchange: Exchange) -> None:
    await exchange.begin()
    for _ in range(1600):
        await exchange.chunk(b"x" * 65_536)
    await exchange.gone()


async def _one_event(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.chunk(b"data: ")
    for _ in range(1600):
        await exchange.chunk(b"y\x00" * 32_768)
    await exchange.gone()


async def _comments(exchange: Exchange) -> None:
    await exchange.begin()
    for _ in range(1600):
        await exchange.chunk((b": " + b"x" * 4_092 + b"\n\n") * 16)
    await exchange.gone()


async def _refusal(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 500 No\r\ncontent-type: text/plain\r\n\r\n")
    for _ in range(1600):
        await exchange.send(b"z" * 65_536)
    await exchange.gone()


ENDLESS = [
    pytest.param(_no_event, "bad", "longer than", id="no event"),
    pytest.param(_one_event, "bad", "longer than", id="one event"),
    pytest.param(_comments, "bad", "nothing of an answer", id="comments"),
    pytest.param(_refusal, "server", "HTTP 500", id="a refusal"),
]


@pytest.mark.parametrize(("play", "kind", "words"), ENDLESS)
async def test_a_hundred_megabytes_that_say_nothing_are_neither_kept_nor_read_to_the_end(
    server, asker, play, kind, words
):
    server.play(play)
    model = asker.model(ANTHROPIC, retries=0)
    tracemalloc.start()
    try:
        async with asyncio.timeout(60):
            with pytest.raises(ModelError) as caught:
                await heard(model)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (caught.value.kind, words in str(caught.value)) == (kind, True), str(caught.value)
    # An event may have 32 MB, and is copied once or twice on its way.
    assert peak < 150_000_000
    await server.left()


async def test_what_comes_behind_an_answer_is_not_the_answer_to_the_next_question(server, asker):
    """A host, or somebody on the way, that says an answer ahead of its question is not believed."""
    forged = CHUNKED + chunked(STREAM.replace(b"Gr", b"XX")) + END
    server.play(says(CHUNKED + chunked(STREAM) + END + forged, stay=True), streaming)
    model = asker.model(ANTHROPIC)

    said = [await asker.said(model) for _ in range(2)]

    assert [one.parts for one in said] == [ANTHROPIC.parts] * 2
    assert server.connections == 2


async def test_bytes_that_are_no_text_are_mended_where_they_are_words(server, asker):
    stream = CHAT.stream.replace("日".encode(), b"\xff\xfe")
    server.play(says(CHUNKED + chunked(stream) + END))

    said = await asker.said(asker.model(CHAT))

    assert "\ufffd" in "".join(part.text for part in said.parts if isinstance(part, Text))


async def test_a_connection_that_was_closed_meanwhile_is_replaced_and_counts_as_nothing(server, asker):
    """The host hangs up just when it is asked, before it says a word: that is no failure of an answer."""

    async def hangs_up(exchange: Exchange) -> None:
        exchange.cut()

    server.play(streaming, hangs_up, streaming)
    model = asker.model(ANTHROPIC, retries=0)
    await asker.said(model)

    assert (await heard(model))[0] == []
    assert len(server.asked) == 3
    assert server.connections == 2


async def test_a_host_that_has_begun_to_answer_is_not_asked_again_in_silence(server, asker):
    """A byte of an answer came, so the question was heard: asking it twice is for the one who counts."""
    server.play(streaming, says(b"HTTP/1.1 2"), streaming)
    model = asker.model(ANTHROPIC, retries=1)
    await asker.said(model)

    assert len((await heard(model))[0]) == 1
    assert len(server.asked) == 3


async def test_a_fresh_connection_that_is_hung_up_on_is_a_failure_that_counts(server, asker):
    server.play(says(b""))

    with pytest.raises(ModelError, match="without an answer"):
        await heard(asker.model(ANTHROPIC, retries=0))
    assert len(server.asked) == 1


@settings(max_examples=120, deadline=None)
@given(
    whole=st.sampled_from([CHUNKED + chunked(HALF) + chunked(STREAM[len(HALF) :]) + END, OK + LENGTH % 400 + STREAM]),
    changes=st.lists(st.tuples(st.integers(0, 3000), st.binary(max_size=4), st.integers(0, 9)), min_size=1, max_size=4),
)
def test_whatever_becomes_of_an_answer_on_its_way_it_is_an_answer_or_one_plain_sentence(whole, changes):
    data = bytearray(whole)
    for at, put, gone in changes:
        place = at % len(data) if data else 0
        data[place : place + gone] = put

    async def ask() -> str:
        async with serving() as server, asking(server) as asker, asyncio.timeout(WAIT_SECONDS):
            server.play(says(bytes(data)))
            try:
                _, deltas = await heard(asker.model(ANTHROPIC, retries=0))
            except ModelError as error:
                said = str(error)
            else:
                said = type(deltas[-1]).__name__
            await server.left()
            return said

    said = asyncio.run(ask())
    assert said == "AnswerEnd" or (said.startswith(f"{ANTHROPIC.host}:{ANTHROPIC.model} ") and said.isprintable())
    assert len(said) < 800


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


async def test_no_failure_leaves_a_socket():
    async def round_of_all() -> None:
        async with serving() as server, asking(server) as asker:
            plays: list[Any] = [one.values[0] for one in (*BAD, *FINE)]
            for play in plays:
                server.play(play)
                server.asked.clear()
                async with asyncio.timeout(WAIT_SECONDS):
                    try:
                        await heard(asker.model(ANTHROPIC, retries=0))
                    except ModelError:
                        continue
            for model in asker.made:
                await model.close()
            await server.left()
        await asyncio.sleep(0)
        gc.collect()

    await round_of_all()
    before = open_files()
    await round_of_all()
    assert open_files() <= before


def test_the_bounds_are_what_they_are_said_to_be():
    assert asking_module._HEAD_BYTES == 1 << 16
    assert http.MOST_SILENT_BYTES == 64 * 1024 * 1024
    assert connection._IDLE == 8
