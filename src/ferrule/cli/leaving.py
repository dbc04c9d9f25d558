"""What still works in the background when a session is about to end, and is stopped with it."""

from typing import TYPE_CHECKING

from ferrule.output.clean import clean

if TYPE_CHECKING:
    from ferrule.engine import Engine

_MOST = 5
_MOST_CHARS = 60
_HOW = "Whoever needs the end of that has the model wait for it."


def short(command: str) -> str:
    """A command on one line, cut to what is enough to know it by."""
    words = " ".join(command.split())
    return words if len(words) <= _MOST_CHARS else words[: _MOST_CHARS - 1] + "…"


def left_running(engine: "Engine", how: str = _HOW) -> str:
    """A sentence about them, and one that says how to have their end; empty where nothing is left."""
    told = running_now(engine)
    return f"Still at work in the background, and stopped with the session: {told}. {how}".rstrip() if told else ""


def running_now(engine: "Engine") -> str:
    """The agents and commands that are at work, on one line; empty where there are none."""
    from ferrule.core.subagents import Subagents  # for whoever ends a session
    from ferrule.support.tasks import Tasks

    tasks = engine.need(Tasks).list()
    agents = [
        f"the {one.name} agent {one.id} ({one.description})" if one.description else f"the {one.name} agent {one.id}"
        for one in engine.need(Subagents).list()
        if one.status == "running"
    ]
    # By the command itself: what the model says that it is for may be anything.
    commands = [f"the command {one.id} ({short(one.command)})" for one in tasks if not one.running.ended]
    found = [*agents, *commands]
    more = f" and {len(found) - _MOST} more" * (len(found) > _MOST)
    return " ".join(clean(f"{', '.join(found[:_MOST])}{more}").split())
