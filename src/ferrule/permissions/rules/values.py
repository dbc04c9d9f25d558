"""Rules about what a call's arguments say: the command, the kind of agent, the skill, or any argument by its name."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from ferrule.permissions.rules.addresses import is_address, smaller, spelled
from ferrule.permissions.rules.rule import Binds, Condition, Subject
from ferrule.permissions.rules.wildcard import Wildcard

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
        return is_address(text) and any(one.matches(form) for form in spelled(text) for one in self._small)

    @property
    def _small(self) -> list[Wildcard]:
        texts = ["*".join(runs) for runs in self.pattern.readings]
        return [Wildcard((tuple(one.split("*")),)) for text in texts for one in smaller(text)]


class Agents(NamedTuple):
    """The kind of agent that a call starts."""

    pattern: Wildcard

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        given = [text for name in _AGENT if name in subject.values for text in _texts(subject.values[name])]
        if strictly:
            return bool(given) and all(map(self.pattern.matches, given))
        return any(map(self.pattern.matches, given or [_USUAL_AGENT]))


class Skills(NamedTuple):
    """A skill and what it is given."""

    pattern: Wildcard

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        names = _given(subject, _SKILL)
        extra = " ".join(_given(subject, _SKILL_ARGUMENTS)).strip()
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


def _given(subject: Subject, names: tuple[str, ...]) -> set[str]:
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
