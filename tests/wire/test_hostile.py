"""Whatever comes over a wire is read or refused in words: nothing else is ever raised, and nothing is changed."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.wire import WireError, anthropic, gemini, mcp, openai_chat, openai_responses
from ferrule.wire.gemini import in_subset
from ferrule.wire.schema import allows_strict, close_schema, for_host, loosen_schema

_FIELDS = """
    type role content text id name input tool_use_id is_error source media_type data url thinking signature
    tools messages system model max_tokens tool_choice stop stream tool_calls function arguments custom
    tool_call_id image_url output call_id summary encrypted_content instructions reasoning effort
    incomplete_details reason usage choices message finish_reason refusal contents parts functionCall
    functionResponse args response inlineData mimeType fileData thoughtSignature thought candidates finishReason
    generationConfig thinkingConfig systemInstruction toolConfig functionCallingConfig mode allowedFunctionNames
    functionDeclarations parameters inputSchema input_schema isError structuredContent resource error
    parallel_tool_calls format grammar syntax definition usageMetadata
"""
_VALUES = """
    text image tool_use tool_result thinking redacted_thinking message function_call function_call_output reasoning
    custom_tool_call custom user assistant system developer tool model base64 url input_text output_text input_image
    refusal function allowed_tools required auto any none ANY lark regex grammar resource resource_link enabled x
"""
KEYS, WORDS = _FIELDS.split(), _VALUES.split()
LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(0, 1) | st.sampled_from([*WORDS, ""])
WILD: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)
PLACES = ("messages", "input", "contents", "tools", "content", "choices", "output", "candidates", "system")
BODIES = st.fixed_dictionaries(
    {"model": st.just("m")}, optional={place: st.lists(WILD, max_size=3) | WILD for place in PLACES}
)


def refusal(work: Callable[[Any], Any], value: Any) -> str:
    """What is said against a value; nothing where it is taken."""
    try:
        work(value)
    except WireError as error:
        return str(error)
    return ""


MODELS = (anthropic, openai_chat, openai_responses, gemini)
READERS: list[tuple[str, Callable[[Any], Any]]] = [
    *((f"{wire.NAME}-{name}", getattr(wire, name)) for wire in MODELS for name in ("asked_in", "said_in", "choice_in")),
    *((f"{wire.NAME}-definitions_in", wire.definitions_in) for wire in (*MODELS, mcp)),
    ("mcp-call_in", mcp.call_in),
    ("mcp-result_in", mcp.result_in),
]


@pytest.mark.parametrize("reader", [pytest.param(reader, id=name) for name, reader in READERS])
@settings(max_examples=60)
@given(value=BODIES | WILD)
def test_anything_is_read_or_refused_in_words(reader, value):
    before = copy.deepcopy(value)
    said = refusal(reader, value)

    assert not said or said.endswith(".") or said.startswith("The API answered")
    assert value == before


@pytest.mark.parametrize("read", MODELS, ids=lambda wire: wire.NAME)
@settings(max_examples=40)
@given(body=BODIES)
def test_what_was_read_can_be_written_or_is_refused_in_words(read, body):
    try:
        asked = read.asked_in(body)
    except WireError:
        return
    for write in MODELS:
        said = refusal(write.asked_out, asked)

        assert not said or said.endswith(".")


_KEYWORDS = """
    type properties items required anyOf oneOf allOf $ref $defs enum const default description format prefixItems
    additionalProperties nullable exclusiveMinimum minimum not if patternProperties strict
"""
SCHEMA_KEYS = _KEYWORDS.split()
SCHEMAS = st.dictionaries(
    st.sampled_from(SCHEMA_KEYS),
    st.recursive(
        LEAVES
        | st.sampled_from(["object", "array", "string", "integer", "null", "#", "#/$defs/x", "#/properties/type"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(SCHEMA_KEYS), inner, max_size=4),
        max_leaves=15,
    ),
)
CLEANERS: list[tuple[str, Callable[[Any], Any]]] = [
    ("loosened", lambda schema: loosen_schema(schema, chat=True)),
    ("closed", close_schema),
    ("allows-strict", allows_strict),
    ("subset", in_subset),
    ("ollama", lambda schema: for_host(schema, "ollama", "llama3")),
    ("gemini", lambda schema: for_host(schema, "gemini")),
]


@pytest.mark.parametrize("clean", [pytest.param(clean, id=name) for name, clean in CLEANERS])
@given(schema=SCHEMAS)
def test_any_schema_is_cleaned_or_refused_in_words(clean, schema):
    before = copy.deepcopy(schema)
    said = refusal(clean, schema)

    assert not said or said.endswith(".")
    assert schema == before
