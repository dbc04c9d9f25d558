"""Read the rules of Claude Code's and Wayland's settings.

A deny or ask rule that cannot be read is an error, because dropping it would allow the calls that it was meant to
stop. An allow rule that cannot be read is dropped with a warning. Deny and ask rules are read widely, allow rules
narrowly.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ferrule import permissions as decision
from ferrule.core.errors import ConfigError, near
from ferrule.core.tool import RuleGroup
from ferrule.permissions import visible
from ferrule.permissions.rules import Always, Binds, Condition, Layer, Rule, RuleSet, Subject, wildcard
from ferrule.permissions.rules.hosts import BadHost, Hosts, hosts
from ferrule.permissions.rules.match import AgentSpecifier, Commands, Either, Of, SkillCondition, Value
from ferrule.permissions.rules.paths import (
    Anchors,
    Area,
    BadPath,
    Commanded,
    FileSpecifier,
    Grouped,
    Networked,
    PathCondition,
    ToolNameBinding,
    area,
    parse_tool_glob,
)
from ferrule.tools import EDIT, READ, facts_of

Listed = Literal["allow", "ask", "deny"]
GROUPS: Mapping[str, RuleGroup] = {
    **dict.fromkeys(("Read", "LS", "Grep", "Glob", "LSP"), "Read"),
    **dict.fromkeys(("Edit", "MultiEdit", "Write", "NotebookEdit"), "Edit"),
    **dict.fromkeys(("Task", "Agent"), "Agent"),
    "Bash": "Bash",
    "WebFetch": "WebFetch",
    "WebSearch": "",
    "Skill": "Skill",
}
"""The names that this syntax itself knows → the group of their tools, which says what their specifiers mean."""
_GLOB_OF_A_SERVER = r"mcp__[^*]+?__.*"
UNMATCHED = {"Write": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit", "Glob": "Read"}
"""Names whose path rules are not used → the name to write instead."""
_COVERS = {"Edit": "file-editing", "Read": "file-reading"}


class UnreadableRule(ValueError):  # noqa: N818 - the state
    """The rule cannot be read; the message says why, as the end of a sentence."""


class NamedTool(NamedTuple):
    """What a rule is about."""

    name: str
    group: RuleGroup
    tool: str | None
    """The canonical tool behind the name, if it is known."""

    @property
    def is_files(self) -> bool:
        """Do its specifiers name paths?"""
        return self.group in {"Read", "Edit"}

    @property
    def is_whole_group(self) -> bool:
        """Does the name stand for all tools that read, or that edit, files?"""
        return self.is_files and (self.name == self.group or self.tool in {READ, EDIT})


class RuleReader(NamedTuple):
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
            raise UnreadableRule("its parentheses say nothing; to allow every call, write the name alone")
        rule = Rule(action=action, tool=name, text=text.strip(), binds=_bare(tool, wide=wide))
        if inner is None:
            return rule
        condition, binds, exact = self._parse_specifier(tool, inner, wide=wide)
        return rule._replace(condition=condition, binds=rule.binds if binds is None else binds, exact=exact)

    def correction(self, action: Listed, text: str) -> str:
        """What to write instead, where the rule's name does not take paths; else nothing."""
        try:
            name, inner = _split(text)
        except UnreadableRule:
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

    def _tool(self, name: str) -> NamedTool:
        """Return what a name stands for; one that is not known may come from elsewhere."""
        tool = self.canonical(name)
        return NamedTool(name, GROUPS[name] if name in GROUPS else facts_of(tool or name).rules, tool)

    def _parse_specifier(self, tool: NamedTool, inner: str, *, wide: bool) -> tuple[Condition, Binds | None, bool]:
        name, group = tool.name, tool.group
        if group == "Bash":
            return _commands(inner, wide=wide)
        if tool.is_files:
            return *self._paths(tool, inner, wide=wide), False
        if group == "WebFetch" and inner.startswith("domain:"):
            return _hosts(inner.removeprefix("domain:"), wide=wide), Networked() if wide else None, False
        if group == "WebFetch" and inner.lower().startswith(("http:", "https:")):
            # As the name of an argument it would match nothing, and whoever wrote it means the host.
            raise UnreadableRule(f"{name} takes a host, as {name}(domain:example.org)")
        if group == "Agent" and (wide or "*" not in inner):
            agents = AgentSpecifier(wildcard(inner, wide=wide))
            return _or_value(agents, inner, wide=wide), None, False
        if group == "Skill":
            skills = SkillCondition(wildcard(inner.strip().removeprefix("/"), wide=wide))
            return _or_value(skills, inner, wide=wide), None, False
        value = _value(inner) if wide else None
        if value is None:
            raise UnreadableRule(f"{name} takes no such specifier")
        return value, None, False

    def _paths(self, tool: NamedTool, inner: str, *, wide: bool) -> tuple[Condition, Binds | None]:
        name = tool.name
        if not wide and name in UNMATCHED:
            raise UnreadableRule(f"only {UNMATCHED[name]} rules take paths")
        mode: Literal["read", "write"] = "read" if tool.group == "Read" else "write"
        paths: Condition = PathCondition(self._area(inner, wide=wide), mode)
        if wide:
            if inner.endswith(":*"):  # the way to write it for commands; here it can only be meant as a beginning
                paths = Either(paths, PathCondition(self._area(inner[:-2] + "*", wide=True), mode))
            value = _value(inner)
            return Either(paths, Of(ToolNameBinding(name, tool.tool), value)) if value else paths, _Anything()
        return paths, Grouped(tool.group) if tool.is_whole_group else None

    def _area(self, inner: str, *, wide: bool) -> Area:
        try:
            return area(inner, self.anchors, wide=wide)
        except BadPath as error:
            raise UnreadableRule(str(error)) from error


class _Anything(NamedTuple):
    """Every call: the condition says which."""

    def binds(self, subject: object) -> bool:  # noqa: ARG002 - the protocol's
        return True


def _split(text: str) -> tuple[str, str | None]:
    """The name and what is in parentheses; None where there are none."""
    name, opened, rest = text.strip().partition("(")
    name = name.rstrip()
    if not name or ")" in name or len(name.split()) > 1 or (opened and not rest.endswith(")")):
        raise UnreadableRule("a rule is written Tool or Tool(specifier)")
    return name, rest[:-1] if opened else None


def _means_all(inner: str, tool: NamedTool | None, *, wide: bool) -> bool:
    """Is the rule about all calls of the tool, as without parentheses?"""
    inner = inner.strip()
    if wide:
        return inner in {"", "*", ":*"}
    # To allow `Read(*)` is to allow the files below the working folder, and no others.
    return inner == "*" and (tool is None or not tool.is_files)


def _bare(tool: NamedTool, *, wide: bool) -> Binds:
    """What a name alone is about."""
    name, group = tool.name, tool.group
    if "*" in name:
        if not wide and not re.fullmatch(_GLOB_OF_A_SERVER, name):
            raise UnreadableRule("only names after mcp__server__ may hold `*` in a rule that allows")
        return parse_tool_glob(name, lax=wide)
    if re.fullmatch(r"mcp__(?:(?!__).)+(?:__)?", name):
        return parse_tool_glob(f"{name.removesuffix('__')}__*", lax=wide)
    if name.startswith("mcp__"):
        return parse_tool_glob(name, lax=wide)
    if group == "Bash":
        return Commanded() if wide else Grouped(group)
    if tool.is_whole_group:
        return FileSpecifier(group, "read" if group == "Read" else "write") if wide else Grouped(group)
    return ToolNameBinding(name, tool.tool)


def _commands(inner: str, *, wide: bool) -> tuple[Condition, Binds | None, bool]:
    pattern = wildcard(inner, wide=wide)
    return _or_value(Commands(pattern), inner, wide=wide), None, wildcard(inner).exact


def _hosts(inner: str, *, wide: bool) -> Hosts:
    try:
        return hosts(inner.strip(), wide=wide)
    except BadHost as error:
        raise UnreadableRule(str(error).rstrip(".")) from error


def _or_value(condition: Condition, inner: str, *, wide: bool) -> Condition:
    """A rule that keeps something out may also mean an argument: `Bash(run_in_background:true)`."""
    value = _value(inner) if wide else None
    return condition if value is None else Either(condition, value)


def _value(inner: str) -> Value | None:
    found = re.fullmatch(r"\s*(?P<name>[A-Za-z_][\w.-]*):(?P<value>.*)", inner, re.DOTALL)
    return Value(found["name"], wildcard(found["value"], wide=True)) if found else None


Kind = Literal["project", "local", "user", "managed", "session"]
Canonical = Callable[[str], str | None]
"""A tool's name in any family → the canonical one, or None."""

_LISTS: tuple[Listed, ...] = ("deny", "ask", "allow")
_KEYS = (*_LISTS, "additionalDirectories", "defaultMode", "disableBypassPermissionsMode")


def read(
    text: str, *, source: str, layer: Layer, root: str, home: str, cwd: str, kind: Kind, canonical: Canonical
) -> RuleSet:
    """The rules of a settings file. All folders are absolute.

    Raises: ConfigError.
    """
    permissions = _permissions(text, source)
    reader = RuleReader(source, _anchors(root=root, home=home, cwd=cwd, kind=kind), canonical)
    rules: list[Rule] = []
    warnings = [
        f"{source}: permissions.{key} is not known and was left out." for key in permissions if key not in _KEYS
    ]
    for action in _LISTS:
        for place, written in _texts(permissions, action, source, warnings):
            correction = reader.correction(action, written)
            warnings += [correction] * bool(correction)
            try:
                rules.append(reader.rule(action, written))
            except UnreadableRule as error:
                if action != "allow":
                    raise ConfigError(visible(f"{place}: {written} cannot be read: {error}.")) from error
                warnings += [f"{place}: {written} was left out: {error}."] * (not correction)
    mode = permissions.get("defaultMode")
    if mode is not None:
        mode = _mode(mode, source)
    return RuleSet(
        rules=tuple(rules),
        ordered=False,
        source=source,
        layer=layer,
        warnings=tuple(map(visible, warnings)),
        mode=mode or "",
        folders=tuple(_folders(permissions, source, root=root, home=home)),
        forbids_bypass=_forbids_bypass(permissions, source),
    )


def rule(
    action: Listed, text: str, *, source: str, root: str, home: str, cwd: str, kind: Kind, canonical: Canonical
) -> Rule:
    """One rule.

    Raises: ConfigError, also for an allow rule that `read` would leave out.
    """
    reader = RuleReader(source, _anchors(root=root, home=home, cwd=cwd, kind=kind), canonical)
    try:
        return reader.rule(action, text)
    except UnreadableRule as error:
        correction = reader.correction(action, text)
        raise ConfigError(visible(correction or f"{source}: {text} cannot be read: {error}.")) from error


def hides(rule: Rule, subject: Subject) -> bool:
    """Does the rule take the tool away altogether, so that no model need be shown it?"""
    return rule.action == "deny" and isinstance(rule.condition, Always) and rule.matches(subject)


def _anchors(*, root: str, home: str, cwd: str, kind: Kind) -> Anchors:
    source = {"user": os.path.join(home, ".claude"), "local": cwd, "session": cwd}.get(kind, root)
    return Anchors(source=source, cwd=cwd, home=home)


def _permissions(text: str, source: str) -> dict[str, Any]:
    try:
        settings = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{source}, line {error.lineno}, column {error.colno}: {error.msg}.") from error
    except RecursionError as error:
        raise ConfigError(f"{source}: the brackets are nested too deeply.") from error
    except _Twice as error:
        key = visible(error.args[0])
        raise ConfigError(f"{source}: {key} is written twice; only one of the two would count.") from error
    except ValueError as error:
        raise ConfigError(f"{source}: {error}.") from error
    if not isinstance(settings, dict):
        raise ConfigError(f"{source}: the settings have to be an object.")
    permissions = settings.get("permissions")
    if permissions is None:
        permissions = {}
    if not isinstance(permissions, dict):
        raise ConfigError(f"{source}: permissions has to be an object.")
    for key in permissions:
        # A list under a mistyped name would be one that nobody obeys.
        if key not in _KEYS and (meant := near(key, ("deny", "ask"), most=1)):
            raise ConfigError(visible(f"{source}: permissions.{key} is not known; {meant[0]} is."))
    return permissions


class _Twice(ValueError):  # noqa: N818 - the state
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(key)
        found[key] = value
    return found


def _texts(permissions: dict[str, Any], action: Listed, source: str, warnings: list[str]) -> Iterator[tuple[str, str]]:
    """The rules of one list, each with its place."""
    for place, value in _items(permissions, action, source):
        if isinstance(value, str):
            yield place, value
        elif action == "allow":
            warnings.append(f"{place} was left out: a rule is a text.")
        else:
            raise ConfigError(f"{place}: a rule is a text.")


def _items(permissions: dict[str, Any], key: str, source: str) -> Iterator[tuple[str, Any]]:
    values = permissions.get(key)
    if values is None:
        return
    if not isinstance(values, list):
        raise ConfigError(f"{source}: permissions.{key} has to be a list.")
    for at, value in enumerate(values):
        yield f"{source}: permissions.{key}[{at}]", value


def _folders(permissions: dict[str, Any], source: str, *, root: str, home: str) -> Iterator[str]:
    for place, value in _items(permissions, "additionalDirectories", source):
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise ConfigError(f"{place}: a folder is a text.")
        inside_home = value == "~" or value.startswith("~/")
        yield os.path.normpath(os.path.join(home, value[2:]) if inside_home else os.path.join(root, value))


def _mode(value: Any, source: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{source}: permissions.defaultMode has to be a text.")
    try:
        return decision.parse_mode(value).name
    except ConfigError as error:
        raise ConfigError(f"{source}: permissions.defaultMode: {error}") from error


def _forbids_bypass(permissions: dict[str, Any], source: str) -> bool:
    value = permissions.get("disableBypassPermissionsMode")
    if value is not None and value != "disable":
        raise ConfigError(f'{source}: permissions.disableBypassPermissionsMode can only be "disable".')
    return value is not None


ALLOWED = (
    *("Read", "Grep", "Glob", "web", "WebFetch", "vision_analyze", "transcribe_audio", "ToolSearch", "Skill"),
    *("wayland_status", "wayland_telemetry_query"),
)
"""The list where a file has none."""
_LENGTH = 1 << 20


def read_wayland(given: str | Mapping[str, Any], *, source: str, layer: Layer) -> RuleSet:
    """The rules of a TOML file, or of what was read from one: `[tools]` with `auto_approve` and `allow_list`.

    A file of a project does not turn the questions off, trusted or not. Raises: ConfigError.
    """
    tools = (_parse(given, source) if isinstance(given, str) else given).get("tools")
    if not isinstance(tools, Mapping):
        raise ConfigError(f"{source}: there is no table tools, with allow_list in it.")
    names = tools.get("allow_list", ALLOWED)
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name.strip() for name in names):
        raise ConfigError(f"{source}: allow_list is a list of the names of tools.")
    everything = tools.get("auto_approve", False)
    if not isinstance(everything, bool):
        raise ConfigError(f"{source}: auto_approve is true or false.")
    warnings = [f"{source}: {key} is not used here." for key in tools if key not in {"allow_list", "auto_approve"}]
    warnings += [
        f"{source}: {name} has a *, and this list has no patterns; it allows nothing." for name in names if "*" in name
    ]
    if everything and layer == "project":
        warnings.append(f"{source}: a project does not turn the questions off, so auto_approve is not used.")
        everything = False
    return RuleSet(
        tuple(Rule("allow", name, f"allow_list {name}") for name in dict.fromkeys(names)),
        ordered=False,
        source=source,
        layer=layer,
        warnings=tuple(warnings),
        mode="bypassPermissions" if everything else "",
    )


def _parse(text: str, source: str) -> Mapping[str, Any]:

    if len(text) > _LENGTH:
        raise ConfigError(f"{source} is longer than {_LENGTH} characters; that is too much for rules.")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{source}: it is not TOML ({error}).") from error
