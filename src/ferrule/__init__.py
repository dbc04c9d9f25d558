"""Ferrule: the tool engine for coding agents. These are the public names; each is loaded when it is first used."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ferrule.agent.attachments import attach
    from ferrule.agent.limits import Limits
    from ferrule.agent.session import Session
    from ferrule.core.access import EVERYTHING, Access
    from ferrule.core.call import Call, Failure, Reply
    from ferrule.core.content import Document, Image, Text
    from ferrule.core.errors import ConfigError, Denied, FerruleError, ToolFailure
    from ferrule.core.events import (
        Blocked,
        Done,
        Event,
        FileEdit,
        Prepared,
        Progress,
        Reported,
        Started,
        TodosChanged,
        ToolsChanged,
    )
    from ferrule.core.face import Face
    from ferrule.core.tool import Context, Tool
    from ferrule.core.version import __version__
    from ferrule.dialects.claude import claude_code_definition, is_claude_code_tool
    from ferrule.dialects.dialect import Dialect, pick
    from ferrule.engine.engine import Engine
    from ferrule.engine.sync import SyncEngine
    from ferrule.hooks.hook import Hook
    from ferrule.models.model import ModelError
    from ferrule.permissions.ask import Answer, Question
    from ferrule.permissions.decision import Decision
    from ferrule.permissions.toolset import ModeConfig
    from ferrule.settings.schema import Settings
    from ferrule.sources.function import tool


_HOMES = {
    "EVERYTHING": "core.access",
    "Access": "core.access",
    "Answer": "permissions.ask",
    "Blocked": "core.events",
    "Call": "core.call",
    "ConfigError": "core.errors",
    "Context": "core.tool",
    "Decision": "permissions.decision",
    "Denied": "core.errors",
    "Dialect": "dialects.dialect",
    "Document": "core.content",
    "Done": "core.events",
    "Engine": "engine.engine",
    "Event": "core.events",
    "Face": "core.face",
    "Failure": "core.call",
    "FerruleError": "core.errors",
    "FileEdit": "core.events",
    "Hook": "hooks.hook",
    "Image": "core.content",
    "Limits": "agent.limits",
    "ModeConfig": "permissions.toolset",
    "ModelError": "models.model",
    "Prepared": "core.events",
    "Progress": "core.events",
    "Question": "permissions.ask",
    "Reply": "core.call",
    "Reported": "core.events",
    "Session": "agent.session",
    "Settings": "settings.schema",
    "Started": "core.events",
    "SyncEngine": "engine.sync",
    "Text": "core.content",
    "TodosChanged": "core.events",
    "Tool": "core.tool",
    "ToolFailure": "core.errors",
    "ToolsChanged": "core.events",
    "__version__": "core.version",
    "attach": "agent.attachments",
    "claude_code_definition": "dialects.claude",
    "is_claude_code_tool": "dialects.claude",
    "pick": "dialects.dialect",
    "tool": "sources.function",
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
