"""A table in one test: every row is tried, and a failure lists all rows that fail.

`each_row` takes what `pytest.mark.parametrize` takes; `each_kept_row` reads the rows from a file beside the test. A
case of its own costs more to collect, to set up and to report than most rows take to try, so a table of values is one
test; what starts programs or engines stays one case for each row.
"""

import functools
import inspect
import reprlib
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_MOST_SHOWN = 2000
_SHOWN = reprlib.Repr()
_SHOWN.maxdict = _SHOWN.maxlist = _SHOWN.maxtuple = 30
_SHOWN.maxstring = _SHOWN.maxother = 1000
_ID = "id"
"""The column of a row's title, where it is no value."""


class Row(NamedTuple):
    """One row: its words in a failure, and its values by name."""

    title: str
    values: Mapping[str, object]


class Table:
    """A function and what it is called with, row by row; tables above one another are multiplied."""

    def __init__(self, function: Callable[..., Any], rows: list[Row]) -> None:
        self.function, self.rows = function, rows

    def calls(self, fixtures: Mapping[str, Any]) -> Iterator[tuple[Row, Mapping[str, Any]]]:
        """Each row has a folder and a patch of its own; it shares every other fixture with the other rows."""
        for number, row in enumerate(self.rows):
            with ExitStack() as stack:
                own = dict(fixtures)
                if "tmp_path" in own:
                    own["tmp_path"] = fixtures["tmp_path"] / str(number)
                    own["tmp_path"].mkdir()
                if "monkeypatch" in own:
                    own["monkeypatch"] = stack.enter_context(pytest.MonkeyPatch.context())
                yield row, {**own, **row.values}


def each_row(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """One test for all rows: for what leaves nothing behind that the next row would see."""
    columns = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    is_single = isinstance(names, str) and "," not in names
    found = [_row(columns, number, row, is_single=is_single) for number, row in enumerate(rows, 1)]
    return functools.partial(_tabled, found)


def each_kept_row(function: Callable[..., Any]) -> Callable[..., Any]:
    """One test for all rows that the TOML file of its module has under its name."""
    found = kept(inspect.getfile(inspect.unwrap(function))).get(function.__name__.removeprefix("test_"))
    assert found, f"There are no rows of {function.__name__} beside it."
    names = [name for name in inspect.signature(function).parameters if any(name in row for row in found)]
    rows = [
        Row(str(row.get(_ID, number)), {name: row.get(name) for name in names}) for number, row in enumerate(found, 1)
    ]
    return _tabled(rows, function)


@cache
def kept(file: str) -> dict[str, list[dict[str, Any]]]:
    """The tables beside a module, by the names of its tests; what a row lacks is None.

    `rows` has a column for each value, and `id` for a title; a table of one column is a list under its name.
    """
    with Path(file).with_suffix(".toml").open("rb") as opened:
        tables = tomllib.load(opened)
    return {
        name: table.get("rows") or [{column: one} for column, ones in table.items() for one in ones]
        for name, table in tables.items()
    }


def _tabled(rows: list[Row], function: Callable[..., Any]) -> Callable[..., Any]:
    assert rows, f"{function.__name__} has no rows."
    assert not hasattr(function, "hypothesis"), "A law with examples of its own is no table."
    below = getattr(function, "table", None) or Table(function, [Row("", {})])
    both = [
        Row(f"{one.title}-{two.title}".rstrip("-"), {**one.values, **two.values}) for one in rows for two in below.rows
    ]
    return _test(Table(below.function, both), function)


def _test(table: Table, described: Callable[..., Any]) -> Callable[..., Any]:
    """What pytest calls: it asks for the fixtures only."""
    if inspect.iscoroutinefunction(table.function):

        async def tried(**fixtures: Any) -> None:
            failed: list[tuple[Row, BaseException]] = []
            for row, values in table.calls(fixtures):
                try:
                    await table.function(**values)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the other rows are tried too
                    failed.append((row, error))
            _report(table, failed)

    else:

        def tried(**fixtures: Any) -> None:  # type: ignore[misc]
            failed: list[tuple[Row, BaseException]] = []
            for row, values in table.calls(fixtures):
                try:
                    table.function(**values)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - the other rows are tried too
                    failed.append((row, error))
            _report(table, failed)

    functools.update_wrapper(tried, described)
    asked = inspect.signature(table.function)
    values = table.rows[0].values
    unknown = values.keys() - asked.parameters.keys()
    assert not unknown, f"{table.function.__name__} takes no {', '.join(unknown)}."
    fixtures = [one for name, one in asked.parameters.items() if name not in values]
    tried.__dict__.update(__signature__=asked.replace(parameters=fixtures), table=table)
    return tried


def _row(columns: tuple[str, ...], number: int, row: Any, *, is_single: bool) -> Row:
    title = None
    if isinstance(row, type(pytest.param())):
        assert not row.marks, "A row with marks of its own is a case of its own."
        title, values = row.id, tuple(row.values)
    else:
        values = (row,) if is_single else tuple(row)
    assert len(values) == len(columns), f"Row {number} has {len(values)} values for {columns}."
    return Row(title if isinstance(title, str) else str(number), dict(zip(columns, values, strict=True)))


def _report(table: Table, failed: list[tuple[Row, BaseException]]) -> None:
    if failed:
        words = "\n\n".join(f"{row.title}: {_told(row)}\n{_why(error)}" for row, error in failed)
        raise AssertionError(f"{len(failed)} of {len(table.rows)} rows fail:\n\n{words}") from failed[0][1]


def _told(row: Row) -> str:
    return ", ".join(f"{name}={_SHOWN.repr(value)}" for name, value in row.values.items())


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:_MOST_SHOWN]
