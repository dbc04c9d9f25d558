"""Stop a task: a command with all its processes, or an agent with all that it does."""

from ferrule.core.access import Access
from ferrule.core.delegated import subagents
from ferrule.core.errors import ToolFailure
from ferrule.core.subagents import Worked
from ferrule.core.tasks import TaskStopped
from ferrule.core.tool import Context, Tool
from ferrule.support.tasks import Tasks
from ferrule.tools.shell.named import TaskArgs, agent_label, agent_seen, named
from ferrule.tools.shell.starting import seen


class ShellStopArgs(TaskArgs, frozen=True, kw_only=True):
    pass


class ShellStop(Tool[ShellStopArgs, TaskStopped]):
    """All processes of the task end: first they are told to, and a moment later they are killed."""

    name = "shell_stop"
    args = ShellStopArgs
    extras = ("number", "pid")

    def access(self, args: ShellStopArgs, ctx: Context) -> tuple[Access, ...]:
        # The session's own: who was let start it may stop it.
        return (Access("process", "write", named(args, ctx).id, "own"),)

    async def run(self, args: ShellStopArgs, ctx: Context) -> TaskStopped:
        task = named(args, ctx)
        if isinstance(task, Worked):
            return await _stop(task, ctx)
        if not await ctx.need(Tasks).stop(task):
            raise ToolFailure(f"There is nothing to stop: {task.ending()}", code="not-running")
        return TaskStopped(seen(task))


async def _stop(agent: Worked, ctx: Context) -> TaskStopped:
    stopped = await subagents(ctx).stop(agent.id) if agent.status == "running" else None
    if stopped is None:
        raise ToolFailure(
            f"There is nothing to stop: the agent {agent.id} ({agent_label(agent)}) has ended.", code="not-running"
        )
    return TaskStopped(agent_seen(stopped, stopped.text, total_chars=len(stopped.text)))
