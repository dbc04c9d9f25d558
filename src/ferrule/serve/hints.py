"""What MCP clients are told of each tool beside its description: a title, and hints of what it does."""

from collections.abc import Mapping
from typing import Any

from ferrule.core.tool import AnyTool
from ferrule.output.clean import clean

_READS = {"readOnlyHint": True, "openWorldHint": False}
_ADDS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_CHANGES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": False}
_REPLACES = {**_CHANGES, "idempotentHint": True}
_RUNS = {**_CHANGES, "openWorldHint": True}

HINTS: Mapping[str, Mapping[str, Any]] = {
    "read": {"title": "Read a file", **_READS},
    "read_many": {"title": "Read several files", **_READS},
    "view_image": {"title": "Look at a picture", **_READS},
    "list_dir": {"title": "List a folder", **_READS},
    "glob": {"title": "Find files by name", **_READS},
    "grep": {"title": "Search in files", **_READS},
    "web_fetch": {"title": "Read a page of the web", **_READS, "openWorldHint": True},
    "web_search": {"title": "Search the web", **_READS, "openWorldHint": True},
    "lsp": {"title": "Ask a language server", **_READS},
    "diagnostics": {"title": "List the problems in files", **_READS},
    "edit": {"title": "Edit a file", **_CHANGES},
    "multi_edit": {"title": "Edit a file in several places", **_CHANGES},
    "patch": {"title": "Apply a patch", **_CHANGES},
    "notebook_edit": {"title": "Edit a notebook", **_CHANGES},
    "undo": {"title": "Take back the last edit", **_CHANGES},
    "write": {"title": "Write a file", **_REPLACES},
    "delete": {"title": "Delete a file", **_REPLACES},
    "format": {"title": "Format a file", **_REPLACES},
    "check": {"title": "Run the project's checks", **_RUNS},
    "shell": {"title": "Run a command", **_RUNS},
    "shell_session": {"title": "Run a command in a session", **_RUNS},
    "shell_write": {"title": "Type into a running command", **_RUNS},
    "shell_output": {"title": "Read a running command's output", **_READS},
    "shell_list": {"title": "List running commands", **_READS},
    "shell_stop": {"title": "End a running command", **_REPLACES},
    "request_permissions": {"title": "Ask for more permissions", **_ADDS},
    "plan": {"title": "Keep a plan", **_ADDS},
    "enter_plan": {"title": "Begin to plan", **_ADDS},
    "exit_plan": {"title": "Have the plan approved", **_ADDS, "idempotentHint": False},
    "delegate": {"title": "Give a task to an agent", **_RUNS},
    "agent_wait": {"title": "Wait for an agent", **_READS},
    "agent_list": {"title": "List the agents", **_READS},
    "agent_send": {"title": "Tell an agent more", **_READS},
    "agent_stop": {"title": "Stop an agent", **_REPLACES},
    "ask_user": {"title": "Ask the user", **_READS},
    "todo_create": {"title": "Note a task", **_ADDS, "idempotentHint": False},
    "todo_get": {"title": "Look up a task", **_READS},
    "todo_update": {"title": "Change a task", **_REPLACES},
    "todo_list": {"title": "List the tasks", **_READS},
    "todos": {"title": "Keep a list of tasks", **_CHANGES},
    "skill": {"title": "Load a skill", **_ADDS, "openWorldHint": True},
    "finder": {"title": "Find code by what it does", **_READS},
    "oracle": {"title": "Ask for deep reasoning", **_READS, "openWorldHint": True},
    "librarian": {"title": "Ask about other repositories", **_READS},
    "kraken": {"title": "Change many files at once", **_CHANGES},
    "find_thread": {"title": "Find earlier threads", **_READS},
    "read_thread": {"title": "Read an earlier thread", **_READS},
    "tool_search": {"title": "Search for tools", **_READS},
    "list_mcp_resources": {"title": "List the resources of servers", **_READS, "openWorldHint": True},
    "list_mcp_resource_templates": {"title": "List the resource templates", **_READS, "openWorldHint": True},
    "read_mcp_resource": {"title": "Read a resource of a server", **_READS, "openWorldHint": True},
}
"""Canonical tool → its annotations."""

_BUILT_IN = "ferrule.tools."
"""A tool that the user gave may have the name of a built-in one, and do something else."""
_FLAGS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def annotations(tool: AnyTool) -> dict[str, Any] | None:
    """Of a built-in tool as the table has them, of another as it says of itself; None where nothing is known.

    What a tool says of itself spares no question here: these are for whoever shows the tools to a person.
    """
    if type(tool).__module__.startswith(_BUILT_IN):
        known = HINTS.get(tool.name)
        return None if known is None else dict(known)
    said = tool.hints
    kept: dict[str, Any] = {flag: said[flag] for flag in _FLAGS if isinstance(said.get(flag), bool)}
    if isinstance(said.get("title"), str) and said["title"]:
        kept = {"title": clean(said["title"]), **kept}
    return kept or None
