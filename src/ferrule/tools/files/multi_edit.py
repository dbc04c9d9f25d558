"""Replace several pieces of text in a file: all of them or none."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments
from ferrule.core.outcomes import Edited
from ferrule.core.preview import Preview
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.paths import Jail
from ferrule.workspace.replace import Piece, Replaced, current, replace_all
from ferrule.workspace.transaction import Contents, Plan, Writer


class OneEdit(Args, frozen=True, kw_only=True):
    old: str
    new: str
    everywhere: bool = False


class MultiEditArgs(Args, frozen=True, kw_only=True):
    path: str
    edits: tuple[OneEdit, ...]
    in_turn: bool = True
    """Is each edit made in what the ones before have left, or all in the file as it is?"""
    read_first: bool = False


class MultiEdit(Tool[MultiEditArgs, Edited]):
    """Several pieces of text for others, in one write."""

    name = "multi_edit"
    args = MultiEditArgs
    previews = True

    def access(self, args: MultiEditArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def preview(self, args: MultiEditArgs, ctx: Context) -> Preview:
        plan = _plan(args, ctx, [])
        return await ctx.need(Threads).run(ctx.need(Writer).preview, [ctx.path(args.path)], plan)

    async def run(self, args: MultiEditArgs, ctx: Context) -> Edited:
        return await ctx.need(Threads).finish(_edit, args, ctx, ctx.need(Writer))


def _plan(args: MultiEditArgs, ctx: Context, done: list[Replaced]) -> Plan:
    if not args.edits:
        raise BadArguments(f"{ctx.param('edits')}: is empty; give at least one edit.")
    path, ledger = ctx.path(args.path), ctx.need(Ledger)
    pieces = _pieces(args)

    def plan(found: Contents) -> Contents:
        file = current(found[path], path, ledger, read_first=args.read_first)
        done.append(replace_all(file, pieces, path, in_turn=args.in_turn, stale=ledger.stale(path, file.raw)))
        return {path: done[-1].raw}

    return plan


def _pieces(args: MultiEditArgs) -> list[Piece]:
    return [Piece(edit.old, edit.new, edit.everywhere) for edit in args.edits]


def _edit(args: MultiEditArgs, ctx: Context, writer: Writer) -> Edited:
    path = ctx.path(args.path)
    done: list[Replaced] = []
    written = writer.apply([path], _plan(args, ctx, done), kind="edit", call_id=ctx.call_id, agreed=ctx.agreed)
    replaced = done[-1]
    ctx.need(Ledger).saw(path, replaced.raw)
    ctx.track(path, (written.before[path], written.after[path]))
    for note in (*written.notes, *replaced.notes):
        ctx.note(note)
    if not written.entry_id:
        ctx.note("The file reads like this already; nothing was written.")
    return Edited(
        path,
        replaced.diff(ctx.need(Jail).shown(path)),
        replaced.first_line,
        replaced.last_line,
        pieces=tuple((piece.old, piece.new) for piece in _pieces(args)),
        places=replaced.places,
    )
