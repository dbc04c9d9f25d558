"""Tool definitions and choices on every wire, in both directions."""

import copy
from typing import Any

import pytest
from msgspec.structs import replace

from ferrule.wire import Definition, ToolChoice, WireError, anthropic, gemini, mcp, openai_chat, openai_responses
from ferrule.wire.gemini import in_subset
from ferrule.wire.schema import ANYTHING
from tests.rows import each_row
from tests.wire.strategies import definition

STRING = {"type": "string"}
OPTIONAL = Definition(
    "read",
    "Read a file.",
    {"type": "object", "properties": {"path": STRING, "limit": {"type": "integer"}}, "required": ["path"]},
)
ALL = definition("read", path=STRING)
PATCH = Definition(
    "apply_patch",
    "Change files.",
    {"type": "object", "properties": {"input": STRING}, "required": ["input"]},
    grammar='start: "x"',
)
MODELS = [anthropic, openai_chat, openai_responses, gemini]


@pytest.mark.parametrize(
    ("wire", "shown"),
    [
        pytest.param(
            anthropic, {"name": "read", "description": "Read a file.", "input_schema": ALL.schema}, id="anthropic"
        ),
        pytest.param(
            openai_chat,
            {
                "type": "function",
                "function": {"name": "read", "description": "Read a file.", "parameters": ALL.schema, "strict": False},
            },
            id="openai-chat",
        ),
        pytest.param(
            openai_responses,
            {
                "type": "function",
                "name": "read",
                "description": "Read a file.",
                "parameters": ALL.schema,
                "strict": False,
            },
            id="openai-responses",
        ),
        pytest.param(
            gemini,
            {
                "functionDeclarations": [
                    {"name": "read", "description": "Read a file.", "parametersJsonSchema": ALL.schema}
                ]
            },
            id="gemini",
        ),
        pytest.param(mcp, {"name": "read", "description": "Read a file.", "inputSchema": ALL.schema}, id="mcp"),
    ],
)
def test_a_definition_is_shown_and_read(wire, shown):
    """CLASP: TransformTools."""
    assert wire.definitions_out([ALL]) == [shown]
    assert wire.definitions_in([shown]) == (ALL,)


@pytest.mark.parametrize("wire", [*MODELS, mcp], ids=lambda wire: wire.NAME)
def test_no_tools_are_no_tools(wire):
    assert wire.definitions_out([]) == []
    assert wire.definitions_in([]) == ()


@pytest.mark.parametrize("wire", [anthropic, openai_chat, gemini, mcp], ids=lambda wire: wire.NAME)
def test_a_schema_is_sent_exactly_as_it_is_advertised(wire):
    before = copy.deepcopy(OPTIONAL)
    shown = str(wire.definitions_out([OPTIONAL]))

    assert str(OPTIONAL.schema) in shown
    assert before == OPTIONAL


@pytest.mark.parametrize(
    ("given", "asked", "strict"),
    [
        pytest.param(ALL, False, False, id="not-asked-for"),
        pytest.param(ALL, True, True, id="asked-for"),
        pytest.param(OPTIONAL, True, False, id="optional-parameters"),
        pytest.param(definition("x", a={"type": "object"}), True, False, id="free-form"),
    ],
)
def test_strict_only_where_it_is_asked_for_and_allowed(given, asked, strict):
    """CLASP: TransformTools_StrictFalse."""
    assert openai_chat.definitions_out([given], strict=asked)[0]["function"]["strict"] is strict
    assert openai_responses.definitions_out([given], strict=asked)[0]["strict"] is strict


def test_responses_closes_objects_and_chat_does_not():
    """CLASP: AdditionalPropertiesFalse."""
    assert openai_responses.definitions_out([OPTIONAL])[0]["parameters"]["additionalProperties"] is False
    assert "additionalProperties" not in openai_responses.definitions_out([OPTIONAL], close=False)[0]["parameters"]
    assert "additionalProperties" not in openai_chat.definitions_out([OPTIONAL])[0]["function"]["parameters"]


def test_a_foreign_tool_is_loosened_where_that_is_asked_for():
    flag = definition("x", path=STRING, all={"type": "boolean"})

    assert openai_chat.definitions_out([flag], loosen=True)[0]["function"]["parameters"]["required"] == ["path"]
    assert openai_responses.definitions_out([flag], loosen=True)[0]["parameters"]["required"] == ["path"]
    assert openai_chat.definitions_out([flag])[0]["function"]["parameters"]["required"] == ["path", "all"]


@pytest.mark.parametrize("wire", [openai_chat, openai_responses], ids=lambda wire: wire.NAME)
def test_a_host_without_tools_gets_none(wire):
    """CLASP: provider_tools_test, tools left out."""
    assert wire.definitions_out([ALL], host="ollama", model="phi3") == []
    assert len(wire.definitions_out([ALL], host="ollama", model="llama3")) == 1


def test_a_host_that_wants_strict_gets_it_where_the_schema_allows():
    """CLASP: provider_tools_test, strict by provider."""
    shown = openai_chat.definitions_out([ALL, OPTIONAL], host="gemini", model="gemini-3-pro")

    assert [tool["function"]["strict"] for tool in shown] == [True, False]


@pytest.mark.parametrize(
    ("wire", "shown"),
    [
        pytest.param(
            openai_chat,
            {
                "type": "custom",
                "custom": {
                    "name": "apply_patch",
                    "description": "Change files.",
                    "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": 'start: "x"'}},
                },
            },
            id="openai-chat",
        ),
        pytest.param(
            openai_responses,
            {
                "type": "custom",
                "name": "apply_patch",
                "description": "Change files.",
                "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'},
            },
            id="openai-responses",
        ),
    ],
)
def test_a_free_text_tool_is_a_custom_tool(wire, shown):
    assert wire.definitions_out([PATCH]) == [shown]
    (read,) = wire.definitions_in([shown])
    assert (read.name, read.words, read.grammar) == ("apply_patch", "Change files.", 'start: "x"')
    assert read.schema["required"] == ["input"]


@pytest.mark.parametrize("wire", [anthropic, gemini, mcp], ids=lambda wire: wire.NAME)
def test_a_free_text_tool_is_its_schema_elsewhere(wire):
    assert str(PATCH.schema) in str(wire.definitions_out([PATCH]))


@pytest.mark.parametrize(
    ("wire", "tool"),
    [
        pytest.param(openai_chat, {"type": "custom", "custom": {"name": "x"}}, id="chat-without-format"),
        pytest.param(
            openai_chat, {"type": "custom", "custom": {"name": "x", "format": {"type": "text"}}}, id="chat-text"
        ),
        pytest.param(openai_responses, {"type": "custom", "name": "x"}, id="responses-without-format"),
        pytest.param(
            openai_responses, {"type": "custom", "name": "x", "format": {"type": "text"}}, id="responses-text"
        ),
    ],
)
def test_a_custom_tool_without_a_grammar_takes_any_text(wire, tool):
    (read,) = wire.definitions_in([tool])

    assert read.grammar == ANYTHING
    assert "'type': 'text'" in str(wire.definitions_out([read]))


def test_a_regular_expression_becomes_a_grammar():
    tool = {"type": "custom", "name": "x", "format": {"type": "grammar", "syntax": "regex", "definition": "a/b"}}

    assert openai_responses.definitions_in([tool])[0].grammar == "start: /a\\/b/"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param("computer_20241024", "computer", id="computer"),
        pytest.param("text_editor_20250124", "str_replace_editor", id="editor"),
        pytest.param("bash_20241022", "bash", id="bash"),
        pytest.param("bash_20250124", "bash", id="a-later-bash"),
    ],
)
def test_a_built_in_tool_of_anthropic_gets_a_schema(kind, name):
    """CLASP: TransformTools, computer use types."""
    (read,) = anthropic.definitions_in([{"type": kind, "name": name, "cache_control": {"type": "ephemeral"}}])

    assert read.name == name
    assert read.schema["type"] == "object"
    assert read.schema["properties"]
    assert openai_chat.definitions_out([read])[0]["function"]["name"] == name


def test_a_mark_for_the_cache_goes_back_to_its_own_api_only():
    tool = {"name": "x", "description": "", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}
    read = anthropic.definitions_in([tool])

    assert anthropic.definitions_out(read) == [tool]
    assert "cache" not in str(openai_chat.definitions_out(read))


HOSTED = [
    pytest.param(anthropic, {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}, id="anthropic"),
    pytest.param(openai_responses, {"type": "file_search", "vector_store_ids": ["vs_1"]}, id="openai-responses"),
    pytest.param(gemini, {"googleSearch": {}}, id="gemini"),
]


@pytest.mark.parametrize(("wire", "tool"), HOSTED)
def test_a_tool_that_runs_inside_of_its_api_goes_back_there_and_is_refused_elsewhere(wire, tool):
    definitions = wire.definitions_in([tool])

    assert wire.definitions_out(definitions) == [tool]
    for other in MODELS:
        if other is not wire:
            with pytest.raises(WireError, match="runs inside of its own API"):
                other.definitions_out(definitions)


@each_row("wire", [*MODELS, mcp])
@each_row(
    "wrong",
    [
        None,
        5,
        "x",
        [5],
        [{}],
        [{"type": "no_such_tool", "function": 3, "functionDeclarations": 3}],
        [{"type": "function", "function": 3}],
        [{"type": "custom", "custom": {"name": 3}, "format": 3}],
        [{"name": None, "input_schema": [], "inputSchema": [], "functionDeclarations": [3]}],
        [{"functionDeclarations": [{"name": "x", "parameters": 3}]}],
    ],
)
def test_what_is_no_definition_is_refused_in_words(wire, wrong):
    with pytest.raises(WireError, match="tools"):
        wire.definitions_in(wrong)


def test_mcp_keeps_annotations():
    tool = {"name": "x", "description": "", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}

    assert mcp.definitions_out(mcp.definitions_in([tool])) == [tool]


CHOICES: list[Any] = [
    (ToolChoice("auto"), {"type": "auto"}, "auto", "auto", ("AUTO", None)),
    (ToolChoice("any"), {"type": "any"}, "required", "required", ("ANY", None)),
    (ToolChoice("none"), {"type": "none"}, "none", "none", ("NONE", None)),
    (
        ToolChoice("tool", "read"),
        {"type": "tool", "name": "read"},
        {"type": "function", "function": {"name": "read"}},
        {"type": "function", "name": "read"},
        ("ANY", ["read"]),
    ),
]


@pytest.mark.parametrize(
    ("choice", "messages", "chat", "responses", "mode"), CHOICES, ids=lambda value: str(value)[:24]
)
def test_a_choice_is_said_and_read_on_every_wire(choice, messages, chat, responses, mode):
    """CLASP: TransformToolChoice."""
    config = {"mode": mode[0], "allowedFunctionNames": mode[1]} if mode[1] else {"mode": mode[0]}
    rows = (
        (anthropic, messages),
        (openai_chat, chat),
        (openai_responses, responses),
        (gemini, {"functionCallingConfig": config}),
    )
    for wire, said in rows:
        assert wire.choice_out(choice) == said
        assert wire.choice_in(said) == choice


@pytest.mark.parametrize("wire", MODELS, ids=lambda wire: wire.NAME)
def test_no_choice_is_no_choice(wire):
    assert wire.choice_in(None) is None


@each_row("wire", MODELS)
@each_row("wrong", [5, "sometimes", {"type": "sometimes"}, {"type": 3}, {"functionCallingConfig": {"mode": "X"}}, []])
def test_a_choice_of_no_kind_is_refused_in_words(wire, wrong):
    if wire is gemini and isinstance(wrong, dict) and "type" in wrong:
        assert wire.choice_in(wrong) is None  # an object without the field that is looked for says nothing
        return
    with pytest.raises(WireError, match=r"tool_choice|toolConfig"):
        wire.choice_in(wrong)


@pytest.mark.parametrize("several", [True, False])
def test_several_calls_at_once_can_be_forbidden_in_anthropic_words(several):
    choice = ToolChoice("any", parallel=several)

    assert anthropic.choice_out(choice) == {"type": "any", "disable_parallel_tool_use": not several}
    assert anthropic.choice_in(anthropic.choice_out(choice)) == choice


@pytest.mark.parametrize(
    ("wire", "said", "choice"),
    [
        pytest.param(
            openai_chat, {"type": "custom", "custom": {"name": "x"}}, ToolChoice("tool", "x"), id="chat-custom"
        ),
        pytest.param(openai_responses, {"type": "custom", "name": "x"}, ToolChoice("tool", "x"), id="responses-custom"),
        pytest.param(
            openai_chat,
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
            ToolChoice("auto"),
            id="chat-some",
        ),
        pytest.param(
            openai_responses,
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "x"}]},
            ToolChoice("tool", "x"),
            id="responses-one-of-one",
        ),
        pytest.param(
            openai_chat,
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "x"}}]},
            },
            ToolChoice("tool", "x"),
            id="chat-one-of-one",
        ),
        pytest.param(
            gemini,
            {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["a", "b"]}},
            ToolChoice("any"),
            id="gemini-one-of-two",
        ),
    ],
)
def test_other_ways_to_choose_are_understood_and_go_back_as_they_came(wire, said, choice):
    found = wire.choice_in(said)

    assert replace(found, extra=None) == choice
    assert wire is not gemini or wire.choice_out(found) == said
    assert wire is gemini or wire.choice_out(found, {"x"}) == said


def test_a_free_text_tool_is_chosen_in_its_own_words():
    assert openai_chat.choice_out(ToolChoice("tool", "x"), {"x"}) == {"type": "custom", "custom": {"name": "x"}}
    assert openai_responses.choice_out(ToolChoice("tool", "x"), {"x"}) == {"type": "custom", "name": "x"}


@each_row(
    ("schema", "written"),
    [
        pytest.param(STRING, {"type": "STRING"}, id="type"),
        pytest.param({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}, id="null-among-types"),
        pytest.param(
            {"type": ["string", "integer"]}, {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]}, id="several-types"
        ),
        pytest.param({"const": "a"}, {"type": "STRING", "enum": ["a"]}, id="const"),
        pytest.param(
            {"type": "integer", "enum": [1, 2]},
            {"type": "INTEGER", "description": "One of: 1, 2."},
            id="enum-of-numbers",
        ),
        pytest.param({"type": "integer", "exclusiveMinimum": 0}, {"type": "INTEGER", "minimum": 1}, id="exclusive"),
        pytest.param(
            {"type": "number", "exclusiveMaximum": 5}, {"type": "NUMBER", "maximum": 5}, id="exclusive-number"
        ),
        pytest.param(
            {"type": "string", "format": "uri", "$schema": "x", "default": "y"}, {"type": "STRING"}, id="dropped"
        ),
        pytest.param({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}, id="format"),
        pytest.param(
            {"oneOf": [STRING, {"type": "null"}]}, {"anyOf": [{"type": "STRING"}], "nullable": True}, id="one-of"
        ),
        pytest.param({"type": "array"}, {"type": "ARRAY", "items": {"type": "STRING"}}, id="array-of-anything"),
        pytest.param(
            {"type": "array", "prefixItems": [STRING, STRING]},
            {"type": "ARRAY", "items": {"type": "STRING"}},
            id="tuple",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": STRING}, "required": ["a", "b"], "additionalProperties": False},
            {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "propertyOrdering": ["a"], "required": ["a"]},
            id="object",
        ),
        pytest.param(
            {
                "$defs": {"s": STRING},
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/s", "description": "It."}},
            },
            {
                "type": "OBJECT",
                "properties": {"a": {"type": "STRING", "description": "It."}},
                "propertyOrdering": ["a"],
            },
            id="reference",
        ),
        pytest.param(
            {"$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}, "$ref": "#/$defs/t"},
            {"type": "ARRAY", "items": {"type": "OBJECT"}},
            id="reference-to-itself",
        ),
        pytest.param(
            {
                "$defs": {"p": {"properties": {"a": STRING}, "required": ["a"]}},
                "allOf": [{"$ref": "#/$defs/p"}, {"properties": {"b": STRING}}],
            },
            {
                "type": "OBJECT",
                "properties": {"b": {"type": "STRING"}, "a": {"type": "STRING"}},
                "propertyOrdering": ["b", "a"],
                "required": ["a"],
            },
            id="all-of",
        ),
        pytest.param({"$defs": {"p": {"allOf": [{"$ref": "#/$defs/p"}]}}, "$ref": "#/$defs/p"}, {}, id="all-of-itself"),
    ],
)
def test_a_schema_is_put_into_geminis_own_words(schema, written):
    before = copy.deepcopy(schema)

    assert in_subset(schema) == written
    assert schema == before


@pytest.mark.parametrize("reference", ["#/$defs/none", "https://example.com/x", "#/type/x"])
def test_a_reference_to_nowhere_is_refused_in_words(reference):
    with pytest.raises(WireError, match="refers to"):
        in_subset({"type": "object", "$ref": reference})


def test_references_that_multiply_come_to_an_end():
    levels = {
        f"l{at}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/l{at + 1}"} for k in "ab"}}
        for at in range(40)
    }
    bomb = {"$defs": {**levels, "l40": STRING}, "$ref": "#/$defs/l0"}

    with pytest.raises(WireError, match="too large"):
        in_subset(bomb)


def test_gemini_reads_its_own_schema_as_json_schema():
    declared = {
        "name": "x",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "a": {"type": "STRING", "nullable": True},
                "b": {"type": "ARRAY", "items": {"type": "INTEGER"}},
            },
            "propertyOrdering": ["a", "b"],
        },
    }

    assert gemini.definitions_in([{"function_declarations": [declared]}])[0].schema == {
        "type": "object",
        "properties": {"a": {"type": ["string", "null"]}, "b": {"type": "array", "items": {"type": "integer"}}},
    }


def test_a_function_without_parameters_says_nothing_of_them_in_the_subset():
    empty = Definition("now", "The time.", {"type": "object", "properties": {}})

    assert gemini.definitions_out([empty], subset=True) == [
        {"functionDeclarations": [{"name": "now", "description": "The time."}]}
    ]


def test_a_tool_that_the_api_has_itself_can_stand_for_ours():
    """CLASP: WebSearch becomes the search of the Responses API; everything else stays a function."""
    given = [Definition(name, "Words.", {"type": "object", "properties": {}}) for name in ("WebSearch", "Read")]

    sent = openai_responses.definitions_out(given, hosted=openai_responses.SEARCHES)

    assert sent[0] == {"type": "web_search_preview"}
    assert (sent[1]["type"], sent[1]["name"]) == ("function", "Read")
    assert openai_responses.definitions_out(given)[0]["name"] == "WebSearch"
