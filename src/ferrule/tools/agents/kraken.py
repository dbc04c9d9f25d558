"""Change many files at once: one subagent for each, on a draft of its own, and all drafts written together or none."""

import os
from collections.abc import Mapping, Sequence

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.delegated import subagents
from ferrule.core.errors import BadArguments, Denied, FerruleError, ToolFailure
from ferrule.core.found import Reworked, ReworkedFile
from ferrule.core.planning import Planning
from ferrule.core.subagents import Job, Worked
from ferrule.core.tool import Context, Tool
from ferrule.settings import Settings
from ferrule.support.threads import Threads
from ferrule.tools.agents.asking import EDITING, READING, specialist, unfinished, worked
from ferrule.tools.agents.parts import side_by_side
from ferrule.tools.agents.whole import MOST_FILES, Share, named, planned
from ferrule.workspace.drafts import Drafts
from ferrule.workspace.journal import Journal
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.paths import Jail
from ferrule.workspace.transaction import Writer

_CANNOT = "CANNOT:"
"""What a subagent begins its last message with when it could not do its part."""
_SUMMARY_CHARS = 300
_SHOWN_FILES = 8


class KrakenArgs(Args, frozen=True, kw_only=True):
    task: str
    files: tuple[str, ...] = ()
    """Paths and globs; where none are given, a subagent finds out which."""


class Kraken(Tool[KrakenArgs, Reworked]):
    """It writes nothing until all parts are done; then all of it is one write, and one undo takes it back."""

    name = "kraken"
    args = KrakenArgs
    timed = False
    waits = True

    def access(self, args: KrakenArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it is the same for all
        """Nothing by itself: every edit of a draft is decided on as an edit of the file itself."""
        return ()

    async def run(self, args: KrakenArgs, ctx: Context) -> Reworked:
        if not args.task.strip():
            raise BadArguments(f"{ctx.param('task')}: is empty; say what is to be changed.")
        if not subagents(ctx).can_run:
            raise ToolFailure(
                "Many files cannot be changed at once here: this session has no model for subagents. Edit them one by "
                "one, with the other tools.",
                code="no-model",
            )
        before: tuple[Worked, ...] = ()
        if args.files:
            shares = await named(args.files, ctx)
        else:
            plan = await worked(_planning(args.task), ctx)
            if plan.reason != "end" or plan.status != "completed":
                raise ToolFailure(
                    f"The plan was not finished, so nothing was changed: {unfinished(plan)}", code="bad-plan"
                )
            before, shares = (plan,), planned(plan.text, ctx)
        jail, threads = ctx.need(Jail), ctx.need(Threads)
        if not shares:
            return _reworked((), {}, before)
        ctx.progress(_told(shares, jail))
        drafts = Drafts(jail, os.path.join(ctx.need(Journal).folder, "drafts"))
        try:
            await threads.finish(drafts.begin, [share.path for share in shares])
            works = await self._work(args.task, shares, drafts, ctx)
            _check_planning(ctx)
            return await threads.finish(_commit, drafts, works, before, ctx, ctx.need(Writer))
        finally:
            # Here and now, whatever was cancelled: all who worked on them have ended.
            drafts.close()

    async def _work(self, task: str, shares: Sequence[Share], drafts: Drafts, ctx: Context) -> dict[str, Worked]:
        """All parts. The first that is not done stops the others, for nothing would be written."""
        jail = ctx.need(Jail)
        every = "\n".join(_row(share, jail) for share in shares)
        works: dict[str, Worked] = {}

        async def part(share: Share) -> None:
            works[share.path] = await _part(task, share, every, drafts, ctx)
            ctx.progress(f"{len(works)} of {len(shares)} files done: {jail.shown(share.path)}")

        ends = await side_by_side(shares, part, most=ctx.need(Settings).loop.children)
        failures = {
            share.path: str(end) for share, end in zip(shares, ends, strict=True) if isinstance(end, FerruleError)
        }
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, FerruleError):
                raise end
        if len(works) < len(shares):
            raise _nothing_written(failures, len(shares), len(works), jail)
        return {share.path: works[share.path] for share in shares}


def _check_planning(ctx: Context) -> None:
    """Raise where the session has begun to plan since the drafts were let be written."""
    try:
        planning = ctx.need(Planning)
    except TypeError:  # no session, no plan mode
        return
    if planning.is_held:
        raise Denied(
            "Plan mode was turned on meanwhile, so nothing was written, and the drafts were dropped.",
            code="denied-by-rule",
        )


async def _part(task: str, share: Share, every: str, drafts: Drafts, ctx: Context) -> Worked:
    shown = ctx.need(Jail).shown(share.path)
    is_new = drafts.original(share.path) is None
    prompt = "\n\n".join(
        (
            f"The whole task:\n\n{task.strip()}",
            f"All files of it, each with a helper of its own:\n\n{every}",
            f"Your file is {share.path}" + " (it is not there yet: make it)." * is_new + "." * (not is_new),
            f"What is to change in it:\n\n{share.change}" if share.change else "Do in it what the task asks for.",
        )
    )
    agent = specialist("kraken", EDITING)
    job = Job(agent, prompt, description=shown, services=drafts.services(share.path))
    done = await subagents(ctx).work(job, ctx)
    if done.status != "completed" or done.reason != "end":
        raise ToolFailure(unfinished(done))
    if done.text.lstrip().startswith(_CANNOT):
        raise ToolFailure(_short(done.text.lstrip().removeprefix(_CANNOT)))
    # What happened counts, whatever was said about it.
    if done.failed_write:
        raise ToolFailure(f"its last edit failed: {_short(done.failed_write)}")
    if share.change and share.path not in await ctx.need(Threads).run(drafts.changed):
        raise ToolFailure(f"it was to be changed, and was not: {_short(done.text)}")
    return done


def _short(text: str) -> str:
    return " ".join(text.split())[:_SUMMARY_CHARS]


def _nothing_written(failures: Mapping[str, str], total: int, done: int, jail: Jail) -> ToolFailure:
    rows = "".join(f"\n- {jail.shown(path)}: {why}" for path, why in failures.items())
    stopped = total - done - len(failures)
    more = f", and {stopped} more were stopped for that" * bool(stopped)
    return ToolFailure(
        f"Nothing was written, and the drafts were dropped: {len(failures)} of {total} files could not be done{more}."
        f"{rows}",
        code="part-failed",
        path=next(iter(failures), None),
        count=len(failures),
    )


def _commit(
    drafts: Drafts, works: Mapping[str, Worked], before: tuple[Worked, ...], ctx: Context, writer: Writer
) -> Reworked:
    """On a thread that is waited for: what was begun is written whole, and told, also when the call is cancelled."""
    changed = drafts.changed()
    entry_id = ""
    files = tuple(_file(path, drafts.original(path), changed.get(path), works[path].text, ctx) for path in works)
    if changed:
        written = drafts.commit(writer, changed, call_id=ctx.call_id)
        entry_id = written.entry_id
        ctx.need(Ledger).follow(written.after)
        for path in changed:
            ctx.track(path, (written.before[path], written.after[path]))
        for note in written.notes:
            ctx.note(note)
    return _reworked(files, works, before)._replace(entry_id=entry_id)


def _reworked(files: tuple[ReworkedFile, ...], works: Mapping[str, Worked], before: tuple[Worked, ...]) -> Reworked:
    every = (*before, *works.values())
    tokens = sum(one.input_tokens + one.output_tokens for one in every)
    return Reworked(files, "", sum(one.turns for one in every), tokens)


def _file(path: str, before: bytes | None, after: bytes | None, said: str, ctx: Context) -> ReworkedFile:
    from ferrule.support.diff import changes  # only a change pays for it

    summary = _short(said)
    shown = ctx.need(Jail).shown(path)
    if after is None:
        return ReworkedFile(shown, "unchanged", 0, 0, summary)
    old, new = ((raw or b"").decode(errors="replace").splitlines() for raw in (before, after))
    found = changes(old, new)
    added, removed = sum(one.new_end - one.new_start for one in found), sum(one.end - one.start for one in found)
    return ReworkedFile(shown, "added" if before is None else "changed", added, removed, summary)


def _planning(task: str) -> Job:
    agent = specialist("kraken-plan", READING, kind="kraken")
    return Job(agent, f"{task.strip()}\n\nAt most {MOST_FILES} files.", description="which files to change")


def _row(share: Share, jail: Jail) -> str:
    return f"- {jail.shown(share.path)}" + f": {' '.join(share.change.split())}" * bool(share.change)


def _told(shares: Sequence[Share], jail: Jail) -> str:
    names = ", ".join(jail.shown(share.path) for share in shares[:_SHOWN_FILES])
    more = f" and {len(shares) - _SHOWN_FILES} more" * (len(shares) > _SHOWN_FILES)
    return f"{len(shares)} file{'s' * (len(shares) != 1)} to change: {names}{more}"
