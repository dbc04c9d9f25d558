"""Keep the plan of the session: its steps and how far each is."""

from ferrule.core.access import Access
from ferrule.core.args import Args
from ferrule.core.errors import BadArguments
from ferrule.core.outcomes import Planned, Step, StepStatus
from ferrule.core.tool import Context, Tool
from ferrule.workspace.steps import Steps

MOST_STEPS = 200
MOST_CHARS = 2_000


class StepArgs(Args, frozen=True, kw_only=True):
    text: str
    status: StepStatus = "pending"
    priority: str = ""


class PlanArgs(Args, frozen=True, kw_only=True):
    steps: tuple[StepArgs, ...]
    explanation: str = ""


class Plan(Tool[PlanArgs, Planned]):
    """The whole plan, each time: what is sent replaces what was."""

    name = "plan"
    args = PlanArgs

    def access(self, args: PlanArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - the plan is in memory
        return ()

    async def run(self, args: PlanArgs, ctx: Context) -> Planned:
        if len(args.steps) > MOST_STEPS:
            raise BadArguments(f"{ctx.param('steps')}: has {len(args.steps)} steps; {MOST_STEPS} is the most.")
        wrong = [
            f"{ctx.param('steps')}[{at}]: {fault}."
            for at, step in enumerate(args.steps)
            if (fault := _fault(step.text))
        ]
        if wrong:
            raise BadArguments("\n".join(wrong))
        running = sum(step.status == "in_progress" for step in args.steps)
        if running > 1:
            ctx.note(f"{running} steps are in progress; a plan is easier to follow with one at a time.")
        steps = tuple(Step(step.text, step.status, step.priority) for step in args.steps)
        planned = ctx.need(Steps).replace(Planned(steps, args.explanation))
        done = sum(step.status == "completed" for step in steps)
        ctx.progress(f"{done} of {len(steps)} steps are done")
        return planned


def _fault(text: str) -> str:
    if not text.strip():
        return "the step is empty"
    return f"the step has {len(text)} characters; {MOST_CHARS} is the most" if len(text) > MOST_CHARS else ""
