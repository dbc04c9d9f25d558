"""Take back the last write of a file."""

from collections.abc import Callable

from ferrule.checkpoints.undo import Undo
from ferrule.core.access import Access
from ferrule.core.content import Restored
from ferrule.core.tool import CHANGES, Args, Context, Preview, Tool
from ferrule.files.diff import diff
from ferrule.files.jail import Jail
from ferrule.files.journal import JournalEntry
from ferrule.files.ledger import Ledger
from ferrule.files.text import Binary, parse
from ferrule.system.threads import Threads


class UndoEditArgs(Args, frozen=True, kw_only=True):
    path: str


class UndoEdit(Tool[UndoEditArgs, Restored]):
    """The state before the last write of a file, whatever that write was; files written with it go back with it."""

    name = "undo"
    args = UndoEditArgs
    title = "Take back the last edit"
    hints = CHANGES
    previews = True

    def access(self, args: UndoEditArgs, ctx: Context) -> tuple[Access, ...]:
        """Only what this session has written itself goes back for free: the journal has other sessions' writes too."""
        path, undo = ctx.path(args.path), ctx.need(Undo)
        undoable, _ = undo.history(path)
        if not undoable:
            return (Access.restore(path),)
        last = undoable[-1]
        touch = Access.restore if undo.is_own(last) else Access.write
        return tuple(map(touch, dict.fromkeys((path, *last.paths))))

    async def preview(self, args: UndoEditArgs, ctx: Context) -> Preview:
        undo = ctx.need(Undo)
        return await ctx.need(Threads).run(undo.preview, ctx.path(args.path), _build_filter(undo, ctx))

    async def run(self, args: UndoEditArgs, ctx: Context) -> Restored:
        undo = ctx.need(Undo)
        done = await ctx.need(Threads).finish(undo.undo_last, ctx.path(args.path), _build_filter(undo, ctx), ctx.agreed)
        ctx.need(Ledger).follow(done.after)
        for changed in done.after:
            ctx.track(changed, (done.before[changed], done.after[changed]))
        jail = ctx.need(Jail)
        diffs = [difference(jail.display_path(one), done.before[one], done.after[one]) for one in done.after]
        return Restored(tuple(done.after), "\n".join(text.rstrip("\n") for text in diffs if text))


def _build_filter(undo: Undo, ctx: Context) -> Callable[[JournalEntry], bool]:
    """Other calls may have gone back further since this one was let in."""
    permitted = {access.key for access in ctx.touches if access.mode == "write"}
    return lambda entry: undo.is_own(entry) or permitted.issuperset(entry.paths)


def difference(name: str, before: bytes | None, after: bytes | None) -> str:
    """A diff of two contents; a sentence where they are not text."""
    try:
        return diff(name, _text(before), _text(after))
    except Binary:
        return f"{name}: binary, {len(before or b''):,} bytes before and {len(after or b''):,} bytes after.\n"


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else parse(raw).text
