"""The words that a `for` loop goes over, where they are known before it runs."""

import re
from typing import TYPE_CHECKING

from ferrule.permissions.shell.line import Word
from ferrule.permissions.shell.words import Variables, word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

MOST = 100
"""So many rounds are looked at one by one, those of loops in loops together."""
_NUMBERS = rb"\$\(seq(?: (\d{1,6}))?(?: (\d{1,6}))? (\d{1,6})\)"
_RANGE = rb"\{(0|[1-9]\d{0,5})\.\.(0|[1-9]\d{0,5})\}"


def looped(node: "Node", source: bytes, variables: Variables, rounds: int) -> list[Word]:
    """One word for each round; none where they are not all known, are too many, or the variable may change between."""
    name = node.child_by_field_name("variable")
    values = node.children_by_field_name("value")
    if node.type != "for_statement" or name is None or not values:
        return []
    named = source[name.start_byte : name.end_byte]
    # Wherever else the bare name stands, it could be set: by an assignment, `read`, another loop, a calculation.
    if len(re.findall(rb"(?<![\w$\{])" + named + rb"(?!\w)", source)) != 1:
        return []
    found: list[Word] = []
    for value in values:
        each = list(_each(value, source, variables))
        found += each
        if not each or len(found) * rounds > MOST:
            return []
    return found


def _each(node: "Node", source: bytes, variables: Variables) -> "Iterator[Word]":
    raw = source[node.start_byte : node.end_byte]
    one = word(node, source, variables=variables)
    if one.known:
        yield one
    elif one.glob:
        # What is outside of the folder is not for everybody to see.
        yield one._replace(told=re.search(r"^[/~]|\.\.", one.text) is None)
    elif numbers := re.fullmatch(_NUMBERS, raw) or re.fullmatch(_RANGE, raw):
        yield from _counted(*(int(number) for number in numbers.groups() if number))


def _counted(*numbers: int) -> "Iterator[Word]":
    """As `seq` counts: to a number, from one to another, or in steps. Backwards only braces count."""
    first, *middle, last = numbers if len(numbers) > 1 else (1, *numbers)
    step = middle[0] if middle else 1
    ends = (min(first, last), max(first, last))
    if step:
        for number in range(ends[0], ends[1] + 1, step):
            yield Word(str(number), single=True)
            if (number - ends[0]) // step > MOST:
                return
