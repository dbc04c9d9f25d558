"""How codex reads what came back."""

from typing import Any

from ferrule.core.outcomes import Matching, Picture, Planned, Ran, Tree
from ferrule.core.tasks import Left, Permitted, TaskRead
from ferrule.dialects.says import matching, picture, stopped, tree

CHARS_A_TOKEN = 4
"""About as many; it is what codex counts by."""

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


def ran(outcome: Ran | Left) -> str:
    if isinstance(outcome, Left):
        return session(outcome)
    why = stopped(outcome)
    rows = [f"Exit code: {outcome.exit_code}", f"Wall time: {outcome.took:.1f} seconds", *([why] if why else ())]
    return "\n".join([*rows, "Output:", outcome.output])


def session(outcome: Ran | Left | TaskRead) -> str:
    """How long it took, how it stands, how much there was where that is not all, and what it printed."""
    seen = outcome if isinstance(outcome, Ran) else outcome.task
    seconds = outcome.waited if isinstance(outcome, TaskRead) else seen.took
    if isinstance(seen, Ran) or seen.exit_code is not None:
        stands = f"Process exited with code {seen.exit_code}"
    else:
        stands = f"Process running with session ID {seen.number}"
    why = stopped(outcome) if isinstance(outcome, Ran) else None
    rows = [f"Wall time: {seconds:.4f} seconds", stands, *([why] if why else ())]
    if seen.total_chars > len(seen.output):
        rows.append(f"Original token count: {-(-seen.total_chars // CHARS_A_TOKEN)}")
    return "\n".join([*rows, "Output:", seen.output])


def permitted(outcome: Permitted) -> dict[str, Any]:
    files = {"read": list(outcome.read), "write": list(outcome.write)}
    granted = {
        **({"network": {"enabled": True}} if outcome.network else {}),
        **({"file_system": {key: paths for key, paths in files.items() if paths}} if any(files.values()) else {}),
    }
    return {"permissions": granted, "scope": "session"}
