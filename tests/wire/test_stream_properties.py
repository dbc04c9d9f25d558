"""Laws of all streams: what is written is read back, pieces of bytes do not matter, and every stream is complete."""

import json
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.core.content import Text
from ferrule.wire import (
    AnswerEnd,
    Broke,
    Delta,
    ForeignBlock,
    ModelResponse,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.stream import EventReader, EventSequencer, assemble
from ferrule.wire.translate import translate
from tests.strategies import texts
from tests.wire.streams import READERS, WRITERS, answers, check_deltas, check_messages, parsed, raw, read, written

ALL = pytest.mark.parametrize("wire", READERS)
BOTH = pytest.mark.parametrize(("source", "target"), [(one, other) for one in READERS for other in READERS])


def heard(wire: str, stream: bytes) -> list[Delta]:
    reader, events = READERS[wire](), EventReader()
    return [delta for event in events.feed(stream) + events.end() for delta in reader.read(event)] + reader.end()


def plain(said: ModelResponse) -> ModelResponse:
    """An answer without what only its own wire says."""
    parts = [Thinking(part.text) if isinstance(part, Thinking) else part for part in said.parts]
    return msgspec.structs.replace(said, parts=tuple(parts))


def sorted_out(said: ModelResponse) -> tuple:
    """An answer for a wire that does not say in which order words and calls came."""
    texts = "".join(part.text for part in said.parts if isinstance(part, Text))
    thoughts = "".join(part.text for part in said.parts if isinstance(part, Thinking))
    return texts, thoughts, [part for part in said.parts if isinstance(part, Use)], said.reason, said.usage, said.id


@ALL
@settings(max_examples=50)
@given(st.data())
def test_what_is_written_is_read_back(wire, data):
    deltas = data.draw(answers())

    found = heard(wire, raw(WRITERS[wire](), deltas))

    check_deltas(found)
    assert plain(assemble(found)) == plain(assemble(deltas))


@ALL
@settings(max_examples=50)
@given(st.data())
def test_interleaved_calls_are_written_and_read_back(wire, data):
    deltas = data.draw(answers(interleaved=True))

    found = heard(wire, raw(WRITERS[wire](), deltas))

    check_deltas(found)
    assert sorted_out(assemble(found)) == sorted_out(assemble(deltas))


@given(answers(interleaved=True))
def test_interleaved_calls_become_a_legal_messages_stream(deltas):
    check_messages(written(WRITERS["anthropic"](), deltas))


@BOTH
@settings(max_examples=20)
@given(st.data())
def test_an_answer_that_is_translated_says_the_same(source, target, data):
    deltas = data.draw(answers(interleaved=data.draw(st.booleans())))
    stream = raw(WRITERS[source](), deltas)

    found = heard(target, b"".join(translate(READERS[source](), WRITERS[target](), [stream])))

    check_deltas(found)
    assert sorted_out(assemble(found)) == sorted_out(assemble(deltas))


@ALL
@settings(max_examples=50)
@given(st.data())
def test_the_pieces_in_which_bytes_come_do_not_matter(wire, data):
    stream = raw(WRITERS[wire](), data.draw(answers(interleaved=True)))
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    edges = [0, *places, len(stream)]
    events, reader = EventReader(), READERS[wire]()

    found = [
        delta
        for start, stop in pairwise(edges)
        for event in events.feed(stream[start:stop])
        for delta in reader.read(event)
    ]

    assert found + reader.end() == heard(wire, stream)


@BOTH
@settings(max_examples=20)
@given(st.data())
def test_a_stream_that_stops_anywhere_is_made_complete(source, target, data):
    stream = raw(WRITERS[source](), data.draw(answers(interleaved=True)))
    stream = stream[: data.draw(st.integers(0, len(stream)))]

    check_deltas(heard(source, stream))
    found = b"".join(translate(READERS[source](), WRITERS[target](), [stream]))
    check_deltas(heard(target, found))
    if target == "anthropic":
        check_messages(parsed(found))


@ALL
@settings(max_examples=50)
@given(st.data())
def test_a_call_of_a_stream_that_stopped_is_the_call_or_no_object(wire, data):
    deltas = data.draw(answers(interleaved=True))
    stream = raw(WRITERS[wire](), deltas)
    whole = {part.id: part for part in assemble(deltas).parts if isinstance(part, Use)}

    found = assemble(heard(wire, stream[: data.draw(st.integers(0, len(stream)))]))

    calls = [part for part in found.parts if isinstance(part, Use) and isinstance(part.input, dict)]
    assert calls == [whole[part.id] for part in calls]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    [
        *("type", "index", "delta", "content_block", "message", "usage", "error", "id", "name", "input", "text"),
        *("choices", "tool_calls", "function", "arguments", "finish_reason", "content", "response", "item", "output"),
        *("candidates", "parts", "functionCall", "args", "usageMetadata", "output_index", "item_id", "call_id"),
    ]
)
kinds = st.sampled_from(
    [
        *(
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_start",
            "error",
        ),
        *("tool_use", "input_json_delta", "text_delta", "function_call", "message", "reasoning"),
        *("response.output_item.added", "response.output_item.done", "response.completed", "response.failed"),
        *(
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_text.delta",
        ),
    ]
)
wild = st.recursive(
    values | kinds,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner | kinds, max_size=5),
    max_leaves=12,
)


@ALL
@settings(max_examples=50)
@given(st.lists(wild, max_size=6))
def test_whatever_a_server_sends_gives_a_whole_answer(wire, values):
    check_deltas(read(READERS[wire](), *(json.dumps(value).encode() for value in values)))


@ALL
@settings(max_examples=50)
@given(st.lists(st.binary(max_size=30), max_size=5))
def test_bytes_of_any_kind_give_a_whole_answer(wire, chunks):
    reader = READERS[wire]()
    events = EventReader()
    found = [
        delta for chunk in chunks for event in events.feed(b"data: " + chunk + b"\n\n") for delta in reader.read(event)
    ]

    check_deltas(found + reader.end())


ats = st.integers(0, 3)
lawless = st.lists(
    st.one_of(
        st.builds(TextPiece, texts),
        st.builds(ThinkingPiece, texts, texts, texts),
        st.builds(UseBegun, ats, st.just("c"), st.just("f"), st.booleans()),
        st.builds(UsePiece, ats, texts),
        st.builds(UseEnded, ats, st.booleans()),
        st.builds(Broke, texts),
        st.builds(ForeignBlock, st.sampled_from(["anthropic", "openai-responses", "gemini"]), st.just({"type": "odd"})),
        st.just(AnswerEnd("end")),
    ),
    max_size=12,
)


@given(lawless)
def test_however_deltas_come_the_messages_stream_is_legal(deltas):
    check_messages(written(WRITERS["anthropic"](), [*deltas, AnswerEnd("end")]))


@ALL
@settings(max_examples=50)
@given(lawless)
def test_however_deltas_come_what_is_written_can_be_read(wire, deltas):
    check_deltas(heard(wire, raw(WRITERS[wire](), [*deltas, AnswerEnd("end")])))


@given(answers(interleaved=True))
def test_holding_back_loses_nothing_and_leaves_one_call_open_at_a_time(deltas):
    order = EventSequencer()
    found = [after for delta in deltas for after in order.put(delta)]

    opened: set[int] = set()
    for delta in found:
        if isinstance(delta, UseBegun):
            assert not opened
            opened = {delta.at}
        elif isinstance(delta, UsePiece):
            assert delta.at in opened
        elif isinstance(delta, UseEnded):
            opened = set()
        elif isinstance(delta, TextPiece | ThinkingPiece):
            assert not opened
    assert assemble(found) == assemble(deltas)
