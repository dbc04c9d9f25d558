"""Arguments that no schema could take: broken JSON, endless nesting, and values that JSON cannot say."""

from typing import Any

import pytest

from ferrule.arguments.schema import Schema
from tests.arguments.test_schema import TOO_DEEP, refusal
from tests.rows import each_row

ANYTHING = Schema({"type": "object"})


class Label(str):
    __slots__ = ()


class Labels(list[str]):
    pass


@each_row(
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
        pytest.param({"path": Label("a")}, ["path: a value of type Label is not JSON."], id="subclass"),
        pytest.param({"edits": Labels()}, ["edits: a value of type Labels is not JSON."], id="subclass-of-list"),
        pytest.param(
            {"path": {1: 2}}, ["path: the names of members must be strings, not int."], id="number-for-a-name"
        ),
    ],
)
def test_what_is_no_json_object_is_refused_in_one_line(raw: Any, lines: list[str]) -> None:
    assert refusal(ANYTHING, raw).splitlines() == lines
