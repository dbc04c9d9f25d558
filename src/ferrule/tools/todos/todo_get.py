"""Look up one todo."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.todos import TodoSeen
from ferrule.core.tool import Context, Tool
from ferrule.tools.todos.doing import told
from ferrule.workspace.todos import Todos


class TodoGetArgs(Args, frozen=True, kw_only=True):
    todo_id: str


class TodoGet(Tool[TodoGetArgs, TodoSeen]):
    """A todo in full; that there is none of the id is an answer too."""

    name = "todo_get"
    args = TodoGetArgs

    def access(self, args: TodoGetArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the list is the session's own
        return ()

    async def run(self, args: TodoGetArgs, ctx: Context) -> TodoSeen:
        todo = await ctx.need(Todos).get(args.todo_id)
        told(ctx)
        return TodoSeen(todo)
