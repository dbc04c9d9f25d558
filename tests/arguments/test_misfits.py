"""How a refusal reads: one line for each bad parameter, short, and without secrets."""

from typing import Any

import pytest

from ferrule.arguments.schema import Schema
from tests.arguments.test_schema import READ, refusal
from tests.rows import each_row

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


@each_row(
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
    assert refusal(EDIT, raw).splitlines() == lines


def test_a_refusal_names_what_it_would_have_ignored() -> None:
    assert refusal(READ, {"zebra": 1}).splitlines() == [
        "path: required, but missing.",
        "zebra: unknown parameter; this tool takes path, read_range.",
    ]


@each_row(
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
    assert refusal(Schema(advertised), raw) == line


def test_a_refusal_stays_short_whatever_is_sent() -> None:
    huge = {
        "path": ["x" * 10_000] * 100,
        "edits": [{"old": {}, "new": "y" * 10_000}] * 100,
        "z" * 5000: "z" * 1_000_000,
    }
    message = refusal(EDIT, huge)

    assert len(message.splitlines()) <= 21
    assert max(len(line) for line in message.splitlines()) < 300
