"""Responses streams: everything is said up to four times there, and nothing is lost or doubled here."""

import json

import pytest

from ferrule.core.content import Text
from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    Foreign,
    ForeignBlock,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Usage,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.anthropic_stream import AnthropicWriter
from ferrule.wire.openai_responses_stream import ResponsesReader, ResponsesWriter
from ferrule.wire.stream import assemble
from ferrule.wire.translate import translate
from tests.rows import each_row
from tests.wire.streams import check_deltas, check_messages, parsed, read, written

WIRE = "openai-responses"


def created(**more):
    return {"type": "response.created", "response": {"id": "resp_1", "model": "gpt", "output": [], **more}}


def completed(output=(), step="completed", **more):
    usage = {"input_tokens": 10, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 4}}
    return {
        "type": f"response.{step}",
        "response": {"id": "resp_1", "model": "gpt", "status": step, "output": list(output), "usage": usage, **more},
    }


def piece(kind, delta, index=0, **more):
    return {"type": f"response.{kind}.delta", "delta": delta, "output_index": index, **more}


def whole(kind, index=0, **more):
    return {"type": f"response.{kind}.done", "output_index": index, **more}


def item(step, given, index=0):
    return {"type": f"response.output_item.{step}", "output_index": index, "item": given}


def call(arguments="", call_id="call_1", name="f", **more):
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        **more,
    }


def message(text=None):
    content = [] if text is None else [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content}


def reasoning(*summary, **more):
    return {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": one} for one in summary],
        **more,
    }


def said(*events):
    deltas = read(ResponsesReader(), *events)
    check_deltas(deltas)
    return list(assemble(deltas).parts)


def messages(*events):
    stream = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)
    found = parsed(b"".join(translate(ResponsesReader(), AnthropicWriter(), [stream])))
    check_messages(found)
    return found


WEB = {"type": "web_search_call", "id": "ws"}
SEARCH = {"type": "tool_search_call", "arguments": {"goal": "x"}, "status": "completed"}
ARGUMENTS = "function_call_arguments"
CALL = [Use("call_1", "f", {"a": 1})]


@each_row(
    ("events", "expected"),
    [
        pytest.param(
            [
                item("added", call()),
                piece(ARGUMENTS, '{"a":'),
                piece(ARGUMENTS, "1}"),
                whole(ARGUMENTS, arguments='{"a":1}'),
                item("done", call('{"a":1}')),
                completed([call('{"a":1}')]),
            ],
            CALL,
            id="all-four-times",
        ),
        pytest.param([item("added", call()), piece(ARGUMENTS, '{"a":1}'), completed()], CALL, id="pieces-only"),
        pytest.param(
            [item("added", call()), whole(ARGUMENTS, arguments='{"a":1}'), completed()], CALL, id="whole-only"
        ),
        pytest.param(
            [item("added", call()), piece(ARGUMENTS, '{"a'), whole(ARGUMENTS, arguments='{"a":1}'), completed()],
            CALL,
            id="the-last-pieces-are-missing",
        ),
        pytest.param([item("added", call()), item("done", call('{"a":1}')), completed()], CALL, id="in-the-item-only"),
        pytest.param([item("done", call('{"a":1}')), completed()], CALL, id="in-an-item-that-was-not-added"),
        pytest.param([completed([call('{"a":1}')])], CALL, id="in-the-answer-only"),
        pytest.param([item("done", call({"a": 1})), completed()], CALL, id="an-object-for-text"),
        pytest.param(
            [
                item("added", call()),
                {"type": "response.function_call_arguments.delta", "delta": '{"a":1}', "item_id": "fc_call_1"},
                completed(),
            ],
            CALL,
            id="by-item-id",
        ),
        pytest.param(
            [
                {"type": "response.output_item.added", "item": call()},
                {"type": "response.function_call_arguments.delta", "delta": '{"a":1}'},
                completed(),
            ],
            CALL,
            id="by-nothing",
        ),
        pytest.param(
            [
                item("added", call(call_id="c1"), 1),
                item("added", call(call_id="c2", name="g"), 2),
                piece(ARGUMENTS, '{"b":', 2),
                piece(ARGUMENTS, '{"a":', 1),
                piece(ARGUMENTS, "2}", 2),
                piece(ARGUMENTS, "1}", 1),
                completed(),
            ],
            [Use("c1", "f", {"a": 1}), Use("c2", "g", {"b": 2})],
            id="interleaved",
        ),
        pytest.param(
            [
                item("added", {"type": "custom_tool_call", "id": "ctc", "call_id": "c", "name": "p", "input": ""}),
                piece("custom_tool_call_input", "*** Begin"),
                piece("custom_tool_call_input", " Patch"),
                whole("custom_tool_call_input", input="*** Begin Patch"),
                item("done", {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": "*** Begin Patch"}),
                completed(),
            ],
            [Use("c", "p", "*** Begin Patch", is_text=True)],
            id="free-text",
        ),
        pytest.param(
            [
                item("added", message()),
                piece("output_text", "Hel"),
                piece("output_text", "lo"),
                whole("output_text", text="Hello"),
                item("done", message("Hello")),
                completed([message("Hello")]),
            ],
            [Text("Hello")],
            id="text-all-four-times",
        ),
        pytest.param([whole("output_text", text="Hello"), completed()], [Text("Hello")], id="text-whole-only"),
        pytest.param([item("done", message("Hello")), completed()], [Text("Hello")], id="text-in-the-item-only"),
        pytest.param([completed([message("Hello")])], [Text("Hello")], id="text-in-the-answer-only"),
        pytest.param(
            [piece("refusal", "I can"), piece("refusal", "not."), whole("refusal", refusal="I cannot."), completed()],
            [Text("I cannot.")],
            id="refusal",
        ),
        pytest.param(
            [
                item("added", reasoning()),
                piece("reasoning_summary_text", "One.", summary_index=0),
                whole("reasoning_summary_text", text="One.", summary_index=0),
                piece("reasoning_summary_text", "Two.", summary_index=1),
                item("done", reasoning("One.", "Two.", encrypted_content="xyz")),
                completed([reasoning("One.", "Two.", encrypted_content="xyz")]),
            ],
            [Thinking("One.\n\nTwo.", "rs", "xyz", WIRE)],
            id="reasoning-summary",
        ),
        pytest.param(
            [item("done", reasoning("One.", "Two.")), completed()],
            [Thinking("One.\n\nTwo.", "rs", wire=WIRE)],
            id="summary-in-the-item-only",
        ),
        pytest.param([piece("reasoning_text", "hm"), completed()], [Thinking("hm", wire=WIRE)], id="reasoning-text"),
        pytest.param(
            [
                {"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws"},
                item("added", {"type": "web_search_call", "id": "ws", "status": "completed"}),
                {"type": "response.something.new", "delta": {"not": "text"}, "output_index": 0},
                {"type": "rate_limits.updated", "rate_limits": []},
                completed(),
            ],
            [],
            id="kinds-not-known-here",
        ),
        pytest.param(
            [
                item("added", {"type": "web_search_call", "id": "ws", "status": "in_progress"}),
                item("done", {"type": "web_search_call", "id": "ws", "status": "completed"}),
                completed([{"type": "web_search_call", "id": "ws", "status": "completed"}, SEARCH]),
            ],
            [
                Foreign("openai-responses", "web_search_call", {**WEB, "status": "completed"}),
                Foreign("openai-responses", "tool_search_call", SEARCH),
            ],
            id="items-that-only-this-api-knows",
        ),
    ],
)
def test_nothing_is_lost_and_nothing_is_doubled(events, expected):
    deltas = read(ResponsesReader(), created(), *events)

    check_deltas(deltas)
    assert list(assemble(deltas).parts) == expected
    assert deltas[-1] == AnswerEnd(
        "tools" if any(isinstance(part, Use) for part in expected) else "end", Usage(10, 5, 4)
    )


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [item("added", call()), piece(ARGUMENTS, "{"), completed(step="incomplete")],
            [UseEnded(0, cut=True), AnswerEnd("length", Usage(10, 5, 4))],
            id="out-of-tokens",
        ),
        pytest.param(
            [item("added", call()), whole(ARGUMENTS, arguments="{"), item("done", call("{", status="incomplete"))],
            [UseEnded(0, cut=True), AnswerEnd("end")],
            id="an-item-that-says-so",
        ),
        pytest.param(
            [item("added", call()), piece(ARGUMENTS, "{")], [UseEnded(0, cut=True), AnswerEnd("end")], id="just-stops"
        ),
        pytest.param([item("done", call("{}"))], [UseEnded(0), AnswerEnd("tools")], id="just-stops-after-a-whole-call"),
        pytest.param(
            [
                piece("output_text", "a"),
                completed(step="incomplete", incomplete_details={"reason": "content_filter"}),
            ],
            [TextPiece("a"), AnswerEnd("refused", Usage(10, 5, 4))],
            id="filtered",
        ),
    ],
)
def test_an_answer_that_stops_short_says_so(events, expected):
    """CLASP: IncompleteResponse."""
    assert read(ResponsesReader(), created(), *events)[-2:] == expected


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [completed(step="failed", error={"code": "server_error", "message": "Internal server error"})],
            [Broke("Internal server error", "server_error"), AnswerEnd("end", Usage(10, 5, 4))],
            id="failed",
        ),
        pytest.param(
            [{"type": "error", "code": "rate_limit", "message": "Slow down", "param": None, "sequence_number": 1}],
            [Broke("Slow down", "rate_limit"), AnswerEnd("end")],
            id="error",
        ),
        pytest.param(
            [{"type": "error", "error": {"type": "rate_limit", "message": "Slow down"}}],
            [Broke("Slow down", "rate_limit"), AnswerEnd("end")],
            id="error-object",
        ),
        pytest.param(
            [
                {"type": "error", "code": "server_error", "message": "Boom"},
                completed(step="failed", error={"code": "server_error", "message": "Boom"}),
            ],
            [Broke("Boom", "server_error"), AnswerEnd("end", Usage(10, 5, 4))],
            id="both",
        ),
    ],
)
def test_an_error_in_the_stream_breaks_the_answer_once_and_ends_it(events, expected):
    """CLASP: ErrorHandling."""
    assert read(ResponsesReader(), created(), *events)[1:] == expected


def texts(found, key):
    return "".join(one["delta"].get(key, "") for one in found if one["type"] == "content_block_delta")


def starts(found):
    return [one["content_block"] for one in found if one["type"] == "content_block_start"]


def test_output_text_becomes_text():
    """CLASP: OutputTextDelta."""
    assert texts(messages(piece("output_text", "Hello, world!")), "text") == "Hello, world!"


def test_a_refusal_becomes_text():
    """CLASP: RefusalDelta; unlike there, nothing is put before it."""
    assert texts(messages(piece("refusal", "I cannot assist.")), "text") == "I cannot assist."


def test_reasoning_becomes_thinking():
    """CLASP: ReasoningDelta."""
    found = messages(piece("reasoning_text", "Step by step"))

    assert starts(found) == [{"type": "thinking", "thinking": "", "signature": ""}]
    assert texts(found, "thinking") == "Step by step"


def test_reasoning_is_closed_before_text_begins():
    """CLASP: ReasoningThenText."""
    found = messages(piece("reasoning_text", "Thinking"), piece("output_text", "42", 1))

    assert [one["type"] for one in starts(found)] == ["thinking", "text"]


def test_an_incomplete_answer_stops_for_its_length():
    """CLASP: IncompleteResponse."""
    found = messages(piece("output_text", "This is an"), completed(step="incomplete"))

    assert found[-2]["delta"]["stop_reason"] == "max_tokens"


def test_a_function_call_becomes_a_tool_use():
    """CLASP: FunctionCallComplete, FunctionCallIDTranslation; unlike there, ids stay as they are."""
    given = call(call_id="fc_abc", name="get_weather")
    found = messages(created(), item("added", given), piece(ARGUMENTS, '{"l":1}'), item("done", given), completed())

    assert starts(found) == [{"type": "tool_use", "id": "fc_abc", "name": "get_weather", "input": {}}]
    assert texts(found, "partial_json") == '{"l":1}'
    assert found[-2]["delta"]["stop_reason"] == "tool_use"


def test_the_id_of_the_answer_is_kept():
    """CLASP: ResponseIDTracking."""
    assert read(ResponsesReader(), created())[0] == AnswerStart("resp_1", "gpt")


def test_usage_comes_with_the_end():
    """CLASP: UsageCallback."""
    assert read(ResponsesReader(), created(), completed())[-1] == AnswerEnd("end", Usage(10, 5, 4))


def test_events_come_in_their_order():
    """CLASP: EventSequence, FullStream; unlike there, no mark of another API follows."""
    found = messages(created(), piece("output_text", "Hello"), piece("output_text", " World"), completed())

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


@each_row(
    "kind",
    [
        *(f"response.{step}" for step in ("created", "queued", "in_progress", "completed", "failed", "incomplete")),
        *(f"response.output_item.{step}" for step in ("added", "done")),
        *(f"response.content_part.{step}" for step in ("added", "delta", "done")),
        *(
            f"response.{what}.{step}"
            for what in ("output_text", "refusal", "reasoning_text")
            for step in ("delta", "done")
        ),
        *(f"response.reasoning_summary_{what}" for what in ("part.added", "part.done", "text.delta", "text.done")),
        *(f"response.function_call_arguments.{step}" for step in ("delta", "done")),
        "rate_limits.updated",
    ],
)
def test_every_kind_of_event_alone_gives_a_whole_answer(kind):
    """CLASP: AllEventTypes."""
    event = {
        "type": kind,
        "response": {"id": "resp", "status": "completed", "usage": {"input_tokens": 1, "output_tokens": 1}},
        "item": {"type": "message", "call_id": "fc", "name": "f"},
        "delta": "{}",
    }
    reader = ResponsesReader()

    check_deltas(read(reader, event))
    assert reader.skipped == 0


ANSWER: list[Delta] = [
    AnswerStart("resp_1", "gpt"),
    ThinkingPiece("hm"),
    ThinkingPiece("", sealed="xyz"),
    TextPiece("Hi"),
    UseBegun(0, "call_1", "f"),
    UsePiece(0, "{}"),
    UseEnded(0),
    UseBegun(1, "toolu_2", "p", is_text=True),
    UsePiece(1, "*** Begin"),
    UseEnded(1),
]


def test_an_answer_becomes_events_with_increasing_numbers():
    found = written(ResponsesWriter(created=1), [*ANSWER, AnswerEnd("tools", Usage(10, 5, 4))])

    assert [one["sequence_number"] for one in found] == list(range(len(found)))
    assert [one["type"].removeprefix("response.") for one in found] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "completed",
    ]


def test_the_last_event_holds_the_whole_answer():
    (*_, last) = written(ResponsesWriter(created=1), [*ANSWER, AnswerEnd("tools", Usage(10, 5, 4))])

    assert [one["type"] for one in last["response"]["output"]] == [
        "reasoning",
        "message",
        "function_call",
        "custom_tool_call",
    ]
    assert last["response"]["output"][2] == {
        "type": "function_call",
        "id": "fc_call_1",
        "call_id": "call_1",
        "name": "f",
        "arguments": "{}",
        "status": "completed",
    }
    assert last["response"]["usage"]["total_tokens"] == 15


@pytest.mark.parametrize(
    ("deltas", "status", "details"),
    [
        ([AnswerEnd("end")], "completed", None),
        ([AnswerEnd("length")], "incomplete", {"reason": "max_output_tokens"}),
        ([AnswerEnd("refused")], "incomplete", {"reason": "content_filter"}),
        ([Broke("Boom"), AnswerEnd("end")], "failed", None),
    ],
)
def test_the_last_event_says_how_the_answer_ended(deltas, status, details):
    (*_, last) = written(ResponsesWriter(), [AnswerStart("resp_1", "gpt"), TextPiece("a"), *deltas])

    assert last["type"] == f"response.{status}"
    assert last["response"]["status"] == status
    assert last["response"]["incomplete_details"] == details


def test_an_item_of_the_api_stands_between_the_others_and_one_of_another_nowhere():
    web = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    blocks = [ForeignBlock("openai-responses", web), ForeignBlock("anthropic", {"type": "server_tool_use"})]

    *events, last = written(
        ResponsesWriter(), [AnswerStart("resp_1", "gpt"), TextPiece("a"), *blocks, TextPiece("b"), AnswerEnd("end")]
    )

    assert [one["type"] for one in last["response"]["output"]] == ["message", "web_search_call", "message"]
    assert last["response"]["output"][1] == web
    steps = [one["type"] for one in events if one.get("item") == web]
    assert steps == ["response.output_item.added", "response.output_item.done"]


def test_a_call_of_a_bundle_says_of_which_one():
    deltas: list[Delta] = [
        UseBegun(0, "c", "search", namespace="docs"),
        UsePiece(0, "{}"),
        UseEnded(0),
        AnswerEnd("tools"),
    ]

    *_, last = written(ResponsesWriter(), [AnswerStart("r", "m"), *deltas])

    assert last["response"]["output"][0]["namespace"] == "docs"
    assert said(created(), completed(last["response"]["output"])) == [Use("c", "search", {}, namespace="docs")]


def _unnumbered(event, *, ids):
    """An event as servers send it that give no numbers, as llama.cpp, or another id each time, as some proxies."""
    event = json.loads(json.dumps(event))
    if ids == "only":
        event.pop("output_index", None)
    return event


@pytest.mark.parametrize("ids", ["only", "both"])
def test_a_server_that_tells_items_by_their_ids_is_heard_once(ids):
    said, called = {"item_id": "msg_1"}, {"item_id": "fc_call_1"}
    events = [
        created(),
        item("added", message()),
        piece("output_text", "Hel", **said),
        piece("output_text", "lo", **said),
        whole("output_text", text="Hello", **said),
        item("done", message("Hello")),
        item("added", call(), 1),
        piece("function_call_arguments", '{"a": 1}', 1, **called),
        whole("function_call_arguments", 1, arguments='{"a": 1}', **called),
        item("done", call('{"a": 1}'), 1),
        completed([message("Hello"), call('{"a": 1}')]),
    ]
    found = read(ResponsesReader(), *(_unnumbered(one, ids=ids) for one in events))

    assert "".join(one.text for one in found if isinstance(one, TextPiece)) == "Hello"
    assert "".join(one.text for one in found if isinstance(one, UsePiece)) == '{"a": 1}'
    assert sum(isinstance(one, UseBegun) for one in found) == 1


def test_an_item_with_another_id_in_every_event_is_heard_once():
    events = [
        created(),
        item("added", {**message(), "id": "a"}),
        piece("output_text", "Hello", item_id="b"),
        whole("output_text", text="Hello", item_id="c"),
        item("done", {**message("Hello"), "id": "d"}),
        completed([{**message("Hello"), "id": "e"}]),
    ]

    assert "".join(one.text for one in read(ResponsesReader(), *events) if isinstance(one, TextPiece)) == "Hello"
