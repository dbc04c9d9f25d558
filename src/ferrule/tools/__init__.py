"""The built-in tools, one file each. The list is written out; importing registers nothing and loads none of them."""

import importlib

from ferrule.core.tool import AnyTool

BUILTIN = {
    "read": ("files.read", "Read"),
    "read_many": ("search.read_many", "ReadMany"),
    "view_image": ("files.view", "ViewImage"),
    "list_dir": ("search.find", "ListDir"),
    "edit": ("files.edit", "Edit"),
    "multi_edit": ("files.edit", "MultiEdit"),
    "write": ("files.edit", "Write"),
    "patch": ("files.patch", "Patch"),
    "notebook_edit": ("files.notebook", "NotebookEdit"),
    "delete": ("files.edit", "Delete"),
    "undo": ("files.undo", "UndoEdit"),
    "format": ("files.format", "Format"),
    "check": ("checks.tool", "RunChecks"),
    "shell": ("shell.shell", "Shell"),
    "shell_output": ("shell.tasks", "ShellOutput"),
    "shell_stop": ("shell.tasks", "ShellStop"),
    "shell_list": ("shell.tasks", "ShellList"),
    "shell_session": ("shell.tasks", "ShellSession"),
    "shell_write": ("shell.tasks", "ShellWrite"),
    "request_permissions": ("shell.request_permissions", "Widen"),
    "glob": ("search.find", "Glob"),
    "grep": ("search.grep", "Grep"),
    "web_fetch": ("web.fetch", "WebFetch"),
    "web_search": ("web.search", "WebSearch"),
    "lsp": ("lsp.tool", "Lsp"),
    "diagnostics": ("lsp.problems", "Diagnostics"),
    "plan": ("plan", "Plan"),
    "enter_plan": ("plan", "EnterPlan"),
    "exit_plan": ("plan", "ExitPlan"),
    "ask_user": ("ask_user", "AskUser"),
    "todo_create": ("todos.tools", "TodoCreate"),
    "todo_get": ("todos.tools", "TodoGet"),
    "todo_update": ("todos.tools", "TodoUpdate"),
    "todo_list": ("todos.tools", "TodoList"),
    "todos": ("todos.tools", "AllTodos"),
    "skill": ("skills.tool", "UseSkill"),
    "find_thread": ("threads.tools", "FindThread"),
    "read_thread": ("threads.tools", "ReadThread"),
    "delegate": ("agents.delegate", "Delegate"),
    "agent_wait": ("agents.delegate", "AgentWait"),
    "agent_list": ("agents.delegate", "AgentList"),
    "agent_send": ("agents.delegate", "AgentSend"),
    "agent_stop": ("agents.delegate", "AgentStop"),
    "finder": ("agents.finder", "Finder"),
    "oracle": ("agents.oracle", "Oracle"),
    "librarian": ("agents.oracle", "Librarian"),
    "kraken": ("agents.kraken", "Kraken"),
    "tool_search": ("meta", "ToolSearch"),
    "list_mcp_resources": ("meta", "ListResources"),
    "list_mcp_resource_templates": ("meta", "ListResourceTemplates"),
    "read_mcp_resource": ("meta", "ReadResource"),
}
"""Canonical name → module below this one, and class."""


def load(name: str) -> AnyTool:
    """A built-in tool by its canonical name."""
    module, kind = BUILTIN[name]
    tool: AnyTool = getattr(importlib.import_module(f"ferrule.tools.{module}"), kind)()
    return tool
