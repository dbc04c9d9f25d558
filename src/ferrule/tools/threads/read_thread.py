"""Read an earlier conversation, or what matters of it for a goal."""

from ferrule.core.access import Access, within
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments, Denied, ToolFailure
from ferrule.core.planning import Planning
from ferrule.core.threads import ThreadRead
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.tools.threads.looking import folders, look
from ferrule.workspace.thread import named, when
from ferrule.workspace.thread_store import About, Thread, ThreadStore
from ferrule.workspace.thread_turns import Selected, messages, select

LIMIT_CHARS = 40_000
_TITLE_CHARS = 80


class ReadThreadArgs(Args, frozen=True, kw_only=True):
    thread: str
    goal: str


class ReadThread(Tool[ReadThreadArgs, ThreadRead]):
    """A thread as text. One of the session's folders touches nothing; about one of elsewhere the user is asked."""

    name = "read_thread"
    args = ReadThreadArgs

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
            raise _missing(args.thread)
        selected = await ctx.need(Threads).run(_selected, thread, args.goal)
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


def _about(store: ThreadStore, name: str) -> About:
    meant = store.meant(name)
    if len(meant) > 1:
        raise ToolFailure(
            f"{name} is the beginning of several ids: {', '.join(meant)}. Give one in full.", code="ambiguous"
        )
    about = store.about(meant[0]) if meant else None
    if about is None:
        raise _missing(name)
    return about


def _missing(name: str) -> ToolFailure:
    hint = "" if named(name) else " An id looks like T-5928a90d-d53b-488f-a829-4e36442142ee."
    return ToolFailure(f"There is no thread {name[:200]}.{hint} Look for it with find_thread.", code="not-found")


async def _ask(about: About, ctx: Context) -> None:
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


def _selected(thread: Thread, goal: str) -> Selected:
    return select(messages(thread.items), goal, limit_chars=LIMIT_CHARS)
