"""Gemini streams: calls come whole, and the answer ends with the stream."""

import pytest

from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    TextPiece,
    ThinkingPiece,
    Usage,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.gemini_stream import GeminiReader, GeminiWriter
from tests.rows import each_row
from tests.wire.streams import read, written


def chunk(*parts, finish=None, **more):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "responseId": "r1", "modelVersion": "gemini", **more}


def call(**given):
    return {"functionCall": given}


@each_row(
    ("chunks", "expected"),
    [
        pytest.param([chunk({"text": "Hel"}), chunk({"text": "lo"})], [TextPiece("Hel"), TextPiece("lo")], id="text"),
        pytest.param([chunk({"text": "hm", "thought": True})], [ThinkingPiece("hm", wire="gemini")], id="thinking"),
        pytest.param(
            [chunk(call(id="c1", name="f", args={"a": 1}))],
            [UseBegun(0, "c1", "f"), UsePiece(0, '{"a": 1}'), UseEnded(0)],
            id="call",
        ),
        pytest.param(
            [chunk(call(id="c1", name="f"), call(id="c2", name="g", args=None))],
            [
                UseBegun(0, "c1", "f"),
                UsePiece(0, "{}"),
                UseEnded(0),
                UseBegun(1, "c2", "g"),
                UsePiece(1, "{}"),
                UseEnded(1),
            ],
            id="calls-without-arguments",
        ),
        pytest.param(
            [chunk({**call(id="c1", name="f", args={}), "thoughtSignature": "sig"})],
            [ThinkingPiece("", signature="sig", wire="gemini"), UseBegun(0, "c1", "f"), UsePiece(0, "{}"), UseEnded(0)],
            id="signature-on-a-call",
        ),
        pytest.param(
            [chunk(call(id="c1", name="f", args={"n": 12345678901234567890123}))],
            [UseBegun(0, "c1", "f"), UsePiece(0, '{"n": 12345678901234567890123}'), UseEnded(0)],
            id="a-number-of-any-length",
        ),
        pytest.param(
            [chunk(call(id="c1", name="f", partialArgs=[{"jsonPath": "$.a"}], willContinue=True))],
            [
                UseBegun(0, "c1", "f"),
                UseEnded(0, cut=True),
                Broke("The arguments of a call came in pieces (partialArgs).", "partial-arguments"),
            ],
            id="arguments-in-pieces",
        ),
        pytest.param([chunk({"inlineData": {"mimeType": "image/png", "data": ""}})], [], id="other-parts"),
    ],
)
def test_each_part_is_read(chunks, expected):
    assert read(GeminiReader(), *chunks)[:-1] == [AnswerStart("r1", "gemini"), *expected]


def test_a_call_without_an_id_is_given_one():
    deltas = read(GeminiReader(), chunk(call(name="f", args={}), call(name="f", args={})))
    ids = [delta.id for delta in deltas if isinstance(delta, UseBegun)]

    assert all(id_.startswith("call_") for id_ in ids)
    assert len(set(ids)) == 2


@each_row(
    ("finish", "parts", "reason"),
    [
        pytest.param("STOP", [{"text": "a"}], "end", id="stop"),
        pytest.param("STOP", [call(name="f", args={})], "tools", id="stop-with-a-call"),
        pytest.param("MAX_TOKENS", [call(name="f", args={})], "length", id="max-tokens"),
        pytest.param("SAFETY", [], "refused", id="safety"),
        pytest.param("PROHIBITED_CONTENT", [], "refused", id="prohibited"),
        pytest.param("OTHER", [], "end", id="other"),
        pytest.param("FINISH_REASON_UNSPECIFIED", [call(name="f", args={})], "tools", id="unspecified"),
        pytest.param(None, [call(name="f", args={})], "tools", id="just-stops-with-a-call"),
        pytest.param(None, [], "end", id="just-stops"),
    ],
)
def test_each_finish_reason_is_read(finish, parts, reason):
    assert read(GeminiReader(), chunk(*parts, finish=finish))[-1] == AnswerEnd(reason)


def test_a_call_that_the_api_could_not_read_breaks_the_answer():
    given = chunk(finish="MALFORMED_FUNCTION_CALL")
    given["candidates"][0]["finishMessage"] = "print(default_api.f("

    assert read(GeminiReader(), given)[1:] == [
        Broke("print(default_api.f(", "MALFORMED_FUNCTION_CALL"),
        AnswerEnd("end"),
    ]


def test_a_blocked_prompt_is_a_refusal():
    assert read(GeminiReader(), {"promptFeedback": {"blockReason": "SAFETY"}})[-1] == AnswerEnd("refused")


def test_usage_is_what_was_counted_last():
    first = {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1}}
    last = {
        "usageMetadata": {
            "promptTokenCount": 9,
            "cachedContentTokenCount": 4,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 2,
        }
    }

    deltas = read(GeminiReader(), chunk({"text": "a"}, **first), chunk(finish="STOP", **last))

    assert deltas[-1] == AnswerEnd("end", Usage(9, 7, 4))


def test_an_error_in_the_stream_breaks_the_answer_and_ends_it():
    error = {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}

    assert read(GeminiReader(), chunk({"text": "a"}), error)[2:] == [
        Broke("Overloaded", "UNAVAILABLE"),
        AnswerEnd("end"),
    ]


def test_an_answer_becomes_chunks_with_whole_calls():
    deltas: list[Delta] = [
        AnswerStart("r1", "gemini"),
        ThinkingPiece("hm", signature="sig"),
        TextPiece("Hi"),
        UseBegun(0, "c1", "f"),
        UseBegun(1, "c2", "g"),
        UsePiece(1, '{"b":2}'),
        UsePiece(0, '{"a"'),
        UsePiece(0, ":1}"),
        UseEnded(0),
        UseEnded(1),
        AnswerEnd("tools", Usage(9, 7, 4)),
    ]

    *found, last = written(GeminiWriter(), deltas)

    assert found == [
        chunk({"text": "hm", "thought": True, "thoughtSignature": "sig"}),
        chunk({"text": "Hi"}),
        chunk(call(id="c1", name="f", args={"a": 1})),
        chunk(call(id="c2", name="g", args={"b": 2})),
    ]
    assert last["candidates"][0]["finishReason"] == "STOP"
    assert last["usageMetadata"] == {
        "promptTokenCount": 9,
        "candidatesTokenCount": 7,
        "cachedContentTokenCount": 4,
        "totalTokenCount": 16,
    }


@pytest.mark.parametrize(
    ("pieces", "cut", "expected"),
    [
        pytest.param('{"a', False, [call(id="c", name="f", args={"input": '{"a'})], id="malformed"),
        pytest.param("[1]", False, [call(id="c", name="f", args={"input": "[1]"})], id="no-object"),
        pytest.param("", False, [call(id="c", name="f", args={})], id="no-arguments"),
        pytest.param('{"a', True, [], id="cut"),
    ],
)
def test_a_call_is_written_only_when_it_is_whole(pieces, cut, expected):
    deltas: list[Delta] = [
        AnswerStart("r", "m"),
        UseBegun(0, "c", "f"),
        UsePiece(0, pieces),
        UseEnded(0, cut=cut),
        AnswerEnd("end"),
    ]

    found = written(GeminiWriter(), deltas)

    assert [part for one in found for part in one["candidates"][0]["content"].get("parts", [])] == expected


def test_a_signature_without_words_stands_on_what_comes_next():
    deltas: list[Delta] = [
        AnswerStart("r1", "gemini"),
        ThinkingPiece("", "one"),
        UseBegun(0, "c1", "f"),
        UsePiece(0, "{}"),
        UseEnded(0),
        ThinkingPiece("", "two"),
        AnswerEnd("tools"),
    ]

    found = written(GeminiWriter(), deltas)

    assert found[:2] == [
        chunk({**call(id="c1", name="f", args={}), "thoughtSignature": "one"}),
        chunk({"text": "", "thoughtSignature": "two"}),
    ]
