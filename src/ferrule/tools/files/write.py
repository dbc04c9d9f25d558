"""Write a whole file."""

import os

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import ToolFailure
from ferrule.core.outcomes import Created
from ferrule.core.preview import Preview
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.workspace.guidance import Guidance
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.replace import check_read
from ferrule.workspace.textfile import lines
from ferrule.workspace.transaction import Contents, Plan, Writer


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
    previews = True

    def access(self, args: WriteArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def preview(self, args: WriteArgs, ctx: Context) -> Preview:
        plan = _plan(args, ctx, _text(args, ctx).encode())
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


def _plan(args: WriteArgs, ctx: Context, raw: bytes) -> Plan:
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
    written = writer.apply([path], _plan(args, ctx, raw), kind="write", call_id=ctx.call_id, agreed=ctx.agreed)
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
