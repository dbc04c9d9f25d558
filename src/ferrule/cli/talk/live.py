"""What goes on now, above the input: the block that is being written, and a row for each thing that runs."""

import contextlib
from collections.abc import Callable, Iterator

from ferrule.cli.talk.line import fitted, painted
from ferrule.cli.talk.lines import Lines
from ferrule.cli.talk.rows import busy, queued
from ferrule.cli.talk.theme import Theme

MOST_COLUMNS = 110
"""Prose in longer lines is hard to read."""
_FIXED_ROWS = 7
"""Of the rows that are not live, those that are free: where a terminal gets half as wide, an unfinished block takes
twice its rows, and what leaves the screen at its top can never be taken away again."""


class Live:
    """The live part, as rows."""

    def __init__(
        self,
        lines: Lines,
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
    def doing(self, what: str) -> Iterator[None]:
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
        waiting += map(queued, self.ahead) if self._doing else []
        rows = [*self._lines.live(), *waiting][-most_rows:]
        if not rows and not self._lines.unfinished:
            return []
        below = painted((fitted(one, width) for one in rows), colour=self.colour).split("\n")[:-1]
        room = min(most_rows - len(below) - 2, (most_rows + _FIXED_ROWS - len(below)) // 2)
        above = self._tail(self._lines.unfinished, min(width, MOST_COLUMNS), room) if room > 0 else []
        if above:
            return ["", *above, "", *below]
        return below if self._lines.is_after_tools else ["", *below]

    def _tail(self, source: str, width: int, room: int) -> list[str]:
        """The unfinished block; drawn anew only when it has changed."""
        if self._drawn[0] != (source, width, room):
            self._drawn = (source, width, room), self._draw(source, width, room)
        return self._drawn[1]
