"""What may be written about a todo: whom it may wait for, who may take it, and how much of it there may be."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.core.todos import Todo, TodoStatus

Rows = dict[int, Todo]
Edge = tuple[int, int]
"""Who blocks, and who is blocked."""

MOST_TODOS = 1_000
MOST_EDGES = 5_000
MOST_METADATA_CHARS = 20_000
_MOST_DIGITS = 9
_MOST_NAMED = 20


class Change(NamedTuple):
    """What to write about a todo; what is None stays as it is."""

    subject: str | None = None
    description: str | None = None
    status: TodoStatus | None = None
    active_form: str | None = None
    owner: str | None = None
    kind: str | None = None
    repository: str | None = None
    metadata: Mapping[str, Any] = MappingProxyType({})
    """Values to add; None takes one away."""
    parent: str | None = None
    """Empty for none."""
    blocked_by: Sequence[str] | None = None
    """All that it has to wait for, in place of what it waited for before."""
    add_blocks: Sequence[str] = ()
    add_blocked_by: Sequence[str] = ()

    @property
    def names_others(self) -> bool:
        """Does it say anything about other todos?"""
        return bool(self.blocked_by is not None or self.add_blocks or self.add_blocked_by or self.parent)


def known(rows: Rows, todo_id: str, why: Literal["", "blocks", "blocked_by", "parent"] = "") -> int:
    number = number_of(todo_id)
    if number in rows:
        return number
    there = f"There are {_few(todo.id for todo in rows.values())}." if rows else "The list is empty."
    about = {"": "", "blocks": " that could wait", "blocked_by": " to wait for", "parent": " to be part of"}[why]
    raise ToolFailure(f"There is no task {todo_id[:80]!r}{about}. {there}", code="no-such-todo")


def _few(ids: Iterable[str]) -> str:
    every = list(ids)
    more = len(every) - _MOST_NAMED
    return ", ".join(every[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def check_owner(before: Todo, change: Change, every: Iterable[Todo]) -> None:
    """Nobody takes what another one is working on."""
    claims = change.owner is not None and change.owner.strip() not in {"", before.owner}
    if not (claims and before.owner and before.status == "in_progress") or change.status == "pending":
        return
    free = [one.id for one in every if one.status == "pending" and one.is_ready and not one.owner]
    instead = f"Nobody has {_few(free)} yet." if free else "Everything else is taken, done or has to wait."
    raise ToolFailure(
        f"{before.owner} is working on task {before.id}. {instead} To hand it over all the same, set its status to "
        "pending with the new owner first.",
        code="todo-taken",
    )


def merged_metadata(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The metadata as JSON."""
    merged = {key: value for key, value in {**old, **new}.items() if value is not None}
    try:
        text = msgspec.json.encode(merged).decode()
    except (UnicodeEncodeError, RecursionError) as error:
        raise ToolFailure(f"The metadata cannot be kept: {error}.", code="bad-metadata") from error
    if len(text) > MOST_METADATA_CHARS:
        raise ToolFailure(
            f"The metadata would have {len(text):,} characters as JSON; {MOST_METADATA_CHARS:,} is the most. "
            "Set keys to null to take them away.",
            code="too-much-metadata",
        )
    return text


def parent_of(rows: Rows, number: int, wanted: str) -> int | None:
    if not wanted.strip():
        return None
    parent = known(rows, wanted, "parent")
    above = {(int(todo.id), int(todo.parent)) for todo in rows.values() if todo.parent and int(todo.id) != number}
    if found := circle({*above, (number, parent)}, number):
        raise ToolFailure(f"A task cannot be a part of itself: {found}.", code="todo-circle")
    return parent


def edges_after(rows: Rows, number: int, change: Change, edges: set[Edge]) -> set[Edge]:
    """All edges of the list after the change."""
    before = {known(rows, one, "blocked_by") for one in change.add_blocked_by}
    after = {known(rows, one, "blocks") for one in change.add_blocks}
    wanted = set(edges)
    if change.blocked_by is not None:
        wanted = {edge for edge in edges if edge[1] != number}
        before |= {known(rows, one, "blocked_by") for one in change.blocked_by}
    wanted |= {(one, number) for one in before} | {(number, one) for one in after}
    if (number, number) in wanted:
        raise ToolFailure(f"Task {number} cannot wait for itself. Nothing was changed.", code="todo-circle")
    if found := circle(wanted, number):
        raise ToolFailure(
            f"These tasks would wait for each other, and none could ever begin: {found}. Nothing was changed.",
            code="todo-circle",
        )
    if len(wanted) > MOST_EDGES and len(wanted) > len(edges):
        raise ToolFailure(
            f"The list would have {len(wanted):,} dependencies; {MOST_EDGES:,} is the most.", code="too-many-edges"
        )
    return wanted


def number_of(todo_id: str) -> int | None:
    digits = todo_id.strip().removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS else None


def circle(edges: Iterable[Edge], start: int) -> str:
    """The way from `start` back to it, as `1 → 3 → 1`; empty where there is none."""
    follows: dict[int, list[int]] = {}
    for one, other in sorted(edges):
        follows.setdefault(one, []).append(other)
    came: dict[int, int] = {}
    ahead = [start]
    for at in ahead:
        for other in follows.get(at, ()):
            if other == start:
                way = [start, at]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return " → ".join(map(str, reversed(way)))
            if other not in came:
                came[other] = at
                ahead.append(other)
    return ""
