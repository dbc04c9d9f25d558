"""Replace text in a file."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import ToolFailure
from ferrule.core.outcomes import Created, Edited
from ferrule.core.preview import Preview
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.paths import Jail
from ferrule.workspace.replace import Piece, Replaced, check_read, current, replace
from ferrule.workspace.textfile import lines
from ferrule.workspace.transaction import Contents, Plan, Writer


class EditArgs(Args, frozen=True, kw_only=True):
    path: str
    old: str
    new: str
    everywhere: bool = False
    expected: int | None = None
    """How many places there must be."""
    read_first: bool = False
    """Must the session have read the file, as it is now?"""
    may_create: bool = False
    """Does an empty old text make a file that is not there, or fill one that is empty?"""


class Edit(Tool[EditArgs, Edited | Created]):
    """One piece of text for another; nothing is written on a guess, and a miss explains itself."""

    name = "edit"
    args = EditArgs
    previews = True

    def access(self, args: EditArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def preview(self, args: EditArgs, ctx: Context) -> Preview:
        _check(args, ctx)
        plan = _plan(args, ctx, [])
        return await ctx.need(Threads).run(ctx.need(Writer).preview, [ctx.path(args.path)], plan)

    async def run(self, args: EditArgs, ctx: Context) -> Edited | Created:
        _check(args, ctx)
        return await ctx.need(Threads).finish(_edit, args, ctx, ctx.need(Writer))


def _check(args: EditArgs, ctx: Context) -> None:
    if not args.old and not args.may_create:
        raise ToolFailure("The old text is empty.", code="empty-old", path=ctx.path(args.path))
    if args.old == args.new:
        raise ToolFailure("The old text and the new text are the same.", code="same-text", path=ctx.path(args.path))


def _plan(args: EditArgs, ctx: Context, done: list[Replaced]) -> Plan:
    path, ledger = ctx.path(args.path), ctx.need(Ledger)

    def plan(found: Contents) -> Contents:
        raw = found[path]
        done.clear()
        if not raw and not args.old and args.may_create:
            if raw is not None and args.read_first:
                check_read(raw, path, ledger)
            return {path: args.new.encode()}
        file = current(raw, path, ledger, read_first=args.read_first)
        piece = Piece(args.old, args.new, args.everywhere, args.expected)
        done.append(replace(file, piece, path, stale=ledger.stale(path, file.raw)))
        return {path: done[0].raw}

    return plan


def _edit(args: EditArgs, ctx: Context, writer: Writer) -> Edited | Created:
    path, ledger = ctx.path(args.path), ctx.need(Ledger)
    done: list[Replaced] = []
    written = writer.apply([path], _plan(args, ctx, done), kind="edit", call_id=ctx.call_id, agreed=ctx.agreed)
    after = written.after[path]
    assert after is not None
    ledger.saw(path, after)
    ctx.track(path, (written.before[path], written.after[path]))
    for note in written.notes:
        ctx.note(note)
    if not done:
        return _created(path, args.new, after, existed=written.before[path] is not None)
    if not written.entry_id:
        ctx.note("The file reads like this already; nothing was written.")
    return _edited(path, args, done[0], ctx)


def _created(path: str, text: str, raw: bytes, *, existed: bool) -> Created:
    return Created(
        path,
        existed,
        guidance=(),
        lines=len(lines(text)),
        size_bytes=len(raw),
        final_newline=text.endswith("\n"),
    )


def _edited(path: str, args: EditArgs, replaced: Replaced, ctx: Context) -> Edited:
    for note in replaced.notes:
        ctx.note(note)
    return Edited(
        path,
        replaced.diff(ctx.need(Jail).shown(path)),
        replaced.first_line,
        replaced.last_line,
        pieces=((args.old, args.new),),
        places=replaced.places,
    )
