"""The built-in tools, one file each. The list is written out; importing registers nothing and loads none of them."""

import importlib

from ferrule.core.tool import AnyTool

BUILTIN = {
    "read": ("files.read", "Read"),
    "edit": ("files.edit", "Edit"),
    "write": ("files.write", "Write"),
    "shell": ("shell.shell", "Shell"),
    "glob": ("search.glob", "Glob"),
    "grep": ("search.grep", "Grep"),
}
"""Canonical name → module below this one, and class."""


def load(name: str) -> AnyTool:
    """A built-in tool by its canonical name."""
    module, kind = BUILTIN[name]
    tool: AnyTool = getattr(importlib.import_module(f"ferrule.tools.{module}"), kind)()
    return tool
