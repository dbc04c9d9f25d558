"""The title of the terminal, and the bell or desktop notification for somebody who looks elsewhere.

All of it is written as escape sequences that move no cursor. What they say is cleaned and short, for it may be a
model's words. Nobody is called who looks at the terminal, and nobody is called twice about the same thing.
"""

import os
from collections.abc import Callable, Mapping
from typing import Literal

from ferrule.agent_settings import Terminal
from ferrule.output.clean import clean
from ferrule.permissions.asker import visible

State = Literal["idle", "working", "asks", "done"]

FOCUS_ON = "\x1b[?1004h"
FOCUS_OFF = "\x1b[?1004l"
BELL = "\x07"
_SAVE_TITLE = "\x1b[22;2t"
_RESTORE_TITLE = "\x1b[23;2t"
_WITHOUT_TITLE = ("linux", "vt", "cons", "ansi", "eterm", "cygwin", "sun", "wy")
"""How TERM begins on consoles that have no title, and on some that would show the sequence."""
_TITLE_CHARS = 60
_NOTIFICATION_CHARS = 120
_OSC9_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "ghostty"})
_OSC9_VARIABLES = ("KITTY_WINDOW_ID", "ITERM_SESSION_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR")
_OSC777_TERMS = ("foot", "rxvt-unicode")


def short(text: str, most: int) -> str:
    """The text on one line of so many characters, in which nothing ends the sequence that it stands in."""
    words = visible(" ".join(clean(text).split()))
    return words if len(words) <= most else words[: most - 1] + "…"


def title(text: str) -> str:
    """The sequence that sets the title."""
    return f"\x1b]2;{short(text, _TITLE_CHARS)}{BELL}"


def has_title(environment: Mapping[str, str]) -> bool:
    """Does the terminal have a title?"""
    return not environment.get("TERM", "").startswith(_WITHOUT_TITLE)


def notification(text: str, way: str, environment: Mapping[str, str] = os.environ) -> str:
    """The sequence that announces something; `way` is the setting `chat.notify`. Empty if it is off."""
    if way in {"off", "bell"}:
        return BELL if way == "bell" else ""
    words = short(text, _NOTIFICATION_CHARS).replace(";", ",")
    known = _known(environment) if way == "auto" else way
    sequence = {"osc9": f"\x1b]9;{words}{BELL}", "osc777": f"\x1b]777;notify;Ferrule;{words}{BELL}"}.get(known, "")
    if not sequence:
        return BELL
    wrapped = through(sequence, environment)
    # A multiplexer drops what it is not told to pass on, but marks the window where the bell rings.
    return wrapped + BELL if way == "auto" and wrapped != sequence else wrapped


def through(sequence: str, environment: Mapping[str, str]) -> str:
    """The sequence as tmux and screen hand it to the terminal around them (tmux: `allow-passthrough on`)."""
    if environment.get("TMUX"):
        doubled = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    return f"\x1bP{sequence}\x1b\\" if environment.get("STY") else sequence


def _known(environment: Mapping[str, str]) -> str:
    """What the terminal understands, by what the environment says of it; empty if that says nothing."""
    term = environment.get("TERM", "")
    if environment.get("TERM_PROGRAM") in _OSC9_PROGRAMS or environment.get("LC_TERMINAL") == "iTerm2":
        return "osc9"
    if term == "xterm-kitty" or any(environment.get(name) for name in _OSC9_VARIABLES):
        return "osc9"
    return "osc777" if term.startswith(_OSC777_TERMS) else ""


class Notifier:
    """Says on the title what goes on, and calls somebody who is away. `update` is to be called now and then."""

    def __init__(
        self,
        write: Callable[[str], bool],
        clock: Callable[[], float],
        *,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """`write` writes a sequence to the terminal; false if it cannot just now."""
        self._write = write
        self._clock = clock
        self._environment = environment
        self._settings = Terminal(title=False, notify="off")
        self._folder = ""
        self._title = ""
        self._state: State = "idle"
        self._began = 0.0
        self._asked_at = self._ended_at = 0.0
        self._call: Literal["", "asks", "done"] = ""
        """What somebody is to be called for, if they are away."""
        self._was_silent = True
        """Had the terminal not said whether it is looked at, when that came up?"""

    @property
    def follows_focus(self) -> bool:
        """Is the terminal to say whether it is looked at?"""
        return self._settings.notify != "off"

    def begin(self, settings: Terminal, folder: str) -> None:
        """From now on, for a session in this folder."""
        is_first = not self._title
        has = settings.title and has_title(self._environment)
        self._settings = settings if has == settings.title else _untitled(settings)
        self._folder = os.path.basename(folder.rstrip(os.sep)) or folder
        if is_first and has:
            self._write(_SAVE_TITLE)

    def end(self, write: Callable[[str], object]) -> None:
        """Give the title back; an empty one stays where the terminal keeps none."""
        if self._title:
            write(title("") + _RESTORE_TITLE)
            self._title = ""
        self._settings = Terminal(title=False, notify="off")

    def update(self, state: State, *, is_focused: bool | None, pressed_at: float, subject: str = "") -> None:
        """What goes on now. `pressed_at` is when a key was pressed last; `subject` is what is asked."""
        now = self._clock()
        if state != self._state:
            self._changed(state, now, is_focused=is_focused)
        if self._call and self._is_away(now, is_focused=is_focused, pressed_at=pressed_at):
            words = f"{self._folder} asks: {subject}" if self._call == "asks" else self._done_words()
            if self._write(notification(words.rstrip(": "), self._settings.notify, self._environment)):
                self._call = ""
        wanted = f"{'ferrule' if state == 'idle' else state} · {self._folder}"
        if self._settings.title and wanted != self._title and self._write(title(wanted)):
            self._title = wanted

    def _changed(self, state: State, now: float, *, is_focused: bool | None) -> None:
        if state in {"working", "asks"} and self._state in {"idle", "done"}:
            self._began = now  # a question may come up before anybody has seen the work
        before, self._state, self._call = self._state, state, ""
        self._was_silent = is_focused is None
        if self._settings.notify == "off" or is_focused:
            return  # it is seen
        if state == "asks":
            self._call, self._asked_at = "asks", now
        elif state == "done" and before != "idle" and now - self._began >= self._settings.notify_seconds:
            self._call, self._ended_at = "done", now

    def _is_away(self, now: float, *, is_focused: bool | None, pressed_at: float) -> bool:
        """Does nobody look? Where the terminal does not say, somebody who has pressed no key for long is away."""
        since = self._asked_at if self._call == "asks" else self._ended_at
        # One that says only now that nobody looks was looked at until now.
        is_seen = is_focused or (is_focused is False and self._was_silent)
        if is_seen or pressed_at > since:
            self._call = ""
            return False
        return is_focused is False or now - pressed_at >= self._settings.notify_seconds

    def _done_words(self) -> str:
        took = int(self._ended_at - self._began)
        minutes = f"{took // 60}m {took % 60:02}s" if took >= 60 else f"{took}s"
        return f"{self._folder} is done after {minutes}"


def _untitled(settings: Terminal) -> Terminal:
    return Terminal(notify=settings.notify, notify_seconds=settings.notify_seconds, theme=settings.theme, title=False)
