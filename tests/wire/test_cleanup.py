"""Schemas made fit: what is taken away, what stays, and that the schema given is never changed."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.core.errors import ConfigError
from ferrule.wire import WireError
from ferrule.wire.gemini import in_subset
from ferrule.wire.schema import (
    HOSTS,
    LIMIT_DEPTH,
    allows_strict,
    close_schema,
    for_host,
    host_row,
    loosen_schema,
    transform_schema,
    truly_required,
)
from tests.rows import each_row

STRING = {"type": "string"}
KEYWORDS = ["format", "strict", "pattern", "minimum", "maximum", "required", "default", "title", "additionalProperties"]


def _object(required: list[str] | None = None, /, **properties: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "object", "properties": properties}
    return out if required is None else {**out, "required": required}


SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([STRING, {"type": "integer", "minimum": 1}, {"type": "string", "format": "uri"}, {}, True])
    | st.fixed_dictionaries({"type": st.just("string"), "description": st.sampled_from(["Optional.", "The path."])}),
    lambda inner: (
        st.builds(
            lambda properties, required: _object([name for name in properties if name in required], **properties),
            st.dictionaries(st.sampled_from([*KEYWORDS, "path", "items"]), inner, max_size=4),
            st.sets(st.sampled_from([*KEYWORDS, "path"])),
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)})
        | st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)})
        | st.fixed_dictionaries({"$defs": st.dictionaries(st.just("one"), inner), "$ref": st.just("#/$defs/one")})
    ),
    max_leaves=8,
)
OBJECTS = SCHEMAS.filter(lambda schema: isinstance(schema, dict))
CLEANERS = [
    pytest.param(lambda schema: loosen_schema(schema, chat=True), id="loosened"),
    pytest.param(close_schema, id="closed"),
    pytest.param(lambda schema: for_host(schema, "ollama", "llama3"), id="ollama"),
    pytest.param(lambda schema: for_host(schema, "gemini"), id="gemini"),
    pytest.param(lambda schema: transform_schema(schema, lambda one: {**one, "title": "x"}), id="changed"),
]


@pytest.mark.parametrize("clean", CLEANERS)
@given(schema=OBJECTS)
def test_the_schema_given_stays_as_it_is(clean, schema):
    before = copy.deepcopy(schema)
    clean(schema)

    assert schema == before


@pytest.mark.parametrize("clean", CLEANERS)
@given(schema=OBJECTS)
def test_cleaning_twice_changes_nothing_more(clean, schema):
    once = clean(schema)

    assert clean(once) == once


@given(schema=OBJECTS)
def test_what_needs_no_change_is_not_copied(schema):
    assert transform_schema(schema, lambda one: one) is schema


@each_row(
    ("about", "required"),
    [
        pytest.param({"type": "string"}, True, id="plain"),
        pytest.param({"type": "string", "default": "x"}, False, id="default"),
        pytest.param({"type": "string", "default": None}, False, id="default-of-null"),
        pytest.param({"type": ["string", "null"]}, False, id="null-among-types"),
        pytest.param({"type": "string", "nullable": True}, False, id="nullable"),
        pytest.param({"anyOf": [STRING, {"type": "null"}]}, False, id="null-among-branches"),
        pytest.param({"type": "boolean"}, False, id="boolean"),
        pytest.param({"type": "string", "description": "The path. Optional."}, False, id="optional"),
        pytest.param({"type": "string", "description": "OPTIONAL path."}, False, id="in-capitals"),
        pytest.param({"type": "string", "description": "If not specified, all."}, False, id="if-not-specified"),
        pytest.param({"type": "string", "description": "It defaults to 3."}, False, id="defaults-to"),
        pytest.param({"type": "string", "description": "Set to true to go on."}, False, id="set-to-true-to"),
        pytest.param({"type": "string", "description": "Set to false to stop."}, False, id="set-to-false-to"),
        pytest.param({"type": "string", "description": "If provided, used."}, False, id="if-provided"),
        pytest.param({"type": "string", "description": "When provided, used."}, False, id="when-provided"),
        pytest.param({"type": "string", "description": "It can be omitted."}, False, id="can-be-omitted"),
        pytest.param({"type": "string", "description": "This is not required."}, False, id="not-required"),
        pytest.param({"type": "string", "description": "The options to use."}, True, id="only-similar"),
        pytest.param(True, True, id="boolean-schema"),
    ],
)
def test_a_parameter_is_required_only_if_nothing_calls_it_optional(about, required):
    """CLASP: IdentifyTrulyRequiredForChat, CleanupSchemaForChatCompletions_FiltersOptionalParams."""
    schema = _object(["path", "x"], path=STRING, x=about)

    assert truly_required(schema) == (["path", "x"] if required else ["path"])
    for chat in (True, False):
        assert loosen_schema(schema, chat=chat)["required"] == (["path", "x"] if required else ["path"])


def test_one_phrase_counts_in_chat_only():
    schema = _object(["x"], x={"type": "string", "description": "Only provide if the file is large."})

    assert "required" not in loosen_schema(schema, chat=True)
    assert loosen_schema(schema, chat=False)["required"] == ["x"]


@each_row(
    ("schema", "clean"),
    [
        pytest.param({"type": "string", "format": "uri"}, {"type": "string"}, id="uri"),
        pytest.param({"type": "string", "format": "date"}, {"type": "string", "format": "date"}, id="other-format"),
        pytest.param({"type": "object", "strict": True}, {"type": "object"}, id="strict"),
        pytest.param(_object([]), _object(), id="empty-required"),
        pytest.param(_object(None, strict=STRING), _object(None, strict=STRING), id="a-parameter-called-strict"),
        pytest.param(
            _object(None, format={"type": "string", "format": "uri"}),
            _object(None, format=STRING),
            id="one-called-format",
        ),
        pytest.param(
            {"type": "array", "items": _object(["a"], a={"type": "boolean"})},
            {"type": "array", "items": _object(None, a={"type": "boolean"})},
            id="in-items",
        ),
        pytest.param(
            {"$defs": {"a": {"format": "uri"}}, "anyOf": [{"strict": True}]},
            {"$defs": {"a": {}}, "anyOf": [{}]},
            id="deep",
        ),
        pytest.param({"enum": [{"strict": True}]}, {"enum": [{"strict": True}]}, id="data-is-no-schema"),
        pytest.param({"default": {"format": "uri"}}, {"default": {"format": "uri"}}, id="a-default-is-no-schema"),
        pytest.param({"required": "path"}, {"required": "path"}, id="nonsense-stays"),
    ],
)
def test_a_schema_is_cleaned_up(schema, clean):
    """CLASP: CleanupSchemaForChatCompletions."""
    assert loosen_schema(schema, chat=True) == clean


FREE = {"type": "object"}
PART = {"properties": {"a": STRING}}


@each_row(
    ("schema", "wanted"),
    [
        pytest.param(_object(None, a=STRING), {**_object(None, a=STRING), "additionalProperties": False}, id="object"),
        pytest.param(
            _object(None, a=_object(None, b=STRING)),
            {
                **_object(None, a={**_object(None, b=STRING), "additionalProperties": False}),
                "additionalProperties": False,
            },
            id="nested",
        ),
        pytest.param(_object(None), {**_object(None), "additionalProperties": False}, id="no-parameters"),
        pytest.param(FREE, FREE, id="free-form"),
        pytest.param({**PART, "additionalProperties": True}, {**PART, "additionalProperties": True}, id="says-so"),
        pytest.param(
            {**PART, "additionalProperties": STRING}, {**PART, "additionalProperties": STRING}, id="says-what-else"
        ),
        pytest.param({"allOf": [PART, PART]}, {"allOf": [PART, PART]}, id="together"),
        pytest.param({**PART, "anyOf": [PART]}, {**PART, "anyOf": [PART]}, id="branches-of-one-object"),
        pytest.param(
            {"anyOf": [PART, FREE]}, {"anyOf": [{**PART, "additionalProperties": False}, FREE]}, id="alternatives"
        ),
        pytest.param(
            {"$defs": {"a": PART}, "items": {"$ref": "#/$defs/a"}},
            {"$defs": {"a": {**PART, "additionalProperties": False}}, "items": {"$ref": "#/$defs/a"}},
            id="definition",
        ),
        pytest.param(
            {"$defs": {"a": PART}, "items": {"allOf": [{"$ref": "#/$defs/a"}, PART]}},
            {"$defs": {"a": PART}, "items": {"allOf": [{"$ref": "#/$defs/a"}, PART]}},
            id="definition-of-a-part",
        ),
    ],
)
def test_objects_with_members_are_closed_and_free_ones_are_not(schema, wanted):
    """CLASP: AdditionalPropertiesFalse, without closing what is meant to be open."""
    assert close_schema(schema) == wanted


@each_row(
    ("schema", "allowed"),
    [
        pytest.param(_object(["a"], a=STRING), True, id="all-required"),
        pytest.param(_object(), True, id="nothing-to-require"),
        pytest.param(_object(["a"], a=STRING, b=STRING), False, id="one-optional"),
        pytest.param(_object(["a"], a=_object(None, b=STRING)), False, id="one-optional-inside"),
        pytest.param(_object(["a"], a={"type": "array", "items": _object(None, b=STRING)}), False, id="inside-items"),
        pytest.param(_object(["a"], a=FREE), False, id="free-form-inside"),
        pytest.param({**_object(["a"], a=STRING), "additionalProperties": True}, False, id="open"),
        pytest.param(_object(["a"], a={**STRING, "default": "x"}), False, id="default"),
        pytest.param(_object(["a"], a={"oneOf": [STRING]}), False, id="one-of"),
        pytest.param(_object(["a"], a={"anyOf": [STRING, {"type": "null"}]}), True, id="any-of"),
        pytest.param({"anyOf": [_object()]}, False, id="no-object-at-the-root"),
        pytest.param({"type": "object", "properties": {}, "required": [["x"]]}, True, id="nonsense-in-required"),
    ],
)
def test_strict_needs_every_member_required_at_any_depth(schema, allowed):
    assert allows_strict(schema) is allowed


def test_a_schema_too_deep_is_refused_and_not_followed():
    deep: dict[str, Any] = {}
    for _ in range(LIMIT_DEPTH + 200):
        deep = {"items": deep, "type": "array"}

    for clean in (lambda one: loosen_schema(one, chat=True), close_schema, allows_strict, in_subset):
        with pytest.raises(WireError):
            clean(deep)


@each_row(
    ("host", "model", "tools", "strict"),
    [
        pytest.param("deepseek", "deepseek-v3.2-speciale", False, False, id="deepseek-speciale"),
        pytest.param("deepseek", "deepseek-v3.2", True, True, id="deepseek-v3.2"),
        pytest.param("deepseek", "DeepSeek-V3.1", True, True, id="deepseek-v3.1"),
        pytest.param("deepseek", "deepseek-r1", True, False, id="deepseek-r1"),
        pytest.param("gemini", "gemini-3-pro", True, True, id="gemini-3"),
        pytest.param("gemini", "gemini-2.5-pro", True, False, id="gemini-2.5"),
        pytest.param("ollama", "llama3.1:8b", True, False, id="ollama-llama3"),
        pytest.param("ollama", "mistral", True, False, id="ollama-mistral"),
        pytest.param("ollama", "mixtral:8x7b", True, False, id="ollama-mixtral"),
        pytest.param("ollama", "command-r-plus", True, False, id="ollama-command-r"),
        pytest.param("ollama", "phi3", False, False, id="ollama-phi3"),
        pytest.param("ollama", "", False, False, id="ollama-unknown"),
    ],
)
def test_a_host_takes_tools_by_model(host, model, tools, strict):
    """CLASP: provider_tools_test, which models get tools and strict ones."""
    row = host_row(host, model)

    assert (row.tools, row.strict) == (tools, strict)


CHECKED = {"type": "string", "format": "date", "pattern": "x", "minLength": 1}
NUMBER = {"type": "number", "minimum": 1, "maximum": 2}


@each_row(
    ("host", "model", "schema", "wanted"),
    [
        pytest.param("ollama", "llama3", CHECKED, {"type": "string", "minLength": 1}, id="ollama-string"),
        pytest.param("ollama", "llama3", NUMBER, {"type": "number"}, id="ollama-number"),
        pytest.param(
            "ollama",
            "llama3",
            _object(None, format=NUMBER),
            _object(None, format={"type": "number"}),
            id="ollama-names",
        ),
        pytest.param("deepseek", "v3.2", FREE, FREE, id="deepseek-free-form"),
        pytest.param(
            "deepseek", "v3.2", _object(), {**_object(), "additionalProperties": False}, id="deepseek-v3.2-closes"
        ),
        pytest.param("deepseek", "v3.1", _object(), _object(), id="deepseek-v3.1-does-not"),
        pytest.param(
            "gemini",
            "",
            _object(None, file_path=STRING),
            _object(None, file_path={**STRING, "description": "The file path."}),
            id="gemini-describes",
        ),
        pytest.param(
            "gemini",
            "",
            _object(None, a={**STRING, "description": "It."}),
            _object(None, a={**STRING, "description": "It."}),
            id="gemini-keeps-descriptions",
        ),
        pytest.param("openai", "gpt-5", CHECKED, CHECKED, id="openai-takes-all"),
    ],
)
def test_a_schema_is_what_its_host_takes(host, model, schema, wanted):
    """CLASP: provider_tools_test, schemas by provider."""
    assert for_host(schema, host, model) == wanted


def test_an_unknown_host_is_told_the_known_ones():
    with pytest.raises(ConfigError, match="deepseek, gemini, ollama, openai"):
        host_row("nowhere")


def test_every_host_has_a_row_for_models_that_no_other_row_names():
    last = {row.host: row for row in HOSTS}

    assert {host for host, row in last.items() if row.models} == set()
