"""Rules as Claude Code's settings files have them: lists of what is allowed, asked about and denied.

A deny or ask rule that cannot be read is an error, since leaving it out would open what it was to close. An allow
rule that cannot be read is left out with a warning.
"""

import json
import os
from collections.abc import Callable, Iterator
from typing import Any, Literal

from ferrule.core.errors import ConfigError
from ferrule.permissions import standing
from ferrule.permissions.asker import visible
from ferrule.permissions.rules.paths import Anchors
from ferrule.permissions.rules.rule import Always, Layer, Rule, RuleSet, Subject
from ferrule.permissions.rules.specifiers import Listed, Reader, Unreadable
from ferrule.support.near import near

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
    reader = Reader(source, _anchors(root=root, home=home, cwd=cwd, kind=kind), canonical)
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
            except Unreadable as error:
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
    reader = Reader(source, _anchors(root=root, home=home, cwd=cwd, kind=kind), canonical)
    try:
        return reader.rule(action, text)
    except Unreadable as error:
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
        return standing.named(value).name
    except ConfigError as error:
        raise ConfigError(f"{source}: permissions.defaultMode: {error}") from error


def _forbids_bypass(permissions: dict[str, Any], source: str) -> bool:
    value = permissions.get("disableBypassPermissionsMode")
    if value is not None and value != "disable":
        raise ConfigError(f'{source}: permissions.disableBypassPermissionsMode can only be "disable".')
    return value is not None
