"""Define gemini's tools: how arguments are arranged, and how outcomes read.

Arranged are lines, ignore files, searches and looks at running commands. The tasks of gemini's tracker are todos.
"""

import os
import re
from typing import TYPE_CHECKING, Any

from ferrule.core.content import (
    CommandResult,
    Created,
    Edited,
    FileText,
    FolderTree,
    Hits,
    ManyFiles,
    Matching,
    PathPage,
    Picture,
    Planned,
)
from ferrule.core.errors import BadArguments
from ferrule.core.tool import Face, Values
from ferrule.dialects import Dialect, rows
from ferrule.dialects.shared import (
    LIMIT_BYTES,
    about_skill,
    accept_plan,
    answers,
    file_renderer,
    has_agent_failed,
    invert_names,
    link_renderer,
    members,
    opposite,
    page_renderer,
    parts,
    plain,
    question_arrangement,
    render_approval,
    render_delegation,
    render_matching,
    render_mixed,
    render_plan_entry,
    without,
)
from ferrule.tools.shell import Left, TaskList, TaskRead, TaskSeen
from ferrule.tools.todos import TodoDeleted

if TYPE_CHECKING:
    from ferrule.core.services import ServerResources, SkillLoaded
    from ferrule.tools.todos import Todo, TodoCreated, TodoListed, TodoSeen, TodoUpdated


_STEP = {"description": "text", "status": "status"}


def lines(values: Values) -> Values:
    """A first and a last line as where to begin and how many."""
    out = without(values, "start_line", "end_line")
    first = values.get("start_line")
    if first is not None:
        out["offset"] = first
    if values.get("end_line") is not None:
        if values["end_line"] < (first or 1):
            raise BadArguments(f"end_line: the end {values['end_line']} lies before the start {first or 1}.")
        out["limit"] = values["end_line"] - (first or 1) + 1
    return out


def as_lines(values: Values) -> Values:
    """The inverse."""
    out = without(values, "offset", "limit")
    if values.get("offset") is not None:
        out["start_line"] = values["offset"]
    if values.get("limit") is not None:
        out["end_line"] = (values.get("offset") or 1) + values["limit"] - 1
    return out


def lift_ignored(values: Values) -> Values:
    """Whether ignored files are wanted, from the options or from the parameter itself."""
    out = without(values, "file_filtering_options", "respect_git_ignore", "respect_gemini_ignore")
    options = {**values.get("file_filtering_options", {}), **values}
    if "respect_git_ignore" in options:
        out["ignored"] = not options["respect_git_ignore"]
    return out


def as_option(values: Values) -> Values:
    """The inverse, for tools with options."""
    if "ignored" not in values:
        return values
    return {**without(values, "ignored"), "file_filtering_options": {"respect_git_ignore": not values["ignored"]}}


def as_parameter(values: Values) -> Values:
    """The inverse, for tools with the parameter itself."""
    return opposite(values, "ignored", "respect_git_ignore")


def lift_search(values: Values) -> Values:
    """`names_only` is a mode, and `context` is both sides."""
    out = without(values, "names_only", "context")
    if "names_only" in values:
        out["mode"] = "files" if values["names_only"] else "lines"
    if "context" in values:
        out = {"before": values["context"], "after": values["context"], **out}
    return out


def lower_search(values: Values) -> Values:
    """The inverse."""
    out = without(values, "mode")
    if out.get("per_file") == 0:
        del out["per_file"]
    if "mode" in values:
        out["names_only"] = values["mode"] == "files"
    return out


def fill_read_defaults(values: Values) -> Values:
    """Whoever says nothing does not wait, and wants the last lines: that is so in other families' sessions too."""
    return {"lines": 100, "seconds": 0.0, **values}


def steps(values: Values) -> Values:
    """Items in canonical names."""
    return members(values, "steps", _STEP)


def todos(values: Values) -> Values:
    """The inverse."""
    return members(values, "steps", invert_names(_STEP))


def agent(values: Values) -> Values:
    """What the family can say of a task for an agent."""
    return {key: values[key] for key in ("prompt", "kind") if key in values}


def addresses(values: Values) -> Values:
    """The addresses in a prompt; what stands around them is what is asked about them."""
    if "prompt" not in values or "url" in values:
        return values

    text = str(values["prompt"])
    found = dict.fromkeys(_without_end(one) for one in re.findall(r"(?i)https?://[^\s<>\"'`|\\^{}]{1,8192}", text))
    if not found:
        return {**values, "url": ""}  # which no tool takes
    asked, _, rows = text.rpartition("\n\n")
    if not set(rows.split()) <= found.keys():
        asked = text
    url, *more = found
    said = {"url": url, "more": more, "prompt": asked}
    return {**without(values, "prompt"), **{key: value for key, value in said.items() if value}}


def as_addresses(values: Values) -> Values:
    """The inverse: below the question, an address a line."""
    if "url" not in values:
        return values
    rows = "\n".join([values["url"], *values.get("more", ())])
    return {"prompt": "\n\n".join(filter(None, (values.get("prompt"), rows)))}


def _without_end(address: str) -> str:
    """Without what ends the sentence around it; a bracket stays if it was opened in it."""
    pairs = {")": "(", "]": "["}
    while address[-1] in ".,;:!?*" or address.count(pairs.get(address[-1], "")) < address.count(address[-1]):
        address = address[:-1]
    return address


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


def render_write(outcome: Created) -> str:
    did = "overwrote" if outcome.existed else "created and wrote to new"
    return f"Successfully {did} file: {outcome.path}."


def render_edit(outcome: Edited | Created) -> str:
    if isinstance(outcome, Created):
        return f"Created new file: {outcome.path} with provided content."
    return f"Successfully modified file: {outcome.path} ({outcome.places} replacements).\n{outcome.diff}"


def render_command(outcome: CommandResult | Left) -> str:
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
    rows = [f"- [{_task_label(task)}] {_task_status(task)}: `{task.command}`" for task in outcome.tasks]
    return "\n".join(rows) or "No background processes found."


def render_task(outcome: TaskRead) -> str:
    task = outcome.task
    about = f"[{_task_label(task)}] {_task_status(task)}"
    return f"{about}\nOutput:\n{task.output}" if task.output else f"{about}\nOutput: (empty)"


def _task_label(task: TaskSeen) -> str:
    return f"Agent {task.id}" if task.kind == "agent" else f"PID {task.pid}"


def _task_status(task: TaskSeen) -> str:
    if task.status == "running" or task.kind == "agent":
        return task.status.capitalize()
    return f"{'Killed' if task.status == 'killed' else 'Exited'} (exit code {task.exit_code})"


def render_glob(outcome: PathPage) -> str:
    if not outcome.paths:
        return f"No files found within {outcome.folder}"
    more = f" ({outcome.remaining} more are not shown)" if outcome.remaining else ""
    head = f"Found {len(outcome.paths) + outcome.remaining} file(s) within {outcome.folder}, newest first{more}:"
    return "\n".join([head, *outcome.paths])


def render_grep(outcome: Hits | Matching) -> str:
    if isinstance(outcome, Matching):
        if not outcome.files:
            return "No matches found"
        files = render_matching(outcome, none="")
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


def render_folder(outcome: FolderTree) -> str:
    if not outcome.entries:
        return f"Directory {outcome.path} is empty."
    rows = [f"[DIR] {entry.path}" if entry.kind == "folder" else entry.path for entry in outcome.entries]
    more = [f"({outcome.remaining} more)"] if outcome.remaining else []
    return "\n".join([f"Directory listing for {outcome.path}:", *rows, *more])


def render_plan(outcome: Planned) -> str:
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


_STATUS = {"open": "pending", "in_progress": "in_progress", "closed": "completed"}
_MARKS = {"open": " ", "in_progress": ">", "blocked": "!", "closed": "x"}


def kind(values: Values) -> Values:
    """A new task always has a type."""
    return {"kind": "task", **values}


def lift_status(values: Values) -> Values:
    """A status in canonical words. Blocked is what waits for something, and not a status of its own."""
    if "status" not in values:
        return values
    return {**values, "status": _STATUS.get(values["status"], "pending")}


def lower_status(values: Values) -> Values:
    """The inverse."""
    if "status" not in values:
        return values
    return {**values, "status": invert_names(_STATUS).get(values["status"], values["status"])}


def lift_status_filter(values: Values) -> Values:
    """The same for a list: what is blocked is not open."""
    if values.get("status") not in {"open", "blocked"}:
        return lift_status(values)
    return {**values, "status": "pending", "waiting": values["status"] == "blocked"}


def lower_status_filter(values: Values) -> Values:
    """The inverse."""
    shown = lower_status(without(values, "waiting"))
    return {**shown, "status": "blocked"} if values.get("waiting") else shown


def dependency(values: Values) -> Values:
    """One more task to wait for."""
    return {**without(values, "dependencyId"), "add_blocked_by": [values["dependencyId"]]}


def as_dependency(values: Values) -> Values:
    """The inverse."""
    return {**without(values, "add_blocked_by"), "dependencyId": next(iter(values.get("add_blocked_by", ())), "")}


def render_created_todo(outcome: "TodoCreated") -> str:
    return f"Created task {outcome.todo.id}: {outcome.todo.subject}"


def render_updated_todo(outcome: "TodoUpdated | TodoDeleted") -> str:

    todo = outcome.todo
    if isinstance(outcome, TodoDeleted):
        return f"Deleted task {todo.id}."
    return f"Updated task {todo.id}. Status: {_status(todo)}"


def render_dependencies(outcome: "TodoUpdated | TodoDeleted") -> str:
    return f"Task {outcome.todo.id} depends on: {', '.join(outcome.todo.blocked_by) or 'nothing'}"


def render_todo(outcome: "TodoSeen") -> str:
    todo = outcome.todo
    if todo is None:
        return "Task not found."
    rows = (
        ("ID", todo.id),
        ("Title", todo.subject),
        ("Type", todo.kind),
        ("Status", _status(todo)),
        ("Parent", todo.parent),
        ("Dependencies", ", ".join(todo.blocked_by)),
        ("Blocks", ", ".join(todo.blocks)),
        ("Owner", todo.owner),
        ("Description", todo.description),
    )
    return "\n".join(f"{name}: {value}" for name, value in rows if value)


def render_todos(outcome: "TodoListed") -> str:
    return "\n".join(map(_line, outcome.todos)) or "No tasks found."


def render_todo_tree(outcome: "TodoListed") -> str:
    """Tasks below those that they are part of; each knows what it waits for."""
    below: dict[str, list[Todo]] = {}
    for todo in outcome.todos:
        below.setdefault(todo.parent, []).append(todo)
    rows: list[str] = []
    ahead = [(0, todo) for todo in reversed(below.get("", ()))]
    while ahead:
        depth, todo = ahead.pop()
        rows.append(f"{'  ' * depth}{_line(todo)}")
        ahead += [(depth + 1, child) for child in reversed(below.get(todo.id, ()))]
    return "\n".join(rows) or "No tasks to show."


def _line(todo: "Todo") -> str:
    status = _status(todo)
    waits = f" (depends on {', '.join(todo.waits_for)})" if todo.waits_for else ""
    return f"[{_MARKS[status]}] {todo.id} {status}: {todo.subject}{waits}"


def _status(todo: "Todo") -> str:
    return "blocked" if todo.status == "pending" and todo.waits_for else invert_names(_STATUS)[todo.status]


_HERE = os.path.dirname(__file__)

# The engine orders the calls of a message by what they touch; nothing has to be asked to wait.
_WAIT = ("wait_for_previous",)
_EDIT = {"file_path": "path", "old_string": "old", "new_string": "new"}
_EDIT_ERRORS = {
    "not-found": "File not found. Cannot apply edit. Use an empty old_string to create a new file.",
    "no-match": "Failed to edit, 0 occurrences found for old_string in {path}.\n{message}",
    "ambiguous": "Failed to edit, expected 1 occurrence but found {count} for old_string in {path}."
    " Set allow_multiple to change all of them.\n{message}",
    "unexpected-count": "Failed to edit: {message}",
    "same-text": "No changes to apply. The old_string and new_string are identical.",
    "empty-old": "File already exists, cannot create: {path}. Give the text to replace as old_string.",
}
_NO_PATH = {"not-found": "Path does not exist: {path}", "not-a-folder": "Path is not a directory: {path}"}


def dialect() -> Dialect:
    """The dialect, read from its files."""
    plain = rows(_HERE)

    def face(tool: str, name: str, *, unused: tuple[str, ...] = (), **rest: Any) -> Face:
        return plain(tool, name, unused=(*_WAIT, *unused), **rest)

    faces = (
        face(
            "read",
            "read_file",
            params={"file_path": "path"},
            lift=lines,
            lower=as_lines,
            said_as={"offset": "start_line", "limit": "end_line"},
            fill={
                "usual_lines": 2_000,
                "most_bytes": 100_000,
                "line_bytes": 8_000,
                "line_chars": 2_000,
                "decoded": ("image", "document"),
                "folders": False,
                "note_range": False,
            },
            says=file_renderer(text),
            errors={
                "not-found": "File not found: {path}{hint}",
                "is-folder": "Path is a directory, not a file: {path}. Use list_directory to list it.",
                "binary": "Cannot display content of binary file: {path}",
            },
        ),
        face(
            "read_many",
            "read_many_files",
            params={"useDefaultExcludes": "default_excludes"},
            lift=lift_ignored,
            lower=as_option,
            said_as={"ignored": "file_filtering_options"},
            says=many,
        ),
        face("write", "write_file", params={"file_path": "path"}, fill={"final_newline": False}, says=render_write),
        face(
            "edit",
            "replace",
            params={**_EDIT, "allow_multiple": "everywhere"},
            unused=("instruction",),
            fill={"may_create": True},
            says=render_edit,
            errors=_EDIT_ERRORS,
        ),
        face(
            "edit",
            "smart_edit",
            params={**_EDIT, "expected_replacements": "expected"},
            unused=("instruction",),
            fill={"may_create": True},
            says=render_edit,
            errors=_EDIT_ERRORS,
            aliases=("replace",),
            shown=False,
        ),
        face(
            "shell",
            "run_shell_command",
            params={"dir_path": "cwd", "is_background": "background", "delay_ms": "delay_seconds"},
            unused=("additional_permissions",),
            per={"delay_seconds": 1000},
            usual={"delay_seconds": 0.2},
            fill={"head_chars": 40_000, "tail_chars": 40_000},
            says=render_command,
        ),
        face("shell_list", "list_background_processes", says=tasks),
        face(
            "shell_output",
            "read_background_output",
            params={"delay_ms": "seconds"},
            per={"seconds": 1000},
            lift=fill_read_defaults,
            fill={"block": True, "most_chars": 80_000},
            says=render_task,
        ),
        face(
            "grep",
            "grep_search",
            params={
                "dir_path": "path",
                "include_pattern": "glob",
                "exclude_pattern": "exclude",
                "max_matches_per_file": "per_file",
                "total_max_matches": "limit",
                "fixed_strings": "literal",
                "no_ignore": "ignored",
            },
            lift=lift_search,
            lower=lower_search,
            said_as={"mode": "names_only"},
            usual={"per_file": 0, "limit": 100},
            fill={"line_chars": 2_000},
            says=render_grep,
            errors=_NO_PATH,
        ),
        face(
            "glob",
            "glob",
            params={"dir_path": "path"},
            lift=lift_ignored,
            lower=as_parameter,
            said_as={"ignored": "respect_git_ignore"},
            usual={"case_sensitive": False},
            fill={"by_time": True, "limit": 1_000},
            says=render_glob,
            errors=_NO_PATH,
        ),
        face(
            "list_dir",
            "list_directory",
            params={"dir_path": "path"},
            lift=lift_ignored,
            lower=as_option,
            said_as={"ignored": "file_filtering_options"},
            usual={"ignored": False},
            fill={"depth": 1, "folders_first": True, "limit": 2_000},
            says=render_folder,
            errors={
                "not-found": "Error: Failed to list directory. {path} is not there.",
                "not-a-folder": "Error: Path is not a directory: {path}",
            },
        ),
        face(
            "plan",
            "write_todos",
            params={"todos": "steps"},
            lift=steps,
            lower=todos,
            says=render_plan,
        ),
        face("skill", "activate_skill", params={"name": "skill"}, says=skill),
        face(
            "ask_user",
            "ask_user",
            **question_arrangement(type="kind", multiSelect="multiple", placeholder="placeholder"),
            fill={"header_chars": 16},
            says=answers,
        ),
        face(
            "todo_create",
            "tracker_create_task",
            params={"title": "subject", "type": "kind", "parentId": "parent", "dependencies": "blocked_by"},
            lower=kind,
            says=render_created_todo,
        ),
        face(
            "todo_update",
            "tracker_update_task",
            params={"id": "todo_id", "title": "subject", "dependencies": "blocked_by"},
            lift=lift_status,
            lower=lower_status,
            says=render_updated_todo,
        ),
        face("todo_get", "tracker_get_task", params={"id": "todo_id"}, says=render_todo),
        face(
            "todo_list",
            "tracker_list_tasks",
            params={"type": "kind", "parentId": "parent"},
            lift=lift_status_filter,
            lower=lower_status_filter,
            says=render_todos,
        ),
        face(
            "todo_update",
            "tracker_add_dependency",
            params={"taskId": "todo_id"},
            lift=dependency,
            lower=as_dependency,
            said_as={"add_blocked_by": "dependencyId"},
            says=render_dependencies,
            shown=False,
        ),
        face("todo_list", "tracker_visualize", says=render_todo_tree, shown=False),
        face("enter_plan", "enter_plan_mode", says=render_plan_entry),
        accept_plan(face("exit_plan", "exit_plan_mode", params={"plan_filename": "file"}, says=render_approval)),
        face("list_mcp_resources", "list_mcp_resources", params={"serverName": "server"}, says=resources),
        face("read_mcp_resource", "read_mcp_resource", says=render_mixed),
        face(
            "delegate",
            "invoke_agent",
            params={"agent_name": "kind"},
            lower=agent,
            says=render_delegation,
            failed=has_agent_failed,
        ),
        face(
            "web_fetch",
            "web_fetch",
            lift=addresses,
            lower=as_addresses,
            said_as={"url": "prompt", "more": "prompt"},
            fill={"across": True},
            says=page_renderer("To read it, call web_fetch again with that address in the prompt."),
            limit_bytes=LIMIT_BYTES,
        ),
        face(
            "web_search",
            "google_web_search",
            says=link_renderer('Web search results for "{query}":', none='No search results found for "{query}".'),
        ),
    )
    # What the search was called before.
    return Dialect(name="gemini", faces=faces, aliases={"search_file_content": "grep_search"})
