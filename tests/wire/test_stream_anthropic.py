"""Messages streams: every event is read, and what is written is one block after the other."""

import pytest

from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    ForeignBlock,
    TextPiece,
    ThinkingPiece,
    Usage,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.anthropic_stream import AnthropicReader, AnthropicWriter
from tests.rows import each_row
from tests.wire.streams import check_messages, read, written

START = {"type": "message_start", "message": {"id": "msg_1", "model": "claude", "usage": {"input_tokens": 3}}}
STOP = {"type": "message_stop"}


def block(index, **content):
    return {"type": "content_block_start", "index": index, "content_block": content}


def change(index, **delta):
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stop(index):
    return {"type": "content_block_stop", "index": index}


def finish(reason, **usage):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def pieces(index, *texts):
    return [change(index, type="input_json_delta", partial_json=text) for text in texts]


def tool(index, **more):
    return block(index, type="tool_use", id=f"toolu_{index}", name="Read", input={}, **more)


@each_row(
    ("events", "expected"),
    [
        pytest.param(
            [block(0, type="text", text=""), change(0, type="text_delta", text="Hi"), stop(0)],
            [TextPiece("Hi")],
            id="text",
        ),
        pytest.param([block(0, type="text", text="Hi"), stop(0)], [TextPiece("Hi")], id="text-in-the-start"),
        pytest.param(
            [
                block(0, type="thinking", thinking="", signature=""),
                change(0, type="thinking_delta", thinking="hm"),
                change(0, type="signature_delta", signature="sig"),
                stop(0),
            ],
            [ThinkingPiece("hm", wire="anthropic"), ThinkingPiece("", signature="sig", wire="anthropic")],
            id="thinking",
        ),
        pytest.param(
            [block(0, type="redacted_thinking", data="xyz"), stop(0)],
            [ThinkingPiece("", sealed="xyz", wire="anthropic")],
            id="sealed-thinking",
        ),
        pytest.param(
            [tool(1), *pieces(1, "", '{"a"', ":1}"), stop(1)],
            [UseBegun(0, "toolu_1", "Read"), UsePiece(0, '{"a"'), UsePiece(0, ":1}"), UseEnded(0)],
            id="call",
        ),
        pytest.param(
            [block(0, type="tool_use", id="t", name="Read", input={"a": 1}), stop(0)],
            [UseBegun(0, "t", "Read"), UsePiece(0, '{"a":1}'), UseEnded(0)],
            id="input-whole-in-the-start",
        ),
        pytest.param(
            [block(0, type="tool_use", id="t", name="Read", input={"a": 1}), *pieces(0, '{"a":1}'), stop(0)],
            [UseBegun(0, "t", "Read"), UsePiece(0, '{"a":1}'), UseEnded(0)],
            id="input-in-the-start-and-in-pieces",
        ),
        pytest.param(
            [tool(1), tool(2), *pieces(2, "{"), *pieces(1, "{"), *pieces(2, "}"), stop(2), *pieces(1, "}"), stop(1)],
            [
                UseBegun(0, "toolu_1", "Read"),
                UseBegun(1, "toolu_2", "Read"),
                UsePiece(1, "{"),
                UsePiece(0, "{"),
                UsePiece(1, "}"),
                UseEnded(1),
                UsePiece(0, "}"),
                UseEnded(0),
            ],
            id="blocks-at-once",
        ),
        pytest.param(
            [block(0, type="server_tool_use", id="s", name="web_search", input={}), *pieces(0, '{"q":1}'), stop(0)],
            [
                ForeignBlock(
                    "anthropic", {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}}
                )
            ],
            id="the-api's-own-tool",
        ),
        pytest.param(
            [block(0, type="web_search_tool_result", tool_use_id="s", content=[{"url": "u"}]), stop(0)],
            [
                ForeignBlock(
                    "anthropic", {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "u"}]}
                )
            ],
            id="the-result-of-the-api's-own-tool",
        ),
        pytest.param([{"type": "ping"}, {"type": "new_kind", "index": 0, "news": [1]}], [], id="kinds-not-known-here"),
    ],
)
def test_each_event_is_read(events, expected):
    deltas = read(AnthropicReader(), START, *events, finish("max_tokens", output_tokens=7), STOP)

    assert deltas[0] == AnswerStart("msg_1", "claude", Usage(3))
    assert deltas[1:-1] == expected
    assert deltas[-1] == AnswerEnd("length", Usage(3, 7))


@each_row(
    ("stop_reason", "reason"),
    [
        ("end_turn", "end"),
        ("tool_use", "tools"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("stop_sequence", "stopped"),
        ("refusal", "refused"),
        ("pause_turn", "end"),
        ("something_new", "end"),
    ],
)
def test_each_reason_is_read(stop_reason, reason):
    assert read(AnthropicReader(), START, finish(stop_reason), STOP)[-1] == AnswerEnd(reason, Usage(3))


def test_usage_is_what_was_counted_last_with_the_cached_part_in_it():
    start = {"id": "m", "model": "c", "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}}
    events = [{"type": "message_start", "message": start}, finish("end_turn", output_tokens=9), STOP]

    assert read(AnthropicReader(), *events)[-1] == AnswerEnd("end", Usage(15, 9, 5, 0))


def test_nothing_is_read_after_the_end():
    reader = AnthropicReader()

    assert read(reader, START, STOP, change(0, type="text_delta", text="late"), b"[DONE]")[1:] == [
        AnswerEnd("end", Usage(3))
    ]
    assert reader.end() == []


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], [AnswerStart("", ""), AnswerEnd("end")], id="nothing"),
        pytest.param([START], [AnswerStart("msg_1", "claude", Usage(3)), AnswerEnd("end", Usage(3))], id="a-start"),
        pytest.param(
            [START, tool(0), *pieces(0, '{"a"')],
            [
                AnswerStart("msg_1", "claude", Usage(3)),
                UseBegun(0, "toolu_0", "Read"),
                UsePiece(0, '{"a"'),
                UseEnded(0, cut=True),
                AnswerEnd("end", Usage(3)),
            ],
            id="half-a-call",
        ),
        pytest.param(
            [tool(0), *pieces(0, "{}"), stop(0)],
            [AnswerStart("", ""), UseBegun(0, "toolu_0", "Read"), UsePiece(0, "{}"), UseEnded(0), AnswerEnd("tools")],
            id="a-whole-call",
        ),
    ],
)
def test_a_stream_that_just_stops_is_made_complete(events, expected):
    assert read(AnthropicReader(), *events) == expected


def test_an_error_in_the_stream_breaks_the_answer_and_ends_it():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    deltas = read(AnthropicReader(), START, tool(0), error)

    assert deltas[2:] == [Broke("Overloaded", "overloaded_error"), UseEnded(0, cut=True), AnswerEnd("end", Usage(3))]


def test_an_answer_begins_with_a_whole_message():
    """CLASP: EmitMessageStart, NewStreamProcessor."""
    start, ping = written(AnthropicWriter(), [AnswerStart("msg_test", "gpt-4o", Usage(12, 1, 5, 3))])

    assert start == {
        "type": "message_start",
        "message": {
            "id": "msg_test",
            "type": "message",
            "role": "assistant",
            "model": "gpt-4o",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 4,
                "cache_creation_input_tokens": 3,
                "cache_read_input_tokens": 5,
                "output_tokens": 1,
            },
        },
    }
    assert ping == {"type": "ping"}


def test_text_is_a_block_of_pieces():
    """CLASP: EmitContentBlockStart_Text, EmitContentBlockDelta_Text, EmitContentBlockStop."""
    events = written(
        AnthropicWriter(), [AnswerStart("m", "x"), TextPiece("Hello"), TextPiece(" world"), AnswerEnd("end")]
    )

    assert events[2:6] == [
        block(0, type="text", text=""),
        change(0, type="text_delta", text="Hello"),
        change(0, type="text_delta", text=" world"),
        stop(0),
    ]


def test_a_call_is_a_block_with_an_empty_input():
    """CLASP: EmitContentBlockStart_ToolUse, EmitContentBlockDelta_JSON."""
    deltas: list[Delta] = [
        AnswerStart("m", "x"),
        UseBegun(0, "call_123", "get_weather"),
        UsePiece(0, '{"key":'),
        UsePiece(0, "1}"),
    ]

    events = written(AnthropicWriter(), [*deltas, UseEnded(0), AnswerEnd("tools")])

    assert events[2:6] == [
        block(0, type="tool_use", id="call_123", name="get_weather", input={}),
        *pieces(0, '{"key":', "1}"),
        stop(0),
    ]


def test_usage_and_reason_come_at_the_very_end():
    """CLASP: EmitMessageDelta, EmitMessageStop."""
    events = written(
        AnthropicWriter(), [AnswerStart("m", "x"), TextPiece("a"), AnswerEnd("end", Usage(100, 42, 30, 20))]
    )

    assert events[-2:] == [
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {
                "input_tokens": 50,
                "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": 30,
                "output_tokens": 42,
            },
        },
        {"type": "message_stop"},
    ]


SIGNED = ThinkingPiece("", signature="s")
CALL: list[Delta] = [UseBegun(0, "t", "Read"), UsePiece(0, "{}"), UseEnded(0)]


@each_row(
    ("deltas", "kinds"),
    [
        pytest.param([ThinkingPiece("a"), *CALL], ["thinking", "tool_use"], id="thinking-then-call"),
        pytest.param([ThinkingPiece("a"), SIGNED, TextPiece("b")], ["thinking", "text"], id="thinking-then-text"),
        pytest.param(
            [ThinkingPiece("a"), TextPiece("b"), ThinkingPiece("c")], ["thinking", "text", "thinking"], id="back"
        ),
        pytest.param([SIGNED, ThinkingPiece("b")], ["thinking", "thinking"], id="two-thinkings"),
        pytest.param([ThinkingPiece("", sealed="x"), *CALL], ["redacted_thinking", "tool_use"], id="sealed"),
        pytest.param([*CALL, TextPiece("b")], ["tool_use", "text"], id="text-after-a-call"),
        pytest.param(
            [UseBegun(0, "t", "Read"), TextPiece("b"), UsePiece(0, "{}"), UseEnded(0)],
            ["tool_use", "text"],
            id="text-inside-of-a-call",
        ),
        pytest.param([TextPiece("a"), *CALL, TextPiece("b")], ["text", "tool_use", "text"], id="text-around-a-call"),
        pytest.param([TextPiece(""), ThinkingPiece("")], [], id="nothing-said"),
        pytest.param([UseBegun(0, "t", "Read"), UsePiece(0, '{"a')], ["tool_use"], id="a-call-left-open"),
        pytest.param(
            [UseBegun(0, "t", "A"), UseBegun(1, "u", "B"), UseEnded(1), UseEnded(0)],
            ["tool_use", "tool_use"],
            id="calls-that-end-in-another-order",
        ),
        pytest.param([UsePiece(5, "{}"), UseEnded(5)], [], id="pieces-of-no-call"),
        pytest.param([TextPiece("a"), Broke("no", "kind")], ["text"], id="broke"),
    ],
)
def test_blocks_come_one_after_the_other_whatever_the_deltas(deltas, kinds):
    events = written(
        AnthropicWriter(), [AnswerStart("m", "x"), *deltas, AnswerEnd("end"), TextPiece("late"), AnswerEnd("end")]
    )

    check_messages(events)
    assert [one["content_block"]["type"] for one in events if one["type"] == "content_block_start"] == kinds


def test_an_answer_that_was_not_begun_is_begun():
    events = written(AnthropicWriter(), [TextPiece("a"), AnswerEnd("end")])

    check_messages(events)
    assert events[0]["message"]["id"].startswith("msg_")


def test_free_text_becomes_the_one_parameter_of_an_object():
    deltas: list[Delta] = [
        UseBegun(0, "t", "apply_patch", is_text=True),
        UsePiece(0, 'a "b"\n'),
        UsePiece(0, "\\c"),
        UseEnded(0),
    ]

    events = written(AnthropicWriter(), [AnswerStart("m", "x"), *deltas, AnswerEnd("tools")])

    text = "".join(one["delta"]["partial_json"] for one in events if one["type"] == "content_block_delta")
    assert text == r'{"input":"a \"b\"\n\\c"}'


def test_an_error_is_the_last_event():
    events = written(
        AnthropicWriter(), [AnswerStart("m", "x"), Broke("Too much", "overloaded_error"), AnswerEnd("end")]
    )

    assert events[2:] == [{"type": "error", "error": {"type": "overloaded_error", "message": "Too much"}}]


def test_a_block_of_the_api_stands_between_the_others_and_one_of_another_nowhere():
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    foreign = ForeignBlock("openai-responses", {"type": "web_search_call"})

    events = written(
        AnthropicWriter(),
        [
            AnswerStart("m", "x"),
            TextPiece("a"),
            ForeignBlock("anthropic", result),
            foreign,
            TextPiece("b"),
            AnswerEnd("end"),
        ],
    )

    check_messages(events)
    started = [one["content_block"] for one in events if one["type"] == "content_block_start"]
    assert started == [{"type": "text", "text": ""}, result, {"type": "text", "text": ""}]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}',
            id="as-ever",
        ),
        pytest.param(
            b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}   }',
            id="blanks",
        ),
        pytest.param(
            b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{","x":"}"}}'
            b"\n",
            id="another-field",
        ),
        pytest.param(
            b'{"delta":{"partial_json":"{}","type":"input_json_delta"},"index":0,"type":"content_block_delta"}',
            id="order",
        ),
        pytest.param(
            b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\\u007b}"}}',
            id="escapes",
        ),
    ],
)
def test_a_piece_of_input_is_read_however_it_is_written(data):
    deltas = read(AnthropicReader(), START, tool(0), data, stop(0), STOP)

    expected = "{" if b'"x"' in data else "{}"
    assert deltas[1:-1] == [UseBegun(0, "toolu_0", "Read"), UsePiece(0, expected), UseEnded(0)]


def test_a_block_that_takes_the_index_of_a_call_takes_its_pieces_too():
    other = block(0, type="server_tool_use", id="s", name="web_search", input={})

    deltas = read(AnthropicReader(), START, tool(0), other, *pieces(0, '{"q":1}'), STOP)

    assert [delta for delta in deltas if isinstance(delta, UsePiece)] == []
