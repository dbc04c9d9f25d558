"""How codex reads what came back."""

from ferrule.core.outcomes import Matching, Picture, Planned, Ran, Tree
from ferrule.dialects.says import matching, picture, tree

EMPTY = "The file is empty."
PAST = "The file has {total} lines; line {first} is past its end."


def planned(_: Planned) -> str:
    return "Plan updated"


def viewed(outcome: Picture) -> list[dict[str, str]]:
    return [{"type": "text", "text": outcome.path}, picture(outcome)]


def listed(outcome: Tree) -> str:
    more = [f"More than {len(outcome.entries)} entries found; use offset for the others"] if outcome.remaining else []
    return "\n".join([f"Absolute path: {outcome.path}", tree(outcome) or "(nothing here)", *more])


def files(outcome: Matching) -> str:
    return matching(outcome, none="No matches found.")


def ran(outcome: Ran) -> str:
    stopped = "" if outcome.timed_out_after is None else f"\nStopped after {outcome.timed_out_after:g} seconds."
    return f"Exit code: {outcome.exit_code}\nWall time: {outcome.took:.1f} seconds{stopped}\nOutput:\n{outcome.output}"
