"""Ferrule: the tool engine for coding agents. These are the public names; each is loaded when it is first used."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ferrule.agent import Limits
    from ferrule.agent.attachments import attach
    from ferrule.agent.session import Session
    from ferrule.core import __version__
    from ferrule.core.access import EVERYTHING, Access
    from ferrule.core.call import (
        Blocked,
        Call,
        Done,
        Event,
        Failure,
        FileEdit,
        Prepared,
        Progress,
        Reply,
        Reported,
        Started,
        TodosChanged,
        ToolsChanged,
    )
    from ferrule.core.content import Document, Image, Text
    from ferrule.core.errors import ConfigError, Denied, FerruleError, ToolFailure
    from ferrule.core.tool import Context, Face, Tool
    from ferrule.dialects import Dialect, pick
    from ferrule.dialects.claude import claude_code_definition, is_claude_code_tool
    from ferrule.engine import Engine
    from ferrule.engine.sync import SyncEngine
    from ferrule.hooks import Hook
    from ferrule.models import ModelError
    from ferrule.permissions import Answer, Decision, ModeConfig, Question
    from ferrule.settings import Settings
    from ferrule.sources import tool


_HOMES = {
    "EVERYTHING": "core.access",
    "Access": "core.access",
    "Answer": "permissions",
    "Blocked": "core.call",
    "Call": "core.call",
    "ConfigError": "core.errors",
    "Context": "core.tool",
    "Decision": "permissions",
    "Denied": "core.errors",
    "Dialect": "dialects",
    "Document": "core.content",
    "Done": "core.call",
    "Engine": "engine",
    "Event": "core.call",
    "Face": "core.tool",
    "Failure": "core.call",
    "FerruleError": "core.errors",
    "FileEdit": "core.call",
    "Hook": "hooks",
    "Image": "core.content",
    "Limits": "agent",
    "ModeConfig": "permissions",
    "ModelError": "models",
    "Prepared": "core.call",
    "Progress": "core.call",
    "Question": "permissions",
    "Reply": "core.call",
    "Reported": "core.call",
    "Session": "agent.session",
    "Settings": "settings",
    "Started": "core.call",
    "SyncEngine": "engine.sync",
    "Text": "core.content",
    "TodosChanged": "core.call",
    "Tool": "core.tool",
    "ToolFailure": "core.errors",
    "ToolsChanged": "core.call",
    "__version__": "core",
    "attach": "agent.attachments",
    "claude_code_definition": "dialects.claude",
    "is_claude_code_tool": "dialects.claude",
    "pick": "dialects",
    "tool": "sources",
}

__all__ = [
    "EVERYTHING",
    "Access",
    "Answer",
    "Blocked",
    "Call",
    "ConfigError",
    "Context",
    "Decision",
    "Denied",
    "Dialect",
    "Document",
    "Done",
    "Engine",
    "Event",
    "Face",
    "Failure",
    "FerruleError",
    "FileEdit",
    "Hook",
    "Image",
    "Limits",
    "ModeConfig",
    "ModelError",
    "Prepared",
    "Progress",
    "Question",
    "Reply",
    "Reported",
    "Session",
    "Settings",
    "Started",
    "SyncEngine",
    "Text",
    "TodosChanged",
    "Tool",
    "ToolFailure",
    "ToolsChanged",
    "__version__",
    "attach",
    "claude_code_definition",
    "is_claude_code_tool",
    "pick",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ferrule' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ferrule.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
