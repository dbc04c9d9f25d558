"""Replace, insert or delete a cell of a notebook."""

from typing import Literal

from ferrule.core.access import Access
from ferrule.core.content import CellEdited
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import CHANGES, Args, Context, Preview, Tool
from ferrule.files.diff import diff
from ferrule.files.jail import Jail
from ferrule.files.journal import find_changed_span
from ferrule.files.ledger import Ledger
from ferrule.files.notebook import AmbiguousCell, BadNotebook, Changed, NoCell, edit_cell
from ferrule.files.replace import check_read
from ferrule.files.transaction import Contents, Plan, Writer
from ferrule.system import Threads

DIFF_BYTES = 50_000
"""Of changed lines, beyond which a diff is not worth reading: outputs that go away, and files on one line."""


class NotebookEditArgs(Args, frozen=True, kw_only=True):
    path: str
    source: str
    """Of no meaning to a deletion."""
    cell_id: str | None = None
    """The cell's own id, or `cell-N` by its place, from 0. A new cell goes behind it, or else to the start."""
    cell_type: Literal["code", "markdown"] | None = None
    mode: Literal["replace", "insert", "delete"] = "replace"
    read_first: bool = False
    """Must the notebook have been read, and not changed since?"""


class NotebookEdit(Tool[NotebookEditArgs, CellEdited]):
    """One cell of a notebook for another; every other byte of the file stays."""

    name = "notebook_edit"
    args = NotebookEditArgs
    title = "Edit a notebook"
    hints = CHANGES
    previews = True

    def access(self, args: NotebookEditArgs, ctx: Context) -> tuple[Access, ...]:
        return (Access.write(ctx.path(args.path)),)

    async def preview(self, args: NotebookEditArgs, ctx: Context) -> Preview:
        _check(args, ctx)
        plan = _plan(args, ctx, [])
        return await ctx.need(Threads).run(ctx.need(Writer).preview, [ctx.path(args.path)], plan)

    async def run(self, args: NotebookEditArgs, ctx: Context) -> CellEdited:
        _check(args, ctx)
        return await ctx.need(Threads).finish(_edit, args, ctx, ctx.need(Writer))


def _check(args: NotebookEditArgs, ctx: Context) -> None:
    if args.mode == "insert" and args.cell_type is None:
        raise BadArguments(f"{ctx.param('cell_type')}: a new cell needs it; give code or markdown.")
    if args.mode == "delete" and args.cell_id is None:
        raise BadArguments(f"{ctx.param('cell_id')}: say which cell is to be deleted.")
    if not args.path.lower().endswith(".ipynb"):
        raise ToolFailure(
            f"{args.path} is not a notebook: its name does not end in .ipynb. Edit it as a text.",
            code="not-a-notebook",
            path=ctx.path(args.path),
        )


def _plan(args: NotebookEditArgs, ctx: Context, done: list[Changed]) -> Plan:
    path, ledger = ctx.path(args.path), ctx.need(Ledger)

    def plan(found: Contents) -> Contents:
        raw = found[path]
        if raw is None:
            raise ToolFailure("There is no such notebook.", code="not-found", path=path)
        if args.read_first:
            check_read(raw, path, ledger)
        done.append(_apply_edit(args, path, raw))
        return {path: done[-1].raw}

    return plan


def _edit(args: NotebookEditArgs, ctx: Context, writer: Writer) -> CellEdited:
    path = ctx.path(args.path)
    done: list[Changed] = []
    written = writer.apply([path], _plan(args, ctx, done), kind="edit", call_id=ctx.call_id, agreed=ctx.agreed)
    before, changed = written.before[path], done[-1]
    assert before is not None
    ctx.need(Ledger).saw(path, changed.raw)
    ctx.track(path, (written.before[path], written.after[path]))
    for note in written.notes:
        ctx.note(note)
    if not written.entry_id:
        ctx.note("The notebook reads like this already; nothing was written.")
    if changed.dropped:
        ctx.note(f"Code cells have no {' or '.join(changed.dropped)}; the cell lost what it had of them.")
    shown = _diff(ctx, ctx.need(Jail).display_path(path), before, changed, deleted=args.mode == "delete")
    return CellEdited(path, changed.cell_id, args.mode, changed.source, shown)


def _apply_edit(args: NotebookEditArgs, path: str, raw: bytes) -> Changed:
    try:
        return edit_cell(raw, cell_id=args.cell_id, source=args.source, cell_type=args.cell_type, mode=args.mode)
    except BadNotebook as error:
        raise ToolFailure(str(error), code="bad-notebook", path=path) from error
    except NoCell as error:
        raise ToolFailure(str(error), code="no-cell", path=path) from error
    except AmbiguousCell as error:
        raise ToolFailure(str(error), code="ambiguous-cell", path=path) from error


def _diff(ctx: Context, shown: str, before: bytes, changed: Changed, *, deleted: bool) -> str:
    """The file's diff, or the cell's source's where that would be too long."""
    if _count_changed_bytes(before, changed.raw) <= DIFF_BYTES:
        return diff(shown, before.decode(), changed.raw.decode())
    after = "" if deleted else changed.source
    if len(changed.before) + len(after) > DIFF_BYTES:
        ctx.note("The diff is too long to be shown.")
        return ""
    ctx.note("The diff of the whole file is too long to be shown; this is the diff of the cell's source.")
    return diff(shown, changed.before, after)


def _count_changed_bytes(before: bytes, after: bytes) -> int:
    """How long the lines are that differ, in both files."""
    start, old, new = find_changed_span(before, after)
    first = before.rfind(b"\n", 0, start) + 1
    return sum(
        (raw.find(b"\n", end) + 1 or len(raw)) - first for raw, end in ((before, start + old), (after, start + new))
    )
