"""The name at a position: exact, right behind it, or the nearest on the line."""

import pytest
from hypothesis import given
from tests.rows import each_row
from tests.strategies import texts

from ferrule.tools.lsp.answers import nearest, truncate_line, words


@each_row(
    ("row", "names"),
    [
        pytest.param("return total([])", ["return", "total"], id="code"),
        pytest.param("x1 = 42 + 0x1f", ["x1"], id="numbers-are-none"),
        pytest.param("$name->$other", ["$name", "$other"], id="dollar"),
        pytest.param("cafe\u0301 = größe", ["cafe\u0301", "größe"], id="combining"),
        pytest.param("変数 = '🎈'", ["変数"], id="other-scripts"),
        pytest.param("_a.__b__", ["_a", "__b__"], id="underscores"),
        pytest.param("  )  ", [], id="none"),
        pytest.param("", [], id="empty"),
    ],
)
def test_these_are_the_names_of_a_line(row, names):
    assert [word.text for word in words(row)] == names


@each_row(
    ("row", "at", "name"),
    [
        pytest.param("total(forms)", 0, "total", id="first-character"),
        pytest.param("total(forms)", 4, "total", id="last-character"),
        pytest.param("total(forms)", 5, "total", id="right-behind"),
        pytest.param("total(forms)", 6, "forms", id="next-begins"),
        pytest.param("total(forms)", 12, "forms", id="end-of-the-line"),
        pytest.param("a  +  b", 3, "b", id="of-two-as-far-the-one-behind"),
        pytest.param("    return total", 0, "total", id="a-keyword-is-not-meant"),
        pytest.param("    return total", 5, "return", id="unless-it-is-pointed-at"),
        pytest.param("    return 1", 0, "return", id="or-nothing-else-is-there"),
        pytest.param("cafe\u0301(x)", 4, "cafe\u0301", id="on-a-combining-character"),
        pytest.param("42", 0, None, id="no-name"),
    ],
)
def test_the_nearest_name_is_taken(row, at, name):
    found = nearest(row, at)

    assert (found and found.text) == name


@given(texts)
def test_names_stand_where_they_are_said_to(row):
    for word in words(row):
        assert row[word.start : word.end] == word.text
        assert nearest(row, word.start) == word


def test_a_shown_line_is_bare_and_short():
    assert truncate_line("   x = 1  \r") == "x = 1"
    assert truncate_line("y" * 300) == "y" * 200 + "…"


@pytest.mark.parametrize("char", ["x", "é"])
def test_of_a_line_as_long_as_a_book_only_what_is_near_is_looked_at(char):
    row = f"{char} " * 1_000_000 + "name" + f" {char}" * 1_000_000

    assert nearest(row, 2_000_001) == (2_000_000, 2_000_004, "name")
    assert nearest(" " * 1_000_000, 500_000) is None
