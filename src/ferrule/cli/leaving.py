"""What still works in the background when a session is about to end, and is stopped with it."""

from typing import TYPE_CHECKING

from ferrule.output.clean import clean

if TYPE_CHECKING:
    from ferrule.engine import Engine

_MOST = 5
_HOW = "Whoever needs the end of that has the model wait for it."


def left_running(engine: "Engine", how: str = _HOW) -> str:
    """A sentence about them, and one that says how to have their end; empty where nothing is left."""
    from ferrule.core.subagents import Subagents  # for whoever ends a session
    from ferrule.support.tasks import Tasks

    agents = [
        f"the {one.name} agent {one.id} ({one.description})" if one.description else f"the {one.name} agent {one.id}"
        for one in engine.need(Subagents).list()
        if one.status == "running"
    ]
    commands = [f"the command {one.id} ({one.label})" for one in engine.need(Tasks).list() if not one.running.ended]
    found = [*agents, *commands]
    if not found:
        return ""
    more = f" and {len(found) - _MOST} more" * (len(found) > _MOST)
    told = " ".join(clean(f"{', '.join(found[:_MOST])}{more}").split())
    return f"Still at work in the background, and stopped with the session: {told}. {how}".rstrip()
