"""Replace text in a file."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import ToolFailure
from ferrule.core.outcomes import Edited
from ferrule.core.tool import Context, Tool
from ferrule.support.diff import diff_of_splices
from ferrule.support.threads import Threads
from ferrule.workspace.explain import explain, explain_ambiguous
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.match import Ambiguous, Found, Missing, find
from ferrule.workspace.paths import Jail
from ferrule.workspace.textfile import Binary, TextFile, Unencodable, parse, splice
from ferrule.workspace.transaction import Contents, Writer


class EditArgs(Args, frozen=True, kw_only=True):
    path: str
    old: str
    new: str
    everywhere: bool = False


class Edit(Tool[EditArgs, Edited]):
    """One piece of text for another; nothing is written on a guess, and a miss explains itself."""

    name = "edit"
    args = EditArgs

    def access(self, args: EditArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def run(self, args: EditArgs, ctx: Context) -> Edited:
        if not args.old:
            raise ToolFailure("The old text is empty.", code="empty-old")
        if args.old == args.new:
            raise ToolFailure("The old text and the new text are the same.", code="same-text")
        return await ctx.need(Threads).finish(_edit, args, ctx, ctx.need(Writer))


def _edit(args: EditArgs, ctx: Context, writer: Writer) -> Edited:
    path, ledger = ctx.path(args.path), ctx.need(Ledger)
    done: list[tuple[TextFile, Found]] = []

    def plan(found: Contents) -> Contents:
        raw = found[path]
        if raw is None:
            raise ToolFailure("There is no such file to edit.", code="not-found", path=path)
        try:
            file = parse(raw)
        except Binary as error:
            raise ToolFailure("The file is binary and cannot be edited as text.", code="binary", path=path) from error
        match = _place(file, args, path, stale=ledger.stale(path, raw))
        done.append((file, match))
        try:
            return {path: splice(file, match.splices)}
        except Unencodable as error:
            raise ToolFailure(f"{error} Nothing was changed.", code="unencodable", path=path) from error

    written = writer.apply([path], plan, kind="edit", call_id=ctx.call_id)
    file, match = done[-1]
    after = written.after[path]
    assert after is not None
    ledger.saw(path, after)
    ctx.track(path)
    for note in written.notes:
        ctx.note(note)
    if not written.entry_id:
        ctx.note("The file reads like this already; nothing was written.")
    if match.rung != "exact":
        ctx.note(f"The old text was matched loosely ({match.rung}).")
    if file.encoding not in ("utf-8", "ascii"):
        ctx.note(f"The file is encoded as {file.encoding}, and still is.")
    diff = diff_of_splices(ctx.need(Jail).shown(path), file.text, match.splices)
    return Edited(path, diff, match.lines[0][0], match.lines[-1][1])


def _place(file: TextFile, args: EditArgs, path: str, *, stale: bool) -> Found:
    """The one place that is meant, or all of them; a failure explains itself."""
    match = find(file, args.old, args.new, everywhere=args.everywhere)
    if isinstance(match, Missing):
        raise ToolFailure(explain(file, args.old, args.new, changed_since_read=stale), code="no-match", path=path)
    if isinstance(match, Ambiguous):
        report = explain_ambiguous(file, match, args.old)
        raise ToolFailure(report, code="ambiguous", path=path, count=len(match.lines))
    return match
