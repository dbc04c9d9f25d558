"""Create, look up, list and change todos with separate tools or a single one.

The single tool serves families that choose the operation with a parameter.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from ferrule.core.access import Access
from ferrule.core.errors import BadArguments
from ferrule.core.tool import ADDS, CHANGES, READS, REPLACES, Args, Context, Tool
from ferrule.tools.todos import (
    Todo,
    TodoAction,
    TodoChange,
    TodoCreated,
    TodoDeleted,
    TodoListed,
    Todos,
    TodoSeen,
    TodoStatus,
    TodoUpdated,
)

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


def build_change(values: Mapping[str, Any], ctx: Context) -> TodoChange:
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
    return TodoChange(**said)


async def update_todo(todo_id: str, change: TodoChange, ctx: Context) -> TodoUpdated:
    """The todo after the change; one that is begun or ended before its time is noted."""
    outcome = await ctx.need(Todos).update(todo_id, change)
    todo = outcome.todo
    if "status" in outcome.fields and todo.status != "pending" and todo.waits_for:
        those = ", ".join(todo.waits_for)
        are = "which is" if len(todo.waits_for) == 1 else "which are"
        ctx.note(f"Task {todo.id} was to wait for {those}, {are} not completed.")
    return outcome


def filter_todos(
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


def note_warning(ctx: Context) -> None:
    """Say, once, that the list had to be begun anew."""
    if said := ctx.need(Todos).warning():
        ctx.note(f"{said} The tasks that were on it are gone from the list.")


class TodoCreateArgs(Args, frozen=True, kw_only=True):
    subject: str
    description: str = ""
    active_form: str = ""
    metadata: dict[str, Any] | None = None
    kind: str = ""
    parent: str = ""
    blocked_by: tuple[str, ...] = ()


class TodoCreate(Tool[TodoCreateArgs, TodoCreated]):
    """A new todo, pending and nobody's."""

    name = "todo_create"
    args = TodoCreateArgs
    title = "Note a task"
    hints = MappingProxyType({**ADDS, "idempotentHint": False})

    def access(self, args: TodoCreateArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the list is the session's own
        return ()

    async def run(self, args: TodoCreateArgs, ctx: Context) -> TodoCreated:
        change = build_change({name: getattr(args, name) for name in args.__struct_fields__}, ctx)
        todo = await ctx.need(Todos).create(change)
        note_warning(ctx)
        return TodoCreated(todo)


class TodoGetArgs(Args, frozen=True, kw_only=True):
    todo_id: str


class TodoGet(Tool[TodoGetArgs, TodoSeen]):
    """A todo in full; that there is none of the id is an answer too."""

    name = "todo_get"
    args = TodoGetArgs
    title = "Look up a task"
    hints = READS

    def access(self, args: TodoGetArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the list is the session's own
        return ()

    async def run(self, args: TodoGetArgs, ctx: Context) -> TodoSeen:
        todo = await ctx.need(Todos).get(args.todo_id)
        note_warning(ctx)
        return TodoSeen(todo)


class TodoListArgs(Args, frozen=True, kw_only=True):
    status: TodoStatus | None = None
    waiting: bool | None = None
    kind: str = ""
    parent: str = ""


class TodoList(Tool[TodoListArgs, TodoListed]):
    """All todos, or those of a kind, by id."""

    name = "todo_list"
    args = TodoListArgs
    title = "List the tasks"
    hints = READS

    def access(self, args: TodoListArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the list is the session's own
        return ()

    async def run(self, args: TodoListArgs, ctx: Context) -> TodoListed:
        every = await ctx.need(Todos).all()
        note_warning(ctx)
        return filter_todos(every, status=args.status, waiting=args.waiting, kind=args.kind, parent=args.parent)


class TodoUpdateArgs(Args, frozen=True, kw_only=True):
    todo_id: str
    status: Literal["pending", "in_progress", "completed", "deleted"] | None = None
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    owner: str | None = None
    metadata: dict[str, Any] | None = None
    blocked_by: tuple[str, ...] | None = None
    add_blocks: tuple[str, ...] = ()
    add_blocked_by: tuple[str, ...] = ()


class TodoUpdate(Tool[TodoUpdateArgs, TodoUpdated | TodoDeleted]):
    """All of the change or nothing of it."""

    name = "todo_update"
    args = TodoUpdateArgs
    title = "Change a task"
    hints = REPLACES

    def access(self, args: TodoUpdateArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the list is the session's own
        return ()

    async def run(self, args: TodoUpdateArgs, ctx: Context) -> TodoUpdated | TodoDeleted:
        outcome: TodoUpdated | TodoDeleted
        if args.status == "deleted":
            outcome = TodoDeleted(await ctx.need(Todos).delete(args.todo_id))
        else:
            names = (name for name in args.__struct_fields__ if name != "todo_id")
            outcome = await update_todo(
                args.todo_id, build_change({name: getattr(args, name) for name in names}, ctx), ctx
            )
        note_warning(ctx)
        return outcome


Done = TodoCreated | TodoSeen | TodoUpdated | TodoDeleted | TodoListed

USUAL_LIMIT = 100
_NEEDS = {"create": "subject", "get": "todo_id", "update": "todo_id", "delete": "todo_id"}
_WRITTEN = ("subject", "description", "repository", "status", "blocked_by", "parent")


class TodoArgs(Args, frozen=True, kw_only=True):
    action: TodoAction
    todo_id: str | None = None
    subject: str | None = None
    description: str | None = None
    repository: str | None = None
    status: TodoStatus | None = None
    blocked_by: tuple[str, ...] | None = None
    parent: str | None = None
    limit: int = USUAL_LIMIT
    ready: bool = False


class AllTodos(Tool[TodoArgs, Done]):
    """Creates, lists, looks up, changes and deletes todos."""

    name = "todos"
    args = TodoArgs
    title = "Keep a list of tasks"
    hints = CHANGES

    def access(self, args: TodoArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the list is the session's own
        return ()

    async def run(self, args: TodoArgs, ctx: Context) -> Done:
        needed = _NEEDS.get(args.action, "")
        if needed and not getattr(args, needed):
            raise BadArguments(f"{ctx.param(needed)}: required for {args.action}, but missing.")
        if args.limit < 1:
            raise BadArguments(f"{ctx.param('limit')}: must be at least 1, not {args.limit}.")
        outcome = await self._do(args, ctx)
        note_warning(ctx)
        return outcome

    async def _do(self, args: TodoArgs, ctx: Context) -> Done:
        todos, todo_id = ctx.need(Todos), args.todo_id or ""
        if args.action == "list":
            return filter_todos(
                await todos.all(),
                status=args.status,
                completed=False,
                ready=args.ready,
                parent=args.parent or "",
                repository=args.repository or "",
                limit=args.limit,
            )
        if args.action == "get":
            return TodoSeen(await todos.get(todo_id))
        if args.action == "delete":
            return TodoDeleted(await todos.delete(todo_id))
        change = build_change({name: getattr(args, name) for name in _WRITTEN}, ctx)
        if args.action == "create":
            return TodoCreated(await todos.create(change))
        return await update_todo(todo_id, change, ctx)
