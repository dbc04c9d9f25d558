"""How opencode reads what came back."""

from typing import TYPE_CHECKING

from ferrule.core.outcomes import Created, Edited, Found, Hits, Matching, Planned, Ran
from ferrule.core.tasks import Left
from ferrule.dialects.says import about_skill, left, matching, paths

if TYPE_CHECKING:
    from ferrule.core.elsewhere import SkillLoaded
    from ferrule.dialects.agent_says import Outcome


def written(_: Created) -> str:
    return "Wrote file successfully."


def edited(outcome: Edited | Created) -> str:
    return written(outcome) if isinstance(outcome, Created) else "Edit applied successfully."


def ran(outcome: Ran | Left) -> str:
    if isinstance(outcome, Left):
        return left(outcome)
    stopped, quiet = outcome.timed_out_after, outcome.quiet_after
    about = [f"Command was stopped after {stopped * 1000:.0f} ms"] if stopped is not None else []
    about += [f"Command was stopped after {quiet * 1000:.0f} ms without output"] if quiet is not None else []
    about += [f"Exit code: {outcome.exit_code}"] if outcome.exit_code else []
    body = outcome.output or "(no output)"
    return f"{body}\n\n<metadata>\n{chr(10).join(about)}\n</metadata>" if about else body


def found(outcome: Found) -> str:
    return paths(
        outcome, none="No files found", more="(Results are truncated: {remaining} more. Use a narrower pattern.)"
    )


def matched(outcome: Hits | Matching) -> str:
    if isinstance(outcome, Matching):
        return matching(outcome, none="No files found")
    if not outcome.lines:
        return "No files found"
    rows = [f"Found {outcome.total} matches"]
    path = None
    for hit in outcome.lines:
        if hit.path != path:
            rows += ["", f"{hit.path}:"] if path else [f"{hit.path}:"]
            path = hit.path
        rows.append(f"  Line {hit.line}: {hit.text}")
    more = outcome.total - sum(not hit.context for hit in outcome.lines)
    rest = ["", f"(Results are truncated: {more} more matches. Use a narrower path or pattern.)"] if more > 0 else []
    return "\n".join([*rows, *rest])


def planned(outcome: Planned) -> str:
    rows = (f"[{step.status}] {step.text}" + (f" ({step.priority})" if step.priority else "") for step in outcome.steps)
    return "\n".join(rows) or "(nothing is planned)"


def skill(outcome: "SkillLoaded") -> str:
    """The instructions under the skill's name, and below them where their paths start from."""
    folder = [f"Base directory for this skill: {outcome.folder}"] if outcome.folder else []
    rows = [f'<skill_content name="{outcome.name}">', f"# Skill: {outcome.name}", "", outcome.text]
    about = [*folder, *about_skill(outcome)]
    return "\n".join([*rows, *(["", *about] if about else []), "</skill_content>"])


def task(outcome: "Outcome") -> str:
    """The id, and the last message between tags."""
    from ferrule.core.delegated import Delegated  # for sessions with subagents
    from ferrule.dialects.agent_says import message

    if not isinstance(outcome, Delegated):
        return message(outcome)
    head = f"task_id: {outcome.worked.id} (for resuming to continue this task if needed)"
    return "\n".join([head, "", "<task_result>", message(outcome), "</task_result>"])
