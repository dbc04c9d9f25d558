"""A streamed answer, put together: one part for each thing said, one call for each call."""

import pytest

from ferrule.core.content import Text
from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    Foreign,
    ForeignBlock,
    ModelResponse,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Usage,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
    anthropic,
    openai_chat,
)
from ferrule.wire.stream import Assembler, assemble
from tests.rows import each_row


def test_an_answer_is_put_together():
    deltas: list[Delta] = [
        AnswerStart("m1", "model"),
        ThinkingPiece("h", wire="anthropic"),
        ThinkingPiece("m", wire="anthropic"),
        ThinkingPiece("", signature="sig", wire="anthropic"),
        TextPiece("Hel"),
        TextPiece("lo"),
        UseBegun(0, "c1", "f"),
        UsePiece(0, '{"a":'),
        UsePiece(0, "1}"),
        UseEnded(0),
        TextPiece("Bye"),
        AnswerEnd("tools", Usage(1, 2)),
    ]

    assert assemble(deltas) == ModelResponse(
        id="m1",
        model="model",
        parts=(
            Thinking("hm", "sig", wire="anthropic"),
            Text("Hello"),
            Use("c1", "f", {"a": 1}),
            Text("Bye"),
        ),
        reason="tools",
        usage=Usage(1, 2),
    )


@each_row(
    ("pieces", "ended", "reason", "expected"),
    [
        pytest.param(['{"a": 1}'], UseEnded(0), "tools", {"a": 1}, id="object"),
        pytest.param([], UseEnded(0), "tools", {}, id="nothing"),
        pytest.param([" ", "\n"], UseEnded(0), "tools", {}, id="blanks"),
        pytest.param(['{"a": '], UseEnded(0), "tools", '{"a": ', id="malformed"),
        pytest.param(["[1]"], UseEnded(0), "tools", "[1]", id="a-list"),
        pytest.param(["null"], UseEnded(0), "tools", "null", id="null"),
        pytest.param(["[" * 100_000], UseEnded(0), "tools", "[" * 100_000, id="too-deep"),
        pytest.param(["{} {}"], UseEnded(0), "tools", "{} {}", id="two-objects"),
        pytest.param([], UseEnded(0, cut=True), "end", "", id="cut-before-it-began"),
        pytest.param(["{}"], UseEnded(0, cut=True), "end", "{}", id="cut"),
        pytest.param([], UseEnded(0), "length", "", id="out-of-tokens-before-it-began"),
    ],
)
def test_input_is_an_object_only_if_it_was_written_as_a_whole_one(pieces, ended, reason, expected):
    deltas: list[Delta] = [UseBegun(0, "c", "f"), *(UsePiece(0, piece) for piece in pieces), ended, AnswerEnd(reason)]

    assert assemble(deltas).parts == (Use("c", "f", expected),)


def test_free_text_stays_text():
    deltas: list[Delta] = [UseBegun(0, "c", "f", is_text=True), UsePiece(0, "{}"), UseEnded(0), AnswerEnd("tools")]

    assert assemble(deltas).parts == (Use("c", "f", "{}", is_text=True),)


def test_calls_stand_in_the_order_of_their_begin_and_once():
    deltas: list[Delta] = [
        UseBegun(0, "c1", "f"),
        UseBegun(1, "c2", "g"),
        UsePiece(1, '{"b":2}'),
        TextPiece("x"),
        UsePiece(0, '{"a":1}'),
        UseBegun(0, "c1", "f"),
        UseEnded(1),
        UseEnded(0),
        AnswerEnd("tools"),
    ]

    assert assemble(deltas).parts == (Use("c1", "f", {"a": 1}), Use("c2", "g", {"b": 2}), Text("x"))


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        pytest.param(
            [ThinkingPiece("a", signature="s"), ThinkingPiece("b")], [("a", "s", ""), ("b", "", "")], id="signed"
        ),
        pytest.param(
            [ThinkingPiece("a"), ThinkingPiece("", sealed="x"), ThinkingPiece("b")],
            [("a", "", "x"), ("b", "", "")],
            id="sealed",
        ),
        pytest.param([ThinkingPiece("a"), ThinkingPiece("b")], [("ab", "", "")], id="pieces"),
    ],
)
def test_a_signature_and_a_seal_end_a_thinking(deltas, expected):
    parts = assemble([*deltas, AnswerEnd("end")]).parts

    assert parts == tuple(Thinking(*fields) for fields in expected)


def test_what_was_said_before_an_error_is_still_there():
    assembler = Assembler()
    for delta in (TextPiece("a"), Broke("Boom", "kind"), Broke("later"), AnswerEnd("end")):
        assembler.put(delta)

    assert assembler.said().parts == (Text("a"),)
    assert assembler.broke == Broke("Boom", "kind")


def test_a_block_of_one_api_stands_in_its_place_and_goes_back_to_that_api_only():
    block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}

    said = assemble(
        [AnswerStart("m", "x"), TextPiece("a"), ForeignBlock("anthropic", block), TextPiece("b"), AnswerEnd("end")]
    )

    assert said.parts == (Text("a"), Foreign("anthropic", "server_tool_use", block), Text("b"))
    assert [one["type"] for one in anthropic.said_out(said)["content"]] == ["text", "server_tool_use", "text"]
    assert "server_tool_use" not in str(openai_chat.said_out(said))
