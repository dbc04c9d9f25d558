"""Handing work to a subagent from a tool: its prompt, what it may have, and what to make of its end."""

from ferrule.core.delegated import subagents
from ferrule.core.errors import ToolFailure
from ferrule.core.subagents import Job, Subagent, Worked
from ferrule.core.tool import Context

READING = ("read", "glob", "grep", "list_dir")
"""The tools of those who only look."""
WEB = ("web_search", "web_fetch", "read_web_page")
EDITING = ("read", "glob", "grep", "edit", "write")

_SUMMARY_CHARS = 400


def specialist(name: str, tools: tuple[str, ...], *, kind: str = "") -> Subagent:
    """A subagent for one purpose, with its prompt. Whoever has no tool to edit with is also held to reading.

    `kind` is what the settings call it, where that is not its name.
    """
    from ferrule.tools.agents.kinds import prompt  # only where one is started

    mode = "" if "edit" in tools else "plan"
    return Subagent(name=name, model="", tools=tools, system=prompt(f"{name}.md"), role=kind or name, mode=mode)


async def worked(job: Job, ctx: Context) -> Worked:
    """Its end, where that is of use: an answer that a limit cut short has a note, one that never came is a failure."""
    done = await subagents(ctx).work(job, ctx)
    if done.status != "completed" and not (done.status == "stopped" and done.text.strip()):
        raise ToolFailure(f"The {job.agent.name} did not answer: {unfinished(done)}", code="subagent-failed")
    if not done.text.strip():
        raise ToolFailure(
            f"The {job.agent.name} ended without an answer. Ask it again, or look yourself.", code="empty"
        )
    if done.reason != "end" or done.status != "completed":
        ctx.note(f"The {job.agent.name} was not done: {unfinished(done)}")
    ctx.note(f"The {job.agent.name} took {spent((done,))}.")
    return done


def unfinished(done: Worked) -> str:
    """Why it was not done, as a sentence."""
    why = done.why or done.text.strip()[:_SUMMARY_CHARS] or f"it was {done.status} ({done.reason})"
    return why if why.endswith((".", "!", "?")) else f"{why}."


def spent(every: tuple[Worked, ...]) -> str:
    """Turns and tokens, in words."""
    turns = sum(one.turns for one in every)
    tokens = sum(one.input_tokens + one.output_tokens for one in every)
    return f"{turns:,} turn{'s' * (turns != 1)} and {tokens:,} tokens"
