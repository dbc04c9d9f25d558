"""What both tools need of the store: away from the event loop, and with failures that a model understands."""

from collections.abc import Callable
from typing import TypeVar

from ferrule.core.errors import ToolFailure
from ferrule.core.tool import Context
from ferrule.support.threads import Threads
from ferrule.workspace.paths import Jail
from ferrule.workspace.thread_store import ThreadStore

T = TypeVar("T")


async def look(ctx: Context, work: Callable[[ThreadStore], T]) -> T:
    """What `work` finds in the session's store."""
    return await ctx.need(Threads).run(_looked, work, ctx.need(ThreadStore))


def _looked(work: Callable[[ThreadStore], T], store: ThreadStore) -> T:
    from ferrule.support.sqlite import UnusableError  # loads SQLite

    try:
        return work(store)
    except UnusableError as error:
        raise ToolFailure(
            f"{error} Go on without earlier threads, or try again later.", code="store-unusable"
        ) from error


def folders(ctx: Context) -> list[str]:
    """The folders whose threads are the session's to read."""
    return [root.path for root in ctx.need(Jail).roots]
