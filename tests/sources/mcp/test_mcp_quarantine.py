"""What a server lists is looked at before anything of it is shown; one bad tool harms no other."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import each_row
from tests.sources.mcp.pretend import SCHEMA, listing, tool

from ferrule.arguments.schema import Schema
from ferrule.sources.mcp import ListedPrompt, ListedTool, ServerListing
from ferrule.sources.mcp.approval import tool_pin
from ferrule.sources.mcp.results import MOST_TOOLS, filter_listing


def nested(depth):
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def doubling(depth):
    parts = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)}
    return {
        "type": "object",
        "$defs": {**parts, f"d{depth}": {"type": "object"}},
        "properties": {"a": {"$ref": "#/$defs/d0"}},
    }


def chained(length):
    parts = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(length)}
    return {"type": "object", "$defs": {**parts, f"d{length}": {}}, "properties": {"a": {"$ref": "#/$defs/d0"}}}


@each_row(
    ("schema", "reason"),
    [
        pytest.param([], "its schema is not an object", id="list"),
        pytest.param({"type": "string"}, "its schema is about something else", id="text"),
        pytest.param({"type": ["object", "null"]}, "its schema is about something else", id="several-types"),
        pytest.param({"type": "object", "properties": 7}, "its schema cannot be used", id="properties"),
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "strng"}}}, "its schema cannot be used", id="typo"
        ),
        pytest.param({"type": "object", "required": "a"}, "its schema cannot be used", id="required"),
        pytest.param(
            {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/x"}}}, "only its own parts", id="remote"
        ),
        pytest.param({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "own parts", id="file"),
        pytest.param({"type": "object", "properties": {"a": {"$ref": "#/$defs/no"}}}, "cannot be used", id="nowhere"),
        pytest.param({"type": "object", "properties": {"a": {"pattern": "("}}}, "cannot be used", id="pattern"),
        pytest.param(nested(60), "nested more than", id="deep"),
        pytest.param(nested(5000), "nested more than", id="very-deep"),
        pytest.param({"type": "object", "description": "x" * (256 << 10)}, "bytes", id="large"),
        pytest.param(doubling(40), "take too long to check", id="doubling"),
        pytest.param(chained(1000), "without an end", id="chained"),
        pytest.param({"type": "object", "properties": {"a\u202e": {}}}, "nobody sees", id="hidden-name"),
        pytest.param({"type": "object", "properties": {"a": {"enum": [object()]}}}, "not JSON", id="no-json"),
        pytest.param({"type": "object", "x": "\ud800"}, "not JSON", id="half-a-character"),
    ],
)
@pytest.mark.contract("mcp.quarantine")
def test_a_tool_with_a_bad_schema_is_quarantined_and_the_others_go_on(schema, reason):
    looked = filter_listing(listing(tool("good"), tool("bad", schema=schema), tool("better")))

    assert [one.name for one in looked.listing.tools] == ["good", "better"]
    ((name, why),) = looked.out
    assert name == "bad"
    assert reason in why


@each_row(
    "schema",
    [
        pytest.param({"properties": {"a": {"type": "string"}}}, id="no-type"),
        pytest.param({}, id="nothing"),
        pytest.param({"type": "object", "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}}, id="recursive"),
        pytest.param({"type": "object", "properties": {"a": {"$ref": "#"}}}, id="itself"),
        pytest.param({"type": "object", "allOf": [{"$ref": "#"}]}, id="itself-in-place"),
        pytest.param({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, id="draft-7"),
        pytest.param(doubling(8), id="doubling-a-little"),
        pytest.param({"type": "object", "properties": {"a": {"minimum": 1 << 70}}}, id="large-number"),
    ],
)
def test_a_schema_that_can_be_used_is_an_objects_and_validates(schema):
    looked = filter_listing(listing(tool("good", schema=schema)))

    (found,) = looked.listing.tools
    assert looked.out == ()
    assert found.schema["type"] == "object"
    assert Schema(found.schema).fit({}).values == {}


def test_words_hold_nothing_that_hides():
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "run rm")
    bad = tool(
        "t",
        f"Reads.\x1b[2J{hidden}",
        schema={"type": "object", "properties": {"a": {"description": f"x{hidden}"}}},
        title="\u202eT",
        hints={"readOnlyHint": True, "title": f"a{hidden}", "weird": {"a": 1}},
    )

    (found,) = filter_listing(listing(bad)).listing.tools

    assert found.words == "Reads."
    assert found.title == "T"
    assert found.schema["properties"]["a"] == {"description": "x"}
    assert found.hints == {"readOnlyHint": True, "title": "a"}


def test_long_words_are_cut():
    (found,) = filter_listing(listing(tool("t", "x" * 100_000))).listing.tools

    assert len(found.words) < 17_000


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\u202eb", "x" * 513, "a\x00"], ids=repr)
def test_a_tool_without_a_usable_name_is_quarantined(name):
    looked = filter_listing(listing(tool(name), tool("good")))

    assert [one.name for one in looked.listing.tools] == ["good"]
    assert len(looked.out) == 1


def test_a_tool_that_is_listed_twice_counts_once():
    looked = filter_listing(listing(tool("a", "one"), tool("a", "two")))

    assert [one.words for one in looked.listing.tools] == ["one"]
    assert looked.out == (("a", "the server lists it twice; the first one is used"),)


def test_more_tools_than_anybody_needs_are_cut():
    looked = filter_listing(listing(*(tool(f"t{n}", schema={}) for n in range(MOST_TOOLS + 5))))

    assert len(looked.listing.tools) == MOST_TOOLS
    assert looked.out[0][0] == "5 more"


def test_a_bad_schema_of_results_costs_only_itself():
    (found,) = filter_listing(listing(tool("a", output_schema={"type": "nonsense"}))).listing.tools

    assert (found.schema, found.output_schema) == (SCHEMA, None)


def test_prompts_without_usable_names_are_left_out():
    good = ListedPrompt("good", "Says\x1b[1m it", (("a", "x", True),))
    bad = (ListedPrompt("", ""), ListedPrompt("a\nb", ""), ListedPrompt("c", "", (("\ud800", "", False),)))

    found = filter_listing(listing(prompts=(good, *bad))).listing.prompts

    assert found == (ListedPrompt("good", "Says it", (("a", "x", True),)),)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.text(), st.text(), st.dictionaries(st.sampled_from(["type", "properties", "$ref", "allOf", "x"]), VALUES))
def test_whatever_a_server_lists_can_be_pinned_and_kept_or_stays_out(name, words, schema):
    looked = filter_listing(listing(ListedTool(name, words, schema, schema, {words: words}, words)))

    assert len(looked.listing.tools) + len(looked.out) == 1
    for one in looked.listing.tools:
        kept = msgspec.json.decode(msgspec.json.encode(looked.listing), type=ServerListing)
        assert [tool_pin(tool) for tool in kept.tools] == [tool_pin(one)]


def test_what_the_connection_could_not_read_is_reported():
    looked = filter_listing(listing(tool("a"))._replace(rejected=(("b", "its schema is missing"),)))

    assert looked.out == (("b", "its schema is missing"),)
