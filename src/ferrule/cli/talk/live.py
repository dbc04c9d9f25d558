"""Draw the live rows above the input, and show the end of a resumed conversation.

The live rows are the block that is being written, and a row for each thing that runs.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ferrule.agent.compaction import SUMMED_UP
from ferrule.agent.conversation import STOPPED_BEFORE
from ferrule.cli.talk.events import ChatTranscript, Piece, Prose, about, busy, render_queued
from ferrule.cli.talk.own_commands import OUTSIDE, RAN
from ferrule.cli.talk.text import BLANK, fit_line, line, paint_lines, sentence
from ferrule.cli.talk.theme import Theme
from ferrule.core.content import Document, Image, Text
from ferrule.flow import CHANGED_COMMAND
from ferrule.wire.turn import Part, Result, Turn, Use

MOST_COLUMNS = 110
"""Prose in longer lines is hard to read."""
_FIXED_ROWS = 7
"""Of the rows that are not live, those that are free: where a terminal gets half as wide, an unfinished block takes
twice its rows, and what leaves the screen at its top can never be taken away again."""


class Live:
    """The live part, as rows."""

    def __init__(
        self,
        lines: ChatTranscript,
        draw: Callable[[str, int, int], list[str]],
        clock: Callable[[], float],
        *,
        colour: Theme | bool,
    ) -> None:
        """`draw` makes at most so many rows of an unfinished block, each within so many columns."""
        self._lines = lines
        self._draw = draw
        self._clock = clock
        self.colour = colour
        self._doing = ""
        self._since = 0.0
        self.is_asked: Callable[[], bool] = lambda: False
        """Is a question open? Then nothing but its answer is waited for."""
        self.ahead: list[str] = []
        """What was sent while something else is waited for."""
        self._drawn: tuple[tuple[str, int, int], list[str]] = ("", 0, 0), []

    @contextlib.contextmanager
    def show_activity(self, what: str) -> Iterator[None]:
        """Something is waited for that is no work of the agent's."""
        self._doing, self._since = what, self._clock()
        try:
            yield
        finally:
            self._doing = ""

    def rows(self, width: int, most_rows: int) -> list[str]:
        """At most so many rows, each within so many columns."""
        now = self._clock()
        waiting = [busy(self._doing, now - self._since, now)] if self._doing and not self.is_asked() else []
        waiting += map(render_queued, self.ahead) if self._doing else []
        rows = [*self._lines.live(), *waiting][-most_rows:]
        if not rows and not self._lines.open_block:
            return []
        below = paint_lines((fit_line(one, width) for one in rows), colour=self.colour).split("\n")[:-1]
        room = min(most_rows - len(below) - 2, (most_rows + _FIXED_ROWS - len(below)) // 2)
        above = self._tail(self._lines.open_block, min(width, MOST_COLUMNS), room) if room > 0 else []
        if above:
            return ["", *above, "", *below]
        return below if self._lines.is_after_tools else ["", *below]

    def _tail(self, source: str, width: int, room: int) -> list[str]:
        """The unfinished block; drawn anew only when it has changed."""
        if self._drawn[0] != (source, width, room):
            self._drawn = (source, width, room), self._draw(source, width, room)
        return self._drawn[1]


_MOST_TURNS = 8
_MOST_CHARS = 2000


def tail(
    turns: Sequence[Turn], cwd: str, typed: Mapping[int, str] | None = None, written: Collection[str] = ()
) -> list[Piece]:
    """The last turns; calls as a line each, and of long words only their end.

    `typed` is what the user wrote for the prompts, by the places of their turns, `written` all that they wrote, where
    that is known.
    """
    spoken = [(at, turn) for at, turn in enumerate(turns) if any(_is_shown(part) for part in turn.parts)]
    if not spoken:
        return []
    more = len(spoken) - _MOST_TURNS
    out: list[Piece] = [BLANK, line(("dim", f"  … {more} earlier messages"))] if more > 0 else []
    results = {part.id: part for turn in turns for part in turn.parts if isinstance(part, Result)}
    for at, turn in spoken[-_MOST_TURNS:]:
        for part in turn.parts:
            if isinstance(part, Use):
                values = part.input if isinstance(part.input, dict) else {"input": part.input}
                result = results.get(part.id)
                sign = ("red", "  ✗ ") if result is not None and result.failed else ("dim", "  • ")
                out.append(line(sign, ("bold", part.name), f" {about(values, cwd)}"))
                out += _render_changed_command(result)
            elif isinstance(part, Text) and part.text == STOPPED_BEFORE:
                out += [BLANK, line(("dim", "  Interrupted."))]
            elif isinstance(part, Text) and turn.role == "user" and _is_told(part, turn, written):
                out += [BLANK, *_render_note(part.text)]
            elif isinstance(part, Text) and part.text.strip():
                text = (typed or {}).get(at, "") if part is _prompt(turn) else ""
                out += [BLANK, *_words(turn.role, text or part.text.strip())]
            elif isinstance(part, Image | Document):
                out.append(line(("dim", f"  [{part}]")))
    return [*out, BLANK]


def _render_note(text: str) -> list[Piece]:
    """The first line of what the model is told; of a command of the user's own that command, as it was typed."""
    if text.startswith(RAN) and "\n$ " in text:
        first, command, *_ = text.split("\n", 2)
        return _words("user", f"{'!!' if OUTSIDE in first else '!'}{command[2:]}")
    return [sentence(("dim", "  "), ("dim", text.split("\n", 1)[0]))]


def _render_changed_command(result: Result | None) -> list[Piece]:
    """What the user made of a command before they allowed it: that is what has run."""
    texts = [part.text for part in result.parts[1:] if isinstance(part, Text)] if result is not None else []
    notes = [row for text in texts for row in text.split("\n")]
    changed = next((row for row in notes if row.startswith(f"Note: {CHANGED_COMMAND}")), "")
    return [sentence(("dim", f"    {changed.removeprefix('Note: ')}"))] if changed else []


def _prompt(turn: Turn) -> Part | None:
    """What the user has typed first; the answer to calls begins with their results."""
    first = next((part for part in turn.parts if not isinstance(part, Text) or part.text != STOPPED_BEFORE), None)
    return first if isinstance(first, Text) else None


def _is_told(part: Text, turn: Turn, written: Collection[str]) -> bool:
    """Is it what the program tells the model: a summary, a hook's words, what the user stopped or put in with @?"""
    told = ("[The user ", "[The session ")
    if part is _prompt(turn):
        return part.text.startswith(SUMMED_UP)
    return part.text not in written if written else part.text.startswith(told)


def _words(role: str, text: str) -> list[Piece]:
    text = text if len(text) <= _MOST_CHARS else f"…{text[-_MOST_CHARS:]}"
    if role == "assistant":
        return [Prose(text)]
    first, *rest = text.split("\n")
    shown = [sentence(("cyan bold", "> "), ("bold", first)), *(sentence("  ", ("bold", row)) for row in rest[:10])]
    return (
        [*shown, line(("dim", f"  … {len(rest) - 10} more line{'s' * (len(rest) > 11)}"))]
        if len(rest) > 10
        else [*shown]
    )


def _is_shown(part: Part) -> bool:
    return isinstance(part, Use | Image | Document) or (isinstance(part, Text) and bool(part.text.strip()))
