"""What a call points at: a position in a file, and the name that stands there."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferrule.core.errors import BadArguments, ToolFailure
from ferrule.core.tool import Context
from ferrule.workspace.paths import Jail

_LINE_CHARS = 200
NEAR_CHARS = 4096
_RUN = r"[\w$]+"
_KEYWORDS = frozenset(
    {
        *("and", "async", "await", "case", "class", "const", "def", "default", "elif", "else", "enum"),
        *("export", "extends", "final", "fn", "for", "from", "func", "function", "if", "implements", "import"),
        *("in", "interface", "is", "let", "mut", "new", "not", "or", "private", "protected", "pub"),
        *("public", "raise", "return", "static", "struct", "switch", "throw", "try", "type", "use", "using"),
        *("var", "void", "while", "with", "yield"),
    }
)
"""Words that are hardly ever meant by a position beside them. Some languages have names like these."""


class Pointed(NamedTuple):
    """A position in a file, and the name there."""

    line: int = 1
    character: int = 1
    name: str = ""
    snapped: str = ""
    """A sentence for whoever asked, where the name is only near the position."""


class Word(NamedTuple):
    """A name in a line, from one character up to another, from 0."""

    start: int
    end: int
    text: str


def point(path: str, rows: Sequence[str], line: int, character: int, ctx: Context) -> Pointed:
    """The name at a position, or the nearest on its line; wrong positions and lines without a name are failures."""
    if not 1 <= line <= len(rows):
        shown = ctx.need(Jail).shown(path)
        has = f"{len(rows)} line" + "s" * (len(rows) != 1)
        raise BadArguments(f"{ctx.param('line')}: {line} is not a line of {shown}, which has {has}.")
    row = rows[line - 1]
    if not 1 <= character <= len(row) + 1:
        shown = ctx.need(Jail).shown(path)
        raise BadArguments(
            f"{ctx.param('character')}: {character} is not in line {line} of {shown}, which has {len(row)} characters:"
            f" {shortened(row)!r}"
        )
    word = nearest(row, character - 1)
    if word is None:
        shown = ctx.need(Jail).shown(path)
        raise ToolFailure(
            f"There is no name on line {line} of {shown}: {shortened(row)!r}. Point at a name.", code="no-name"
        )
    if word.start <= character - 1 < word.end:
        return Pointed(line, character, word.text)
    start = word.start + 1
    if word.end == character - 1:  # right behind it, where a cursor would stand
        return Pointed(line, start, word.text)
    shown = ctx.need(Jail).shown(path)
    snapped = f"There is no name at {shown}:{line}:{character}; `{word.text}` at character {start} was taken."
    return Pointed(line, start, word.text, snapped)


def nearest(row: str, at: int) -> Word | None:
    """The name of a line that stands at a place in it, or nearest to it; of two, the one behind the place."""
    # Of a line as long as a book only what is near is looked at; no name is that long.
    begin = max(0, at - NEAR_CHARS) if len(row) > 2 * NEAR_CHARS else 0
    near = row[begin : at + NEAR_CHARS] if len(row) > 2 * NEAR_CHARS else row
    every = [Word(begin + word.start, begin + word.end, word.text) for word in words(near)]
    touching = [word for word in every if word.start <= at <= word.end]
    others = [word for word in every if word.text not in _KEYWORDS]
    return min(touching or others or every, key=lambda word: (_distance(word, at), word.start < at), default=None)


def _distance(word: Word, at: int) -> int:
    if word.start <= at < word.end:
        return 0
    return word.start - at if at < word.start else at - word.end + 1


def words(row: str) -> Iterator[Word]:
    """The names of a line. A combining character belongs to its name, and a number is none."""
    if row.isascii():  # nearly every line
        for found in re.finditer(_RUN, row, re.ASCII):
            if not found[0][0].isdigit():
                yield Word(*found.span(), found[0])
        return
    start = 0
    while start < len(row):
        end = start
        while end < len(row) and _is_part(row[end]):
            end += 1
        if end > start and (row[start] == "$" or row[start].isidentifier()):
            yield Word(start, end, row[start:end])
        start = max(end, start + 1)


def _is_part(character: str) -> bool:
    return character == "$" or f"a{character}".isidentifier()


def shortened(row: str) -> str:
    """A line of code as it is shown: without the blanks around it, and not too long."""
    bare = row.strip()
    return bare if len(bare) <= _LINE_CHARS else bare[:_LINE_CHARS] + "…"
