"""A hook: which event it is told of, about which tools, and what runs."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple

EVENTS = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SessionStart",
    "SessionEnd",
    "Notification",
    "UserPromptSubmit",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PermissionRequest",
)
"""From `UserPromptSubmit` to `PreCompact` they are for whoever runs a conversation around the engine."""
Event = str
Layer = Literal["managed", "user", "project", "session"]
Function = Callable[[dict[str, Any]], Mapping[str, Any] | Awaitable[Mapping[str, Any] | None] | None]
"""Gets what a program would read from its standard input, and gives back what one would print."""


class Hook(NamedTuple):
    """One hook."""

    event: Event
    matcher: str = ""
    """A regular expression that covers a tool's whole name; empty or `*` means every tool."""
    command: str = ""
    """A command line for the shell; empty where `function` is given."""
    function: Function | None = None
    seconds: float = 60.0
    layer: Layer = "user"
    source: str = ""
    """Where it was written, for people."""
    pins: tuple[tuple[str, str], ...] | None = None
    """The scripts of the workspace that the command names, with hashes of what was trusted; None: any may run."""


class Before(NamedTuple):
    """What the hooks say about a call that is about to be looked at."""

    verdict: Literal["", "allow", "ask", "deny"] = ""
    """The strictest of all; empty where none has a word on it."""
    reason: str = ""
    input: dict[str, Any] | None = None
    """The input that a hook wants instead, in the words in which it was told; None where it stays."""
    notes: tuple[str, ...] = ()
    """What the model is to be told beside the reply."""
    stop: str = ""
    """Why the work is to end, if one of them wants that; the call is denied then."""


class After(NamedTuple):
    """What the hooks say about a reply."""

    notes: tuple[str, ...] = ()
    blocked: str = ""
    """Why the model should take it for a failure; empty where it should not."""
    stop: str = ""
    """Why the work is to end here; empty where it goes on."""
