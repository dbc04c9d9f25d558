"""A list to choose from, below the conversation: typed words filter it, arrow keys move in it, Enter takes a row.

    rows = [Row("opus", line("opus  ", ("dim give", "200k")), search="anthropic opus claude", detail="$5 in, $25 out")]
    value = await chat.front.pick("Which model?", rows)  # the `value` of a row; None if the user goes back

`other` is a second set of rows, which Tab shows. `query` is what the filter begins with, `at` the value of the row that
is marked first. Where the terminal can do little, the list is numbered, and a number or words are typed.

A row fits if it has every typed word somewhere in `search`, upper case or not. Rows stay in the order they are given
in. The caller says what to do about no rows at all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from ferrule.cli.talk.text import BLANK, Line, fit_line, line, sentence
from ferrule.cli.talk.text import plain as plain_text

MOST_ROWS = 12
_LEAST_ROWS = 3
_PAGE_ROWS = 15
"""Of a numbered list."""
_MORE, _OTHER = "+", "*"


class PickerRow(NamedTuple):
    """One thing to choose."""

    value: str
    """What `pick` returns."""
    line: Line
    """As `line` makes it. It is cut to one row: parts in the style `give` first, the last of them before the first."""
    search: str = ""
    """What typed words are looked for in; without it, the words of the line."""
    detail: str = ""
    """A sentence about the row, shown below the list while the row is marked."""

    def has(self, words: Sequence[str]) -> bool:
        """Return whether every word, in lower case, is somewhere in what is searched."""
        text = (self.search or plain_text(self.line)).casefold()
        return all(word in text for word in words)


class Scope(NamedTuple):
    """Another set of rows, read when the user asks for it."""

    name: str
    """Where they are from, as `all folders`."""
    back: str
    """Where the first rows are from, as `this folder`."""
    rows: Callable[[], Awaitable[Sequence[PickerRow]]]


class Picker:
    """The state of an open list: which rows fit, which one is marked, and what the user wants."""

    def __init__(
        self, title: str, rows: Sequence[PickerRow], *, other: Scope | None = None, query: str = "", at: str = ""
    ) -> None:
        self.title = title
        self.on_change: Callable[[], object] = lambda: None
        """Called when other rows have come."""
        self._rows = rows
        self._other = other
        self._first: Sequence[PickerRow] | None = None
        """The rows to go back to; None if they are shown."""
        self._words: list[str] = []
        self.fitting: Sequence[PickerRow] = rows
        self._at = 0
        self._top = 0
        self._height = MOST_ROWS
        self._wish: asyncio.Future[str] | None = None
        self.filter(query)
        self._mark(at)

    def filter(self, query: str) -> None:
        """Keep the rows that have all these words; the marked one stays marked if it is among them."""
        words = query.casefold().split()
        if words != self._words:
            before = self.current_row
            self._words = words
            self._sift()
            # A narrower filter begins at its best row; a wider one comes back to where the user was.
            self._mark("" if before is None or words else before.value)

    def _sift(self) -> None:
        self.fitting = [row for row in self._rows if row.has(self._words)] if self._words else self._rows

    def _mark(self, value: str) -> None:
        self._at = next((at for at, row in enumerate(self.fitting) if value and row.value == value), 0)
        self._top = 0

    @property
    def current_row(self) -> PickerRow | None:
        """The row that Enter takes."""
        return self.fitting[self._at] if self.fitting else None

    def move(self, rows: int) -> None:
        """Mark the row so many below, or above; the first and the last are the ends."""
        self._at = max(0, min(self._at + rows, len(self.fitting) - 1))

    def page(self, pages: int) -> None:
        """Move by as many rows as are shown."""
        self.move(pages * max(1, self._height - 1))

    def want(self, wish: str) -> None:
        """The user has pressed a key: `take`, `back` or `switch`."""
        if self._wish is not None and not self._wish.done():
            self._wish.set_result(wish)

    async def wait_for_choice(self) -> str | None:
        """Wait for the user. Returns the value of a row, or None if the user goes back."""
        while True:
            self._wish = asyncio.get_running_loop().create_future()
            wish = await self._wish
            if wish == "back":
                return None
            if wish == "switch":
                await self._switch()
            elif (row := self.current_row) is not None:
                return row.value

    async def _switch(self) -> None:
        if self._other is None:
            return
        before = self.current_row
        if self._first is None:
            rows = await self._other.rows()
            self._first, self._rows = self._rows, rows
        else:
            self._rows, self._first = self._first, None
        self._sift()
        self._mark("" if before is None else before.value)
        self.on_change()

    def heading(self) -> Line:
        """The title, and how many rows there are."""
        count = f"{len(self.fitting)} of {len(self._rows)}" if self._words else f"{len(self._rows)}"
        name = f" · {self._other.name}" if self._other is not None and self._first is not None else ""
        return line(("yellow bold give", f"  {self.title}"), ("dim", f"  {count}{name}"))

    def keys(self, width: int) -> Line:
        """What the keys do."""
        tab = []
        if self._other is not None:
            tab = [f"tab {self._other.name if self._first is None else self._other.back}"]
        every = ["type to search", "↑↓ move", "Enter takes it", *tab, "esc goes back"]
        short = ["↑↓", "Enter", *tab, "esc back"]
        words = " · ".join(every)
        return line(("dim", f"  {words if len(words) + 3 <= width else ' · '.join(short)}"))

    def lines(self, width: int, most_rows: int) -> list[Line]:
        """The rows around the marked one, and what is said of it, in at most so many rows of so many columns."""
        detail = self.current_row.detail if self.current_row is not None else ""
        has_details = most_rows > _LEAST_ROWS and any(row.detail for row in self.fitting)
        self._height = max(1, min(MOST_ROWS, most_rows - has_details))
        if not self.fitting:
            return [fit_line(line(("dim", "  Nothing fits these words.")), width)]
        self._top = max(self._at - self._height + 1, min(self._top, self._at, len(self.fitting) - self._height), 0)
        rows = []
        for at, row in enumerate(self.fitting[self._top : self._top + self._height], self._top):
            if at == self._at:
                parts = tuple((_bold(style), text) for style, text in row.line)
                rows.append(fit_line((*line(("cyan bold", "  → ")), *parts), width))
            else:
                rows.append(fit_line((*line("    "), *row.line), width))
        if has_details:
            rows.append(fit_line(line(("dim", f"    {detail}")), width))
        return rows


def _bold(style: str) -> str:
    return " ".join(["bold", *(name for name in style.split() if name not in {"dim", "bold"})])


class PickerConsole(Protocol):
    """Where whole lines are shown and typed."""

    def print_lines(self, *lines: Line) -> None: ...

    async def words(self, offer: str) -> str | None: ...


async def pick_by_number(
    place: PickerConsole, title: str, rows: Sequence[PickerRow], *, other: Scope | None = None, query: str = ""
) -> str | None:
    """Choose from a numbered list by what is typed: a number, words to search, or nothing to go back."""
    shown_rows, is_other = rows, False
    fitting = [row for row in rows if row.has(query.casefold().split())]
    start, is_new = 0, True
    while True:
        page = fitting[start : start + _PAGE_ROWS]
        if is_new:
            column = len(str(start + len(page)))
            numbered = (
                (*line(("cyan bold", f"  {number:>{column}}  ")), *row.line)
                for number, row in enumerate(page, start + 1)
            )
            place.print_lines(BLANK, *numbered)
        more = len(fitting) - start - len(page)
        hints = ["a number takes one", "words search"]
        hints += [f"{_MORE} shows {more} more"] if more > 0 else []
        hints += [f"{_OTHER} {other.back if is_other else other.name}"] if other is not None else []
        if is_new:
            place.print_lines(sentence(("dim", f"  {', '.join(hints)}, an empty line goes back")))
        said = await place.words(title)
        is_new = True
        if not said:
            return None
        if said.isdecimal() and 1 <= int(said) <= len(fitting):
            return fitting[int(said) - 1].value
        if said == _MORE and more > 0:
            start += _PAGE_ROWS
        elif said == _OTHER and other is not None:
            shown_rows, is_other = (rows, False) if is_other else (await other.rows(), True)
            fitting, start = list(shown_rows), 0
        elif said.isdecimal():
            is_new = False
            place.print_lines(sentence(f"  There is no number {said}: they go from 1 to {len(fitting)}."))
        elif found := [row for row in shown_rows if row.has(said.casefold().split())]:
            fitting, start = found, 0
        else:
            is_new = False
            place.print_lines(sentence(f"  Nothing fits “{said}”: other words, or a number."))
