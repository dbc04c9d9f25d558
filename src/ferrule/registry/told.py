"""What a model is told of the tools that it can search for: their names, by where they come from, and not too many."""

import re
from collections.abc import Iterable, Sequence

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
ROOM_CHARS = 2_000
"""For all names together: a list of everything would cost what deferring was to spare."""
_MORE_CHARS = len(" and 1,000 more; ")
_REST_CHARS = len("; and 100,000 tools of 1,000 more sources")


def told(named: Iterable[tuple[str, str]], room: int = ROOM_CHARS) -> str:
    """`github: search_code, create_issue and 212 more; slack: post`, of pairs of a group and a name."""
    groups: dict[str, list[str]] = {}
    for group, name in named:
        groups.setdefault(group, []).append(name)
    said: list[str] = []
    for at, (group, names) in enumerate(groups.items()):
        # What one group leaves of its part of the room, the others share.
        left = len(groups) - at
        part = _part(group, names, room // left)
        if len(part) + (_REST_CHARS if left > 1 else 0) > room:
            rest = sum(map(len, list(groups.values())[at:]))
            said.append(f"and {rest:,} tools of {left:,} more sources")
            break
        said.append(part)
        room -= len(part) + len("; ")
    return "; ".join(said)


def _part(group: str, names: list[str], room: int) -> str:
    head = f"{group[:64]}: "
    whole = head + ", ".join(names)
    if len(whole) <= room:
        return whole
    shown = _sample(names, room - len(head) - _MORE_CHARS) or names[:1]
    return f"{head}{', '.join(shown)} and {len(names) - len(shown):,} more" if len(shown) < len(names) else whole


def _sample(names: Sequence[str], room: int) -> list[str]:
    """As many names as there is room for: of every kind one, then of every kind another, each kind together."""
    kinds = _kinds(names)
    taken: dict[str, int] = dict.fromkeys(kinds, 0)
    most = max(map(len, kinds.values()))
    for number in range(most):
        having = [kind for kind, some in kinds.items() if len(some) > number]
        costs = {kind: len(kinds[kind][number]) + len(", ") for kind in having}
        if number == 0 and sum(costs.values()) > room:
            # Not even one of each: those that are told of are spread over all.
            fitting = max(1, int(room * len(having) / sum(costs.values())))
            having = [having[at * len(having) // fitting] for at in range(fitting)]
        for kind in having:
            if costs[kind] > room:
                return [name for kind, some in kinds.items() for name in some[: taken[kind]]]
            taken[kind] += 1
            room -= costs[kind]
    return [name for kind, some in kinds.items() for name in some[: taken[kind]]]


def _kinds(names: Sequence[str]) -> dict[str, list[str]]:
    """The names by the first word in which they differ: most servers begin a name with what the tool is about."""
    words = [_WORD.findall(name.lower() if name.isupper() else name) or [name] for name in names]
    shortest = min(map(len, words))
    same = next((at for at in range(shortest) if len({some[at].lower() for some in words}) > 1), 0)
    kinds: dict[str, list[str]] = {}
    for name, some in zip(names, words, strict=True):
        kinds.setdefault(some[same].lower(), []).append(name)
    return kinds
