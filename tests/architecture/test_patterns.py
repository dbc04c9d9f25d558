"""Regular expressions mean the same in every Python that is supported."""

import ast
import re

import pytest

from .project import PACKAGE

MODULES = [pytest.param(path, id=path.relative_to(PACKAGE).as_posix()) for path in sorted(PACKAGE.rglob("*.py"))]
REPEATED_GROUP = r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+"


def patterns(source: str) -> list[str]:
    """What looks like a regular expression: a text with a group that has a meaning of its own."""
    texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    plain = (text.decode("latin-1") if isinstance(text, bytes) else text for text in texts)
    return [text for text in plain if isinstance(text, str) and "(?" in text]


@pytest.mark.parametrize("path", MODULES)
def test_no_group_is_repeated_without_giving_back(path):
    # Before Python 3.11.5 such a group can miss what it should match; `(?>(?:…)*)` means the same and works in all.
    found = [text for text in patterns(path.read_text(encoding="utf-8")) if re.search(REPEATED_GROUP, text)]

    assert found == []


@pytest.mark.parametrize("pattern", [r"(?:a|b)*+", r"(?:a)++", r"(?:a){2,}+"])
def test_such_a_group_is_seen(pattern):
    assert [re.search(REPEATED_GROUP, text) is not None for text in patterns(repr(pattern))] == [True]
