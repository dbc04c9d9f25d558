"""Fitting a call's arguments to an advertised schema: what passes, what is noted, and how a refusal reads."""

import copy
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arguments.test_coerce import SCHEMAS, VALUES

from ferrule.arguments.schema import Fitted, Schema
from ferrule.core.errors import BadArguments, ConfigError

BOUND_SECONDS = 60
TOO_DEEP = "The arguments are nested more than 64 levels deep; send them flatter."

READ = Schema(
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "read_range": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        },
        "required": ["path"],
    }
)
EDIT = Schema(
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "edits": {"type": "array", "items": {"$ref": "#/$defs/edit"}, "maxItems": 3},
            "mode": {"enum": ["exact", "loose"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 10},
            "token": {"type": "boolean"},
            "where": {
                "anyOf": [
                    {"type": "integer"},
                    {"type": "object", "properties": {"line": {"type": "integer"}}, "required": ["line"]},
                ]
            },
        },
        "required": ["path", "edits"],
        "additionalProperties": False,
        "$defs": {
            "edit": {
                "type": "object",
                "properties": {"old": {"type": "string"}, "new": {"type": "string", "minLength": 1}},
                "required": ["old", "new"],
                "additionalProperties": False,
            }
        },
    }
)
EDITS: list[Any] = []


def _refusal(schema: Schema, raw: Any) -> str:
    with pytest.raises(BadArguments) as caught:
        schema.fit(raw)
    assert caught.value.code == "bad-arguments"
    return caught.value.message


@pytest.mark.parametrize(
    ("raw", "fitted"),
    [
        pytest.param({"path": "a"}, Fitted({"path": "a"}), id="object"),
        pytest.param('{"path": "a"}', Fitted({"path": "a"}), id="text"),
        pytest.param(' \n{"path": "a"}\n', Fitted({"path": "a"}), id="text-in-blanks"),
        pytest.param(r'{"path": "\ud83d\ude00"}', Fitted({"path": "😀"}), id="text-with-a-pair-of-surrogates"),
        pytest.param({"path": "a", "read_range": (1, 2)}, Fitted({"path": "a", "read_range": (1, 2)}), id="tuple"),
        pytest.param(
            '```json\n{"path": "a"}\n```',
            Fitted({"path": "a"}, ("The arguments came inside a code fence, which was removed.",)),
            id="fence-with-a-name",
        ),
        pytest.param(
            '```{"path": "a"}```',
            Fitted({"path": "a"}, ("The arguments came inside a code fence, which was removed.",)),
            id="fence-on-one-line",
        ),
        pytest.param(
            r'"{\"path\": \"a\"}"',
            Fitted({"path": "a"}, ("The arguments came as JSON inside a JSON string, which was unpacked.",)),
            id="text-in-text",
        ),
        pytest.param(
            {"path": "a", "read_range": ["1", 20]},
            Fitted({"path": "a", "read_range": [1, 20]}, ('read_range[0]: read "1" as the number 1.',)),
            id="mended",
        ),
        pytest.param(
            {"path": "a", "read_range": None},
            Fitted({"path": "a"}, ("read_range: null was taken as not given.",)),
            id="null",
        ),
        pytest.param(
            {"path": "a", "range": [1, 2]},
            Fitted({"path": "a"}, ("range: unknown parameter, ignored; this tool takes path, read_range.",)),
            id="unknown",
        ),
    ],
)
def test_arguments_that_fit_or_nearly_fit_are_taken(raw: Any, fitted: Fitted) -> None:
    assert READ.fit(raw) == fitted


def test_no_text_at_all_is_an_empty_object() -> None:
    schema = Schema({"type": "object", "properties": {}})

    assert schema.fit("") == schema.fit(" \n") == schema.fit({}) == Fitted({})


def test_defaults_are_not_filled_in() -> None:
    assert Schema({"properties": {"a": {"type": "integer", "default": 5}}}).fit({}) == Fitted({})


def test_a_whole_float_reaches_the_tool_as_an_integer_without_a_word() -> None:
    fitted = Schema({"properties": {"a": {"type": "integer"}}}).fit({"a": 3.0})

    assert fitted == Fitted({"a": 3})
    assert type(fitted.values["a"]) is int


@pytest.mark.parametrize(
    "advertised",
    [
        pytest.param({"type": "object"}, id="no-properties"),
        pytest.param({"properties": {}, "additionalProperties": True}, id="more-are-welcome"),
        pytest.param({"properties": {}, "additionalProperties": {"type": "integer"}}, id="more-of-a-type"),
        pytest.param({"properties": {}, "patternProperties": {"^x": {}}}, id="patterns"),
        pytest.param({"properties": {}, "anyOf": [{"properties": {"x": {}}}]}, id="named-elsewhere"),
    ],
)
def test_unknown_parameters_are_kept_where_the_schema_may_mean_them(advertised: dict[str, Any]) -> None:
    assert Schema(advertised).fit({"x": 1}) == Fitted({"x": 1})


def test_a_tool_without_parameters_says_so() -> None:
    fitted = Schema({"type": "object", "properties": {}}).fit({"x": 1})

    assert fitted == Fitted({}, ("x: unknown parameter, ignored; this tool takes no parameters.",))


def test_many_unknown_parameters_make_few_notes() -> None:
    fitted = READ.fit({"path": "a"} | {f"x{number}": 1 for number in range(1000)})

    assert fitted.values == {"path": "a"}
    assert len(fitted.notes) == 21
    assert fitted.notes[-1] == "980 more unknown parameters, ignored."


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        pytest.param("[1]", ["The arguments must be a JSON object, not an array."], id="array"),
        pytest.param("5", ["The arguments must be a JSON object, not a number."], id="number"),
        pytest.param("null", ["The arguments must be a JSON object, not null."], id="null"),
        pytest.param('"a"', ["The arguments must be a JSON object, not a string."], id="string"),
        pytest.param(
            "{'path': 1}",
            ["The arguments are not valid JSON: Expecting property name enclosed in double quotes (line 1, column 2)."],
            id="single-quotes",
        ),
        pytest.param(
            '{\n  "path": "a"\n  "b": 1}',
            ["The arguments are not valid JSON: Expecting ',' delimiter (line 3, column 3)."],
            id="no-comma",
        ),
        pytest.param(
            '```json\n{"path": }\n```',
            ["The arguments are not valid JSON: Expecting value (line 2, column 10)."],
            id="broken-in-a-fence",
        ),
        pytest.param(
            '{"path": "a',
            ["The arguments are not valid JSON: Unterminated string starting (line 1, column 10)."],
            id="cut-off",
        ),
        pytest.param(
            '{"path": ' + "9" * 5000 + "}",
            ["The arguments are not valid JSON: they hold a number that is too long to read."],
            id="endless-number",
        ),
        pytest.param(
            "[" * 100_000,
            [TOO_DEEP],
            id="very-deep-text",
        ),
        pytest.param(
            '{"path": ' + "[" * 64 + "]" * 64 + "}",
            [TOO_DEEP],
            id="deep-text",
        ),
        pytest.param(
            r'{"path": "a\ud800"}',
            ["path: the text holds half a character (a lone surrogate), which cannot be written as UTF-8."],
            id="lone-surrogate",
        ),
        pytest.param(
            {"path": "a\ud800"},
            ["path: the text holds half a character (a lone surrogate), which cannot be written as UTF-8."],
            id="lone-surrogate-in-an-object",
        ),
        pytest.param(
            {"path": "a", "\udfff": 1},
            [r'"\udfff": this name holds half a character and cannot be written as UTF-8.'],
            id="lone-surrogate-in-a-name",
        ),
        pytest.param(
            '{"path": "a", "edits": [NaN]}',
            ["edits[0]: NaN and Infinity are not JSON; send a finite number."],
            id="nan",
        ),
        pytest.param(
            '{"path": "a", "limit": 1e999}',
            ["limit: NaN and Infinity are not JSON; send a finite number."],
            id="overflow",
        ),
        pytest.param(
            {"limit": float("-inf")}, ["limit: NaN and Infinity are not JSON; send a finite number."], id="infinity"
        ),
        pytest.param({"limit": 1 << 5000}, ["limit: the number is too large."], id="huge-integer"),
        pytest.param({"path": b"a"}, ["path: a value of type bytes is not JSON."], id="bytes"),
        pytest.param(
            {"path": {1: 2}}, ["path: the names of members must be strings, not int."], id="number-for-a-name"
        ),
    ],
)
def test_what_is_no_json_object_is_refused_in_one_line(raw: Any, lines: list[str]) -> None:
    assert _refusal(EDIT, raw).splitlines() == lines


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        pytest.param({}, ["path: required, but missing.", "edits: required, but missing."], id="missing"),
        pytest.param(
            {"Path": "a", "edits": EDITS},
            ['path: required, but missing; did you mean "path" for "Path"?'],
            id="other-case",
        ),
        pytest.param(
            {"pa_th": "a", "edits": EDITS},
            ['path: required, but missing; did you mean "path" for "pa_th"?'],
            id="underscore",
        ),
        pytest.param(
            {"file_path": "a", "edits": EDITS},
            ['path: required, but missing; did you mean "path" for "file_path"?'],
            id="much-alike",
        ),
        pytest.param(
            {"path": "a", "edits": EDITS, "zebra": 1},
            ["zebra: unknown parameter; this tool takes path, edits, mode, limit, token, where."],
            id="unknown",
        ),
        pytest.param({"path": ["a"], "edits": EDITS}, ["path: must be a string, not an array of 1 item."], id="type"),
        pytest.param({"path": None, "edits": EDITS}, ["path: must be a string, not null."], id="null"),
        pytest.param(
            {"path": "a", "edits": EDITS, "mode": "fuzzy"},
            ['mode: must be one of "exact", "loose", not "fuzzy".'],
            id="enum",
        ),
        pytest.param({"path": "a", "edits": EDITS, "limit": 99}, ["limit: must be at most 10, not 99."], id="maximum"),
        pytest.param(
            {"path": "a", "edits": EDITS, "limit": "0"},
            ["limit: must be at least 1, not 0."],
            id="minimum-of-what-was-meant",
        ),
        pytest.param(
            {"path": "a", "edits": EDITS, "limit": "x" * 99},
            [f'limit: must be an integer, not "{"x" * 60}…".'],
            id="long-value",
        ),
        pytest.param(
            {"path": "a", "edits": EDITS, "limit": "a\n\u202eb"},
            [r'limit: must be an integer, not "a\n\u202eb".'],
            id="unprintable-value",
        ),
        pytest.param(
            {"path": "a", "edits": EDITS, "token": "hunter2"},
            ["token: must be true or false, not (hidden)."],
            id="secret",
        ),
        pytest.param(
            {"path": "a", "edits": [{"old": "a", "new": "b"}] * 4},
            ["edits: has too many items: 4, at most 3 allowed."],
            id="too-many-items",
        ),
        pytest.param(
            {"path": "a", "edits": [{"old": "a", "new": "b"}, {}, {"old": [], "new": "", "why": 1}]},
            [
                "edits[1].old: required, but missing.",
                "edits[1].new: required, but missing.",
                "edits[2].old: must be a string, not an array of 0 items.",
                "edits[2].new: has too few characters: 0, at least 1 needed.",
                "edits[2].why: unknown parameter; it takes old, new.",
            ],
            id="nested",
        ),
        pytest.param(
            {"path": "a", "edits": EDITS, "where": []},
            ["where: must be an integer or an object, not an array of 0 items."],
            id="no-alternative",
        ),
        pytest.param(
            {"path": "a", "edits": EDITS, "where": {"line": "x"}},
            ['where.line: must be an integer, not "x".'],
            id="nearest-alternative",
        ),
        pytest.param(
            {"zebra": 1, "limit": 0, "mode": 1, "edits": EDITS},
            [
                "path: required, but missing.",
                'mode: must be one of "exact", "loose", not "1".',
                "limit: must be at least 1, not 0.",
                "zebra: unknown parameter; this tool takes path, edits, mode, limit, token, where.",
            ],
            id="schema-order",
        ),
        pytest.param(
            {"path": "a", "edits": EDITS, "a b\n": 1},
            [r'"a b\n": unknown parameter; this tool takes path, edits, mode, limit, token, where.'],
            id="odd-name",
        ),
    ],
)
def test_a_refusal_has_one_line_for_each_bad_parameter(raw: Any, lines: list[str]) -> None:
    assert _refusal(EDIT, raw).splitlines() == lines


def test_a_refusal_names_what_it_would_have_ignored() -> None:
    assert _refusal(READ, {"zebra": 1}).splitlines() == [
        "path: required, but missing.",
        "zebra: unknown parameter; this tool takes path, read_range.",
    ]


@pytest.mark.parametrize(
    ("advertised", "raw", "line"),
    [
        pytest.param({"properties": {"a": {"const": 1}}}, {"a": 2}, "a: must be 1, not 2.", id="const"),
        pytest.param(
            {"properties": {"a": {"exclusiveMinimum": 1}}},
            {"a": 1},
            "a: must be more than 1, not 1.",
            id="exclusive-minimum",
        ),
        pytest.param(
            {"properties": {"a": {"multipleOf": 2}}}, {"a": 1}, "a: must be a multiple of 2, not 1.", id="multiple"
        ),
        pytest.param(
            {"properties": {"a": {"pattern": "^x"}}},
            {"a": "y"},
            'a: must match the pattern "^x", not "y".',
            id="pattern",
        ),
        pytest.param(
            {"properties": {"a": {"uniqueItems": True}}},
            {"a": [1, 1]},
            "a: must not hold the same item twice.",
            id="unique",
        ),
        pytest.param({"properties": {"a": False}}, {"a": 1}, "a: must not be given.", id="forbidden"),
        pytest.param(
            {"properties": {"a": {"minItems": 2}}},
            {"a": [1]},
            "a: has too few items: 1, at least 2 needed.",
            id="too-few-items",
        ),
        pytest.param({"properties": {"a": {"not": {}}}}, {"a": 1}, 'a: does not meet "not" of the schema.', id="not"),
        pytest.param(
            {"type": "object", "additionalProperties": False},
            {"a": 1},
            "a: unknown parameter; this tool takes no parameters.",
            id="nothing-allowed",
        ),
        pytest.param(
            {"minProperties": 1}, {}, "The arguments: has too few members: 0, at least 1 needed.", id="members"
        ),
        pytest.param(
            {"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {},
            "The arguments: one of a, b is required, but missing.",
            id="one-of-two-required",
        ),
        pytest.param(
            {"properties": {"a": {"oneOf": [{"type": "integer"}, {"type": "number"}]}}},
            {"a": 1},
            "a: must fit exactly one of the forms that the schema allows, but fits several.",
            id="fits-twice",
        ),
        pytest.param(
            {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
            {"a": 1},
            "b: required, but missing.",
            id="condition",
        ),
        pytest.param({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "b: required, but missing.", id="dependence"),
    ],
)
def test_every_keyword_has_its_words(advertised: dict[str, Any], raw: dict[str, Any], line: str) -> None:
    assert _refusal(Schema(advertised), raw) == line


def test_a_refusal_stays_short_whatever_is_sent() -> None:
    huge = {
        "path": ["x" * 10_000] * 100,
        "edits": [{"old": {}, "new": "y" * 10_000}] * 100,
        "z" * 5000: "z" * 1_000_000,
    }
    message = _refusal(EDIT, huge)

    assert len(message.splitlines()) <= 21
    assert max(len(line) for line in message.splitlines()) < 300


def test_the_callers_object_is_never_changed() -> None:
    raw = {"path": 5, "read_range": '["1", 2]', "extra": None}
    before = copy.deepcopy(raw)
    fitted = READ.fit(raw)
    fitted.values["path"] = "other"

    assert raw == before


def test_an_object_that_holds_itself_is_refused() -> None:
    raw: dict[str, Any] = {"path": "a"}
    raw["self"] = raw

    assert _refusal(READ, raw) == TOO_DEEP


def test_nesting_hidden_in_strings_is_counted_too() -> None:
    schema = Schema({"properties": {"a": {"type": "array", "items": {"type": "array"}}}})
    inner, outer = "[" * 63 + "]" * 63, "[" * 65 + "]" * 65

    assert schema.fit({"a": [inner[1:-1]]}).notes == ("a[0]: read a string of JSON as an array.",)
    assert _refusal(schema, {"a": [inner]}) == TOO_DEEP
    assert _refusal(schema, {"a": [outer]}).startswith("a[0]: must be an array, not ")


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """The address of a server on this machine that would serve a schema, and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "object"}')

        def log_message(self, *_: Any) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        thread.join(BOUND_SECONDS)
        server.server_close()


@pytest.mark.parametrize(
    "where",
    [
        pytest.param(lambda url: {"$ref": url + "schema.json"}, id="whole"),
        pytest.param(lambda url: {"properties": {"a": {"$ref": url + "a.json#/x"}}}, id="part"),
        pytest.param(lambda url: {"$id": url + "root.json", "$ref": "other.json"}, id="relative-to-its-name"),
        pytest.param(lambda url: {"$schema": url + "dialect.json"}, id="dialect"),
        pytest.param(lambda url: {"properties": {"a": {"$dynamicRef": url + "a.json#x"}}}, id="dynamic"),
    ],
)
def test_a_remote_reference_is_refused_and_nothing_is_fetched(where: Any, listener: tuple[str, list[str]]) -> None:
    url, asked = listener

    with pytest.raises(ConfigError, match="cannot be used"):
        Schema(where(url)).fit({"a": 1})

    assert asked == []


def test_making_a_schema_loads_no_validator() -> None:
    script = (
        "import sys; from ferrule.arguments.schema import Schema; Schema({'type': 'object'});"
        "print(sorted({'jsonschema_rs', 'json', 'difflib', 'pathlib', 'dataclasses'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=BOUND_SECONDS, check=True
    )

    assert done.stdout == "[]\n"


OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "c", "A", "é", "a b"]), VALUES, max_size=4)


def _outcome(schema: Schema, raw: Any) -> Fitted | str:
    """What became of it; a refusal as its message. Any other exception is a failure of the test."""
    try:
        return schema.fit(raw)
    except BadArguments as error:
        return error.message


@settings(deadline=None, max_examples=200)
@given(SCHEMAS, OBJECTS)
def test_what_is_taken_fits_and_what_is_refused_is_explained(advertised: dict[str, Any], raw: dict[str, Any]) -> None:
    before = copy.deepcopy(raw)
    outcome = _outcome(Schema(advertised), raw)

    assert raw == before
    if isinstance(outcome, str):
        assert 1 <= len(outcome.splitlines()) <= 21
        assert all(len(line) < 1000 and line.endswith((".", "?")) for line in outcome.splitlines())
    else:
        assert jsonschema_rs.is_valid(advertised, outcome.values)
        assert all(note.endswith(".") for note in outcome.notes)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    assert _outcome(READ, text)
