"""The makers' own packages as judges: what goes out parses with their types, and what they write is read here.

The packages are loaded once for the whole module; nothing of the product imports them.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from ferrule.core.content import Image, Text
from ferrule.wire import (
    Definition,
    ModelRequest,
    ModelResponse,
    Result,
    Thinking,
    ToolChoice,
    Turn,
    Usage,
    Use,
    anthropic,
    gemini,
    mcp,
    openai_chat,
    openai_responses,
)
from ferrule.wire.schema import builtin
from tests.wire.strategies import definition

PNG = Image("image/png", "aGk=")
READ = definition("read", path={"type": "string", "description": "The path."})
LIST = Definition(
    "list",
    "List files.",
    {
        "type": "object",
        "properties": {
            "depth": {"type": ["integer", "null"], "exclusiveMinimum": 0, "default": 1},
            "kind": {"const": "file"},
            "tree": {"$ref": "#/$defs/tree"},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            "either": {"oneOf": [{"type": "string"}, {"type": "boolean"}]},
        },
        "$defs": {"tree": {"type": "object", "properties": {"below": {"$ref": "#/$defs/tree"}}}},
    },
)
PATCH = Definition(
    "apply_patch", "Change files.", {"type": "object", "properties": {"input": {"type": "string"}}}, "s: /x/"
)
EDITOR = builtin("text_editor_20250124", "str_replace_editor")
assert EDITOR is not None
TOOLS = (READ, LIST, PATCH, EDITOR)


def asked(wire: str, signature: str = "c2ln", sealed: str = "") -> ModelRequest:
    """A body with everything in it."""
    return ModelRequest(
        model="m-1",
        turns=(
            Turn("system", (Text("Be brief."),)),
            Turn("user", (Text("Look."), PNG, Image("", "", "https://example.com/x.png"))),
            Turn(
                "assistant",
                (
                    Thinking("hm", signature, sealed, wire),
                    Text("I look."),
                    Use("toolu_1", "read", {"path": "a"}),
                    Use("odd id: 2", "apply_patch", "*** Begin", is_text=True),
                    Use("call_3", "list", "{broken"),
                ),
            ),
            Turn(
                "user",
                (
                    Text("wait"),
                    Result("toolu_1", (Text("one"), PNG)),
                    Result("odd id: 2", ()),
                    Result("call_3", (Text("no"),), failed=True),
                ),
            ),
            Turn("system", (Text("Later words."),)),
            Turn("user", (Text("Go on."),)),
        ),
        definitions=TOOLS,
        choice=ToolChoice("any", parallel=False),
        max_tokens=20_000,
        thinking_tokens=4_000,
        temperature=0.5,
        stop=("END",),
        stream=True,
    )


SAID = ModelResponse(
    id="msg_1",
    model="m-1",
    parts=(Text("I look."), Use("call_1", "read", {"path": "a"}), Use("b", "apply_patch", "*** Begin", is_text=True)),
    reason="tools",
    usage=Usage(10, 5, 3, 2),
)


@pytest.fixture(scope="module")
def judges(packages: None) -> SimpleNamespace:
    import anthropic.types
    import google.genai.types
    import mcp.types
    import openai.types.chat
    import openai.types.chat.completion_create_params
    import openai.types.responses
    import openai.types.responses.response_create_params
    import pydantic

    @cache
    def adapter(kind: Any) -> pydantic.TypeAdapter[Any]:
        return pydantic.TypeAdapter(kind)

    def judge(kind: Any, value: Any) -> Any:
        """Parses without a guess at what was meant; lists that may be iterated are made into lists."""
        parsed = adapter(kind).validate_python(value, strict=True)
        return _whole(parsed)

    return SimpleNamespace(
        judge=judge,
        anthropic=anthropic.types,
        chat=openai.types.chat,
        chat_body=openai.types.chat.completion_create_params,
        responses=openai.types.responses,
        responses_body=openai.types.responses.response_create_params,
        gemini=google.genai.types,
        mcp=mcp.types,
    )


def _whole(value: Any) -> Any:
    """A parsed value in plain lists: their types check an Iterable only when it is gone through."""
    if isinstance(value, dict):
        return {key: _whole(member) for key, member in value.items()}
    if isinstance(value, str | int | float | bool | None) or hasattr(value, "model_dump"):
        return value
    return [_whole(member) for member in value]


def test_anthropic_takes_the_body(judges):
    body = anthropic.asked_out(asked("anthropic"))
    parsed = judges.judge(judges.anthropic.message_create_params.MessageCreateParamsStreaming, body)

    assert len(parsed["messages"]) == len(body["messages"])
    assert [tool["name"] for tool in parsed["tools"]] == ["read", "list", "apply_patch", "str_replace_editor"]
    for message, sent in zip(parsed["messages"], body["messages"], strict=True):
        assert [block["type"] for block in message["content"]] == [block["type"] for block in sent["content"]]


def test_anthropic_takes_the_answer_and_its_own_is_read(judges):
    said = ModelResponse(
        id="m",
        model="x",
        reason="tools",
        parts=(Thinking("hm", "s", wire="anthropic"), *SAID.parts[:2]),
        usage=SAID.usage,
    )
    message = judges.anthropic.Message.model_validate(anthropic.said_out(said), strict=True)

    assert [type(block).__name__ for block in message.content] == ["ThinkingBlock", "TextBlock", "ToolUseBlock"]
    assert anthropic.said_in(message.model_dump(mode="json")) == said
    assert anthropic.said_in(message.to_dict(mode="json")) == said


def test_anthropic_results_are_messages(judges):
    for message in anthropic.results_out([Result("a", (Text("x"), PNG), failed=True), Result("b", ())]):
        assert judges.judge(judges.anthropic.MessageParam, message)["role"] == "user"


def test_chat_takes_the_body(judges):
    body = openai_chat.asked_out(asked("openai-chat"))
    del body["messages"][2]["reasoning_content"]  # a word of other servers, which this package does not know
    parsed = judges.judge(judges.chat_body.CompletionCreateParamsStreaming, body)

    assert [message["role"] for message in parsed["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "tool",
        "user",
        "user",
        "system",
        "user",
    ]
    assert [call["type"] for call in parsed["messages"][2]["tool_calls"]] == ["function", "custom", "function"]
    assert [tool["type"] for tool in parsed["tools"]] == ["function", "function", "custom", "function"]


def test_chat_takes_the_answer_and_its_own_is_read(judges):
    completion = judges.chat.ChatCompletion.model_validate(openai_chat.said_out(SAID), strict=True)
    names = [type(call).__name__ for call in completion.choices[0].message.tool_calls]

    assert names == ["ChatCompletionMessageFunctionToolCall", "ChatCompletionMessageCustomToolCall"]
    assert openai_chat.said_in(completion.model_dump(mode="json")) == SAID
    assert openai_chat.said_in(completion.to_dict(mode="json")) == SAID


def test_chat_takes_every_choice(judges):
    for choice in (
        ToolChoice("auto"),
        ToolChoice("any"),
        ToolChoice("none"),
        ToolChoice("tool", "read"),
        ToolChoice("tool", "apply_patch"),
    ):
        said = openai_chat.choice_out(choice, {"apply_patch"})

        assert judges.judge(judges.chat.ChatCompletionToolChoiceOptionParam, said) == said


def test_responses_takes_the_body(judges):
    body = openai_responses.asked_out(asked("openai-responses", "rs_1", "sealed"))
    parsed = judges.judge(judges.responses_body.ResponseCreateParamsStreaming, body)

    assert [item["type"] for item in parsed["input"]] == [
        "message",
        "reasoning",
        "message",
        "function_call",
        "custom_tool_call",
        "function_call",
        "function_call_output",
        "custom_tool_call_output",
        "function_call_output",
        "message",
        "message",
        "message",
    ]
    assert [tool["type"] for tool in parsed["tools"]] == ["function", "function", "custom", "function"]


def test_responses_takes_the_answer_and_its_own_is_read(judges):
    said = ModelResponse(
        id="resp_1",
        model="m",
        reason="tools",
        parts=(Thinking("hm", "rs_1", "sealed", "openai-responses"), *SAID.parts),
        usage=SAID.usage,
    )
    answer = judges.responses.Response.model_validate(openai_responses.said_out(said))

    assert [item.type for item in answer.output] == ["reasoning", "message", "function_call", "custom_tool_call"]
    assert answer.output[2].id == "fc_x_call_1"
    assert openai_responses.said_in(answer.model_dump(mode="json")) == said
    assert openai_responses.said_in(answer.to_dict(mode="json")) == said


def test_responses_output_is_taken_back_as_input(judges):
    answer = judges.responses.Response.model_validate(openai_responses.said_out(SAID))
    items = [item.to_dict(mode="json") for item in answer.output]

    (turn,) = openai_responses.turns_in({"input": items})

    assert tuple(replace(part, extra=None) for part in turn.parts) == SAID.parts
    assert openai_responses.turns_out([turn])["input"] == items


def test_responses_takes_every_choice(judges):
    for choice in (
        ToolChoice("auto"),
        ToolChoice("any"),
        ToolChoice("none"),
        ToolChoice("tool", "read"),
        ToolChoice("tool", "apply_patch"),
    ):
        said = openai_responses.choice_out(choice, {"apply_patch"})

        assert judges.judge(judges.responses_body.ToolChoice, said) == said


@pytest.mark.parametrize("subset", [False, True], ids=["json-schema", "subset"])
def test_gemini_takes_the_body(judges, subset):
    types = judges.gemini
    body = gemini.asked_out(asked("gemini"), subset=subset)
    contents = [types.Content.model_validate(content) for content in body["contents"]]
    config = types.GenerateContentConfig.model_validate(
        {
            "tools": body["tools"],
            "toolConfig": body["toolConfig"],
            "systemInstruction": body["systemInstruction"],
            **body["generationConfig"],
        }
    )
    read = {
        "model": "m-1",
        "contents": [content.model_dump(mode="json", by_alias=True) for content in contents],
        "systemInstruction": config.system_instruction.model_dump(mode="json", by_alias=True),
    }

    assert gemini.turns_in(read) == gemini.turns_in(body)
    assert [one.name for one in config.tools[0].function_declarations] == [one.name for one in TOOLS]
    assert config.tool_config.function_calling_config.mode == "ANY"


def test_gemini_reads_definitions_and_choices_of_its_own_package(judges):
    types = judges.gemini
    tools = [
        types.Tool.model_validate(one).model_dump(mode="json", by_alias=True) for one in gemini.definitions_out([READ])
    ]
    config = types.ToolConfig.model_validate(gemini.choice_out(ToolChoice("tool", "read"))).model_dump(
        mode="json", by_alias=True
    )

    assert gemini.definitions_in(tools) == (READ,)
    assert gemini.choice_in(config) == ToolChoice("tool", "read")


def test_gemini_takes_the_answer_and_its_own_is_read(judges):
    said = ModelResponse(
        id="r",
        model="g",
        reason="tools",
        parts=(Thinking("hm", "c2ln", wire="gemini"), *SAID.parts[:2], PNG),
        usage=Usage(10, 5, 3),
    )
    answer = judges.gemini.GenerateContentResponse.model_validate(gemini.said_out(said))

    assert answer.function_calls[0].name == "read"
    for dumped in (answer.model_dump(mode="json", by_alias=True), answer.model_dump(mode="json", exclude_none=True)):
        assert gemini.said_in(dumped) == said


def test_gemini_results_are_a_content(judges):
    (content,) = gemini.results_out([Result("a", (Text("x"), PNG), True, "read"), Result("b", (), name="list")])
    parsed = judges.gemini.Content.model_validate(content)

    assert [part.function_response.name for part in parsed.parts[:2]] == ["read", "list"]


def test_mcp_takes_definitions_calls_and_results(judges):
    types = judges.mcp
    hinted = Definition("x", "It.", {"type": "object"}, annotations={"readOnlyHint": True})
    tools = [types.Tool.model_validate(one) for one in mcp.definitions_out([*TOOLS, hinted])]
    call = types.CallToolRequestParams.model_validate(mcp.call_out(Use("1", "read", {"path": "a"})))
    result = Result("", (Text("x"), PNG, Image("image/png", "", "https://example.com/x.png")), failed=True)
    parsed = types.CallToolResult.model_validate(mcp.result_out(result))
    dumped = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]

    assert [one.name for one in mcp.definitions_in(dumped)] == [*(one.name for one in TOOLS), "x"]
    assert mcp.definitions_in(dumped)[-1] == hinted
    assert mcp.call_in(call.model_dump(mode="json", by_alias=True)) == Use("", "read", {"path": "a"})
    assert parsed.is_error is True
    assert mcp.result_in(parsed.model_dump(mode="json", by_alias=True)) == result
