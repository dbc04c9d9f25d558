"""Amp's tools: ten faces, their aliases, and how their outcomes read."""

import os
from typing import Any

from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.amp import arrange, preprocess, says, todos
from ferrule.dialects.says import delegated, reading, undone
from ferrule.dialects.words import rows

_HERE = os.path.dirname(__file__)

ALIASES = {
    "read": "Read",
    "read_file": "Read",
    "Write": "create_file",
    "write": "create_file",
    "write_file": "create_file",
    "Edit": "edit_file",
    "edit": "edit_file",
    "Delete": "delete_file",
    "delete": "delete_file",
}

_SHELL: dict[str, Any] = {
    "params": {"cmd": "command"},
    "fill": {"tail_chars": 50_000, "tail_bytes": 100_000},
    "preprocess": preprocess.command,
    "says": says.ran,
}
_MISSING = "ENOENT: no such file or directory '{path}'{hint}"


def dialect() -> Dialect:
    """The dialect, read from its files."""
    face = rows(_HERE)
    faces = (
        face(
            "read",
            "Read",
            params={"read_range": "span"},
            lift=arrange.span,
            lower=arrange.as_span,
            said_as={"offset": "read_range", "limit": "read_range"},
            fill={
                "refuse_bytes": 65_536,
                "most_bytes": 65_536,
                "usual_lines": 500,
                "most_lines": 2_000,
                "line_bytes": 4_096,
                "decoded": ("image", "document"),
            },
            says=reading("{}: {}"),
            errors={
                "not-found": _MISSING,
                "binary": "File appears to be binary and cannot be displayed as text.",
                "too-large": "File content exceeds maximum allowed size (65536 bytes). {message}",
            },
        ),
        face(
            "edit",
            "edit_file",
            params={"old_str": "old", "new_str": "new", "replace_all": "everywhere"},
            says=says.edited,
            errors={
                "not-found": "file not found. Cannot update a file that doesn't exist.",
                "no-match": "Could not find exact match for old_str\n{message}",
                "ambiguous": "found multiple matches for edit ({count} occurrences)."
                " Use replace_all or provide more context.\n{message}",
                "same-text": "old_str and new_str must be different",
                "empty-old": "old_str must not be empty. To write a whole file, use create_file.",
            },
        ),
        face(
            "write",
            "create_file",
            fill={"final_newline": True, "name_guidance": True},
            says=says.created,
        ),
        face("shell", "Bash", **_SHELL),
        face("shell", "run_terminal_command", like="Bash", **_SHELL, shown=False),
        face(
            "glob",
            "glob",
            params={"filePattern": "pattern"},
            says=says.files_and_remaining,
        ),
        face(
            "grep",
            "Grep",
            params={"caseSensitive": "case_sensitive"},
            lift=arrange.one_place,
            fill={"per_file": 10, "limit": 100, "line_chars": 200},
            says=says.lines,
            errors={"not-found": _MISSING, "bad-pattern": "{message}\n" + says.NOTHING_FOUND[1]},
        ),
        face(
            "delete",
            "delete_file",
            says=says.deleted,
            errors={"not-found": _MISSING},
        ),
        face(
            "undo",
            "undo_edit",
            says=says.restored,
        ),
        face(
            "format",
            "format_file",
            says=says.formatted,
            errors={"not-found": _MISSING},
        ),
        face("check", "Check", params={"checks": "only"}, says=says.checked),
        face("skill", "skill", params={"name": "skill", "arguments": "args"}, says=says.skill),
        face(
            "todos",
            "task_list",
            params={
                "taskID": "todo_id",
                "title": "subject",
                "repoURL": "repository",
                "dependsOn": "blocked_by",
                "parentID": "parent",
            },
            lift=todos.heard,
            lower=todos.said,
            says=todos.done,
        ),
        face(
            "delegate",
            "Task",
            usual={"kind": "general-purpose"},
            lower=arrange.task,
            says=delegated,
            failed=undone,
        ),
        face("finder", "finder", says=says.places),
        face("oracle", "oracle", says=says.answered),
        face("librarian", "librarian", says=says.answered),
        face("kraken", "kraken", says=says.reworked),
        arrange.by_query(
            face(
                "web_search",
                "web_search",
                params={"search_queries": "queries", "max_results": "results"},
                lift=arrange.objective,
                lower=arrange.as_objective,
                said_as={"query": "objective"},
                says=says.links,
            )
        ),
        face(
            "web_fetch",
            "read_web_page",
            params={"objective": "prompt", "forceRefetch": "fresh"},
            fill={"across": True},
            says=says.page,
            limit_bytes=says.PAGE_LIMIT_BYTES,
        ),
        face("read_thread", "read_thread", params={"threadID": "thread"}, says=says.thread),
        face("find_thread", "find_thread", says=says.threads),
        face("diagnostics", "get_diagnostics", says=says.problems, errors={"not-found": _MISSING}),
    )
    return Dialect(name="amp", faces=faces, notes=".amp", aliases=ALIASES)
