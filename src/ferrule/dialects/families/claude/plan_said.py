"""How Claude Code leaves plan mode: what it may be allowed, and what holds when the user has approved the plan."""

from ferrule.core.face import Values
from ferrule.core.planning import PlanApproved
from ferrule.dialects.arrange import without
from ferrule.dialects.plan_says import EDITED, holds

_REMOTE = ("pushToRemote", "remoteSessionId", "remoteSessionTitle", "remoteSessionUrl")


def leaving(values: Values) -> Values:
    """A remote session is one wish, whichever of its parameters says so."""
    out = without(values, *_REMOTE)
    return {**out, "remote": True} if any(values.get(name) for name in _REMOTE) else out


def as_leaving(values: Values) -> Values:
    """The inverse."""
    out = without(values, "remote")
    return {**out, "pushToRemote": True} if values.get("remote") else out


def approved(outcome: PlanApproved) -> str:
    """Where the model has written the plan itself it is named, and not repeated."""
    head = "The user has approved your plan. Carry it out now; begin with your list of tasks, if you keep one."
    text = (
        [f"The plan is in {outcome.path}."]
        if outcome.is_known
        else [f"The plan is in {outcome.path}:", "", outcome.text.rstrip()]
    )
    if outcome.is_edited:
        text = [f"The plan is in {outcome.path}. {EDITED}", "", outcome.text.rstrip()]
    return "\n".join([head, *holds(outcome), *text])
