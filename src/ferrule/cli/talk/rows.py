"""One row per running call and per helper: how it looks while it runs, and when it is over."""

from typing import Any

import msgspec

from ferrule.agent import events as told
from ferrule.cli.talk.line import Line, line
from ferrule.cli.talk.words import about, outcome, seconds, tokens
from ferrule.core import events as calls
from ferrule.core.reply import Reply

_SLOW_SECONDS = 1.0


class CallRow(msgspec.Struct, frozen=True):
    """A call that is being written, waits or runs."""

    name: str
    about: str = ""
    input: dict[str, Any] = {}
    note: str = ""
    """How far it says that it is, or what it waits for."""
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
        parts = [_turns(self.turns), f"{tokens(self.used_tokens)} tokens"] if self.turns else []
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


def live_call(row: CallRow, now: float) -> Line:
    note = row.note or ("" if row.is_complete else "…")
    took = seconds(now - row.since) if now - row.since >= _SLOW_SECONDS else ""
    facts = [fact for fact in (row.about, took, note) if fact]
    head, *rest = facts if row.about else ["", *facts]
    return line(
        ("yellow", "  • "),
        ("bold", row.name),
        ("give", f" {head}" if head else ""),
        *(("dim", f"  {fact}") for fact in rest),
    )


def call_done(row: CallRow, reply: Reply, more: str = "") -> Line:
    """What stays of a call: ✓ or ✗, and how it went."""
    ok, words = outcome(reply)
    took = reply.ended - reply.started if reply.started else 0.0
    changed = str(reply.changes) if reply.changes is not None and reply.changes.files else ""
    parts = [more or words, changed, seconds(took) if took >= _SLOW_SECONDS else ""]
    detail = " · ".join(part for part in parts if part)
    return line(
        ("green", "  ✓ ") if ok else ("red", "  ✗ "),
        ("bold", row.name),
        ("give", f" {row.about}" if row.about else ""),
        ("dim" if ok else "red", f"  {detail}" if detail else ""),
    )


def child_done(child: ChildRow, event: told.ChildEnded) -> Line:
    usage = event.spent.usage
    parts = [_turns(event.spent.turns), f"{tokens(usage.input + usage.output)} tokens", seconds(event.spent.seconds)]
    ok = event.reason == "end"
    head = child.name + (f" {child.description}" if child.description else "")
    why = "" if ok else f" · stopped: {event.reason}"
    return line(("green", "  └ ✓ ") if ok else ("red", "  └ ✗ "), ("", head), ("dim", f"  {' · '.join(parts)}{why}"))


def _turns(number: int) -> str:
    return f"{number} turn{'' if number == 1 else 's'}"
