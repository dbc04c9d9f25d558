r"""Texts with `*` for any characters, as command rules write them; matching takes one walk over the text.

A last ` *` is a word's end: a blank and anything, or nothing more. A last `:*` is another way to write it.
`\*`, `\\`, `\(` and `\)` stand for the character itself.
"""

from typing import NamedTuple

_ESCAPED = "*\\()"
Runs = tuple[str, ...]
"""The plain texts between the stars; one more than there are stars."""


class Wildcard(NamedTuple):
    """A text with stars."""

    readings: tuple[Runs, ...]
    """A text matches when it matches one of them."""

    @property
    def exact(self) -> bool:
        """Is there no star, so that one text matches and no other?"""
        return all(len(runs) == 1 for runs in self.readings)

    def matches(self, text: str) -> bool:
        return any(_match(runs, text) for runs in self.readings)


def wildcard(pattern: str, *, wide: bool = False) -> Wildcard:
    r"""The pattern as it is meant; with `wide` also as its writer may have meant it, for rules that keep something out.

    Wide takes `\*` for a backslash and a star too, and runs of blanks for one.
    """
    pattern = pattern.strip()
    readings = _readings(_runs(pattern, escapes=True))
    if wide:
        single = " ".join(pattern.split())
        for one in (pattern, single):
            readings += _readings(_runs(one, escapes=True)) + _readings(_runs(one, escapes=False))
    return Wildcard(tuple(dict.fromkeys(readings)))


def _runs(pattern: str, *, escapes: bool) -> Runs:
    if pattern.endswith(":*"):
        pattern = (pattern[:-2] + " *").lstrip()
    runs = [""]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if escapes and character == "\\" and pattern[at : at + 1] and pattern[at] in _ESCAPED:
            runs[-1] += pattern[at]
            at += 1
        elif character != "*":
            runs[-1] += character
        elif len(runs) == 1 or runs[-1]:
            runs.append("")
    return tuple(runs)


def _readings(runs: Runs) -> tuple[Runs, ...]:
    """The runs, and where they end in ` *` those without it: there the text may end."""
    if len(runs) > 1 and not runs[-1] and runs[-2].endswith(" "):
        return runs, (*runs[:-2], runs[-2][:-1])
    return (runs,)


def _match(runs: Runs, text: str) -> bool:
    """A run is taken at its leftmost place: a later one would only leave less to match, so nothing is tried twice."""
    head, *rest = runs
    if not rest:
        return text == head
    *middle, tail = rest
    at, end = len(head), len(text) - len(tail)
    if at > end or not text.startswith(head) or not text.endswith(tail):
        return False
    for run in middle:
        found = text.find(run, at, end)
        if found < 0:
            return False
        at = found + len(run)
    return True
