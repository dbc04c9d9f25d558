"""Commands that could turn out to be one that a rule refuses, because not all of their words are known.

Where commands run confined without a question, such a one would be a way around the rule.
"""

import re
from collections.abc import Iterable, Sequence

from ferrule.permissions.shell.inside import SHELLS
from ferrule.permissions.shell.part import Part

_HANDED = SHELLS | {"eval", "source", ".", "xargs", "parallel"}
"""They run what their words say, or what comes in."""


def could_be(part: Part, refused: Iterable[str]) -> str:
    """The rule that the command could turn out to be about; empty where it can be about none of them."""
    words = part.simple.stripped or part.simple.words
    if not words or all(word.known for word in (*words, *part.simple.words)):
        return ""
    anything = not words[0].known or words[0].text.rsplit("/", 1)[-1] in _HANDED
    for rule in refused:
        named = re.fullmatch(r"\w+\((?s:(.*))\)", rule)
        if anything or (named and _fits(named[1], part)):
            return rule
    return ""


def _fits(pattern: str, part: Part) -> bool:
    """Could the words be those of the pattern, as far as they are known?"""
    wanted: Sequence[str] = pattern.removesuffix(":*").split()
    words = part.simple.stripped or part.simple.words
    for text, word in zip(wanted, words, strict=False):
        if not word.known:
            return True
        if "*" in text:
            continue
        if text != word.text.rsplit("/", 1)[-1]:
            return False
    # All that is certain fits: more words may come, or what comes is behind what the pattern names.
    return len(wanted) > len(words)
