"""Codex's tools: those of today and those that older models still call."""

import os
from typing import Any

from ferrule.core.bound import Middle
from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.codex import arrange, says
from ferrule.dialects.says import patched, reading
from ferrule.dialects.words import rows

_HERE = os.path.dirname(__file__)

LATER = {
    "exec_command": "shell_session",
    "write_stdin": "shell_write",
    "request_user_input": "ask_user",
    "request_permissions": "request_permissions",
    "tool_search": "tool_search",
    "spawn_agent": "delegate",
    "list_mcp_resources": "list_mcp_resources",
    "list_mcp_resource_templates": "list_mcp_resource_templates",
    "read_mcp_resource": "read_mcp_resource",
}
"""Faces whose canonical tools are not here yet."""

_SHELL: dict[str, Any] = {
    "params": {"workdir": "cwd", "timeout_ms": "seconds"},
    "per": {"seconds": 1000},
    "unused": ("login", "sandbox_permissions", "justification", "prefix_rule"),
    "fill": {"head_chars": 80_000, "tail_chars": 80_000},
    "says": says.ran,
    "bound": Middle(40_000),
}


def dialect() -> Dialect:
    """The dialect, read from its files."""
    face = rows(_HERE)
    with open(os.path.join(_HERE, "patch.lark"), encoding="utf-8") as file:
        grammar = file.read()

    faces = (
        face("shell", "shell_command", **_SHELL),
        face(
            "shell",
            "shell",
            **_SHELL,
            lift=arrange.joined,
            lower=arrange.split,
            aliases=("container.exec", "local_shell"),
            shown=False,
        ),
        face(
            "patch",
            "apply_patch",
            params={"input": "patch"},
            text_param="input",
            grammar=grammar,
            says=patched,
        ),
        face(
            "plan",
            "update_plan",
            params={"plan": "steps"},
            lift=arrange.steps,
            lower=arrange.plan,
            says=says.planned,
        ),
        face(
            "view_image",
            "view_image",
            unused=("environment_id",),
            lift=arrange.detail,
            lower=arrange.as_detail,
            says=says.viewed,
        ),
        face(
            "read",
            "read_file",
            params={"file_path": "path", "indentation": "block"},
            fill={
                "usual_lines": 2_000,
                "most_bytes": 100_000,
                "line_chars": 500,
                "decoded": (),
                "folders": False,
                "mention_empty": True,
            },
            says=reading("L{}: {}", empty=says.EMPTY, past=says.PAST),
            errors={
                "binary": "{path} is binary ({count} bytes). Use view_image to look at an image.",
                "is-folder": "{path} is a folder. Use list_dir to list it.",
            },
        ),
        face(
            "list_dir",
            "list_dir",
            params={"dir_path": "path"},
            usual={"limit": 25, "depth": 2},
            says=says.listed,
        ),
        face(
            "grep",
            "grep_files",
            params={"include": "glob"},
            usual={"limit": 100},
            fill={"mode": "files", "by_time": True, "case_sensitive": True},
            says=says.files,
        ),
        *(face(tool, name) for name, tool in LATER.items()),
    )
    return Dialect(name="codex", faces=faces)
