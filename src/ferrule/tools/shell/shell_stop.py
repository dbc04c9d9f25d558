"""Stop a task."""

from ferrule.core.access import Access
from ferrule.core.errors import ToolFailure
from ferrule.core.tasks import TaskStopped
from ferrule.core.tool import Context, Tool
from ferrule.support.tasks import Tasks
from ferrule.tools.shell.named import TaskArgs, find
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
        return (Access("process", "write", find(args, ctx).id, "own"),)

    async def run(self, args: ShellStopArgs, ctx: Context) -> TaskStopped:
        task = find(args, ctx)
        if not await ctx.need(Tasks).stop(task):
            raise ToolFailure(f"There is nothing to stop: {task.ending()}", code="not-running")
        return TaskStopped(seen(task))
