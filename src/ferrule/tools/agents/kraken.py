"""Change many files at once, with one subagent per file and one write for all drafts.

Every subagent works on a draft of its own. All drafts are written together or none is: the first part that fails
stops the others.

The caller names the files, or a planner answers with them; its answer is read strictly.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from ferrule.checkpoints.undo import Drafts
from ferrule.core.access import Access
from ferrule.core.errors import BadArguments, Denied, FerruleError, ToolFailure
from ferrule.core.services import Job, Planning, Worked, subagents
from ferrule.core.tool import CHANGES, Args, Context, Tool
from ferrule.files.diff import changes
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.files.journal import Journal
from ferrule.files.ledger import Ledger
from ferrule.files.transaction import Writer
from ferrule.settings import Settings
from ferrule.system import Threads
from ferrule.tools.agents import EDITING, READING, explain_unfinished, run_job, specialist
from ferrule.tools.search import Reworked, ReworkedFile, find_matches, start

P = TypeVar("P")
T = TypeVar("T")


async def run_concurrently(
    parts: Sequence[P], work: Callable[[P], Awaitable[T]], *, most: int
) -> list[T | BaseException]:
    """What came of each, in their order, so many at a time. The first that fails stops the others.

    It ends when all of them have, however often it is cancelled meanwhile.
    """
    slots = asyncio.Semaphore(most)

    async def one(part: P) -> T:
        async with slots:
            return await work(part)

    tasks = [asyncio.create_task(one(part)) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        was_cancelled = await _cancel_tasks([task for task in tasks if not task.done()])
    if was_cancelled:
        raise asyncio.CancelledError
    return [_end(task) for task in tasks]


async def _cancel_tasks(tasks: Sequence["asyncio.Task[Any]"]) -> bool:
    """Cancel them and wait until each has cleaned up. Did somebody cancel the wait?"""
    for task in tasks:
        task.cancel()
    was_cancelled, pending = False, set(tasks)
    while pending:
        try:
            _, pending = await asyncio.wait(pending)
        except asyncio.CancelledError:
            was_cancelled = True
    return was_cancelled


def _end(task: "asyncio.Task[T]") -> T | BaseException:
    if task.cancelled():
        return asyncio.CancelledError()
    return task.exception() or task.result()


MOST_FILES = 50
_MOST_MATCHES = 1_000
_WILD = frozenset("*?[{")
_FENCE = re.compile(r"^```json[ \t]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_ROW = re.compile(r"(?:[-*] )?`?([^`:\n]+?)`?: (\S.*)")
_SHOWN_CHARS = 400


class KrakenFile(NamedTuple):
    """One file of the set: its real path, and what is to become of it."""

    path: str
    change: str


class _ChangeRow(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    change: str


async def find_shares(files: Sequence[str], ctx: Context) -> list[KrakenFile]:
    """The files that a caller names, by path or by glob; a path may be that of a file that is still to be made."""
    shares = []
    guard = ctx.need(Guard)
    for name in files:
        if not _WILD.intersection(name) or os.path.lexists(ctx.path(name)):
            shares.append(KrakenFile(_check_path(name, ctx), ""))
            continue
        begin = start(name, ctx)
        ctx.need(Jail).place(begin.folder)
        root, names = await find_matches(begin, ctx)
        if len(names) > _MOST_MATCHES:
            raise _too_many(len(names))
        every = [ctx.path(os.path.join(root, one)) for one in names]
        open_ones = [path for path in every if not guard.secret(path) and not guard.is_protected(path)]
        if not every:
            raise BadArguments(f"{ctx.param('files')}: no file matches {name}.")
        if len(open_ones) < len(every):
            ctx.note(f"{len(every) - len(open_ones)} files that match {name} are secret or protected; they stay out.")
        shares += (KrakenFile(_check_path(path, ctx), "") for path in open_ones)
    return _merge_shares(shares)


def parse_plan(answer: str, ctx: Context) -> list[KrakenFile]:
    """The set that a planner has answered with: a JSON block, or else a `path: what to change` on every line."""
    blocks = _FENCE.findall(answer)
    text = blocks[-1] if blocks else answer.strip()
    if blocks or text.startswith("["):
        try:
            rows = msgspec.json.decode(text, type=list[_ChangeRow])
        except msgspec.DecodeError as error:
            raise _unread(f"its JSON is wrong ({error})", answer) from error
    else:
        rows = []
        for line in filter(None, map(str.strip, text.split("\n"))):
            match = _ROW.fullmatch(line)
            if match is None:
                raise _unread(f"this line names no file: {line[:100]}", answer)
            rows.append(_ChangeRow(*match.groups()))
    for row in rows:
        if not row.path.strip() or not row.change.strip():
            raise _unread("a file has no path, or nothing to change", answer)
    return _merge_shares(KrakenFile(_check_path(row.path.strip(), ctx), row.change.strip()) for row in rows)


def _merge_shares(shares: Iterable[KrakenFile]) -> list[KrakenFile]:
    """Each file once, with all that is to become of it."""
    changes: dict[str, list[str]] = {}
    for share in shares:
        changes.setdefault(share.path, []).append(share.change)
    if len(changes) > MOST_FILES:
        raise _too_many(len(changes))
    return [KrakenFile(path, "\n".join(dict.fromkeys(filter(None, said)))) for path, said in changes.items()]


def _check_path(name: str, ctx: Context) -> str:
    """The real path of a file that may be changed. What the rules say is decided when it is edited."""
    path = ctx.path(name)
    ctx.need(Jail).place(path)
    guard = ctx.need(Guard)
    for one in {path, ctx.need(Jail).lexical_path(name)}:
        guard.check_write(one)
    if os.path.isdir(path):
        raise ToolFailure(
            f"{path} is a folder. Name files, or a pattern such as {name}/**.", code="is-folder", path=path
        )
    return path


def _too_many(count: int) -> ToolFailure:
    return ToolFailure(
        f"These are {count:,} files, and {MOST_FILES} is the most at once; nothing was changed. Name fewer, and do the "
        "rest afterwards.",
        code="too-many-files",
        count=count,
    )


def _unread(why: str, answer: str) -> ToolFailure:
    said = " ".join(answer.split())[:_SHOWN_CHARS]
    return ToolFailure(
        f"The plan could not be read: {why}. Nothing was changed. Name the files yourself, or try again. "
        f"It said: {said}",
        code="bad-plan",
    )


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
    title = "Change many files at once"
    hints = CHANGES
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
            shares = await find_shares(args.files, ctx)
        else:
            plan = await run_job(_plan_job(args.task), ctx)
            if plan.reason != "end" or plan.status != "completed":
                raise ToolFailure(
                    f"The plan was not finished, so nothing was changed: {explain_unfinished(plan)}", code="bad-plan"
                )
            before, shares = (plan,), parse_plan(plan.text, ctx)
        jail, threads = ctx.need(Jail), ctx.need(Threads)
        if not shares:
            return _build_outcome((), {}, before)
        ctx.progress(_describe_shares(shares, jail))
        drafts = Drafts(jail, os.path.join(ctx.need(Journal).folder, "drafts"))
        try:
            await threads.finish(drafts.begin, [share.path for share in shares])
            works = await self._work(args.task, shares, drafts, ctx)
            _check_planning(ctx)
            return await threads.finish(_commit, drafts, works, before, ctx, ctx.need(Writer))
        finally:
            # Here and now, whatever was cancelled: all who worked on them have ended.
            drafts.close()

    async def _work(self, task: str, shares: Sequence[KrakenFile], drafts: Drafts, ctx: Context) -> dict[str, Worked]:
        """All parts. The first that is not done stops the others, for nothing would be written."""
        jail = ctx.need(Jail)
        every = "\n".join(_row(share, jail) for share in shares)
        works: dict[str, Worked] = {}

        async def part(share: KrakenFile) -> None:
            works[share.path] = await _part(task, share, every, drafts, ctx)
            ctx.progress(f"{len(works)} of {len(shares)} files done: {jail.display_path(share.path)}")

        ends = await run_concurrently(shares, part, most=ctx.need(Settings).loop.children)
        failures = {
            share.path: str(end) for share, end in zip(shares, ends, strict=True) if isinstance(end, FerruleError)
        }
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, FerruleError):
                raise end
        if len(works) < len(shares):
            raise _part_failure(failures, len(shares), len(works), jail)
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


async def _part(task: str, share: KrakenFile, every: str, drafts: Drafts, ctx: Context) -> Worked:
    shown = ctx.need(Jail).display_path(share.path)
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
        raise ToolFailure(explain_unfinished(done))
    if done.text.lstrip().startswith(_CANNOT):
        raise ToolFailure(_short(done.text.lstrip().removeprefix(_CANNOT)))
    # What happened counts, whatever was said about it.
    if done.failed_write:
        raise ToolFailure(f"its last edit failed: {_short(done.failed_write)}")
    if share.change and share.path not in await ctx.need(Threads).run(drafts.find_changed):
        raise ToolFailure(f"it was to be changed, and was not: {_short(done.text)}")
    return done


def _short(text: str) -> str:
    return " ".join(text.split())[:_SUMMARY_CHARS]


def _part_failure(failures: Mapping[str, str], total: int, done: int, jail: Jail) -> ToolFailure:
    rows = "".join(f"\n- {jail.display_path(path)}: {why}" for path, why in failures.items())
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
    changed = drafts.find_changed()
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
    return _build_outcome(files, works, before)._replace(entry_id=entry_id)


def _build_outcome(
    files: tuple[ReworkedFile, ...], works: Mapping[str, Worked], before: tuple[Worked, ...]
) -> Reworked:
    every = (*before, *works.values())
    tokens = sum(one.input_tokens + one.output_tokens for one in every)
    return Reworked(files, "", sum(one.turns for one in every), tokens)


def _file(path: str, before: bytes | None, after: bytes | None, said: str, ctx: Context) -> ReworkedFile:

    summary = _short(said)
    shown = ctx.need(Jail).display_path(path)
    if after is None:
        return ReworkedFile(shown, "unchanged", 0, 0, summary)
    old, new = ((raw or b"").decode(errors="replace").splitlines() for raw in (before, after))
    found = changes(old, new)
    added, removed = sum(one.new_end - one.new_start for one in found), sum(one.end - one.start for one in found)
    return ReworkedFile(shown, "added" if before is None else "changed", added, removed, summary)


def _plan_job(task: str) -> Job:
    agent = specialist("kraken-plan", READING, kind="kraken")
    return Job(agent, f"{task.strip()}\n\nAt most {MOST_FILES} files.", description="which files to change")


def _row(share: KrakenFile, jail: Jail) -> str:
    return f"- {jail.display_path(share.path)}" + f": {' '.join(share.change.split())}" * bool(share.change)


def _describe_shares(shares: Sequence[KrakenFile], jail: Jail) -> str:
    names = ", ".join(jail.display_path(share.path) for share in shares[:_SHOWN_FILES])
    more = f" and {len(shares) - _SHOWN_FILES} more" * (len(shares) > _SHOWN_FILES)
    return f"{len(shares)} file{'s' * (len(shares) != 1)} to change: {names}{more}"
