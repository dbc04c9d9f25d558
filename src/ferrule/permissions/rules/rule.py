"""One form for every rule, whichever syntax it was written in."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

Action = Literal["allow", "ask", "deny", "delegate"]
Layer = Literal["managed", "user", "project", "session", "built-in"]
STRICTNESS = {"allow": 0, "delegate": 1, "ask": 1, "deny": 2}


class Touched(NamedTuple):
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
    paths: tuple[Touched, ...] = ()
    hosts: tuple[str, ...] = ()
    context: Literal["thread", "subagent"] = "thread"
    workspace: str = ""
    """The real path of the folder that relative paths start from, for rules that name paths so."""


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
