"""What comes back when work was given to subagents: of one, of one that goes on by itself, or of several at once."""

from typing import NamedTuple

from ferrule.core.subagents import Subagents, Worked
from ferrule.core.tool import Context


class Delegated(NamedTuple):
    """A subagent is done, or was stopped."""

    worked: Worked


class LeftAgent(NamedTuple):
    """A subagent goes on in the background."""

    worked: Worked


class Shared(NamedTuple):
    """Several subagents worked side by side; in the order of their tasks."""

    works: tuple[Worked, ...]


class AgentsSeen(NamedTuple):
    """Agents of the background, as they are after somebody has waited for one of them."""

    works: tuple[Worked, ...]
    timed_out: bool = False
    """Was the time over before any of them had ended?"""


class AgentStopped(NamedTuple):
    """An agent of the background that was stopped, or had ended before."""

    worked: Worked


class AgentSent(NamedTuple):
    """An agent of the background was told more."""

    worked: Worked
    call_id: str


def subagents(ctx: Context) -> Subagents:
    """Whoever runs subagents here; where the host has given nobody, one who says so."""
    try:
        return ctx.need(Subagents)
    except TypeError:
        return Subagents()


def last_words(worked: Worked) -> str:
    """What a subagent said last, and why it went no further where it was stopped."""
    if not worked.why or worked.status == "running":
        return worked.text
    said = f"{worked.text}\n\n" if worked.text.strip() else ""
    why = "." if worked.status == "stopped" else f": {worked.why}"
    return f"{said}(It was stopped before it was done{why})"
