"""Say that the plan is written, and have the user approve it: with their yes the session is out of plan mode."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.planning import PlanApproved, Planning, Wish
from ferrule.core.tool import Context, Tool
from ferrule.support.threads import Threads
from ferrule.workspace.ledger import Ledger
from ferrule.workspace.plan_file import MOST_CHARS as MOST_PLAN_CHARS
from ferrule.workspace.transaction import Contents, Writer

MOST_WISHES = 20
MOST_CHARS = 200


class WishArgs(Args, frozen=True, kw_only=True):
    tool: str
    prompt: str


class ExitPlanArgs(Args, frozen=True, kw_only=True):
    file: str = ""
    """The plan's file, where the family names it; else the one that was announced."""
    plan: str = ""
    """The plan itself, where the caller has not written it to its file."""
    wishes: tuple[WishArgs, ...] = ()
    """What carrying out the plan needs to be allowed."""
    remote: bool = False
    """Does the caller want the plan sent elsewhere?"""


class ExitPlan(Tool[ExitPlanArgs, PlanApproved]):
    """What the user sees is what is approved: a plan that changes meanwhile is not."""

    name = "exit_plan"
    args = ExitPlanArgs
    timed = False

    def access(self, args: ExitPlanArgs, ctx: Context) -> tuple[Access, ...]:
        planning = ctx.need(Planning)
        if not planning.is_on:
            return ()
        path = planning.readable(args.file)
        # It waits for whoever still writes the plan.
        return (Access.write(path) if args.plan.strip() else Access.read(path),)

    async def run(self, args: ExitPlanArgs, ctx: Context) -> PlanApproved:
        if len(args.wishes) > MOST_WISHES:
            raise BadArguments(f"{ctx.param('wishes')}: has {len(args.wishes)} members; {MOST_WISHES} is the most.")
        wrong = [at for at, wish in enumerate(args.wishes) if not 0 < len(wish.prompt.strip()) <= MOST_CHARS]
        if wrong:
            name = ctx.param("wishes")
            said = f"say what it needs, in at most {MOST_CHARS} characters."
            raise BadArguments("\n".join(f"{name}[{at}]: {said}" for at in wrong))
        planning = ctx.need(Planning)
        wishes = tuple(Wish(wish.tool, " ".join(wish.prompt.split())) for wish in args.wishes)
        path = planning.readable(args.file)
        if args.plan.strip():
            await ctx.need(Threads).finish(_write, path, args.plan, ctx)
        ctx.progress("The plan waits for the user to approve it.")
        approved = await planning.propose(path, wishes, ctx)
        if args.remote:
            ctx.note("The plan was sent nowhere: there is no remote session. It stays in the workspace.")
        ledger = ctx.need(Ledger)
        is_known = ledger.knows(path) and not ledger.stale(path, approved.text.encode(errors="surrogatepass"))
        return approved._replace(is_known=is_known)


def _write(path: str, text: str, ctx: Context) -> None:
    """Put the plan into its file, in the place of what the session has seen there. Raises `ToolFailure`."""
    if len(text) > MOST_PLAN_CHARS:
        raise ToolFailure(
            f"The plan has {len(text):,} characters; {MOST_PLAN_CHARS:,} is the most that somebody can approve. "
            "Shorten it.",
            code="plan-too-long",
            path=path,
        )
    raw = text.encode() if text.endswith("\n") else f"{text}\n".encode()
    ledger = ctx.need(Ledger)

    def plan(found: Contents) -> Contents:
        there = found[path]
        if there is not None and there != raw and (not ledger.knows(path) or ledger.stale(path, there)):
            raise ToolFailure(
                f"{path} has a text that you have not seen, perhaps the user's own; nothing was written, and plan mode "
                "stays on. Read it, then give the whole plan again.",
                code="plan-changed",
                path=path,
            )
        return {path: raw}

    written = ctx.need(Writer).apply([path], plan, kind="write", call_id=ctx.call_id)
    ctx.track(path)
    ledger.saw(path, raw)
    for note in written.notes:
        ctx.note(note)
