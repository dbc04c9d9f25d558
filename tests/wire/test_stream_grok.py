"""Grok's calls inside of text: taken out in whatever pieces they come, and left alone where they are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.content import Text
from ferrule.wire import AnswerEnd, AnswerStart, Broke, TextPiece, ThinkingPiece, Use, UseBegun, UseEnded, UsePiece
from ferrule.wire.anthropic_stream import AnthropicWriter
from ferrule.wire.openai_chat_stream import ChatReader
from ferrule.wire.stream import assemble
from ferrule.wire.translate import GrokCalls, translate
from tests.rows import each_row
from tests.wire.streams import check_messages, cuts, parsed


def call(name, **parameters):
    inside = "".join(f'<xai:parameter name="{key}">{value}</xai:parameter>' for key, value in parameters.items())
    return f'<xai:function_call name="{name}">{inside}</xai:function_call>'


def through(*deltas):
    grok = GrokCalls()
    return [after for delta in (*deltas, AnswerEnd("end")) for after in grok.put(delta)]


def said(*pieces):
    return list(assemble(through(*map(TextPiece, pieces))).parts)


TEXTS = [
    pytest.param(
        "Here: " + call("get_weather", location="NYC"),
        [Text("Here: "), Use("toolu_grok_1", "get_weather", {"location": "NYC"})],
        id="CLASP: ProcessGrokXML_CompleteToolCall",
    ),
    pytest.param("Just text.", [Text("Just text.")], id="CLASP: ProcessGrokXML_NoXML"),
    pytest.param(
        call("func1", a=1) + " and " + call("func2", b=2),
        [Use("toolu_grok_1", "func1", {"a": 1}), Text(" and "), Use("toolu_grok_2", "func2", {"b": 2})],
        id="CLASP: ProcessGrokXML_MultipleToolCalls",
    ),
    pytest.param(
        call("f", location="NYC", unit="celsius"),
        [Use("toolu_grok_1", "f", {"location": "NYC", "unit": "celsius"})],
        id="CLASP: ParseXMLParameters",
    ),
    pytest.param(
        call("f", count="42", enabled="true", many="[1]"),
        [Use("toolu_grok_1", "f", {"count": 42, "enabled": True, "many": [1]})],
        id="CLASP: ParseXMLParameters_JSONValue",
    ),
    pytest.param(call("f"), [Use("toolu_grok_1", "f", {})], id="no-parameters"),
    pytest.param(
        "<xai:function_call name='f'><xai:parameter name='a'>x\n<b></xai:parameter></xai:function_call>",
        [Use("toolu_grok_1", "f", {"a": "x\n<b>"})],
        id="single-quotes-and-lines",
    ),
    pytest.param("a < b <xai: c", [Text("a < b <xai: c")], id="almost-a-call"),
    pytest.param('x <xai:function_call name="f"', [Text('x <xai:function_call name="f"')], id="never-ends"),
    pytest.param(
        "<xai:function_call></xai:function_call>", [Text("<xai:function_call></xai:function_call>")], id="no-name"
    ),
    pytest.param("tail <", [Text("tail <")], id="ends-like-a-beginning"),
]


@each_row(("text", "expected"), TEXTS)
def test_calls_are_taken_out_of_text(text, expected):
    assert said(text) == expected


@each_row(("text", "expected"), TEXTS)
def test_single_characters_give_the_same(text, expected):
    """CLASP: ProcessGrokXML_PartialXML_Buffering."""
    assert said(*text) == expected


@given(st.data())
def test_any_pieces_give_the_same(data):
    words = st.sampled_from(["a ", "<", "<xai:function_call", call("f", a="1"), call("g"), "</xai:function_call>", ">"])
    text = "".join(data.draw(st.lists(words, max_size=6)))

    assert said(*data.draw(cuts(text))) == said(text)


def test_an_answer_with_a_call_in_its_text_wants_tools_run():
    assert through(TextPiece(call("f")))[-1] == AnswerEnd("tools")
    assert through(TextPiece("no call"))[-1] == AnswerEnd("end")


def test_other_calls_are_numbered_anew():
    deltas = through(
        AnswerStart("i", "m"),
        UseBegun(0, "c", "g"),
        UsePiece(0, "{}"),
        TextPiece(call("f")),
        UseEnded(0),
        ThinkingPiece("hm"),
        UseBegun(1, "d", "h"),
        UseEnded(1),
        Broke("no"),
    )

    assert [delta.at for delta in deltas if isinstance(delta, UseBegun)] == [0, 1, 2]
    assert [delta.at for delta in deltas if isinstance(delta, UseEnded)] == [1, 0, 2]


def test_it_is_off_unless_asked_for():
    chunk = b'data: {"choices":[{"delta":{"content":"<xai:function_call name=\\"f\\"></xai:function_call>"}}]}\n\n'

    plain = parsed(b"".join(translate(ChatReader(), AnthropicWriter(), [chunk])))
    asked = parsed(b"".join(translate(ChatReader(), AnthropicWriter(), [chunk], through=GrokCalls())))

    check_messages(asked)
    kinds = [[one["content_block"]["type"] for one in found if "content_block" in one] for found in (plain, asked)]
    assert kinds == [["text"], ["tool_use"]]
