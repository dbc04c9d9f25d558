"""What a rule that does not allow makes of a call."""

from ferrule.permissions.decision import Decision
from ferrule.permissions.rules.rule import Rule


def refusal(rule: Rule, what: str) -> Decision:
    """The decision of a rule that denies, asks, or leaves it to a program."""
    if rule.action == "deny":
        return Decision("deny", f"{what} is denied by {rule.text}.", rule.text, rule.message, fixed=True)
    if rule.action == "delegate":
        return Decision("ask", f"{rule.to} decides about {what}.", rule.text, delegate=rule.to, fixed=True)
    return Decision("ask", f"{rule.text} asks about {what}.", rule.text, fixed=True)
