"""Chat streams: calls whose pieces come in any order, answers that end in any way, and both as Messages."""

import json

import pytest

from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    TextPiece,
    ThinkingPiece,
    Usage,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.anthropic_stream import AnthropicWriter
from ferrule.wire.openai_chat_stream import ChatReader, ChatWriter
from ferrule.wire.stream import assemble
from ferrule.wire.translate import translate
from tests.rows import each_row
from tests.wire.streams import check_deltas, check_messages, event, events, parsed, read, written

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt"}


def chunk(finish=None, **delta):
    return {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(index=None, id_=None, name=None, arguments=None):
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    given = {"index": index, "id": id_, "function": function}
    return chunk(tool_calls=[{key: value for key, value in given.items() if value is not None}])


def uses(*chunks):
    deltas = read(ChatReader(), *chunks, chunk("tool_calls"), b"[DONE]")
    check_deltas(deltas)
    return list(assemble(deltas).parts)


def messages(*chunks):
    """What a Chat stream becomes as a Messages stream, after a look at its laws."""
    stream = b"".join(
        b"data: " + (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n\n" for one in chunks
    )
    found = parsed(b"".join(translate(ChatReader(), AnthropicWriter(), [stream])))
    check_messages(found)
    return found


def kinds(given):
    return [one["content_block"]["type"] for one in given if one["type"] == "content_block_start"]


def pieces(given, index):
    deltas = [one["delta"] for one in given if one["type"] == "content_block_delta" and one["index"] == index]
    return "".join(delta.get("text", delta.get("partial_json", delta.get("thinking", ""))) for delta in deltas)


@each_row(
    ("chunks", "expected"),
    [
        pytest.param(
            [call(0, "c1", "f", ""), call(0, arguments='{"a":'), call(0, arguments="1}")],
            [Use("c1", "f", {"a": 1})],
            id="as-openai-sends-it",
        ),
        pytest.param(
            [call(0, arguments='{"a":'), call(0, "c1", "f"), call(0, arguments="1}")],
            [Use("c1", "f", {"a": 1})],
            id="pieces-before-id-and-name",
        ),
        pytest.param(
            [call(0, "c1", arguments='{"a":'), call(0, name="f", arguments="1}")],
            [Use("c1", "f", {"a": 1})],
            id="id-before-name",
        ),
        pytest.param(
            [call(0, name="f", arguments='{"a":'), call(0, "c1", arguments="1}")],
            [Use("c1", "f", {"a": 1})],
            id="name-before-id",
        ),
        pytest.param(
            [call(0, "c1", "f", '{"a":'), call(0, "c1", "f", "1}")],
            [Use("c1", "f", {"a": 1})],
            id="id-and-name-in-every-chunk",
        ),
        pytest.param(
            [call(0, "c1", "f", '{"a":'), call(0, "other", None, "1}")],
            [Use("c1", "f", {"a": 1})],
            id="a-new-id-in-every-chunk",
        ),
        pytest.param(
            [call(0, "c1", "f", "{}"), call(1, "c2", "g", "{}")],
            [Use("c1", "f", {}), Use("c2", "g", {})],
            id="two-calls",
        ),
        pytest.param(
            [
                call(0, "c1", "f"),
                call(1, "c2", "g"),
                call(1, arguments='{"b":'),
                call(0, arguments='{"a":'),
                call(1, arguments="2}"),
                call(0, arguments="1}"),
            ],
            [Use("c1", "f", {"a": 1}), Use("c2", "g", {"b": 2})],
            id="two-calls-interleaved",
        ),
        pytest.param(
            [call(0, "c1", "f", "{}"), call(0, "c2", "g", '{"b":'), call(0, arguments="2}")],
            [Use("c1", "f", {}), Use("c2", "g", {"b": 2})],
            id="the-same-index-for-two-calls",
        ),
        pytest.param(
            [call(None, "c1", "f", '{"a":'), call(arguments="1}"), call(None, "c2", "g", "{}")],
            [Use("c1", "f", {"a": 1}), Use("c2", "g", {})],
            id="no-index",
        ),
        pytest.param([call(0, "c1", "f", {"a": 1})], [Use("c1", "f", {"a": 1})], id="an-object-for-text"),
        pytest.param([call(0, "c1", "f")], [Use("c1", "f", {})], id="no-arguments"),
        pytest.param([call(0, "c1", "f", '{"a": oops')], [Use("c1", "f", '{"a": oops')], id="malformed-arguments"),
        pytest.param([call(0, "c1", "f", "[1]")], [Use("c1", "f", "[1]")], id="arguments-that-are-no-object"),
    ],
)
def test_a_call_is_put_together_however_its_pieces_come(chunks, expected):
    assert uses(*chunks) == expected


def test_a_call_that_never_gets_an_id_is_given_one():
    (use,) = uses(call(0, name="f", arguments="{}"))

    assert use.id.startswith("call_")
    assert (use.name, use.input) == ("f", {})


def test_a_whole_call_ends_when_the_next_one_begins():
    reader = ChatReader()
    read_one = [reader.read(one) for one in events_of(call(0, "c1", "f", "{}"), call(1, "c2", "g"))]

    assert read_one[1] == [UseEnded(0), UseBegun(1, "c2", "g")]


def test_a_call_that_is_not_whole_stays_open_when_the_next_one_begins():
    reader = ChatReader()
    read_one = [reader.read(one) for one in events_of(call(0, "c1", "f", "{"), call(1, "c2", "g"))]

    assert read_one[1] == [UseBegun(1, "c2", "g")]


def events_of(*chunks):
    return [event(one) for one in chunks]


@each_row(
    ("chunks", "expected"),
    [
        pytest.param([chunk(content="Hi")], [TextPiece("Hi")], id="content"),
        pytest.param([chunk(role="assistant", content="")], [], id="role"),
        pytest.param([chunk(content=None)], [], id="null"),
        pytest.param([chunk(refusal="I cannot.")], [TextPiece("I cannot.")], id="refusal"),
        pytest.param(
            [chunk(reasoning_content="hm")], [ThinkingPiece("hm", wire="openai-chat")], id="reasoning-content"
        ),
        pytest.param([chunk(reasoning="hm")], [ThinkingPiece("hm", wire="openai-chat")], id="reasoning"),
        pytest.param(
            [
                chunk(
                    content=[
                        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                        {"type": "text", "text": "Hi"},
                    ]
                )
            ],
            [ThinkingPiece("hm", wire="openai-chat"), TextPiece("Hi")],
            id="content-in-parts",
        ),
        pytest.param(
            [{**HEAD, "choices": [{"index": 1, "delta": {"content": "other"}}]}], [], id="another-choice-than-the-first"
        ),
    ],
)
def test_words_are_read(chunks, expected):
    deltas = read(ChatReader(), *chunks, chunk("stop"))

    assert deltas == [AnswerStart("chatcmpl-1", "gpt"), *expected, AnswerEnd("end")]


@pytest.mark.parametrize(
    ("finish", "reason", "stop_reason"),
    [
        ("stop", "end", "end_turn"),
        ("tool_calls", "tools", "tool_use"),
        ("function_call", "tools", "tool_use"),
        ("length", "length", "max_tokens"),
        ("content_filter", "refused", "refusal"),
        ("unknown", "end", "end_turn"),
    ],
)
def test_each_finish_reason_is_read(finish, reason, stop_reason):
    """CLASP: MapFinishReason, HandleFinishReason_StopReasons; unlike there, a filter's stop is a refusal."""
    assert read(ChatReader(), chunk(content="a"), chunk(finish))[-1] == AnswerEnd(reason)
    assert messages(chunk(content="a"), chunk(finish))[-2]["delta"]["stop_reason"] == stop_reason


@each_row(
    ("chunks", "expected"),
    [
        pytest.param(
            [call(0, "c", "f", "{}"), chunk("stop")], [UseEnded(0), AnswerEnd("tools")], id="stop-with-a-call"
        ),
        pytest.param([call(0, "c", "f", "{}")], [UseEnded(0), AnswerEnd("tools")], id="just-stops-after-a-whole-call"),
        pytest.param(
            [call(0, "c", "f", '{"a')], [UseEnded(0, cut=True), AnswerEnd("end")], id="just-stops-inside-of-a-call"
        ),
        pytest.param(
            [call(0, "c", "f")], [UseEnded(0, cut=True), AnswerEnd("end")], id="just-stops-before-any-argument"
        ),
        pytest.param([call(0, "c", "f"), b"[DONE]"], [UseEnded(0), AnswerEnd("tools")], id="done-without-a-reason"),
        pytest.param(
            [call(0, "c", "f"), chunk("tool_calls")], [UseEnded(0), AnswerEnd("tools")], id="reason-without-done"
        ),
        pytest.param(
            [call(0, "c", "f", '{"a'), chunk("length"), b"[DONE]"],
            [UseEnded(0, cut=True), AnswerEnd("length")],
            id="length",
        ),
        pytest.param(
            [call(0, "c", "f", "{}"), chunk("length")],
            [UseEnded(0), AnswerEnd("length")],
            id="length-after-a-whole-call",
        ),
    ],
)
def test_every_call_ends_and_says_whether_it_is_whole(chunks, expected):
    deltas = read(ChatReader(), *chunks)

    check_deltas(deltas)
    assert deltas[-2:] == expected


def test_pieces_after_the_finish_reason_are_not_lost():
    assert uses(call(0, "c", "f", "{"), chunk("tool_calls"), call(0, arguments="}")) == [Use("c", "f", {})]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(
            [chunk("stop"), {**HEAD, "choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 10}}], id="last"
        ),
        pytest.param(
            [{**chunk(content="Hi"), "usage": {"prompt_tokens": 20, "completion_tokens": 10}}, chunk("stop")],
            id="with-text",
        ),
        pytest.param(
            [
                {**chunk(content="Hi"), "usage": {"prompt_tokens": 20, "completion_tokens": 1}},
                {**chunk("stop"), "usage": {"prompt_tokens": 20, "completion_tokens": 10}},
                {**chunk(), "usage": None},
            ],
            id="in-every-chunk",
        ),
    ],
)
def test_usage_is_read_wherever_it_stands(chunks):
    """CLASP: SetUsageCallback, GetUsage, ProcessChunk_TracksUsage."""
    assert read(ChatReader(), *chunks, b"[DONE]")[-1] == AnswerEnd("end", Usage(20, 10))
    assert messages(*chunks, b"[DONE]")[-2]["usage"]["output_tokens"] == 10


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param({"message": "Boom", "type": "server_error"}, Broke("Boom", "server_error"), id="object"),
        pytest.param({"message": "Boom", "code": 502}, Broke("Boom", "502"), id="code"),
        pytest.param("Boom", Broke("Boom"), id="text"),
        pytest.param({}, Broke("The API reported an error."), id="empty"),
    ],
)
def test_an_error_in_the_stream_breaks_the_answer_and_ends_it(error, expected):
    deltas = read(ChatReader(), chunk(content="a"), call(0, "c", "f", "{"), {"error": error})

    assert deltas[-3:] == [expected, UseEnded(0, cut=True), AnswerEnd("end")]


def test_text_content_becomes_a_text_block():
    """CLASP: ProcessStream_TextContent."""
    found = messages(chunk(content="Hello"), chunk(content=" world"), chunk("stop"), b"[DONE]")

    assert [one["type"] for one in found] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert pieces(found, 0) == "Hello world"


def test_a_tool_call_becomes_a_tool_use_block():
    """CLASP: ProcessStream_ToolCall."""
    found = messages(
        call(0, "call_123", "get_weather", ""),
        call(0, arguments='{"loc'),
        call(0, arguments='ation":"NYC"}'),
        chunk("tool_calls"),
        b"[DONE]",
    )

    assert found[2]["content_block"] == {"type": "tool_use", "id": "call_123", "name": "get_weather", "input": {}}
    assert pieces(found, 0) == '{"location":"NYC"}'
    assert found[-2]["delta"]["stop_reason"] == "tool_use"


def test_text_and_a_call_become_two_blocks():
    """CLASP: ProcessStream_MixedContent."""
    found = messages(
        chunk(content="Let me check the weather."), call(0, "c", "get_weather", '{"city":"NYC"}'), chunk("tool_calls")
    )

    assert kinds(found) == ["text", "tool_use"]
    assert (pieces(found, 0), pieces(found, 1)) == ("Let me check the weather.", '{"city":"NYC"}')


def test_empty_lines_are_nothing():
    """CLASP: ProcessStream_EmptyLines."""
    stream = b"\n\n\ndata: " + json.dumps(chunk(content="Test")).encode() + b"\n\n\n\ndata: [DONE]\n\n\n"
    found = parsed(b"".join(translate(ChatReader(), AnthropicWriter(), [stream])))

    assert pieces(found, 0) == "Test"


def test_thinking_then_a_call_are_two_blocks_with_different_indexes():
    """CLASP: ProcessStream_ThinkingThenToolCall; there both had index 0, and the thinking stayed open."""
    found = messages(chunk(reasoning_content="hm"), call(0, "c", "f", "{}"), chunk("tool_calls"))

    assert kinds(found) == ["thinking", "tool_use"]
    assert [one["index"] for one in found if one["type"] == "content_block_stop"] == [0, 1]


def test_text_after_a_call_is_a_new_block():
    """A defect of CLASP's: the text went to the block that was closed."""
    found = messages(
        chunk(content="a"), call(0, "c", "f", "{}"), chunk(content="b"), call(1, "d", "g", "{}"), chunk("tool_calls")
    )

    assert kinds(found) == ["text", "tool_use", "text", "tool_use"]
    assert [pieces(found, index) for index in range(4)] == ["a", "{}", "b", "{}"]


def test_interleaved_calls_become_blocks_in_the_order_of_their_begin():
    """A defect of CLASP's: blocks were closed in the order of a map."""
    rounds = [call(index, arguments=piece) for piece in ('{"n"', ":1", "}") for index in (2, 0, 1)]
    found = messages(*(call(index, f"c{index}", f"f{index}") for index in range(3)), *rounds, chunk("tool_calls"))

    starts = [one["content_block"]["name"] for one in found if one["type"] == "content_block_start"]
    assert starts == ["f0", "f1", "f2"]
    assert [pieces(found, index) for index in range(3)] == ['{"n":1}'] * 3


def test_an_answer_becomes_chunks():
    deltas: list[Delta] = [
        AnswerStart("chatcmpl-1", "gpt"),
        ThinkingPiece("hm", signature="s"),
        TextPiece("Hi"),
        UseBegun(0, "c", "f"),
        UsePiece(0, '{"ü'),
        UsePiece(0, '":"\\n"}'),
        UseEnded(0),
        AnswerEnd("tools", Usage(20, 10, 5)),
    ]

    first, *middle, finish, usage = written(ChatWriter(created=1), deltas)

    assert first == chunk(role="assistant", content="")
    assert middle == [
        chunk(reasoning_content="hm"),
        chunk(content="Hi"),
        chunk(tool_calls=[{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]),
        call(0, arguments='{"ü'),
        call(0, arguments='":"\\n"}'),
    ]
    assert finish == chunk("tool_calls")
    assert usage == {
        **HEAD,
        "choices": [],
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 10,
            "total_tokens": 30,
            "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
        },
    }
    assert events(ChatWriter(), deltas)[-1].data == b"[DONE]"


def test_a_call_without_arguments_has_an_empty_object():
    found = written(
        ChatWriter(created=1),
        [AnswerStart("chatcmpl-1", "gpt"), UseBegun(0, "c", "f"), UseEnded(0), AnswerEnd("tools")],
    )

    assert found[2] == call(0, arguments="{}")


def test_an_error_is_a_chunk_of_its_own():
    found = written(ChatWriter(), [AnswerStart("i", "m"), Broke("Boom", "overloaded_error"), AnswerEnd("end")])

    error = {"message": "Boom", "type": "server_is_overloaded", "param": None, "code": "overloaded_error"}
    assert found[1:] == [{"error": error}]


def test_a_call_of_a_custom_tool_is_written_for_clients_that_have_such_tools_and_read_back():
    deltas: list[Delta] = [
        UseBegun(0, "c1", "apply_patch", is_text=True),
        UsePiece(0, '*** "a"\n'),
        UsePiece(0, "+b"),
        UseEnded(0),
    ]

    found = written(ChatWriter(free_text=True), [AnswerStart("i", "m"), *deltas, AnswerEnd("tools")])

    first, *rest = [one["choices"][0]["delta"]["tool_calls"][0] for one in found[1:4]]
    assert first == {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "apply_patch", "input": ""}}
    assert rest == [{"index": 0, "custom": {"input": '*** "a"\n'}}, {"index": 0, "custom": {"input": "+b"}}]
    assert assemble(read(ChatReader(), *found)).parts == (Use("c1", "apply_patch", '*** "a"\n+b', is_text=True),)
