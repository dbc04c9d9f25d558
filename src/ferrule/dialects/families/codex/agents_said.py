"""How codex reads what agents do."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ferrule.core.delegated import AgentSent, AgentsSeen, AgentStopped
    from ferrule.core.subagents import Worked
    from ferrule.dialects.agent_says import Outcome


def spawned(outcome: "Outcome") -> dict[str, str] | str:
    """Whom to wait for."""
    from ferrule.core.delegated import LeftAgent  # for sessions with subagents
    from ferrule.dialects.agent_says import message

    if not isinstance(outcome, LeftAgent):
        return message(outcome)
    return {"agent_id": outcome.worked.id, "nickname": outcome.worked.description or outcome.worked.name}


def waited(outcome: "AgentsSeen") -> dict[str, Any]:
    """Those that have ended; none where the time was over first."""
    ended = {worked.id: _stands(worked) for worked in outcome.works if worked.status != "running"}
    return {"status": ended, "timed_out": outcome.timed_out}


def listed(outcome: "AgentsSeen") -> dict[str, Any]:
    rows = [
        {"agent_name": one.id, "agent_status": _now(one), "last_task_message": one.description} for one in outcome.works
    ]
    return {"agents": rows}


def resumed(outcome: "AgentsSeen") -> dict[str, Any]:
    """How one is that can be told more, whether it has ended or not."""
    return {"status": _now(outcome.works[0])}


def sent(outcome: "AgentSent") -> dict[str, str]:
    return {"submission_id": outcome.call_id, "agent_id": outcome.worked.id}


def closed(outcome: "AgentStopped") -> dict[str, Any]:
    return {"status": _stands(outcome.worked)}


def _now(worked: "Worked") -> dict[str, str] | str:
    return "running" if worked.status == "running" else _stands(worked)


def _stands(worked: "Worked") -> dict[str, str] | str:
    """How it ended, with what it said."""
    from ferrule.core.delegated import last_words  # for sessions with subagents

    if worked.status in {"running", "stopped"}:
        return "shutdown"
    return {"completed" if worked.status == "completed" else "errored": last_words(worked)}
