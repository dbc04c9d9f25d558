"""What a yes with "always" is about: what is not asked about again in the session, and the rules that it saves."""

from collections.abc import Callable, Sequence

from ferrule.core.access import Access
from ferrule.permissions.case import Case
from ferrule.permissions.decision import Decision

Decide = Callable[[Case], Decision]
Allows = Callable[[Case, Sequence[str]], bool]
"""Would a call need no question, if these rules were saved?"""
_SHELL = "Bash"
"""What rules about commands are called in every family's files."""
FETCH = "WebFetch"
"""And what rules about hosts are called."""


def granted(case: Case, decide: Decide) -> tuple[str, ...]:
    """The keys of what a yes to this call is a yes to; never none. All of them together need no further question.

    The commands of checks are each like a command of the shell: a yes there counts here, and the other way round.
    """
    if case.is_fetch:
        return tuple(likeness(case._replace(touches=(access,))) for access in case.touches)
    if case.tool != "check":
        return (likeness(case),)
    return tuple(likeness(_alone(case, access)) for access in asking(case, decide)) or (likeness(case),)


def likeness(case: Case) -> str:
    """What "always" is said about: this command in this folder, or this tool with these hosts, processes and servers.

    What a skill brings is a server to us, with what it was when the user was asked.
    """
    kinds = {"command", "host", "process", "server"}
    others = sorted("\0".join(access) for access in case.touches if access.kind in kinds)
    return "\0".join((case.tool, *others))


def asking(case: Case, decide: Decide) -> list[Access]:
    """The commands of checks that would ask by themselves."""
    commands = [access for access in case.touches if access.kind == "command"]
    return [access for access in commands if decide(_alone(case, access)).verdict != "allow"]


def apart(case: Case) -> list[Case]:
    """The call as whoever decides for the user is to see it: the commands of checks each as one of the shell."""
    commands = [access for access in case.touches if access.kind == "command"]
    if case.tool != "check" or not commands:
        return [case]
    rest = case._replace(touches=tuple(access for access in case.touches if access.kind != "command"))
    return [*(_alone(case, access) for access in commands), rest]


def _alone(case: Case, access: Access) -> Case:
    return case._replace(tool="shell", name=_SHELL, touches=(access,), input={"command": access.key})


def proposals(case: Case, decide: Decide, roots: Sequence[str], allows: Allows | None = None) -> tuple[str, ...]:
    """The rules that "always" would save: the narrowest that are of use, and none that is not needed.

    With `allows`, they are tried: what would ask again after them is not proposed.
    """
    commands = [access for access in case.touches if access.kind == "command"]
    if not commands and case.tool.startswith(("mcp__", "tb__")):
        return (case.tool,)
    if case.is_fetch:
        domains = tuple(f"{FETCH}(domain:{access.key})" for access in case.touches)
        return domains if allows is None or allows(case, domains) else ()
    # The commands of a skill are judged by the rules about the shell; a rule about the skill covers none of them.
    if not commands or case.input.get("outside") or case.tool == "skill":
        return ()
    if case.tool == "check":
        each = [_rules(_alone(case, one), one, roots, allows) for one in asking(case, decide)]
        return tuple(dict.fromkeys(rule for rules in each for rule in rules)) if all(each) else ()
    return _rules(case, commands[0], roots, allows) if len(commands) == 1 else ()


def _rules(case: Case, access: Access, roots: Sequence[str], allows: Allows | None) -> tuple[str, ...]:
    from ferrule.permissions.shell.parse import parse  # only commands need it
    from ferrule.permissions.shell.suggest import attempts
    from ferrule.permissions.shell.suggest import proposals as suggested

    line = parse(access.key, cwd=access.folder, roots=list(roots))
    if allows is None:
        return _written(case, suggested(line))
    for attempt in attempts(line, access.key):
        rules = _written(case, attempt)
        if rules and allows(case, rules):
            return _needed(case, rules, allows)
    return ()


def _written(case: Case, specifiers: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{case.name}({one})" for one in specifiers)


def _needed(case: Case, rules: tuple[str, ...], allows: Allows) -> tuple[str, ...]:
    """The rules without those that are of no use."""
    for rule in rules:
        others = tuple(one for one in rules if one != rule)
        if others and allows(case, others):
            rules = others
    return rules
