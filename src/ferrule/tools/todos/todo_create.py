"""Put a todo on the list."""

from typing import Any

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.todos import TodoCreated
from ferrule.core.tool import Context, Tool
from ferrule.tools.todos.doing import fitted, told
from ferrule.workspace.todos import Todos


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

    def access(self, args: TodoCreateArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the list is the session's own
        return ()

    async def run(self, args: TodoCreateArgs, ctx: Context) -> TodoCreated:
        change = fitted({name: getattr(args, name) for name in args.__struct_fields__}, ctx)
        todo = await ctx.need(Todos).create(change)
        told(ctx)
        return TodoCreated(todo)
