"""How Wayland reads what came back."""

from typing import TYPE_CHECKING

import msgspec

from ferrule.core.outcomes import Created, Edited, Ran
from ferrule.core.tasks import Left
from ferrule.dialects.says import left, stopped, tools_found

if TYPE_CHECKING:
    from ferrule.core.elsewhere import ToolsFound

UNCHANGED = (
    "File unchanged since last read. The content from the earlier Read is what the file still holds;"
    " use that instead of reading it again."
)


def written(outcome: Created) -> str:
    return f"{'Updated' if outcome.existed else 'Created'} {outcome.path} ({outcome.lines} lines)"


def edited(outcome: Edited) -> str:
    return f"Edited {outcome.path}: replaced {outcome.places} occurrence(s)"


def ran(outcome: Ran | Left) -> str:
    """Both streams under the exit code, or under a sentence about the time; without output that sentence is all."""
    if isinstance(outcome, Left):
        return left(outcome)
    streams = f"STDOUT:\n{outcome.output}\nSTDERR:\n{outcome.errors}"
    why = stopped(outcome)
    if why is None:
        return f"Exit code: {outcome.exit_code}\n{streams}"
    if outcome.timed_out_after is not None:
        why = f"Command timed out after {round(outcome.timed_out_after * 1000)}ms"
    return f"{why}\n{streams}" if outcome.output or outcome.errors else why


def tools(outcome: "ToolsFound") -> str:
    """The tools as JSON; to find none is no error."""
    if not outcome.tools:
        return f'No deferred tools matching "{outcome.query}" found.'
    return msgspec.json.format(msgspec.json.encode(tools_found(outcome)), indent=2).decode()
