"""Define Claude Code's tools: their faces, how arguments are arranged, and how outcomes read.

The faces are the tools of the seed, advertised if their canonical tools exist here, with some older and some newer
ones. Todos are called tasks. Claude Code's own tools are recognized among the definitions that come over a wire,
so that they can be translated.
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ferrule.core.content import CellEdited, CommandResult, Created, Edited, Hits, Matching, PathPage, Planned
from ferrule.core.errors import BadArguments
from ferrule.core.services import DelegateOutcome, PlanApproved
from ferrule.core.tool import Face, LineLimit, Middle, Values, copy_json
from ferrule.dialects import Dialect, rows, schemas, words
from ferrule.dialects.outcome_words import Outcome, message
from ferrule.dialects.shared import (
    EDITED,
    LIMIT_BYTES,
    about_code,
    about_skill,
    accept_plan,
    describe_permissions,
    fence_text,
    file_renderer,
    has_agent_failed,
    hits,
    invert_names,
    members,
    opposite,
    page_renderer,
    paths,
    question_arrangement,
    render_answers,
    render_links,
    render_matching,
    render_mixed,
    render_plan_entry,
    resources,
    tools_named,
    tree,
    without,
)
from ferrule.tools.shell import Left, TaskRead, TaskSeen, TaskStopped

if TYPE_CHECKING:
    from ferrule.core.services import SkillLoaded
    from ferrule.tools.todos import TodoCreated, TodoDeleted, TodoListed, TodoSeen, TodoUpdated


EDIT = {"old_string": "old", "new_string": "new", "replace_all": "everywhere"}

_MODES = {"content": "lines", "files_with_matches": "files", "count": "count"}
_STEP = {"content": "text", "status": "status"}


def from_the_start(values: Values) -> Values:
    """Lines are counted from 1; an offset of 0 means the start as well."""
    return {**values, "offset": 1} if values.get("offset") == 0 else values


def lift_search(values: Values) -> Values:
    """`-i` says the opposite of case sensitive, `-C` both sides of context, and modes have their own names.

    Later versions call `-C` also `context`.
    """
    out = opposite(without(values, "-C", "context"), "-i", "case_sensitive")
    around = values.get("context", values.get("-C"))
    if around is not None:
        out = {"before": around, "after": around, **out}
    return {**out, "mode": _MODES[values["mode"]]} if "mode" in values else out


def lower_search(values: Values) -> Values:
    """The inverse."""
    out = opposite(values, "case_sensitive", "-i")
    return {**out, "mode": invert_names(_MODES)[values["mode"]]} if "mode" in values else out


def lift_edits(values: Values) -> Values:
    """Several edits, each in canonical names."""
    return members(values, "edits", EDIT)


def lower_edits(values: Values) -> Values:
    """The inverse."""
    return members(values, "edits", invert_names(EDIT))


def steps(values: Values) -> Values:
    """Tasks in canonical names; what one is called while it is worked on is left out."""
    return members(values, "steps", _STEP)


def tasks(values: Values) -> Values:
    """The inverse."""
    shown = members(values, "steps", invert_names(_STEP))
    return {**shown, "steps": [{**task, "activeForm": task["content"]} for task in shown["steps"]]}


def shell(values: Values) -> Values:
    """`shell_id` is what `task_id` was called."""
    named = {key: values[key] for key in ("task_id", "shell_id") if values.get(key)}
    if len(set(named.values())) != 1:
        raise BadArguments("task_id: required, but missing." if not named else "shell_id: is another than task_id.")
    return {**without(values, "shell_id"), "task_id": next(iter(named.values()))}


def lift_task_id(values: Values) -> Values:
    """`bash_id` is what `task_id` was called; who calls it that gets what is new and does not wait."""
    if values.get("bash_id"):
        asked = {"block": False, **without(values, "bash_id"), "news": True}
        return shell({**asked, "shell_id": values["bash_id"]})
    return shell(without(values, "bash_id"))


def lower_task_id(values: Values) -> Values:
    """The inverse; `news` is part of the older name."""
    if not values.get("news"):
        return values
    return {**without(values, "news", "task_id"), "bash_id": values["task_id"]}


_REMOTE = ("pushToRemote", "remoteSessionId", "remoteSessionTitle", "remoteSessionUrl")


def lift_remote(values: Values) -> Values:
    """A remote session is one wish, whichever of its parameters says so."""
    out = without(values, *_REMOTE)
    return {**out, "remote": True} if any(values.get(name) for name in _REMOTE) else out


def lower_remote(values: Values) -> Values:
    """The inverse."""
    out = without(values, "remote")
    return {**out, "pushToRemote": True} if values.get("remote") else out


def render_approval(outcome: PlanApproved) -> str:
    """Where the model has written the plan itself it is named, and not repeated."""
    head = "The user has approved your plan. Carry it out now; begin with your list of tasks, if you keep one."
    text = (
        [f"The plan is in {outcome.path}."]
        if outcome.is_known
        else [f"The plan is in {outcome.path}:", "", outcome.text.rstrip()]
    )
    if outcome.is_edited:
        text = [f"The plan is in {outcome.path}. {EDITED}", "", outcome.text.rstrip()]
    return "\n".join([head, *describe_permissions(outcome), *text])


EMPTY = "The file exists, but it is empty."
PAST = "The file has only {total} lines; line {first} is past its end."

_ANSWERS = frozenset({"grep", "rg", "egrep", "fgrep", "find", "diff", "test", "["})
"""Programs, and `git diff` and `git grep`, for which an exit code of 1 is no failure."""
_PIECE = re.compile(r"""(?:[^\s;|&()<>'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+|\|\||&&|[<>]&|&>|[;|&()<>\n]""", re.DOTALL)
_BETWEEN = frozenset({";", "|", "||", "&", "\n"})
_ASSIGNMENT = re.compile(r"\w+=")


def render_write(outcome: Created) -> str:
    return f"File {'updated' if outcome.existed else 'created'} successfully at: {outcome.path}"


def render_edit(outcome: Edited | Created) -> str:
    if isinstance(outcome, Created):
        return render_write(outcome)
    return f"The file {outcome.path} has been updated.\n{fence_text(outcome.diff, 'diff')}"


def cell(outcome: CellEdited) -> str:
    did = {"replace": "Updated", "insert": "Inserted", "delete": "Deleted"}[outcome.mode]
    return f"{did} cell {outcome.cell_id}" + ("" if outcome.mode == "delete" else f" with {outcome.source}")


def render_glob(outcome: PathPage) -> str:
    return paths(
        outcome,
        none="No files found",
        more="(Results are truncated: {remaining} more. Use a narrower path or pattern.)",
    )


def render_grep(outcome: Hits | Matching) -> str:
    if isinstance(outcome, Hits):
        return hits(outcome, none="No entries at this offset" if outcome.total else "No matches found")
    if not outcome.files:
        return "No entries at this offset" if outcome.total else "No files found"
    listed = render_matching(outcome, none="")
    if outcome.lines:
        found = (
            _count_noun(outcome.lines, "match", "matches")
            if outcome.parts
            else _count_noun(outcome.lines, "matching line")
        )
        return f"{listed}\n\nFound {found} in {_count_noun(outcome.total, 'file')}."
    return f"Found {_count_noun(outcome.total, 'file')}\n{listed}"


def _count_noun(count: int, thing: str, things: str = "") -> str:
    return f"{count} {thing if count == 1 else things or thing + 's'}"


def render_command(outcome: CommandResult | Left) -> str:
    if isinstance(outcome, Left):
        return _render_background(outcome)
    output = outcome.output.strip("\n")
    if outcome.timed_out_after is not None:
        return f"{output}\n\nCommand timed out after {outcome.timed_out_after:g}s".strip()
    if outcome.quiet_after is not None:
        return f"{output}\n\nCommand printed nothing for {outcome.quiet_after:g}s and was stopped".strip()
    if outcome.exit_code:
        return f"Exit code {outcome.exit_code}\n{output}".rstrip()
    return output or "(The command printed nothing.)"


def _render_background(outcome: Left) -> str:
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


def render_task(outcome: TaskRead) -> dict[str, Any]:
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


def render_stop(outcome: TaskStopped) -> dict[str, str]:
    task = outcome.task
    return {
        "message": f"Successfully stopped task: {task.id} ({task.command})",
        "task_id": task.id,
        "task_type": _kind(task),
        "command": task.command,
    }


def _kind(task: TaskSeen) -> str:
    return "local_agent" if task.kind == "agent" else "local_bash"


def has_failed(outcome: CommandResult | Left) -> bool:
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


def render_plan(_: Planned) -> str:
    return "The list was updated. Go on with the tasks on it."


def skill(outcome: "SkillLoaded") -> str:
    """Where its relative paths start from, what it brought, and then its instructions."""
    folder = [f"Base directory for this skill: {outcome.folder}"] if outcome.folder else []
    about = [*folder, *about_skill(outcome)]
    return "\n".join([*about, *([""] if about else []), outcome.text])


def says_task(outcome: "Outcome") -> str:
    """What subagents have done; of one alone also its id and what it took."""
    return agent_report(outcome)


_SHOWN = {"active_form": "activeForm", "blocked_by": "blockedBy"}


def also_deleted(face: Face) -> Face:
    """The face of an update, which accepts the status that later versions have beside the advertised ones."""
    accepts = copy_json(face.schema)
    accepts["properties"]["status"]["enum"].append("deleted")
    return msgspec.structs.replace(face, accepts=accepts)


def render_created_todo(outcome: "TodoCreated") -> dict[str, Any]:
    return {"task": {"id": outcome.todo.id, "subject": outcome.todo.subject}}


def render_todo(outcome: "TodoSeen") -> dict[str, Any]:
    """What there is nothing of is left out, but for what a task always has."""
    todo = outcome.todo
    if todo is None:
        return {"task": None}
    more = {"activeForm": todo.active_form, "owner": todo.owner, "metadata": dict(todo.metadata)}
    return {
        "task": {
            "id": todo.id,
            "subject": todo.subject,
            "description": todo.description,
            "status": todo.status,
            "blocks": list(todo.blocks),
            "blockedBy": list(todo.blocked_by),
            **{name: value for name, value in more.items() if value},
        }
    }


def render_updated_todo(outcome: "TodoUpdated | TodoDeleted") -> dict[str, Any]:
    from ferrule.tools.todos import TodoDeleted  # for sessions that keep a list

    todo = outcome.todo
    if isinstance(outcome, TodoDeleted):
        fields, was, now = ["deleted"], todo.status, "deleted"
    else:
        fields, was, now = [_SHOWN.get(name, name) for name in outcome.fields], outcome.was, todo.status
    change = {"statusChange": {"from": was, "to": now}} if was != now else {}
    return {"success": True, "taskId": todo.id, "updatedFields": fields, **change}


def render_todos(outcome: "TodoListed") -> dict[str, Any]:
    """Of what a task waits for, only what is not completed."""
    return {
        "tasks": [
            {
                "id": todo.id,
                "subject": todo.subject,
                "status": todo.status,
                **({"owner": todo.owner} if todo.owner else {}),
                "blockedBy": list(todo.waits_for),
            }
            for todo in outcome.todos
        ]
    }


_HERE = os.path.dirname(__file__)

_PATH = {"file_path": "path"}
_UNREAD = {
    "not-read": "File has not been read yet. Read it first before writing to it.{hint}",
    "stale": "File has been modified since it was read, by the user or a program. Read it again before writing to it.",
}
_MISSING = {"not-found": "File does not exist: {path}{hint}"}
_BINARY = {"binary": "{path} is binary and cannot be edited as text."}
_SAME = {"same-text": "No changes to make: old_string and new_string are exactly the same."}

_NO_FOLDER = {
    "not-found": "Path does not exist: {path}",
    "not-a-folder": "Path is not a directory: {path}",
}

_WAITING = {"block": True, "seconds": 30.0}
_TASK = {"most_chars": 30_000}
_AGENT: dict[str, Any] = {
    "params": {"subagent_type": "kind", "run_in_background": "background"},
    "says": says_task,
    "failed": has_agent_failed,
    "bound": Middle(30_000),
    "also": {"name": {}, "team_name": {}, "isolation": {}, "mode": {}, "effort": {}},
    "unused": ("name", "team_name", "isolation", "mode", "effort"),
}
"""What later versions have besides is understood: a name to call it by, and ways of working that are not offered."""

ALIASES = {
    "KillBash": "TaskStop",
    "KillShell": "TaskStop",
}
"""What earlier versions called them."""


def dialect() -> Dialect:
    """The dialect, read from its files."""
    face = rows(_HERE)

    faces = (
        face(
            "read",
            "Read",
            params=_PATH,
            also={"allow_large": {}},
            unused=("allow_large",),
            lift=from_the_start,
            fill={
                "refuse_bytes": 262_144,
                "most_bytes": 100_000,
                "usual_lines": 2_000,
                "most_lines": 2_000,
                "number_bytes": 10,
                "line_bytes": 8_000,
                "line_chars": 2_000,
                "folders": False,
                "mention_empty": True,
            },
            says=file_renderer("{:>6}→{}", empty=EMPTY, past=PAST),
            errors={
                **_MISSING,
                "binary": "{path} is binary ({count} bytes) and cannot be shown. Use Bash to look into it.",
                "is-folder": "EISDIR: illegal operation on a directory, read '{path}'. Use Glob or Bash to list it.",
                "too-large": "File content exceeds the maximum allowed size. {message}",
            },
            bound=LineLimit(2_000, 102_000),
        ),
        face(
            "write",
            "Write",
            params=_PATH,
            fill={"final_newline": False, "read_first": True},
            says=render_write,
            errors=_UNREAD,
        ),
        face(
            "edit",
            "Edit",
            params={**_PATH, **EDIT},
            fill={"read_first": True, "may_create": True},
            says=render_edit,
            errors={
                **_UNREAD,
                **_MISSING,
                **_BINARY,
                **_SAME,
                "no-match": "String to replace not found in file.\n{message}",
                "ambiguous": "Found {count} matches of the string to replace, but replace_all is false."
                " Set replace_all, or add context until there is one.\n{message}",
                "empty-old": "old_string is empty, but the file exists. Use Write to replace all of it.",
            },
        ),
        face(
            "multi_edit",
            "MultiEdit",
            params=_PATH,
            lift=lift_edits,
            lower=lower_edits,
            fill={"in_turn": True, "read_first": True},
            says=render_edit,
            errors={**_UNREAD, **_MISSING, **_BINARY},
            shown=False,
        ),
        face(
            "glob",
            "Glob",
            fill={"limit": 100, "by_time": True, "offset": 0, "ignored": True},
            says=render_glob,
            errors=_NO_FOLDER,
        ),
        face(
            "grep",
            "Grep",
            params={
                "type": "kind",
                "output_mode": "mode",
                "-n": "numbers",
                "-A": "after",
                "-B": "before",
                "head_limit": "limit",
                "-o": "only_matching",
            },
            also={"context": {"type": "number"}, "-o": {"type": "boolean"}},
            lift=lift_search,
            lower=lower_search,
            said_as={"case_sensitive": "-i"},
            usual={"mode": "files", "case_sensitive": True, "limit": 0},
            fill={"per_file": 0, "line_chars": 500, "by_time": True},
            says=render_grep,
            errors=_NO_FOLDER,
        ),
        face(
            "shell",
            "Bash",
            params={
                "timeout": "seconds",
                "run_in_background": "background",
                "dangerouslyDisableSandbox": "outside",
            },
            per={"seconds": 1000},
            usual={"seconds": 120.0},
            fill={
                "most_seconds": 600.0,
                "head_chars": 60_000,
                "tail_chars": 60_000,
                "yields": True,
                "carry": True,
            },
            says=render_command,
            failed=has_failed,
            bound=Middle(30_000),
        ),
        face(
            "notebook_edit",
            "NotebookEdit",
            params={"notebook_path": "path", "new_source": "source", "edit_mode": "mode"},
            fill={"read_first": True},
            says=cell,
            errors={**_UNREAD, **_MISSING},
        ),
        face(
            "list_dir",
            "LS",
            fill={"depth": 1, "folders_first": True},
            says=tree,
            errors=_NO_FOLDER,
            shown=False,
        ),
        face(
            "plan",
            "TodoWrite",
            params={"todos": "steps"},
            lift=steps,
            lower=tasks,
            says=render_plan,
            shown=False,
        ),
        face(
            "shell_output",
            "TaskOutput",
            params={"timeout": "seconds"},
            per={"seconds": 1000},
            usual=_WAITING,
            fill=_TASK,
            says=render_task,
        ),
        face(
            "shell_output",
            "BashOutput",
            params={"timeout": "seconds", "filter": "only"},
            per={"seconds": 1000},
            lift=lift_task_id,
            lower=lower_task_id,
            usual=_WAITING,
            fill=_TASK,
            says=render_task,
            aliases=("TaskOutput", "BashOutputTool", "AgentOutput", "AgentOutputTool"),
            shown=False,
        ),
        face("shell_stop", "TaskStop", lift=shell, says=render_stop),
        face("delegate", "Task", **_AGENT),
        face(
            "delegate",
            "Agent",
            like="Task",
            usual={"kind": "general-purpose"},
            aliases=("Task",),
            shown=False,
            **_AGENT,
        ),
        face("skill", "Skill", says=skill),
        face(
            "tool_search",
            "ToolSearch",
            params={"max_results": "limit"},
            usual={"limit": 5},
            fill={"how": "ranked"},
            says=tools_named,
        ),
        face(
            "ask_user",
            "AskUserQuestion",
            **question_arrangement(multiSelect="multiple"),
            also={"annotations": {}},
            unused=("metadata", "annotations"),
            says=render_answers,
        ),
        face("todo_create", "TaskCreate", params={"activeForm": "active_form"}, says=render_created_todo),
        face("todo_get", "TaskGet", params={"taskId": "todo_id"}, says=render_todo),
        also_deleted(
            face(
                "todo_update",
                "TaskUpdate",
                params={
                    "taskId": "todo_id",
                    "activeForm": "active_form",
                    "addBlocks": "add_blocks",
                    "addBlockedBy": "add_blocked_by",
                },
                says=render_updated_todo,
            )
        ),
        face("todo_list", "TaskList", says=render_todos),
        face("enter_plan", "EnterPlanMode", says=render_plan_entry),
        accept_plan(
            face(
                "exit_plan",
                "ExitPlanMode",
                params={"allowedPrompts": "wishes"},
                lift=lift_remote,
                lower=lower_remote,
                says=render_approval,
            )
        ),
        face(
            "web_fetch",
            "WebFetch",
            also={"offset": {}},
            unused=("offset",),
            fill={"across": False},
            says=page_renderer("To read it, call WebFetch again with that address and the same prompt."),
            limit_bytes=LIMIT_BYTES,
        ),
        face("web_search", "WebSearch", says=render_links),
        face("list_mcp_resources", "ListMcpResourcesTool", says=resources),
        face("read_mcp_resource", "ReadMcpResourceTool", says=render_mixed),
        face("lsp", "LSP", params={"filePath": "path"}, says=about_code, errors=_MISSING),
    )
    return Dialect(name="claude", faces=faces, aliases=ALIASES)


def agent_report(outcome: Outcome) -> str:
    """The last message, and below it the id and what it took."""
    if not isinstance(outcome, DelegateOutcome):
        return message(outcome)
    worked = outcome.worked
    tokens = f"{worked.input_tokens:,} tokens in, {worked.output_tokens:,} tokens out"
    return (
        f"{message(outcome)}\n\nagentId: {worked.id} (give it as `resume` to go on with this agent)\n"
        f"<usage>turns: {worked.turns}, tool calls: {worked.calls}, {tokens}, {worked.seconds:.1f} seconds</usage>"
    )


NAMES = (
    *("Read", "Write", "Edit", "Glob", "Grep", "Bash", "WebFetch", "WebSearch", "LSP", "NotebookEdit", "Task", "Skill"),
    *("AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "TaskOutput", "TaskStop"),
    *("TaskCreate", "TaskGet", "TaskUpdate", "TaskList"),
)

BUILT_IN = {"computer": "computer", "text_editor": "str_replace_editor", "bash": "bash"}
"""Tools that the API itself defines, by type without its date → what such a function is called elsewhere."""


class ToolDefinition(NamedTuple):
    """A definition as any model API can take it."""

    name: str
    description: str
    parameters: dict[str, Any]


def is_claude_code_tool(name: str) -> bool:
    """Is it one of the twenty-one tools of Claude Code?"""
    return name in NAMES


def claude_code_definition(anthropic_tool: Mapping[str, Any]) -> ToolDefinition:
    """An Anthropic tool definition as name, description and parameters.

    A tool of Claude Code gets its own description and schema, whatever came with it; the schema may be changed by
    the caller. A tool that the API itself defines becomes a function by its common name. All others pass as they are.
    """
    name = str(anthropic_tool.get("name", ""))
    if is_claude_code_tool(name):
        schema, word = _catalog()
        return ToolDefinition(name, word[name], copy_json(schema[name]))
    kind, _, date = str(anthropic_tool.get("type", "")).rpartition("_")
    name = BUILT_IN.get(kind, name) if date.isdigit() else name
    parameters = anthropic_tool.get("input_schema") or {"type": "object", "properties": {}}
    return ToolDefinition(name, str(anthropic_tool.get("description") or ""), copy_json(parameters))


@cache
def _catalog() -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    return schemas(_HERE), words(_HERE)
