"""Apply a patch to many files at once."""

from collections.abc import Iterator
from typing import NamedTuple

from ferrule.core.access import Access
from ferrule.core.content import PatchApplied, Patched
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import CHANGES, Args, Context, Preview, Tool
from ferrule.files import text as textfile
from ferrule.files.diff import diff, diff_of_splices
from ferrule.files.jail import Jail
from ferrule.files.ledger import Ledger
from ferrule.files.patch import Malformed, Parsed, Placed, Section, parse, place
from ferrule.files.replace import check_read, explain_unplaced
from ferrule.files.text import Binary, Splice, TextFile, Unencodable
from ferrule.files.transaction import Contents, Plan, Writer
from ferrule.system import Threads

_NEW = TextFile(b"", "", "utf-8", b"")


class PatchArgs(Args, frozen=True, kw_only=True):
    patch: str
    read_first: bool = False
    """Must the session have read the files that are changed or deleted, as they are now?"""


class Patch(Tool[PatchArgs, PatchApplied]):
    """Files added, deleted, changed and moved, all of them or none; no hunk is placed on a guess."""

    name = "patch"
    args = PatchArgs
    title = "Apply a patch"
    hints = CHANGES
    previews = True

    def access(self, args: PatchArgs, ctx: Context) -> tuple[Access, ...]:
        targets = _targets(_parse_patch(args, ctx), ctx)
        return tuple(Access.write(path) for target in targets for path in target.paths())

    async def preview(self, args: PatchArgs, ctx: Context) -> Preview:
        targets = _targets(_parse_patch(args, ctx), ctx)
        paths, plan = _paths(targets), _plan(args, ctx, targets, [])
        return await ctx.need(Threads).run(ctx.need(Writer).preview, paths, plan, moved=_map_moves(targets))

    async def run(self, args: PatchArgs, ctx: Context) -> PatchApplied:
        return await ctx.need(Threads).finish(_patch, args, ctx, ctx.need(Writer))


class _PatchTarget(NamedTuple):
    """One section of the patch, and the real paths that it means."""

    section: Section
    path: str
    moved_to: str | None

    def paths(self) -> Iterator[str]:
        yield self.path
        if self.moved_to is not None:
            yield self.moved_to


class _PatchOutcome(NamedTuple):
    """What becomes of one target."""

    after: bytes | None
    diff: str
    notes: tuple[str, ...] = ()


def _parse_patch(args: PatchArgs, ctx: Context) -> Parsed:
    try:
        return parse(args.patch)
    except Malformed as error:
        raise BadArguments(f"{ctx.param('patch')}: {error}") from error


def _targets(parsed: Parsed, ctx: Context) -> list[_PatchTarget]:
    """Each section with its real paths; two names of one file are one name too many."""
    found: list[_PatchTarget] = []
    named: dict[str, int] = {}
    for section in parsed.sections:
        real = _real(section.path, section.line, ctx)
        if section.kind == "delete" or section.moved_to is not None:
            ctx.need(Jail).refuse_link(section.path)
        goal = _real(section.moved_to, section.line, ctx) if section.moved_to is not None else None
        target = _PatchTarget(section, real, goal if goal != real else None)
        for path in target.paths():
            if path in named:
                raise BadArguments(
                    f"{ctx.param('patch')}: line {section.line}: {ctx.need(Jail).display_path(path)} is named a second "
                    f"time, after line {named[path]}; name each file once, with all of its hunks."
                )
            named[path] = section.line
        found.append(target)
    return found


def _check_read(targets: list[_PatchTarget], found: Contents, ledger: Ledger) -> None:
    for target in targets:
        there = found[target.path]
        if there is not None and target.section.kind != "add":
            check_read(there, target.path, ledger)


def _real(path: str, line: int, ctx: Context) -> str:
    if path.endswith("/"):
        raise BadArguments(f"{ctx.param('patch')}: line {line}: expected the path of a file, not of a folder ({path}).")
    return ctx.path(path)


def _paths(targets: list[_PatchTarget]) -> list[str]:
    return [path for target in targets for path in target.paths()]


def _map_moves(targets: list[_PatchTarget]) -> dict[str, str]:
    """New path → the one that the file has now."""
    return {target.moved_to: target.path for target in targets if target.moved_to}


def _plan(args: PatchArgs, ctx: Context, targets: list[_PatchTarget], drafts: list[_PatchOutcome]) -> Plan:
    def plan(found: Contents) -> Contents:
        if args.read_first:
            _check_read(targets, found, ctx.need(Ledger))
        drafts[:] = [_draft(target, found, ctx) for target in targets]
        after: dict[str, bytes | None] = {}
        for target, draft in zip(targets, drafts, strict=True):
            after[target.path] = None if target.moved_to else draft.after
            if target.moved_to:
                after[target.moved_to] = draft.after
        return after

    return plan


def _patch(args: PatchArgs, ctx: Context, writer: Writer) -> PatchApplied:
    parsed = _parse_patch(args, ctx)
    targets = _targets(parsed, ctx)
    drafts: list[_PatchOutcome] = []
    written = writer.apply(
        _paths(targets),
        _plan(args, ctx, targets, drafts),
        kind="patch",
        call_id=ctx.call_id,
        moved=_map_moves(targets),
        agreed=ctx.agreed,
    )
    ledger = ctx.need(Ledger)
    for path, raw in written.after.items():
        if raw is None:
            ledger.forget(path)
        else:
            ledger.saw(path, raw)
        if raw != written.before[path]:
            ctx.track(path, (written.before[path], written.after[path]))
    for note in (*parsed.notes, *(note for draft in drafts for note in draft.notes), *written.notes):
        ctx.note(note)
    if not written.entry_id:
        ctx.note("The files read like this already; nothing was written.")
    return PatchApplied(
        tuple(
            Patched(target.section.kind, target.path, target.moved_to, draft.diff)
            for target, draft in zip(targets, drafts, strict=True)
        )
    )


def _draft(target: _PatchTarget, found: Contents, ctx: Context) -> _PatchOutcome:
    """What the section makes of the file as it is; raises where that is not clear."""
    section, path, goal = target
    shown, raw = ctx.need(Jail).display_path(path), found[path]
    taken = path if section.kind == "add" else goal
    if raw is None and section.kind != "add":
        raise ToolFailure(
            f"There is no file {shown} to {section.kind} (line {section.line} of the patch). Nothing was changed.",
            code="not-found",
            path=path,
        )
    if taken is not None and found[taken] is not None:
        how = "Update it instead" if section.kind == "add" else "Choose another name, or delete it before"
        raise ToolFailure(
            f"{ctx.need(Jail).display_path(taken)} exists already (line {section.line} of the patch). Nothing was "
            f"changed. {how}.",
            code="exists",
            path=taken,
        )
    if raw is None:
        return _draft_addition(section, path, shown)
    if section.kind == "delete":
        return _PatchOutcome(None, _draft_deletion(raw, shown))
    same = (f"{shown} was to be moved to itself; it stays where it is.",) if section.moved_to and not goal else ()
    if not section.hunks:
        return _PatchOutcome(raw, "", same)
    draft = _draft_update(target, raw, ctx)
    return draft._replace(notes=same + draft.notes)


def _draft_addition(section: Section, path: str, shown: str) -> _PatchOutcome:
    text = "".join(f"{line}\n" for line in section.lines)
    empty = () if section.lines else (f"{shown} is empty: the patch has no lines for it.",)
    return _PatchOutcome(_splice(_NEW, (Splice(0, 0, text),), path, shown), diff(shown, None, text), empty)


def _draft_deletion(raw: bytes, shown: str) -> str:
    try:
        return diff(shown, textfile.parse(raw).text, None)
    except Binary:
        return f"Binary files a/{shown} and /dev/null differ\n"


def _draft_update(target: _PatchTarget, raw: bytes, ctx: Context) -> _PatchOutcome:
    section, path, goal = target
    jail, stale = ctx.need(Jail), ctx.need(Ledger).stale(path, raw)
    shown = jail.display_path(path)
    try:
        file = textfile.parse(raw)
    except Binary as error:
        raise ToolFailure(
            f"{shown} is binary and cannot be changed by lines (line {section.line} of the patch). "
            "Nothing was changed.",
            code="binary",
            path=path,
        ) from error
    placed = place(file, section.hunks)
    if not isinstance(placed, Placed):
        code = "ambiguous" if placed.reason in ("ambiguous", "nowhere") else "no-match"
        report = explain_unplaced(file, placed, changed_since_read=stale)
        raise ToolFailure(f"{shown}: {report}", code=code, path=path, count=len(placed.lines))
    after = _splice(file, placed.splices, path, shown)
    notes = []
    if placed.loose:
        rungs = " and ".join(dict.fromkeys(rung for _, rung in placed.loose))
        lines = ", ".join(str(line) for line, _ in placed.loose[:10]) + (", …" if len(placed.loose) > 10 else "")
        hunks = f"the hunk at line {lines}" if len(placed.loose) == 1 else f"the hunks at lines {lines}"
        notes.append(f"{shown}: {hunks} of the patch matched loosely ({rungs}).")
    if file.encoding not in ("utf-8", "ascii"):
        notes.append(f"{shown} is encoded as {file.encoding}, and still is.")
    return _PatchOutcome(
        after, diff_of_splices(jail.display_path(goal or path), file.text, placed.splices), tuple(notes)
    )


def _splice(file: TextFile, splices: tuple[Splice, ...], path: str, shown: str) -> bytes:
    try:
        return textfile.splice(file, splices)
    except Unencodable as error:
        raise ToolFailure(f"{shown}: {error} Nothing was changed.", code="unencodable", path=path) from error
