"""A question in rows for whoever answers it, wherever that is: what would be written, sent or typed."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ferrule.permissions.asker import Question, visible
from ferrule.permissions.changes import MOST_ROW_CHARS

_NAMED = ("path", "paths", "url", "more")
"""Canonical arguments that the summary has already."""


def rows(question: Question) -> list[str]:
    """What is shown between what would happen and why it is asked. None of the rows steers a screen."""
    if question.kind == "plan":
        return [visible(line) for line in question.input["plan"].splitlines()]
    if question.kind == "server":
        return list(map(_row, question.effects))
    if question.changes:
        return list(question.changes)
    typed = question.input.get("chars")
    if isinstance(typed, str):
        return [_row(f"types: {line}") for line in typed.splitlines()]
    if lines := script(question) or _unnamed(question):
        return lines
    if (
        question.kind == "folder"
        or question.tool == "check"
        or any(access.kind == "command" for access in question.touches)
    ):
        return []
    return list(map(_row, _arguments(_said(question))))


def headed(question: Question) -> str:
    """The summary; of a command of several lines, which are shown below it, only where and how it runs."""
    lines = script(question)
    if not lines:
        return question.summary
    command = next(access.key for access in question.touches if access.kind == "command")
    return question.summary.replace(f"`{visible(command)}`", f"{len(lines)} lines of shell", 1)


def script(question: Question) -> list[str]:
    """The lines of the one command that the question is about, where it has several and the summary has it whole."""
    commands = [access.key for access in question.touches if access.kind == "command"]
    if len(commands) != 1 or "\n" not in commands[0].strip() or f"`{visible(commands[0])}`" not in question.summary:
        return []
    return [_row(line) for line in commands[0].strip("\n").split("\n")]


def _unnamed(question: Question) -> list[str]:
    """The command that wants to reach a host: the summary says what it wants, and not which one it is."""
    commands = [access.key for access in question.touches if access.kind == "command"]
    named = question.kind != "host" or any(f"`{visible(one)}`" in question.summary for one in commands)
    return [] if named else [_row(line) for one in commands for line in one.strip("\n").split("\n")]


def _said(question: Question) -> Mapping[str, Any]:
    """The arguments in the words of whoever made the call, but for those that say where it goes."""
    known = {str(question.input[name]) for name in _NAMED if isinstance(question.input.get(name), str)}
    given = question.input if question.given is None else question.given
    return {name: value for name, value in given.items() if value not in (None, "", [], {}) and value not in known}


def _arguments(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        first, *rest = text.split("\n")
        yield f"{name}: {first}"
        yield from (f"  {line}" for line in rest)


def _row(line: str) -> str:
    """A row to its end, or as much of it as can be read; whoever allows it is told where it goes on."""
    more = len(line) - MOST_ROW_CHARS
    shown = visible(line[:MOST_ROW_CHARS].replace("\t", "    "))
    return f"{shown} … {more:,} more characters" if more > 0 else shown


def covers(question: Question, *, host: str, like: str) -> str:
    """What "always" would do: `host` is said of a host, and `like` of the like of the call, where no rule is saved."""
    if question.kind == "host":
        return host
    if question.proposals:
        return "saves the rule " + " and ".join(map(visible, question.proposals))
    commands = sum(access.kind == "command" for access in question.touches)
    what = ("this command" if commands == 1 else "these commands") if commands else f"every {visible(question.name)}"
    return like.format(what)
