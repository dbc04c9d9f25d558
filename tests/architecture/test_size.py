"""A module is one subject: how long files are, how they begin, and what may not be in them."""

import ast
import io
import re
import tokenize
from collections.abc import Callable
from pathlib import Path

from .project import modules, shown, tree

LIMIT_LINES = 900
_UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
_BANNER = re.compile(r"#\s*[-=#*_~]{3,}")
_FORM = re.compile(r"^\s*(?:Args|Arguments|Parameters|Returns|Yields):\s*$", re.MULTILINE)


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


def test_no_file_is_longer_than_a_subject():
    sizes = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}

    assert {path for path, count in sizes.items() if count > LIMIT_LINES} == set()


def test_a_file_begins_by_saying_what_lives_there():
    firsts = {shown(path): (docstrings(path)[0] or "nothing").splitlines()[0] for path in modules()}

    assert {path: first for path, first in firsts.items() if not first.endswith((".", ":"))} == {}


def test_nothing_is_left_for_later():
    assert offenders(lambda path: [comment for comment in comments(path) if _UNFINISHED.search(comment)]) == {}


def test_comments_are_no_banners():
    assert offenders(lambda path: [comment for comment in comments(path) if _BANNER.match(comment)]) == {}


def test_docstrings_do_not_repeat_the_signature():
    assert offenders(lambda path: [text for text in docstrings(path) if _FORM.search(text)]) == {}
