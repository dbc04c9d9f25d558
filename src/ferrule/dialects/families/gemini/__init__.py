"""Gemini's tools."""

import os
from typing import Any

from ferrule.core.face import Face
from ferrule.dialects.asking import answers, asking
from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.gemini import arrange, says, todos
from ferrule.dialects.link_says import numbered
from ferrule.dialects.page_says import LIMIT_BYTES, pages
from ferrule.dialects.plan_says import also_given, approved, entered
from ferrule.dialects.says import delegated, mixed, reading, undone
from ferrule.dialects.words import rows

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
            lift=arrange.lines,
            lower=arrange.as_lines,
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
            says=reading(says.text),
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
            lift=arrange.ignoring,
            lower=arrange.as_option,
            said_as={"ignored": "file_filtering_options"},
            says=says.many,
        ),
        face("write", "write_file", params={"file_path": "path"}, fill={"final_newline": False}, says=says.written),
        face(
            "edit",
            "replace",
            params={**_EDIT, "allow_multiple": "everywhere"},
            unused=("instruction",),
            fill={"may_create": True},
            says=says.edited,
            errors=_EDIT_ERRORS,
        ),
        face(
            "edit",
            "smart_edit",
            params={**_EDIT, "expected_replacements": "expected"},
            unused=("instruction",),
            fill={"may_create": True},
            says=says.edited,
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
            says=says.ran,
        ),
        face("shell_list", "list_background_processes", says=says.tasks),
        face(
            "shell_output",
            "read_background_output",
            params={"delay_ms": "seconds"},
            per={"seconds": 1000},
            lift=arrange.looking,
            fill={"block": True, "most_chars": 80_000},
            says=says.printed,
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
            lift=arrange.search,
            lower=arrange.searched,
            said_as={"mode": "names_only"},
            usual={"per_file": 0, "limit": 100},
            fill={"line_chars": 2_000},
            says=says.matched,
            errors=_NO_PATH,
        ),
        face(
            "glob",
            "glob",
            params={"dir_path": "path"},
            lift=arrange.ignoring,
            lower=arrange.as_parameter,
            said_as={"ignored": "respect_git_ignore"},
            usual={"case_sensitive": False},
            fill={"by_time": True, "limit": 1_000},
            says=says.found,
            errors=_NO_PATH,
        ),
        face(
            "list_dir",
            "list_directory",
            params={"dir_path": "path"},
            lift=arrange.ignoring,
            lower=arrange.as_option,
            said_as={"ignored": "file_filtering_options"},
            usual={"ignored": False},
            fill={"depth": 1, "folders_first": True, "limit": 2_000},
            says=says.listed,
            errors={
                "not-found": "Error: Failed to list directory. {path} is not there.",
                "not-a-folder": "Error: Path is not a directory: {path}",
            },
        ),
        face(
            "plan",
            "write_todos",
            params={"todos": "steps"},
            lift=arrange.steps,
            lower=arrange.todos,
            says=says.planned,
        ),
        face("skill", "activate_skill", params={"name": "skill"}, says=says.skill),
        face(
            "ask_user",
            "ask_user",
            **asking(type="kind", multiSelect="multiple", placeholder="placeholder"),
            fill={"header_chars": 16},
            says=answers,
        ),
        face(
            "todo_create",
            "tracker_create_task",
            params={"title": "subject", "type": "kind", "parentId": "parent", "dependencies": "blocked_by"},
            lower=todos.kind,
            says=todos.created,
        ),
        face(
            "todo_update",
            "tracker_update_task",
            params={"id": "todo_id", "title": "subject", "dependencies": "blocked_by"},
            lift=todos.heard,
            lower=todos.said,
            says=todos.updated,
        ),
        face("todo_get", "tracker_get_task", params={"id": "todo_id"}, says=todos.seen),
        face(
            "todo_list",
            "tracker_list_tasks",
            params={"type": "kind", "parentId": "parent"},
            lift=todos.wanted,
            lower=todos.wants,
            says=todos.listed,
        ),
        face(
            "todo_update",
            "tracker_add_dependency",
            params={"taskId": "todo_id"},
            lift=todos.dependency,
            lower=todos.as_dependency,
            said_as={"add_blocked_by": "dependencyId"},
            says=todos.depends,
            shown=False,
        ),
        face("todo_list", "tracker_visualize", says=todos.drawn, shown=False),
        face("enter_plan", "enter_plan_mode", says=entered),
        also_given(face("exit_plan", "exit_plan_mode", params={"plan_filename": "file"}, says=approved)),
        face("list_mcp_resources", "list_mcp_resources", params={"serverName": "server"}, says=says.resources),
        face("read_mcp_resource", "read_mcp_resource", says=mixed),
        face(
            "delegate",
            "invoke_agent",
            params={"agent_name": "kind"},
            lower=arrange.agent,
            says=delegated,
            failed=undone,
        ),
        face(
            "web_fetch",
            "web_fetch",
            lift=arrange.addresses,
            lower=arrange.as_addresses,
            said_as={"url": "prompt", "more": "prompt"},
            fill={"across": True},
            says=pages("To read it, call web_fetch again with that address in the prompt."),
            limit_bytes=LIMIT_BYTES,
        ),
        face(
            "web_search",
            "google_web_search",
            says=numbered('Web search results for "{query}":', none='No search results found for "{query}".'),
        ),
    )
    # What the search was called before.
    return Dialect(name="gemini", faces=faces, aliases={"search_file_content": "grep_search"})
