"""Tables in one test: which rows are tried, with what, and what is said of those that fail."""

import os
import re
from pathlib import Path

import pytest

from tests.rows import each_kept_row, each_row, kept


def test_a_failure_lists_every_row_that_fails_and_no_other():
    @each_row(("number", "is_even"), [(1, False), pytest.param(2, False, id="two"), (3, False), (4, "no")])
    def look(number, is_even):
        assert (number % 2 == 0) is is_even, f"{number} is no such number"

    with pytest.raises(AssertionError) as failed:
        look()

    heads = [part.splitlines()[0] for part in str(failed.value).split("\n\n")]
    assert heads == [
        "2 of 4 rows fail:",
        "two: number=2, is_even=False",
        "4: number=4, is_even='no'",
    ]
    assert "2 is no such number" in str(failed.value)
    assert "4 is no such number" in str(failed.value)


def test_any_kind_of_failure_leaves_the_other_rows_to_be_tried():
    tried = []

    @each_row("value", ["a", "b", "c"])
    def look(value):
        tried.append(value)
        with pytest.raises(KeyError):
            {"b": 1}[value]
        raise ValueError(value)

    with pytest.raises(
        AssertionError, match=r"3 of 3 rows fail(.|\n)*ValueError: a(.|\n)*DID NOT RAISE(.|\n)*Error: c"
    ):
        look()
    assert tried == ["a", "b", "c"]


def test_tables_above_one_another_are_multiplied():
    tried = []

    @each_row("one", "ab")
    @each_row("two", [1, 2])
    def look(one, two):
        tried.append((one, two))

    look()

    assert tried == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


async def test_rows_are_awaited_one_after_the_other():
    tried = []

    @each_row("value", [1, 2])
    async def look(value):
        tried.append(value)

    await look()

    assert tried == [1, 2]


@each_row("value", [1, 2, 3])
def test_every_row_has_an_empty_folder_and_an_environment_of_its_own(value, tmp_path, monkeypatch):
    assert list(tmp_path.iterdir()) == []
    assert "OF_A_ROW" not in os.environ

    (tmp_path / "file").touch()
    monkeypatch.setenv("OF_A_ROW", str(value))


@each_kept_row
def test_rows_in_a_file_beside_the_test_are_read(name, number):
    assert (name, number) in [("one", 1), ("two", 2), ("none", None)]


def test_a_table_without_rows_is_refused():
    with pytest.raises(AssertionError, match="look has no rows"):

        @each_row("value", [])
        def look(value): ...


def test_a_row_with_a_mark_is_refused():
    with pytest.raises(AssertionError, match="a case of its own"):
        each_row("value", [pytest.param(1, marks=pytest.mark.skip)])


def test_a_row_with_too_few_values_is_refused():
    with pytest.raises(AssertionError, match="Row 2 has 1 values"):
        each_row("one, two", [(1, 2), (3,)])


def test_every_table_in_a_file_is_read_by_a_test():
    unread = {
        f"{path.stem}: {name}"
        for path in Path(__file__).parent.rglob("test_*.toml")
        for name in kept(str(path))
        if f"@each_kept_row\ndef test_{name}("
        not in re.sub(
            r"(\n@each_row\(.*?\))(?=\n(@|def))",
            "",
            path.with_suffix(".py").read_text(encoding="utf-8"),
            flags=re.DOTALL,
        )
    }

    assert unread == set()
