"""One rule of the Claude Code syntax, `Tool` or `Tool(specifier)`, and what it is about.

What keeps something out (deny, ask) is read widely, what lets something in (allow) narrowly.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from ferrule.permissions.rules.hosts import BadHost, Hosts, hosts
from ferrule.permissions.rules.names import (
    COMMANDS,
    EDITS,
    KNOWN,
    READS,
    Commanded,
    Files,
    Grouped,
    Named,
    Networked,
    likened,
)
from ferrule.permissions.rules.paths import Anchors, Area, BadPath, Paths, area
from ferrule.permissions.rules.rule import Binds, Condition, Rule
from ferrule.permissions.rules.values import Agents, Commands, Either, Of, Skills, Value
from ferrule.permissions.rules.wildcard import wildcard

Listed = Literal["allow", "ask", "deny"]
_GLOB_OF_A_SERVER = r"mcp__[^*]+?__.*"
UNMATCHED = {"Write": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit", "Glob": "Read"}
"""Names whose path rules are not used → the name to write instead."""
_COVERS = {"Edit": "file-editing", "Read": "file-reading"}


class Unreadable(ValueError):  # noqa: N818 - the state
    """The rule cannot be read; the message says why, as the end of a sentence."""


class Reader(NamedTuple):
    """Reads the rules of one source."""

    source: str
    anchors: Anchors
    canonical: Callable[[str], str | None]

    def rule(self, action: Listed, text: str) -> Rule:
        """Raises: Unreadable."""
        wide = action != "allow"
        name, inner = _split(text)
        tool = self._tool(name)
        if inner is not None and _means_all(inner, tool, wide=wide):
            inner = None
        elif inner is not None and inner.strip() in {"", ":*"}:
            raise Unreadable("its parentheses say nothing; to allow every call, write the name alone")
        rule = Rule(action=action, tool=name, text=text.strip(), binds=_bare(name, tool, wide=wide))
        if inner is None:
            return rule
        condition, binds, exact = self._specified(name, tool, inner, wide=wide)
        return rule._replace(condition=condition, binds=rule.binds if binds is None else binds, exact=exact)

    def correction(self, action: Listed, text: str) -> str:
        """What to write instead, where the rule's name does not take paths; else nothing."""
        try:
            name, inner = _split(text)
        except Unreadable:
            return ""
        if action == "allow" and inner == "domain:*":
            return f"Permission allow rule ({self.source}): {name}(domain:*) covers names of one part only. Use {name}."
        if inner is None or name not in UNMATCHED or _means_all(inner, None, wide=True):
            return ""
        better = UNMATCHED[name]
        return (
            f"Permission {action} rule ({self.source}): {name}({inner}) is not matched by file permission checks — "
            f"only {better}(path) rules are. Use {better}({inner}) instead "
            f"({better} rules cover all {_COVERS[better]} tools)."
        )

    def _tool(self, name: str) -> str | None:
        """The canonical tool behind a name; one that is not known may come from elsewhere."""
        return KNOWN.get(name) or self.canonical(name)

    def _specified(
        self, name: str, tool: str | None, inner: str, *, wide: bool
    ) -> tuple[Condition, Binds | None, bool]:
        if tool in COMMANDS:
            return _commands(inner, wide=wide)
        if tool in READS or tool in EDITS:
            return *self._paths(name, tool, inner, wide=wide), False
        if tool == "web_fetch" and inner.startswith("domain:"):
            return _hosts(inner.removeprefix("domain:"), wide=wide), Networked() if wide else None, False
        if tool == "web_fetch" and inner.lower().startswith(("http:", "https:")):
            # As the name of an argument it would match nothing, and whoever wrote it means the host.
            raise Unreadable(f"{name} takes a host, as {name}(domain:example.org)")
        if tool == "delegate" and (wide or "*" not in inner):
            agents = Agents(wildcard(inner, wide=wide))
            return _or_value(agents, inner, wide=wide), None, False
        if tool == "skill":
            skills = Skills(wildcard(inner.strip().removeprefix("/"), wide=wide))
            return _or_value(skills, inner, wide=wide), None, False
        value = _value(inner) if wide else None
        if value is None:
            raise Unreadable(f"{name} takes no such specifier")
        return value, None, False

    def _paths(self, name: str, tool: str, inner: str, *, wide: bool) -> tuple[Condition, Binds | None]:
        if not wide and name in UNMATCHED:
            raise Unreadable(f"only {UNMATCHED[name]} rules take paths")
        mode: Literal["read", "write"] = "read" if tool in READS else "write"
        paths: Condition = Paths(self._area(inner, wide=wide), mode)
        if wide:
            if inner.endswith(":*"):  # the way to write it for commands; here it can only be meant as a beginning
                paths = Either(paths, Paths(self._area(inner[:-2] + "*", wide=True), mode))
            value = _value(inner)
            return Either(paths, Of(Named(name, tool), value)) if value else paths, _Anything()
        if tool in {"read", "edit"}:
            return paths, Grouped(READS if mode == "read" else EDITS)
        return paths, None

    def _area(self, inner: str, *, wide: bool) -> Area:
        try:
            return area(inner, self.anchors, wide=wide)
        except BadPath as error:
            raise Unreadable(str(error)) from error


class _Anything(NamedTuple):
    """Every call: the condition says which."""

    def binds(self, subject: object) -> bool:  # noqa: ARG002 - the protocol's
        return True


def _split(text: str) -> tuple[str, str | None]:
    """The name and what is in parentheses; None where there are none."""
    name, opened, rest = text.strip().partition("(")
    name = name.rstrip()
    if not name or ")" in name or len(name.split()) > 1 or (opened and not rest.endswith(")")):
        raise Unreadable("a rule is written Tool or Tool(specifier)")
    return name, rest[:-1] if opened else None


def _means_all(inner: str, tool: str | None, *, wide: bool) -> bool:
    """Is the rule about all calls of the tool, as without parentheses?"""
    inner = inner.strip()
    if wide:
        return inner in {"", "*", ":*"}
    # To allow `Read(*)` is to allow the files below the working folder, and no others.
    return inner == "*" and tool not in READS and tool not in EDITS


def _bare(name: str, tool: str | None, *, wide: bool) -> Binds:
    """What a name alone is about."""
    if "*" in name:
        if not wide and not re.fullmatch(_GLOB_OF_A_SERVER, name):
            raise Unreadable("only names after mcp__server__ may hold `*` in a rule that allows")
        return likened(name, lax=wide)
    if re.fullmatch(r"mcp__(?:(?!__).)+(?:__)?", name):
        return likened(f"{name.removesuffix('__')}__*", lax=wide)
    if name.startswith("mcp__"):
        return likened(name, lax=wide)
    if tool in COMMANDS:
        return Commanded() if wide else Grouped(COMMANDS)
    if tool in {"read", "edit"}:
        group = READS if tool == "read" else EDITS
        return Files(group, "read" if tool == "read" else "write") if wide else Grouped(group)
    return Named(name, tool)


def _commands(inner: str, *, wide: bool) -> tuple[Condition, Binds | None, bool]:
    pattern = wildcard(inner, wide=wide)
    return _or_value(Commands(pattern), inner, wide=wide), None, wildcard(inner).exact


def _hosts(inner: str, *, wide: bool) -> Hosts:
    try:
        return hosts(inner.strip(), wide=wide)
    except BadHost as error:
        raise Unreadable(str(error).rstrip(".")) from error


def _or_value(condition: Condition, inner: str, *, wide: bool) -> Condition:
    """A rule that keeps something out may also mean an argument: `Bash(run_in_background:true)`."""
    value = _value(inner) if wide else None
    return condition if value is None else Either(condition, value)


def _value(inner: str) -> Value | None:
    found = re.fullmatch(r"\s*(?P<name>[A-Za-z_][\w.-]*):(?P<value>.*)", inner, re.DOTALL)
    return Value(found["name"], wildcard(found["value"], wide=True)) if found else None
