"""What the policy says about a call: yes, no or ask, by which rule, and why in one sentence."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ferrule.core.access import MODE, Access
from ferrule.permissions.case import Case, named_as

Verdict = Literal["allow", "ask", "deny"]
_MOST_WHYS = 6
_MOST_NAMED = 60


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


def together(decisions: list[Decision], commands: Sequence[Access], case: Case) -> Decision:
    """The one decision on a call; the first ones are about its commands. Of checks all that ask say why."""
    decision = strictest(decisions)
    several = case.tool == "check" and len(commands) > 1
    if several and decision.verdict == "deny":
        hint = _others(decisions, commands, case)
        message = f"{decision.message} {hint}" if decision.message else ""
        return decision._replace(why=f"{decision.why} {hint}".rstrip(), message=message.rstrip())
    asking = [one for one in decisions if one.verdict == "ask"]
    if decision.verdict != "ask" or len(asking) == 1:
        return decision
    # What one of them changes says nothing of what the others do.
    decision = decision._replace(edits_inside=all(one.edits_inside for one in asking))
    if not several:
        return decision
    whys = list(dict.fromkeys(one.why for one in asking))
    more = f" The same goes for {len(whys) - _MOST_WHYS} more." * (len(whys) > _MOST_WHYS)
    return decision._replace(why=" ".join(whys[:_MOST_WHYS]) + more)


def formatted(commands: Sequence[Decision], plain: Decision, *, is_named: bool) -> list[Decision]:
    """Decisions on a formatter's commands, and the one on the file that it is to write: as its command alone is.

    What rules refuse of the tool or of the file holds all the same. A rule that allows the tool by its name
    (`is_named`) allows the command; one that allows the edit of a file says nothing of what may run.
    """
    if plain.verdict == "ask" and plain.edits_inside and not plain.rule:
        return list(commands)  # the shell writes what its command writes, too
    if plain.verdict == "allow" and not is_named:
        return list(commands)
    if plain.verdict == "allow":
        return [one if one.rule or one.verdict != "ask" else plain for one in commands]
    return [*commands, plain]


def _others(decisions: Sequence[Decision], commands: Sequence[Access], case: Case) -> str:
    """Which checks are denied, and how the others can be run."""
    denied: dict[str, None] = {}
    others: dict[str, None] = {}
    for access, decision in zip(commands, decisions, strict=False):
        name = case.spelled.get(named_as(access), "")
        (denied if decision.verdict == "deny" else others)[name] = None
    if "" in denied:
        return "It tells the reviews what was changed; leave the reviews out."
    named = [name for name in others if name and name not in denied]
    if not denied or not named:
        return ""
    is_one = len(denied) == 1
    which = f"The check {next(iter(denied))} runs it" if is_one else f"The checks {', '.join(denied)} are denied"
    more = f" and {len(named) - _MOST_NAMED} more" * (len(named) > _MOST_NAMED)
    left = "it" if is_one else "them"
    return f"{which}; to leave {left} out, name the others: {', '.join(named[:_MOST_NAMED])}{more}."


def free(case: Case) -> Decision:
    """Yes to a call that needs no question by itself."""
    if case.looks_at_web:
        return Decision("allow", "It only looks at the web.")
    if any(access.mode == "restore" for access in case.touches):
        return Decision("allow", "It takes back what this session has written.")
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
