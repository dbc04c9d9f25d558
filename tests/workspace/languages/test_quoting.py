"""Values in messages: what an asked file does not have is left out, names and types are not."""

import pytest
from tests.rows import each_row

from ferrule.tools.lsp.diagnostics import problems
from ferrule.tools.lsp.documents import without_quoted


@each_row(
    ("message", "source", "shown"),
    [
        pytest.param(
            'Object of type `Literal["hunter2"]` is not assignable to `int`',
            "x: int = TOKEN",
            'Object of type `Literal["…"]` is not assignable to `int`',
            id="ty",
        ),
        pytest.param(
            "Type '\"hunter2\"' is not assignable to type 'number'.",
            "",
            "Type '\"…\"' is not assignable to type 'number'.",
            id="typescript",
        ),
        pytest.param(
            'Type "Literal[\'hunter2\']" is not assignable to "int"',
            "",
            'Type "Literal[\'…\']" is not assignable to "int"',
            id="pyright",
        ),
        pytest.param("found `Literal[12345678]`", "", "found `Literal[…]`", id="number"),
        pytest.param("found `Literal[12345678]`", "x = 12345678", "found `Literal[12345678]`", id="own-number"),
        pytest.param('found `Literal["own"]`', 'x = "own"', 'found `Literal["own"]`', id="own-value"),
        pytest.param(
            "Property 'total' is missing in type 'Basket'",
            "",
            "Property 'total' is missing in type 'Basket'",
            id="names",
        ),
        pytest.param('No key "sk-live-8a7f6e5d4c3b"', "", 'No key "…"', id="key"),
        pytest.param('found `Literal["hunt…', "", 'found `Literal["…', id="cut"),
        pytest.param("don't use `x`", "", "don't use `x`", id="apostrophe"),
    ],
)
def test_values_that_the_file_does_not_have_are_left_out(message, source, shown):
    assert without_quoted(message, source) == shown


def test_problems_leave_them_out_where_nothing_hides_files_from_the_server():
    raw = [{"message": 'found `Literal["hunter2"]`', "range": {"start": {"line": 0, "character": 0}}}]

    assert problems("/a", "x", raw, "utf-8")[0].message == 'found `Literal["hunter2"]`'
    assert problems("/a", "x", raw, "utf-8", hides=True)[0].message == 'found `Literal["…"]`'


def test_a_message_full_of_marks_is_gone_through_quickly():
    for mark in "\"'`\\":
        assert without_quoted(mark * 2400, "") is not None
        assert without_quoted(f"{mark}a" * 1200, "") is not None
