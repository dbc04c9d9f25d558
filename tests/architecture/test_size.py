"""A module is one subject: how long files are, how they begin, and what may not be in them."""

import io
import re
import tokenize
from collections.abc import Callable
from pathlib import Path

from .project import facts, modules, shown

LIMIT_LINES = 900
_UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
_BANNER = re.compile(r"#\s*[-=#*_~]{3,}")
_FORM = re.compile(r"^[ \t]*(?:Args|Arguments|Parameters|Returns|Yields):\s*$", re.MULTILINE)


def comments(path: Path, wanted: re.Pattern[str]) -> list[str]:
    """The comments that a pattern finds. Few files have such words at all, and only those are taken apart."""
    text = path.read_text(encoding="utf-8")
    if not wanted.search(text):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT and wanted.search(token.string)]


def offenders(found: Callable[[Path], list[str]]) -> dict[str, list[str]]:
    """What a rule finds, by file; files with nothing to find are left out."""
    return {shown(path): wrong for path in modules() if (wrong := found(path))}


def test_no_file_is_longer_than_a_subject():
    sizes = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}

    assert {path for path, count in sizes.items() if count > LIMIT_LINES} == set()


def test_a_file_begins_by_saying_what_lives_there():
    firsts = {shown(path): (facts(path).docstrings[0] or "nothing").splitlines()[0] for path in modules()}

    assert {path: first for path, first in firsts.items() if not first.endswith((".", ":"))} == {}


def test_nothing_is_left_for_later():
    assert offenders(lambda path: comments(path, _UNFINISHED)) == {}


def test_comments_are_no_banners():
    assert offenders(lambda path: comments(path, _BANNER)) == {}


def test_docstrings_do_not_repeat_the_signature():
    assert offenders(lambda path: [text for text in facts(path).docstrings if _FORM.search(text)]) == {}
