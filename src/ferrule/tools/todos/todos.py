"""The list of todos as one tool, for families that say in a parameter what is to be done with it."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments
from ferrule.core.todos import TodoAction, TodoCreated, TodoDeleted, TodoListed, TodoSeen, TodoStatus, TodoUpdated
from ferrule.core.tool import Context, Tool
from ferrule.tools.todos.doing import fitted, kept, told, updated
from ferrule.workspace.todos import Todos

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

    def access(self, args: TodoArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the list is the session's own
        return ()

    async def run(self, args: TodoArgs, ctx: Context) -> Done:
        needed = _NEEDS.get(args.action, "")
        if needed and not getattr(args, needed):
            raise BadArguments(f"{ctx.param(needed)}: required for {args.action}, but missing.")
        if args.limit < 1:
            raise BadArguments(f"{ctx.param('limit')}: must be at least 1, not {args.limit}.")
        outcome = await self._do(args, ctx)
        told(ctx)
        return outcome

    async def _do(self, args: TodoArgs, ctx: Context) -> Done:
        todos, todo_id = ctx.need(Todos), args.todo_id or ""
        if args.action == "list":
            return kept(
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
        change = fitted({name: getattr(args, name) for name in _WRITTEN}, ctx)
        if args.action == "create":
            return TodoCreated(await todos.create(change))
        return await updated(todo_id, change, ctx)
