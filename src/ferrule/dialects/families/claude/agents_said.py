"""How Claude Code reads what agents have done."""

from ferrule.core.delegated import Delegated
from ferrule.dialects.agent_says import Outcome, message


def task(outcome: Outcome) -> str:
    """The last message, and below it the id and what it took."""
    if not isinstance(outcome, Delegated):
        return message(outcome)
    worked = outcome.worked
    tokens = f"{worked.input_tokens:,} tokens in, {worked.output_tokens:,} tokens out"
    return (
        f"{message(outcome)}\n\nagentId: {worked.id} (give it as `resume` to go on with this agent)\n"
        f"<usage>turns: {worked.turns}, tool calls: {worked.calls}, {tokens}, {worked.seconds:.1f} seconds</usage>"
    )
