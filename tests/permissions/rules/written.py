"""Calls for rules to be about, and rules as Claude Code's settings write them."""

from collections.abc import Iterable
from functools import cache
from typing import Any, Literal

from ferrule.dialects import FAMILIES, load_dialect
from ferrule.permissions.rules import PathAccess, Rule, Subject, claude

ROOT = "/proj"
CWD = "/proj/app"
HOME = "/home/ann"

Mode = Literal["read", "write"]


@cache
def tools() -> dict[str, set[str]]:
    """Canonical tool → its names in all families."""
    found: dict[str, set[str]] = {}
    for family in FAMILIES:
        dialect = load_dialect(family)
        for face in dialect.faces:
            aliases = {alias for alias, name in dialect.aliases.items() if name == face.name}
            found.setdefault(face.tool, {face.tool}).update({face.name, *aliases})
    return found


def canonical(name: str) -> str | None:
    return next((tool for tool, names in tools().items() if name in names), None)


def rule(action: Literal["allow", "ask", "deny"], text: str, **places: Any) -> Rule:
    given: dict[str, Any] = {"root": ROOT, "home": HOME, "cwd": CWD, "kind": "project"} | places
    return claude.rule(action, text, source=".claude/settings.json", canonical=canonical, **given)


def subject(tool: str, **fields: Any) -> Subject:
    return Subject(tool=tool, names=frozenset(tools().get(tool, {tool})), **fields)


def command(*forms: str, **fields: Any) -> Subject:
    return subject("shell", commands=forms, **fields)


def files(tool: str, mode: Mode, *paths: str | tuple[str, str]) -> Subject:
    """A call that touches paths; a pair is a path as written and where it leads."""
    return subject(tool, paths=tuple(touched(mode, paths)))


def touched(mode: Mode, paths: Iterable[str | tuple[str, str]]) -> Iterable[PathAccess]:
    for path in paths:
        spelled, real = path if isinstance(path, tuple) else (path, path)
        yield PathAccess(mode, real, spelled)


def fetch(*hosts: str) -> Subject:
    return subject("web_fetch", hosts=hosts)
