"""Define rule conditions on a call's tool and arguments, including Amp's `tool` and `matches`.

Conditions are about the command, the kind of agent, the skill, or any argument by its name.

An argument may have several forms: a command with and without its quotes, a path as written, from the workspace,
and fully resolved. A rule that denies or asks holds if any form matches. A rule that allows must match the
written form and the resolved one; if its expression matches by the absence of something, it must match every
form. Web addresses are compared by the host that is connected to, however they are spelled.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ferrule.core.access import within
from ferrule.permissions.rules import Binds, Condition, PathAccess, Subject, Wildcard
from ferrule.permissions.rules.hosts import (
    address_forms,
    canonical_pattern,
    is_address,
    lenient_addresses,
    lowercase_forms,
    lowercase_patterns,
    normalize_address,
)
from ferrule.permissions.rules.pattern import RulePattern

_AGENT = ("subagent_type", "agent_type", "agent_name", "agent")
_USUAL_AGENT = "general-purpose"
_SKILL = ("skill", "name")
_SKILL_ARGUMENTS = ("args", "arguments")


class Commands(NamedTuple):
    """One simple command, in any of its forms."""

    pattern: Wildcard

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        if strictly:
            return any(map(self.pattern.matches, subject.commands))
        return any(self.pattern.matches(form) for command in subject.commands for form in _lax(command))


class Value(NamedTuple):
    """An argument by its name. One that is not given does not hold."""

    name: str
    pattern: Wildcard

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        if self.name not in subject.values:
            return False
        told = [
            self.pattern.matches(text) or (not strictly and self._names(text))
            for text in _texts(subject.values[self.name])
        ]
        return bool(told) and (all(told) if strictly else any(told))

    def _names(self, text: str) -> bool:
        """Is it about the address that the text is a spelling of?"""
        return is_address(text) and any(one.matches(form) for form in address_forms(text) for one in self._small)

    @property
    def _small(self) -> list[Wildcard]:
        texts = ["*".join(runs) for runs in self.pattern.readings]
        return [Wildcard((tuple(one.split("*")),)) for text in texts for one in lowercase_forms(text)]


class AgentSpecifier(NamedTuple):
    """The kind of agent that a call starts."""

    pattern: Wildcard

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        given = [text for name in _AGENT if name in subject.values for text in _texts(subject.values[name])]
        if strictly:
            return bool(given) and all(map(self.pattern.matches, given))
        return any(map(self.pattern.matches, given or [_USUAL_AGENT]))


class SkillCondition(NamedTuple):
    """A skill and what it is given."""

    pattern: Wildcard

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        names = _argument_texts(subject, _SKILL)
        extra = " ".join(_argument_texts(subject, _SKILL_ARGUMENTS)).strip()
        names = {name.strip().removeprefix("/") for name in names}
        whole = [f"{name} {extra}".strip() for name in names]
        if strictly:
            return bool(whole) and all(map(self.pattern.matches, whole))
        # A skill that is kept out stays out, whatever it is given.
        return any(map(self.pattern.matches, {*whole, *names, *(name.partition(" ")[0] for name in names)}))


class Either(NamedTuple):
    """One of two readings of a rule that keeps something out."""

    one: Condition
    other: Condition

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        return self.one.holds(subject, strictly=strictly) or self.other.holds(subject, strictly=strictly)


class Of(NamedTuple):
    """A condition that only concerns some tools."""

    tools: Binds
    condition: Condition

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        return self.tools.binds(subject) and self.condition.holds(subject, strictly=strictly)


def _lax(command: str) -> set[str]:
    """The command as it is, with single blanks, and with its program in lower case and without its folder.

    Only the program: `git branch -D` is another thing than `git branch -d`.
    """
    program, *words = command.split() or [""]
    return {command, " ".join([program, *words]), " ".join([program.rpartition("/")[2].lower(), *words])}


def _argument_texts(subject: Subject, names: tuple[str, ...]) -> set[str]:
    return {text for name in names if name in subject.values for text in _texts(subject.values[name])}


def _texts(value: Any) -> Iterator[str]:
    """A value as a rule writes it; each member of a list by itself."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, bool | int | float) or value is None:
        yield json.dumps(value)


_ELSEWHERE = ("mcp__", "tb__")
"""How the names of tools begin that are not built in."""


class ToolNamePattern(NamedTuple):
    """Which tools a pattern of names is about: those of which any name matches.

    An expression that matches by what is not there, in a rule that allows, must match every name: `/^(?!Bash)/` does
    not mean the shell, although one of its names is not Bash.
    """

    pattern: RulePattern
    strictly: bool = False
    built_in: bool = False
    """Only tools that are built in?"""

    def binds(self, subject: Subject) -> bool:
        if self.built_in and subject.tool.startswith(_ELSEWHERE):
            return False
        each = (self.pattern.matches(name, strictly=self.strictly) for name in subject.names | {subject.tool})
        return all(each) if self.strictly and self.pattern.negates else any(each)


class NoneOf(NamedTuple):
    """Tools that none of these is about."""

    names: tuple[ToolNamePattern, ...]

    def binds(self, subject: Subject) -> bool:
        return not any(names.binds(subject) for names in self.names)


class Literal(NamedTuple):
    """Equal to a boolean, a number or null; `true` is not 1."""

    value: bool | float | None

    def equals(self, value: Any) -> bool:
        if isinstance(self.value, bool) or isinstance(value, bool) or self.value is None or value is None:
            return value is self.value
        return isinstance(value, int | float) and value == self.value


class AnyOf(NamedTuple):
    """One of several is enough."""

    tests: tuple["Test", ...]


class Nested(NamedTuple):
    """Conditions on the inside of an object, or by number on that of an array."""

    tests: tuple[tuple[str, "Test"], ...]


Test = RulePattern | Literal | AnyOf | Nested


class Matches(NamedTuple):
    """All of these hold; an argument that is missing matches nothing."""

    tests: tuple[tuple[str, Test], ...]

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        return all(self._holds(key, test, subject, strictly=strictly) for key, test in self.tests)

    def _holds(self, key: str, test: Test, subject: Subject, *, strictly: bool) -> bool:
        if key in subject.command_keys and subject.commands and isinstance(test, RulePattern | AnyOf):
            return _command(test, subject.commands, strictly=strictly)
        return _passes(test, find_values(subject.values, key), subject, strictly=strictly)


def find_values(values: object, key: str) -> list[Any]:
    """What stands under a key, and under the same key read as a way through objects and arrays."""
    if isinstance(values, list | tuple):
        head, _, rest = key.partition(".")
        if not (head.isascii() and head.isdigit() and len(head) <= 9 and int(head) < len(values)):
            return []
        return find_values(values[int(head)], rest) if rest else [values[int(head)]]
    if not isinstance(values, Mapping):
        return []
    there = [values[key]] if key in values else []
    head, _, rest = key.partition(".")
    return there + find_values(values[head], rest) if rest and head in values else there


def _command(test: Test, forms: Sequence[str], *, strictly: bool) -> bool:
    if isinstance(test, AnyOf):
        return any(_command(one, forms, strictly=strictly) for one in test.tests)
    return isinstance(test, RulePattern) and _fits(test, forms, strictly=strictly)


def _passes(test: Test, values: Sequence[Any], subject: Subject, *, strictly: bool) -> bool:
    if isinstance(test, AnyOf):
        return any(_passes(one, values, subject, strictly=strictly) for one in test.tests)
    each = (_passes_one(test, value, subject, strictly=strictly) for value in values)
    return bool(values) and all(each) if strictly else any(each)


def _passes_one(test: RulePattern | Literal | Nested, value: Any, subject: Subject, *, strictly: bool) -> bool:
    match test:
        case Literal():
            return test.equals(value)
        case Nested():
            return all(_passes(inner, find_values(value, key), subject, strictly=strictly) for key, inner in test.tests)
    if not isinstance(value, str):
        return False
    if is_address(value):
        return _admits(test, value) if strictly else _concerns(test, value)
    written, real = _forms(value, subject, negates=test.negates)
    if strictly:
        return _fits(test, written, strictly=True) and all(_fits(test, forms, strictly=True) for forms in real)
    return any(_fits(test, forms, strictly=False) for forms in (written, *real))


def _admits(test: RulePattern, value: str) -> bool:
    """Who may go to an address is decided by where that is, to every reader of it."""
    if address := normalize_address(value):
        return _fits(canonical_pattern(test), [address], strictly=True)
    return all(_fits(canonical_pattern(test), [form], strictly=True) for form in (value, *lenient_addresses(value)[:1]))


def _concerns(test: RulePattern, value: str) -> bool:
    """Who may not go there is not let through by another spelling either."""
    forms = address_forms(value)
    return _fits(test, [value], strictly=False) or any(
        _fits(one, forms, strictly=False) for one in lowercase_patterns(test)
    )


def _fits(test: RulePattern, forms: Iterable[str], *, strictly: bool) -> bool:
    each = (test.matches(form, strictly=strictly) for form in forms)
    return all(each) if strictly and test.negates else any(each)


def _forms(value: str, subject: Subject, *, negates: bool) -> tuple[list[str], list[list[str]]]:
    """How a value is written, and for each path that it stands for, how that path is really called.

    "Not below /work" must not be true of a file there only because it has a shorter name from the workspace: for an
    expression that negates, a path is called only as it was written, from the root or from the workspace.
    """
    touched = [one for one in subject.paths if _names(value, one, subject.workspace)]
    if not touched:
        # Nobody knows it for a path. If it is one, what it climbs out of says nothing about where it leads.
        climbs = ".." in value.replace("\\", "/").split("/")
        return [value], [[os.path.normpath(value)]] if climbs else []
    absolute = os.path.isabs(value)
    written, real = [value], []
    for one in touched:
        spelled = os.path.normpath(one.spelled)
        from_here, really_from_here = _relative(spelled, subject.workspace), _relative(one.real, subject.workspace)
        if not negates:
            written += [one.spelled, spelled, *from_here]
            real.append([one.real, *really_from_here])
        elif absolute:
            written.append(spelled)
            real.append([one.real])
        else:
            written += from_here or [spelled]
            real.append(really_from_here or [one.real])
    return list(dict.fromkeys(written)), real


def _names(value: str, touched: PathAccess, workspace: str) -> bool:
    """Is the path written so?"""
    if value in {touched.spelled, touched.real}:
        return True
    spelled = os.path.normpath(touched.spelled)
    path = os.path.normpath(os.path.join(workspace, os.path.expanduser(value)))
    if path in {spelled, touched.real}:
        return True
    # The folder that it starts from is not known, as when a session has gone into another one.
    return not os.path.isabs(path) and not path.startswith("..") and spelled.endswith(os.sep + path)


def _relative(path: str, workspace: str) -> list[str]:
    if not workspace or not within(path, workspace):
        return []
    return [os.path.relpath(path, workspace)]
