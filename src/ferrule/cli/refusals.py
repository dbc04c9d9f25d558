"""List the calls of a run that were refused, because nobody could be asked or by a rule, and what allows them."""

import os
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from ferrule.agent import (
    AgentEvent,
    Began,
    Called,
    TurnEnded,
)
from ferrule.cli.show import paint
from ferrule.core.access import Access
from ferrule.core.call import Done, Prepared, Reply
from ferrule.output import clean
from ferrule.tools import SHELL, facts_of
from ferrule.wire import Use

_RULED = "denied-by-rule"


_PLAN = "plan-not-approved"


_ASKED = frozenset(
    {"not-allowed", "outside-workspace", "ask-failed", "writing-protected-file", "reading-secret-file", _PLAN}
)
"""Codes of refusals that somebody could have answered otherwise."""


_ABOUT = ("command", "cmd", "path", "file_path", "url")
"""The arguments that say what a call is about, in the words of the tool or of a family."""


_MOST_CHARS = 160


_MOST_TOLD = 20


class CallRefusal(msgspec.Struct):
    """One call that was refused, however often the model made it."""

    name: str
    about: str
    why: str
    advice: str
    touches: frozenset[tuple[str, str]]
    """The files that it would have read or written; empty where it does anything else."""
    is_lifted: bool = False
    """Was it made later, or the same done by another call?"""

    @property
    def sentence(self) -> str:
        later = " It was made later." if self.is_lifted else ""
        about = f" {self.about}" if self.about else ""
        return " ".join(f"{self.name}{about}: {self.why} {self.advice}{later}".split())


class Refusals:
    """Hears the events of a run. `is_asked`: a person or a program answers questions, and its no is no hindrance."""

    def __init__(self, *, is_asked: bool) -> None:
        self._is_asked = is_asked
        self._is_planning = False
        self._cwd = ""
        self._prepared: dict[tuple[str, str], Prepared] = {}
        self._given: dict[tuple[str, str], Mapping[str, Any]] = {}
        """What calls were given: a rule may deny one before it is prepared."""
        self._refused: dict[tuple[str, str], CallRefusal] = {}

    @property
    def is_hindered(self) -> bool:
        """Was something refused that was not done later?"""
        return any(not one.is_lifted for one in self._refused.values())

    def put(self, event: AgentEvent) -> None:
        if isinstance(event, Began):
            self._cwd = self._cwd or event.cwd
            # Plan mode is there to refuse: the plan is the work, and nothing hindered it.
            self._is_planning |= event.permission_mode == "plan"
        elif isinstance(event, TurnEnded):
            self._given |= {
                (event.thread, one.id): one.input
                for one in event.said.parts
                if isinstance(one, Use) and isinstance(one.input, dict)
            }
        if not isinstance(event, Called) or self._is_planning:
            return
        call = event.call
        if isinstance(call, Prepared):
            self._prepared[event.thread, call.id] = call
        elif isinstance(call, Done):
            key = (event.thread, call.id)
            self._record_reply(call, self._prepared.pop(key, None), self._given.pop(key, {}))

    def lines(self) -> list[str]:
        """What a person reads at the end: every call once."""
        told = [one.sentence for one in self._refused.values()]
        more = len(told) - _MOST_TOLD
        return told[:_MOST_TOLD] + ([f"… and {more} more calls."] if more > 0 else [])

    def _record_reply(self, done: Done, prepared: Prepared | None, given: Mapping[str, Any]) -> None:
        arguments = prepared.arguments if prepared is not None else given
        reply, key = done.reply, _key(done, arguments)
        if reply.ok:
            self._lift(key, prepared)
        elif _counts(reply, is_asked=self._is_asked) and key not in self._refused:
            self._refused[key] = _refusal(reply, done.tool, arguments, _files(prepared), self._cwd)

    def _lift(self, key: tuple[str, str], prepared: Prepared | None) -> None:
        if key in self._refused:
            self._refused[key].is_lifted = True
        done = _files(prepared)
        for one in self._refused.values():
            # Written by another tool, it is done all the same; a file that is written was not thereby read.
            one.is_lifted = one.is_lifted or (bool(one.touches) and one.touches <= done)


def refusal_lines(refusals: Refusals) -> str:
    """All of them for standard error; empty where there are none."""
    lines = refusals.lines()
    if not lines:
        return ""
    mark = paint("refused: ", "yellow")
    return "\n".join(f"{mark}{line}" for line in lines)


def _counts(reply: Reply, *, is_asked: bool) -> bool:
    code = (reply.error.error_code if reply.error is not None else "") or ""
    return code == _RULED or (code in _ASKED and not is_asked)


def _key(done: Done, arguments: Mapping[str, Any]) -> tuple[str, str]:
    """What makes two calls the same: a command line by itself, else the tool with all that it was given."""
    command = arguments.get("command")
    if isinstance(command, str):
        return done.tool, command
    return done.tool or done.name, msgspec.json.encode(arguments, order="deterministic").decode()


def _files(prepared: Prepared | None) -> frozenset[tuple[str, str]]:
    touches = prepared.touches if prepared is not None else ()
    if any(_is_more(access) for access in touches):
        return frozenset()
    return frozenset((access.key, "read" if access.mode == "read" else "write") for access in touches)


def _is_more(access: Access) -> bool:
    return access.kind != "path"


def _refusal(
    reply: Reply, tool: str, arguments: Mapping[str, Any], touches: frozenset[tuple[str, str]], cwd: str
) -> CallRefusal:
    assert reply.error is not None
    found = (arguments.get(key) for key in _ABOUT)
    about = next((one for one in found if isinstance(one, str) and one), "")
    is_ruled = reply.error.error_code == _RULED
    why = reply.error.message if is_ruled else _why(reply.error.error_code or "")
    return CallRefusal(
        name=clean(reply.name),
        about=_short(about.replace(f"{cwd}{os.sep}", "") if cwd else about),
        why=_short(why),
        advice=_advice(reply, tool, about),
        touches=touches,
    )


def _why(code: str) -> str:
    return {
        "outside-workspace": "it is outside the workspace, and nobody could be asked.",
        "writing-protected-file": "the file is protected, and nobody could be asked.",
        "reading-secret-file": "the file is secret, and nobody could be asked.",
        _PLAN: "nobody could approve the plan, so nothing of it was done.",
    }.get(code, "nobody could be asked.")


def _advice(reply: Reply, tool: str, about: str) -> str:
    code = reply.error.error_code if reply.error is not None else ""
    if code == _RULED:
        return "`ferrule permissions list` shows the rules."
    if code == "outside-workspace":
        return "--add-dir DIR opens a folder."
    if code in {"writing-protected-file", "reading-secret-file"}:
        return "Only a person may allow it: use `ferrule chat`."
    if code == _PLAN:
        return "--yes approves a plan that the model begins by itself, and `ferrule --continue` asks you."
    if facts_of(tool).kind == "edit":
        return "--permission-mode acceptEdits allows edits, and --yes all that would ask."
    rule = f"{reply.name}({about})" if about and tool == SHELL and "\n" not in about else reply.name
    return f"--yes allows all that would ask, and --allowed-tools {_quote(clean(rule))} only this."


def _quote(rule: str) -> str:

    return shlex.quote(rule)


def _short(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= _MOST_CHARS else line[: _MOST_CHARS - 1].rstrip() + "…"
