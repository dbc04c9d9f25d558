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
from ferrule.workspace.transaction import Writer


class WriteArgs(Args, frozen=True, kw_only=True):
    path: str
    content: str
    final_newline: bool = True
    """Does a content that does not end in a newline get one?"""


class Write(Tool[WriteArgs, Created]):
    """Create a file or replace all of it; missing folders are made."""

    name = "write"
    args = WriteArgs

    def access(self, args: WriteArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def run(self, args: WriteArgs, ctx: Context) -> Created:
        writer, guidance = ctx.need(Writer), ctx.need(Guidance)
        return await ctx.need(Threads).finish(_write, args, ctx, writer, guidance)


def _write(args: WriteArgs, ctx: Context, writer: Writer, guidance: Guidance) -> Created:
    path = ctx.path(args.path)
    if args.path.endswith(("/", os.sep)):
        raise ToolFailure(f"{args.path} names a folder, not a file. Give the file's name too.", path=path)
    text = args.content
    if args.final_newline and text and not text.endswith("\n"):
        text += "\n"
    raw = text.encode()
    written = writer.apply([path], lambda _: {path: raw}, kind="write", call_id=ctx.call_id)
    ctx.track(path)
    ctx.need(Ledger).saw(path, raw)
    for note in written.notes:
        ctx.note(note)
    if not written.entry_id:
        ctx.note("The file had this content already; nothing was written.")
    return Created(path, written.before[path] is not None, guidance.discover(path))
