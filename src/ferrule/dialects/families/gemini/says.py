"""How gemini reads what came back."""

from typing import TYPE_CHECKING, Any

from ferrule.core.outcomes import (
    Created,
    Edited,
    FileText,
    Found,
    Hits,
    ManyFiles,
    Matching,
    Picture,
    Planned,
    Ran,
    Tree,
)
from ferrule.core.tasks import Left, TaskList, TaskRead, TaskSeen
from ferrule.dialects.says import about_skill, matching, parts, plain

if TYPE_CHECKING:
    from ferrule.core.elsewhere import ServerResources, SkillLoaded


def text(outcome: FileText) -> str:
    """The lines as they are; what is missing is said above them."""
    return _text(outcome, "give start_line and end_line")


def _text(outcome: FileText, how: str) -> str:
    last = outcome.first + len(outcome.lines) - 1
    if outcome.first == 1 and outcome.total == last:
        return plain(outcome)
    if not outcome.lines and outcome.total is not None:
        return f"The file has {outcome.total} lines; there is no line {outcome.first}."
    of = "" if outcome.total is None else f" of {outcome.total}"
    return (
        f"IMPORTANT: The file content has been truncated. These are lines {outcome.first}-{last}{of}."
        f" To read more, {how}.\n\n{plain(outcome)}"
    )


def many(outcome: ManyFiles) -> Any:
    """Each file under its path, and at the end those that were left out."""
    pieces: list[str | Picture] = []
    for file in outcome.files:
        if isinstance(file, FileText):
            pieces.append(f"--- {file.path} ---\n\n{_text(file, 'use read_file with start_line and end_line')}")
        else:
            pieces += [f"--- {file.path} ---", file]
    if outcome.skipped:
        pieces.append("Skipped:\n" + "\n".join(f"- {path}: {why}" for path, why in outcome.skipped))
    if not outcome.files:
        pieces.insert(0, "No files matching the criteria were found or all were skipped.")
    return parts([*pieces, "--- End of content ---"])


def written(outcome: Created) -> str:
    did = "overwrote" if outcome.existed else "created and wrote to new"
    return f"Successfully {did} file: {outcome.path}."


def edited(outcome: Edited | Created) -> str:
    if isinstance(outcome, Created):
        return f"Created new file: {outcome.path} with provided content."
    return f"Successfully modified file: {outcome.path} ({outcome.places} replacements).\n{outcome.diff}"


def ran(outcome: Ran | Left) -> str:
    if isinstance(outcome, Left):
        task = outcome.task
        rows = [f"Command: {task.command}", f"Directory: {task.cwd}", f"Output: {task.output or '(empty)'}"]
        how = f"read_background_output reads what it prints, and TaskStop with the task_id {task.id} stops it"
        return "\n".join([*rows, f"Background PIDs: {task.pid} ({how})"])
    rows = [f"Command: {outcome.command}", f"Directory: {outcome.cwd}", f"Output: {outcome.output or '(empty)'}"]
    if outcome.timed_out_after is not None:
        rows.append(f"Error: stopped after {outcome.timed_out_after:g} seconds")
    if outcome.quiet_after is not None:
        rows.append(f"Error: stopped after {outcome.quiet_after:g} seconds without output")
    if outcome.exit_code:
        rows.append(f"Exit Code: {outcome.exit_code}")
    return "\n".join(rows)


def tasks(outcome: TaskList) -> str:
    rows = [f"- [{_named(task)}] {_stands(task)}: `{task.command}`" for task in outcome.tasks]
    return "\n".join(rows) or "No background processes found."


def printed(outcome: TaskRead) -> str:
    task = outcome.task
    about = f"[{_named(task)}] {_stands(task)}"
    return f"{about}\nOutput:\n{task.output}" if task.output else f"{about}\nOutput: (empty)"


def _named(task: TaskSeen) -> str:
    return f"Agent {task.id}" if task.kind == "agent" else f"PID {task.pid}"


def _stands(task: TaskSeen) -> str:
    if task.status == "running" or task.kind == "agent":
        return task.status.capitalize()
    return f"{'Killed' if task.status == 'killed' else 'Exited'} (exit code {task.exit_code})"


def found(outcome: Found) -> str:
    if not outcome.paths:
        return f"No files found within {outcome.folder}"
    more = f" ({outcome.remaining} more are not shown)" if outcome.remaining else ""
    head = f"Found {len(outcome.paths) + outcome.remaining} file(s) within {outcome.folder}, newest first{more}:"
    return "\n".join([head, *outcome.paths])


def matched(outcome: Hits | Matching) -> str:
    if isinstance(outcome, Matching):
        if not outcome.files:
            return "No matches found"
        files = matching(outcome, none="")
        return f"Found {outcome.total} file{'s' * (outcome.total != 1)} with matches:\n{files}"
    if not outcome.lines:
        return "No matches found"
    shown = sum(not hit.context for hit in outcome.lines)
    more = f" (the first {shown} are shown)" if shown < outcome.total else ""
    rows = [f"Found {outcome.total} match{'es' * (outcome.total != 1)}{more}"]
    path = None
    for hit in outcome.lines:
        if hit.path != path:
            rows += ["---", f"File: {hit.path}"]
            path = hit.path
        rows.append(f"L{hit.line}{'-' if hit.context else ':'} {hit.text}")
    return "\n".join([*rows, "---"])


def listed(outcome: Tree) -> str:
    if not outcome.entries:
        return f"Directory {outcome.path} is empty."
    rows = [f"[DIR] {entry.path}" if entry.kind == "folder" else entry.path for entry in outcome.entries]
    more = [f"({outcome.remaining} more)"] if outcome.remaining else []
    return "\n".join([f"Directory listing for {outcome.path}:", *rows, *more])


def planned(outcome: Planned) -> str:
    if not outcome.steps:
        return "Successfully cleared the todo list."
    rows = [f"{number}. [{step.status}] {step.text}" for number, step in enumerate(outcome.steps, 1)]
    return "\n".join(["Successfully updated the todo list. The current list is now:", *rows])


def skill(outcome: "SkillLoaded") -> str:
    """The instructions, and beside them what else there is, each between tags."""
    folder = [f"Relative paths start from {outcome.folder}."] if outcome.folder else []
    rows = [*folder, *about_skill(outcome)]
    beside = ["<available_resources>", *rows, "</available_resources>"] if rows else []
    head = [f'<activated_skill name="{outcome.name}">', "<instructions>", outcome.text, "</instructions>"]
    return "\n".join([*head, *beside, "</activated_skill>"])


def resources(outcome: "ServerResources") -> str:
    rows = []
    for one in outcome.resources:
        media = f" [{one.media_type}]" if one.media_type else ""
        words = f": {one.words}" if one.words else ""
        rows.append(f"- {one.server}: {one.uri} ({one.name}){media}{words}")
    silent = [f"{server} could not be asked: {why}" for server, why in outcome.silent]
    what = "templates of resources" if outcome.templates else "resources"
    head = f"The connected servers offer these {what}:" if rows else f"No {what} found."
    return "\n".join([head, *rows, *silent])
