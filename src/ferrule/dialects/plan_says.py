"""How plan mode reads: what holds after a plan was approved, for families that say it alike."""

import msgspec

from ferrule.core.face import Face, copied
from ferrule.core.planning import PlanApproved, PlanEntered

_MODES = {
    "acceptEdits": "Edits in the workspace need no question.",
    "bypassPermissions": "Nothing is asked about.",
    "dontAsk": "What no rule allows is denied.",
}
EDITED = "The user has edited the plan before they approved it. This is what they approved:"


def also_given(face: Face) -> Face:
    """The face of the way out of plan mode, which accepts the plan itself too, as other versions give it."""
    accepts = copied(face.schema)
    accepts["properties"]["plan"] = {"type": "string"}
    accepts["required"] = []
    return msgspec.structs.replace(face, accepts=accepts)


def entered(outcome: PlanEntered) -> str:
    """In plan mode, and where the plan goes."""
    where = f"Write the plan to {outcome.path}; nothing else can be written until the user has approved it."
    return f"Already in plan mode. {where}" if outcome.already else f"Entered plan mode. {where}"


def approved(outcome: PlanApproved) -> str:
    """The plan's file, and what the user has allowed with it."""
    head = f"The user has approved the plan in {outcome.path}. Carry it out now."
    text = ["", EDITED, "", outcome.text.rstrip()] if outcome.is_edited else []
    return "\n".join([head, *holds(outcome), *text])


def holds(outcome: PlanApproved) -> list[str]:
    """What is allowed from now on, and what is still asked about."""
    rows = [_MODES[outcome.mode]] if outcome.mode in _MODES else []
    if outcome.granted:
        rows.append(f"Allowed in this session: {', '.join(outcome.granted)}.")
    if outcome.asked:
        rows.append(f"Asked about when it comes: {'; '.join(outcome.asked)}.")
    return rows
