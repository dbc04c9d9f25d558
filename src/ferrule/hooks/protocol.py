"""The user's hooks as the flow sees them: they are told of a call before it runs and after, and have a word on it."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from ferrule.core.call import Call, Reply

if TYPE_CHECKING:
    import asyncio


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
