"""Events that are almost JSON are read as far as they can be, and counted where they cannot."""

import pytest

from ferrule.wire import AnswerEnd, AnswerStart, Broke, TextPiece, UsePiece
from ferrule.wire.openai_chat_stream import ChatReader
from ferrule.wire.stream import ServerSentEvent
from tests.rows import each_row
from tests.wire.streams import read


def chunk(content):
    return b'{"choices":[{"delta":{"content":"' + content + b'"}}]}'


def said(*chunks):
    return "".join(delta.text for delta in read(ChatReader(), *chunks) if isinstance(delta, TextPiece))


@each_row(
    ("pieces", "expected"),
    [
        pytest.param([rb"\ud83d\ude00"], "😀", id="a-whole-pair"),
        pytest.param([rb"a\ud83d", rb"\ude00b"], "a😀b", id="a-pair-cut-in-two"),
        pytest.param([rb"a\uD83D", rb"", rb"\uDE00b"], "a😀b", id="with-an-empty-piece-between"),
        pytest.param([rb"\ud83d\ude00\ud83d", rb"\ude01"], "😀😁", id="a-pair-and-half-of-one"),
        pytest.param([rb"\ud83d", rb"\ude00\ud83d", rb"\ude01"], "😀😁", id="halves-at-both-ends"),
        pytest.param([rb"a\ud83db"], "a\ufffdb", id="half-in-the-middle"),
        pytest.param([rb"\ud83d\n"], "\ufffd\n", id="half-before-another-escape"),
        pytest.param([rb"\ud83d\ud83d\ude00"], "\ufffd😀", id="half-before-a-pair"),
        pytest.param([rb"\ude00a"], "\ufffda", id="second-half-alone"),
        pytest.param([rb"a\ud83d"], "a", id="first-half-and-then-nothing"),
        pytest.param([rb"\\ud83d\ud83d", rb"\ude00"], "\\ud83d😀", id="a-backslash-that-is-one"),
        pytest.param([b"a\xffb"], "a\ufffdb", id="bytes-that-are-no-text"),
    ],
)
def test_characters_that_were_cut_in_two_are_joined(pieces, expected):
    assert said(*map(chunk, pieces)) == expected


def test_a_pair_cut_in_two_inside_of_arguments_is_joined():
    def call(piece):
        return (
            b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"n","arguments":"%b"}}]}}]}'
            % (piece)
        )

    deltas = read(ChatReader(), call(rb"{\"a\":\"\ud83d"), call(rb"\ude00\"}"))

    assert "".join(delta.text for delta in deltas if isinstance(delta, UsePiece)) == '{"a":"😀"}'


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{invalid json}", id="no-json"),
        pytest.param(b'{"choices":[{"delta":{"content":', id="cut-off"),
        pytest.param(b'{"choices":' + b"[" * 100_000, id="too-deep"),
        pytest.param(b'{"choices":7}', id="another-shape"),
        pytest.param(b"[1]", id="a-list"),
        pytest.param(b"\xff\xfe", id="no-text"),
    ],
)
def test_an_event_that_nobody_can_read_is_skipped_and_counted(data):
    """CLASP: ProcessStream_InvalidJSON."""
    reader = ChatReader()

    deltas = read(reader, chunk(b"be"), data, chunk(b"fore"))

    assert deltas == [AnswerStart("", ""), TextPiece("be"), TextPiece("fore"), AnswerEnd("end", skipped=1)]
    assert reader.skipped == 1


def test_an_event_without_data_is_nothing():
    assert read(ChatReader(), b"", b" ") == [AnswerStart("", ""), AnswerEnd("end")]


def test_an_error_in_plain_words_breaks_the_answer():
    reader = ChatReader()

    assert reader.read(ServerSentEvent("error", b"upstream is gone")) == [
        AnswerStart("", ""),
        Broke("upstream is gone"),
    ]
