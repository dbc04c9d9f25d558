"""Write a whole file."""

import os

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import ToolFailure
from ferrule.core.outcomes import Created
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.workspace.guidance import Guidance
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.replace import check_read
from ferrule.workspace.textfile import lines
from ferrule.workspace.transaction import Contents, Writer


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

    def access(self, args: WriteArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def run(self, args: WriteArgs, ctx: Context) -> Created:
        return await ctx.need(Threads).finish(_write, args, ctx, ctx.need(Writer))


def _write(args: WriteArgs, ctx: Context, writer: Writer) -> Created:
    path = ctx.path(args.path)
    if args.path.endswith(("/", os.sep)):
        raise ToolFailure(f"{args.path} names a folder, not a file. Give the file's name too.", path=path)
    text = args.content
    if args.final_newline and text and not text.endswith("\n"):
        text += "\n"
    raw = text.encode()
    ledger = ctx.need(Ledger)

    def plan(found: Contents) -> Contents:
        there = found[path]
        if args.read_first and there is not None:
            check_read(there, path, ledger)
        return {path: raw}

    written = writer.apply([path], plan, kind="write", call_id=ctx.call_id)
    ctx.track(path)
    ledger.saw(path, raw)
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
