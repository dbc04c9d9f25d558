"""Find deferred tools by words; those that are found can be called from then on."""

from typing import Any

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.catalog import Catalog, How
from ferrule.core.elsewhere import ToolsFound
from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context, Tool

MOST = 50
"""How many tools one search loads at most: their schemas enter the prompt."""


class ToolSearchArgs(Args, frozen=True, kw_only=True):
    query: str
    limit: int | None = None
    how: How = "ranked"


class ToolSearch(Tool[ToolSearchArgs, ToolsFound]):
    """Looks in the session's catalog. It touches nothing: what it loads can be called, and is asked about as ever."""

    name = "tool_search"
    args = ToolSearchArgs
    schema: dict[str, Any] = {  # noqa: RUF012 - written once, as every schema
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What the tool is to do, or a part of its name."},
            "limit": {"type": "integer", "description": "How many tools at most; 8 unless given."},
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    words = (
        "Find tools that are not listed in full.\n\n"
        "You get back the tools that fit best, each with its description and its parameters, and can call them from"
        " then on."
    )

    def access(self, args: ToolSearchArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it is in memory
        return ()

    async def run(self, args: ToolSearchArgs, ctx: Context) -> ToolsFound:
        query = args.query.strip()
        if not query:
            raise ToolFailure(f"{ctx.param('query')}: say what to look for.", code="empty-query")
        if args.limit is not None and args.limit < 1:
            raise ToolFailure(f"{ctx.param('limit')}: must be at least 1.", code="bad-arguments")
        limit = args.limit if args.limit is not None else MOST if args.how == "substring" else None
        if limit is not None and limit > MOST:
            limit = MOST
        found = await ctx.need(Catalog).search(query, how=args.how, limit=limit)
        if len(found) == MOST:
            ctx.note(f"These are the first {MOST}; there may be more. A longer query finds fewer.")
        return ToolsFound(query, tuple(found))
