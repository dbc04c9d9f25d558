"""List the todos."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.todos import TodoListed, TodoStatus
from ferrule.core.tool import Context, Tool
from ferrule.tools.todos.doing import kept, told
from ferrule.workspace.todos import Todos


class TodoListArgs(Args, frozen=True, kw_only=True):
    status: TodoStatus | None = None
    waiting: bool | None = None
    kind: str = ""
    parent: str = ""


class TodoList(Tool[TodoListArgs, TodoListed]):
    """All todos, or those of a kind, by id."""

    name = "todo_list"
    args = TodoListArgs

    def access(self, args: TodoListArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the list is the session's own
        return ()

    async def run(self, args: TodoListArgs, ctx: Context) -> TodoListed:
        every = await ctx.need(Todos).all()
        told(ctx)
        return kept(every, status=args.status, waiting=args.waiting, kind=args.kind, parent=args.parent)
