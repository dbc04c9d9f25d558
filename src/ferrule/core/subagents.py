"""Subagents: what runs them is the host's, for it has the model.

What comes back when work was given to subagents: of one, of one that goes on by itself, or of several at once.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context


class Subagent(NamedTuple):
    """A helper of the model's own kind, as a file or a tool describes it."""

    name: str
    model: str
    """The model that it wants; empty where it says nothing."""
    tools: tuple[str, ...] | None
    """Names, or globs of names, of the tools that it may have of those that its parent has; None means all of them."""
    system: str
    """Its system prompt."""
    description: str = ""
    denied: tuple[str, ...] = ()
    """Names, or globs of names, of tools that it does not have all the same."""
    max_turns: int | None = None
    role: str = ""
    """What the setting `models.roles` calls its kind, where that is not its name."""
    mode: str = ""
    """A permission mode that it wants; it counts only where it is stricter than its parent's."""


class Job(NamedTuple):
    """What a subagent is to do."""

    agent: Subagent
    prompt: str
    description: str = ""
    """What it does, in a few words, for people."""
    max_turns: int | None = None
    max_tokens: int | None = None
    """Of each of its answers."""
    resume: str = ""
    """The id of an earlier one whose conversation goes on."""
    services: Mapping[str, object] = MappingProxyType({})
    """Objects that its calls have in the place of the session's, by the names of their types."""
    beside: bool = False
    """Does whoever waits for it hold all that it may read? Then its calls wait for nobody else's, who may wait for
    those. It must be given tools that only read."""


AgentStatus = Literal["running", "completed", "failed", "stopped"]


class Worked(NamedTuple):
    """What a subagent did, or how far it is."""

    id: str
    name: str
    status: AgentStatus
    text: str
    """Its last message."""
    description: str = ""
    model: str = ""
    turns: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    why: str = ""
    """Why it ended, where it was not done: a limit of turns, a model that could not be asked."""
    reason: str = "end"
    """The same as one word: `end`, `turns`, `tokens`, `error`, `interrupted` and so on."""
    failed_write: str = ""
    """Why its last write failed, where it did."""


class Subagents:
    """Whoever runs them: `ctx.need(Subagents)`. A host with a model gives its own subclass."""

    can_run = False
    """Is there a model for them?"""

    async def run(self, subagent: Subagent, prompt: str, ctx: Context) -> str:
        """Its last message. It has no tool and no permission that its parent has not."""
        return (await self.work(Job(subagent, prompt), ctx)).text

    async def work(self, job: Job, ctx: Context) -> Worked:  # noqa: ARG002 - subclasses use it
        """Have it done, and wait for that. Cancelling the call that waits stops it."""
        raise self._nobody(job.agent.name)

    async def leave(self, job: Job, ctx: Context) -> Worked:  # noqa: ARG002 - subclasses use it
        """Have it done in the background; it ends with the session at the latest."""
        raise self._nobody(job.agent.name)

    async def poll(self, agent_id: str, wait_seconds: float = 0.0) -> Worked | None:  # noqa: ARG002 - subclasses do
        """One that was left in the background, after its end or after so many seconds; None where none has the id."""
        return None

    async def send(
        self,
        agent_id: str,  # noqa: ARG002 - subclasses use them
        message: str,  # noqa: ARG002
        ctx: Context,  # noqa: ARG002
        *,
        interrupt: bool = False,  # noqa: ARG002
    ) -> Worked | None:
        """Tell one of the background more: with its next replies, at once where it is interrupted for it, or, where it
        has ended, as its next prompt. None where none has the id."""
        return None

    async def stop(self, agent_id: str) -> Worked | None:  # noqa: ARG002 - subclasses use it
        """Stop one that was left in the background."""
        return None

    def expects(self, agent: Subagent, prompt: str) -> bool:  # noqa: ARG002 - subclasses use it
        """Can the session's own model be asked this? A recording answers only what was asked when it was made."""
        return self.can_run

    def list(self) -> tuple[Worked, ...]:
        """Those of the background, the oldest first."""
        return ()

    def beyond(self, agent: Subagent, names: Sequence[str], ctx: Context) -> tuple[str, ...]:  # noqa: ARG002 - as above
        """Those of the names that are tools of the caller's and not of this subagent's.

        Here by the names alone; whoever knows the tools knows them in every family's words, and leaves out what the
        caller has not.
        """
        from fnmatch import fnmatchcase  # for subagents that are given tools one by one

        def has(name: str) -> bool:
            is_given = agent.tools is None or any(fnmatchcase(name, one) for one in agent.tools)
            return is_given and not any(fnmatchcase(name, one) for one in agent.denied)

        return tuple(name for name in names if not has(name))

    def _nobody(self, name: str) -> ToolFailure:
        return ToolFailure(
            f"The subagent {name} cannot be run: this session has no model to run it. Do the work yourself, "
            "with the other tools.",
            code="no-model",
        )


class DelegateOutcome(NamedTuple):
    """A subagent is done, or was stopped."""

    worked: Worked


class LeftAgent(NamedTuple):
    """A subagent goes on in the background."""

    worked: Worked


class SubagentBatchResult(NamedTuple):
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
