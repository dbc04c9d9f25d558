"""One API's bytes as another's: as they come, complete at the end, and legal even where the source is not."""

import pytest

from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    TextPiece,
    Thinking,
    ThinkingPiece,
    UseBegun,
    UseEnded,
    UsePiece,
    unpack_thinking,
)
from ferrule.wire.anthropic_stream import AnthropicReader, AnthropicWriter
from ferrule.wire.gemini_stream import GeminiWriter
from ferrule.wire.openai_chat_stream import ChatReader, ChatWriter
from ferrule.wire.openai_responses_stream import ResponsesWriter
from ferrule.wire.stream import LIMIT_BYTES
from ferrule.wire.translate import CUT, Translator, translate, translate_live
from tests.wire.streams import WRITERS, check_messages, parsed, raw, written

ANSWER: list[Delta] = [
    AnswerStart("m", "x"),
    TextPiece("Hi"),
    UseBegun(0, "c", "f"),
    UsePiece(0, "{}"),
    UseEnded(0),
    AnswerEnd("tools"),
]


def pieces(stream, size):
    return [stream[at : at + size] for at in range(0, len(stream), size)]


def test_what_has_been_read_is_passed_on_before_the_rest_comes():
    stream = raw(AnthropicWriter(), ANSWER)
    first, rest = stream.split(b"event: content_block_stop", 1)
    given = translate(AnthropicReader(), ChatWriter(created=0), iter([first, b"event: content_block_stop" + rest]))

    assert b'"content":"Hi"' in next(given)
    assert b"[DONE]" in b"".join(given)


def test_a_chunk_of_which_nothing_follows_gives_nothing():
    assert all(translate(AnthropicReader(), ChatWriter(), pieces(raw(AnthropicWriter(), ANSWER), 7)))


@pytest.mark.parametrize("size", [1, 2, 3, 64, 10_000])
def test_the_size_of_chunks_does_not_matter(size):
    stream = raw(AnthropicWriter(), ANSWER)
    whole = b"".join(translate(AnthropicReader(), ChatWriter(created=0), [stream]))

    assert b"".join(translate(AnthropicReader(), ChatWriter(created=0), pieces(stream, size))) == whole


async def test_chunks_that_have_to_be_waited_for_give_the_same():
    stream = raw(AnthropicWriter(), ANSWER)

    async def chunks():
        for piece in pieces(stream, 50):
            yield piece

    live = [given async for given in translate_live(AnthropicReader(), ChatWriter(created=0), chunks())]

    assert b"".join(live) == b"".join(translate(AnthropicReader(), ChatWriter(created=0), [stream]))


def test_an_event_that_is_too_long_breaks_the_answer_off():
    stream = raw(ChatWriter(), ANSWER[:2])
    flood = [b"data: ", *[b"x" * 1_000_000] * (LIMIT_BYTES // 1_000_000 + 2)]

    found = parsed(b"".join(translate(ChatReader(), AnthropicWriter(), [stream, *flood, b"\n\n", stream])))

    check_messages(found)
    assert [one["error"]["type"] for one in found if one["type"] == "error"] == ["api_error"]
    assert [one["delta"]["text"] for one in found if one["type"] == "content_block_delta"] == ["Hi"]


def test_after_the_end_there_is_nothing():
    translator = Translator(ChatReader(), AnthropicWriter())
    translator.end()

    assert translator.feed(raw(ChatWriter(), ANSWER)) == b""
    assert translator.end() == b""


def test_an_error_of_one_api_is_an_error_of_the_other():
    stream = raw(ChatWriter(), [AnswerStart("m", "x"), Broke("Boom", "server_error"), AnswerEnd("end")])

    found = parsed(b"".join(translate(ChatReader(), AnthropicWriter(), [stream])))

    check_messages(found)
    assert found[-1] == {"type": "error", "error": {"type": "api_error", "message": "Boom"}}


@pytest.mark.parametrize("target", WRITERS)
def test_a_stream_that_stops_before_the_answer_does_is_an_error(target):
    stream = raw(ChatWriter(), [AnswerStart("m", "x"), TextPiece("Hi"), UseBegun(0, "c", "f"), UsePiece(0, '{"a"')])

    *_, last = parsed(b"".join(translate(ChatReader(), WRITERS[target](), [stream])))

    assert CUT in str(last)


def thinking(*pieces):
    return [AnswerStart("m", "x"), *pieces, UseBegun(0, "c", "f"), UsePiece(0, "{}"), UseEnded(0), AnswerEnd("tools")]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param([ThinkingPiece("hm", wire="openai-chat")], Thinking("", wire="openai-chat"), id="words-only"),
        pytest.param(
            [ThinkingPiece("hm", wire="openai-responses"), ThinkingPiece("", "rs_1", "seal", "openai-responses")],
            Thinking("", "rs_1", "seal", "openai-responses"),
            id="sealed",
        ),
        pytest.param(
            [ThinkingPiece("", "sig", wire="gemini")], Thinking("", "sig", wire="gemini"), id="signature-only"
        ),
    ],
)
def test_thinking_of_another_api_comes_back_through_a_messages_client(pieces, expected):
    found = written(AnthropicWriter(), thinking(*pieces))

    check_messages(found)
    signatures = [one["delta"]["signature"] for one in found if one.get("delta", {}).get("type") == "signature_delta"]
    assert [unpack_thinking("", one, "anthropic") for one in signatures] == [expected]


def test_thinking_of_another_api_comes_back_through_a_responses_client():
    pieces: list[Delta] = [ThinkingPiece("hm", wire="anthropic"), ThinkingPiece("", "sig", wire="anthropic")]

    *_, last = written(ResponsesWriter(), thinking(*pieces))

    item = last["response"]["output"][0]
    assert item["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert unpack_thinking("", item["encrypted_content"], "openai-responses") == Thinking("", "sig", wire="anthropic")


def test_thinking_of_the_same_api_stays_as_it_is():
    messages = written(AnthropicWriter(), thinking(ThinkingPiece("hm", "sig", wire="anthropic")))
    *_, responses = written(ResponsesWriter(), thinking(ThinkingPiece("hm", "rs_1", "seal", "openai-responses")))

    assert {"type": "signature_delta", "signature": "sig"} in [one.get("delta") for one in messages]
    assert responses["response"]["output"][0]["encrypted_content"] == "seal"


def test_another_api_s_signature_is_not_given_to_gemini():
    found = written(GeminiWriter(), thinking(ThinkingPiece("hm", "sig", wire="anthropic")))

    assert "thoughtSignature" not in str(found)
