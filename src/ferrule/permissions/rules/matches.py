"""Which tools an Amp rule is about, and its conditions on their arguments: `tool` and `matches`.

An argument may have several forms: a command with and without its quotes, a path as written, from the workspace, and
where it really leads. A rule that denies or asks takes any of them for a sign. One that allows must match what was
written and also where it really leads; and where its expression matches by what is not there, every form. An address of
the web is what is connected to, however it is spelled.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ferrule.core.access import within
from ferrule.permissions.rules.addresses import goes_to, is_address, meant, plainly, spelled, widely
from ferrule.permissions.rules.pattern import Pattern
from ferrule.permissions.rules.rule import Subject, Touched

_ELSEWHERE = ("mcp__", "tb__")
"""How the names of tools begin that are not built in."""


class Names(NamedTuple):
    """Which tools a pattern of names is about: those of which any name matches.

    An expression that matches by what is not there, in a rule that allows, must match every name: `/^(?!Bash)/` does
    not mean the shell, although one of its names is not Bash.
    """

    pattern: Pattern
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

    names: tuple[Names, ...]

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


Test = Pattern | Literal | AnyOf | Nested


class Matches(NamedTuple):
    """All of these hold; an argument that is missing matches nothing."""

    tests: tuple[tuple[str, Test], ...]

    def holds(self, subject: Subject, *, strictly: bool) -> bool:
        return all(self._holds(key, test, subject, strictly=strictly) for key, test in self.tests)

    def _holds(self, key: str, test: Test, subject: Subject, *, strictly: bool) -> bool:
        if key in subject.command_keys and subject.commands and isinstance(test, Pattern | AnyOf):
            return _command(test, subject.commands, strictly=strictly)
        return _passes(test, found(subject.values, key), subject, strictly=strictly)


def found(values: object, key: str) -> list[Any]:
    """What stands under a key, and under the same key read as a way through objects and arrays."""
    if isinstance(values, list | tuple):
        head, _, rest = key.partition(".")
        if not (head.isascii() and head.isdigit() and len(head) <= 9 and int(head) < len(values)):
            return []
        return found(values[int(head)], rest) if rest else [values[int(head)]]
    if not isinstance(values, Mapping):
        return []
    there = [values[key]] if key in values else []
    head, _, rest = key.partition(".")
    return there + found(values[head], rest) if rest and head in values else there


def _command(test: Test, forms: Sequence[str], *, strictly: bool) -> bool:
    if isinstance(test, AnyOf):
        return any(_command(one, forms, strictly=strictly) for one in test.tests)
    return isinstance(test, Pattern) and _fits(test, forms, strictly=strictly)


def _passes(test: Test, values: Sequence[Any], subject: Subject, *, strictly: bool) -> bool:
    if isinstance(test, AnyOf):
        return any(_passes(one, values, subject, strictly=strictly) for one in test.tests)
    each = (_passes_one(test, value, subject, strictly=strictly) for value in values)
    return bool(values) and all(each) if strictly else any(each)


def _passes_one(test: Pattern | Literal | Nested, value: Any, subject: Subject, *, strictly: bool) -> bool:
    match test:
        case Literal():
            return test.equals(value)
        case Nested():
            return all(_passes(inner, found(value, key), subject, strictly=strictly) for key, inner in test.tests)
    if not isinstance(value, str):
        return False
    if is_address(value):
        return _admits(test, value) if strictly else _concerns(test, value)
    written, real = _forms(value, subject, negates=test.negates)
    if strictly:
        return _fits(test, written, strictly=True) and all(_fits(test, forms, strictly=True) for forms in real)
    return any(_fits(test, forms, strictly=False) for forms in (written, *real))


def _admits(test: Pattern, value: str) -> bool:
    """Who may go to an address is decided by where that is, to every reader of it."""
    if address := meant(value):
        return _fits(plainly(test), [address], strictly=True)
    return all(_fits(plainly(test), [form], strictly=True) for form in (value, *goes_to(value)[:1]))


def _concerns(test: Pattern, value: str) -> bool:
    """Who may not go there is not let through by another spelling either."""
    forms = spelled(value)
    return _fits(test, [value], strictly=False) or any(_fits(one, forms, strictly=False) for one in widely(test))


def _fits(test: Pattern, forms: Iterable[str], *, strictly: bool) -> bool:
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


def _names(value: str, touched: Touched, workspace: str) -> bool:
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
