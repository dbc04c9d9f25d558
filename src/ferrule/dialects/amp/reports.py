"""Say in Amp's words how checks, problems of language servers and searches of threads ended."""

import os
from collections.abc import Sequence

from ferrule.core.access import within
from ferrule.tools.checks.outcomes import Checked, CheckRun, CheckStatus
from ferrule.tools.lsp.outcomes import Problem, Problems
from ferrule.tools.threads.outcomes import ThreadFound, ThreadRead, ThreadsFound

_SIGNS: dict[CheckStatus, str] = {"passed": "✓", "failed": "✗", "stopped": "!", "missing": "?", "skipped": "-"}
_NAMED = 60


def check_report(run: CheckRun) -> str:
    """A line that sums up, a row for each check, and below what those say that did not pass."""
    if not run.checks:
        return explain_no_checks(run)
    return "\n".join([summarize_run(run), *map(row, run.checks), *(f"\n{block}" for block in blocks(run))])


def blocks(run: CheckRun) -> list[str]:
    """What the checks say beside their rows."""
    return [block for block in (_format_check(one, run.root) for one in run.checks) if block]


def summarize_run(run: CheckRun) -> str:
    """`5 checks in 15.2 s: 3 passed, 1 failed, 1 missing.`"""
    counts = [(status, sum(one.status == status for one in run.checks)) for status in _SIGNS]
    said = ", ".join(f"{count} {status}" for status, count in counts if count)
    return f"{len(run.checks)} check{'s' * (len(run.checks) != 1)} in {run.seconds:.1f} s: {said}."


def row(one: Checked) -> str:
    """`✗ pytest  12.0 s  3 problems`"""
    parts = [f"{_SIGNS[one.status]} {one.check.name}"]
    if one.status not in {"missing", "skipped"}:
        parts.append(f"{one.seconds:.1f} s")
    if one.status == "failed":
        count = one.total_problems
        parts.append(f"{count} problem{'s' * (count != 1)}" if count else f"exit code {one.exit_code}")
    if one.why:
        parts.append(one.why if one.status in {"passed", "failed"} else f"{one.status}: {one.why}")
    return "  ".join(parts)


def format_problem(problem: Problem, root: str) -> str:
    """`path:line: message`, with the path from the workspace."""
    path = problem.path
    if root and path.startswith(root.rstrip(os.sep) + os.sep):
        path = os.path.relpath(path, root)
    place = f"{path}:{problem.line}: " if problem.line else f"{path}: " if path else ""
    code = f" [{problem.code}]" if problem.code and problem.code not in problem.message else ""
    return f"{place}{problem.message}{code}"


def _format_check(one: Checked, root: str) -> str:
    """What a check says beside its row; nothing where that is all."""
    if not one.problems and not one.output:
        return ""
    ran = f" (`{one.check.command}`)" if one.check.command else ""
    lines = [f"{one.check.name}{ran}:", *(format_problem(problem, root) for problem in one.problems)]
    if one.total_problems > len(one.problems):
        lines.append(f"… and {one.total_problems - len(one.problems)} more")
    if one.output:
        lines.append(one.output)
    return "\n".join(lines)


def explain_no_checks(run: CheckRun) -> str:
    """Why there was nothing to run, to a model."""
    if run.known:
        return explain_none_run(run)
    if run.covering:
        return f"{explain_covering_checks(run.covering)} Leave `path` out to run them."
    return (
        f"No checks were found{describe_places(run.looked_in)}. Run them with Bash, if you know how; the user can name "
        "them in the setting checks.commands."
    )


def explain_none_run(run: CheckRun) -> str:
    """Why none of the checks that there are was run."""
    there = ", ".join(run.known[:_NAMED]) + f" and {len(run.known) - _NAMED} more" * (len(run.known) > _NAMED)
    if run.why_unreviewed:
        return f"Nothing was run. There are reviews, and they were not done: {run.why_unreviewed}."
    return f"Nothing was run: there is no such check that runs by default. The checks here are: {there}."


def explain_covering_checks(names: Sequence[str]) -> str:
    """Why a folder has no checks of its own, though there are some."""
    there = ", ".join(names[:_NAMED]) + f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
    return f"No checks were found in this folder; those of the folder above are about it too: {there}."


def describe_places(files: Sequence[str]) -> str:
    """Where was looked, as a part of a sentence."""
    some = ", ".join(files[:_NAMED]) + f" and {len(files) - _NAMED} more" * (len(files) > _NAMED)
    return f" in {some}" if some else ": nothing here speaks of any (pyproject.toml, package.json, Makefile, …)"


def render_problems(outcome: Problems) -> str:
    """A line for each, errors first; hints only where there is nothing else."""
    worse = [problem for problem in outcome.problems if problem.severity != "hint"]
    shown = worse or list(outcome.problems)
    if not shown:
        files = "" if outcome.files == 1 else f" ({outcome.files} files)"
        return f"No problems were found in {outcome.path}{files}."
    rows = [_row(problem, outcome.folder) for problem in shown]
    hints = len(outcome.problems) - len(shown)
    more = outcome.total - len(outcome.problems)
    if more > 0:
        rows.append(f"... and {more} more")
    elif hints:
        rows.append(f"({hints} hint{'s' * (hints != 1)} left out)")
    return "\n".join(rows)


def _row(problem: Problem, folder: str) -> str:
    path = problem.path
    if folder and path != folder and within(path, folder):
        path = path[len(folder) :].lstrip("/\\")
    place = ":".join(str(part) for part in (path, problem.line, problem.character) if part)
    who = " ".join(part for part in (problem.source, problem.code) if part)
    return f"{place}: {problem.severity}: {problem.message}" + f" [{who}]" * bool(who)


_NONE = "No threads found. Use fewer or other words; only threads of this workspace are looked at."


def render_threads(outcome: ThreadsFound) -> str:
    """A block for each thread."""
    if not outcome.found:
        return _NONE
    left = outcome.total - len(outcome.found)
    more = [f"{left} more; give a larger limit, or more words."] if left else []
    return "\n\n".join([*map(_block, outcome.found), *more])


def _block(one: ThreadFound) -> str:
    rows = [f"{one.id}: {one.title}" if one.title else one.id]
    rows.append(f"{one.when}, {_count_noun(one.turns, 'turn')}" + (f", in {one.workspace}" if one.workspace else ""))
    if one.excerpt:
        rows.append(one.excerpt)
    if one.files:
        rows.append(f"files: {', '.join(one.files)}" + (f" and {one.more_files} more" if one.more_files else ""))
    return "\n".join(rows)


def render_thread(outcome: ThreadRead) -> str:
    """The messages below a line about them; at the end, how to get what was left out."""
    about = [outcome.when, _count_noun(outcome.messages, "message"), outcome.workspace, outcome.model]
    head = f"{outcome.id}: {outcome.title}\n{', '.join(filter(None, about))}"
    blocks = [head, outcome.text or "It has no messages."]
    if outcome.left_out:
        first = outcome.left_out.partition(",")[0]
        blocks.append(
            f"Left out as less relevant: messages {outcome.left_out}. To read some of them, name them in the goal, "
            f'for example "messages {first}".'
        )
    return "\n\n".join(blocks)


def _count_noun(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
