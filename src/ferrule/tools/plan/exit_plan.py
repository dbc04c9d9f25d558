"""Say that the plan is written, and have the user approve it: with their yes the session is out of plan mode."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments
from ferrule.core.planning import PlanApproved, Planning, Wish
from ferrule.core.tool import Context, Tool
from ferrule.workspace.ledger import Ledger

MOST_WISHES = 20
MOST_CHARS = 200


class WishArgs(Args, frozen=True, kw_only=True):
    tool: str
    prompt: str


class ExitPlanArgs(Args, frozen=True, kw_only=True):
    file: str = ""
    """The plan's file, where the family names it; else the one that was announced."""
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
        # It waits for whoever still writes the plan.
        return (Access.read(planning.readable(args.file)),) if planning.is_on else ()

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
        ctx.progress("The plan waits for the user to approve it.")
        approved = await planning.propose(path, wishes, ctx)
        if args.remote:
            ctx.note("The plan was sent nowhere: there is no remote session. It stays in the workspace.")
        ledger = ctx.need(Ledger)
        is_known = ledger.knows(path) and not ledger.stale(path, approved.text.encode(errors="surrogatepass"))
        return approved._replace(is_known=is_known)
