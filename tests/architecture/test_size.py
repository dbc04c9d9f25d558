"""One thing, one file, one word: how long files are, how they begin, and what may not be in them."""

import ast
import io
import re
import tokenize
from collections.abc import Callable
from pathlib import Path

from .project import ROOT, dotted, modules, shown, tree

LIMIT_LINES = 300
LONGER: dict[str, str] = {}
"""A file that may be longer, and why. Empty is how it should be."""

EMPTY_NAMES = {"manager", "handler", "helper", "helpers", "util", "utils", "impl", "misc"}
"""Words that say nothing about what a thing is."""
_UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
_BANNER = re.compile(r"#\s*[-=#*_~]{3,}")
_FORM = re.compile(r"^\s*(?:Args|Arguments|Parameters|Returns|Yields):\s*$", re.MULTILINE)
_CAMEL = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def rejected() -> set[str]:
    """The words of the glossary's last column."""
    rows = [line for line in (ROOT / "CONTEXT.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert all(len(row) == 3 for row in cells), "The glossary is a table of three columns: term, meaning, avoid."
    head, _, *body = [row[-1] for row in cells]
    assert head == "avoid"
    return {word.strip(" `") for cell in body for word in cell.split(",") if word.strip(" `") not in {"", "—"}}


def names(path: Path) -> set[str]:
    """The names that a file gives to itself, its classes and its functions."""
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    given = {node.name for node in ast.walk(tree(path)) if isinstance(node, kinds)}
    return given | set(dotted(path).split("."))


def words(name: str) -> set[str]:
    return {word.lower() for word in _CAMEL.findall(name)}


def comments(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8")
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in found if token.type == tokenize.COMMENT]


def offenders(found: Callable[[Path], list[str]]) -> dict[str, list[str]]:
    """What a rule finds, by file; files with nothing to find are left out."""
    return {shown(path): wrong for path in modules() if (wrong := found(path))}


def docstrings(path: Path) -> list[str]:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [ast.get_docstring(node) or "" for node in ast.walk(tree(path)) if isinstance(node, kinds)]


def test_a_file_is_no_longer_than_a_reader_can_hold():
    sizes = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}

    assert {path for path, count in sizes.items() if count > LIMIT_LINES} == set(LONGER)


def test_a_file_begins_by_saying_what_lives_there():
    firsts = {shown(path): (docstrings(path)[0] or "nothing").splitlines()[0] for path in modules()}

    assert {path: first for path, first in firsts.items() if not first.endswith((".", ":"))} == {}


def test_nothing_is_left_for_later():
    assert offenders(lambda path: [comment for comment in comments(path) if _UNFINISHED.search(comment)]) == {}


def test_comments_are_no_banners():
    assert offenders(lambda path: [comment for comment in comments(path) if _BANNER.match(comment)]) == {}


def test_docstrings_do_not_repeat_the_signature():
    assert offenders(lambda path: [text for text in docstrings(path) if _FORM.search(text)]) == {}


def test_the_glossary_rejects_some_words():
    assert {"request", "response", "observation"} <= rejected()


def test_no_name_is_a_word_that_the_glossary_rejects():
    wrong = EMPTY_NAMES | {word for word in rejected() if " " not in word}

    assert offenders(lambda path: sorted(name for name in names(path) if words(name) & wrong)) == {}
