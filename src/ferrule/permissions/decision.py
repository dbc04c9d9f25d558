"""What the policy says about a call: yes, no or ask, by which rule, and why in one sentence."""

from typing import Literal, NamedTuple

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


def strictest(decisions: list[Decision]) -> Decision:
    """The one that counts."""
    order = {"allow": 0, "ask": 1, "deny": 2}
    return max(decisions, key=lambda one: (order[one.verdict], one.fixed))
