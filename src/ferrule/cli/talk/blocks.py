"""Markdown as it arrives: which of its blocks are finished and will never be read otherwise.

A block is judged by whole lines only, for a line that goes on may become something else. In a text of whole lines every
block but the last is final: the next one has ended it. The last one is final too where a blank line ends its kind.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_ENDED_BY_BLANK = frozenset({"paragraph_open", "heading_open", "hr", "fence", "table_open"})
_MOST_WAITING = 64
"""So many lines of one block are looked at again whenever a line comes; of a longer one when it has grown by much."""
_MOST_DEFINITIONS = 4096


@cache
def parser() -> "MarkdownIt":
    """CommonMark with tables and strikethrough. Angle brackets are words: `List<String>` is no markup here."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")


@cache
def _label() -> re.Pattern[str]:
    return re.compile(r" {0,3}\[([^\[\]\n]{1,200})\]")


class Blocks:
    """One answer's text. `feed` gives back the blocks that are finished, `end` what is left."""

    def __init__(self) -> None:
        self._waiting = ""
        self._definitions = ""
        self._used: set[str] = set()
        """What stands in brackets in blocks that are printed already: some of it may name links."""
        self._looked_at = 0

    @property
    def unfinished(self) -> str:
        return self._waiting

    def feed(self, text: str) -> list[str]:
        """More text; the blocks that it has finished."""
        self._waiting += text
        if "\n" not in text:
            return []
        return self._cut()

    def end(self) -> list[str]:
        """There is no more: all that is left, block by block."""
        if self._waiting and not self._waiting.endswith("\n"):
            self._waiting += "\n"
        self._looked_at = 0
        out = self._cut()
        left, self._waiting = self._waiting, ""
        lines = left.split("\n")
        spans = [token.map for token in parser().parse(left) if token.level == 0 and token.map]
        start, end = (spans[0][0], spans[-1][1]) if spans else (0, 0)
        out += self._define(lines[:start])
        block = "\n".join(lines[start:end]).strip("\n")
        out += [self._with_definitions(block + "\n")] if block.strip() else []
        return out + self._define(lines[end:])

    def drop(self) -> None:
        """What was not finished was never said."""
        self._waiting = ""
        self._looked_at = 0

    def _cut(self) -> list[str]:
        whole, _, begun = self._waiting.rpartition("\n")
        lines = (whole + "\n").split("\n")[:-1]
        if len(lines) > _MOST_WAITING and len(lines) - self._looked_at < len(lines) // 4:
            return []
        self._looked_at = len(lines)
        tokens = [token for token in parser().parse(whole + "\n") if token.level == 0 and token.map]
        starts = [token.map[0] for token in tokens if token.map]
        if not starts:
            return []
        ends = [*starts[1:], starts[-1]]
        last = tokens[-1]
        assert last.map is not None
        if last.type in _ENDED_BY_BLANK and last.map[1] < len(lines) and not lines[-1].strip():
            ends[-1] = len(lines)
        out, done = [], 0
        for token, start, end in zip(tokens, starts, ends, strict=True):
            if end == start:
                break
            out += self._define(lines[done:start])
            assert token.map is not None
            done = min(token.map[1], end)
            out.append(self._with_definitions("\n".join(lines[start:done]).rstrip() + "\n"))
        if out:
            while done < len(lines) and not lines[done].strip():
                done += 1
            self._waiting = "".join(row + "\n" for row in lines[done:]) + begun
            self._looked_at = 0
        return out

    def _with_definitions(self, block: str) -> str:
        if "[" in block and len(self._used) < _MOST_DEFINITIONS:
            self._used.update(label.casefold() for label in _label().findall(block))
        return self._definitions + block

    def _define(self, rows: list[str]) -> list[str]:
        """Rows between two blocks are blank or define links, which the blocks that come after may use.

        What a link in an earlier block leads to was not known when that was printed: it is said now.
        """
        text = "\n".join(rows).strip()
        if text and len(self._definitions) + len(text) < _MOST_DEFINITIONS:
            self._definitions += text + "\n\n"
        late = [row.strip() for row in rows if (found := _label().match(row)) and found[1].casefold() in self._used]
        return ["  \n".join(f"`` {row} ``" for row in late) + "\n"] if late else []
