"""What the policy says about a call: yes, no or ask, by which rule, and why in one sentence."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ferrule.core.access import MODE, Access
from ferrule.permissions.case import Case

Verdict = Literal["allow", "ask", "deny"]


class Decision(NamedTuple):
    """One decision."""

    verdict: Verdict
    why: str
    """One sentence, for people."""
    rule: str = ""
    """The rule that decided, as it was written; empty where none did."""
    message: str = ""
    """What the model is told, where the rule brings words for it."""
    delegate: str = ""
    """The program that is still to be asked; until then the verdict is to ask."""
    fixed: bool = False
    """Was it decided by a rule or by something that no mode and no setting may soften?"""
    edits_inside: bool = False
    """Is all that it would change files of the workspace, by plain means?"""


def hooked(decision: Decision, case: Case) -> Decision:
    """The decision with the word of the user's hooks in it. Their yes spares a question that no rule demands."""
    verdict, reason = case.hooked
    if verdict == "deny":
        return Decision("deny", f"A hook refuses it: {reason}", message=reason or "A hook refuses it.", fixed=True)
    if verdict == "ask" and decision.verdict == "allow":
        return Decision("ask", f"A hook wants it asked: {reason}", fixed=True)
    is_open = decision.verdict == "ask" and not decision.fixed and not decision.rule
    if verdict == "allow" and is_open and not case.input.get("outside"):
        return Decision("allow", f"A hook allows it: {reason}")
    return decision


def left_out(decision: Decision, case: Case, access: Access) -> Decision:
    """The decision on one of several commands: where one check denies them all, how the others can be run."""
    if decision.verdict != "deny" or case.tool != "check":
        return decision
    hint = f"One of the checks runs `{access.key}`; name the other checks to leave it out."
    message = f"{decision.message} {hint}" if decision.message else ""
    return decision._replace(why=f"{decision.why} {hint}", message=message)


def free(case: Case) -> Decision:
    """Yes to a call that needs no question by itself."""
    if case.looks_at_web:
        return Decision("allow", "It only looks at the web.")
    only_reads = {*case.touches} - {MODE}
    return Decision("allow", "It only reads the workspace." if only_reads else "It touches nothing.")


def strictest(decisions: list[Decision]) -> Decision:
    """The one that counts."""
    order = {"allow": 0, "ask": 1, "deny": 2}
    return max(decisions, key=lambda one: (order[one.verdict], one.fixed))


def reach(touches: Sequence[Access]) -> str:
    """What a call may do of which nothing more is known, as the end of a sentence."""
    servers = [access.key for access in touches if access.kind == "server"]
    if not servers:
        return "may touch anything"
    is_skill = servers[0].startswith("skill:")
    return "brings tools, servers or rules of its own" if is_skill else "leaves the work to an MCP server"
