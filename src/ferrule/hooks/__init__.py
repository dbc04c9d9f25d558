"""Describe a hook, its events, the tools that its matcher covers, and how flow calls all hooks."""

import importlib
import math
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from ferrule.core.call import Call, Reply

if TYPE_CHECKING:
    import asyncio


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


class HookVerdict(NamedTuple):
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


_CHARS = 2000
_REPEATED = 1000
"""Counts such as `{9}{99}` may multiply to so much: compiling writes them all out."""
_SECONDS = 0.05
"""A name is short: whoever needs longer to tell has an expression that does not end."""


class BadMatcher(ValueError):  # noqa: N818 - the reader is a person who wrote one
    """It is no regular expression; the message says why."""


def check(matcher: str) -> None:
    """Raises BadMatcher where it cannot be understood."""
    if len(matcher) > _CHARS:
        raise BadMatcher(f"it has more than {_CHARS:,} characters")
    if math.prod(max(1, int(count)) for count in re.findall(r"[{,](\d{1,9})", matcher)) > _REPEATED:
        raise BadMatcher(f"it repeats something more than {_REPEATED:,} times")
    if not _names(matcher):
        _compile_matcher(matcher)


def covers(matcher: str, names: Collection[str]) -> bool:
    """Does it cover one of the names? Also yes where that takes too long to tell: the hook may have a word on it."""
    if matcher in {"", "*"}:
        return True
    if known := _names(matcher):
        return not known.isdisjoint(names)
    try:
        return any(_compile_matcher(matcher).fullmatch(name, timeout=_SECONDS) is not None for name in names)
    except (TimeoutError, MemoryError, BadMatcher):
        return True


@lru_cache(maxsize=256)
def _names(matcher: str) -> frozenset[str]:
    """The names that a matcher such as `Edit|Write` lists; none where it is more than a list."""
    if matcher in {"", "*"}:
        return frozenset({matcher})
    return frozenset(matcher.split("|")) if re.fullmatch(r"[A-Za-z0-9_|-]+", matcher) else frozenset()


@lru_cache(maxsize=256)
def _compile_matcher(matcher: str) -> Any:

    regex: Any = importlib.import_module("regex")
    try:
        return regex.compile(matcher, regex.V0)
    except (regex.error, OverflowError, RecursionError, MemoryError, ValueError) as error:
        raise BadMatcher(f"it is no regular expression ({error})") from error


class HookOutcome(NamedTuple):
    """A call after the user's hooks were told of it: perhaps with another input, and with their word on it."""

    call: Call
    verdict: str = ""
    reason: str = ""
    notes: tuple[str, ...] = ()
    stop: str = ""
    """Why the work is to end with this call, if a hook wants that."""


class CallHooks(Protocol):
    """The user's hooks."""

    async def before(self, call: Call) -> HookOutcome: ...

    async def after(self, call: Call, reply: Reply) -> Reply: ...


def read_outcome(call: Call, task: "asyncio.Task[HookOutcome]") -> HookOutcome:
    """What came of telling the hooks. What they might have refused does not run because they failed."""
    if task.cancelled():
        return HookOutcome(call, "cancelled")
    error = task.exception()
    return task.result() if error is None else HookOutcome(call, "deny", f"The hooks could not be told of it: {error}")
