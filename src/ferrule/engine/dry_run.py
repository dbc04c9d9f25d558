"""What would be said about a call, without running it: for people who write rules."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferrule.core.access import EVERYTHING
from ferrule.core.call import Call
from ferrule.core.errors import Denied, ToolFailure, UnknownTool
from ferrule.flow import Flow, ScheduledCall
from ferrule.permissions.decision import Case, Decision
from ferrule.permissions.rules.rule import PathAccess
from ferrule.schedule import batches

if TYPE_CHECKING:
    from ferrule.registry.names import FamilyNames


async def weigh(flow: Flow, call: Call, names: "FamilyNames") -> Decision:
    """Allow, ask or deny, and why in one sentence."""
    ready = flow.look(call)
    if isinstance(ready, ScheduledCall):
        case = flow.case(ready)
        decision = await _decide_case(flow, case)
        if decision.verdict == "allow" and (secret := flow.gate.secrets(case)):
            return Decision("ask", f"{secret[0]} is a secret file: only a person can let it be read.", fixed=True)
        return decision
    error = ready.error
    if isinstance(error, UnknownTool):
        # Rules may be about tools that this session does not have: those of servers, and those that are to come.
        decision = await _decide_case(flow, _elsewhere(call, names))
        if names.tool(call.name) is None and not decision.rule and not call.name.startswith(("mcp__", "tb__")):
            return decision._replace(why=f"{call.name} is no tool that Ferrule knows, and no rule covers it.")
        return decision
    said = error.message if isinstance(error, ToolFailure) else str(error)
    if isinstance(error, ToolFailure) and error.code == "denied-by-rule" and error.path is not None:
        rule = _find_deny_rule(flow, error.path)
        return Decision("deny", f"{call.name} is denied by {rule}: {said}", rule, fixed=True)
    return Decision("deny", f"The call cannot run: {said}")


def plan_batches(flow: Flow, calls: Sequence[Call]) -> list[list[Call]]:
    """The calls in batches that could run side by side. Raises `ToolFailure` for a call that could not run at all."""
    looked = [(call, flow.look(call)) for call in calls]
    for call, ready in looked:
        if not isinstance(ready, ScheduledCall):
            raise ToolFailure(f"{call.id}: {ready.error}") from ready.error
    return batches([(call, ready.touches) for call, ready in looked if isinstance(ready, ScheduledCall)])


def _find_deny_rule(flow: Flow, path: str) -> str:
    """The rule that denies a path to whoever reads or writes it."""
    found = (
        *flow.gate.policy.bound(PathAccess("read", path, path)),
        *flow.gate.policy.bound(PathAccess("write", path, path)),
    )
    return next((rule.text for rule in found if rule.action == "deny"), "")


async def _decide_case(flow: Flow, case: Case) -> Decision:
    try:
        flow.gate.check_mode(case)
        return await flow.gate.decide_case(case)
    except Denied as denied:
        return Decision("deny", denied.message)


def _elsewhere(call: Call, names: "FamilyNames") -> Case:
    tool = names.tool(call.name) or call.name
    given: Mapping[str, Any] = call.input if isinstance(call.input, dict) else {}
    return Case(call.id, call.name, tool, (EVERYTHING,), input=given)
