"""Change a todo: its words, its status, its owner, what it waits for; or take it off the list."""

from typing import Any, Literal

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.todos import TodoDeleted, TodoUpdated
from ferrule.core.tool import Context, Tool
from ferrule.tools.todos.doing import fitted, told, updated
from ferrule.workspace.todos import Todos


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

    def access(self, args: TodoUpdateArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the list is the session's own
        return ()

    async def run(self, args: TodoUpdateArgs, ctx: Context) -> TodoUpdated | TodoDeleted:
        outcome: TodoUpdated | TodoDeleted
        if args.status == "deleted":
            outcome = TodoDeleted(await ctx.need(Todos).delete(args.todo_id))
        else:
            names = (name for name in args.__struct_fields__ if name != "todo_id")
            outcome = await updated(args.todo_id, fitted({name: getattr(args, name) for name in names}, ctx), ctx)
        told(ctx)
        return outcome
