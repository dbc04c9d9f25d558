"""Stop an agent of the background."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.delegated import AgentStopped, subagents
from ferrule.core.tool import Context, Tool
from ferrule.tools.agents.left import find


class AgentStopArgs(Args, frozen=True, kw_only=True):
    id: str


class AgentStop(Tool[AgentStopArgs, AgentStopped]):
    """With all that it does. One that has ended stays as it is."""

    name = "agent_stop"
    args = AgentStopArgs
    waits = True

    def access(self, args: AgentStopArgs, ctx: Context) -> tuple[Access, ...]:
        # The session's own: who was let start it may stop it.
        return (Access("process", "write", find(args.id, ctx).id, "own"),)

    async def run(self, args: AgentStopArgs, ctx: Context) -> AgentStopped:
        agent = find(args.id, ctx)
        if agent.status != "running":
            return AgentStopped(agent)
        return AgentStopped(await subagents(ctx).stop(agent.id) or agent)
