"""What the tools about todos share: arguments that fit, a list that answers, and what is worth a note."""

from collections.abc import Mapping
from typing import Any

from ferrule.core.errors import BadArguments
from ferrule.core.todos import Todo, TodoListed, TodoStatus, TodoUpdated
from ferrule.core.tool import Context
from ferrule.workspace.todo_rules import Change
from ferrule.workspace.todos import Todos

MOST_SUBJECT_CHARS = 500
MOST_DESCRIPTION_CHARS = 20_000
_LINES = {
    "subject": MOST_SUBJECT_CHARS,
    "active_form": MOST_SUBJECT_CHARS,
    "owner": 200,
    "kind": 100,
    "repository": 2_000,
}
"""What is one line, and how long it may be."""


def fitted(values: Mapping[str, Any], ctx: Context) -> Change:
    """The change, with its texts in one line each where they have to be. Raises `BadArguments`, a line per fault."""
    said = {name: value for name, value in values.items() if value is not None}
    said |= {name: " ".join(said[name].split()) for name in _LINES if name in said}
    limits = {**_LINES, "description": MOST_DESCRIPTION_CHARS}
    wrong = [
        f"{ctx.param(name)}: has {len(said[name]):,} characters; {most:,} is the most."
        for name, most in limits.items()
        if len(said.get(name, "")) > most
    ]
    if said.get("subject") == "":
        wrong.insert(0, f"{ctx.param('subject')}: is empty.")
    if wrong:
        raise BadArguments("\n".join(wrong))
    return Change(**said)


async def updated(todo_id: str, change: Change, ctx: Context) -> TodoUpdated:
    """The todo after the change; one that is begun or ended before its time is noted."""
    outcome = await ctx.need(Todos).update(todo_id, change)
    todo = outcome.todo
    if "status" in outcome.fields and todo.status != "pending" and todo.waits_for:
        those = ", ".join(todo.waits_for)
        are = "which is" if len(todo.waits_for) == 1 else "which are"
        ctx.note(f"Task {todo.id} was to wait for {those}, {are} not completed.")
    return outcome


def kept(
    todos: tuple[Todo, ...],
    *,
    status: TodoStatus | None = None,
    completed: bool = True,
    ready: bool = False,
    waiting: bool | None = None,
    parent: str = "",
    kind: str = "",
    repository: str = "",
    limit: int | None = None,
) -> TodoListed:
    """Those that were asked for. `waiting`: does it wait for something that is not completed?"""
    found = [
        todo
        for todo in todos
        if (todo.status == status if status else completed or todo.status != "completed")
        and (todo.is_ready or not ready)
        and (waiting is None or waiting == bool(todo.waits_for))
        and (not parent or todo.parent == parent.strip().removeprefix("#"))
        and (not kind or todo.kind == kind)
        and (not repository or todo.repository == repository)
    ]
    shown = found if limit is None else found[:limit]
    return TodoListed(tuple(shown), len(found) - len(shown))


def told(ctx: Context) -> None:
    """Say, once, that the list had to be begun anew."""
    if said := ctx.need(Todos).warning():
        ctx.note(f"{said} The tasks that were on it are gone from the list.")
