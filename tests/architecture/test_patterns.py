"""Regular expressions mean the same in every Python that is supported."""

import re

import pytest

from .project import facts, modules, shown

REPEATED_GROUP = r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+"


def test_no_group_is_repeated_without_giving_back():
    # Before Python 3.11.5 such a group can miss what it should match; `(?>(?:…)*)` means the same and works in all.
    found = {shown(path): [text for text in facts(path).texts if re.search(REPEATED_GROUP, text)] for path in modules()}

    assert {path: texts for path, texts in found.items() if texts} == {}


@pytest.mark.parametrize("pattern", [r"(?:a|b)*+", r"(?:a)++", r"(?:a){2,}+"])
def test_such_a_group_is_seen(pattern):
    assert re.search(REPEATED_GROUP, pattern)
