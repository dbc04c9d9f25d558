"""Lines for the screen: words with styles, cut to a width, and painted where colour is wanted."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter

from prompt_toolkit.utils import get_cwidth

from ferrule.cli.talk.theme import Theme, as_theme
from ferrule.output.clean import clean
from ferrule.permissions.ask import visible

Part = tuple[str, str]
"""A style, which is empty or names of a theme with blanks between, and words. `give` gives way to the other parts."""
Line = tuple[Part, ...]

_TAB = "    "
_LEAST_GIVEN = 8
_MOST_ROWS = 12
_MOST_WHOLE_ROWS = 4
_WHOLE_INDENT = "      "
_MOST_MARKED_CHARS = 400
_MOST_MARKED_ROWS = 400
_LEAST_ALIKE = 0.4
"""Lines that have less in common are two lines, not one that was changed."""
BLANK: Line = ()


def line(*parts: Part | str) -> Line:
    """A line of parts; what would steer the screen, or end the line, is written out or taken away."""
    pairs = (("", part) if isinstance(part, str) else part for part in parts)
    return tuple(
        (style, _make_visible(clean(text).replace("\t", _TAB).replace("\n", " "))) for style, text in pairs if text
    )


@cache
def _joiner_pattern() -> re.Pattern[str]:
    return re.compile("(?<=[^\0-\x7f\u200b-\u200f])([\u200c\u200d])(?=[^\0-\x7f\u200b-\u200f])")


def _make_visible(text: str) -> str:
    """Nothing in it hides; but a joiner stays in a word of a script that is written with it, and in an emoji."""
    pieces = [text] if text.isascii() else _joiner_pattern().split(text)
    return "".join(piece if at % 2 else visible(piece) for at, piece in enumerate(pieces))


def visible_rows(text: str, *, strict: bool = True) -> str:
    """A text of several rows in which nothing steers the screen and, where it is `strict`, nothing hides either."""
    return "\n".join(map(visible if strict else _make_visible, text.replace("\t", _TAB).split("\n")))


class Sentence(tuple[Part, ...]):
    """A line that is not cut: its last part takes as many rows as it needs, for its end says what to do."""

    __slots__ = ()


class UnbrokenLine(tuple[Part, ...]):
    """A line that takes more rows where one is too short for it: nothing in it is hidden at the edge of the screen."""

    __slots__ = ()


def sentence(*parts: Part | str) -> Line:
    """A line as `line` makes it, that is shown whole."""
    return Sentence(line(*parts))


class Spaced:
    """Lines of which no two blank ones follow each other, whoever prints them."""

    def __init__(self) -> None:
        self.is_blank = False
        """Was the last row that was printed a blank one?"""

    def rows(self, lines: Iterable[Line]) -> list[Line]:
        out = []
        for one in lines:
            if one or not self.is_blank:
                out.append(one)
            self.is_blank = not one
        return out

    def wrote(self, text: str) -> str:
        """Something else is printed."""
        self.is_blank = text.endswith("\n\n") if text else self.is_blank
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


def fit_line(one: Line, width: int) -> Line:
    """The line within so many columns: what gives way is cut first, the last of it before the first, then the end."""
    over = sum(wide(text) for _, text in one) - width
    given: list[Part] = []
    for style, part in reversed(one):
        text = part
        if over > 0 and "give" in style.split():
            text = cut(part, max(_LEAST_GIVEN, wide(part) - over))
            over -= wide(part) - wide(text)
        given.append((style, text))
    out, room = [], width
    for style, text in reversed(given):
        if room <= 0:
            break
        kept = cut(text, room)
        out.append((style, kept))
        room -= wide(text)
    return tuple(out)


def wrap_lines(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """The lines as rows of so many columns: sentences and whole ones are broken, all others cut."""
    for one in lines:
        if isinstance(one, UnbrokenLine) and wide(plain(one)) > width:
            yield from _wrap_whole(one, width)
            continue
        if isinstance(one, Sentence) and one:
            yield from _wrap_sentence(one, width)
        else:
            yield fit_line(one, width)


def _wrap_sentence(one: Sentence, width: int) -> list[Line]:
    *head, (style, last) = one
    text = last.lstrip()
    blanks = len(last) - len(text)
    indent = wide(plain(tuple(head))) + blanks
    rows = wrap_text(text, max(_LEAST_GIVEN, width - indent))
    if len(rows) > _MOST_ROWS:
        rows[_MOST_ROWS - 1 :] = [cut(rows[_MOST_ROWS - 1] + " …", width - indent)]
    first = (*head, (style, " " * blanks + rows[0]))
    return [first, *(((style, " " * indent + row),) for row in rows[1:])]


def _wrap_whole(one: UnbrokenLine, width: int) -> Iterator[Line]:
    """The line in as many rows as it takes, up to a limit, broken at blanks where there are some."""
    cells = [(style, character) for style, text in one for character in text]
    start, room = 0, max(_LEAST_GIVEN, width)
    for number in range(_MOST_WHOLE_ROWS):
        end, used, blank = start, 0, start
        while end < len(cells) and used + wide(cells[end][1]) <= room:
            used += wide(cells[end][1])
            end += 1
            blank = end if cells[end - 1][1] == " " else blank
        if end == len(cells) or number + 1 == _MOST_WHOLE_ROWS:
            break
        blank = end if cells[end][1] == " " else blank
        end = blank if blank > start + (end - start) // 2 else max(end, start + 1)
        yield _row(cells[start:end], number)
        while end < len(cells) and cells[end][1] == " ":
            end += 1
        start, room = end, max(_LEAST_GIVEN, width - len(_WHOLE_INDENT))
    yield fit_line(_row(cells[start:], number), width)


def _row(cells: Sequence[Part], number: int) -> Line:
    parts = [("", _WHOLE_INDENT)] if number else []
    parts += [(style, "".join(one[1] for one in same)) for style, same in groupby(cells, key=itemgetter(0))]
    style, last = parts[-1]
    return (*parts[:-1], (style, last.rstrip()))


def wrap_text(text: str, width: int) -> list[str]:
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


def paint_lines(lines: Iterable[Line], *, colour: Theme | bool, steer: bool = True) -> str:
    """The lines for a terminal in the colours of a theme, each with its newline.

    Without `steer` there is no escape sequence at all.
    """
    theme = as_theme(colour)
    return "".join("".join(_paint(part, theme, steer=steer) for part in one) + "\n" for one in lines)


def _paint(part: Part, theme: Theme, *, steer: bool) -> str:
    style, text = part
    code = theme.code(style) if steer and style else ""
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


@cache
def _colour_pattern() -> re.Pattern[str]:
    return re.compile("(\x1b\\[[0-9;]*m)")


def harmless(text: str) -> str:
    """A text in which nothing but colour is left of what steers a terminal: all that is shown goes through here."""
    pieces = _colour_pattern().split(text)
    return "".join(piece if at % 2 else clean(piece) for at, piece in enumerate(pieces))


def diff_lines(rows: Sequence[str], indent: str = "    ") -> list[Line]:
    """The rows of a diff in their colours; where a line became another one, the words that differ stand out."""
    return [line(indent, *parts) for parts in mark_diff_words(rows)]


def mark_diff_words(rows: Sequence[str]) -> list[tuple[Part, ...]]:
    """Each row of a diff in parts. As many lines that come as went before them are taken for the same lines."""
    out: list[tuple[Part, ...]] = [((diff_style(row), row),) for row in rows]
    signs = list(map(diff_sign, rows))
    at = 0
    while at < min(len(rows), _MOST_MARKED_ROWS):
        middle = _run(signs, at, "-")
        end = _run(signs, middle, "+")
        if middle > at and end - middle == middle - at:
            for old in range(at, middle):
                new = old + middle - at
                out[old], out[new] = _by_words(rows[old], rows[new])
        at = max(end, at + 1)
    return out


def _run(signs: Sequence[str], start: int, sign: str) -> int:
    end = start
    while end < len(signs) and signs[end] == sign:
        end += 1
    return end


def _by_words(old: str, new: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Both rows with the words reversed that the other one lacks, so that a blank is seen too.

    Without any where they have little in common.
    """
    from difflib import SequenceMatcher  # for edits

    sides = [(row[: _lead(row)], _words().findall(row[_lead(row) :][:_MOST_MARKED_CHARS])) for row in (old, new)]
    rests = [row[_lead(row) :][_MOST_MARKED_CHARS:] for row in (old, new)]
    matcher = SequenceMatcher(None, sides[0][1], sides[1][1], autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return ((diff_style(old), old),), ((diff_style(new), new),)
    parts: tuple[list[Part], list[Part]] = ([], [])
    styles = (diff_style(old), diff_style(new))
    for tag, *spans in matcher.get_opcodes():
        for side, (start, end) in enumerate((spans[:2], spans[2:])):
            if start < end:
                apart = "" if tag == "equal" else " reverse"
                parts[side].append((styles[side] + apart, "".join(sides[side][1][start:end])))
    one, other = (((styles[at], sides[at][0]), *parts[at], (styles[at], rests[at])) for at in (0, 1))
    return one, other


@cache
def _words() -> re.Pattern[str]:
    return re.compile(r"\w+|\s+|[^\w\s]")


@cache
def _lead_pattern() -> re.Pattern[str]:
    return re.compile(r" *\d+ [-+ ] ?|[-+ ]")


def _lead(row: str) -> int:
    """How many characters stand before the line itself: its number and its sign."""
    found = _lead_pattern().match(row)
    return found.end() if found else 0


def whole_rows(rows: Iterable[str], indent: str, width: int) -> list[Line]:
    """The rows of a diff in their colours, none of them cut at the edge of the screen.

    What is left of one stands below its text, not below its number: it does not look like another line.
    """
    return [one for several in wrap_diff_rows(list(rows), indent, width) for one in several]


def wrap_diff_rows(rows: Sequence[str], indent: str, width: int) -> Iterator[list[Line]]:
    """The same, row by row; in one that has to be broken the words that differ do not stand out."""
    for row, parts in zip(rows, mark_diff_words(rows), strict=True):
        several = _wrap_diff_row(row, width - len(indent) - 1)
        if len(several) == 1:
            yield [line(indent, *((style, text.replace("\t", _TAB)) for style, text in parts))]
        else:
            yield [line(indent, (diff_style(row), part)) for part in several]


def _wrap_diff_row(row: str, width: int) -> list[str]:
    lead = _lead(row)
    first, *rest = wrap_text(row[lead:].replace("\t", _TAB), max(_LEAST_GIVEN, width - lead))
    return [row[:lead] + first, *(" " * lead + part for part in rest)]


def diff_style(row: str) -> str:
    """The colour of a row of a diff."""
    if row.startswith(("+++", "---", "diff ")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(diff_sign(row), "dim")


def diff_sign(row: str) -> str:
    """What a row of a diff begins with, behind its number if it has one."""
    number, _, rest = row.lstrip().partition(" ")
    return (rest if number.isdecimal() else row)[:1]
