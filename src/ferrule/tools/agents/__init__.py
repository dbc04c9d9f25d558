"""Hand work from a tool to a subagent: find it, choose its tools, and judge its result.

A subagent never gets more tools than its caller has.
"""

from collections.abc import Iterable, Sequence

from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.services import Job, Subagent, Subagents, Worked, subagents
from ferrule.core.tool import Context
from ferrule.tools import BUILTIN
from ferrule.tools.agents.kinds import READS, SHELLS, prompt

_LISTED = 20


def find(name: str, ctx: Context) -> Worked:
    """The agent of this id. Raises with those that there are."""
    known = subagents(ctx).list()
    found = next((one for one in known if one.id == name.strip()), None)
    if found is None:
        names = ", ".join(f"{one.id} ({one.status})" for one in known[-_LISTED:])
        hint = f"There are {names}." if names else "None was left working in the background."
        raise ToolFailure(f"There is no agent with the id {name[:100]!r}. {hint}", code="unknown-task")
    return found


NOTHING_SAID = ("read", "grep", "glob")
"""What a task gets that names no tools."""
EDITS = tuple(name for name, tool in BUILTIN.items() if tool.rules == "Edit")
_EVERYTHING = "all"
GROUPS = {
    "read-only": READS,
    "edit": (*READS, *EDITS),
    "file": (*READS, *EDITS),
    "shell": SHELLS,
    "terminal": SHELLS,
    "web": ("web_fetch", "web_search"),
}
"""Names for several tools at once, beside `all`. Any other name is that of one tool."""
_PATTERN = frozenset("*?[]{}()!")
_MOST_NAMES = 100


def toolset(names: Sequence[str]) -> tuple[str, ...] | None:
    """The tools that a task names, singly or in groups; None for all that its caller has."""
    wanted = [name.strip() for name in names if name.strip()]
    if _EVERYTHING in wanted:
        return None
    if not wanted:
        return NOTHING_SAID
    found: dict[str, None] = {}
    for name in wanted[:_MOST_NAMES]:
        found.update(dict.fromkeys(GROUPS.get(name, (name,))))
    return tuple(found)


def tell_lacking(names: Iterable[str], runs: Subagents, ctx: Context) -> None:
    """Say which of the tools that are named singly the caller has not: nobody can be given those."""
    single = [name for name in map(str.strip, names) if name and name not in GROUPS and name != _EVERYTHING]
    single = [name for name in single[:_MOST_NAMES] if not _PATTERN.intersection(name)]
    had = runs.beyond(Subagent(name="", model="", tools=(), system=""), single, ctx)
    lacking = dict.fromkeys(repr(name[:80]) for name in single if name not in had)
    if lacking:
        ctx.note(f"You have no tool {', '.join(lacking)}, so the agent works without.")


def check_names(names: Sequence[str], ctx: Context) -> None:
    """Raise where it is not tools that are named: the user is asked about each, and not about a pattern."""
    for name in names:
        if not name.strip() or not name.isprintable() or _PATTERN.intersection(name):
            raise BadArguments(
                f"{ctx.param('allowed_tools')}: name each tool alone, without a pattern ({name[:80]!r})."
            )
    if len(names) > _MOST_NAMES:
        raise BadArguments(f"{ctx.param('allowed_tools')}: at most {_MOST_NAMES} tools can be named.")


async def grant_tools(agent: Subagent, names: Iterable[str], runs: Subagents, ctx: Context) -> Subagent:
    """The subagent with tools that its kind lacks and its caller has, where the user says yes to them."""
    wanted = tuple(dict.fromkeys(name.strip() for name in names))
    if not wanted:
        return agent
    tell_lacking(wanted, runs, ctx)
    barred = runs.beyond(agent._replace(tools=None), wanted, ctx)
    if barred:
        ctx.note(f"The kind {agent.name} rules out {', '.join(barred)}; that was not changed.")
    more = [name for name in runs.beyond(agent._replace(denied=()), wanted, ctx) if name not in barred]
    if not more or agent.tools is None:
        return agent
    held = " It would no longer be held to reading." if agent.mode == "plan" else ""
    if not await ctx.approve(
        f"Give the agent {agent.name} also {', '.join(more)}, which its kind does not have?{held} "
        "Each of its calls is decided on all the same."
    ):
        ctx.note(f"The user has not given the agent {', '.join(more)}; it works without.")
        return agent
    return agent._replace(tools=(*agent.tools, *more), mode="" if agent.mode == "plan" else agent.mode)


READING = ("read", "glob", "grep", "list_dir")
"""The tools of those who only look."""
WEB = ("web_search", "web_fetch", "read_web_page")
EDITING = ("read", "glob", "grep", "edit", "write")

_SUMMARY_CHARS = 400


def specialist(name: str, tools: tuple[str, ...], *, kind: str = "") -> Subagent:
    """A subagent for one purpose, with its prompt. Whoever has no tool to edit with is also held to reading.

    `kind` is what the settings call it, where that is not its name.
    """
    mode = "" if "edit" in tools else "plan"
    return Subagent(name=name, model="", tools=tools, system=prompt(f"{name}.md"), role=kind or name, mode=mode)


async def run_job(job: Job, ctx: Context) -> Worked:
    """Its end, where that is of use: an answer that a limit cut short has a note, one that never came is a failure."""
    done = await subagents(ctx).work(job, ctx)
    if done.status != "completed" and not (done.status == "stopped" and done.text.strip()):
        raise ToolFailure(f"The {job.agent.name} did not answer: {explain_unfinished(done)}", code="subagent-failed")
    if not done.text.strip():
        raise ToolFailure(
            f"The {job.agent.name} ended without an answer. Ask it again, or look yourself.", code="empty"
        )
    if done.reason != "end" or done.status != "completed":
        ctx.note(f"The {job.agent.name} was not done: {explain_unfinished(done)}")
    ctx.note(f"The {job.agent.name} took {format_usage((done,))}.")
    return done


def explain_unfinished(done: Worked) -> str:
    """Why it was not done, as a sentence."""
    why = done.why or done.text.strip()[:_SUMMARY_CHARS] or f"it was {done.status} ({done.reason})"
    return why if why.endswith((".", "!", "?")) else f"{why}."


def format_usage(every: tuple[Worked, ...]) -> str:
    """Turns and tokens, in words."""
    turns = sum(one.turns for one in every)
    tokens = sum(one.input_tokens + one.output_tokens for one in every)
    return f"{turns:,} turn{'s' * (turns != 1)} and {tokens:,} tokens"
