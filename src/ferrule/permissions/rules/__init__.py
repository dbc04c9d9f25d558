"""Define the common form of all rules, and texts with `*` as command rules write them.

Matching takes one pass over the text.

A final ` *` marks the end of a word: it matches a blank and anything after it, or nothing more. A final `:*`
means the same. A backslash before `*`, `(`, `)` or another backslash stands for that character itself.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from ferrule.core.tool import RuleGroup
from ferrule.tools import facts_of

Action = Literal["allow", "ask", "deny", "delegate"]
Layer = Literal["managed", "user", "project", "session", "built-in"]
STRICTNESS = {"allow": 0, "delegate": 1, "ask": 1, "deny": 2}


class PathAccess(NamedTuple):
    """A path that a call reads or writes."""

    mode: Literal["read", "write"]
    real: str
    """Absolute, links resolved."""
    spelled: str
    """Absolute, as it was written."""
    deep: bool = False
    """Is what lies below it touched too, as by `rm -r` or a move? Then rules about a file in it speak about it."""


class Subject(NamedTuple):
    """A call as rules see it, or one simple command of a command line."""

    tool: str
    """The canonical tool, such as `shell`; a tool from elsewhere has its own name, such as `mcp__github__search`."""
    names: frozenset[str]
    """Every name that the tool has in any family, the canonical one and the older ones among them."""
    values: Mapping[str, Any] = {}
    """The arguments, each under every name that a family gives it."""
    commands: tuple[str, ...] = ()
    """For the shell: the forms of the command, each of which a rule may name, the one as written first."""
    command_keys: frozenset[str] = frozenset()
    """The names of the argument that holds the command, in any family."""
    paths: tuple[PathAccess, ...] = ()
    hosts: tuple[str, ...] = ()
    context: Literal["thread", "subagent"] = "thread"
    workspace: str = ""
    """The real path of the folder that relative paths start from, for rules that name paths so."""

    @property
    def group(self) -> RuleGroup:
        """Return the name under which rules speak of the tool and of all that do the same."""
        return facts_of(self.tool).rules


class Condition(Protocol):
    """When a rule that binds a tool holds for a call of it."""

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        """Does it? `strictly` for rules that allow: where one that denies takes any sign, one that allows needs all."""


class Always:
    """No condition: every call of the tool."""

    def holds(self, subject: Subject, *, strictly: bool) -> bool:  # noqa: ARG002 - the protocol's
        return True


class Rule(NamedTuple):
    """Which calls, and what about them."""

    action: Action
    tool: str
    """The tool's name in any family, or a pattern of names as its syntax has them."""
    text: str
    """As the user wrote it, or would write it."""
    condition: Condition = Always()
    binds: "Binds | None" = None
    """Does it bind a tool of these names? None: it binds the one of just this name."""
    exact: bool = False
    """Does the rule name one exact command line, and not a pattern? Then it covers that line with all its flags."""
    context: Literal["thread", "subagent"] | None = None
    to: str = ""
    """For `delegate`: the program that decides."""
    message: str = ""
    """What the model is told when it denies."""

    def matches(self, subject: Subject) -> bool:
        """Does the rule speak about this call?"""
        if self.context is not None and self.context != subject.context:
            return False
        bound = self.tool in subject.names if self.binds is None else self.binds.binds(subject)
        return bound and self.condition.holds(subject, strictly=self.action == "allow")


class Binds(Protocol):
    """Which tools a rule is about, where it is not the one that it names."""

    def binds(self, subject: Subject) -> bool: ...


class RuleSet(NamedTuple):
    """The rules of one file."""

    rules: tuple[Rule, ...]
    ordered: bool
    """Does the first rule that matches decide? Otherwise the strictest one does."""
    source: str
    """Where they were read from, for people."""
    layer: Layer
    warnings: tuple[str, ...] = ()
    """What could not be used, each as a sentence."""
    mode: str = ""
    """The permission mode that the file asks for, if any."""
    folders: tuple[str, ...] = ()
    """Folders beside the workspace that the file opens."""
    forbids_bypass: bool = False
    """Does the file forbid the mode in which nothing asks?"""
    guarded_allow: tuple[str, ...] = ()
    """Globs of secret or protected files that the file opens."""

    def verdict(self, subject: Subject) -> Rule | None:
        """The rule that decides, if one speaks about the call."""
        matching = (rule for rule in self.rules if rule.matches(subject))
        if self.ordered:
            return next(matching, None)
        return max(matching, key=lambda rule: STRICTNESS[rule.action], default=None)


_ESCAPED = "*\\()"
Runs = tuple[str, ...]
"""The plain texts between the stars; one more than there are stars."""


class Wildcard(NamedTuple):
    """A text with stars."""

    readings: tuple[Runs, ...]
    """A text matches when it matches one of them."""

    @property
    def exact(self) -> bool:
        """Is there no star, so that one text matches and no other?"""
        return all(len(runs) == 1 for runs in self.readings)

    def matches(self, text: str) -> bool:
        return any(_match(runs, text) for runs in self.readings)


def wildcard(pattern: str, *, wide: bool = False) -> Wildcard:
    r"""The pattern as it is meant; with `wide` also as its writer may have meant it, for rules that keep something out.

    Wide takes `\*` for a backslash and a star too, and runs of blanks for one.
    """
    pattern = pattern.strip()
    readings = _readings(_runs(pattern, escapes=True))
    if wide:
        single = " ".join(pattern.split())
        for one in (pattern, single):
            readings += _readings(_runs(one, escapes=True)) + _readings(_runs(one, escapes=False))
    return Wildcard(tuple(dict.fromkeys(readings)))


def _runs(pattern: str, *, escapes: bool) -> Runs:
    if pattern.endswith(":*"):
        pattern = (pattern[:-2] + " *").lstrip()
    runs = [""]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if escapes and character == "\\" and pattern[at : at + 1] and pattern[at] in _ESCAPED:
            runs[-1] += pattern[at]
            at += 1
        elif character != "*":
            runs[-1] += character
        elif len(runs) == 1 or runs[-1]:
            runs.append("")
    return tuple(runs)


def _readings(runs: Runs) -> tuple[Runs, ...]:
    """The runs, and where they end in ` *` those without it: there the text may end."""
    if len(runs) > 1 and not runs[-1] and runs[-2].endswith(" "):
        return runs, (*runs[:-2], runs[-2][:-1])
    return (runs,)


def _match(runs: Runs, text: str) -> bool:
    """A run is taken at its leftmost place: a later one would only leave less to match, so nothing is tried twice."""
    head, *rest = runs
    if not rest:
        return text == head
    *middle, tail = rest
    at, end = len(head), len(text) - len(tail)
    if at > end or not text.startswith(head) or not text.endswith(tail):
        return False
    for run in middle:
        found = text.find(run, at, end)
        if found < 0:
            return False
        at = found + len(run)
    return True
