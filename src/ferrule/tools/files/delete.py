"""Delete a file."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import ToolFailure
from ferrule.core.outcomes import Deleted
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.paths import Jail
from ferrule.workspace.transaction import Contents, Writer


class DeleteArgs(Args, frozen=True, kw_only=True):
    path: str


class Delete(Tool[DeleteArgs, Deleted]):
    """One file, never a folder; the journal keeps its bytes and its mode."""

    name = "delete"
    args = DeleteArgs

    def access(self, args: DeleteArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def run(self, args: DeleteArgs, ctx: Context) -> Deleted:
        return await ctx.need(Threads).finish(_delete, args, ctx, ctx.need(Writer))


def _delete(args: DeleteArgs, ctx: Context, writer: Writer) -> Deleted:
    path = ctx.path(args.path)
    ctx.need(Jail).refuse_link(args.path)

    def plan(found: Contents) -> Contents:
        if found[path] is None:
            raise ToolFailure(f"{path} is not there.", code="not-found", path=path)
        return {path: None}

    for note in writer.apply([path], plan, kind="delete", call_id=ctx.call_id).notes:
        ctx.note(note)
    ctx.need(Ledger).forget(path)
    ctx.track(path)
    return Deleted(path)
