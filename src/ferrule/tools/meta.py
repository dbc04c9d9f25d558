"""Read and list the resources of MCP servers, and search for deferred tools.

Deferred tools that a search finds can be called from then on.
"""

from typing import Any

from ferrule.core.access import Access
from ferrule.core.catalog import Catalog, How
from ferrule.core.elsewhere import Mixed, ServerResources, ToolFound, ToolsFound
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.services import INSTRUCTIONS, Offered
from ferrule.core.tool import READS, READS_OUTSIDE, Args, Context, Tool


class ReadResourceArgs(Args, frozen=True, kw_only=True):
    uri: str
    server: str | None = None


class ReadResource(Tool[ReadResourceArgs, Mixed]):
    """One resource, by its address."""

    name = "read_mcp_resource"
    args = ReadResourceArgs
    title = "Read a resource of a server"
    hints = READS_OUTSIDE

    def access(self, args: ReadResourceArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - no path is meant
        if args.uri.startswith(INSTRUCTIONS):
            return ()  # they are kept here, and the user has approved them
        return (Access.server(args.server or "*", mode="read"),)

    async def run(self, args: ReadResourceArgs, ctx: Context) -> Mixed:
        if not args.uri.strip():
            raise BadArguments(f"{ctx.param('uri')}: it is empty; list_mcp_resources says what there is.")
        return await ctx.need(Offered).read(args.server or None, args.uri)


class ListResourcesArgs(Args, frozen=True, kw_only=True):
    server: str | None = None
    cursor: str | None = None


class ListResources(Tool[ListResourcesArgs, ServerResources]):
    """The resources of one server, or of all."""

    name = "list_mcp_resources"
    args = ListResourcesArgs
    title = "List the resources of servers"
    hints = READS_OUTSIDE
    templates = False

    def access(self, args: ListResourcesArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - no path is meant
        return (Access.server(args.server or "*", mode="read"),)

    async def run(self, args: ListResourcesArgs, ctx: Context) -> ServerResources:
        offered = ctx.need(Offered)
        return await offered.resources(args.server or None, templates=self.templates, cursor=args.cursor or "")


class ListResourceTemplates(ListResources):
    """The templates of one server, or of all."""

    name = "list_mcp_resource_templates"
    title = "List the resource templates"
    hints = READS_OUTSIDE
    templates = True


MOST = 50
"""How many tools one search loads at most: their schemas enter the prompt."""
_SELECT = "select:"
"""Before names of tools, with commas between them: these are loaded, and nothing is searched."""


class ToolSearchArgs(Args, frozen=True, kw_only=True):
    query: str
    limit: int | None = None
    how: How = "ranked"


class ToolSearch(Tool[ToolSearchArgs, ToolsFound]):
    """Looks in the session's catalog. It touches nothing: what it loads can be called, and is asked about as ever."""

    name = "tool_search"
    args = ToolSearchArgs
    title = "Search for tools"
    hints = READS
    schema: dict[str, Any] = {  # noqa: RUF012 - written once, as every schema
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What the tool is to do, or a part of its name. `select:NAME,NAME` loads these by name.",
            },
            "limit": {"type": "integer", "description": "How many tools at most; 8 unless given."},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    words = (
        "Find tools that are not listed in full.\n\n"
        "You get back the tools that fit best, each with its description, and can call them from then on."
    )

    def access(self, args: ToolSearchArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it is in memory
        return ()

    async def run(self, args: ToolSearchArgs, ctx: Context) -> ToolsFound:
        query = args.query.strip()
        if not query:
            raise ToolFailure(f"{ctx.param('query')}: say what to look for.", code="empty-query")
        if args.limit is not None and args.limit < 1:
            raise ToolFailure(f"{ctx.param('limit')}: must be at least 1.", code="bad-arguments")
        catalog = ctx.need(Catalog)
        if query[: len(_SELECT)].lower() == _SELECT:
            found = await self._select(query[len(_SELECT) :], catalog, ctx)
        else:
            limit = args.limit if args.limit is not None else MOST if args.how == "substring" else None
            found = await catalog.search(query, how=args.how, limit=limit if limit is None else min(limit, MOST))
            if len(found) == MOST:
                ctx.note(f"These are the first {MOST}; there may be more. A longer query finds fewer.")
        if not found:
            ctx.note(_hint(catalog))
        return ToolsFound(query, tuple(found), catalog.definitions_follow)

    async def _select(self, listed: str, catalog: Catalog, ctx: Context) -> list[ToolFound]:
        """The tools whose names are listed, and a note about the others."""
        names = list(dict.fromkeys(name.strip() for name in listed.split(",") if name.strip()))
        if not names:
            raise ToolFailure(f"{ctx.param('query')}: name a tool behind {_SELECT}", code="empty-query")
        found, unknown = await catalog.select(names[:MOST])
        there = [name for name in unknown if catalog.lists(name)]
        missing = [name for name in unknown if name not in there]
        if there:
            ctx.note(f"{', '.join(there)}: listed in full already; call it.")
        if missing:
            ctx.note(f"No deferred tool is called {' or '.join(missing)[:500]}. Search for words of what it does.")
        if len(names) > MOST:
            ctx.note(f"Only the first {MOST} names were looked at.")
        return found


def _hint(catalog: Catalog) -> str:
    there = catalog.summary()
    if not there:
        return "There is nothing to be found: all tools of this session are listed in full."
    return f"Say it in other words, or name a tool. There are: {there}."
