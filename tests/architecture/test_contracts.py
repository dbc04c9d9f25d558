"""The manifest of the seeds' contract rows and the tests that prove them, held together in both directions."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pytest

from ferrule.core.errors import UnknownTool
from ferrule.dialects import load_dialect
from ferrule.registry import Registry
from ferrule.registry.entry import Later
from ferrule.tools import BUILTIN, load

from .project import ROOT, shown

TESTS = ROOT / "tests"


@cache
def manifest() -> dict[str, dict[str, object]]:
    with open(Path(__file__).with_name("contracts.toml"), "rb") as file:
        return tomllib.load(file)


def rows() -> dict[str, str]:
    """Every row that a test must name: its id and what it says."""
    return {
        f"{subject}.{name}": str(sentence)
        for subject, sentences in manifest().items()
        if subject not in {"absent", "checklist"}
        for name, sentence in sentences.items()
    }


@cache
def marked() -> dict[str, list[str]]:
    """Every id that a test names, with the files that name it."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for row in marks(path):
            found.setdefault(row, []).append(shown(path))
    return found


def marks(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "mark.contract(" in text else ():
        if not isinstance(node, ast.Call) or ast.unparse(node.func) not in {"pytest.mark.contract", "mark.contract"}:
            continue
        assert node.args, f"{shown(path)}:{node.lineno} names no row."
        for arg in node.args:
            # Read, not run: only an id that is written out can be found by somebody who looks for it.
            assert isinstance(arg, ast.Constant), f"{shown(path)}:{node.lineno}: write the id out."
            yield str(arg.value)


def test_every_row_is_proven_by_a_test():
    assert sorted(set(rows()) - set(marked())) == []


def test_every_mark_names_a_row():
    assert {row: files for row, files in marked().items() if row not in rows()} == {}


def test_every_row_says_in_one_line_what_holds():
    unclear = {row: text for row, text in rows().items() if not text.endswith((".", ".`", ".]`")) or "\n" in text}

    assert unclear == {}


def test_every_row_of_the_checklists_is_a_row_here():
    named = {row for ids in manifest()["checklist"].values() if isinstance(ids, list) for row in ids}

    assert named <= set(rows())


@pytest.mark.parametrize("name", sorted(manifest()["absent"]))
def test_a_tool_whose_rows_are_left_out_is_not_there(name):
    dialect = load_dialect("amp")
    registry = Registry([Later(known, partial(load, known)) for known in BUILTIN], dialect.faces, dialect.aliases)

    with pytest.raises(UnknownTool):
        registry.resolve(name)
