"""Frames: whole messages come out however the bytes were cut, and whatever is no frame ends it at once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.tools.lsp.protocol import Framing, Garbled, frame
from tests.rows import each_row

MESSAGES = st.lists(st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=5), max_size=5)


def test_a_message_is_framed_with_its_length_in_bytes():
    assert frame({"a": "é"}) == b'Content-Length: 10\r\n\r\n{"a":"\xc3\xa9"}'


@given(MESSAGES, st.data())
def test_messages_come_out_whole_however_they_are_cut(messages, data):
    stream = b"".join(map(frame, messages))
    framing, found, at = Framing(), [], 0
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream) - at))
        found += framing.feed(stream[at : at + size])
        at += size

    assert [json.loads(one) for one in found] == messages
    assert framing.rest == b""


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(b"Content-Length: 2\r\n\r\n", id="plain"),
        pytest.param(b"content-length:2\r\n\r\n", id="another-case"),
        pytest.param(
            b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n", id="type"
        ),
        pytest.param(b"Content-Length: 2\r\nContent-Type: x\r\n\r\n", id="type-behind"),
    ],
)
def test_a_header_may_look_like_this(header):
    assert Framing().feed(header + b"{}") == [b"{}"]
    slowly = Framing()
    assert [one for byte in header + b"{}" for one in slowly.feed(bytes([byte]))] == [b"{}"]


def test_an_empty_message_is_one():
    assert Framing().feed(b"Content-Length: 0\r\n\r\n" + frame(1)) == [b"", b"1"]


@each_row(
    ("data", "says"),
    [
        pytest.param(b"Hello there\n", "no message to its output: Hello there", id="words"),
        pytest.param(b"Warning: something\r\n\r\n", "no message to its output: Warning: something", id="like-a-header"),
        pytest.param(b"{}", "no message to its output: {}", id="json-without-a-header"),
        pytest.param(b"Content-Length: 2\n\n{}", "no message to its output", id="without-cr"),
        pytest.param(b"Content-Length: -2\r\n\r\n", "says no length: Content-Length: -2", id="negative"),
        pytest.param(b"Content-Length: 1e3\r\n\r\n", "says no length", id="no-number"),
        pytest.param(b"Content-Length: \xc2\xb2\r\n\r\n", "says no length", id="another-digit"),
        pytest.param(b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n", "says no length", id="two-lengths"),
        pytest.param(b"Content-Type: x\r\n\r\n", "says no length", id="no-length"),
        pytest.param(b"\r\n\r\n", "no message", id="nothing"),
        pytest.param(b"Content-Type: " + b"x" * 9000, "a header that does not end", id="endless-line"),
        pytest.param(b"Content-Type: x\r\n" * 999, "a header that does not end", id="endless-lines"),
        pytest.param(b"Content-Length: 101\r\n\r\n", "101 bytes, and 100 is the most", id="too-long"),
        pytest.param(b"Content-Length: 99999999999999999999\r\n\r\n", "says no length", id="absurd"),
        pytest.param(b"\x1b[31mred\x1b[0m\n", "output: [31mred [0m", id="colours"),
    ],
)
def test_what_is_no_frame_is_refused(data, says):
    with pytest.raises(Garbled) as caught:
        Framing(100).feed(data)

    assert says in str(caught.value)


@given(st.binary(max_size=300))
def test_any_bytes_are_messages_or_garbled_and_little_is_held(data):
    framing = Framing(1000)
    try:
        framing.feed(data)
    except Garbled:
        return
    assert len(framing.rest) <= 300
