"""Turn events into the rows that the chat shows: calls, helpers, output, todos and endings.

The state of the machine is the live part of the screen; finished events are printed. The output of a command is
shown by its end, and a failure also by the lines that tell its reason. Todos stay in sight while the agent works.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from ferrule import agent
from ferrule.agent import Ended
from ferrule.cli.talk.markdown import Blocks
from ferrule.cli.talk.text import BLANK, Line, UnbrokenLine, diff_lines, diff_sign, line, sentence
from ferrule.core import call as calls
from ferrule.core.call import Done, FileEdit, Reply, TodoItem
from ferrule.core.content import Image
from ferrule.core.tool import Previewed
from ferrule.files.diff import diff
from ferrule.permissions.question import rows
from ferrule.system.highlights import weight

_COMMANDS = ("command", "cmd")
_ABOUT = (
    *_COMMANDS, "subject", "path", "file_path", "paths", "pattern", "query", "url", "skill", "description", "name",
    "prompt", "task", "id", "task_id",
)  # fmt: skip
"""What says most about a call, by the names of its arguments, the best first.

What the model says of a call comes after what the call does: a description may be wrong, or a lie.
"""
_SHOWN_WHOLE = frozenset({"plan"})
"""Arguments that the user has read as the question; their beginning, as a row, would say nothing."""
_STOPPED = {"cancelled": "interrupted", "rejected-by-user": "not allowed"}
_REFUSED_UNASKED = frozenset({"denied-by-rule", "not-in-mode", "ask-failed"})
"""Nobody was asked, or not only: the user has not seen yet why it was not allowed."""
_MOST_CHARS = 300
_BREAK = " ↵ "
"""Between the lines of a command, which would be another one if they stood in one line."""
_CHECKS = re.compile(r"\d+ checks? in [\d.]+ s: ([^\n]*)\.")
_WRONG = re.compile(r"\d (failed|stopped|missing)")
_EXIT = r"<exit_code>(-?\d+)</exit_code>|\bexit(?:ed with)? (?:code|status):? (-?\d+)"


class Outcome(NamedTuple):
    """How a call went."""

    ok: bool
    words: str


def about(values: Mapping[str, Any], cwd: str) -> str:
    """The argument that says most; paths in the workspace without the way to it."""
    if not _is_command(values) and isinstance(values.get("pattern"), str):
        where = values.get("path") or values.get("directory")
        inside = f" in {_near(where, cwd)}" if isinstance(where, str) and _near(where, cwd) not in {"", "."} else ""
        return _short(f'"{values["pattern"]}"{inside}')
    chosen = next((values[name] for name in _ABOUT if values.get(name)), None)
    if chosen is None:
        texts = (value for name, value in values.items() if name not in _SHOWN_WHOLE)
        chosen = next((value for value in texts if isinstance(value, str) and value), "")
    if isinstance(chosen, list | tuple):
        return _short(", ".join(_near(str(one), cwd) for one in chosen[:3]) + (", …" if len(chosen) > 3 else ""))
    if _is_command(values):
        chosen = _BREAK.join(filter(None, map(str.strip, str(chosen).split("\n"))))
    return _short(_near(str(chosen), cwd))


def describe_command(values: Mapping[str, Any]) -> str:
    """What the model says that a command is for."""
    said = values.get("description")
    return _short(said) if isinstance(said, str) and _is_command(values) else ""


def _is_command(values: Mapping[str, Any]) -> bool:
    return any(values.get(name) for name in _COMMANDS)


def _near(path: str, cwd: str) -> str:
    if cwd and path.startswith(cwd.rstrip("/") + "/"):
        return path[len(cwd.rstrip("/")) + 1 :]
    return "." if cwd and path == cwd else path


def _short(text: str) -> str:
    words = " ".join(text[: 4 * _MOST_CHARS].split())
    return words if len(words) <= _MOST_CHARS else words[: _MOST_CHARS - 1] + "…"


@cache
def _exit() -> re.Pattern[str]:
    return re.compile(_EXIT, re.IGNORECASE)


def outcome(reply: Reply, exit_code: int | None = None) -> Outcome:
    """How it went; a command is told by its exit code, a failure by all that it says: its end is the advice."""
    if reply.status in _STOPPED and (reply.error is None or reply.error.error_code not in _REFUSED_UNASKED):
        return Outcome(False, _STOPPED[reply.status])
    if exit_code is not None and reply.status in {"done", "error"} and parse_checks(reply) is None:
        return Outcome(exit_code == 0, f"exit {exit_code}")
    if reply.error is not None:
        return Outcome(False, reply.error.message.strip())
    result = reply.result
    if isinstance(result, Mapping):
        return _of_object(result)
    if isinstance(result, list):
        return Outcome(True, _count(len(result), "part"))
    text = result if isinstance(result, str) else ""
    if (checks := parse_checks(reply)) is not None:
        return checks
    # The end of a long output says how it went; the search must not walk through all of it.
    found = _exit().findall(text[-600:] if len(text) > 1200 else text)
    code = "".join(found[-1]) if found else "0"
    if code != "0":
        return Outcome(False, f"exit {code}")
    rows = text.strip().count("\n") + 1 if text.strip() else 0
    if reply.lines is not None and (rows > 1 or not reply.lines):  # of a command
        return Outcome(True, _count(reply.lines, "line") if reply.lines else "")
    if rows == 1 and len(text.strip()) <= 60 and not found and reply.found != (1, "line"):
        return Outcome(True, _short(text))
    return Outcome(True, _count(*(reply.found or (rows, "line"))) if rows else "")


def left_running(reply: Reply) -> str:
    """That a command goes on in the background, where it does: it is not done, however well the call went."""
    text = reply.result if reply.ok and isinstance(reply.result, str) else ""
    found = _left().search(text)
    return f"in the background, as {next(filter(None, found.groups()))}" if found else ""


@cache
def _left() -> re.Pattern[str]:
    return re.compile(
        r"(?:running in|moved to the|goes on in the) background[^.]*(?: ID:|, as task) ([\w-]+)"
        r"|^Background PIDs: .*\bwith the task_id ([\w-]+)|^Process running with (session ID \d+)$",
        re.MULTILINE,
    )


def parse_checks(reply: Reply) -> Outcome | None:
    """How the project's checks went, where it is they that were run: a call that found something wrong did its work."""
    text = reply.result if reply.ok and isinstance(reply.result, str) else ""
    found = _CHECKS.match(text)
    return None if found is None else Outcome(not _WRONG.search(found[1]), found[0].rstrip("."))


def find_new_errors(reply: Reply) -> list[str]:
    """The errors that a language server sees since the call, as rows."""
    agent = [note for note in reply.notes if note.startswith("New errors")]
    return [row for note in agent for row in note.splitlines() if row.strip()]


def _of_object(result: Mapping[str, Any]) -> Outcome:
    if isinstance(result.get("diff"), str):
        return Outcome(True, "")
    if isinstance(result.get("files"), list):
        return Outcome(True, _count(len(result["files"]) + int(result.get("remaining") or 0), "file"))
    for name in ("exitCode", "exit_code"):
        if isinstance(result.get(name), int) and result[name]:
            return Outcome(False, f"exit {result[name]}")
    return Outcome(True, "")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def render_changes(values: Mapping[str, Any], done: Done, cwd: str) -> list[str]:
    """What a call has changed, as the rows of a diff; nothing where it changed no text, or not that one can see.

    With line numbers where the files are known as they were and as they are.
    """
    reply = done.reply
    if not reply.ok or not reply.track_files:
        return []
    if done.edits and not any(edit.left_out for edit in done.edits):
        return _render_edits(done.edits, cwd)
    if isinstance(reply.result, Mapping) and isinstance(reply.result.get("diff"), str):
        rows = reply.result["diff"].rstrip("\n").split("\n")
        return [row for row in rows if not row.startswith(("diff ", "index ", "--- ", "+++ ", "```"))]
    return render_edit_input(values)


def _render_edits(edits: Sequence[FileEdit], cwd: str) -> list[str]:

    files = tuple(Previewed(edit.path, _raw(edit.old), _raw(edit.new)) for edit in edits)
    return list(rows(files, lambda path: _near(path, cwd)))


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def render_edit_input(values: Mapping[str, Any]) -> list[str]:
    """What the arguments of an edit say that shall become of a text."""
    old, new, content, patch, edits = (values.get(name) for name in ("old", "new", "content", "patch", "edits"))
    if isinstance(content, str):
        return [f"+{row}" for row in content.splitlines()]
    if isinstance(patch, str):
        return [row for row in patch.splitlines() if not row.startswith("*** ") or row[4:].startswith(_SECTIONS)]
    pairs = [(old, new)] if isinstance(old, str) and isinstance(new, str) else []
    several = edits if isinstance(edits, list | tuple) else ()
    pairs += [(str(one.get("old", "")), str(one.get("new", ""))) for one in several if isinstance(one, Mapping)]
    return [row for before, after in pairs for row in _side_by_side(before, after)]


_SECTIONS = ("Add File", "Update File", "Delete File", "Move to")


def _side_by_side(before: str, after: str) -> list[str]:
    """Only the rows that differ, with one around them: an old text often repeats much to be found."""
    rows = diff("x", before + "\n", after + "\n").split("\n")
    return [row for row in rows[3:] if row and not row.startswith("@@")]


def tally(rows: list[str]) -> str:
    """How many rows came and went, as `+3 -1`."""
    signs = list(map(diff_sign, rows))
    more, less = (signs.count(sign) for sign in "+-")
    return " ".join(([f"+{more}"] if more else []) + ([f"-{less}"] if less else []))


def tokens(number: int) -> str:
    return f"{number / 1e6:.1f}M" if number >= 1_000_000 else f"{number / 1000:.1f}k" if number >= 1000 else str(number)


def seconds(number: float) -> str:
    if number < 10:
        return f"{number:.1f}s"
    whole = int(number)
    return f"{whole}s" if whole < 60 else f"{whole // 60}m {whole % 60:02}s" if whole < 3600 else f"{whole // 3600}h"


def dollars(cost: float | None) -> str:
    return "" if cost is None else f"${cost:.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.4f}"


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

    def after(self, event: agent.AgentEvent, cwd: str) -> "ChildRow":
        """The row after one of its own events."""
        match event:
            case agent.TurnEnded():
                usage = event.spent.usage
                return msgspec.structs.replace(self, turns=event.spent.turns, used_tokens=usage.input + usage.output)
            case agent.Called(call=calls.Prepared() as call):
                words = f"{call.name} {about(call.arguments, cwd)}"
                return msgspec.structs.replace(self, doing=(*self.doing, (call.id, words)))
            case agent.Called(call=calls.Done() as call):
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


def render_queued(text: str) -> Line:
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
    head = UnbrokenLine(head) if "command" in row.input else head
    rest = [sentence(("red", f"    {row}")) for row in below[:_MOST_ADVICE_ROWS] if row.strip()]
    more_rows = len(below) - _MOST_ADVICE_ROWS
    return [
        head,
        *rest,
        *([line(("dim", f"    … {more_rows:,} more line{'s' * (more_rows > 1)}"))] if more_rows > 0 else []),
    ]


def child_done(child: ChildRow, event: agent.ChildEnded) -> Line:
    usage = event.spent.usage
    parts = [_answers(event.spent.turns), f"{tokens(usage.input + usage.output)} tokens", seconds(event.spent.seconds)]
    ok = event.reason == "end"
    head = child.name + (f" {child.description}" if child.description else "")
    why = "" if ok else f" · stopped: {event.reason}"
    return line(("green", "  └ ✓ ") if ok else ("red", "  └ ✗ "), ("", head), ("dim", f"  {' · '.join(parts)}{why}"))


def _answers(number: int) -> str:
    return f"{number} answer{'' if number == 1 else 's'}"


_LONG_SECONDS = 5.0
_REASONS = {
    "length": "The model ran out of tokens for this answer. Say “go on” to have the rest.",
    "refused": "The model's host refused to answer this. Say it in other words, or use /model for another one.",
    "turns": "The limit of turns was met (loop.turns). Say “go on” to continue.",
    "tokens": "The limit of tokens was met (loop.tokens). Say “go on” to continue.",
    "cost": "The limit of cost was met (loop.cost). Say “go on” to continue.",
    "time": "The limit of time was met (loop.seconds). Say “go on” to continue.",
    "loop": "The same call came again and again, so it was stopped. Say what it should do otherwise.",
    "hook": "A hook stopped it.",
    "stopped": "A hook ended the work.",
    "interrupted": "Interrupted. Say what to do otherwise, or “go on”.",
}


def render_end(event: Ended, took_seconds: float) -> list[Line]:
    """One dim line where something is to be said; more where it went wrong."""
    if event.reason == "error":
        rows = [
            sentence(("red", "  ✗ "), row) for row in (event.error or "Something went wrong.").strip().split("\n")[:8]
        ]
        return [
            *rows,
            sentence(("dim", "    The conversation is as it was: say it again, or use /model for another one.")),
        ]
    usage = event.spent.usage
    facts = [seconds(took_seconds), f"{tokens(usage.input)} in, {tokens(usage.output)} out", dollars(event.spent.cost)]
    if event.reason == "end":
        if took_seconds < _LONG_SECONDS:
            return []
        return [line(("dim", "  " + " · ".join(fact for fact in facts if fact)))]
    why = _REASONS.get(event.reason, f"Stopped: {event.reason}.")
    colour = "yellow" if event.reason != "interrupted" else "dim"
    more = f" ({event.error.strip()})" if event.error.strip() else ""
    return [sentence((colour, f"  {why}{more}"))]


_MOST_ROWS = 10
_MOST_FAILED_ROWS = 20
_MOST_ERRORS = 10
_ERROR = 3
_LOOKED_CHARS = 200_000
"""So much of the end of an output is looked through for errors."""
_INDENT = "    "


def render_output(output: str, *, failed: bool, lines: int | None = None, whole: str = "") -> list[Line]:
    """The last lines of an output; of a failure more of them, and before them the errors that stand above.

    `lines` is how many it has in all, where more were printed than are kept; `whole` says what shows them.
    """
    rows = [row.rstrip() for row in output[-_LOOKED_CHARS:].strip("\n").split("\n")]
    if not any(rows):
        return []
    most = _MOST_FAILED_ROWS if failed else _MOST_ROWS
    above, below = rows[:-most], rows[-most:]
    errors = [row for row in above if weight(row[:1000]) == _ERROR][-_MOST_ERRORS:] if failed else []
    blank = len(output) - len(output.lstrip("\n")) + max(0, len(output) - len(output.rstrip("\n")) - 1)
    more = max(len(rows), (lines or 0) - blank) - len(below) - len(errors)
    out: list[Line] = [_error(row) for row in errors]
    if more > 0:
        out.append(line(("dim", f"{_INDENT}… {more:,} more line{'s' * (more > 1)}{whole}")))
    shown = ((row, failed and weight(row[:1000]) == _ERROR) for row in below)
    return out + [_error(row) if is_error else line(("dim", f"{_INDENT}{row}")) for row, is_error in shown]


def _error(row: str) -> Line:
    """What went wrong often stands at the end of a long line: it is not cut off."""
    return UnbrokenLine(line(("red", f"{_INDENT}{row}")))


_TODOS_MOST_ROWS = 8
_MARKS = {"completed": "✓", "in_progress": "◼", "pending": "◻", "blocked": "◻", "cancelled": "✗"}
_STYLES = {"completed": "green", "in_progress": "bold", "cancelled": "dim"}
_ENDED = frozenset({"completed", "cancelled"})


def todo_rows(todos: Sequence[TodoItem]) -> list[Line]:
    """How many there are of each kind, and the list; nothing where all of it is done.

    Of a long list, what is done gives way to what is not.
    """
    left = [todo for todo in todos if todo.status not in _ENDED]
    if not left:
        return []
    over = [todo for todo in todos if todo.status in _ENDED]
    room = max(0, _TODOS_MOST_ROWS - len(left))
    chosen = {todo.id for todo in (*left[:_TODOS_MOST_ROWS], *(over[-room:] if room else ()))}
    rows = [_row(todo) for todo in todos if todo.id in chosen]
    more = len(todos) - len(rows)
    return [
        line(("dim", f"  {_counts(todos)}")),
        *rows,
        *([line(("dim", f"    … {more:,} more, /tasks shows all"))] if more else []),
    ]


def describe_todo(values: Mapping[str, Any], todos: Sequence[TodoItem]) -> str:
    """What a call says of one todo, such as `Write the test → completed`; nothing where it is about none."""
    number, status = values.get("todo_id"), values.get("status")
    if not isinstance(number, str):
        return ""
    subject = next((todo.subject for todo in todos if todo.id == number), number)
    return f"{subject} → {status.replace('_', ' ')}" if isinstance(status, str) else subject


def _row(todo: TodoItem) -> Line:
    words = todo.active_form if todo.status == "in_progress" and todo.active_form else todo.subject
    about = [todo.owner] if todo.owner else []
    about += ["blocked"] if todo.status == "blocked" else []
    style = _STYLES.get(todo.status, "")
    return line((style, f"  {_MARKS[todo.status]} {words}"), ("dim", f"  ({', '.join(about)})" if about else ""))


def _counts(todos: Sequence[TodoItem]) -> str:
    done, doing, cancelled = (
        sum(todo.status == status for todo in todos) for status in ("completed", "in_progress", "cancelled")
    )
    parts = [f"{done} done", f"{doing} in progress", f"{len(todos) - done - doing - cancelled} open"]
    parts += [f"{cancelled} cancelled"] if cancelled else []
    return f"{len(todos)} todo{'s' * (len(todos) != 1)} ({', '.join(parts)})"


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


class TerminalPicture(NamedTuple):
    """A picture that a call has read, for terminals that can show it."""

    image: Image


class FullOutput(NamedTuple):
    """All that a call came to."""

    head: str
    text: str
    output_id: str | None
    """Where the engine keeps more than the text."""


Piece = Line | Prose | TerminalPicture
"""Something for the scrollback: a line, a block, or a picture."""


class ChatTranscript:
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
        self._wholes: deque[FullOutput] = deque(maxlen=_MOST_WHOLES)
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
    def open_block(self) -> str:
        """The block that the model is writing."""
        return self._blocks.open_block

    @property
    def is_running(self) -> bool:
        return self._since is not None

    @property
    def wholes(self) -> list[FullOutput]:
        """All that the last calls came to, the newest first; of what prints just now, what it has printed last."""
        running = [row for row in self._calls.values() if row.rows]
        so_far = [FullOutput(f"{_head(row)}\n\n{_RUNS}", "\n".join(row.rows), None) for row in reversed(running)]
        return [*so_far, *self._wholes]

    def mark_seen(self, call_id: str) -> None:
        """The user was shown what this call would change."""
        self._shown.add(call_id)

    def mark_asked(self, call_id: str, is_asked: bool) -> None:  # noqa: FBT001 - as `InPerson` tells it
        """A question about the call waits for the user, or is answered."""
        for key, row in self._calls.items():
            if key[1] == call_id:
                self._calls[key] = msgspec.structs.replace(row, is_asked=is_asked)

    def feed(self, event: agent.AgentEvent) -> list[Piece]:
        """What is to be printed now."""
        if isinstance(event, agent.Began) and self._since is None and event.thread not in self._children:
            self._main, self.cwd = event.thread, event.cwd
            self._since = self._clock()
        if event.thread != self._main and self._main:
            return self._of_child(event)
        return self._of_main(event)

    def _of_main(self, event: agent.AgentEvent) -> list[Piece]:
        if isinstance(event, agent.TurnBegan | agent.Spoke | agent.Thought | agent.Calling):
            self._waiting = ""  # it answers
        match event:
            case agent.Spoke():
                return [*self._end_thinking(), *self._add_blocks(self._blocks.feed(event.text))]
            case agent.Thought():
                if self._thinking_since is None:
                    self._thinking_since = self._clock()
                self._thought += event.text
            case agent.Calling():
                self._calls[event.thread, event.id] = CallRow(event.name, since=self._clock())
                return self._end_answer()
            case agent.TurnEnded():
                return self._end_answer()
            case agent.Called():
                return self._of_call(event.thread, event.call)
            case agent.Ended():
                return self._on_end(event)
            case _:
                return self._beside(event)
        return []

    def _beside(self, event: agent.AgentEvent) -> list[Piece]:
        """What is not the model's answer and not a call."""
        match event:
            case agent.Retrying():
                return self._on_retry(event)
            case agent.ChildBegan():
                self._begin(event)
            case agent.ChildEnded():
                return self._on_child_end(event)
            case agent.Steered():
                return self._on_steered(event)
        return self._on_notice(event)

    def _on_steered(self, event: agent.Steered) -> list[Piece]:
        if event.text not in self.queued:
            return []  # nobody typed it
        self.queued.remove(event.text)
        return [*self._end_answer(), *self._apart("user", sentence(("cyan bold", "> "), ("bold", event.text)))]

    def _on_notice(self, event: agent.AgentEvent) -> list[Piece]:
        """What is worth one dim line."""
        if isinstance(event, agent.Compacted):
            what = "summed up" if event.kind == "summary" else "made smaller (old outputs left out)"
            sizes = f"{tokens(event.before_tokens)} → {tokens(event.after_tokens)} tokens"
            return self._apart("note", line(("dim", f"  The conversation was {what}: {sizes}.")))
        if isinstance(event, agent.Warned | agent.FellBack):
            return self._apart("note", sentence(("yellow", "  ! "), ("dim", event.sentence)))
        return []

    def render_warning(self, text: str) -> list[Piece]:
        """A sentence that the user should read, and which is no event."""
        return self._apart("note", sentence(("yellow", "  ! "), ("dim", text)))

    def _on_retry(self, event: agent.Retrying) -> list[Piece]:
        self._blocks.drop()
        self._thought, self._thinking_since = "", None
        self._calls = {key: row for key, row in self._calls.items() if key[0] != event.thread or row.is_complete}
        void = " What it said above is void." if self._last == "prose" else ""
        why = event.why.rstrip(".")
        words = f"  ↻ Asking again in {seconds(event.seconds)} (try {event.attempt}): {why}.{void}"
        self._waiting = "waiting for the model"
        return self._apart("note", sentence(("dim", words)))

    def _of_child(self, event: agent.AgentEvent) -> list[Piece]:
        child = self._children.get(event.thread)
        match event:
            case agent.ChildBegan():
                self._begin(event)
            case agent.ChildEnded():
                return self._on_child_end(event)
            case agent.Called() if isinstance(event.call, calls.Reported):
                return self._of_call(event.thread, event.call)
            case agent.Warned() | agent.Compacted():
                return self._on_notice(event) if isinstance(event, agent.Warned) else []
        if child is not None:
            self._children[event.thread] = child.after(event, self.cwd)
        return []

    def _begin(self, event: agent.ChildBegan) -> None:
        self._children[event.child] = ChildRow(
            event.name, event.description, event.thread, event.call_id, since=self._clock()
        )

    def _on_child_end(self, event: agent.ChildEnded) -> list[Piece]:
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
                    described=describe_command(event.arguments),
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
                return self._on_call_end(row, event)
        self._calls[key] = row
        return self._end_answer()

    def _on_call_end(self, row: CallRow, event: calls.Done) -> list[Piece]:
        row = msgspec.structs.replace(row, about=describe_todo(row.input, self._todos) or row.about)
        diff = render_changes(row.input, event, self.cwd)
        # Of a command that was stopped, what was seen of it does not go away.
        output = event.output or ("\n".join(row.rows) if event.exit_code is None and not event.reply.ok else "")
        whole = FullOutput(_head(row), "\n".join(diff) or output or event.reply.text, event.reply.output_id)
        self._wholes.appendleft(whole)
        out = self._apart("tool", *call_done(row, event, tally(diff)))
        out += [line("  ", *child) for child in row.children]
        out += render_output(
            output, failed=bool(event.exit_code), lines=event.reply.lines, whole=_EXPAND * self.expands
        )
        out += [line(("red", f"    {each}")) for each in find_new_errors(event.reply)]
        out += [TerminalPicture(part) for part in event.reply.content if isinstance(part, Image)]
        if event.id in self._shown:
            self._shown.discard(event.id)
            return out
        out += diff_lines(diff[:_MOST_DIFF_ROWS])
        more = len(diff) - _MOST_DIFF_ROWS
        if more > 0:
            out.append(line(("dim", f"    … {more:,} more line{'s' * (more > 1)}, /diff shows all")))
        return out

    def _add_blocks(self, blocks: list[str]) -> list[Piece]:
        out: list[Piece] = []
        for block in blocks:
            out += [BLANK, Prose(block)] if self._last != "blank" else [Prose(block)]
            self._last = "prose"
        return out

    def _end_thinking(self) -> list[Piece]:
        if self._thinking_since is None:
            return []
        took, text = self._clock() - self._thinking_since, self._thought.strip()
        self._thought, self._thinking_since = "", None
        if not text:
            return []
        if self.whole_thinking:
            return [*([BLANK] if self._last != "blank" else []), *self._mark_last("prose", Prose(text, dim=True))]
        first = next(row for row in text.split("\n") if row.strip()).strip(" *#").replace("**", "")
        return self._apart("note", line(("dim", f"  ✻ Thought for {seconds(took)}: {first}")))

    def _end_answer(self) -> list[Piece]:
        """The answer is over, or goes on with calls: nothing of it stays unfinished."""
        return [*self._end_thinking(), *self._add_blocks(self._blocks.end())]

    def _on_end(self, event: agent.Ended) -> list[Piece]:
        out = self._end_answer()
        for row in self._calls.values():
            out += self._apart("tool", line(("red", "  ✗ "), ("bold", row.name), f" {row.about}", ("dim", "  stopped")))
        took = self._clock() - (self._since if self._since is not None else self._clock())
        # Helpers in the background go on; the calls that left them there are over.
        self._children = {
            name: child for name, child in self._children.items() if (child.parent, child.call_id) not in self._calls
        }
        self._calls, self._since, self._waiting = {}, None, ""
        out += [piece for one in render_end(event, took) for piece in self._apart("end", one)]
        self._last = "prose" if out or self._last != "blank" else "blank"
        return out

    def _apart(self, kind: str, *pieces: Piece) -> list[Piece]:
        """Lines of one kind stand together; a blank row parts them from others."""
        parted = self._last not in {"blank", kind} and {self._last, kind} != {"tool", "note"}
        out = [BLANK, *pieces] if parted else list(pieces)
        self._last = kind
        return out

    def _mark_last(self, kind: str, *pieces: Piece) -> list[Piece]:
        self._last = kind
        return list(pieces)

    @property
    def is_after_tools(self) -> bool:
        """Was the last that was printed a call, so that those that run belong below it?"""
        return self._last in {"tool", "blank"} and not self.open_block

    def mark_printed(self, kind: str = "blank") -> None:
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
            what = self._waiting or ("working" if self._calls else "thinking" if not self.open_block else "writing")
            rows.append(busy(what, now - self._since, now))
        return [*rows, *map(render_queued, self.queued)]


def _head(row: CallRow) -> str:
    """The call with its whole command."""
    command = row.input.get("command")
    return f"{row.name} {command if isinstance(command, str) else row.about}"
