"""Begin to plan: from here on the session only reads, and writes its plan."""

from ferrule.core.access import MODE, Access
from ferrule.core.args import Args
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.planning import PlanEntered, Planning
from ferrule.core.tool import Context, Tool

_REASON_CHARS = 200


class EnterPlanArgs(Args, frozen=True, kw_only=True):
    reason: str = ""
    """What is to be planned, in a few words: the plan's file is called after it."""


class EnterPlan(Tool[EnterPlanArgs, PlanEntered]):
    """It only tightens, so nobody is asked. Calls after it in the same message are decided on anew."""

    name = "enter_plan"
    args = EnterPlanArgs

    def access(self, args: EnterPlanArgs, ctx: Context) -> tuple[Access, ...]:  # noqa: ARG002 - it is about all calls
        return (MODE,)

    async def run(self, args: EnterPlanArgs, ctx: Context) -> PlanEntered:
        planning = ctx.need(Planning)
        try:
            entered = planning.enter(args.reason[:_REASON_CHARS], by="model")
        except ConfigError as error:
            raise ToolFailure(f"{error} Ask the user to change that setting.", code="no-plan-folder") from error
        ctx.note(planning.reminder())
        return entered
