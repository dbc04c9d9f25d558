"""What the tests of streams share: feeding readers, asking writers, the laws of a Messages stream, and legal deltas."""

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Delta,
    Reason,
    TextPiece,
    ThinkingPiece,
    Usage,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.anthropic_stream import AnthropicReader, AnthropicWriter
from ferrule.wire.gemini_stream import GeminiReader, GeminiWriter
from ferrule.wire.openai_chat_stream import ChatReader, ChatWriter
from ferrule.wire.openai_responses_stream import ResponsesReader, ResponsesWriter
from ferrule.wire.stream import EventReader, ServerSentEvent, StreamReader, StreamWriter, text
from tests.strategies import texts

READERS: dict[str, Callable[[], StreamReader]] = {
    "anthropic": AnthropicReader,
    "chat": ChatReader,
    "responses": ResponsesReader,
    "gemini": GeminiReader,
}
WRITERS: dict[str, Callable[[], StreamWriter]] = {
    "anthropic": AnthropicWriter,
    "chat": ChatWriter,
    "responses": ResponsesWriter,
    "gemini": GeminiWriter,
}


def event(value: object) -> ServerSentEvent:
    """An event as a server would send it; bytes stand for data that is no JSON."""
    return ServerSentEvent("", value if isinstance(value, bytes) else json.dumps(value).encode())


def read(reader: StreamReader, *values: object) -> list[Delta]:
    """All deltas of a stream that consists of these events and then stops."""
    return [delta for value in values for delta in reader.read(event(value))] + reader.end()


def events(writer: StreamWriter, deltas: Iterable[Delta]) -> list[ServerSentEvent]:
    return [one for delta in deltas for one in writer.write(delta)]


def written(writer: StreamWriter, deltas: Iterable[Delta]) -> list[dict[str, Any]]:
    """The data of all events, without the mark that ends a Chat stream."""
    return [json.loads(one.data) for one in events(writer, deltas) if one.data != b"[DONE]"]


def raw(writer: StreamWriter, deltas: Iterable[Delta]) -> bytes:
    return b"".join(text(one) for one in events(writer, deltas))


def parsed(stream: bytes) -> list[dict[str, Any]]:
    """The data of all events in some bytes."""
    reader = EventReader()
    found = reader.feed(stream) + reader.end()
    return [json.loads(one.data) for one in found if one.data != b"[DONE]"]


def check_messages(given: list[dict[str, Any]]) -> None:
    """Raises unless these are the events of a legal Messages stream."""
    kinds = [one["type"] for one in given]
    assert kinds[0] == "message_start"
    assert kinds.count("message_start") == 1
    broke = kinds[-1] == "error"
    assert broke or kinds[-2:] == ["message_delta", "message_stop"]
    assert [kinds.count(kind) for kind in ("message_delta", "message_stop")] == ([0, 0] if broke else [1, 1])
    assert kinds.count("error") == broke
    begun: list[int] = []
    block: dict[str, Any] | None = None
    changes = {"text": {"text_delta"}, "tool_use": {"input_json_delta"}}
    changes["thinking"] = {"thinking_delta", "signature_delta"}
    for one in given:
        if one["type"] == "content_block_start":
            assert block is None, "a block began inside of another"
            assert one["index"] == len(begun)
            begun.append(one["index"])
            block = one["content_block"]
            assert block["type"] != "tool_use" or (block["input"] == {} and block["id"] and "name" in block)
        elif one["type"] == "content_block_delta":
            assert block is not None, "a piece without a block"
            assert one["index"] == begun[-1]
            assert one["delta"]["type"] in changes.get(block["type"], set())
        elif one["type"] == "content_block_stop":
            assert block is not None, "the end of no block"
            assert one["index"] == begun[-1]
            block = None
    assert broke or block is None, "a block was left open"


def check_deltas(deltas: list[Delta]) -> None:
    """Raises unless this is a whole answer: begun once, every call ended, ended once and last."""
    assert isinstance(deltas[0], AnswerStart)
    assert [isinstance(delta, AnswerStart) for delta in deltas].count(True) == 1
    assert isinstance(deltas[-1], AnswerEnd)
    assert [isinstance(delta, AnswerEnd) for delta in deltas].count(True) == 1
    begun, ended = 0, set[int]()
    for delta in deltas:
        if isinstance(delta, UseBegun):
            assert delta.at == begun
            begun += 1
        elif isinstance(delta, UsePiece | UseEnded):
            assert delta.at < begun
            assert delta.at not in ended
            if isinstance(delta, UseEnded):
                ended.add(delta.at)
    assert ended == set(range(begun))


_ids = st.from_regex(r"(call|toolu)_[A-Za-z0-9]{1,12}", fullmatch=True)
_names = st.from_regex(r"[A-Za-z_]{1,12}", fullmatch=True)
_inputs = st.dictionaries(texts, st.one_of(texts, st.integers(), st.booleans(), st.none()), max_size=4)
_counts = st.integers(0, 10_000)


@st.composite
def cuts(draw: st.DrawFn, whole: str) -> list[str]:
    """A text in pieces."""
    places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    edges = [0, *places, len(whole)]
    return [piece for start, stop in pairwise(edges) if (piece := whole[start:stop])]


@st.composite
def answers(draw: st.DrawFn, *, interleaved: bool = False) -> list[Delta]:
    """The deltas of a whole answer."""
    out: list[Delta] = [AnswerStart(draw(_ids), draw(_names))]
    calls = draw(st.lists(st.tuples(_ids, _names, _inputs), max_size=4, unique_by=lambda call: call[0]))
    words: st.SearchStrategy[Delta] = st.builds(TextPiece, texts.filter(bool))
    words |= st.builds(ThinkingPiece, texts.filter(bool))
    runs: list[list[Delta]] = []
    for at, (id_, name, values) in enumerate(calls):
        whole = json.dumps(values, ensure_ascii=draw(st.booleans()))
        pieces = [UsePiece(at, piece) for piece in draw(cuts(whole))]
        out += draw(st.lists(words, max_size=2))
        run: list[Delta] = [UseBegun(at, id_, name), *pieces, UseEnded(at)]
        if interleaved:
            runs.append(run)
        else:
            out += run
    out += _mixed(draw, runs)
    out += draw(st.lists(words, max_size=2))
    done: Reason = "tools" if calls else "end"
    reasons: list[Reason] = [done, "length", "refused"]
    cached = draw(_counts)
    out.append(AnswerEnd(draw(st.sampled_from(reasons)), Usage(cached + draw(_counts), draw(_counts), cached)))
    return out


def _mixed(draw: st.DrawFn, runs: list[list[Delta]]) -> list[Delta]:
    """Several calls at once: they begin in order and then come as they like."""
    out: list[Delta] = []
    begun = 0
    left = [list(run) for run in runs]
    while any(left):
        ready = [at for at, run in enumerate(left) if run and at <= begun]
        at = draw(st.sampled_from(ready))
        delta = left[at].pop(0)
        begun += isinstance(delta, UseBegun)
        out.append(delta)
    return out
