"""Codex's tools: those of today and those that older models still call."""

import os
from typing import Any

from ferrule.core.bound import Middle
from ferrule.dialects.asking import answers_by_id, asking
from ferrule.dialects.dialect import Dialect
from ferrule.dialects.families.codex import agents_said, arrange, says
from ferrule.dialects.says import mixed, patched, reading, resources, tools_named, undone
from ferrule.dialects.words import rows

_HERE = os.path.dirname(__file__)

_SHELL: dict[str, Any] = {
    "params": {"workdir": "cwd", "timeout_ms": "seconds", "justification": "description"},
    "per": {"seconds": 1000},
    "said_as": {"outside": "sandbox_permissions"},
    "unused": ("login", "prefix_rule"),
    "fill": {"head_chars": 80_000, "tail_chars": 80_000},
    "says": says.ran,
    "bound": Middle(40_000),
    "shown": False,
}
_YIELD = {"yield_time_ms": "seconds", "max_output_tokens": "most_tokens"}


def dialect() -> Dialect:
    """The dialect, read from its files."""
    face = rows(_HERE)
    with open(os.path.join(_HERE, "patch.lark"), encoding="utf-8") as file:
        grammar = file.read()

    faces = (
        face(
            "shell_session",
            "exec_command",
            params={
                "cmd": "command",
                "workdir": "cwd",
                "tty": "terminal",
                "justification": "description",
                **_YIELD,
            },
            per={"seconds": 1000},
            lift=arrange.outside,
            lower=arrange.permissions,
            said_as={"outside": "sandbox_permissions"},
            unused=("shell", "login", "environment_id", "prefix_rule", "additional_permissions"),
            says=says.session,
        ),
        face(
            "shell_write",
            "write_stdin",
            params={"session_id": "number", **_YIELD},
            per={"seconds": 1000},
            says=says.session,
        ),
        face("shell", "shell_command", **_SHELL, lift=arrange.outside, lower=arrange.permissions),
        face(
            "shell",
            "shell",
            **_SHELL,
            lift=arrange.joined,
            lower=arrange.split,
            aliases=("container.exec", "local_shell"),
        ),
        face(
            "request_permissions",
            "request_permissions",
            lift=arrange.wanted,
            lower=arrange.wants,
            said_as=dict.fromkeys(("network", "read", "write"), "permissions"),
            unused=("environment_id",),
            says=says.permitted,
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
        face("ask_user", "request_user_input", **asking(id="id"), says=answers_by_id),
        face("tool_search", "tool_search", usual={"limit": 8}, fill={"how": "ranked"}, says=tools_named),
        face("list_mcp_resources", "list_mcp_resources", says=resources),
        face("list_mcp_resource_templates", "list_mcp_resource_templates", says=resources),
        face("read_mcp_resource", "read_mcp_resource", says=mixed),
        face(
            "delegate",
            "spawn_agent",
            params={
                "message": "prompt",
                "task_name": "description",
                "agent_type": "kind",
                "fork_turns": "history",
            },
            unused=("reasoning_effort",),
            lift=arrange.spawned,
            lower=arrange.spawn,
            says=agents_said.spawned,
            failed=undone,
        ),
        face(
            "delegate",
            "spawn_agent_v1",
            like="spawn_agent",
            params={"message": "prompt", "agent_type": "kind", "fork_context": "history"},
            unused=("reasoning_effort", "service_tier"),
            lift=arrange.spawned_of_items,
            lower=arrange.spawn_of_items,
            said_as={"prompt": "message"},
            says=agents_said.spawned,
            failed=undone,
            aliases=("spawn_agent",),
            shown=False,
        ),
        face(
            "agent_wait",
            "wait_agent",
            params={"targets": "ids", "timeout_ms": "seconds"},
            per={"seconds": 1000},
            says=agents_said.waited,
        ),
        face("agent_list", "list_agents", params={"path_prefix": "begins"}, says=agents_said.listed),
        face("agent_list", "resume_agent", says=agents_said.resumed, shown=False),
        face(
            "agent_send",
            "send_input",
            params={"target": "id"},
            lift=arrange.sent_of_items,
            says=agents_said.sent,
            aliases=("send_message", "followup_task"),
        ),
        face(
            "agent_stop", "close_agent", params={"target": "id"}, says=agents_said.closed, aliases=("interrupt_agent",)
        ),
    )
    return Dialect(name="codex", faces=faces, defers=True)
