"""Claude Code's own tools among the definitions that come over a wire, for translating them."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from ferrule.core.face import copied
from ferrule.dialects.words import schemas, words

_HERE = os.path.dirname(__file__)

NAMES = (
    *("Read", "Write", "Edit", "Glob", "Grep", "Bash", "WebFetch", "WebSearch", "LSP", "NotebookEdit", "Task", "Skill"),
    *("AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "TaskOutput", "TaskStop"),
    *("TaskCreate", "TaskGet", "TaskUpdate", "TaskList"),
)

BUILT_IN = {"computer": "computer", "text_editor": "str_replace_editor", "bash": "bash"}
"""Tools that the API itself defines, by type without its date → what such a function is called elsewhere."""


class ToolDefinition(NamedTuple):
    """A definition as any model API can take it."""

    name: str
    description: str
    parameters: dict[str, Any]


def is_claude_code_tool(name: str) -> bool:
    """Is it one of the twenty-one tools of Claude Code?"""
    return name in NAMES


def claude_code_definition(anthropic_tool: Mapping[str, Any]) -> ToolDefinition:
    """An Anthropic tool definition as name, description and parameters.

    A tool of Claude Code gets its own description and schema, whatever came with it; the schema may be changed by
    the caller. A tool that the API itself defines becomes a function by its common name. All others pass as they are.
    """
    name = str(anthropic_tool.get("name", ""))
    if is_claude_code_tool(name):
        schema, word = _catalog()
        return ToolDefinition(name, word[name], copied(schema[name]))
    kind, _, date = str(anthropic_tool.get("type", "")).rpartition("_")
    name = BUILT_IN.get(kind, name) if date.isdigit() else name
    parameters = anthropic_tool.get("input_schema") or {"type": "object", "properties": {}}
    return ToolDefinition(name, str(anthropic_tool.get("description") or ""), copied(parameters))


@cache
def _catalog() -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    return schemas(_HERE), words(_HERE)
