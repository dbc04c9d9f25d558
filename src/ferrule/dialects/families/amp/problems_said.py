"""How Amp reads what language servers complain about."""

from ferrule.core.access import within
from ferrule.core.problems import Problem, Problems


def listed(outcome: Problems) -> str:
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
