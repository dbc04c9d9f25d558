"""Style lines for the screen: colour themes, cutting to a width, and pictures.

Every colour of the chat is a name in a theme. `terminal` uses the 16 colours of the user's terminal, which fit its
background but have no known contrast; the others use fixed colours of the 256, chosen for a black or a white
background. The terminal is never asked for its background: `auto` believes COLORFGBG, if it is set.

Pictures that a tool has read or the user has attached are drawn by the protocol of kitty or iTerm2. The output is
the picture's own bytes, encoded anew, in room that was made for it before, so that the cursor ends at a known
place. A picture elsewhere is never fetched, the terminal is never asked, and one that is not known to show
pictures gets none.
"""

import base64
import binascii
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Literal

import msgspec
from prompt_toolkit.utils import get_cwidth

from ferrule.core.content import Image
from ferrule.core.errors import ConfigError
from ferrule.documents import BadPicture, kind, size
from ferrule.output import clean
from ferrule.permissions import visible
from ferrule.permissions.trust import StateFile
from ferrule.settings import state_folder

ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3", "reverse": "7"}
COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")
_OWN_COLOURS = 16
_LIGHT_BACKGROUNDS = frozenset({7, *range(9, 16)})


class Theme(msgspec.Struct, frozen=True):
    """One theme."""

    name: str
    about: str
    colours: Mapping[str, int] = {}
    """The name of a style → a colour's number; below 16 it is one of the terminal's own. Without any, all is plain."""
    background: str = ""
    """The background that it is made for; empty if it fits any."""

    def __bool__(self) -> bool:
        """True if it has colours at all."""
        return bool(self.colours)

    def code(self, style: str) -> str:
        """The parameters of the escape sequence for a style; empty if it changes nothing."""
        codes = []
        for name in style.split():
            if name in self.colours:
                codes.append(_code(self.colours[name]))
            elif name in ATTRIBUTES:
                codes.append(ATTRIBUTES[name])
        return ";".join(codes)

    def rich(self, style: str) -> str:
        """The same style, as Rich spells it."""
        words = []
        for name in style.split():
            if name in self.colours:
                words.append(f"color({self.colours[name]})")
            elif name not in COLOURS:
                words.append(name)
        return " ".join(words) or "none"

    @property
    def depth(self) -> Literal["256", "standard"]:
        """How many colours Rich may use for it."""
        return "256" if any(number >= _OWN_COLOURS for number in self.colours.values()) else "standard"


def _code(number: int) -> str:
    if number >= _OWN_COLOURS:
        return f"38;5;{number}"
    return str(30 + number if number < 8 else 82 + number)


def _theme(name: str, about: str, background: str, *numbers: int) -> Theme:
    return Theme(name, about, dict(zip((*COLOURS, "dim"), numbers, strict=False)), background)


TERMINAL = _theme("terminal", "the terminal's own 16 colours", "", 1, 2, 3, 4, 5, 6)
PLAIN = Theme("none", "no colour")
THEMES: Mapping[str, Theme] = {
    theme.name: theme
    for theme in (
        TERMINAL,
        _theme("dark", "fixed colours for a dark background", "black", 203, 114, 221, 111, 177, 80, 246),
        _theme("light", "fixed colours for a light background", "white", 160, 28, 94, 26, 127, 24, 242),
        _theme("high-contrast", "the most contrast on a dark background", "black", 210, 120, 227, 117, 219, 123, 252),
        _theme(
            "high-contrast-light", "the most contrast on a light background", "white", 124, 22, 235, 19, 90, 23, 239
        ),
        PLAIN,
    )
}
NAMES = ("auto", *THEMES)


def as_theme(colour: "Theme | bool") -> Theme:
    """A theme; True means the terminal's own colours, False none."""
    if isinstance(colour, Theme):
        return colour
    return TERMINAL if colour else PLAIN


def find_theme(name: str, environment: Mapping[str, str] = os.environ) -> Theme:
    """The theme of a name. `NO_COLOR` comes before any of them; `auto` follows COLORFGBG."""
    if "NO_COLOR" in environment:
        return PLAIN
    # Not by its truth: a theme without colour is false.
    return THEMES[name if name in THEMES else _by_background(environment.get("COLORFGBG", ""))]


def _by_background(said: str) -> str:
    """COLORFGBG is `foreground;background`, sometimes with more between them."""
    last = said.rpartition(";")[2].strip()
    if ";" not in said or not last.isascii() or not last.isdecimal():
        return "terminal"
    return "light" if int(last) in _LIGHT_BACKGROUNDS else "dark"


class _ThemeChoice(msgspec.Struct, frozen=True):
    theme: str = ""
    setting: str = ""
    """What the settings named when it was chosen. If they name another one since, that was chosen later."""


def remember_theme(name: str, setting: str) -> None:
    """Keep the theme for the next start. Raises: ConfigError."""
    _file().change(lambda _: _ThemeChoice(name, setting))


def last_theme(setting: str) -> str:
    """The theme that was chosen last: the one that was kept, or the setting if that was changed since."""
    try:
        last = _file().read()
    except ConfigError:
        return setting
    return last.theme if last.theme in NAMES and last.setting == setting else setting


def _file() -> StateFile[_ThemeChoice]:
    return StateFile(os.path.join(state_folder(), "theme.json"), _ThemeChoice)


_MOST_BYTES = 4 << 20
_MOST_COLUMNS = 60
_IMAGE_ROWS = 18
_CELL_PIXELS = 8
"""A cell is taken to be so wide, and twice as high."""
_CHUNK = 4096
_MARGIN = 4


def find_protocol(setting: str, environment: Mapping[str, str] = os.environ) -> str:
    """`kitty` or `iterm2`; empty if the terminal is not known to show pictures, or something stands between."""
    if setting != "auto":
        return "" if setting == "off" else setting
    program, term = environment.get("TERM_PROGRAM", ""), environment.get("TERM", "")
    if environment.get("TMUX") or environment.get("STY") or term.startswith(("screen", "tmux")):
        return ""
    if term in {"xterm-kitty", "xterm-ghostty"} or program == "ghostty":
        return "kitty"
    is_iterm = program in {"iTerm.app", "WezTerm"} or environment.get("LC_TERMINAL") == "iTerm2"
    return "iterm2" if is_iterm else ""


def picture(image: Image, protocol: str, columns: int) -> str:
    """The rows of a picture, with what draws it there; empty if it cannot be drawn."""
    if not protocol or image.url or not image.data or len(image.data) > _MOST_BYTES * 4 // 3:
        return ""
    try:
        raw = base64.b64decode(image.data, validate=True)
        pixels = size(raw)
    except (binascii.Error, BadPicture):
        return ""
    if protocol == "kitty" and kind(raw) != "image/png":
        return ""  # the only form that its protocol takes encoded
    width, height = cells(*pixels, most_columns=min(_MOST_COLUMNS, columns - _MARGIN))
    draw = _kitty(raw, width, height) if protocol == "kitty" else _iterm2(raw, width, height)
    # Room first, so that nothing scrolls while it is drawn; then back to where the rows end.
    return f"{chr(10) * height}\x1b[{height}A\x1b[2C\x1b7{draw}\x1b8\r\x1b[{height}B"


def cells(width: int, height: int, *, most_columns: int) -> tuple[int, int]:
    """How many columns and rows a picture of so many pixels gets; a small one is not made larger."""
    columns = max(1, min(most_columns, math.ceil(width / _CELL_PIXELS)))
    rows = max(1, math.ceil(columns * height / width / 2))
    if rows > _IMAGE_ROWS:
        columns, rows = max(1, columns * _IMAGE_ROWS // rows), _IMAGE_ROWS
    return columns, rows


def _kitty(raw: bytes, columns: int, rows: int) -> str:
    data = base64.b64encode(raw).decode()
    pieces = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
    out = []
    for at, piece in enumerate(pieces):
        # q=2: no answer, which would come over the line as if typed. C=1: the cursor stays.
        head = f"a=T,f=100,q=2,C=1,c={columns},r={rows}," if at == 0 else "q=2,"
        out.append(f"\x1b_G{head}m={int(at + 1 < len(pieces))};{piece}\x1b\\")
    return "".join(out)


def _iterm2(raw: bytes, columns: int, rows: int) -> str:
    facts = f"inline=1;size={len(raw)};width={columns};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File={facts}:{base64.b64encode(raw).decode()}\x07"


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
