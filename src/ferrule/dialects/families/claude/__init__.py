"""Claude Code's tools: those of the seed, advertised where their tools are here, some older and some newer ones."""

import os
from typing import Any

from ferrule.core.bound import Lines, Middle
from ferrule.dialects.asking import answered, asking
from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.claude import arrange, plan_said, says, todos_said
from ferrule.dialects.link_says import linked
from ferrule.dialects.page_says import LIMIT_BYTES, pages
from ferrule.dialects.plan_says import also_given, entered
from ferrule.dialects.says import about_code, mixed, reading, resources, tools_named, tree, undone
from ferrule.dialects.words import rows

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
    "says": says.task,
    "failed": undone,
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
            lift=arrange.from_the_start,
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
            says=reading("{:>6}→{}", empty=says.EMPTY, past=says.PAST),
            errors={
                **_MISSING,
                "binary": "{path} is binary ({count} bytes) and cannot be shown. Use Bash to look into it.",
                "is-folder": "EISDIR: illegal operation on a directory, read '{path}'. Use Glob or Bash to list it.",
                "too-large": "File content exceeds the maximum allowed size. {message}",
            },
            bound=Lines(2_000, 102_000),
        ),
        face(
            "write",
            "Write",
            params=_PATH,
            fill={"final_newline": False, "read_first": True},
            says=says.written,
            errors=_UNREAD,
        ),
        face(
            "edit",
            "Edit",
            params={**_PATH, **arrange.EDIT},
            fill={"read_first": True, "may_create": True},
            says=says.edited,
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
            lift=arrange.edits,
            lower=arrange.edits_shown,
            fill={"in_turn": True, "read_first": True},
            says=says.edited,
            errors={**_UNREAD, **_MISSING, **_BINARY},
            shown=False,
        ),
        face(
            "glob",
            "Glob",
            fill={"limit": 100, "by_time": True, "offset": 0, "ignored": True},
            says=says.found,
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
            lift=arrange.search,
            lower=arrange.searched,
            said_as={"case_sensitive": "-i"},
            usual={"mode": "files", "case_sensitive": True, "limit": 0},
            fill={"per_file": 0, "line_chars": 500, "by_time": True},
            says=says.matched,
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
            says=says.ran,
            failed=says.failed,
            bound=Middle(30_000),
        ),
        face(
            "notebook_edit",
            "NotebookEdit",
            params={"notebook_path": "path", "new_source": "source", "edit_mode": "mode"},
            fill={"read_first": True},
            says=says.cell,
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
            lift=arrange.steps,
            lower=arrange.tasks,
            says=says.planned,
            shown=False,
        ),
        face(
            "shell_output",
            "TaskOutput",
            params={"timeout": "seconds"},
            per={"seconds": 1000},
            usual=_WAITING,
            fill=_TASK,
            says=says.read,
        ),
        face(
            "shell_output",
            "BashOutput",
            params={"timeout": "seconds", "filter": "only"},
            per={"seconds": 1000},
            lift=arrange.task,
            lower=arrange.named,
            usual=_WAITING,
            fill=_TASK,
            says=says.read,
            aliases=("TaskOutput", "BashOutputTool", "AgentOutput", "AgentOutputTool"),
            shown=False,
        ),
        face("shell_stop", "TaskStop", lift=arrange.shell, says=says.stopped),
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
        face("skill", "Skill", says=says.skill),
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
            **asking(multiSelect="multiple"),
            also={"annotations": {}},
            unused=("metadata", "annotations"),
            says=answered,
        ),
        face("todo_create", "TaskCreate", params={"activeForm": "active_form"}, says=todos_said.created),
        face("todo_get", "TaskGet", params={"taskId": "todo_id"}, says=todos_said.seen),
        todos_said.also_deleted(
            face(
                "todo_update",
                "TaskUpdate",
                params={
                    "taskId": "todo_id",
                    "activeForm": "active_form",
                    "addBlocks": "add_blocks",
                    "addBlockedBy": "add_blocked_by",
                },
                says=todos_said.updated,
            )
        ),
        face("todo_list", "TaskList", says=todos_said.listed),
        face("enter_plan", "EnterPlanMode", says=entered),
        also_given(
            face(
                "exit_plan",
                "ExitPlanMode",
                params={"allowedPrompts": "wishes"},
                lift=plan_said.leaving,
                lower=plan_said.as_leaving,
                says=plan_said.approved,
            )
        ),
        face(
            "web_fetch",
            "WebFetch",
            also={"offset": {}},
            unused=("offset",),
            fill={"across": False},
            says=pages("To read it, call WebFetch again with that address and the same prompt."),
            limit_bytes=LIMIT_BYTES,
        ),
        face("web_search", "WebSearch", says=linked),
        face("list_mcp_resources", "ListMcpResourcesTool", says=resources),
        face("read_mcp_resource", "ReadMcpResourceTool", says=mixed),
        face("lsp", "LSP", params={"filePath": "path"}, says=about_code, errors=_MISSING),
    )
    return Dialect(name="claude", faces=faces, aliases=ALIASES)
