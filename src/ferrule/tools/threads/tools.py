"""Find and read earlier threads, as tools."""

from collections.abc import Callable
from typing import TypeVar

from ferrule.core.access import Access, within
from ferrule.core.errors import BadArguments, Denied, ToolFailure
from ferrule.core.services import Planning
from ferrule.core.tool import READS, Args, Context, Tool
from ferrule.files.jail import Jail
from ferrule.system import Threads
from ferrule.system.sqlite import UnusableError
from ferrule.tools.threads import (
    Selected,
    Thread,
    ThreadFinding,
    ThreadFound,
    ThreadMetadata,
    ThreadRead,
    ThreadsFound,
    messages,
    parse_thread_id,
    select,
    when,
)
from ferrule.tools.threads.store import ThreadStore

T = TypeVar("T")


async def look(ctx: Context, work: Callable[[ThreadStore], T]) -> T:
    """What `work` finds in the session's store."""
    return await ctx.need(Threads).run(_call_store, work, ctx.need(ThreadStore))


def _call_store(work: Callable[[ThreadStore], T], store: ThreadStore) -> T:

    try:
        return work(store)
    except UnusableError as error:
        raise ToolFailure(
            f"{error} Go on without earlier threads, or try again later.", code="store-unusable"
        ) from error


def folders(ctx: Context) -> list[str]:
    """The folders whose threads are the session's to read."""
    return [root.path for root in ctx.need(Jail).roots]


_MOST = 100


class FindThreadArgs(Args, frozen=True, kw_only=True):
    query: str
    limit: int = 20


class FindThread(Tool[FindThreadArgs, ThreadsFound]):
    """Looks among the threads of the session's folders, its own one aside. It touches nothing."""

    name = "find_thread"
    args = FindThreadArgs
    title = "Find earlier threads"
    hints = READS

    def access(self, args: FindThreadArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - nothing is touched
        return ()

    async def run(self, args: FindThreadArgs, ctx: Context) -> ThreadsFound:
        if args.limit < 1:
            raise BadArguments(f"{ctx.param('limit')}: must be at least 1.")
        home, limit = folders(ctx), min(args.limit, _MOST)
        findings = await look(ctx, lambda store: store.find(args.query, limit=limit, workspace=home, own=False))
        for note in findings.notes:
            ctx.note(note)
        return ThreadsFound(args.query, tuple(_build_found(one, home[0]) for one in findings.found), findings.total)


def _build_found(finding: ThreadFinding, home: str) -> ThreadFound:
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


LIMIT_CHARS = 40_000
_TITLE_CHARS = 80


class ReadThreadArgs(Args, frozen=True, kw_only=True):
    thread: str
    goal: str


class ReadThread(Tool[ReadThreadArgs, ThreadRead]):
    """A thread as text. One of the session's folders touches nothing; about one of elsewhere the user is asked."""

    name = "read_thread"
    args = ReadThreadArgs
    title = "Read an earlier thread"
    hints = READS

    def access(self, args: ReadThreadArgs, ctx: Context) -> tuple[Access, ...]:
        # Its folder is known only once it is found. It is not touched, and a yes to reading a thread opens no folder.
        if not args.thread.strip():
            raise BadArguments(f"{ctx.param('thread')}: it is empty; find_thread says which threads there are.")
        return ()

    async def run(self, args: ReadThreadArgs, ctx: Context) -> ThreadRead:
        about = await look(ctx, lambda store: _about(store, args.thread))
        await _ask(about, ctx)
        thread = await look(ctx, lambda store: store.load(about.id))
        if thread is None:
            raise _no_thread_failure(args.thread)
        selected = await ctx.need(Threads).run(_select_messages, thread, args.goal)
        if thread.skipped:
            ctx.note(f"The last {thread.skipped} entries of the thread are damaged and were left out.")
        return ThreadRead(
            about.id,
            about.title,
            when(about.updated),
            about.workspace,
            about.model,
            selected.text,
            selected.total,
            selected.left_out,
        )


def _about(store: ThreadStore, name: str) -> ThreadMetadata:
    meant = store.find_ids(name)
    if len(meant) > 1:
        raise ToolFailure(
            f"{name} is the beginning of several ids: {', '.join(meant)}. Give one in full.", code="ambiguous"
        )
    about = store.about(meant[0]) if meant else None
    if about is None:
        raise _no_thread_failure(name)
    return about


def _no_thread_failure(name: str) -> ToolFailure:
    hint = "" if parse_thread_id(name) else " An id looks like T-5928a90d-d53b-488f-a829-4e36442142ee."
    return ToolFailure(f"There is no thread {name[:200]}.{hint} Look for it with find_thread.", code="not-found")


async def _ask(about: ThreadMetadata, ctx: Context) -> None:
    if any(within(about.workspace, folder) for folder in folders(ctx)):
        return
    where = about.workspace or "an unknown folder"
    if ctx.need(Planning).is_held:
        raise Denied(
            f"The thread {about.id} is about another workspace, {where}: reading it needs the user's yes, and nothing "
            "more is asked for in plan mode. Plan without it, or name it in the plan.",
            code="not-allowed",
        )
    # What a model may have written, the title, comes last: it cannot hide what the question is about.
    if not await ctx.approve(f"read the thread {about.id} of another workspace, {where}: {about.title[:_TITLE_CHARS]}"):
        raise Denied(
            f"The thread {about.id} is about another workspace, {where}, and the user did not let it be read.",
            code="not-allowed",
        )


def _select_messages(thread: Thread, goal: str) -> Selected:
    return select(messages(thread.items), goal, limit_chars=LIMIT_CHARS)
