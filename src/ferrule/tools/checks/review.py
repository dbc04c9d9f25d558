"""Reviews: what the team has written down to look for, looked for by one subagent each, which only reads."""

import asyncio
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ferrule.core.access import within
from ferrule.core.errors import ToolFailure
from ferrule.core.subagents import Job, Subagent, subagents
from ferrule.core.tool import Context
from ferrule.files.jail import Jail
from ferrule.settings.schema import Settings
from ferrule.tools.checks.changes import ChangedFile, ChangedFiles, changes
from ferrule.tools.checks.choice import Review, title
from ferrule.tools.checks.outcomes import Check, Checked
from ferrule.tools.checks.run import Board
from ferrule.tools.lsp.outcomes import Problem, Severity

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
