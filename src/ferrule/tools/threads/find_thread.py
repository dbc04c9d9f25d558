"""Find earlier conversations about this workspace."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments
from ferrule.core.threads import ThreadFound, ThreadsFound
from ferrule.core.tool import Context, Tool
from ferrule.tools.threads.looking import folders, look
from ferrule.workspace.thread import when
from ferrule.workspace.thread_store import Finding

_MOST = 100


class FindThreadArgs(Args, frozen=True, kw_only=True):
    query: str
    limit: int = 20


class FindThread(Tool[FindThreadArgs, ThreadsFound]):
    """Looks among the threads of the session's folders, its own one aside. It touches nothing."""

    name = "find_thread"
    args = FindThreadArgs

    def access(self, args: FindThreadArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - nothing is touched
        return ()

    async def run(self, args: FindThreadArgs, ctx: Context) -> ThreadsFound:
        if args.limit < 1:
            raise BadArguments(f"{ctx.param('limit')}: must be at least 1.")
        home, limit = folders(ctx), min(args.limit, _MOST)
        findings = await look(ctx, lambda store: store.find(args.query, limit=limit, workspace=home, own=False))
        for note in findings.notes:
            ctx.note(note)
        return ThreadsFound(args.query, tuple(_found(one, home[0]) for one in findings.found), findings.total)


def _found(finding: Finding, home: str) -> ThreadFound:
    about = finding.about
    return ThreadFound(
        about.id,
        about.title,
        when(about.updated),
        about.turns,
        finding.excerpt,
        finding.files,
        finding.more_files,
        about.workspace if about.workspace != home else "",
    )
