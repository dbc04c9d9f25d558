"""Define the services that tools reach through their context, and the outcomes of calling them.

The services are plan mode, questions to the user, the catalog for `tool_search`, the rules, tools and servers that
a skill may bring, the resources of MCP servers, the verdict on a host that a call reaches by a redirect, and
subagents.

In plan mode a session only reads, and writes its plan, until the user has approved the plan. The host runs
subagents, because it has the model.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context

if TYPE_CHECKING:
    from ferrule.core.elsewhere import Mixed, ServerResources


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
