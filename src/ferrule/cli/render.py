"""Render a conversation as plain text.

The answer goes to standard output, and the progress to standard error. The work ends when the output has no reader
any more.
"""

import os
import shutil
import sys
import unicodedata
from typing import TextIO

from ferrule.agent import (
    AgentEvent,
    Began,
    Called,
    ChildBegan,
    ChildEnded,
    Compacted,
    Ended,
    FellBack,
    Retrying,
    Spent,
    Spoke,
    TurnEnded,
    Warned,
)
from ferrule.cli.show import WHY, paint, plain
from ferrule.cli.talk.events import find_new_errors, parse_checks
from ferrule.core.call import Done, Prepared, Reply, Reported
from ferrule.output import clean

_WIDTH = 120
_NAME = 40
_MARKS = {"done": ("✓", "green"), "rejected-by-user": ("⊘", "yellow"), "cancelled": ("■", "yellow")}
_FAILED = ("✗", "red")


class TranscriptPrinter:
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
        self._model = ""
        self._mid_line = False
        self._after_work = False
        """Was the last line one about the work? An answer stands apart from it."""
        self._about: dict[tuple[str, str], str] = {}
        self._children: dict[str, _SubagentLabel] = {}

    def put(self, event: AgentEvent) -> None:
        self._main = self._main or event.thread
        is_main = event.thread == self._main
        match event:
            case Began() if is_main:
                self._cwd, self._model = event.cwd, event.model
            case Spoke() if is_main and self._live:
                self._speak(event.text)
            case TurnEnded() if is_main:
                self._new_line()
            case Called():
                self._on_call(event)
            case Ended() if is_main:
                self._on_end(event)
            case _:
                self._aside(event)

    def _aside(self, event: AgentEvent) -> None:
        """What is no answer and no call."""
        match event:
            case Retrying():
                # A pipe hears of it too: otherwise nothing tells a long wait from a program that hangs.
                self._line(self._paint(f"{self._inside(event.thread)}… {again(event)}", "dim"))
                self._after_work = True
            case ChildBegan():
                self._on_child_begin(event)
            case ChildEnded():
                self._on_child_end(event)
            case Compacted():
                said = "Old outputs were left out" if event.kind == "outputs" else "The conversation was summed up"
                tokens = f"{event.before_tokens:,} → {event.after_tokens:,} tokens"
                self._dim(f"{self._inside(event.thread)}… {said}: {tokens}.")
            case Warned() | FellBack():
                self._warn(event.sentence)
            case _:
                pass

    def _speak(self, words: str) -> None:
        text = clean(words)
        if not text:
            return
        if self._after_work:
            self._line("")
            self._after_work = False
        self._out.write(text)
        self._out.flush()
        self._mid_line = not text.endswith("\n")

    def _on_call(self, event: Called) -> None:
        call = event.call
        match call:
            case Prepared():
                self._about[event.thread, call.id] = self._short(_about(call))
            case Done():
                self._print_reply(call.reply, self._about.pop((event.thread, call.id), ""), self._inside(event.thread))
            case Reported():
                self._warn(call.sentence)
            case _:
                pass

    def _print_reply(self, reply: Reply, about: str, inside: str) -> None:
        checks = parse_checks(reply)
        ok = checks is None or checks.ok
        mark, colour = _MARKS.get(reply.status, _FAILED) if ok else _FAILED
        about = about if checks is None else checks.words
        name = cut(_first(reply.name), _NAME)
        elapsed = reply.ended - reply.started if reply.started else 0.0  # some were never begun
        took = f"  {seconds(elapsed)}" if elapsed >= 0.1 else ""
        room = max(20, self._width() - len(inside) - len(name) - len(took) - 4)
        why = "" if reply.ok else self._short(_first(plain(reply)))
        if why:
            # Of the two, why it failed matters more.
            why = cut(why, max(room // 2, room - width(about) - 2))
            about = cut(about, max(10, room - width(why) - 2))
            why = f": {why}" if about else f" {why}"
        about = cut(about, room)
        line = f"{inside}{self._paint(mark, colour)} {self._paint(name, 'cyan')}{' ' * bool(about)}{about}"
        self._work(f"{line}{why}{self._paint(took, 'dim')}")
        if reply.changes is not None and reply.changes.files:
            self._work(f"{inside}  {self._paint(str(reply.changes), 'dim')}")
        for row in find_new_errors(reply):
            self._work(f"{inside}  {self._paint(cut(row, self._width() - len(inside) - 2), 'red')}")

    def _on_child_begin(self, event: ChildBegan) -> None:
        inside = self._inside(event.thread)
        said = self._short(_first(event.description)) or "…"
        self._children[event.child] = _SubagentLabel(inside, said if said != "…" else event.name)
        for child in self._children.values() if len(self._children) > 1 else ():
            child.is_one_of_many = True
        model = f" ({event.model})" if event.model != self._model else ""
        self._dim(cut(f"{inside}┌ {event.name}: {said}{model}", self._width()))

    def _on_child_end(self, event: ChildEnded) -> None:
        child = self._children.pop(event.child, None)
        if child is not None:
            how = "" if event.reason == "end" else f", {_STOPPED.get(event.reason, event.reason)}"
            self._dim(cut(f"{child.inside}└ {child.said}: {describe_spent(event.spent)}{how}", self._width()))

    def _inside(self, thread: str) -> str:
        """What stands before a line of this conversation: a bar for every subagent that it is inside of."""
        child = self._children.get(thread)
        if child is None:
            return "  "
        # Where several work at once, every line says whose it is.
        label = f"{cut(child.said, 24)}: " if child.is_one_of_many else ""
        return f"{child.inside}│ {label}"

    def _on_end(self, event: Ended) -> None:
        self._new_line()
        if not self._live and event.text.strip():
            self._out.write(clean(event.text).rstrip("\n") + "\n")
            self._out.flush()
        if event.error:
            self._line(f"ferrule: {clean(event.error)}")
        elif event.reason in WHY:
            self._line(f"ferrule: {WHY[event.reason]}")
        elif not event.text.strip():
            self._warn("The model ended without a word.")
        if self._works:
            self._line("")
            thread = event.thread.split("-", 2)
            self._line(self._paint(f"{describe_spent(event.spent)}, thread {'-'.join(thread[:2])}", "dim"))

    def _short(self, text: str) -> str:
        """On one line, and without what every path here begins with."""
        line = " ".join(clean(text).split())
        if self._cwd:
            line = line.replace(f"{self._cwd}{os.sep}", "")
        return line.replace(sys.executable, "python")

    def _width(self) -> int:
        return shutil.get_terminal_size((_WIDTH, 24)).columns if self._err.isatty() else _WIDTH

    def _paint(self, text: str, colour: str) -> str:
        return paint(text, colour, self._err) if text else ""

    def _new_line(self) -> None:
        if self._mid_line:
            self._out.write("\n")
            self._out.flush()
            self._mid_line = False

    def _dim(self, line: str) -> None:
        self._work(self._paint(line, "dim"))

    def _work(self, line: str) -> None:
        if self._works:
            self._line(line)
            self._after_work = True

    def _warn(self, sentence: str) -> None:
        self._line(self._paint("warning: ", "yellow") + clean(sentence))
        self._after_work = True

    def _line(self, line: str) -> None:
        self._new_line()
        print(line, file=self._err, flush=True)


class _SubagentLabel:
    """A subagent at work: what stands before its first line, and what it is about."""

    def __init__(self, inside: str, said: str) -> None:
        self.inside = inside
        self.said = said
        self.is_one_of_many = False


_STOPPED = {
    "turns": "out of turns",
    "tokens": "out of tokens",
    "cost": "out of money",
    "time": "out of time",
    "loop": "stopped in a loop",
    "length": "cut off",
    "error": "failed",
    "hook": "stopped by a hook",
    "stopped": "ended by a hook",
}


def describe_spent(of: Spent) -> str:
    """What something took, in a few words."""
    tokens = of.usage.input + of.usage.output
    cost = f", ${of.cost:.4f}" if of.cost is not None else ""
    return f"{of.turns} answer{'s' * (of.turns != 1)}, {tokens:,} tokens{cost}, {seconds(of.seconds)}"


def again(event: Retrying) -> str:
    """Why a model is asked again, and when."""
    why = _first(event.why).removesuffix(".")
    when = f" in {event.seconds:.0f} s" if event.seconds >= 1 else ""
    return f"{why[:1].upper()}{why[1:]}. Asked again{when}."


def seconds(took: float) -> str:
    minutes, rest = divmod(round(took), 60)
    return f"{minutes} min {rest:02} s" if took >= 60 else f"{took:.1f} s"


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, room: int) -> str:
    """As much of a text as has room, with a mark where it was cut."""
    if width(text) <= room:
        return text
    kept, taken = [], 1
    for character in text:
        taken += _columns(character)
        if taken > room:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def _columns(character: str) -> int:

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _about(call: Prepared) -> str:
    """What a call is about, in a few words."""
    for key in ("command", "path", "url", "pattern", "description", "query", "prompt", "task"):
        value = call.arguments.get(key)
        if isinstance(value, str) and value:
            return value
    return next((value for value in call.arguments.values() if isinstance(value, str)), "")


def _first(text: str) -> str:
    """Its first line with something on it."""
    return next((line.strip() for line in clean(text).split("\n") if line.strip()), "")
