"""Themes: which colour each name of a style stands for, and which one fits the terminal.

Every colour of the chat is a name in a theme. `terminal` uses the 16 colours that the terminal itself was given, which
fit its background but have no known contrast; the others use fixed colours of the 256, chosen for a black or a white
background. The terminal is never asked what its background is: `auto` believes COLORFGBG, if it is set.
"""

import os
from collections.abc import Mapping
from typing import Literal

import msgspec

from ferrule.core.errors import ConfigError
from ferrule.permissions.kept import Kept
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


class _Last(msgspec.Struct, frozen=True):
    theme: str = ""
    setting: str = ""
    """What the settings named when it was chosen. If they name another one since, that was chosen later."""


def remember_theme(name: str, setting: str) -> None:
    """Keep the theme for the next start. Raises: ConfigError."""
    _file().change(lambda _: _Last(name, setting))


def last_theme(setting: str) -> str:
    """The theme that was chosen last: the one that was kept, or the setting if that was changed since."""
    try:
        last = _file().read()
    except ConfigError:
        return setting
    return last.theme if last.theme in NAMES and last.setting == setting else setting


def _file() -> Kept[_Last]:
    return Kept(os.path.join(state_folder(), "theme.json"), _Last)
