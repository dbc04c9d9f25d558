"""Plan mode as a part of the conversation: whoever goes on with it plans on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ferrule.core.planning import Beginner, Planning

if TYPE_CHECKING:
    from ferrule.agent.keeping import Keeping
    from ferrule.agent.stored import Resumed
    from ferrule.engine import Engine

PLANNING = "planning"
_STILL_PLANS = (
    "Plan mode is on, as it was when this conversation was left: only reading works until a plan is approved. "
    "`--permission-mode default`, or `/plan` in the chat, ends it."
)


class Plan(msgspec.Struct, frozen=True):
    """A plan mode that is on, as it is kept."""

    path: str
    begun_by: Beginner = "user"


class PlanKept:
    """Keeps whether the session plans. What an option says holds for that session only."""

    def __init__(
        self,
        engine: "Engine",
        keeping: "Keeping | None",
        earlier: "Resumed | None",
        mode: str | None,
        warn: Callable[[str], None],
    ) -> None:
        """`mode` is the permission mode that the user has named for this session, if any: another one ends planning."""
        self._planning = planning = engine.need(Planning)
        self._keeping = keeping
        self._is_resumed = earlier is not None
        self._kept = earlier.plan if earlier is not None else None
        if self._kept is not None and mode in {None, "plan"}:
            planning.enter(by=self._kept.begun_by, file=self._kept.path)
            if mode is None:
                warn(_STILL_PLANS)
        self._by_option = planning.plan_path if self._kept is None else ""
        planning.on_change = self._keep
        self._keep()

    def reminder(self) -> str:
        """What the model is told before each turn."""
        self._keep()
        return self._planning.reminder()

    def _keep(self) -> None:
        planning, keeping = self._planning, self._keeping
        # Nothing is stored of a conversation in which nobody has said anything.
        if keeping is None or not (self._is_resumed or keeping.is_named):
            return
        is_its_own = planning.is_on and planning.plan_path != self._by_option
        now = Plan(planning.plan_path, planning.begun_by) if is_its_own else None
        if now != self._kept:
            self._kept = now
            keeping.note(PLANNING, now)
