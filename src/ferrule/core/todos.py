"""Todos: what is to be done in a session, by whom, and in which order; and what tools about them come back with."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

TodoStatus = Literal["pending", "in_progress", "completed"]
TodoAction = Literal["create", "list", "get", "update", "delete"]

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


class Todo(NamedTuple):
    """One thing to be done. Ids are small numbers, written as text; none is ever given twice in a list."""

    id: str
    subject: str
    description: str = ""
    status: TodoStatus = "pending"
    active_form: str = ""
    """What is shown while somebody works on it."""
    owner: str = ""
    metadata: Mapping[str, Any] = MappingProxyType({})
    blocks: tuple[str, ...] = ()
    """Those that have to wait for this one."""
    blocked_by: tuple[str, ...] = ()
    """Those that this one has to wait for, done or not."""
    waits_for: tuple[str, ...] = ()
    """Of those, the ones that are not completed."""
    parent: str = ""
    kind: str = ""
    repository: str = ""

    @property
    def is_ready(self) -> bool:
        """Can it be begun: is it not done, and is everything done that comes before it?"""
        return self.status != "completed" and not self.waits_for


class TodoCreated(NamedTuple):
    """A todo that is new on the list."""

    todo: Todo


class TodoSeen(NamedTuple):
    """The todo that was asked for; None where there is none."""

    todo: Todo | None


class TodoUpdated(NamedTuple):
    """A todo as it is now, and what was changed about it, in canonical names."""

    todo: Todo
    fields: tuple[str, ...]
    was: TodoStatus
    """Its status before."""


class TodoDeleted(NamedTuple):
    """A todo that is off the list, as it was."""

    todo: Todo


class TodoListed(NamedTuple):
    """Todos in the order of their ids."""

    todos: tuple[Todo, ...]
    remaining: int = 0
    """How many more there are than were asked for."""


def todo_lines(todos: Iterable[Todo]) -> list[str]:
    """The list for people, a line each; whoever shows it makes sure that nothing in it steers the screen."""
    lines = []
    for todo in todos:
        about = [f"waits for {', '.join(todo.waits_for)}"] if todo.waits_for and todo.status != "completed" else []
        about = [todo.owner, *about] if todo.owner else about
        doing = todo.active_form if todo.status == "in_progress" and todo.active_form else todo.subject
        lines.append(f"{_MARKS[todo.status]} {todo.id} {doing}" + (f" ({'; '.join(about)})" if about else ""))
    return lines
