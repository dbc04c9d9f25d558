"""How Claude Code reads what came back."""

import re
from typing import TYPE_CHECKING, Any

from ferrule.core.outcomes import CellEdited, Created, Edited, Found, Hits, Matching, Planned, Ran
from ferrule.core.tasks import Left, TaskRead, TaskSeen, TaskStopped
from ferrule.dialects.says import about_skill, fenced, hits, matching, paths

if TYPE_CHECKING:
    from ferrule.core.elsewhere import SkillLoaded
    from ferrule.dialects.agent_says import Outcome

EMPTY = "The file exists, but it is empty."
PAST = "The file has only {total} lines; line {first} is past its end."

_ANSWERS = frozenset({"grep", "rg", "egrep", "fgrep", "find", "diff", "test", "["})
"""Programs, and `git diff` and `git grep`, for which an exit code of 1 is no failure."""
_PIECE = re.compile(r"""(?:[^\s;|&()<>'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+|\|\||&&|[<>]&|&>|[;|&()<>\n]""", re.DOTALL)
_BETWEEN = frozenset({";", "|", "||", "&", "\n"})
_ASSIGNMENT = re.compile(r"\w+=")


def written(outcome: Created) -> str:
    return f"File {'updated' if outcome.existed else 'created'} successfully at: {outcome.path}"


def edited(outcome: Edited | Created) -> str:
    if isinstance(outcome, Created):
        return written(outcome)
    return f"The file {outcome.path} has been updated.\n{fenced(outcome.diff, 'diff')}"


def cell(outcome: CellEdited) -> str:
    did = {"replace": "Updated", "insert": "Inserted", "delete": "Deleted"}[outcome.mode]
    return f"{did} cell {outcome.cell_id}" + ("" if outcome.mode == "delete" else f" with {outcome.source}")


def found(outcome: Found) -> str:
    return paths(
        outcome,
        none="No files found",
        more="(Results are truncated: {remaining} more. Use a narrower path or pattern.)",
    )


def matched(outcome: Hits | Matching) -> str:
    if isinstance(outcome, Hits):
        return hits(outcome, none="No entries at this offset" if outcome.total else "No matches found")
    if not outcome.files:
        return "No entries at this offset" if outcome.total else "No files found"
    listed = matching(outcome, none="")
    if outcome.lines:
        found = _many(outcome.lines, "match", "matches") if outcome.parts else _many(outcome.lines, "matching line")
        return f"{listed}\n\nFound {found} in {_many(outcome.total, 'file')}."
    return f"Found {_many(outcome.total, 'file')}\n{listed}"


def _many(count: int, thing: str, things: str = "") -> str:
    return f"{count} {thing if count == 1 else things or thing + 's'}"


def ran(outcome: Ran | Left) -> str:
    if isinstance(outcome, Left):
        return _left(outcome)
    output = outcome.output.strip("\n")
    if outcome.timed_out_after is not None:
        return f"{output}\n\nCommand timed out after {outcome.timed_out_after:g}s".strip()
    if outcome.quiet_after is not None:
        return f"{output}\n\nCommand printed nothing for {outcome.quiet_after:g}s and was stopped".strip()
    if outcome.exit_code:
        return f"Exit code {outcome.exit_code}\n{output}".rstrip()
    return output or "(The command printed nothing.)"


def _left(outcome: Left) -> str:
    task = outcome.task
    how = "Use TaskOutput to read its output and TaskStop to stop it."
    if outcome.after is None:
        said = f"Command running in background with ID: {task.id}. {how}"
    else:
        said = (
            f"Command did not complete within its {outcome.after:g}s timeout and was moved to the background"
            f" with ID: {task.id}. {how}"
        )
    output = task.output.strip("\n")
    return f"{said}\n\nOutput so far:\n{output}" if output else said


def read(outcome: TaskRead) -> dict[str, Any]:
    task = outcome.task
    return {
        "retrieval_status": {"ended": "success", "found": "success", "time": "timeout", "running": "not_ready"}[
            outcome.why
        ],
        "task": {
            "task_id": task.id,
            "task_type": _kind(task),
            "status": task.status,
            "description": task.description or task.command,
            "output": task.output,
            **({} if task.kind == "agent" else {"exitCode": task.exit_code}),
        },
    }


def stopped(outcome: TaskStopped) -> dict[str, str]:
    task = outcome.task
    return {
        "message": f"Successfully stopped task: {task.id} ({task.command})",
        "task_id": task.id,
        "task_type": _kind(task),
        "command": task.command,
    }


def _kind(task: TaskSeen) -> str:
    return "local_agent" if task.kind == "agent" else "local_bash"


def failed(outcome: Ran | Left) -> bool:
    """An exit code of 1 is an answer where it comes from a program that answers with it."""
    if isinstance(outcome, Left):
        return False
    if outcome.timed_out_after is not None or outcome.quiet_after is not None:
        return True
    return outcome.exit_code != 0 and not (outcome.exit_code == 1 and _answers(outcome.command))


def _answers(command: str) -> bool:
    """Does the exit code come from a program that says no with a 1? Only where that is certain."""
    chain: list[list[str]] = [[]]
    for piece in _PIECE.findall(command.rstrip("; \t\r\n")):
        if piece in "()":
            return False
        if piece == "&&":
            chain.append([])
        elif piece in _BETWEEN:
            # A newline after `&&` ends nothing.
            chain = chain if piece == "\n" and not chain[-1] else [[]]
        elif chain[-1] or not _ASSIGNMENT.match(piece):
            chain[-1].append(piece)
    return _says_no(chain[-1]) and all(words[0] == "cd" for words in chain[:-1] if words)


def _says_no(words: list[str]) -> bool:
    return bool(words) and (words[0] in _ANSWERS or (words[0] == "git" and words[1:2] in (["diff"], ["grep"])))


def planned(_: Planned) -> str:
    return "The list was updated. Go on with the tasks on it."


def skill(outcome: "SkillLoaded") -> str:
    """Where its relative paths start from, what it brought, and then its instructions."""
    folder = [f"Base directory for this skill: {outcome.folder}"] if outcome.folder else []
    about = [*folder, *about_skill(outcome)]
    return "\n".join([*about, *([""] if about else []), outcome.text])


def task(outcome: "Outcome") -> str:
    """What subagents have done; of one alone also its id and what it took."""
    from ferrule.dialects.families.claude.agents_said import task  # for sessions with subagents

    return task(outcome)
