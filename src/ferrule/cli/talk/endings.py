"""Why control came back, in a line; and what to do next where something went wrong."""

from ferrule.agent.events import Ended
from ferrule.cli.talk.line import Line, line, sentence
from ferrule.cli.talk.words import dollars, seconds, tokens

_LONG_SECONDS = 5.0
_REASONS = {
    "length": "The model ran out of tokens for this answer. Say “go on” to have the rest.",
    "refused": "The model's host refused to answer this. Say it in other words, or use /model for another one.",
    "turns": "The limit of turns was met (loop.turns). Say “go on” to continue.",
    "tokens": "The limit of tokens was met (loop.tokens). Say “go on” to continue.",
    "cost": "The limit of cost was met (loop.cost). Say “go on” to continue.",
    "time": "The limit of time was met (loop.seconds). Say “go on” to continue.",
    "loop": "The same call came again and again, so it was stopped. Say what it should do otherwise.",
    "hook": "A hook stopped it.",
    "stopped": "A hook ended the work.",
    "interrupted": "Interrupted. Say what to do otherwise, or “go on”.",
}


def ended(event: Ended, took_seconds: float) -> list[Line]:
    """One dim line where something is to be said; more where it went wrong."""
    if event.reason == "error":
        rows = [
            sentence(("red", "  ✗ "), row) for row in (event.error or "Something went wrong.").strip().split("\n")[:8]
        ]
        return [
            *rows,
            sentence(("dim", "    The conversation is as it was: say it again, or use /model for another one.")),
        ]
    usage = event.spent.usage
    facts = [seconds(took_seconds), f"{tokens(usage.input)} in, {tokens(usage.output)} out", dollars(event.spent.cost)]
    if event.reason == "end":
        if took_seconds < _LONG_SECONDS:
            return []
        return [line(("dim", "  " + " · ".join(fact for fact in facts if fact)))]
    why = _REASONS.get(event.reason, f"Stopped: {event.reason}.")
    colour = "yellow" if event.reason != "interrupted" else "dim"
    more = f" ({event.error.strip()})" if event.error.strip() else ""
    return [sentence((colour, f"  {why}{more}"))]
