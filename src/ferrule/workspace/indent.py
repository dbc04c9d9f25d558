"""One consistent change of indentation: what carries the old text onto the file carries the new text along.

The evidence is a set of pairs, the old text's indentation and the file's, from every line that is not blank.
Where the evidence does not say what becomes of an indentation, there is no answer; nothing is guessed.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

BLANKS = " \t"
WIDTHS = range(1, 9)
"""How many spaces may stand for one tab."""

_TABS_THEN_SPACES = re.compile(r"(\t*)( *)")

Pairs = dict[str, str]
"""The old text's indentations and what they are in the file."""
Move = Callable[[str], str | None]


class Habits(NamedTuple):
    """How a file indents."""

    tabs: bool
    spaces: bool
    step: int
    """The least indentation with spaces; 0 without any."""


def indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANKS))]


def pairs_of(old_indents: Sequence[str | None], lines: Sequence[str], first: int) -> Pairs:
    """The pairs for the lines from `first` on, where None stands for blank ones; none if no one shift fits."""
    found: Pairs = {}
    for offset, old in enumerate(old_indents):
        if old is not None:
            here = indentation(lines[first + offset])
            if found.setdefault(old, here) != here:
                return {}
    return found if _prefix_move(found) or _unit_moves(found) else {}


def habits_of(lines: Iterable[str]) -> Habits:
    tabs = False
    step = 0
    for line in lines:
        if line.startswith("\t"):
            tabs = True
        elif line.startswith("  "):
            width = len(line) - len(line.lstrip(" "))
            step = min(step or width, width)
    return Habits(tabs, step > 0, step)


def shifted(
    new_lines: Sequence[str], old_indents: Sequence[str | None], pairs: Pairs, habits: Callable[[], Habits]
) -> list[str] | None:
    """The new lines, moved as the old ones were; None if one of them cannot be. Blank lines become empty."""
    moved = dict(pairs)
    texts = [line.lstrip(BLANKS) for line in new_lines]
    indents = {indentation(line) for line, text in zip(new_lines, texts, strict=True) if text}
    unknown = sorted(indents - moved.keys())
    if unknown:
        written = indents.union(old for old in old_indents if old is not None)
        moves = _moves(pairs, written, habits)
        fits = _fits(pairs, habits)
        for indent in unknown:
            results = {result for move in moves if (result := move(indent)) is not None and fits(result)}
            if len(results) != 1:
                return None
            moved[indent] = results.pop()
    return [moved[indentation(line)] + text if text else "" for line, text in zip(new_lines, texts, strict=True)]


def _moves(pairs: Pairs, written: set[str], habits: Callable[[], Habits]) -> list[Move]:
    """Every reading of the pairs that also says what becomes of other indentations."""
    prefix = _prefix_move(pairs)
    moves = [prefix] if prefix else []
    units = _unit_moves(pairs)
    if len(units) > 1:
        # One level seen leaves the width open. Then only an unmoved level counts, and only if the one
        # that wrote the spaces, model or file, is seen to indent by that width.
        to_tabs = any("\t" in here for here in pairs.values())
        step = math.gcd(*(len(indent) for indent in written)) if to_tabs else habits().step
        units = {unit: move for unit, move in units.items() if unit == (step, 0)}
    return moves + list(units.values())


def _prefix_move(pairs: Pairs) -> Move | None:
    """The same blanks before every line, in the file or in the old text."""
    old, here = next(iter(pairs.items()))
    if here.endswith(old):
        added = here[: len(here) - len(old)]
        if all(there == added + given for given, there in pairs.items()):
            return lambda indent: added + indent
    if old.endswith(here):
        dropped = old[: len(old) - len(here)]
        if all(given == dropped + there for given, there in pairs.items()):
            return lambda indent: indent[len(dropped) :] if indent.startswith(dropped) else None
    return None


def _unit_moves(pairs: Pairs) -> dict[tuple[int, int], Move]:
    """Tabs for spaces or spaces for tabs, by (width of a tab, levels added), as far as they fit all pairs."""
    olds, heres = "".join(pairs), "".join(pairs.values())
    if "\t" in heres and "\t" not in olds and " " in olds:
        convert = _tabs_for_spaces
    elif "\t" in olds and "\t" not in heres and " " in heres:
        convert = _spaces_for_tabs
    else:
        return {}
    found: dict[tuple[int, int], Move] = {}
    old, here = next(iter(pairs.items()))
    for width in WIDTHS:
        levels = _level(here, width) - _level(old, width)
        move = convert(width, levels)
        if all(move(given) == there for given, there in pairs.items()):
            found[width, levels] = move
    return found


def _level(indent: str, width: int) -> int:
    tabs = indent.count("\t")
    return tabs + (len(indent) - tabs) // width


def _tabs_for_spaces(width: int, levels: int) -> Move:
    def move(indent: str) -> str | None:
        level = len(indent) // width + levels
        if "\t" in indent or level < 0:
            return None
        return "\t" * level + " " * (len(indent) % width)

    return move


def _spaces_for_tabs(width: int, levels: int) -> Move:
    def move(indent: str) -> str | None:
        parts = _TABS_THEN_SPACES.fullmatch(indent)
        if parts is None or len(parts[1]) + levels < 0:
            return None
        return " " * (width * (len(parts[1]) + levels) + len(parts[2]))

    return move


def _fits(pairs: Pairs, habits: Callable[[], Habits]) -> Callable[[str], bool]:
    """Is an indentation of the kind that stands around it? Blanks after tabs only as wide as others there."""
    heres = set(pairs.values())
    tabs = any("\t" in here for here in heres)
    spaces = not tabs and any(heres)
    if not tabs and not spaces:
        file = habits()
        if file.tabs and file.spaces:
            return lambda indent: not indent
        tabs, spaces = file.tabs, file.spaces
    if tabs:
        aligned = {len(here) - len(here.rstrip(" ")) for here in heres} | {0}
        return lambda indent: _is_tabbed(indent, aligned)
    return lambda indent: not spaces or "\t" not in indent


def _is_tabbed(indent: str, aligned: set[int]) -> bool:
    parts = _TABS_THEN_SPACES.fullmatch(indent)
    return parts is not None and len(parts[2]) in aligned
