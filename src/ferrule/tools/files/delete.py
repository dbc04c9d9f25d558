"""Delete a file."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import ToolFailure
from ferrule.core.outcomes import Deleted
from ferrule.core.preview import Preview
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.paths import Jail
from ferrule.workspace.transaction import Contents, Plan, Writer


class DeleteArgs(Args, frozen=True, kw_only=True):
    path: str


class Delete(Tool[DeleteArgs, Deleted]):
    """One file, never a folder; the journal keeps its bytes and its mode."""

    name = "delete"
    args = DeleteArgs
    previews = True

    def access(self, args: DeleteArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def preview(self, args: DeleteArgs, ctx: Context) -> Preview:
        return await ctx.need(Threads).run(ctx.need(Writer).preview, [ctx.path(args.path)], _plan(args, ctx))

    async def run(self, args: DeleteArgs, ctx: Context) -> Deleted:
        return await ctx.need(Threads).finish(_delete, args, ctx, ctx.need(Writer))


def _plan(args: DeleteArgs, ctx: Context) -> Plan:
    path = ctx.path(args.path)
    ctx.need(Jail).refuse_link(args.path)

    def plan(found: Contents) -> Contents:
        if found[path] is None:
            raise ToolFailure(f"{path} is not there.", code="not-found", path=path)
        return {path: None}

    return plan


def _delete(args: DeleteArgs, ctx: Context, writer: Writer) -> Deleted:
    path = ctx.path(args.path)
    written = writer.apply([path], _plan(args, ctx), kind="delete", call_id=ctx.call_id, agreed=ctx.agreed)
    for note in written.notes:
        ctx.note(note)
    ctx.need(Ledger).forget(path)
    ctx.track(path, (written.before[path], written.after[path]))
    return Deleted(path)
