"""How the work of subagents reads, for families that say it alike."""

from typing import Any

import msgspec

from ferrule.core.subagents import DelegateOutcome, LeftAgent, SubagentBatchResult, Worked, last_words

SHARED_CHARS = 50_000
_LEAST_CHARS = 200

Outcome = DelegateOutcome | LeftAgent | SubagentBatchResult


def message(outcome: Outcome) -> str:
    """The last message and nothing else."""
    if isinstance(outcome, SubagentBatchResult):
        return render_batch(outcome)
    if isinstance(outcome, LeftAgent):
        return describe_background_agent(outcome)
    return last_words(outcome.worked) or "The agent is done, and has said nothing."


def describe_background_agent(outcome: LeftAgent) -> str:
    """Where an agent goes on: any session knows these two tools."""
    worked = outcome.worked
    return (
        f"The agent {worked.name} goes on in the background with the id {worked.id}. You are told when it is done. "
        f"TaskOutput with the task_id {worked.id} reads its answer, and TaskStop stops it."
    )


def agent_failed(outcome: Outcome) -> bool:
    """Has nobody done anything? An agent that met a limit has said how far it came."""
    if isinstance(outcome, LeftAgent):
        return False
    works = outcome.works if isinstance(outcome, SubagentBatchResult) else (outcome.worked,)
    if isinstance(outcome, SubagentBatchResult):
        return all(work.status != "completed" for work in works)
    return all(work.status == "failed" and work.reason == "error" for work in works)


def render_batch(outcome: SubagentBatchResult) -> str:
    """A list of what each has done, as JSON; summaries are shortened until it stays whole."""
    room = SHARED_CHARS
    while True:
        rows = [_row(at, worked, room) for at, worked in enumerate(outcome.works)]
        text = msgspec.json.encode({"results": rows}).decode()
        if len(text) <= SHARED_CHARS or room <= _LEAST_CHARS:
            return text
        room //= 2


def _row(at: int, worked: Worked, room: int) -> dict[str, Any]:
    return {
        "task_index": at,
        "name": worked.name,
        "status": "completed" if worked.status == "completed" else "error",
        "summary": _truncate_middle(last_words(worked), room),
        "turns": worked.turns,
        "tokens": {"input": worked.input_tokens, "output": worked.output_tokens},
    }


def _truncate_middle(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    half = room // 2
    return f"{text[:half]}\n\n... [truncated {len(text) - 2 * half} chars] ...\n\n{text[-half:]}"
