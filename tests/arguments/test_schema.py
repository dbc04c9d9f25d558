"""Fitting a call's arguments to an advertised schema: what passes, and what is noted."""

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

from ferrule.arguments.schema import FittedArguments, Schema
from ferrule.core.errors import BadArguments, ConfigError
from tests.arguments.strategies import SCHEMAS, VALUES
from tests.rows import each_row

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


def refusal(schema: Schema, raw: Any) -> str:
    with pytest.raises(BadArguments) as caught:
        schema.fit(raw)
    assert caught.value.code == "bad-arguments"
    return caught.value.message


@each_row(
    ("raw", "fitted"),
    [
        pytest.param({"path": "a"}, FittedArguments({"path": "a"}), id="object"),
        pytest.param('{"path": "a"}', FittedArguments({"path": "a"}), id="text"),
        pytest.param(' \n{"path": "a"}\n', FittedArguments({"path": "a"}), id="text-in-blanks"),
        pytest.param(r'{"path": "\ud83d\ude00"}', FittedArguments({"path": "😀"}), id="text-with-a-pair-of-surrogates"),
        pytest.param(
            {"path": "a", "read_range": (1, 2)}, FittedArguments({"path": "a", "read_range": (1, 2)}), id="tuple"
        ),
        pytest.param(
            '```json\n{"path": "a"}\n```',
            FittedArguments({"path": "a"}, ("The arguments came inside a code fence, which was removed.",)),
            id="fence-with-a-name",
        ),
        pytest.param(
            '```{"path": "a"}```',
            FittedArguments({"path": "a"}, ("The arguments came inside a code fence, which was removed.",)),
            id="fence-on-one-line",
        ),
        pytest.param(
            r'"{\"path\": \"a\"}"',
            FittedArguments({"path": "a"}, ("The arguments came as JSON inside a JSON string, which was unpacked.",)),
            id="text-in-text",
        ),
        pytest.param(
            {"path": "a", "read_range": ["1", 20]},
            FittedArguments({"path": "a", "read_range": [1, 20]}, ('read_range[0]: read "1" as the number 1.',)),
            id="mended",
        ),
        pytest.param(
            {"path": "a", "read_range": None},
            FittedArguments({"path": "a"}, ("read_range: null was taken as not given.",)),
            id="null",
        ),
        pytest.param(
            {"path": "a", "range": [1, 2]},
            FittedArguments({"path": "a"}, ("range: unknown parameter, ignored; this tool takes path, read_range.",)),
            id="unknown",
        ),
    ],
)
def test_arguments_that_fit_or_nearly_fit_are_taken(raw: Any, fitted: FittedArguments) -> None:
    assert READ.fit(raw) == fitted


def test_no_text_at_all_is_an_empty_object() -> None:
    schema = Schema({"type": "object", "properties": {}})

    assert schema.fit("") == schema.fit(" \n") == schema.fit({}) == FittedArguments({})


def test_defaults_are_not_filled_in() -> None:
    assert Schema({"properties": {"a": {"type": "integer", "default": 5}}}).fit({}) == FittedArguments({})


def test_a_whole_float_reaches_the_tool_as_an_integer_without_a_word() -> None:
    fitted = Schema({"properties": {"a": {"type": "integer"}}}).fit({"a": 3.0})

    assert fitted == FittedArguments({"a": 3})
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
    assert Schema(advertised).fit({"x": 1}) == FittedArguments({"x": 1})


def test_a_tool_without_parameters_says_so() -> None:
    fitted = Schema({"type": "object", "properties": {}}).fit({"x": 1})

    assert fitted == FittedArguments({}, ("x: unknown parameter, ignored; this tool takes no parameters.",))


def test_many_unknown_parameters_make_few_notes() -> None:
    fitted = READ.fit({"path": "a"} | {f"x{number}": 1 for number in range(1000)})

    assert fitted.values == {"path": "a"}
    assert len(fitted.notes) == 21
    assert fitted.notes[-1] == "980 more unknown parameters, ignored."


def test_many_repairs_make_few_notes() -> None:
    schema = Schema({"properties": {"a": {"type": "array", "items": {"type": "integer"}}}})
    fitted = schema.fit({"a": [str(number) for number in range(3000)]})

    assert fitted.values == {"a": list(range(3000))}
    assert len(fitted.notes) == 21
    assert fitted.notes[-1] == "2980 more values were mended in the same way."


def test_the_callers_object_is_never_changed() -> None:
    raw = {"path": 5, "read_range": '["1", 2]', "extra": None}
    before = copy.deepcopy(raw)
    fitted = READ.fit(raw)
    fitted.values["path"] = "other"

    assert raw == before


def test_an_object_that_holds_itself_is_refused() -> None:
    raw: dict[str, Any] = {"path": "a"}
    raw["self"] = raw

    assert refusal(READ, raw) == TOO_DEEP


def test_nesting_hidden_in_strings_is_counted_too() -> None:
    schema = Schema({"properties": {"a": {"type": "array", "items": {"type": "array"}}}})
    inner, outer = "[" * 63 + "]" * 63, "[" * 65 + "]" * 65

    assert schema.fit({"a": [inner[1:-1]]}).notes == ("a[0]: read a string of JSON as an array.",)
    assert refusal(schema, {"a": [inner]}) == TOO_DEEP
    assert refusal(schema, {"a": [outer]}).startswith("a[0]: must be an array, not ")


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


def _outcome(schema: Schema, raw: Any) -> FittedArguments | str:
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
