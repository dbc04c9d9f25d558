"""What a model is told of the tools that it can search for: their names, by where they come from, and not too many."""

from collections.abc import Iterable

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
    text, shown = f"{group[:64]}: ", 0
    for name in names:
        last = shown == len(names) - 1
        if shown and len(text) + len(name) + (0 if last else _MORE_CHARS) > room:
            break
        text += f"{', ' if shown else ''}{name}"
        shown += 1
    return text if shown == len(names) else f"{text} and {len(names) - shown:,} more"
