"""Run the project's own checks: type checkers, linters, tests, and reviews of what was changed by subagents.

Several checks run at once, but never two that need the same thing. Reviews run beside them.
"""

import asyncio
import contextlib
import json
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ferrule.core.access import Access, within
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.services import Job, Subagent, subagents
from ferrule.core.tool import RUNS, Args, Context, Tool
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.git.environment import calm_git_environment, top_of
from ferrule.settings import Settings
from ferrule.system import Threads
from ferrule.system.environment import quiet_environment
from ferrule.system.folder import is_regular, read_all
from ferrule.tools.checks import Check, Checked, CheckRun
from ferrule.tools.checks.choice import Ahead, CheckSelection, Review, choose, title
from ferrule.tools.checks.manifests import ALONE
from ferrule.tools.checks.run import Board, CheckOutput, is_missing, report_missing, run_check
from ferrule.tools.lsp import Problem, Severity
from ferrule.tools.shell.command import begin

UNCOMMITTED = "uncommitted changes"
_DIFF = "git --no-pager diff --no-color --no-ext-diff --no-textconv --ignore-submodules=dirty --relative {} --"
_UNTRACKED = "git ls-files --others --exclude-standard"
_REVISION = r"[\w@](?:[\w./~^@!+#=%,-]|[@^]\{[^{}\n]{0,200}\})*"
_REVISIONS = rf"{_REVISION}(?:\.\.\.?(?:{_REVISION})?)?|\.\.\.?{_REVISION}"
_SETTINGS = (("core.quotePath", "false"), ("diff.noprefix", "false"), ("diff.mnemonicPrefix", "false"))
"""What it says is read, whatever the user likes to see."""
_UNKNOWN = (
    "bad revision",
    "unknown revision",
    "ambiguous argument",
    "Invalid symmetric",
    "no merge base",
    "bad object",
)
"""What git says of a revision that it does not know."""
_BEFORE = (r"(?m)^--- a/(.*?)\t?$", r"(?m)^(?:rename|copy) from (.*)$")
_NOW = (
    r"(?m)^\+\+\+ b/(.*?)\t?$",
    r"(?m)^--- a/(.*?)\t?$",
    r"(?m)^rename to (.*)$",
    r"\Adiff --git a/(.*) b/\1$",
)
_MOST_CHARS = 2_000_000
_SECONDS = 60.0
_MOST_LOOKED_BYTES = 1 << 20
"""Of a changed file, when it is looked at for what a diff does not show."""


class ChangedFile(NamedTuple):
    """One file that was changed."""

    path: str
    """Absolute."""
    diff: str = ""
    """Empty for a file that git does not know yet, and for one that would not be seen whole in it."""


class ChangedFiles(NamedTuple):
    """All of them; or why they are not known."""

    files: tuple[ChangedFile, ...] = ()
    why_unknown: str = ""

    def within(self, folder: str, *without: str) -> tuple[ChangedFile, ...]:
        """Those in a folder, but for some folders below it."""
        inside = [one for one in self.files if within(one.path, folder)]
        return tuple(one for one in inside if not any(within(one.path, inner) for inner in without))


def lines(about: str) -> tuple[str, ...]:
    """The command lines that tell of the changes, and of the files that are new where all that is uncommitted counts.

    Raises `BadArguments` for what can be no revision.
    """
    if about == UNCOMMITTED:
        return _DIFF.format("HEAD"), _UNTRACKED
    if not re.fullmatch(_REVISIONS, about):
        raise _unknown(about)
    return (_DIFF.format(shlex.quote(about)),)


def _unknown(about: str) -> BadArguments:
    return BadArguments(
        f"git knows no revision {about[:100]!r}. Name one, or a range such as main...HEAD; without it the uncommitted "
        "changes are reviewed."
    )


def command_accesses(about: str, ctx: Context) -> list[Access]:
    """The commands as accesses; none where there is no repository."""
    folder = ctx.need(Jail).folder
    asked = lines(about)
    if not top_of(folder) and about != UNCOMMITTED:
        raise BadArguments(f"{folder} is in no git repository, so there is no {about[:100]!r} to review.")
    return [Access.command(line, folder) for line in asked] if top_of(folder) else []


async def changes(about: str, ctx: Context) -> ChangedFiles:
    """What was changed in the workspace. Raises `BadArguments` where git does not know the revisions."""
    folder = ctx.need(Jail).folder
    if not top_of(folder):
        return ChangedFiles(why_unknown="The folder is in no git repository.")
    let_in = {(access.key, access.folder) for access in ctx.touches if access.kind == "command"}
    diff, *untracked = lines(about)
    if not {(line, folder) for line in (diff, *untracked)} <= let_in:
        return ChangedFiles(why_unknown="Git was not let look.")
    try:
        env = {"LC_ALL": "C", **await calm_git_environment([folder], ctx, quiet_environment(os.environ), _SETTINGS)}
    except ToolFailure as failure:
        return ChangedFiles(why_unknown=failure.message)
    text, why = await _run_git(diff, folder, env, ctx)
    new = "".join([(await _run_git(line, folder, env, ctx))[0] for line in untracked])
    if why and about != UNCOMMITTED and any(word in why for word in _UNKNOWN):
        raise _unknown(about)
    if why:
        return ChangedFiles(why_unknown=why)
    return await ctx.need(Threads).run(_changes, text, new, ctx.need(Jail), ctx.need(Guard))


async def _run_git(line: str, folder: str, env: Mapping[str, str], ctx: Context) -> tuple[str, str]:
    """What git answers, and why it does not."""
    try:
        begun = await begin(
            line,
            ctx,
            cwd=folder,
            head_chars=_MOST_CHARS,
            tail_chars=0,
            apart=True,
            env=env,
            tell=lambda _: None,
        )
    except ToolFailure as failure:
        return "", failure.message
    try:
        why = await begun.running.wait(_SECONDS)
        if why != "ended":
            await begun.running.stop()
    except BaseException:
        await begun.abandon()
        raise
    finally:
        if begun.log is not None and os.path.lexists(begun.log):
            os.unlink(begun.log)
    begun.close()
    finished = begun.running.result()
    if why != "ended":
        return "", f"Git took more than {_SECONDS:g} seconds."
    if finished.exit_code:
        last = finished.errors.strip().splitlines()[-1:] or ["no reason given"]
        return "", f"Git does not tell what was changed: {last[0][:200]}"
    return finished.text, ""


def _changes(text: str, new: str, jail: Jail, guard: Guard) -> ChangedFiles:
    found: dict[str, ChangedFile] = {}
    folder = jail.folder
    for part in re.split(r"(?m)^(?=diff --git )", text):
        if (named := _name(part)) is not None:
            path = os.path.join(folder, named)
            # What it was called before counts as well: lines of it are shown.
            before = os.path.join(folder, _name(part, _BEFORE) or named)
            if _may_be_seen(before, guard):
                found[path] = ChangedFile(path, "" if _hides(path, jail) else part)
    for name in new.splitlines():
        if name and not name.startswith('"'):  # a name that git has to quote is nobody's source
            path = os.path.join(folder, name)
            found.setdefault(path, ChangedFile(path))
    return ChangedFiles(tuple(one for one in found.values() if _may_be_seen(one.path, guard)))


def _may_be_seen(path: str, guard: Guard) -> bool:
    """Is it no secret? What no tool reads to a model is not shown to a reviewer either, as it is now or as it was."""
    try:
        guard.check_read(path)
    except ToolFailure:
        return False
    return True


def _hides(path: str, jail: Jail) -> bool:
    """Has the file returns within its lines? To many languages they end a line, and on a screen they draw over it."""
    try:
        with jail.place(jail.real(path)).folder() as folder:
            descriptor = folder.open(os.path.basename(path))
            try:
                raw = read_all(descriptor, _MOST_LOOKED_BYTES) if is_regular(descriptor) else b""
            finally:
                os.close(descriptor)
    except (OSError, ToolFailure):  # it is gone, which is a change as well
        return False
    return re.search(rb"\r(?!\n|\Z)", raw) is not None


def _name(part: str, patterns: Sequence[str] = _NOW) -> str | None:
    """The file that a part of a diff is about."""
    for pattern in patterns:
        found = re.search(pattern, part.partition("\n@@")[0] if "^" in pattern else part.partition("\n")[0])
        if found is not None:
            return found[1]
    return None


READING = ("read", "grep", "glob", "list_dir", "lsp", "diagnostics")
MOST_ISSUES = 50
_DIFF_CHARS = 60_000
_LISTED = 200
_MESSAGE_CHARS = 600
_ANSWER_CHARS = 200_000
_NOTE_CHARS = 2_000
_SEVERITIES: Mapping[str, Severity] = {"critical": "error", "high": "error", "medium": "warning", "low": "hint"}
_LOW = "low"
_SAID = ("problem", "message", "text", "description", "title")
_PLACES = ("file", "path", "filename", "file_path")


def as_check(review: Review, root: str) -> Check:
    """A review among the other checks."""
    source = os.path.relpath(review.path, root) if within(review.path, root) else review.path
    return Check(title(review, root), "review", "", review.scope, source)


async def review_all(
    reviews: Sequence[Review], about: str, changed: ChangedFiles | None, ctx: Context, board: Board
) -> list[Checked]:
    """All of them, several at once; in their order. `changed` is what is known already of what they are about."""
    changed = await changes(about, ctx) if changed is None else changed
    slots = asyncio.Semaphore(ctx.need(Settings).checks.parallel)
    root = ctx.need(Jail).folder

    async def one(review: Review) -> Checked:
        async with slots:
            board.began(as_check(review, root))
            checked = await run_review(review, changed, about, ctx)
        board.ended(checked)
        return checked

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(review)) for review in reviews]
    return [task.result() for task in tasks]


async def run_review(review: Review, changed: ChangedFiles, about: str, ctx: Context) -> Checked:
    """Have it done. What goes wrong with it is its own end and nobody else's."""
    root = ctx.need(Jail).folder
    check, began = as_check(review, root), time.monotonic()
    touched = changed.within(review.scope, *review.without)
    if not touched and not changed.why_unknown:
        return Checked(check, "skipped", why=f"Nothing was changed that it is about ({about}).")
    runs = subagents(ctx)
    job = Job(
        _agent(review, ctx), _prompt(review, touched, changed, about, root), f"review: {review.name}", beside=True
    )
    try:
        done = await runs.work(job, ctx)
    except ToolFailure as failure:
        return Checked(check, "stopped", time.monotonic() - began, why=failure.message)
    seconds = time.monotonic() - began
    issues = _issues(done.text[-_ANSWER_CHARS:])
    if issues is None or done.status != "completed":
        why = done.why or "Its answer is not in the form that was asked for, and says:"
        return Checked(check, "stopped", seconds, output=done.text.strip()[:_NOTE_CHARS], why=why)
    found = [one for one in (_problem(issue, review, root) for issue in issues) if one is not None]
    shown = [problem for severity, problem in found if severity != _LOW]
    hidden, unread = len(found) - len(shown), len(issues) - len(found)
    if unread and not shown:
        # What nobody can read may be anything: it has not passed.
        why = f"{_count_noun(unread)} of its answer could not be read; it says:"
        return Checked(check, "stopped", seconds, output=done.text.strip()[:_NOTE_CHARS], why=why)
    why = f"{_count_noun(hidden)} of low severity {'are' if hidden != 1 else 'is'} not shown." * bool(hidden)
    why += " " * bool(why and unread) + f"{_count_noun(unread)} could not be read." * bool(unread)
    return Checked(
        check,
        "failed" if shown else "passed",
        seconds,
        problems=tuple(shown[:MOST_ISSUES]),
        total_problems=len(shown),
        why=why,
    )


def _count_noun(findings: int) -> str:
    return f"{findings} finding{'s' * (findings != 1)}"


def _agent(review: Review, ctx: Context) -> Subagent:
    """It gets those of the reading tools that its file gives it; nothing else whatever the file says."""
    with open(os.path.join(os.path.dirname(__file__), "review.md"), encoding="utf-8") as file:
        system = file.read()
    agent = Subagent(f"review-{_plain(review.name)}", "", review.tools, system, role="review", mode="plan")
    if review.tools is None:
        return agent._replace(tools=READING)
    barred = subagents(ctx).beyond(agent, READING, ctx)
    return agent._replace(tools=tuple(name for name in READING if name not in barred))


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "check"


def _prompt(review: Review, touched: tuple[ChangedFile, ...], changed: ChangedFiles, about: str, root: str) -> str:
    where = os.path.relpath(review.scope, root)
    within_it = "" if where == "." else f" It is about files in {where} and below, and no others."
    usual = f"A finding that says nothing of its severity counts as {review.severity}."
    parts = [
        f"The review is called {review.name!r}.{within_it} {usual} What to look for:",
        review.body.strip(),
        f"What is reviewed: {about}.",
    ]
    if changed.why_unknown:
        parts.append(f"{changed.why_unknown} Find the files yourself, and review them as they are now.")
    else:
        parts += _render_changes(touched, root)
    return "\n\n".join(parts)


def _render_changes(touched: tuple[ChangedFile, ...], root: str) -> Iterator[str]:
    room, left = _DIFF_CHARS, []
    diffs = []
    for change in touched:
        if change.diff and len(change.diff) <= room:
            diffs.append(change.diff.rstrip("\n"))
            room -= len(change.diff)
        else:
            left.append(os.path.relpath(change.path, root))
    if diffs:
        yield "The changes:\n\n" + "\n".join(diffs)
    if left:
        more = f"\n… and {len(left) - _LISTED} more" * (len(left) > _LISTED)
        yield (
            "Files that are new, or changed too much to be shown here; read them:\n\n"
            + "\n".join(left[:_LISTED])
            + more
        )


def _issues(text: str) -> list[Any] | None:
    """The findings in an answer: in a fence, alone, or somewhere in it. None where there is no such thing."""
    fenced = re.findall(r"```(?:json)?[^\S\n]*\n(.*?)```", text, re.DOTALL)
    braced = text[text.find("{") : text.rfind("}") + 1]
    for candidate in (*reversed(fenced), text, braced):
        try:
            said = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        issues = said.get("issues") if isinstance(said, dict) else said
        if isinstance(issues, list):
            return issues[: 10 * MOST_ISSUES]
    return None


def _problem(issue: Any, review: Review, root: str) -> tuple[str, Problem] | None:
    """One finding; nothing where it says nothing."""
    if not isinstance(issue, dict) or not (problem := _first(issue, _SAID)):
        return None
    said = str(issue.get("severity", "")).strip().lower()
    severity = said if said in _SEVERITIES else review.severity
    why, fix = _words(issue.get("why")), _words(issue.get("fix"))
    message = f"[{severity}] {problem}" + f" {why}" * bool(why) + f" Fix: {fix}" * bool(fix)
    line = issue.get("line")
    line = int(line) if isinstance(line, str) and re.fullmatch(r"\d{1,9}", line) else line
    number = line if isinstance(line, int) and not isinstance(line, bool) and 0 < line < 1 << 31 else 0
    found = Problem(
        _file(_first(issue, _PLACES), root), number, message[:_MESSAGE_CHARS], 0, _SEVERITIES[severity], review.name
    )
    return severity, found


def _first(issue: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first of these that the finding has: models call things by other names than those that they were given."""
    return next((words for key in keys if (words := _words(issue.get(key)))), "")


def _words(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _file(name: str, root: str) -> str:
    """Absolute for what lies in the workspace; else as it was said."""
    path = os.path.normpath(os.path.join(root, name)) if name and "\0" not in name else root
    return path if within(path, root) and path != root else name


_TICK_SECONDS = 1.0
_PIECE_BYTES = 1 << 20
_CHANGED = (
    "It was not run: the command is not one that the call was let in with, for the files that it comes from were "
    "changed meanwhile. Run the checks again."
)
_Tasks = Sequence["asyncio.Task[list[Checked]]"]


class Round:
    """Runs what was chosen. Cancelling it ends all of it."""

    def __init__(self, ctx: Context, board: Board) -> None:
        self._ctx = ctx
        self._board = board
        self._slots = asyncio.Semaphore(ctx.need(Settings).checks.parallel)
        self._shared: dict[str, asyncio.Lock] = {}
        self._let_in = {(access.key, access.folder) for access in ctx.touches if access.kind == "command"}
        self._ended: list[CheckOutput] = []

    async def run(self, chosen: CheckSelection, about: str, changed: ChangedFiles | None = None) -> list[Checked]:
        """In the order in which they were found, whatever order they ended in."""
        beside = [asyncio.create_task(self._one(check)) for check in chosen.checks if check.shares != ALONE]
        tasks = list(beside)
        # What writes to the files of the project runs by itself, when the others have seen them as they are.
        if alone := [check for check in chosen.checks if check.shares == ALONE]:
            tasks.append(asyncio.create_task(self._after(alone, beside)))
        reviews = [asyncio.create_task(self._review(chosen, about, changed))] if chosen.reviews else []
        try:
            await self._until_done([*tasks, *reviews])
            found = {one.check: one for task in tasks for one in task.result()}
            checked = [found[check] for check in chosen.checks]
            self._ended.sort(key=lambda ended: checked.index(ended.checked))
            await self._keep()
        finally:
            for ended in self._ended:
                with contextlib.suppress(OSError):
                    os.unlink(ended.log)
        return [*checked, *(one for task in reviews for one in task.result())]

    async def _until_done(self, tasks: _Tasks) -> None:
        """Wait for all of them; however this ends, none of them is left."""
        pending = set(tasks)
        try:
            while pending:
                done, pending = await asyncio.wait(pending, timeout=_TICK_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
                failed = [task for task in done if task.exception() is not None]
                for task in failed[:1]:
                    task.result()
                if pending:
                    self._board.tell()
        finally:
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)

    async def _after(self, checks: Sequence[Check], others: _Tasks) -> list[Checked]:
        if others:
            await asyncio.wait(others)
        return [one for check in checks for one in await self._one(check)]

    async def _one(self, check: Check) -> list[Checked]:
        checked = await self._run_check(check)
        self._board.ended(checked)
        return [checked]

    async def _run_check(self, check: Check) -> Checked:
        if is_missing(check, self._ctx):
            return report_missing(check)
        if (check.command, check.folder) not in self._let_in:
            return Checked(check, "skipped", why=_CHANGED)
        lock = self._shared.setdefault(check.shares, asyncio.Lock()) if check.shares else contextlib.nullcontext()
        async with lock, self._slots:  # in this order: whoever waits for another check takes no slot
            self._board.began(check)
            ended = await run_check(check, self._ctx)
            self._ended.append(ended)
        return ended.checked

    async def _review(self, chosen: CheckSelection, about: str, changed: ChangedFiles | None) -> list[Checked]:
        return await review_all(chosen.reviews, about, changed, self._ctx, self._board)

    async def _keep(self) -> None:
        """Keep the whole outputs together, under headings, where something is wrong and not all that was said of it is
        in the outcome."""
        printed = [ended for ended in self._ended if ended.log]
        if all(ended.is_whole or ended.checked.status == "passed" for ended in printed):
            return
        path = self._ctx.new_log()
        if path is None:
            return
        try:
            size = await self._ctx.need(Threads).run(_join_logs, path, printed)
        except OSError as error:
            self._ctx.drop_log()
            self._ctx.note(f"The whole outputs could not be kept: {error.strerror}.")
            return
        self._ctx.keep_log(size)


def _join_logs(path: str, printed: Sequence[CheckOutput]) -> int:
    """Write all logs into one. How many bytes it has."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as whole:
        for checked, log, _ in printed:
            end = f"exit code {checked.exit_code}, {checked.seconds:.1f} s"
            heading = f"==> {checked.check.name}: {checked.check.command} (in {checked.check.folder}; {end}) <==\n"
            whole.write(heading.encode(errors="backslashreplace"))
            with open(log, "rb") as part:
                while piece := part.read(_PIECE_BYTES):
                    whole.write(piece)
            whole.write(b"\n\n")
        return whole.tell()


class CheckArgs(Args, frozen=True, kw_only=True):
    only: tuple[str, ...] = ()
    """Names of checks, globs of names, or kinds; all that run by default where nothing is said."""
    path: str = ""
    """A folder: only the checks below it."""
    review: bool | None = None
    """Are the reviews done? As the settings say where nothing is said."""
    diff: str = ""
    """What the reviews are about: a revision or a range of them."""


class RunChecks(Tool[CheckArgs, CheckRun]):
    """Every command is declared, and judged as if the shell had been asked for it; nothing else of it runs."""

    name = "check"
    args = CheckArgs
    title = "Run the project's checks"
    hints = RUNS
    timed = False
    extras = ("diff",)

    def access(self, args: CheckArgs, ctx: Context) -> tuple[Access, ...]:
        """All of the folder is read besides: nobody writes there before the reviews have read it."""
        chosen = choose(args.only, args.path, args.review, ctx, ctx.need(Ahead).discovery_for(ctx.need(Jail)))
        there = [check for check in chosen.checks if not is_missing(check, ctx)]
        lines = [_access(check) for check in there]
        # A rule that denies one of them is told with the name of its check.
        ctx.spelled |= {f"check\0{check.folder}\0{check.command}": check.name for check in there}
        lines += command_accesses(args.diff or UNCOMMITTED, ctx) if chosen.reviews else []
        return (*dict.fromkeys(lines), Access.read(ctx.path(args.path or ".")))

    async def run(self, args: CheckArgs, ctx: Context) -> CheckRun:
        began = time.monotonic()
        ctx.need(Ahead).forget()
        chosen: CheckSelection = await ctx.need(Threads).run(choose, args.only, args.path, args.review, ctx)
        for warning in chosen.warnings:
            ctx.note(warning)
        board = Board(ctx, len(chosen.checks) + len(chosen.reviews))
        if chosen.why_unreviewed and board.total and args.review is not False:
            ctx.note(f"The reviews of this project were not done: {chosen.why_unreviewed}.")
        # Revisions that are none are wrong before anything runs.
        changed = await changes(args.diff, ctx) if args.diff and chosen.reviews else None
        checked = await Round(ctx, board).run(chosen, args.diff or UNCOMMITTED, changed) if board.total else ()
        run = CheckRun(tuple(checked), time.monotonic() - began, root=ctx.need(Jail).folder)
        if not checked:
            run = run._replace(looked_in=chosen.looked_in, known=chosen.known, why_unreviewed=chosen.why_unreviewed)
            run = run._replace(covering=chosen.covering)
        board.done(run)
        return run


def _access(check: Check) -> Access:
    return Access.command(check.command, check.folder)
