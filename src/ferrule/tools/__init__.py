"""The built-in tools, one file each. The list is written out; importing registers nothing and loads none of them."""

import importlib

from ferrule.core.tool import AnyTool

BUILTIN = {
    "read": ("files.read", "Read"),
    "read_many": ("search.read_many", "ReadMany"),
    "view_image": ("files.view", "ViewImage"),
    "list_dir": ("search.list_dir", "ListDir"),
    "edit": ("files.edit", "Edit"),
    "multi_edit": ("files.multi_edit", "MultiEdit"),
    "write": ("files.write", "Write"),
    "patch": ("files.patch", "Patch"),
    "notebook_edit": ("files.notebook", "NotebookEdit"),
    "delete": ("files.delete", "Delete"),
    "undo": ("files.undo", "UndoEdit"),
    "format": ("files.format", "Format"),
    "check": ("checks.check", "RunChecks"),
    "shell": ("shell.shell", "Shell"),
    "shell_output": ("shell.shell_output", "ShellOutput"),
    "shell_stop": ("shell.shell_stop", "ShellStop"),
    "shell_list": ("shell.shell_list", "ShellList"),
    "shell_session": ("shell.shell_session", "ShellSession"),
    "shell_write": ("shell.shell_write", "ShellWrite"),
    "request_permissions": ("shell.widen", "Widen"),
    "glob": ("search.glob", "Glob"),
    "grep": ("search.grep", "Grep"),
    "web_fetch": ("web.fetch", "WebFetch"),
    "web_search": ("web.search", "WebSearch"),
    "lsp": ("code.lsp", "Lsp"),
    "diagnostics": ("code.diagnostics", "Diagnostics"),
    "plan": ("plan.plan", "Plan"),
    "enter_plan": ("plan.enter_plan", "EnterPlan"),
    "exit_plan": ("plan.exit_plan", "ExitPlan"),
    "ask_user": ("plan.ask_user", "AskUser"),
    "todo_create": ("todos.todo_create", "TodoCreate"),
    "todo_get": ("todos.todo_get", "TodoGet"),
    "todo_update": ("todos.todo_update", "TodoUpdate"),
    "todo_list": ("todos.todo_list", "TodoList"),
    "todos": ("todos.todos", "AllTodos"),
    "skill": ("skills.skill", "UseSkill"),
    "find_thread": ("threads.find_thread", "FindThread"),
    "read_thread": ("threads.read_thread", "ReadThread"),
    "delegate": ("agents.delegate", "Delegate"),
    "agent_wait": ("agents.wait", "AgentWait"),
    "agent_list": ("agents.seen", "AgentList"),
    "agent_send": ("agents.send", "AgentSend"),
    "agent_stop": ("agents.stop", "AgentStop"),
    "finder": ("agents.finder", "Finder"),
    "oracle": ("agents.oracle", "Oracle"),
    "librarian": ("agents.librarian", "Librarian"),
    "kraken": ("agents.kraken", "Kraken"),
    "tool_search": ("meta.tool_search", "ToolSearch"),
    "list_mcp_resources": ("meta.resources", "ListResources"),
    "list_mcp_resource_templates": ("meta.resources", "ListResourceTemplates"),
    "read_mcp_resource": ("meta.read_resource", "ReadResource"),
}
"""Canonical name → module below this one, and class."""


def load(name: str) -> AnyTool:
    """A built-in tool by its canonical name."""
    module, kind = BUILTIN[name]
    tool: AnyTool = getattr(importlib.import_module(f"ferrule.tools.{module}"), kind)()
    return tool
