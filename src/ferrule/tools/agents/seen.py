"""List the agents of the background, and how far each is."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.delegated import AgentsSeen, subagents
from ferrule.core.tool import Context, Tool
from ferrule.tools.agents.left import find


class AgentListArgs(Args, frozen=True, kw_only=True):
    id: str = ""
    """One of them; all where nothing is said."""
    begins: str = ""
    """How the id, or what it does, begins."""


class AgentList(Tool[AgentListArgs, AgentsSeen]):
    """Those of whoever asks; it waits for none of them."""

    name = "agent_list"
    args = AgentListArgs

    def access(self, args: AgentListArgs, ctx: Context) -> tuple[Access, ...]:
        if args.id:
            find(args.id, ctx)
        return ()

    async def run(self, args: AgentListArgs, ctx: Context) -> AgentsSeen:
        every = (find(args.id, ctx),) if args.id else subagents(ctx).list()
        return AgentsSeen(
            tuple(one for one in every if one.id.startswith(args.begins) or one.description.startswith(args.begins))
        )
