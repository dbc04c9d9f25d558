"""List the tasks: commands, and then agents."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.delegated import subagents
from ferrule.core.tasks import TaskList
from ferrule.core.tool import Context, Tool
from ferrule.support.tasks import Tasks
from ferrule.tools.shell.named import agent_seen
from ferrule.tools.shell.starting import seen


class ShellListArgs(Args, frozen=True, kw_only=True):
    pass


class ShellList(Tool[ShellListArgs, TaskList]):
    """Those that run, and those that ended and are remembered."""

    name = "shell_list"
    args = ShellListArgs

    def access(self, args: ShellListArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it touches nothing
        return ()

    async def run(self, args: ShellListArgs, ctx: Context) -> TaskList:  # noqa: ARG002 - it has none
        agents = map(agent_seen, subagents(ctx).list())
        return TaskList((*map(seen, ctx.need(Tasks).list()), *agents))
