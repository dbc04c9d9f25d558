"""Define the colour themes of the chat, and draw pictures in the terminal.

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
from collections.abc import Mapping
from typing import Literal

import msgspec

from ferrule.core.content import Image
from ferrule.core.errors import ConfigError
from ferrule.permissions.trust import StateFile
from ferrule.settings.schema import state_folder

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
_MOST_ROWS = 18
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
    from ferrule.documents.formats import BadPicture, kind, size  # for whoever has pictures

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
    if rows > _MOST_ROWS:
        columns, rows = max(1, columns * _MOST_ROWS // rows), _MOST_ROWS
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
