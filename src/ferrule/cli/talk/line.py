"""Lines for the screen: words with styles, cut to a width, and painted where colour is wanted."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from prompt_toolkit.utils import get_cwidth

from ferrule.output.clean import clean
from ferrule.permissions.asker import visible

Part = tuple[str, str]
"""A style, which is empty or names of `_CODES` with blanks between, and words. `give` gives way to the other parts."""
Line = tuple[Part, ...]

_CODES = {"bold": 1, "dim": 2, "italic": 3, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
_COLOURS = frozenset({"red", "green", "yellow", "blue", "magenta", "cyan"})
_TAB = "    "
_LEAST_GIVEN = 8
_MOST_ROWS = 12
BLANK: Line = ()


def line(*parts: Part | str) -> Line:
    """A line of parts; what would steer the screen, or end the line, is written out or taken away."""
    pairs = (("", part) if isinstance(part, str) else part for part in parts)
    return tuple((style, _seen(clean(text).replace("\t", _TAB).replace("\n", " "))) for style, text in pairs if text)


@cache
def _joined() -> re.Pattern[str]:
    return re.compile("(?<=[^\0-\x7f\u200b-\u200f])([\u200c\u200d])(?=[^\0-\x7f\u200b-\u200f])")


def _seen(text: str) -> str:
    """Nothing in it hides; but a joiner stays in a word of a script that is written with it, and in an emoji."""
    pieces = [text] if text.isascii() else _joined().split(text)
    return "".join(piece if at % 2 else visible(piece) for at, piece in enumerate(pieces))


def visible_rows(text: str, *, strict: bool = True) -> str:
    """A text of several rows in which nothing steers the screen and, where it is `strict`, nothing hides either."""
    return "\n".join(map(visible if strict else _seen, text.replace("\t", _TAB).split("\n")))


class Sentence(tuple[Part, ...]):
    """A line that is not cut: its last part takes as many rows as it needs, for its end says what to do."""

    __slots__ = ()


def sentence(*parts: Part | str) -> Line:
    """A line as `line` makes it, that is shown whole."""
    return Sentence(line(*parts))


class Spaced:
    """Lines of which no two blank ones follow each other, whoever prints them."""

    def __init__(self) -> None:
        self._is_blank = False

    def rows(self, lines: Iterable[Line]) -> list[Line]:
        out = []
        for one in lines:
            if one or not self._is_blank:
                out.append(one)
            self._is_blank = not one
        return out

    def wrote(self, text: str) -> str:
        """Something else is printed."""
        self._is_blank = text.endswith("\n\n") if text else self._is_blank
        return text


def plain(one: Line) -> str:
    return "".join(text for _, text in one)


def wide(text: str) -> int:
    """How many columns a text takes."""
    return get_cwidth(text)


def cut(text: str, width: int) -> str:
    """The text within so many columns; an ellipsis stands for what is missing."""
    if wide(text) <= width:
        return text
    room, kept = width - 1, []
    for character in text:
        room -= wide(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + "…" if width > 0 else ""


def fitted(one: Line, width: int) -> Line:
    """The line within so many columns: what gives way is cut first, then the last parts."""
    over = sum(wide(text) for _, text in one) - width
    out, room = [], width
    for style, part in one:
        text = part
        if over > 0 and "give" in style.split():
            text = cut(part, max(_LEAST_GIVEN, wide(part) - over))
            over -= wide(part) - wide(text)
        if room <= 0:
            break
        kept = cut(text, room)
        out.append((style, kept))
        room -= wide(text)
    return tuple(out)


def laid(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """The lines as rows of so many columns: sentences are broken, all others cut."""
    for one in lines:
        if isinstance(one, Sentence) and one:
            yield from _broken(one, width)
        else:
            yield fitted(one, width)


def _broken(one: Sentence, width: int) -> list[Line]:
    *head, (style, last) = one
    text = last.lstrip()
    blanks = len(last) - len(text)
    indent = wide(plain(tuple(head))) + blanks
    rows = wrapped(text, max(_LEAST_GIVEN, width - indent))
    if len(rows) > _MOST_ROWS:
        rows[_MOST_ROWS - 1 :] = [cut(rows[_MOST_ROWS - 1] + " …", width - indent)]
    first = (*head, (style, " " * blanks + rows[0]))
    return [first, *(((style, " " * indent + row),) for row in rows[1:])]


def wrapped(text: str, width: int) -> list[str]:
    """A text in rows of so many columns, broken at blanks where there are some."""
    rows: list[str] = []
    for paragraph in text.split("\n"):
        row = ""
        for word in re.split(r"(?<= )", paragraph):
            rest = word
            if row and wide(row) + wide(rest.rstrip()) > width:
                rows.append(row.rstrip())
                row = ""
            while len(head := _head(rest, width)) < len(rest.rstrip()):
                rows.append(head)
                rest = rest[len(head) :]
            row += rest
        rows.append(row.rstrip())
    return rows


def _head(text: str, width: int) -> str:
    """As much of its beginning as fits; at least one character, so that it comes to an end."""
    room = width
    for at, character in enumerate(text):
        room -= wide(character)
        if room < 0:
            return text[: max(1, at)]
    return text


def rows_of(parts: Iterable[Line], width: int, indent: str) -> list[Line]:
    """Parts that stay whole, in as many rows as they take."""
    rows: list[Line] = []
    row: Line = ()
    for part in parts:
        if row and wide(plain(row)) + wide(plain(part)) > width:
            rows.append(row)
            row = line(indent)
        row += part
    return [*rows, row]


def painted(lines: Iterable[Line], *, colour: bool, steer: bool = True) -> str:
    """The lines for a terminal, each with its newline. Without `steer` there is no escape sequence at all."""
    return "".join("".join(_paint(part, colour=colour, steer=steer) for part in one) + "\n" for one in lines)


def _paint(part: Part, *, colour: bool, steer: bool) -> str:
    style, text = part
    names = [name for name in style.split() if name in _CODES and (colour or name not in _COLOURS)]
    if not names or not steer:
        return text
    return f"\x1b[{';'.join(str(_CODES[name]) for name in names)}m{text}\x1b[0m"


@cache
def _colouring() -> re.Pattern[str]:
    return re.compile("(\x1b\\[[0-9;]*m)")


def harmless(text: str) -> str:
    """A text in which nothing but colour is left of what steers a terminal: all that is shown goes through here."""
    pieces = _colouring().split(text)
    return "".join(piece if at % 2 else clean(piece) for at, piece in enumerate(pieces))


def diff_lines(rows: Sequence[str], indent: str = "    ") -> list[Line]:
    """The rows of a diff in their colours."""
    return [line(indent, (diff_style(row), row)) for row in rows]


def whole_rows(rows: Iterable[str], indent: str, width: int) -> list[Line]:
    """The rows of a diff in their colours, none of them cut at the edge of the screen."""
    return [
        line(indent, (diff_style(row), part))
        for row in rows
        for part in wrapped(row.replace("\t", _TAB), width - len(indent) - 1)
    ]


def diff_style(row: str) -> str:
    """The colour of a row of a diff."""
    if row.startswith(("+++", "---", "diff ")):
        return "bold"
    number, _, rest = row.lstrip().partition(" ")
    if number.isdecimal():
        row = rest  # a numbered row, of a question
    return {"+": "green", "-": "red", "@": "cyan"}.get(row[:1], "dim")
