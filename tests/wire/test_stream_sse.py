"""Server-sent events: every way to write them is read, in whatever pieces the bytes come."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.wire.stream import DONE, EventReader, EventTooLongError, ServerSentEvent, event, text
from tests.rows import each_row

STREAMS = [
    pytest.param(b"data: a\n\n", [ServerSentEvent("", b"a")], id="line-feeds"),
    pytest.param(b"data: a\r\n\r\n", [ServerSentEvent("", b"a")], id="returns-and-line-feeds"),
    pytest.param(b"data: a\r\rdata: b\r\r", [ServerSentEvent("", b"a"), ServerSentEvent("", b"b")], id="returns"),
    pytest.param(
        b"data: a\r\n\ndata: b\n\r\n", [ServerSentEvent("", b"a"), ServerSentEvent("", b"b")], id="mixed-line-ends"
    ),
    pytest.param(b"event: ping\ndata: {}\n\n", [ServerSentEvent("ping", b"{}")], id="named"),
    pytest.param(b"data: {}\nevent: ping\n\n", [ServerSentEvent("ping", b"{}")], id="name-after-data"),
    pytest.param(b"data:a\n\n", [ServerSentEvent("", b"a")], id="no-space"),
    pytest.param(b"data:  a\n\n", [ServerSentEvent("", b" a")], id="two-spaces"),
    pytest.param(b"data: a\ndata: b\n\n", [ServerSentEvent("", b"a\nb")], id="data-in-lines"),
    pytest.param(b"event: x\ndata: a\ndata: b\n\n", [ServerSentEvent("x", b"a\nb")], id="named-data-in-lines"),
    pytest.param(b"data\n\n", [ServerSentEvent("", b"")], id="field-without-colon"),
    pytest.param(b": hello\n\ndata: a\n\n", [ServerSentEvent("", b"a")], id="comment"),
    pytest.param(b": hello\ndata: a\n: more\n\n", [ServerSentEvent("", b"a")], id="comments-around-data"),
    pytest.param(b"id: 7\nretry: 10\ndata: a\n\n", [ServerSentEvent("", b"a")], id="other-fields"),
    pytest.param(b"event: ping\n\ndata: a\n\n", [ServerSentEvent("", b"a")], id="a-name-holds-for-its-own-event-only"),
    pytest.param(
        b"\n\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n",
        [ServerSentEvent("", b"a"), ServerSentEvent("", b"b")],
        id="empty-lines",
    ),
    pytest.param(b"\xef\xbb\xbfdata: a\n\n", [ServerSentEvent("", b"a")], id="byte-order-mark"),
    pytest.param(b"data: a\n\ndata: [DONE]", [ServerSentEvent("", b"a"), DONE], id="no-blank-line-at-the-end"),
    pytest.param(b"data: a\n\ndata: [DONE]\n", [ServerSentEvent("", b"a"), DONE], id="half-a-blank-line-at-the-end"),
    pytest.param("data: ü€😀\n\n".encode(), [ServerSentEvent("", "ü€😀".encode())], id="text-of-many-bytes"),
    pytest.param(
        b"event: x\ndata: 1\n\nevent: x\ndata: 2\ndata: 3\n\nevent: x\ndata: 4\n\ndata: 5\n\n",
        [
            ServerSentEvent("x", b"1"),
            ServerSentEvent("x", b"2\n3"),
            ServerSentEvent("x", b"4"),
            ServerSentEvent("", b"5"),
        ],
        id="events-that-begin-alike",
    ),
    pytest.param(
        b"data: x\nevent: data: z\n\ndata: x\nevent: data: y\n\n",
        [ServerSentEvent("data: z", b"x"), ServerSentEvent("data: y", b"x")],
        id="a-name-that-looks-like-data",
    ),
    pytest.param(b"", [], id="nothing"),
    pytest.param(b"\xef\xbb", [], id="half-a-byte-order-mark"),
]


def whole(stream, pieces, **options):
    reader = EventReader(**options)
    return [one for piece in pieces(stream) for one in reader.feed(piece)] + reader.end()


@each_row(("stream", "expected"), STREAMS)
def test_every_way_to_write_an_event_is_read(stream, expected):
    assert whole(stream, lambda stream: [stream]) == expected


@each_row(("stream", "expected"), STREAMS)
def test_single_bytes_give_the_same_events(stream, expected):
    assert whole(stream, lambda stream: [stream[at : at + 1] for at in range(len(stream))]) == expected


@each_row(("stream", "expected"), STREAMS)
def test_two_pieces_give_the_same_events_wherever_the_cut_is(stream, expected):
    for at in range(len(stream) + 1):
        assert whole(stream, lambda stream, at=at: [stream[:at], b"", stream[at:]]) == expected


@given(st.data())
def test_any_pieces_of_any_bytes_give_the_same_events(data):
    lines = st.sampled_from([b"data: a", b"data: bc", b"event: x", b": no", b"data", b"", b"", b"\xff"])
    ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
    stream = b"".join(data.draw(st.lists(st.builds(bytes.__add__, lines, ends), max_size=12)))
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    edges = [0, *places, len(stream)]
    pieces = [stream[start:stop] for start, stop in pairwise(edges)]

    assert whole(stream, lambda _: pieces) == whole(stream, lambda stream: [stream])


@given(st.integers(1, 40), st.integers(1, 40))
def test_an_event_that_is_too_long_is_refused_in_whatever_pieces_it_comes(size, step):
    stream = b"data: ok\n\n" + b"data: " + b"x" * size + b"\n\n"

    def outcome(pieces):
        reader = EventReader(limit_bytes=20)
        found: list[ServerSentEvent | str] = []
        try:
            for piece in pieces:
                found += reader.feed(piece)
            found += reader.end()
        except EventTooLongError:
            found.append("too long")
        return found

    one, many = outcome([stream]), outcome([stream[at : at + step] for at in range(0, len(stream), step)])

    assert one == many == [ServerSentEvent("", b"ok"), "too long" if size > 14 else ServerSentEvent("", b"x" * size)]


def test_after_an_event_that_is_too_long_nothing_is_read():
    reader = EventReader(limit_bytes=10)
    with pytest.raises(EventTooLongError, match="longer than 10 bytes"):
        reader.feed(b"data: " + b"x" * 20)

    with pytest.raises(EventTooLongError):
        reader.feed(b"\n\ndata: a\n\n")


def test_a_named_event_is_written_with_its_name():
    """CLASP: WriteSSE, WriteEvent."""
    assert text(event("ping", {"type": "ping"})) == b'event: ping\ndata: {"type":"ping"}\n\n'


def test_an_event_without_a_name_is_written_without_one():
    """CLASP: WriteSSE_NoEvent."""
    assert text(DONE) == b"data: [DONE]\n\n"


@given(st.from_regex(r"[a-z_.]{0,10}", fullmatch=True), st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_written_is_read_back(name, words):
    one = event(name, {"text": words})

    assert EventReader().feed(text(one)) == [one]
