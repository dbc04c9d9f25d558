"""Edit, write and delete files, and take back the last write."""

import os
from collections.abc import Callable

from ferrule.checkpoints.undo import Undo
from ferrule.core.access import Access
from ferrule.core.content import Created, Deleted, Edited, Restored
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import CHANGES, REPLACES, Args, Context, Preview, Tool
from ferrule.files.diff import diff
from ferrule.files.guidance import Guidance
from ferrule.files.jail import Jail
from ferrule.files.journal import JournalEntry
from ferrule.files.ledger import Ledger
from ferrule.files.replace import Piece, Replaced, check_read, current, replace, replace_all
from ferrule.files.text import Binary, lines, parse
from ferrule.files.transaction import Contents, Plan, Writer
from ferrule.system import Threads


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
    title = "Edit a file"
    hints = CHANGES
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
        return _build_created(path, args.new, after, existed=written.before[path] is not None)
    if not written.entry_id:
        ctx.note("The file reads like this already; nothing was written.")
    return _build_edited(path, args, done[0], ctx)


def _build_created(path: str, text: str, raw: bytes, *, existed: bool) -> Created:
    return Created(
        path,
        existed,
        guidance=(),
        lines=len(lines(text)),
        size_bytes=len(raw),
        final_newline=text.endswith("\n"),
    )


def _build_edited(path: str, args: EditArgs, replaced: Replaced, ctx: Context) -> Edited:
    for note in replaced.notes:
        ctx.note(note)
    return Edited(
        path,
        replaced.diff(ctx.need(Jail).display_path(path)),
        replaced.first_line,
        replaced.last_line,
        pieces=((args.old, args.new),),
        places=replaced.places,
    )


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
    title = "Edit a file in several places"
    hints = CHANGES
    previews = True

    def access(self, args: MultiEditArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def preview(self, args: MultiEditArgs, ctx: Context) -> Preview:
        plan = _plan_edits(args, ctx, [])
        return await ctx.need(Threads).run(ctx.need(Writer).preview, [ctx.path(args.path)], plan)

    async def run(self, args: MultiEditArgs, ctx: Context) -> Edited:
        return await ctx.need(Threads).finish(_one_edit, args, ctx, ctx.need(Writer))


def _plan_edits(args: MultiEditArgs, ctx: Context, done: list[Replaced]) -> Plan:
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


def _one_edit(args: MultiEditArgs, ctx: Context, writer: Writer) -> Edited:
    path = ctx.path(args.path)
    done: list[Replaced] = []
    written = writer.apply([path], _plan_edits(args, ctx, done), kind="edit", call_id=ctx.call_id, agreed=ctx.agreed)
    replaced = done[-1]
    ctx.need(Ledger).saw(path, replaced.raw)
    ctx.track(path, (written.before[path], written.after[path]))
    for note in (*written.notes, *replaced.notes):
        ctx.note(note)
    if not written.entry_id:
        ctx.note("The file reads like this already; nothing was written.")
    return Edited(
        path,
        replaced.diff(ctx.need(Jail).display_path(path)),
        replaced.first_line,
        replaced.last_line,
        pieces=tuple((piece.old, piece.new) for piece in _pieces(args)),
        places=replaced.places,
    )


class WriteArgs(Args, frozen=True, kw_only=True):
    path: str
    content: str
    final_newline: bool = True
    """Does a content that does not end in a newline get one?"""
    read_first: bool = False
    """Must the session have read a file that is there, as it is now?"""
    name_guidance: bool = False
    """Are guidance files that hold for the file part of the outcome?"""


class Write(Tool[WriteArgs, Created]):
    """Create a file or replace all of it; missing folders are made."""

    name = "write"
    args = WriteArgs
    title = "Write a file"
    hints = REPLACES
    previews = True

    def access(self, args: WriteArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def preview(self, args: WriteArgs, ctx: Context) -> Preview:
        plan = _plan_write(args, ctx, _text(args, ctx).encode())
        return await ctx.need(Threads).run(ctx.need(Writer).preview, [ctx.path(args.path)], plan)

    async def run(self, args: WriteArgs, ctx: Context) -> Created:
        return await ctx.need(Threads).finish(_write, args, ctx, ctx.need(Writer))


def _text(args: WriteArgs, ctx: Context) -> str:
    if args.path.endswith(("/", os.sep)):
        raise ToolFailure(
            f"{args.path} names a folder, not a file. Give the file's name too.",
            code="is-folder",
            path=ctx.path(args.path),
        )
    text = args.content
    return f"{text}\n" if args.final_newline and text and not text.endswith("\n") else text


def _plan_write(args: WriteArgs, ctx: Context, raw: bytes) -> Plan:
    path, ledger = ctx.path(args.path), ctx.need(Ledger)

    def plan(found: Contents) -> Contents:
        there = found[path]
        if args.read_first and there is not None:
            check_read(there, path, ledger)
        return {path: raw}

    return plan


def _write(args: WriteArgs, ctx: Context, writer: Writer) -> Created:
    path, text = ctx.path(args.path), _text(args, ctx)
    raw = text.encode()
    written = writer.apply([path], _plan_write(args, ctx, raw), kind="write", call_id=ctx.call_id, agreed=ctx.agreed)
    ctx.track(path, (written.before[path], written.after[path]))
    ctx.need(Ledger).saw(path, raw)
    for note in written.notes:
        ctx.note(note)
    if not written.entry_id:
        ctx.note("The file had this content already; nothing was written.")
    return Created(
        path,
        existed=written.before[path] is not None,
        guidance=ctx.need(Guidance).discover(path) if args.name_guidance else (),
        lines=len(lines(text)),
        size_bytes=len(raw),
        final_newline=text.endswith("\n"),
    )


class DeleteArgs(Args, frozen=True, kw_only=True):
    path: str


class Delete(Tool[DeleteArgs, Deleted]):
    """One file, never a folder; the journal keeps its bytes and its mode."""

    name = "delete"
    args = DeleteArgs
    title = "Delete a file"
    hints = REPLACES
    previews = True

    def access(self, args: DeleteArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def preview(self, args: DeleteArgs, ctx: Context) -> Preview:
        return await ctx.need(Threads).run(ctx.need(Writer).preview, [ctx.path(args.path)], _plan_delete(args, ctx))

    async def run(self, args: DeleteArgs, ctx: Context) -> Deleted:
        return await ctx.need(Threads).finish(_delete, args, ctx, ctx.need(Writer))


def _plan_delete(args: DeleteArgs, ctx: Context) -> Plan:
    path = ctx.path(args.path)
    ctx.need(Jail).refuse_link(args.path)

    def plan(found: Contents) -> Contents:
        if found[path] is None:
            raise ToolFailure(f"{path} is not there.", code="not-found", path=path)
        return {path: None}

    return plan


def _delete(args: DeleteArgs, ctx: Context, writer: Writer) -> Deleted:
    path = ctx.path(args.path)
    written = writer.apply([path], _plan_delete(args, ctx), kind="delete", call_id=ctx.call_id, agreed=ctx.agreed)
    for note in written.notes:
        ctx.note(note)
    ctx.need(Ledger).forget(path)
    ctx.track(path, (written.before[path], written.after[path]))
    return Deleted(path)


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
        return diff(name, _parse_text(before), _parse_text(after))
    except Binary:
        return f"{name}: binary, {len(before or b''):,} bytes before and {len(after or b''):,} bytes after.\n"


def _parse_text(raw: bytes | None) -> str | None:
    return None if raw is None else parse(raw).text
