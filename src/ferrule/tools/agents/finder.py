"""Find code by what it does: with a model that searches, or else by a ranked index of the files."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.delegated import subagents
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.found import Spot, Spots
from ferrule.core.subagents import Job, Worked
from ferrule.core.tool import Context, Tool
from ferrule.support import ripgrep
from ferrule.support.threads import Threads
from ferrule.tools.agents.asking import specialist, worked
from ferrule.tools.search.program import rg
from ferrule.workspace.guarded import Guard
from ferrule.workspace.paths import Jail
from ferrule.workspace.ranked_files import RankedFiles

PLACES = 10
_QUERY_CHARS = 4_000
_LINE_CHARS = 200


class FinderArgs(Args, frozen=True, kw_only=True):
    query: str


class Finder(Tool[FinderArgs, Worked | Spots]):
    """Places in the workspace that fit a question in words; nothing is changed, and nobody is asked."""

    name = "finder"
    args = FinderArgs
    timed = False
    waits = True

    def __init__(self) -> None:
        self._files: RankedFiles | None = None
        """The index, kept for the session."""

    def access(self, args: FinderArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it is the same for all
        """Nothing by itself: whoever it asks has calls of their own, and the index has only what needs no question."""
        return ()

    async def run(self, args: FinderArgs, ctx: Context) -> Worked | Spots:
        if not args.query.strip():
            raise BadArguments(f"{ctx.param('query')}: is empty; say in words what to look for.")
        if not subagents(ctx).can_run:
            ctx.note("No model was asked: this session has none for subagents. The places are ranked by their words.")
            return await self._ranked(args.query[:_QUERY_CHARS], ctx)
        agent = specialist("finder", ("read", "glob", "grep"))
        try:
            return await worked(Job(agent, args.query, description=_short(args.query)), ctx)
        except ToolFailure as failure:
            ctx.note(f"{failure.message} The places are ranked by their words instead.")
            return await self._ranked(args.query[:_QUERY_CHARS], ctx)

    async def _ranked(self, query: str, ctx: Context) -> Spots:
        jail, threads, program = ctx.need(Jail), ctx.need(Threads), rg(ctx)
        listed = {}
        for root in jail.roots:
            jail.check(root.path)
            try:
                listed[root.path] = await ripgrep.files(program, root.path, hidden=False)
            except OSError as error:
                raise ToolFailure(f"The files of {root.path} cannot be listed: {error}.", path=root.path) from error
        if self._files is None or self._files.jail is not jail:
            self._files = RankedFiles(jail, ctx.need(Guard))
        refreshed = await threads.run(self._files.refresh, listed, tell=ctx.progress, is_over=lambda: ctx.over)
        if refreshed.left_out:
            ctx.note(f"{refreshed.left_out:,} files were too many for the index; the deepest ones were left out.")
        if refreshed.begun:
            ctx.note(
                f"There is more text than the index holds: {refreshed.begun:,} long files are in it with their first "
                "lines only."
            )
        found = await threads.run(self._files.search, query, PLACES)
        spots = (Spot(one.path, one.region.first, one.region.last, one.region.line[:_LINE_CHARS]) for one in found)
        return Spots(query, tuple(spots), refreshed.files)


def _short(query: str) -> str:
    first = query.strip().partition("\n")[0]
    return first if len(first) <= 80 else first[:77] + "..."
