"""Define the services that tools reach through their context, and what they come back with.

In plan mode a session only reads, and writes its plan, until the user has approved the plan. The host runs
subagents, because it has the model.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from ferrule.core.content import Picture
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context

Beginner = Literal["user", "model"]
"""Who wants to plan: what the user began, only the user ends."""


class Wish(NamedTuple):
    """Something that a plan needs to be allowed, in the model's words or as a command line."""

    tool: str
    prompt: str


class PlanEntered(NamedTuple):
    """A session that is in plan mode."""

    path: str
    """Where the plan is to be written; nothing is there yet."""
    already: bool = False
    """Was it in plan mode before?"""


class PlanApproved(NamedTuple):
    """A plan that the user has said yes to; the session is out of plan mode."""

    path: str
    text: str
    """The plan as the user has seen it."""
    mode: str
    """The permission mode that holds now."""
    granted: tuple[str, ...] = ()
    """Rules that hold from now on, in this session."""
    asked: tuple[str, ...] = ()
    """Wishes that no rule came of: they are asked about when they come."""
    is_known: bool = False
    """Is it the text that the model has written or read itself?"""
    is_edited: bool = False
    """Has the user changed it before they approved it?"""


class Planning:
    """Plan mode, as tools and front ends reach it: `ctx.need(Planning)`.

    This one is a subagent's: it has no plan mode of its own, and that of its session is not its to change.
    """

    _session: "Planning | None" = None
    is_on: bool = False
    plan_path: str = ""
    """The file that the plan is written to; empty outside plan mode."""
    begun_by: Beginner = "user"
    """Who began it, while it is on."""
    on_change: Callable[[], None] = staticmethod(lambda: None)
    """Called when it has begun or ended."""

    @classmethod
    def under(cls, session: "Planning") -> "Planning":
        """A subagent's, of the session that it works for: it knows whether that plans, and can do nothing about it."""
        planning = Planning()
        planning._session = session
        return planning

    @property
    def is_held(self) -> bool:
        """Is nothing to be written now, because the session plans?"""
        return self.is_on or (self._session is not None and self._session.is_on)

    def enter(
        self,
        reason: str = "",  # noqa: ARG002 - sessions use it
        *,
        by: Beginner = "user",  # noqa: ARG002 - the same
        file: str = "",  # noqa: ARG002 - the same
    ) -> PlanEntered:
        """Begin to plan. It only tightens, so that nobody is asked. Raises `ConfigError` for an unusable folder.

        `file` is the plan that an earlier session of the same conversation has begun.
        """
        raise self._not_here()

    def leave(self) -> str:
        """End plan mode without a word about the plan, because the user says so; the permission mode that holds now."""
        raise self._not_here()

    def readable(self, file: str = "") -> str:  # noqa: ARG002 - sessions use it
        """The real path of the plan, or of the file of this name among the plans. Raises `ToolFailure`."""
        raise self._not_here()

    async def propose(self, path: str, wishes: Sequence[Wish], ctx: Context) -> PlanApproved:  # noqa: ARG002 - the same
        """Show the user the plan in this file. Raises `Denied` where they do not approve; planning goes on then."""
        raise self._not_here()

    def reminder(self) -> str:
        """What a model is to know before each turn; empty outside plan mode."""
        return (
            "Plan mode is on in this session: only reading works, and nothing can be written." if self.is_held else ""
        )

    def _not_here(self) -> ToolFailure:
        return ToolFailure(
            "A subagent cannot enter or leave plan mode: that is for the conversation that has started it. "
            "Do your own task, and report what you found.",
            code="not-a-subagent-s",
        )


ChoiceKind = Literal["choice", "text", "yesno"]
Answers = Mapping[str, tuple[str, ...]]
"""The key of a choice → the labels that were chosen, or what was said in own words."""


class Option(msgspec.Struct, frozen=True):
    """One of the answers that are offered."""

    label: str
    description: str = ""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A question that a person answers by choosing, or in their own words."""

    question: str
    header: str = ""
    """A short label."""
    options: tuple[Option, ...] = ()
    """Empty for a `text`."""
    multiple: bool = False
    """May several be chosen?"""
    free: bool = True
    """Are own words an answer?"""
    id: str = ""
    kind: ChoiceKind = "choice"
    placeholder: str = ""
    """A hint for own words."""

    @property
    def key(self) -> str:
        """What its answer is called: its id or, where it has none, the question itself."""
        return self.id or self.question


class ChoiceAnswers(NamedTuple):
    """What a person was asked, each with the answers; none where they left it open."""

    answers: tuple[tuple[Choice, tuple[str, ...]], ...]


def nobody(why: str) -> ToolFailure:
    """The failure where no person can be asked; `why` is a whole sentence."""
    return ToolFailure(
        f"{why} Decide yourself, and say in your answer which assumption you have made.", code="nobody-to-ask"
    )


class People:
    """Whoever can be asked: `ctx.need(People)`. A session with a person gives its own subclass."""

    async def choose(self, choices: Sequence[Choice], ctx: Context) -> Answers | None:  # noqa: ARG002 - subclasses use it
        """What was answered; None where the person does not want to. Raises `ToolFailure` where there is nobody."""
        raise nobody("There is nobody to ask in this session.")


class Bringing:
    """The engine, as the skill tool reaches it: `ctx.need(Bringing)`. The engine gives its own subclass."""

    def allow(self, rules: Sequence[str]) -> tuple[str, ...]:
        """Let these rules allow calls until the session ends; those that were understood."""
        raise NotImplementedError

    async def tools(self, folder: str) -> tuple[str, ...]:
        """Add the toolbox that a skill carries; the names of its tools."""
        raise NotImplementedError

    async def servers(self, servers: Mapping[str, Any], origin: str) -> tuple[str, ...]:
        """Add the MCP servers of a skill's `mcp.json`; the names of their tools."""
        raise NotImplementedError

    async def prompt(self, server: str, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a server's prompt, which counts as a skill."""
        raise NotImplementedError


INSTRUCTIONS = "ferrule://instructions/"
"""Before a server's name, the address of its instructions: a prompt shows only their beginning where they are long."""


class Offered:
    """The session's servers: `ctx.need(Offered)`. The engine gives its own subclass."""

    async def resources(self, server: str | None, *, templates: bool = False, cursor: str = "") -> "ServerResources":
        """What one server, or every server, offers to be read. Raises `ToolFailure` for an unknown server."""
        raise NotImplementedError

    async def read(self, server: str | None, uri: str) -> "Mixed":
        """One resource, from the server that was named or from the one that offers it."""
        raise NotImplementedError


Verdict = Literal["allow", "ask", "deny"]


class HostVerdict(NamedTuple):
    """What holds for a host."""

    verdict: Verdict = "allow"
    why: str = ""
    """A whole sentence."""
    rule: str = ""
    """The rule that says it, as it was written."""


class HostsAllowed:
    """Whoever knows the rules: `ctx.need(HostsAllowed)`. A session with rules gives its own subclass."""

    def word(self, tool: str, host: str, url: str) -> HostVerdict:  # noqa: ARG002 - subclasses look at them
        """What would be said about a call of the tool that goes to this address of that host."""
        return HostVerdict()


def hosts_allowed(ctx: Context) -> HostsAllowed:
    """Whoever knows the rules here; where nobody does, one who lets everything pass."""
    try:
        return ctx.need(HostsAllowed)
    except TypeError:
        return HostsAllowed()


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


class McpContent(NamedTuple):
    """A part of an answer that is neither text nor a picture: sound, a link, something embedded."""

    kind: str
    """As MCP names it: audio, resource_link, resource."""
    block: dict[str, Any]
    """The part as MCP writes it."""
    words: str
    """What is said in its place where it cannot be shown."""


class Mixed(NamedTuple):
    """What a tool from elsewhere answered."""

    parts: tuple[str | Picture | McpContent, ...]
    structured: Any = None
    """The same as a JSON value, where the tool gives one."""
    failed: bool = False
    """Does the tool itself say that it failed?"""


class ToolsFound(NamedTuple):
    """Tools that a search has found; they are loaded from now on."""

    query: str
    tools: tuple["ToolFound", ...]
    definitions_follow: bool = False
    """Does the model get their whole definitions with its next turn?"""


class ToolFound(NamedTuple):
    """One tool that a search has found."""

    name: str
    words: str
    schema: Any


class SkillLoaded(NamedTuple):
    """A skill's instructions, with its arguments and the output of its commands in them."""

    name: str
    folder: str
    """What its relative paths start from; empty for one that is no folder."""
    text: str
    brought: tuple[str, ...] = ()
    """Names of the tools that it has brought."""
    allowed: tuple[str, ...] = ()
    """Rules that hold from now on, as it wrote them."""
    files: tuple[str, ...] = ()
    """Names of what lies beside its instructions, folders with a slash at their end."""


class ServerResource(NamedTuple):
    """Something that an MCP server offers to be read, or a template of such."""

    server: str
    uri: str
    name: str
    words: str = ""
    media_type: str = ""


class ServerResources(NamedTuple):
    """What servers offer; `templates` tells which kind was asked for."""

    resources: tuple[ServerResource, ...]
    templates: bool = False
    silent: tuple[tuple[str, str], ...] = ()
    """Servers that could not be asked, each with the reason."""
    next_cursor: str = ""


def render_outcome(outcome: Any) -> Any:
    """An outcome as text or a JSON value, for tools whose words are their own; parts where there is a picture."""
    if not isinstance(outcome, Mixed):
        return outcome
    parts = outcome.parts
    if not any(isinstance(part, Picture) for part in parts):
        if not parts and outcome.structured is not None:
            return outcome.structured
        return "\n".join(
            part if isinstance(part, str) else part.words for part in parts if not isinstance(part, Picture)
        )
    return [_render_part(part) for part in parts]


def _render_part(part: str | Picture | McpContent) -> dict[str, str]:
    if isinstance(part, Picture):
        data = base64.b64encode(part.data).decode()
        return {"type": "image", "media_type": part.media_type, "data": data}
    return {"type": "text", "text": part if isinstance(part, str) else part.words}


def has_failed(outcome: Any) -> bool:
    """Does the tool itself say that it failed?"""
    return isinstance(outcome, Mixed) and outcome.failed


How = Literal["substring", "ranked"]
"""Substring: those whose name or description holds the query come first. Ranked: those that fit best do."""


class Catalog:
    """The registry, as a tool reaches it: `ctx.need(Catalog)`."""

    async def search(self, query: str, *, how: How, limit: int | None = None) -> list[ToolFound]:
        """The deferred tools that fit the words; they are loaded from now on.

        Servers that were never listed are asked for their tools first.
        """
        raise NotImplementedError

    async def select(self, names: Sequence[str]) -> tuple[list[ToolFound], list[str]]:
        """The tools of these names, which are loaded from now on, and the names that mean none of them."""
        raise NotImplementedError

    def summary(self) -> str:
        """What there is to be found, in a few names; empty where there is nothing."""
        raise NotImplementedError

    def lists(self, name: str) -> bool:
        """Is the model shown a tool of this name anyway?"""
        raise NotImplementedError

    @property
    def definitions_follow(self) -> bool:
        """Does the model get the whole definitions of loaded tools with its next turn? Then nobody repeats them."""
        raise NotImplementedError
