"""List the built-in tools. Importing this registers nothing and loads none of them.

The line of a tool says where it is, and what others have to know of it before it is loaded: rules, plan mode and
start-up ask that of all tools. What is only asked of a loaded tool, such as its title, stands on its class.
"""

import importlib

from ferrule.core.tool import NO_FACTS, AnyTool, Facts


class ToolRow(Facts, frozen=True):
    """The facts of a built-in tool, and where it is."""

    module: str
    """Below this package."""
    class_name: str


BUILTIN = {
    "read": ToolRow("files.read", "Read", kind="read", rules="Read", planning="reads", asks_secrets=True),
    "read_many": ToolRow("search.find", "ReadMany", kind="read", rules="Read", planning="reads", watched_as=("read",)),
    "view_image": ToolRow("files.read", "ViewImage", kind="read", rules="Read", planning="reads", watched_as=("read",)),
    "list_dir": ToolRow("search.find", "ListDir", kind="read", rules="Read", planning="reads"),
    "edit": ToolRow("files.edit", "Edit", kind="edit", rules="Edit", writes_plan=3),
    "multi_edit": ToolRow("files.edit", "MultiEdit", kind="edit", rules="Edit", writes_plan=4, watched_as=("edit",)),
    "write": ToolRow("files.edit", "Write", kind="edit", rules="Edit", writes_plan=1),
    "patch": ToolRow("files.patch", "Patch", kind="edit", rules="Edit", writes_plan=2, watched_as=("edit", "write")),
    "notebook_edit": ToolRow("files.notebook", "NotebookEdit", kind="edit", rules="Edit"),
    "delete": ToolRow("files.edit", "Delete", kind="file", rules="Edit", watched_as=("edit", "write"), verb="delete"),
    "undo": ToolRow(
        "files.edit",
        "UndoEdit",
        kind="file",
        rules="Edit",
        watched_as=("edit", "write"),
        verb="take back the last write of",
    ),
    "format": ToolRow(
        "files.format", "Format", kind="format", rules="Edit", commands="found", watched_as=("edit", "write")
    ),
    "check": ToolRow("checks.tool", "RunChecks", kind="check", commands="found", reserved=True),
    "shell": ToolRow(
        "shell.shell",
        "Shell",
        kind="command",
        rules="Bash",
        planning="reads",
        commands="given",
        reserved=True,
        siblings=("shell_session",),
    ),
    "shell_output": ToolRow("shell.tasks", "ShellOutput", kind="task", planning="reads"),
    "shell_stop": ToolRow("shell.tasks", "ShellStop", kind="task"),
    "shell_list": ToolRow("shell.tasks", "ShellList", kind="task", planning="reads"),
    "shell_session": ToolRow(
        "shell.tasks",
        "ShellSession",
        kind="command",
        rules="Bash",
        planning="reads",
        commands="given",
        reserved=True,
        siblings=("shell",),
        watched_as=("shell",),
    ),
    "shell_write": ToolRow("shell.tasks", "ShellWrite", kind="task", planning="reads", watched_as=("shell",)),
    "request_permissions": ToolRow("shell.shell", "Widen", kind="ask"),
    "glob": ToolRow("search.find", "Glob", kind="read", rules="Read", planning="reads"),
    "grep": ToolRow("search.grep", "Grep", kind="read", rules="Read", planning="reads"),
    "web_fetch": ToolRow("web.fetch", "WebFetch", kind="web", rules="WebFetch", planning="reads", internal=("across",)),
    "web_search": ToolRow("web.search", "WebSearch", kind="web", planning="reads"),
    "lsp": ToolRow("lsp.tool", "Lsp", kind="read", rules="Read", planning="reads"),
    "diagnostics": ToolRow("lsp.diagnostics", "Diagnostics", kind="read", rules="Read", planning="reads"),
    "plan": ToolRow("plan", "Plan", kind="plan", planning="reads"),
    "enter_plan": ToolRow("plan", "EnterPlan", kind="plan", planning="turns"),
    "exit_plan": ToolRow("plan", "ExitPlan", kind="plan", planning="turns", writes_plan=5),
    "ask_user": ToolRow("meta", "AskUser", kind="ask", planning="reads"),
    "todo_create": ToolRow("todos.tools", "TodoCreate", kind="todo", planning="reads"),
    "todo_get": ToolRow("todos.tools", "TodoGet", kind="todo", planning="reads"),
    "todo_update": ToolRow("todos.tools", "TodoUpdate", kind="todo", planning="reads"),
    "todo_list": ToolRow("todos.tools", "TodoList", kind="todo", planning="reads"),
    "todos": ToolRow("todos.tools", "AllTodos", kind="todo", planning="reads"),
    "skill": ToolRow(
        "skills.tool",
        "UseSkill",
        kind="skill",
        rules="Skill",
        planning="reads",
        commands="found",
        reserved=True,
        offered="on request",
    ),
    "find_thread": ToolRow("threads.tools", "FindThread", kind="thread", planning="reads"),
    "read_thread": ToolRow("threads.tools", "ReadThread", kind="thread", planning="reads"),
    "delegate": ToolRow(
        "agents.delegate", "Delegate", kind="agent", rules="Agent", planning="reads", offered="with a model"
    ),
    "agent_wait": ToolRow("agents.delegate", "AgentWait", kind="agent", planning="reads", offered="with a model"),
    "agent_list": ToolRow("agents.delegate", "AgentList", kind="agent", planning="reads", offered="with a model"),
    "agent_send": ToolRow("agents.delegate", "AgentSend", kind="agent", planning="reads", offered="with a model"),
    "agent_stop": ToolRow("agents.delegate", "AgentStop", kind="agent", planning="reads", offered="with a model"),
    "finder": ToolRow("agents.finder", "Finder", kind="agent", planning="reads"),
    "oracle": ToolRow("agents.delegate", "Oracle", kind="agent", planning="reads", offered="with a model"),
    "librarian": ToolRow("agents.delegate", "Librarian", kind="agent", planning="reads", offered="with repositories"),
    "kraken": ToolRow("agents.kraken", "Kraken", kind="agent", offered="with a model"),
    "tool_search": ToolRow("meta", "ToolSearch", kind="meta", planning="reads", offered="on request"),
    "list_mcp_resources": ToolRow("meta", "ListResources", kind="meta", offered="on request"),
    "list_mcp_resource_templates": ToolRow("meta", "ListResourceTemplates", kind="meta", offered="on request"),
    "read_mcp_resource": ToolRow("meta", "ReadResource", kind="meta", offered="on request"),
}
"""Canonical name → the tool's facts."""

# The tools that others call, show or offer themselves, whatever their facts are.
READ, EDIT, SHELL, CHECK = "read", "edit", "shell", "check"
ASK_USER, ENTER_PLAN, EXIT_PLAN = "ask_user", "enter_plan", "exit_plan"
SKILL, DELEGATE, TOOL_SEARCH, WEB_FETCH = "skill", "delegate", "tool_search", "web_fetch"
LIST_RESOURCES, LIST_TEMPLATES = "list_mcp_resources", "list_mcp_resource_templates"
READ_RESOURCE = "read_mcp_resource"

_OFFERED = [name for name, tool in BUILTIN.items() if tool.offered == "on request"]
ON_REQUEST = tuple(sorted(_OFFERED, key=lambda name: name != TOOL_SEARCH))
"""Tools that are advertised only if there is something for them to do; the search first."""
NEED_MODEL = frozenset(name for name, tool in BUILTIN.items() if tool.offered in {"with a model", "with repositories"})
"""Tools that are nothing without subagents: a session without a model does not show them."""


def facts_of(name: str) -> Facts:
    """Return what is true of the built-in tool of this name; of any other name nothing is."""
    return BUILTIN.get(name, NO_FACTS)


def load(name: str) -> AnyTool:
    """Return a built-in tool by its canonical name."""
    row = BUILTIN[name]
    tool: AnyTool = getattr(importlib.import_module(f"ferrule.tools.{row.module}"), row.class_name)()
    tool.facts, tool.source = row, "builtin"
    return tool
