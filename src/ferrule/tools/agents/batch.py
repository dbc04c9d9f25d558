"""Several tasks at once, each for a subagent of its own."""

import asyncio
from collections.abc import Sequence

import msgspec

from ferrule.core.errors import FerruleError, ToolFailure
from ferrule.core.subagents import Job, Subagent, Subagents, Worked
from ferrule.core.tool import Context
from ferrule.tools.agents.kinds import prompt
from ferrule.tools.agents.toolsets import toolset

MOST_TASKS = 5
_NAME_CHARS = 24


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    goal: str = ""
    context: str = ""
    toolsets: tuple[str, ...] = ()


def check(tasks: Sequence[Task] | None, goal: str) -> None:
    """Raise where there is nothing to do, or too much. A list of tasks counts before a single goal."""
    if tasks is None:
        if not goal.strip():
            raise ToolFailure("Provide either 'goal' (single task) or 'tasks' (batch).", code="no-goal")
        return
    if not tasks:
        raise ToolFailure("No tasks provided.", code="no-tasks")
    if len(tasks) > MOST_TASKS:
        raise ToolFailure(
            f"Too many tasks: {len(tasks)} provided, but the per-call limit is {MOST_TASKS}.",
            code="too-many-tasks",
            count=len(tasks),
        )
    for at, task in enumerate(tasks):
        if not task.goal.strip():
            raise ToolFailure(f"Task {at} is missing a non-empty 'goal'.", code="no-goal", count=at)


def worker(task: Task) -> Subagent:
    """The subagent for a task: named after it, with the tools that the task names and those alone."""
    # It is shown to people, and no sign of it may steer their screens.
    word = "".join(filter(str.isprintable, task.goal.split()[0]))[:_NAME_CHARS]
    return Subagent(
        name=f"delegate-{word}",
        model="",
        tools=toolset(task.toolsets),
        system=prompt("delegate.md"),
        role="delegate",
    )


def told(task: Task) -> str:
    """What the subagent reads."""
    context = task.context.strip()
    return f"{task.goal.strip()}\n\nContext:\n{context}" if context else task.goal.strip()


async def share(jobs: Sequence[Job], runs: Subagents, ctx: Context) -> tuple[Worked, ...]:
    """What came of each, in their order. One that fails leaves the others alone; cancelling this stops them all."""
    done = 0

    async def work(job: Job) -> Worked:
        nonlocal done
        try:
            worked = await runs.work(job, ctx)
        except FerruleError as error:
            worked = Worked("", job.agent.name, "failed", str(error), reason="error")
        done += 1
        ctx.progress(f"{done} of {len(jobs)} tasks are done.")
        return worked

    async with asyncio.TaskGroup() as group:
        works = [group.create_task(work(job)) for job in jobs]
    return tuple(work.result() for work in works)
