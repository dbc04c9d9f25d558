"""From events to what is shown: a machine whose state is the live part, and which prints what is over."""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ferrule.agent import events as told
from ferrule.cli.talk.blocks import Blocks
from ferrule.cli.talk.endings import ended
from ferrule.cli.talk.line import BLANK, Line, diff_lines, line, sentence
from ferrule.cli.talk.printed import printed_rows
from ferrule.cli.talk.rows import CallRow, ChildRow, busy, call_done, child_done, live_call, live_rows, queued
from ferrule.cli.talk.todos import changed_todo, todo_rows
from ferrule.cli.talk.words import about, changed, described, noticed, seconds, tally, tokens
from ferrule.core import events as calls
from ferrule.core.content import Image

_MOST_DIFF_ROWS = 20
_MOST_LIVE_CALLS = 8
_MOST_LIVE_ROWS = 10
"""Of what running calls have printed, together."""
_MOST_WHOLES = 20
_RUNS = "It still runs. The last that it has printed:"
_EXPAND = ", ctrl-O shows all"


class Prose(NamedTuple):
    """A block of the model's Markdown."""

    source: str
    dim: bool = False


class Picture(NamedTuple):
    """A picture that a call has read, for terminals that can show it."""

    image: Image


class Whole(NamedTuple):
    """All that a call came to."""

    head: str
    text: str
    output_id: str | None
    """Where the engine keeps more than the text."""


Piece = Line | Prose | Picture
"""Something for the scrollback: a line, a block, or a picture."""


class Lines:
    """Everything that is shown of one conversation. `feed` gives back what is to be printed, in its order."""

    def __init__(self, clock: Callable[[], float], *, whole_thinking: bool = False) -> None:
        self._clock = clock
        self.whole_thinking = whole_thinking
        self.queued: list[str] = []
        """What the user wrote that has not reached the model."""
        self._blocks = Blocks()
        self._thought = ""
        self._thinking_since: float | None = None
        self._calls: dict[tuple[str, str], CallRow] = {}
        self._children: dict[str, ChildRow] = {}
        self._shown: set[str] = set()
        """Calls whose changes the user has seen in a question."""
        self._wholes: deque[Whole] = deque(maxlen=_MOST_WHOLES)
        self.expands = True
        """Is there a key that shows them?"""
        self._todos: tuple[calls.TodoItem, ...] = ()
        self._main = ""
        self.cwd = ""
        """Where the session is: paths in it are shown without the way to it."""
        self._since: float | None = None
        self._waiting = ""
        self._last = "blank"

    @property
    def unfinished(self) -> str:
        """The block that the model is writing."""
        return self._blocks.unfinished

    @property
    def is_running(self) -> bool:
        return self._since is not None

    @property
    def wholes(self) -> list[Whole]:
        """All that the last calls came to, the newest first; of what prints just now, what it has printed last."""
        running = [row for row in self._calls.values() if row.rows]
        so_far = [Whole(f"{_head(row)}\n\n{_RUNS}", "\n".join(row.rows), None) for row in reversed(running)]
        return [*so_far, *self._wholes]

    def seen(self, call_id: str) -> None:
        """The user was shown what this call would change."""
        self._shown.add(call_id)

    def asked(self, call_id: str, is_asked: bool) -> None:  # noqa: FBT001 - as `InPerson` tells it
        """A question about the call waits for the user, or is answered."""
        for key, row in self._calls.items():
            if key[1] == call_id:
                self._calls[key] = msgspec.structs.replace(row, is_asked=is_asked)

    def feed(self, event: told.AgentEvent) -> list[Piece]:
        """What is to be printed now."""
        if isinstance(event, told.Began) and self._since is None and event.thread not in self._children:
            self._main, self.cwd = event.thread, event.cwd
            self._since = self._clock()
        if event.thread != self._main and self._main:
            return self._of_child(event)
        return self._of_main(event)

    def _of_main(self, event: told.AgentEvent) -> list[Piece]:
        if isinstance(event, told.TurnBegan | told.Spoke | told.Thought | told.Calling):
            self._waiting = ""  # it answers
        match event:
            case told.Spoke():
                return [*self._thought_over(), *self._said(self._blocks.feed(event.text))]
            case told.Thought():
                if self._thinking_since is None:
                    self._thinking_since = self._clock()
                self._thought += event.text
            case told.Calling():
                self._calls[event.thread, event.id] = CallRow(event.name, since=self._clock())
                return self._spoken()
            case told.TurnEnded():
                return self._spoken()
            case told.Called():
                return self._of_call(event.thread, event.call)
            case told.Ended():
                return self._ended(event)
            case _:
                return self._beside(event)
        return []

    def _beside(self, event: told.AgentEvent) -> list[Piece]:
        """What is not the model's answer and not a call."""
        match event:
            case told.Retrying():
                return self._retrying(event)
            case told.ChildBegan():
                self._begin(event)
            case told.ChildEnded():
                return self._child_ended(event)
            case told.Steered():
                return self._steered(event)
        return self._noticed(event)

    def _steered(self, event: told.Steered) -> list[Piece]:
        if event.text not in self.queued:
            return []  # nobody typed it
        self.queued.remove(event.text)
        return [*self._spoken(), *self._apart("user", sentence(("cyan bold", "> "), ("bold", event.text)))]

    def _noticed(self, event: told.AgentEvent) -> list[Piece]:
        """What is worth one dim line."""
        if isinstance(event, told.Compacted):
            what = "summed up" if event.kind == "summary" else "made smaller (old outputs left out)"
            sizes = f"{tokens(event.before_tokens)} → {tokens(event.after_tokens)} tokens"
            return self._apart("note", line(("dim", f"  The conversation was {what}: {sizes}.")))
        if isinstance(event, told.Warned | told.FellBack):
            return self._apart("note", sentence(("yellow", "  ! "), ("dim", event.sentence)))
        return []

    def warned(self, text: str) -> list[Piece]:
        """A sentence that the user should read, and which is no event."""
        return self._apart("note", sentence(("yellow", "  ! "), ("dim", text)))

    def _retrying(self, event: told.Retrying) -> list[Piece]:
        self._blocks.drop()
        self._thought, self._thinking_since = "", None
        self._calls = {key: row for key, row in self._calls.items() if key[0] != event.thread or row.is_complete}
        void = " What it said above is void." if self._last == "prose" else ""
        why = event.why.rstrip(".")
        words = f"  ↻ Asking again in {seconds(event.seconds)} (try {event.attempt}): {why}.{void}"
        self._waiting = "waiting for the model"
        return self._apart("note", sentence(("dim", words)))

    def _of_child(self, event: told.AgentEvent) -> list[Piece]:
        child = self._children.get(event.thread)
        match event:
            case told.ChildBegan():
                self._begin(event)
            case told.ChildEnded():
                return self._child_ended(event)
            case told.Called() if isinstance(event.call, calls.Reported):
                return self._of_call(event.thread, event.call)
            case told.Warned() | told.Compacted():
                return self._noticed(event) if isinstance(event, told.Warned) else []
        if child is not None:
            self._children[event.thread] = child.after(event, self.cwd)
        return []

    def _begin(self, event: told.ChildBegan) -> None:
        self._children[event.child] = ChildRow(
            event.name, event.description, event.thread, event.call_id, since=self._clock()
        )

    def _child_ended(self, event: told.ChildEnded) -> list[Piece]:
        child = self._children.pop(event.child, None)
        if child is None:
            return []
        row = self._calls.get((child.parent, child.call_id))
        if row is not None:
            done = (*row.children, child_done(child, event))
            self._calls[child.parent, child.call_id] = msgspec.structs.replace(row, children=done)
            return []
        # It was left in the background, and the call that asked for it is long over.
        return self._apart("tool", child_done(child, event)) if child.parent == self._main else []

    def _of_call(self, thread: str, event: calls.Event) -> list[Piece]:
        key = thread, event.id
        if isinstance(event, calls.Reported):
            return self._apart("note", sentence(("yellow", "  ! "), ("dim", event.sentence)))
        if isinstance(event, calls.TodosChanged):
            self._todos = event.todos
        if isinstance(event, calls.ToolsChanged | calls.TodosChanged | calls.HookRun):
            return []  # these are about no call: nothing would ever end their row
        row = self._calls.get(key) or CallRow(event.name, since=self._clock())
        match event:
            case calls.Prepared():
                row = msgspec.structs.replace(
                    row,
                    about=about(event.arguments, self.cwd),
                    described=described(event.arguments),
                    input=event.arguments,
                    is_complete=True,
                )
            case calls.Blocked():
                row = msgspec.structs.replace(row, is_asked=True)
            case calls.Started():
                row = msgspec.structs.replace(
                    row, since=self._clock(), note="", rows=(), is_asked=False, is_complete=True
                )
            case calls.Progress():
                row = msgspec.structs.replace(row, note="" if event.rows else event.message, rows=event.rows)
            case calls.Done():
                self._calls.pop(key, None)
                refused = event.reply.error.absolute_path if event.reply.error is not None else None
                if not row.about and refused:  # it was refused before it was understood; the file is known all the same
                    row = msgspec.structs.replace(row, about=about({"path": refused}, self.cwd))
                return self._call_ended(row, event)
        self._calls[key] = row
        return self._spoken()

    def _call_ended(self, row: CallRow, event: calls.Done) -> list[Piece]:
        row = msgspec.structs.replace(row, about=changed_todo(row.input, self._todos) or row.about)
        diff = changed(row.input, event, self.cwd)
        # Of a command that was stopped, what was seen of it does not go away.
        output = event.output or ("\n".join(row.rows) if event.exit_code is None and not event.reply.ok else "")
        whole = Whole(_head(row), "\n".join(diff) or output or event.reply.text, event.reply.output_id)
        self._wholes.appendleft(whole)
        out = self._apart("tool", *call_done(row, event, tally(diff)))
        out += [line("  ", *child) for child in row.children]
        out += printed_rows(output, failed=bool(event.exit_code), lines=event.reply.lines, whole=_EXPAND * self.expands)
        out += [line(("red", f"    {each}")) for each in noticed(event.reply)]
        out += [Picture(part) for part in event.reply.content if isinstance(part, Image)]
        if event.id in self._shown:
            self._shown.discard(event.id)
            return out
        out += diff_lines(diff[:_MOST_DIFF_ROWS])
        more = len(diff) - _MOST_DIFF_ROWS
        if more > 0:
            out.append(line(("dim", f"    … {more:,} more line{'s' * (more > 1)}, /diff shows all")))
        return out

    def _said(self, blocks: list[str]) -> list[Piece]:
        out: list[Piece] = []
        for block in blocks:
            out += [BLANK, Prose(block)] if self._last != "blank" else [Prose(block)]
            self._last = "prose"
        return out

    def _thought_over(self) -> list[Piece]:
        if self._thinking_since is None:
            return []
        took, text = self._clock() - self._thinking_since, self._thought.strip()
        self._thought, self._thinking_since = "", None
        if not text:
            return []
        if self.whole_thinking:
            return [*([BLANK] if self._last != "blank" else []), *self._marked("prose", Prose(text, dim=True))]
        first = next(row for row in text.split("\n") if row.strip()).strip(" *#").replace("**", "")
        return self._apart("note", line(("dim", f"  ✻ Thought for {seconds(took)}: {first}")))

    def _spoken(self) -> list[Piece]:
        """The answer is over, or goes on with calls: nothing of it stays unfinished."""
        return [*self._thought_over(), *self._said(self._blocks.end())]

    def _ended(self, event: told.Ended) -> list[Piece]:
        out = self._spoken()
        for row in self._calls.values():
            out += self._apart("tool", line(("red", "  ✗ "), ("bold", row.name), f" {row.about}", ("dim", "  stopped")))
        took = self._clock() - (self._since if self._since is not None else self._clock())
        # Helpers in the background go on; the calls that left them there are over.
        self._children = {
            name: child for name, child in self._children.items() if (child.parent, child.call_id) not in self._calls
        }
        self._calls, self._since, self._waiting = {}, None, ""
        out += [piece for one in ended(event, took) for piece in self._apart("end", one)]
        self._last = "prose" if out or self._last != "blank" else "blank"
        return out

    def _apart(self, kind: str, *pieces: Piece) -> list[Piece]:
        """Lines of one kind stand together; a blank row parts them from others."""
        parted = self._last not in {"blank", kind} and {self._last, kind} != {"tool", "note"}
        out = [BLANK, *pieces] if parted else list(pieces)
        self._last = kind
        return out

    def _marked(self, kind: str, *pieces: Piece) -> list[Piece]:
        self._last = kind
        return list(pieces)

    @property
    def is_after_tools(self) -> bool:
        """Was the last that was printed a call, so that those that run belong below it?"""
        return self._last in {"tool", "blank"} and not self.unfinished

    def printed(self, kind: str = "blank") -> None:
        """Something else was printed, of this kind."""
        self._last = kind

    def live(self) -> list[Line]:
        """What is going on now, one line each."""
        now = self._clock()
        rows: list[Line] = []
        shown = list(self._calls.items())
        for key, row in shown[:_MOST_LIVE_CALLS]:
            children = [child for child in self._children.values() if (child.parent, child.call_id) == key]
            if not row.is_asked:  # the question is there to be seen
                rows.append(live_call(msgspec.structs.replace(row, note="") if children else row, now))
                rows += live_rows(row, max(1, _MOST_LIVE_ROWS // len(shown)))
            rows += [line("  ", *child) for child in row.children]
            rows += [child.live(now) for child in children]
        if len(shown) > _MOST_LIVE_CALLS:
            rows.append(line(("dim", f"    … and {len(shown) - _MOST_LIVE_CALLS} more")))
        alone = [child for child in self._children.values() if (child.parent, child.call_id) not in self._calls]
        rows += [child.live(now) for child in alone if child.parent == self._main]
        if self._thinking_since is not None:
            last = self._thought.strip().split("\n")[-1][-300:]
            rows.append(line(("dim", f"  ✻ {last}" if last else "  ✻ Thinking…")))
        if self._since is not None:
            rows += todo_rows(self._todos)
        if self._since is not None and not any(row.is_asked for row in self._calls.values()):
            what = self._waiting or ("working" if self._calls else "thinking" if not self.unfinished else "writing")
            rows.append(busy(what, now - self._since, now))
        return [*rows, *map(queued, self.queued)]


def _head(row: CallRow) -> str:
    """The call with its whole command."""
    command = row.input.get("command")
    return f"{row.name} {command if isinstance(command, str) else row.about}"
