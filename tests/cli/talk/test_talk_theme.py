"""Themes: enough contrast for their background, chosen by setting, by name and by what the terminal says of itself."""

import re
from typing import get_args, get_type_hints

import msgspec
import pytest
from tests.cli.talk.test_talk_rewind import model
from tests.cli.talk.typing_front import talk
from tests.rows import each_row

from ferrule.cli.talk.markdown import Drawer
from ferrule.cli.talk.text import (
    COLOURS,
    NAMES,
    PLAIN,
    TERMINAL,
    THEMES,
    diff_lines,
    find_theme,
    last_theme,
    paint_lines,
    remember_theme,
)
from ferrule.models.cues import said
from ferrule.settings import TerminalSettings

_LEVELS = (0, 95, 135, 175, 215, 255)
FIXED = [pytest.param(theme, id=theme.name) for theme in THEMES.values() if theme.background]
CODE = "```python\n# a\ndef f(x: int): return 'y' + 3\n```\n"
TEXT = f"# T\n\n###### h\n\n> q\n\n1. **b** `c` [l](http://x.example)\n\n{CODE}"


def shade(number):
    """The channels of one of the 256 colours that all terminals agree on."""
    if number >= 232:
        return (8 + 10 * (number - 232),) * 3
    at = number - 16
    return tuple(_LEVELS[at // size % 6] for size in (36, 6, 1))


def luminance(channels):
    parts = [one / 255 for one in channels]
    red, green, blue = (one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(number, background):
    one, other = sorted((luminance(shade(number)), luminance((0,) * 3 if background == "black" else (255,) * 3)))
    return (other + 0.05) / (one + 0.05)


@pytest.mark.parametrize("theme", FIXED)
def test_every_colour_has_the_contrast_that_text_needs(theme):
    least = 7.0 if theme.name.startswith("high-contrast") else 4.5
    low = {
        name: found
        for name, number in theme.colours.items()
        if (found := round(contrast(number, theme.background), 2)) < least
    }

    assert low == {}
    assert set(theme.colours) == {*COLOURS, "dim"}


@pytest.mark.parametrize("theme", FIXED)
def test_code_prose_and_diffs_use_no_colour_outside_of_the_theme(theme):
    drawn = Drawer(colour=theme).markdown(TEXT, 60) + paint_lines(diff_lines(["+a b", "-a c", "@@ 1"]), colour=theme)
    codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", drawn) for code in re.findall(r"38;5;\d+|\d+", found)}

    assert codes - {f"38;5;{number}" for number in theme.colours.values()} == {"0", "1", "3", "4", "49"}


def test_without_colour_there_are_only_attributes():
    drawn = Drawer(colour=PLAIN).markdown(TEXT, 60) + paint_lines(diff_lines(["+a b", "-a c"]), colour=PLAIN)

    assert set(re.findall(r"\x1b\[([0-9;]*)m", drawn)) <= {"0", "1", "2", "3", "1;4", "2;3", "2;4", "1;2"}


def test_the_setting_has_a_value_for_every_theme():
    assert get_args(get_type_hints(TerminalSettings)["theme"]) == NAMES


@each_row(
    ("name", "environment", "found"),
    [
        pytest.param("auto", {}, "terminal", id="nothing-is-known"),
        pytest.param("auto", {"COLORFGBG": "15;0"}, "dark", id="black"),
        pytest.param("auto", {"COLORFGBG": "0;default;15"}, "light", id="white"),
        pytest.param("auto", {"COLORFGBG": "0;7"}, "light", id="grey"),
        pytest.param("auto", {"COLORFGBG": "12;8"}, "dark", id="dark-grey"),
        pytest.param("auto", {"COLORFGBG": "15;default"}, "terminal", id="default"),
        pytest.param("auto", {"COLORFGBG": "nonsense"}, "terminal", id="nonsense"),
        pytest.param("light", {"COLORFGBG": "15;0"}, "light", id="a-name-comes-first"),
        pytest.param("none", {"COLORFGBG": "15;0"}, "none", id="no-colour-is-a-theme"),
        pytest.param("light", {"NO_COLOR": "1", "COLORFGBG": "15;0"}, "none", id="no-color-comes-before-all"),
    ],
)
def test_a_theme_follows_from_its_name_and_the_environment(name, environment, found):
    assert find_theme(name, environment) == THEMES[found]


def test_what_was_chosen_holds_until_the_settings_name_another_one():
    assert last_theme("auto") == "auto"
    remember_theme("light", "auto")

    assert (last_theme("auto"), last_theme("dark")) == ("light", "dark")


async def test_another_theme_holds_at_once_and_is_remembered(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    front = await talk(tmp_path, model(tmp_path, said("Hi.")), "/theme", "/theme light", "/theme beige")

    assert "high-contrast-light" in front.after("/theme")
    assert "There is no theme beige. The themes are auto, terminal, dark" in front.after("/theme beige")
    assert last_theme("auto") == "light"


async def test_what_cannot_be_shown_is_said(tmp_path):
    front = await talk(tmp_path, model(tmp_path, said("Hi.")), "/theme dark")

    assert front.after("/theme dark").strip() == (
        "The theme dark counts from the next start on: this terminal has no colours."
    )


def test_the_colours_of_the_terminal_itself_are_its_first_sixteen():
    assert msgspec.structs.asdict(TERMINAL)["colours"] == dict(zip(COLOURS, range(1, 7), strict=True))
    assert TERMINAL.code("red bold dim give") == "31;1;2"
