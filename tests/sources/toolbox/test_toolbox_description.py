"""What a toolbox tool says of itself: both formats, every form of a parameter, and what is refused with a reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row

from ferrule.sources.toolbox.tool import GENERIC, MOST_CHARS, parse_description, tool_name

EMPTY = {"type": "object", "properties": {}, "required": []}
MANUAL = """name: run-tests
description: use this tool instead of Bash to run tests in a workspace
dir: string the workspace directory
"""


def described(**parts: object) -> str:
    return json.dumps({"name": "x", "description": "Does it.", **parts})


def text(*lines: str) -> str:
    return "\n".join(("name: x", "description: Does it.", *lines))


@pytest.mark.contract("toolbox.describe-text")
def test_the_text_of_the_manual_is_understood():
    found = parse_description(MANUAL)

    assert found.name == "run-tests"
    assert found.words == "use this tool instead of Bash to run tests in a workspace"
    assert found.format == "text"
    assert found.subagent_types is None
    assert found.schema == {
        "type": "object",
        "properties": {"dir": {"type": "string", "description": "the workspace directory"}},
        "required": ["dir"],
        "additionalProperties": False,
    }


def test_descriptions_are_joined_and_blank_lines_ignored():
    found = parse_description("description: One.\n\nname: x\n   \ndescription: Two: three.\n\n")

    assert (found.name, found.words) == ("x", "One.\nTwo: three.")


@each_row(
    ("line", "kind", "words", "required"),
    [
        pytest.param("p: string what it is", "string", "what it is", True, id="string"),
        pytest.param("p: boolean is it?", "boolean", "is it?", True, id="boolean"),
        pytest.param("p: number how much", "number", "how much", True, id="number"),
        pytest.param("p: integer how many", "integer", "how many", True, id="integer"),
        pytest.param("p: the path of it", "string", "the path of it", True, id="no-type"),
        pytest.param("p: Number of lines", "string", "Number of lines", True, id="a-word-is-no-type"),
        pytest.param("p: array of names", "string", "array of names", True, id="lists-need-json"),
        pytest.param("p: strings of it", "string", "strings of it", True, id="longer-word"),
        pytest.param("p: string? what it is", "string", "what it is", False, id="question-mark"),
        pytest.param("p: integer? how many", "integer", "how many", False, id="question-mark-integer"),
        pytest.param("p: string what it is (optional)", "string", "what it is (optional)", False, id="in-brackets"),
        pytest.param("p: (Optional) what it is", "string", "(Optional) what it is", False, id="brackets-any-case"),
        pytest.param("p: string optional, what it is", "string", "optional, what it is", False, id="begins-so"),
        pytest.param("p: OPTIONAL what it is", "string", "OPTIONAL what it is", False, id="begins-so-without-type"),
        pytest.param("p: string the optional one", "string", "the optional one", True, id="only-at-the-beginning"),
        pytest.param("p: what? is it", "string", "what? is it", True, id="mark-of-no-type"),
        pytest.param("p: string", "string", GENERIC, True, id="only-a-type"),
        pytest.param("p:", "string", GENERIC, True, id="nothing"),
        pytest.param("p:\tinteger\thow many", "integer", "how many", True, id="tabs"),
        pytest.param("p:string close by", "string", "close by", True, id="without-a-blank"),
        pytest.param("p: string see http://x: y", "string", "see http://x: y", True, id="colons-in-the-value"),
    ],
)
@pytest.mark.contract("toolbox.optional")
def test_a_parameter_of_a_text_is_understood(line, kind, words, required):
    schema = parse_description(text(line)).schema

    assert schema["properties"] == {"p": {"type": kind, "description": words}}
    assert schema["required"] == (["p"] if required else [])
    assert schema["additionalProperties"] is False


@each_row(
    ("spec", "expected"),
    [
        pytest.param(None, {"type": "string", "description": GENERIC}, id="null"),
        pytest.param(True, {"type": "string", "description": GENERIC}, id="true"),
        pytest.param([], {"type": "string", "description": GENERIC}, id="empty-list"),
        pytest.param(["the directory"], {"type": "string", "description": "the directory"}, id="description"),
        pytest.param(["number", "how much"], {"type": "number", "description": "how much"}, id="type-and-description"),
        pytest.param(["path", "where"], {"type": "string", "description": "where"}, id="unknown-type"),
        pytest.param(["object", "what"], {"type": "object", "description": "what"}, id="object"),
        pytest.param(["array", "w"], {"type": "array", "description": "w", "items": {}}, id="array"),
        pytest.param({"type": "boolean", "description": "is it"}, {"type": "boolean", "description": "is it"}, id="o"),
        pytest.param({"type": "integer"}, {"type": "integer", "description": GENERIC}, id="object-type-only"),
        pytest.param({"description": "d"}, {"type": "string", "description": "d"}, id="object-description-only"),
        pytest.param({"type": ["x"]}, {"type": "string", "description": GENERIC}, id="object-with-an-odd-type"),
    ],
)
@pytest.mark.contract("toolbox.describe-json")
def test_a_parameter_of_the_compact_form_is_understood_and_never_required(spec, expected):
    found = parse_description(described(args={"p": spec}))

    assert found.format == "json"
    assert found.schema == {"type": "object", "properties": {"p": expected}}


def test_a_schema_is_taken_as_it_is():
    schema = {
        "type": "object",
        "properties": {"n": {"type": "array", "items": {"$ref": "#/$defs/one"}}},
        "required": ["n"],
        "$defs": {"one": {"type": "integer"}},
    }

    assert parse_description(described(inputSchema=schema, args={"other": []})).schema == schema


@pytest.mark.parametrize("parts", [{}, {"args": None}, {"args": {}}, {"inputSchema": None}], ids=str)
def test_without_parameters_there_are_none(parts):
    assert parse_description(described(**parts)).schema == EMPTY


@pytest.mark.parametrize(
    ("meta", "types"),
    [
        pytest.param(None, None, id="no-meta"),
        pytest.param({"other": 1}, None, id="other-meta"),
        pytest.param({"subagentTypes": ["scope", "all"]}, ("scope", "all"), id="list"),
        pytest.param({"subagentTypes": []}, (), id="nobody"),
        pytest.param({"subagentTypes": "scope"}, ("scope",), id="one"),
    ],
)
def test_meta_says_which_subagents_may_use_it(meta, types):
    assert parse_description(described(meta=meta)).subagent_types == types


@each_row(
    ("written", "reason"),
    [
        pytest.param("", "wrote nothing", id="nothing"),
        pytest.param(" \n ", "wrote nothing", id="blanks"),
        pytest.param("name: x\n", "no description", id="text-without-description"),
        pytest.param("hello: world", "no description", id="any-text"),
        pytest.param("Hello world", "see line 1", id="prose"),
        pytest.param("name: x\ndescription: y\nand more", "see line 3", id="line-without-a-colon"),
        pytest.param("name: x\ndescription: y\nSee https://x", "see line 3", id="key-with-a-blank"),
        pytest.param(text("a: string", "a: string"), "twice", id="parameter-twice"),
        pytest.param(text("name: y"), "twice", id="name-twice"),
        pytest.param("42", "not an object", id="json-number"),
        pytest.param("[]", "not an object", id="json-list"),
        pytest.param('{"name": "x"}', "no description", id="json-without-description"),
        pytest.param('{"name": "x", "description": ""}', "no description", id="json-empty-description"),
        pytest.param('{"name": 1, "description": "y"}', "name is not a text", id="json-name"),
        pytest.param(described(inputSchema=[]), "schema is not an object", id="schema-list"),
        pytest.param(described(inputSchema={"type": "array"}), "than an object", id="schema-of-a-list"),
        pytest.param(described(inputSchema={"type": "object", "properties": []}), "not an object", id="properties"),
        pytest.param(described(inputSchema={"properties": {"a": {"type": "sting"}}}), "cannot be used", id="no-schema"),
        pytest.param(described(inputSchema={"properties": {"a b": {}}}), "model APIs refuse", id="parameter-name"),
        pytest.param(described(inputSchema={"$ref": "https://example.org/x"}), "refer", id="remote-reference"),
        pytest.param(described(inputSchema={"description": "x" * 300_000}), "bytes", id="schema-too-long"),
        pytest.param(described(args=[1]), '"args"', id="args-list"),
        pytest.param(described(args={"a": 5}), "not understood", id="args-number"),
        pytest.param(described(args={"a": False}), "not understood", id="args-false"),
        pytest.param(described(args={"a": ["string", 5]}), "not a text", id="args-odd-description"),
        pytest.param(described(args={"a:\nb": []}), "model APIs refuse", id="args-name"),
        pytest.param(described(meta={"subagentTypes": {"a": 1}}), "subagentTypes", id="unreadable-restriction"),
        pytest.param(described(meta={"subagentTypes": [1]}), "subagentTypes", id="restriction-of-numbers"),
        pytest.param(described(description="x" * 20_001), "the most", id="too-many-words"),
        pytest.param("[" * 100_000, "", id="deep"),
        pytest.param('{"a":' * 3_000 + "1" + "}" * 3_000, "", id="deep-and-closed"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(written, reason):
    with pytest.raises(ValueError, match=r"\.$") as refused:
        parse_description(written)

    assert reason in str(refused.value)


def test_words_steer_no_terminal():
    found = parse_description(described(description="a\x1b[31mb\u202ec", args={"p": ["\x1b]0;x\x07q"]}))

    assert found.words == "abc"
    assert found.schema["properties"]["p"]["description"] == "q"


@given(st.text(max_size=300))
def test_whatever_is_written_it_is_understood_or_refused(written):
    try:
        found = parse_description(written)
    except ValueError:
        return
    assert found.words


@pytest.mark.parametrize(
    ("said", "name"),
    [
        pytest.param("run-tests", "tb__run-tests", id="plain"),
        pytest.param("Run my tests", "tb__Run-my-tests", id="blanks"),
        pytest.param("a.b/c:d", "tb__abcd", id="dropped"),
        pytest.param("--a -- b--", "tb__a-b", id="collapsed"),
        pytest.param("snake_case", "tb__snake_case", id="underscores"),
        pytest.param("äöü", "tb__tool", id="nothing-left"),
        pytest.param("", "tb__tool", id="empty"),
    ],
)
@pytest.mark.contract("toolbox.names")
def test_a_name_is_made_of_what_model_apis_take(said, name):
    assert tool_name(said) == name


@given(st.text(alphabet="ab -_é\n", max_size=200), st.text(alphabet="ab -_é\n", max_size=200))
def test_names_are_short_and_long_ones_stay_apart(one, other):
    for said in (one, other):
        assert len(tool_name(said)) <= MOST_CHARS
    long = "x" * 100
    assert (tool_name(long + one) == tool_name(long + other)) == (one == other)
