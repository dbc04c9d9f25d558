"""Read what an MCP server offers to be read."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.elsewhere import Mixed
from ferrule.core.errors import BadArguments
from ferrule.core.offered import INSTRUCTIONS, Offered
from ferrule.core.tool import Context, Tool


class ReadResourceArgs(Args, frozen=True, kw_only=True):
    uri: str
    server: str | None = None


class ReadResource(Tool[ReadResourceArgs, Mixed]):
    """One resource, by its address."""

    name = "read_mcp_resource"
    args = ReadResourceArgs

    def access(self, args: ReadResourceArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - no path is meant
        if args.uri.startswith(INSTRUCTIONS):
            return ()  # they are kept here, and the user has approved them
        return (Access.server(args.server or "*", mode="read"),)

    async def run(self, args: ReadResourceArgs, ctx: Context) -> Mixed:
        if not args.uri.strip():
            raise BadArguments(f"{ctx.param('uri')}: it is empty; list_mcp_resources says what there is.")
        return await ctx.need(Offered).read(args.server or None, args.uri)
