"""The tests of two seed programs: each has a counterpart here, or names the issue that brings it."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from ferrule.dialects import COMING
from tests.rows import each_row

from .project import ROOT

TESTS = ROOT / "tests"
_COUNTERPART = re.compile(r"(?P<file>[\w/]+\.py)::(?P<function>test_\w+)(?:\[(?P<row>[^\]]+)\])?")


@cache
def manifest() -> dict[str, dict[str, dict[str, object]]]:
    with open(Path(__file__).with_name("counterparts.toml"), "rb") as file:
        return tomllib.load(file)


def counterparts() -> list[object]:
    return [
        pytest.param(name, counterpart, id=f"{seed}-{name}")
        for seed, tables in manifest().items()
        for table, rows in tables.items()
        if table != "coming"
        for name, counterpart in rows.items()
    ]


@cache
def functions(file: str) -> dict[str, str]:
    """The tests of a file, each with its source, its marks and the tables that it names."""
    source = (TESTS / file).read_text(encoding="utf-8")
    tree = ast.parse(source)
    tables = {
        target.id: ast.get_source_segment(source, node) or ""
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [ast.get_source_segment(source, part) or "" for part in (*node.decorator_list, node)]
            named = {one.id for mark in node.decorator_list for one in ast.walk(mark) if isinstance(one, ast.Name)}
            found[node.name] = "\n".join([*parts, *(tables[name] for name in sorted(named & tables.keys()))])
    return found


@each_row(("name", "counterpart"), counterparts())
def test_every_test_of_the_seeds_has_a_counterpart(name, counterpart):
    found = _COUNTERPART.fullmatch(counterpart)

    assert found, f"{name}: write file::function, or file::function[row]."
    assert (TESTS / found["file"]).is_file(), f"{name}: there is no {found['file']}."
    assert found["function"] in functions(found["file"]), f"{name}: {found['file']} has no {found['function']}."
    if found["row"]:
        assert f'id="{found["row"]}"' in functions(found["file"])[found["function"]]


def test_what_is_to_come_names_an_issue_that_brings_tools():
    coming = manifest()["ah"]["coming"]

    assert {name for name, issue in coming.items() if issue not in set(COMING.values())} == set()


def test_no_test_of_the_seeds_is_both_here_and_to_come():
    tables = manifest()["ah"]
    here = {name for table, rows in tables.items() if table != "coming" for name in rows}

    assert here.isdisjoint(tables["coming"])
