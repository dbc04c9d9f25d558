"""Tell an agent of the background more."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.delegated import AgentSent, subagents
from ferrule.core.errors import BadArguments
from ferrule.core.tool import Context, Tool
from ferrule.tools.agents.kinds import MOST_PROMPT_CHARS
from ferrule.tools.agents.left import find


class AgentSendArgs(Args, frozen=True, kw_only=True):
    id: str
    message: str
    interrupt: bool = False
    """Is it to leave what it does at once?"""


class AgentSend(Tool[AgentSendArgs, AgentSent]):
    """One that works hears it with its next replies. One that has ended goes on with it, in the background."""

    name = "agent_send"
    args = AgentSendArgs
    waits = True

    def access(self, args: AgentSendArgs, ctx: Context) -> tuple[Access, ...]:
        """Nothing by itself: what the agent does then is decided on call by call."""
        if not args.message.strip():
            raise BadArguments(f"{ctx.param('message')}: must say what the agent is to know or to do.")
        if len(args.message) > MOST_PROMPT_CHARS:
            raise BadArguments(
                f"{ctx.param('message')}: must have at most {MOST_PROMPT_CHARS:,} characters. Name files instead."
            )
        find(args.id, ctx)
        return ()

    async def run(self, args: AgentSendArgs, ctx: Context) -> AgentSent:
        agent = find(args.id, ctx)
        sent = await subagents(ctx).send(agent.id, args.message, ctx, interrupt=args.interrupt)
        return AgentSent(sent or agent, ctx.call_id)
