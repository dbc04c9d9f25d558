"""Whole bodies and whole answers on every wire, and between wires."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.content import Image, Text
from ferrule.wire import (
    Definition,
    ModelRequest,
    ModelResponse,
    Reason,
    Result,
    Thinking,
    ToolChoice,
    Turn,
    Usage,
    Use,
    WireError,
    anthropic,
    gemini,
    mcp,
    openai_chat,
    openai_responses,
)
from tests.rows import each_row
from tests.wire.strategies import definition

WIRES = [anthropic, openai_chat, openai_responses, gemini]
READ = definition("read", path={"type": "string"})
HELLO = (Turn("user", (Text("hi"),)),)
FULL = ModelRequest(
    model="m",
    turns=HELLO,
    definitions=(READ,),
    choice=ToolChoice("any", parallel=False),
    max_tokens=20_000,
    thinking_tokens=16_000,
    stop=("END",),
    stream=True,
)


@pytest.mark.parametrize(
    ("wire", "lost"),
    [
        pytest.param(anthropic, {}, id="anthropic"),
        pytest.param(openai_chat, {}, id="openai-chat"),
        pytest.param(openai_responses, {"stop": ()}, id="openai-responses-has-no-stop-words"),
        pytest.param(gemini, {"stream": False, "choice": ToolChoice("any")}, id="gemini-streams-by-its-address"),
    ],
)
def test_a_body_comes_back(wire, lost):
    fields = {name: getattr(FULL, name) for name in FULL.__struct_fields__}

    assert wire.asked_in(wire.asked_out(FULL)) == ModelRequest(**{**fields, **lost})


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.NAME)
def test_the_smallest_body_says_nothing_more(wire):
    small = ModelRequest(model="m", turns=HELLO)
    back = wire.asked_in(wire.asked_out(small))

    assert (back.turns, back.definitions, back.choice, back.thinking_tokens) == (HELLO, (), None, None)
    assert not {"tools", "tool_choice", "toolConfig", "parallel_tool_calls"} & wire.asked_out(small).keys()


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.NAME)
def test_a_choice_without_tools_is_not_sent(wire):
    body = wire.asked_out(ModelRequest(model="m", turns=HELLO, choice=ToolChoice("any", parallel=True)))

    assert not {"tool_choice", "toolConfig", "parallel_tool_calls"} & body.keys()


def test_a_host_without_tools_gets_no_choice_either():
    body = openai_chat.asked_out(
        ModelRequest(model="phi3", turns=HELLO, definitions=(READ,), choice=ToolChoice()), host="ollama"
    )

    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()


@pytest.mark.parametrize(
    ("tokens", "effort"),
    [(0, "minimal"), (3_999, "minimal"), (4_000, "low"), (16_000, "medium"), (31_999, "medium"), (32_000, "high")],
)
def test_a_budget_of_thinking_is_an_effort(tokens, effort):
    asked = ModelRequest(model="m", turns=HELLO, thinking_tokens=tokens)

    assert openai_chat.asked_out(asked)["reasoning_effort"] == effort
    assert openai_responses.asked_out(asked)["reasoning"]["effort"] == effort


@pytest.mark.parametrize(("given_tokens", "sent"), [(1, 16), (16, 16), (17, 17)])
def test_responses_takes_no_fewer_than_sixteen_tokens(given_tokens, sent):
    """CLASP: MaxOutputTokens."""
    asked = ModelRequest(model="m", turns=HELLO, max_tokens=given_tokens)

    assert openai_responses.asked_out(asked)["max_output_tokens"] == sent


@pytest.mark.parametrize(
    ("most", "thinking", "sent"),
    [
        pytest.param(None, None, {"max_tokens": 8_192}, id="nothing-said"),
        pytest.param(100, None, {"max_tokens": 100}, id="a-limit"),
        pytest.param(100, 0, {"max_tokens": 100, "thinking": {"type": "disabled"}}, id="no-thinking"),
        pytest.param(
            None, 10, {"max_tokens": 9_216, "thinking": {"type": "enabled", "budget_tokens": 1_024}}, id="a-little"
        ),
        pytest.param(
            5_000, 9_000, {"max_tokens": 5_000, "thinking": {"type": "enabled", "budget_tokens": 4_999}}, id="too-much"
        ),
        pytest.param(1_000, 9_000, {"max_tokens": 1_000}, id="no-room-to-think"),
    ],
)
def test_anthropic_gets_budgets_that_it_takes(most, thinking, sent):
    body = anthropic.asked_out(ModelRequest(model="m", turns=HELLO, max_tokens=most, thinking_tokens=thinking))

    assert {key: body[key] for key in ("max_tokens", "thinking") if key in body} == sent


def test_anthropic_takes_no_temperature_while_it_thinks():
    thinking = ModelRequest(model="m", turns=HELLO, temperature=1.5, thinking_tokens=2_000)
    plain = ModelRequest(model="m", turns=HELLO, temperature=1.5)

    assert "temperature" not in anthropic.asked_out(thinking)
    assert anthropic.asked_out(plain)["temperature"] == 1.0


def test_a_call_of_a_free_text_tool_becomes_text_where_the_api_knows_such_tools():
    patch = Definition("apply_patch", "Change files.", {"type": "object"}, grammar="start: /x/")
    turns = (Turn("assistant", (Use("a", "apply_patch", {"input": "*** Begin"}),)), Turn("user", (Result("a", ()),)))
    body = openai_responses.asked_out(ModelRequest(model="m", turns=turns, definitions=(patch,)))

    assert [item["type"] for item in body["input"]] == ["custom_tool_call", "custom_tool_call_output"]
    assert body["input"][0]["input"] == "*** Begin"


@st.composite
def answers(draw: st.DrawFn) -> ModelResponse:
    calls = draw(
        st.lists(
            st.sampled_from([Use("a", "read", {"path": "x"}), Use("b", "list", {})]),
            max_size=2,
            unique_by=lambda use: use.id,
        )
    )
    words = [Text("I look.")] if draw(st.booleans()) or not calls else []
    reason: Reason = "tools" if calls else draw(st.sampled_from(["end", "length", "refused"]))
    read, write, fresh = draw(st.integers(0, 9)), draw(st.integers(0, 9)), draw(st.integers(0, 9))
    usage = Usage(fresh + read + write, draw(st.integers(0, 9)), read, write)
    return ModelResponse(id="m1", model="m", parts=(*words, *calls), reason=reason, usage=usage)


@pytest.mark.parametrize("wire", [anthropic, openai_chat, openai_responses], ids=lambda wire: wire.NAME)
@given(said=answers())
def test_an_answer_comes_back(wire, said):
    assert wire.said_in(wire.said_out(said)) == said
    assert wire.calls_in(wire.said_out(said)) == tuple(part for part in said.parts if isinstance(part, Use))


@given(said=answers())
def test_an_answer_comes_back_from_gemini_but_for_what_was_written_to_the_cache(said):
    usage = Usage(said.usage.input, said.usage.output, said.usage.cache_read)

    assert gemini.said_in(gemini.said_out(said)) == ModelResponse(
        id=said.id, model=said.model, parts=said.parts, reason=said.reason, usage=usage
    )


def _message(stop: str | None) -> dict[str, Any]:
    return {"content": [], "stop_reason": stop}


def _completion(stop: str | None, **message: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "x", **message}, "finish_reason": stop}]}


def _candidate(stop: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [*parts]}, "finishReason": stop}]}


def _output(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"output": [*items], **more}


REASONS: list[tuple[Any, dict[str, Any], Reason]] = [
    (anthropic, _message("end_turn"), "end"),
    (anthropic, _message("tool_use"), "tools"),
    (anthropic, _message("max_tokens"), "length"),
    (anthropic, _message("model_context_window_exceeded"), "length"),
    (anthropic, _message("stop_sequence"), "stopped"),
    (anthropic, _message("refusal"), "refused"),
    (anthropic, _message("pause_turn"), "end"),
    (anthropic, _message(None), "end"),
    (openai_chat, _completion("stop"), "end"),
    (openai_chat, _completion("tool_calls"), "tools"),
    (openai_chat, _completion("function_call"), "tools"),
    (openai_chat, _completion("length"), "length"),
    (openai_chat, _completion("content_filter"), "refused"),
    (openai_chat, _completion("new"), "end"),
    (openai_chat, _completion(None), "end"),
    (openai_chat, _completion("stop", refusal="no"), "refused"),
    (openai_chat, _completion("stop", tool_calls=[{"id": "a", "function": {"name": "b"}}]), "tools"),
    (openai_responses, _output(status="completed"), "end"),
    (openai_responses, _output(incomplete_details={"reason": "max_output_tokens"}), "length"),
    (openai_responses, _output(incomplete_details={"reason": "content_filter"}), "refused"),
    (
        openai_responses,
        _output({"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}),
        "refused",
    ),
    (openai_responses, _output({"type": "function_call", "call_id": "a", "name": "b", "arguments": "{}"}), "tools"),
    (gemini, _candidate("STOP"), "end"),
    (gemini, _candidate("MAX_TOKENS"), "length"),
    (gemini, _candidate("SAFETY"), "refused"),
    (gemini, _candidate("SPII"), "refused"),
    (gemini, _candidate("STOP", {"functionCall": {"name": "a"}}), "tools"),
    (gemini, {"promptFeedback": {"blockReason": "SAFETY"}}, "refused"),
]


@each_row(("wire", "answer", "reason"), REASONS)
def test_why_a_model_stopped_is_understood(wire, answer, reason):
    """CLASP: MapFinishReason; a filter is a refusal here, not an end."""
    assert wire.said_in(answer).reason == reason


@each_row("wire", WIRES)
@each_row("error", [{"message": "overloaded"}, "overloaded", {"type": "overloaded"}])
def test_an_error_in_place_of_an_answer_is_told(wire, error):
    with pytest.raises(WireError, match="overloaded"):
        wire.said_in({"type": "error", "error": error})


def test_a_failure_without_a_reason_is_told_too():
    with pytest.raises(WireError, match="failed"):
        openai_responses.said_in({"status": "failed", "error": None, "output": []})


@each_row("wire", WIRES)
@each_row(
    "answer",
    [
        None,
        3,
        [],
        {"content": 3, "choices": 3, "output": 3, "candidates": 3},
        {"content": [3], "choices": [3], "output": [3], "candidates": [3]},
        {"content": [{}], "choices": [], "output": [{"type": "message"}], "candidates": [{"content": 3}]},
        {"content": [], "choices": [{}], "output": [], "usage": 3, "usageMetadata": 3},
        {
            "content": [{"type": "text", "text": "x"}],
            "choices": [{"message": {"content": "x"}}],
            "output": [],
            "usage": {"input_tokens": "x", "prompt_tokens": "x"},
            "usageMetadata": {"promptTokenCount": "x"},
        },
    ],
)
def test_what_is_no_answer_is_refused_in_words(wire, answer):
    with pytest.raises(WireError, match="must"):
        wire.said_in(answer)


@each_row(
    ("arguments", "kept"),
    [
        pytest.param('{"a": 1}', {"a": 1}, id="an-object"),
        pytest.param("", {}, id="nothing"),
        pytest.param("  ", {}, id="blanks"),
        pytest.param('{"a": ', '{"a": ', id="broken"),
        pytest.param("[1]", "[1]", id="an-array"),
        pytest.param("null", "null", id="null"),
        pytest.param('{"a": NaN}', '{"a": NaN}', id="no-number"),
        pytest.param("[" * 100_000, "[" * 100_000, id="without-end"),
        pytest.param('{"a": "\\ud800"}', '{"a": "\\ud800"}', id="half-a-character"),
    ],
)
def test_arguments_are_never_lost(arguments, kept):
    chat = {"choices": [{"message": {"tool_calls": [{"id": "a", "function": {"name": "b", "arguments": arguments}}]}}]}
    responses = {"output": [{"type": "function_call", "call_id": "a", "name": "b", "arguments": arguments}]}

    assert openai_chat.calls_in(chat) == (Use("a", "b", kept),)
    assert openai_responses.calls_in(responses) == (Use("a", "b", kept),)


def test_half_a_character_can_be_sent():
    turn = Turn("assistant", (Use("a", "b", {"x": "\ud800"}),))
    (message,) = openai_chat.turns_out([turn])["messages"]

    assert message["tool_calls"][0]["function"]["arguments"] == '{"x":"\\ud800"}'


def test_an_answer_of_gemini_without_ids_gets_stable_ones():
    answer = {
        "candidates": [{"content": {"parts": [{"functionCall": {"name": "a"}}, {"functionCall": {"name": "a"}}]}}]
    }
    first, second = gemini.calls_in(answer)

    assert first.id != second.id
    assert gemini.calls_in(answer) == (first, second)
    assert gemini.calls_in({**answer, "responseId": "r"})[0].id != first.id


@pytest.mark.parametrize(
    "thought",
    [
        Thinking("hm", "c2ln", wire="gemini"),
        Thinking("hm", "rs_1", "xyz", "openai-responses"),
        Thinking("hm", wire="openai-chat"),
    ],
    ids=lambda thought: thought.wire,
)
def test_thinking_passes_through_a_client_of_another_api(thought):
    said = ModelResponse(id="m", model="m", parts=(thought, Text("So.")), reason="end")
    shown = anthropic.said_out(said)
    sent = anthropic.turns_in({"messages": [{"role": "assistant", "content": shown["content"]}]})

    assert sent == (Turn("assistant", said.parts),)
    assert shown["content"][0]["thinking"] == "hm"


def test_thinking_of_anthropic_passes_through_a_client_of_responses():
    said = ModelResponse(id="m", model="m", parts=(Thinking("hm", "sig", wire="anthropic"), Text("So.")), reason="end")

    assert openai_responses.said_in(openai_responses.said_out(said)).parts == said.parts


def test_a_forged_signature_is_only_a_signature():
    for forged in ("ferrule:", "ferrule:[1]", 'ferrule:["","",""]', 'ferrule:["anthropic","a","b"]'):
        block = {"type": "thinking", "thinking": "hm", "signature": forged}
        (turn,) = anthropic.turns_in({"messages": [{"role": "assistant", "content": [block]}]})

        assert turn.parts == (Thinking("hm", forged, wire="anthropic"),)


def test_what_mcp_says_is_read_and_written():
    use = mcp.call_in({"name": "read", "arguments": {"path": "a"}}, "7")
    result = Result("7", (Text("x"), Image("image/png", "aGk="), Image("image/png", "", "https://x/y")), True, "read")

    assert use == Use("7", "read", {"path": "a"})
    assert mcp.call_out(use) == {"name": "read", "arguments": {"path": "a"}}
    assert mcp.call_in({"name": "now"}) == Use("", "now", {})
    assert mcp.result_out(result)["isError"] is True
    assert mcp.result_in(mcp.result_out(result), "7", "read") == result


@pytest.mark.parametrize(
    ("content", "part"),
    [
        pytest.param({"type": "resource", "resource": {"uri": "x", "text": "y"}}, Text("y"), id="text"),
        pytest.param(
            {"type": "resource", "resource": {"uri": "x", "mimeType": "image/png", "blob": "aGk="}},
            Image("image/png", "aGk="),
            id="image",
        ),
    ],
)
def test_what_mcp_embeds_is_read(content, part):
    assert mcp.result_in({"content": [content]}).parts == (part,)


def test_structure_of_mcp_without_content_is_told_as_json():
    assert mcp.result_in({"content": [], "structuredContent": {"a": 1}}).parts == (Text('{"a":1}'),)


def test_what_only_mcp_knows_goes_back_there():
    audio = {"type": "audio", "data": "x", "mimeType": "audio/wav"}
    result = mcp.result_in({"content": [audio]}, "7", "read")

    assert mcp.result_out(result)["content"] == [audio]
    assert "kind audio" in str(anthropic.results_out([result]))


@pytest.mark.parametrize("wrong", [None, 3, {}, {"name": 3}, {"name": "x", "arguments": []}], ids=str)
def test_what_is_no_call_of_mcp_is_refused_in_words(wrong):
    with pytest.raises(WireError, match="params"):
        mcp.call_in(wrong)


@pytest.mark.parametrize("wrong", [None, {"content": 3}, {"content": [{}]}, {"content": [], "isError": 3}], ids=str)
def test_what_is_no_result_of_mcp_is_refused_in_words(wrong):
    with pytest.raises(WireError, match="must be"):
        mcp.result_in(wrong)
