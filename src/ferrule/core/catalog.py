"""What `tool_search` looks in: the session's deferred tools."""

from collections.abc import Sequence
from typing import Literal

from ferrule.core.elsewhere import ToolFound

How = Literal["substring", "ranked"]
"""Substring: those whose name or description holds the query come first. Ranked: those that fit best do."""


class Catalog:
    """The registry, as a tool reaches it: `ctx.need(Catalog)`."""

    async def search(self, query: str, *, how: How, limit: int | None = None) -> list[ToolFound]:
        """The deferred tools that fit the words; they are loaded from now on.

        Servers that were never listed are asked for their tools first.
        """
        raise NotImplementedError

    async def select(self, names: Sequence[str]) -> tuple[list[ToolFound], list[str]]:
        """The tools of these names, which are loaded from now on, and the names that mean none of them."""
        raise NotImplementedError

    def summary(self) -> str:
        """What there is to be found, in a few names; empty where there is nothing."""
        raise NotImplementedError

    def lists(self, name: str) -> bool:
        """Is the model shown a tool of this name anyway?"""
        raise NotImplementedError

    @property
    def definitions_follow(self) -> bool:
        """Does the model get the whole definitions of loaded tools with its next turn? Then nobody repeats them."""
        raise NotImplementedError
