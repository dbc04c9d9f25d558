"""What MCP servers offer to be read, as a list: resources, and templates of their addresses."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.elsewhere import ServerResources
from ferrule.core.offered import Offered
from ferrule.core.tool import Context, Tool


class ListResourcesArgs(Args, frozen=True, kw_only=True):
    server: str | None = None
    cursor: str | None = None


class ListResources(Tool[ListResourcesArgs, ServerResources]):
    """The resources of one server, or of all."""

    name = "list_mcp_resources"
    args = ListResourcesArgs
    templates = False

    def access(self, args: ListResourcesArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - no path is meant
        return (Access.server(args.server or "*", mode="read"),)

    async def run(self, args: ListResourcesArgs, ctx: Context) -> ServerResources:
        offered = ctx.need(Offered)
        return await offered.resources(args.server or None, templates=self.templates, cursor=args.cursor or "")


class ListResourceTemplates(ListResources):
    """The templates of one server, or of all."""

    name = "list_mcp_resource_templates"
    templates = True
