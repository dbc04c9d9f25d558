"""A conversation as plain text: the answer on standard output, what is done meanwhile on standard error."""

import os
import sys
from typing import TextIO

from ferrule.agent.events import (
    AgentEvent,
    Began,
    Called,
    ChildBegan,
    ChildEnded,
    Compacted,
    Ended,
    Retrying,
    Spoke,
    TurnEnded,
    Warned,
)
from ferrule.cli.show import paint, plain
from ferrule.core.events import Done, Prepared, Reported
from ferrule.output.clean import clean

_WIDTH = 100
_WHY = {
    "length": "The answer was cut off: it was too long. Say `continue` with --continue.",
    "refused": "The model refused to answer.",
    "turns": "Stopped: all turns are used. Go on with --continue.",
    "tokens": "Stopped: all tokens are used. Go on with --continue.",
    "cost": "Stopped: the money is used. Go on with --continue.",
    "time": "Stopped: the time is up. Go on with --continue.",
    "loop": "Stopped: the model made the same call again and again.",
    "interrupted": "Interrupted. Go on with --continue.",
}


class Told:
    """Shows events. A terminal sees the answer as it comes; a pipe gets the last message, and nothing else."""

    def __init__(
        self, *, is_live: bool, shows_work: bool, out: TextIO | None = None, err: TextIO | None = None
    ) -> None:
        self._live = is_live
        self._works = shows_work
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._main = ""
        self._cwd = ""
        self._mid_line = False
        self._about: dict[str, str] = {}
        self._children: dict[str, str] = {}

    def put(self, event: AgentEvent) -> None:
        self._main = self._main or event.thread
        is_main = event.thread == self._main
        match event:
            case Began() if is_main:
                self._cwd = event.cwd
            case Spoke() if is_main and self._live:
                text = clean(event.text)
                self._out.write(text)
                self._out.flush()
                self._mid_line = not text.endswith("\n")
            case TurnEnded() if is_main:
                self._new_line()
            case Called():
                self._called(event)
            case Retrying():
                self._say(f"… {event.why} Asked again in {event.seconds:.0f} s.", dim=True)
            case ChildBegan():
                self._children[event.child] = event.name
                self._say(f"  ┌ {event.name}: {event.description or '…'} ({event.model})", dim=True)
            case ChildEnded():
                tokens = event.spent.usage.input + event.spent.usage.output
                self._say(
                    f"  └ {self._children.get(event.child, '')}: {event.spent.turns} turns, {tokens:,} tokens", dim=True
                )
            case Compacted():
                said = "Old outputs were left out" if event.kind == "outputs" else "The conversation was summed up"
                self._say(f"{said}: {event.before_tokens:,} → {event.after_tokens:,} tokens.", dim=True)
            case Warned():
                self._loud(f"warning: {clean(event.sentence)}")
            case Ended() if is_main:
                self._ended(event)
            case _:
                pass

    def _called(self, event: Called) -> None:
        call = event.call
        inner = "  │ " if event.thread != self._main else "  "
        match call:
            case Prepared():
                self._about[call.id] = (
                    _about(call).replace(f"{self._cwd}{os.sep}", "").replace(sys.executable, "python")
                )
            case Done():
                reply = call.reply
                mark = paint("✓", "green") if reply.ok else paint("✗", "red")
                about = self._about.pop(call.id, "")
                took = f" {reply.ended - reply.started:.1f} s" if reply.started else ""
                why = "" if reply.ok else f": {_short(plain(reply))}"
                self._say(f"{inner}{mark} {paint(reply.name, 'cyan')} {about}{paint(took, 'dim')}{why}")
            case Reported():
                self._loud(f"warning: {clean(call.sentence)}")
            case _:
                pass

    def _ended(self, event: Ended) -> None:
        self._new_line()
        if not self._live and event.text:
            self._out.write(clean(event.text).rstrip("\n") + "\n")
            self._out.flush()
        if event.error:
            self._loud(f"ferrule: {clean(event.error)}")
        elif event.reason in _WHY:
            self._loud(f"ferrule: {_WHY[event.reason]}")
        spent = event.spent
        cost = f", ${spent.cost:.4f}" if spent.cost is not None else ""
        tokens = spent.usage.input + spent.usage.output
        self._say(
            f"{spent.turns} turns, {tokens:,} tokens{cost}, {spent.seconds:.1f} s, thread {event.thread}", dim=True
        )

    def _new_line(self) -> None:
        if self._mid_line:
            self._out.write("\n")
            self._out.flush()
            self._mid_line = False

    def _say(self, line: str, *, dim: bool = False) -> None:
        if self._works:
            self._loud(paint(line, "dim") if dim else line)

    def _loud(self, line: str) -> None:
        self._new_line()
        print(line, file=self._err, flush=True)


def _about(call: Prepared) -> str:
    """What a call is about, in a few words."""
    for key in ("command", "path", "pattern", "description", "query", "prompt", "task"):
        value = call.input.get(key)
        if isinstance(value, str) and value:
            return _short(value)
    return _short(next((value for value in call.input.values() if isinstance(value, str)), ""))


def _short(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"
