"""How ah reads what came back."""

import math

from ferrule.core.outcomes import Created, Edited, FileText, Ran
from ferrule.core.tasks import Left
from ferrule.dialects import says


def numbered(outcome: FileText) -> str:
    """Lines as what stands between newlines: there is an empty one behind the last newline, and in an empty file."""
    lines = outcome.lines
    if (outcome.final_newline and not outcome.limited) or (outcome.total == 0 and outcome.first == 1):
        lines = (*lines, "")
    return says.numbered(outcome._replace(lines=lines), "{}\t{}")


def written(outcome: Created) -> str:
    """Lines counted as above."""
    return f"{outcome.lines + (outcome.final_newline or not outcome.lines)} lines"


def edited(outcome: Edited) -> str:
    lines = [
        mark + line for old, new in outcome.pieces for mark, text in (("- ", old), ("+ ", new)) for line in _lines(text)
    ]
    return "\n".join(lines) or f"edited {outcome.path}"


def ran(outcome: Ran | Left) -> str:
    if isinstance(outcome, Left):
        return says.left(outcome)
    parts = [outcome.output] if outcome.output else []
    if outcome.timed_out_after is not None:
        parts.append(f"error: command timed out after {math.ceil(outcome.timed_out_after)}s")
    elif outcome.quiet_after is not None:
        parts.append(f"error: command printed nothing for {math.ceil(outcome.quiet_after)}s and was stopped")
    elif outcome.exit_code:
        parts.append(f"exit code: {outcome.exit_code}")
    return "\n".join(parts) or "(no output)"


def _lines(text: str) -> list[str]:
    """Each line without its end; a newline at the end begins no further one."""
    return text.removesuffix("\n").split("\n") if text else []
