"""What `tool_search` looks in: the session's deferred tools."""

from typing import Literal

from ferrule.core.elsewhere import ToolFound

How = Literal["substring", "ranked"]


class Catalog:
    """The registry, as a tool reaches it: `ctx.need(Catalog)`."""

    async def search(self, query: str, *, how: How, limit: int | None = None) -> list[ToolFound]:
        """The deferred tools that fit the words; they are loaded from now on.

        Servers that were never listed are asked for their tools first.
        """
        raise NotImplementedError
