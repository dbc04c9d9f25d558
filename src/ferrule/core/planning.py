"""Plan mode: a session in it only reads, and writes its plan, until the user has approved the plan."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

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
