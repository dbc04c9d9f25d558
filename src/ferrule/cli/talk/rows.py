"""One row per running call and per helper: how it looks while it runs, and when it is over."""

import re
from typing import Any

import msgspec

from ferrule.agent import events as told
from ferrule.cli.talk.line import Line, Whole, line, sentence
from ferrule.cli.talk.words import about, left_running, outcome, seconds, tokens
from ferrule.core import events as calls

_SLOW_SECONDS = 1.0
_MOST_BESIDE_CHARS = 36
"""What says in more characters how a call went stands below its row, where it is not cut off."""
_MOST_ADVICE_ROWS = 8
_LINES = re.compile(r"[\d,]+ lines?")


class CallRow(msgspec.Struct, frozen=True):
    """A call that is being written, waits or runs."""

    name: str
    about: str = ""
    described: str = ""
    """What the model says that it is for."""
    input: dict[str, Any] = {}
    note: str = ""
    """How far it says that it is, or what it waits for."""
    rows: tuple[str, ...] = ()
    """The last lines of what it prints."""
    since: float = 0.0
    is_asked: bool = False
    """Does it wait for a person's answer?"""
    is_complete: bool = False
    """Has the model written all of it?"""
    children: tuple[Line, ...] = ()
    """Its helpers that are done."""


class ChildRow(msgspec.Struct, frozen=True):
    """A helper that is at work."""

    name: str
    description: str
    parent: str
    call_id: str
    since: float = 0.0
    turns: int = 0
    used_tokens: int = 0
    doing: tuple[tuple[str, str], ...] = ()
    """The calls that run, by id, in words."""

    def after(self, event: told.AgentEvent, cwd: str) -> "ChildRow":
        """The row after one of its own events."""
        match event:
            case told.TurnEnded():
                usage = event.spent.usage
                return msgspec.structs.replace(self, turns=event.spent.turns, used_tokens=usage.input + usage.output)
            case told.Called(call=calls.Prepared() as call):
                words = f"{call.name} {about(call.arguments, cwd)}"
                return msgspec.structs.replace(self, doing=(*self.doing, (call.id, words)))
            case told.Called(call=calls.Done() as call):
                return msgspec.structs.replace(self, doing=tuple(one for one in self.doing if one[0] != call.id))
        return self

    def live(self, now: float) -> Line:
        parts = [_answers(self.turns), f"{tokens(self.used_tokens)} tokens"] if self.turns else []
        doing = self.doing[-1][1] if self.doing else "thinking"
        head = self.name + (f" {self.description}" if self.description else "")
        detail = " · ".join([*parts, seconds(now - self.since), doing])
        return line(("dim", "    └ "), ("give", head), ("dim", f"  {detail}"))


def busy(what: str, took_seconds: float, now: float) -> Line:
    """That something is waited for, and for how long already."""
    spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[int(now * 10) % 10]
    return line(("magenta", f"{spinner} "), ("dim", f"{what} · {seconds(took_seconds)}"))


def queued(text: str) -> Line:
    """That something was sent, and is not heard yet."""
    return line(("cyan", "  ↳ queued: "), ("dim", text))


def live_rows(row: CallRow, most: int) -> list[Line]:
    """The end of what a call has printed so far."""
    return [line(("dim", f"    {text}")) for text in row.rows[-most:]]


def live_call(row: CallRow, now: float) -> Line:
    note = row.note or ("" if row.is_complete else "…")
    took = seconds(now - row.since) if now - row.since >= _SLOW_SECONDS else ""
    facts = [fact for fact in (row.about, took, note) if fact]
    head, *rest = facts if row.about else ["", *facts]
    return line(
        ("yellow", "  • "),
        ("bold", row.name),
        ("give", f" {head}" if head else ""),
        _beside(row),
        *(("dim", f"  {fact}") for fact in rest),
    )


def _beside(row: CallRow) -> tuple[str, str]:
    return "dim give", f"  ({row.described})" if row.described else ""


def call_done(row: CallRow, done: calls.Done, more: str = "") -> list[Line]:
    """What stays of a call: ✓ or ✗, and how it went; below that in as many rows as it takes why it failed."""
    reply = done.reply
    ok, words = outcome(reply, done.exit_code)
    goes_on = left_running(reply) if "command" in row.input and done.exit_code is None else ""
    words = goes_on or words
    below = [] if ok or ("\n" not in words and len(words) <= _MOST_BESIDE_CHARS) else words.split("\n")
    if below or (ok and not row.about and _LINES.fullmatch(words)):
        words = ""  # how long the reply to a call about nothing is says nothing either
    took = reply.ended - reply.started if reply.started else 0.0
    changed = str(reply.changes) if reply.changes is not None and reply.changes.files else ""
    parts = [more or words, changed, seconds(took) if took >= _SLOW_SECONDS else ""]
    detail = " · ".join(part for part in parts if part)
    head = line(
        ("yellow", "  • ") if goes_on else ("green", "  ✓ ") if ok else ("red", "  ✗ "),
        ("bold", row.name),
        ("give", f" {row.about}" if row.about else ""),
        _beside(row),
        ("dim" if ok else "red", f"  {detail}" if detail else ""),
    )
    head = Whole(head) if "command" in row.input else head
    rest = [sentence(("red", f"    {row}")) for row in below[:_MOST_ADVICE_ROWS] if row.strip()]
    more_rows = len(below) - _MOST_ADVICE_ROWS
    return [
        head,
        *rest,
        *([line(("dim", f"    … {more_rows:,} more line{'s' * (more_rows > 1)}"))] if more_rows > 0 else []),
    ]


def child_done(child: ChildRow, event: told.ChildEnded) -> Line:
    usage = event.spent.usage
    parts = [_answers(event.spent.turns), f"{tokens(usage.input + usage.output)} tokens", seconds(event.spent.seconds)]
    ok = event.reason == "end"
    head = child.name + (f" {child.description}" if child.description else "")
    why = "" if ok else f" · stopped: {event.reason}"
    return line(("green", "  └ ✓ ") if ok else ("red", "  └ ✗ "), ("", head), ("dim", f"  {' · '.join(parts)}{why}"))


def _answers(number: int) -> str:
    return f"{number} answer{'' if number == 1 else 's'}"
