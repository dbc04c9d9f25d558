"""The official packages as judges: they take every event that is written here, and theirs are read here."""

import json
from typing import Any

import pytest

from ferrule.core.content import Text
from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Usage,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.anthropic_stream import AnthropicReader, AnthropicWriter
from ferrule.wire.gemini_stream import GeminiReader, GeminiWriter
from ferrule.wire.openai_chat_stream import ChatReader, ChatWriter
from ferrule.wire.openai_responses_stream import ResponsesReader, ResponsesWriter
from ferrule.wire.stream import assemble
from tests.rows import each_row
from tests.wire.streams import read, written

pytestmark = pytest.mark.usefixtures("packages")

WORDS = [ThinkingPiece("h"), ThinkingPiece("m", signature="sig"), TextPiece("Hel"), TextPiece("lo ü😀")]
CALLS = [
    UseBegun(0, "call_1", "Write"),
    UseBegun(1, "call_2", "Read"),
    UsePiece(1, '{"file_path":'),
    UsePiece(0, '{"content":"a\\n'),
    UsePiece(1, '"b"}'),
    UsePiece(0, '\\"ü"}'),
    UseEnded(1),
    UseEnded(0),
]
EMPTY = [UseBegun(0, "call_1", "Now"), UseEnded(0)]
FREE = [UseBegun(0, "call_1", "apply_patch", is_text=True), UsePiece(0, '*** "x"'), UsePiece(0, "\n"), UseEnded(0)]
SEALED = [ThinkingPiece("", sealed="c2VhbGVk"), TextPiece("a")]
USAGE = Usage(120, 30, 20, 10)

ANSWERS = [
    pytest.param([*WORDS, *CALLS], "tools", id="words-and-calls"),
    pytest.param([*CALLS, TextPiece("after")], "tools", id="text-after-calls"),
    pytest.param(EMPTY, "tools", id="call-without-arguments"),
    pytest.param(FREE, "tools", id="free-text"),
    pytest.param(SEALED, "end", id="sealed-thinking"),
    pytest.param([], "end", id="nothing"),
    pytest.param(WORDS, "length", id="length"),
    pytest.param(WORDS, "refused", id="refused"),
    pytest.param([UseBegun(0, "call_1", "f"), UsePiece(0, '{"a": "b')], "length", id="cut"),
]


def answer(deltas, reason):
    return [AnswerStart("id_1", "model-1"), *deltas, AnswerEnd(reason, USAGE)]


def said(deltas):
    """Text, and calls by id, of an answer as it is meant."""
    parts = assemble(deltas).parts
    return "".join(part.text for part in parts if isinstance(part, Text)), {
        part.id: {"input": part.input} if part.is_text else part.input for part in parts if isinstance(part, Use)
    }


@pytest.mark.parametrize(("deltas", "reason"), ANSWERS)
def test_the_anthropic_package_accumulates_what_is_written(deltas, reason):
    from anthropic.lib.streaming._messages import accumulate_event
    from anthropic.types import RawMessageStreamEvent
    from pydantic import TypeAdapter

    adapter = TypeAdapter(RawMessageStreamEvent)
    found = None
    buffers: dict[int, bytes] = {}
    for one in written(AnthropicWriter(), answer(deltas, reason)):
        if one["type"] != "ping":
            found = accumulate_event(
                event=adapter.validate_python(one, strict=True), current_snapshot=found, json_bufs=buffers
            )

    assert found is not None
    text, calls = said(answer(deltas, reason))
    assert "".join(block.text for block in found.content if block.type == "text") == text
    given = {block.id: block.input for block in found.content if block.type == "tool_use"}
    assert {id_: given[id_] for id_, value in calls.items() if isinstance(value, dict)} == {
        id_: value for id_, value in calls.items() if isinstance(value, dict)
    }
    assert len(given) == len(calls)
    stops = {"tools": "tool_use", "end": "end_turn", "length": "max_tokens", "refused": "refusal"}
    assert found.stop_reason == stops[reason]
    counted = found.usage
    assert (counted.input_tokens, counted.cache_read_input_tokens, counted.cache_creation_input_tokens) == (90, 20, 10)


@each_row(("deltas", "reason"), ANSWERS)
def test_the_openai_package_accumulates_the_chunks_that_are_written(deltas, reason):
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    state = ChatCompletionStreamState()
    for one in written(ChatWriter(), answer(deltas, reason)):
        for _ in state.handle_chunk(ChatCompletionChunk.model_validate(one, strict=True)):
            pass
    found = state.current_completion_snapshot

    text, calls = said(answer(deltas, reason))
    message = found.choices[0].message
    assert message.content == text
    whole = {id_: value for id_, value in calls.items() if isinstance(value, dict)}
    given = {one.id: one.function.arguments for one in message.tool_calls or []}
    assert {id_: json.loads(given[id_]) for id_ in whole} == whole
    assert len(given) == len(calls)
    finishes = {"tools": "tool_calls", "end": "stop", "length": "length", "refused": "content_filter"}
    assert found.choices[0].finish_reason == finishes[reason]
    assert found.usage is not None
    assert found.usage.total_tokens == 150


@pytest.mark.parametrize(("deltas", "reason"), ANSWERS)
def test_the_openai_package_accumulates_the_events_that_are_written(deltas, reason):
    from openai import omit
    from openai.lib.streaming.responses._responses import ResponseStreamState
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    adapter = TypeAdapter(ResponseStreamEvent)
    state = ResponseStreamState(input_tools=omit, text_format=omit)
    events: list[Any] = [
        adapter.validate_python(one, strict=True) for one in written(ResponsesWriter(created=1), answer(deltas, reason))
    ]
    for one in events:
        state.handle_event(one)
    last = events[-1].response

    text, calls = said(answer(deltas, reason))
    assert last.output_text == text
    given: dict[str, Any] = {
        item.call_id: {"input": item.input} if item.type == "custom_tool_call" else item.arguments
        for item in last.output
        if item.type in {"function_call", "custom_tool_call"}
    }
    for id_, value in calls.items():
        if isinstance(value, dict):
            assert (json.loads(given[id_]) if isinstance(given[id_], str) else given[id_]) == value
    assert len(given) == len(calls)
    assert last.status == ("completed" if reason in {"tools", "end"} else "incomplete")
    assert last.usage.total_tokens == 150


@pytest.mark.parametrize(("deltas", "reason"), ANSWERS)
def test_the_gemini_package_takes_the_chunks_that_are_written(deltas, reason):
    from google.genai.types import GenerateContentResponse

    chunks: list[Any] = [
        GenerateContentResponse.model_validate(one) for one in written(GeminiWriter(), answer(deltas, reason))
    ]

    text, calls = said(answer(deltas, reason))
    parts = [part for one in chunks for part in one.candidates[0].content.parts or []]
    assert "".join(part.text for part in parts if part.text and not part.thought) == text
    given = {part.function_call.id: part.function_call.args for part in parts if part.function_call}
    assert given == {id_: value for id_, value in calls.items() if isinstance(value, dict)}
    finishes = {"tools": "STOP", "end": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}
    assert chunks[-1].candidates[0].finish_reason == finishes[reason]
    assert chunks[-1].usage_metadata.total_token_count == 150


def test_the_packages_take_an_error_in_the_stream():
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    deltas = answer([TextPiece("a"), Broke("Boom", "server_error")], "end")
    events: list[Any] = [
        TypeAdapter(ResponseStreamEvent).validate_python(one) for one in written(ResponsesWriter(), deltas)
    ]

    assert [one.type for one in events if one.type in {"error", "response.failed"}] == ["error", "response.failed"]
    assert events[-1].response.error.message == "Boom"


def test_a_stream_of_the_anthropic_package_is_read():
    from anthropic import types
    from anthropic.types import raw_message_delta_event

    usage = types.Usage(input_tokens=5, output_tokens=1, cache_read_input_tokens=2, cache_creation_input_tokens=None)
    message = types.Message(
        id="msg_1", content=[], model="claude", role="assistant", type="message", usage=usage, stop_reason=None
    )

    def block(index, content):
        return types.RawContentBlockStartEvent(type="content_block_start", index=index, content_block=content)

    def change(index, delta):
        return types.RawContentBlockDeltaEvent(type="content_block_delta", index=index, delta=delta)

    def stop(index):
        return types.RawContentBlockStopEvent(type="content_block_stop", index=index)

    events = [
        types.RawMessageStartEvent(type="message_start", message=message),
        block(0, types.ThinkingBlock(type="thinking", thinking="", signature="")),
        change(0, types.ThinkingDelta(type="thinking_delta", thinking="hm")),
        change(0, types.SignatureDelta(type="signature_delta", signature="sig")),
        stop(0),
        block(1, types.TextBlock(type="text", text="", citations=None)),
        change(1, types.TextDelta(type="text_delta", text="Hi")),
        stop(1),
        block(2, types.ToolUseBlock(type="tool_use", id="toolu_1", name="Read", input={})),
        change(2, types.InputJSONDelta(type="input_json_delta", partial_json="")),
        change(2, types.InputJSONDelta(type="input_json_delta", partial_json='{"a": 1}')),
        stop(2),
        types.RawMessageDeltaEvent(
            type="message_delta",
            delta=raw_message_delta_event.Delta(stop_reason="tool_use"),
            usage=types.MessageDeltaUsage(output_tokens=9),
        ),
        types.RawMessageStopEvent(type="message_stop"),
    ]

    found = assemble(read(AnthropicReader(), *(one.model_dump(mode="json") for one in events)))

    assert found.parts == (
        Thinking("hm", "sig", wire="anthropic"),
        Text("Hi"),
        Use("toolu_1", "Read", {"a": 1}),
    )
    assert (found.id, found.model, found.reason, found.usage) == ("msg_1", "claude", "tools", Usage(7, 9, 2))


def test_a_stream_of_the_openai_package_is_read():
    from openai.types import CompletionUsage
    from openai.types.chat import chat_completion_chunk as chunks

    def chunk(finish=None, **delta):
        choice = chunks.Choice(index=0, delta=chunks.ChoiceDelta(**delta), finish_reason=finish)
        return chunks.ChatCompletionChunk(
            id="chatcmpl-1", created=1, model="gpt", object="chat.completion.chunk", choices=[choice]
        )

    def call(index, **function):
        given = {key: function.pop(key) for key in ("id", "type") if key in function}
        return chunk(
            tool_calls=[
                chunks.ChoiceDeltaToolCall(
                    index=index, function=chunks.ChoiceDeltaToolCallFunction(**function), **given
                )
            ]
        )

    usage = CompletionUsage(prompt_tokens=5, completion_tokens=9, total_tokens=14)
    given = [
        chunk(role="assistant", content="", refusal=None),
        chunk(content="Hi"),
        call(0, id="c1", type="function", name="f", arguments=""),
        call(0, arguments='{"a":1}'),
        call(1, id="c2", type="function", name="g", arguments=""),
        call(1, arguments="{}"),
        chunk("tool_calls"),
        chunk().model_copy(update={"choices": [], "usage": usage}),
    ]

    found = assemble(read(ChatReader(), *(one.model_dump(mode="json") for one in given), b"[DONE]"))

    assert found.parts == (Text("Hi"), Use("c1", "f", {"a": 1}), Use("c2", "g", {}))
    assert (found.reason, found.usage) == ("tools", Usage(5, 9))


def test_a_stream_of_responses_of_the_openai_package_is_read():
    from openai.types import responses as types

    def whole(status, output=()):
        return types.Response(
            id="resp_1",
            created_at=1,
            model="gpt",
            object="response",
            output=list(output),
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
            status=status,
        )

    call = types.ResponseFunctionToolCall(type="function_call", id="fc_1", call_id="c1", name="f", arguments="")
    done = call.model_copy(update={"arguments": '{"a":1}', "status": "completed"})
    text = types.ResponseOutputText(type="output_text", text="Hi", annotations=[])
    message = types.ResponseOutputMessage(
        type="message", id="msg_1", role="assistant", status="completed", content=[text]
    )
    numbers = iter(range(100))

    def event(kind, **fields):
        return kind(sequence_number=next(numbers), **fields)

    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    call_place = {"item_id": "fc_1", "output_index": 1}
    given = [
        event(types.ResponseCreatedEvent, type="response.created", response=whole("in_progress")),
        event(types.ResponseTextDeltaEvent, type="response.output_text.delta", delta="Hi", logprobs=[], **place),
        event(types.ResponseTextDoneEvent, type="response.output_text.done", text="Hi", logprobs=[], **place),
        event(types.ResponseOutputItemDoneEvent, type="response.output_item.done", output_index=0, item=message),
        event(types.ResponseOutputItemAddedEvent, type="response.output_item.added", output_index=1, item=call),
        event(
            types.ResponseFunctionCallArgumentsDeltaEvent,
            type="response.function_call_arguments.delta",
            delta='{"a":1}',
            **call_place,
        ),
        event(
            types.ResponseFunctionCallArgumentsDoneEvent,
            type="response.function_call_arguments.done",
            name="f",
            arguments='{"a":1}',
            **call_place,
        ),
        event(types.ResponseOutputItemDoneEvent, type="response.output_item.done", output_index=1, item=done),
        event(types.ResponseCompletedEvent, type="response.completed", response=whole("completed", [message, done])),
    ]

    found = assemble(read(ResponsesReader(), *(one.model_dump(mode="json") for one in given)))

    assert found.parts == (Text("Hi"), Use("c1", "f", {"a": 1}))
    assert (found.id, found.reason) == ("resp_1", "tools")


def test_a_stream_of_the_gemini_package_is_read():
    from google.genai import types

    def chunk(*parts, finish=None):
        candidate = types.Candidate(
            content=types.Content(role="model", parts=list(parts)), finish_reason=finish, index=0
        )
        return types.GenerateContentResponse(candidates=[candidate], response_id="r1", model_version="gemini")

    call = types.FunctionCall(id="c1", name="f", args={"a": 1})
    given = [
        chunk(types.Part(text="hm", thought=True)),
        chunk(types.Part(text="Hi")),
        chunk(types.Part(function_call=call, thought_signature=b"sig"), finish=types.FinishReason.STOP),
    ]

    values = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in given]
    found = assemble(read(GeminiReader(), *values))

    assert found.parts == (
        Thinking("hm", wire="gemini"),
        Text("Hi"),
        Thinking("", "c2ln", wire="gemini"),
        Use("c1", "f", {"a": 1}),
    )
    assert found.reason == "tools"
