"""Draw the chat on the terminal: scrollback, live part, completions, title, notifications and pager.

Finished output goes into the terminal's own scrollback; the live part stays below it, above the input. There is
one application for the whole conversation. Printing, taking the live part away and drawing it again leave in one
write and are marked as one frame, so that nothing flickers. The terminal is never asked for anything, and its
alternate screen is not used.

Titles and notifications are escape sequences that move no cursor. Their texts are cleaned and short, because they
may be a model's words. A user who looks at the terminal is not notified, and no user is notified twice about the
same thing.

`Front` is the interface that a conversation needs: a screen, or a terminal with few abilities.
"""

import asyncio
import contextlib
import itertools
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.cursor_shapes import DynamicCursorShapeConfig, ModalCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, VerticalAlign, Window
from prompt_toolkit.layout.containers import ConditionalContainer
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import TabsProcessor
from prompt_toolkit.output import ColorDepth, Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.widgets import SearchToolbar

from ferrule.cli.talk.picker import MOST_ROWS, Picker, PickerRow, Scope
from ferrule.cli.talk.text import (
    Line,
    Spaced,
    Theme,
    as_theme,
    cut,
    find_protocol,
    fit_line,
    harmless,
    line,
    paint_lines,
    picture,
    rows_of,
    wide,
    wrap_lines,
)
from ferrule.core.content import Image
from ferrule.output import clean
from ferrule.permissions import visible
from ferrule.settings import TerminalSettings

if TYPE_CHECKING:
    from prompt_toolkit.buffer import CompletionState
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.data_structures import Size
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings
    from prompt_toolkit.layout.screen import Char


_MOST_ROWS = 7


def menu_lines(state: "CompletionState | None") -> list[Line]:
    """The completions around the chosen one."""
    if state is None or not state.completions:
        return []
    chosen = state.complete_index
    first = max(0, min((chosen or 0) - _MOST_ROWS // 2, len(state.completions) - _MOST_ROWS))
    shown = state.completions[first : first + _MOST_ROWS]
    column = min(40, max(wide(one.display_text) for one in shown))
    rows = []
    for at, one in enumerate(shown, first):
        style = "cyan bold" if at == chosen else ""
        gap = " " * max(2, column + 2 - wide(one.display_text))
        mark = "→ " if at == chosen else "  "
        rows.append(line((style, f"  {mark}{one.display_text}"), ("dim", gap + one.display_meta_text)))
    more = len(state.completions) - first - len(shown)
    return [*rows, line(("dim", f"    … {more} more"))] if more > 0 else rows


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
    known = _detect_notify(environment) if way == "auto" else way
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


def _detect_notify(environment: Mapping[str, str]) -> str:
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
        self._settings = TerminalSettings(title=False, notify="off")
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

    def begin(self, settings: TerminalSettings, folder: str) -> None:
        """From now on, for a session in this folder."""
        is_first = not self._title
        has = settings.title and has_title(self._environment)
        self._settings = settings if has == settings.title else _without_title(settings)
        self._folder = os.path.basename(folder.rstrip(os.sep)) or folder
        if is_first and has:
            self._write(_SAVE_TITLE)

    def end(self, write: Callable[[str], object]) -> None:
        """Give the title back; an empty one stays where the terminal keeps none."""
        if self._title:
            write(title("") + _RESTORE_TITLE)
            self._title = ""
        self._settings = TerminalSettings(title=False, notify="off")

    def update(self, state: State, *, is_focused: bool | None, pressed_at: float, subject: str = "") -> None:
        """What goes on now. `pressed_at` is when a key was pressed last; `subject` is what is asked."""
        now = self._clock()
        if state != self._state:
            self._set_state(state, now, is_focused=is_focused)
        if self._call and self._is_away(now, is_focused=is_focused, pressed_at=pressed_at):
            words = f"{self._folder} asks: {subject}" if self._call == "asks" else self._describe_done()
            if self._write(notification(words.rstrip(": "), self._settings.notify, self._environment)):
                self._call = ""
        wanted = f"{'ferrule' if state == 'idle' else state} · {self._folder}"
        if self._settings.title and wanted != self._title and self._write(title(wanted)):
            self._title = wanted

    def _set_state(self, state: State, now: float, *, is_focused: bool | None) -> None:
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

    def _describe_done(self) -> str:
        took = int(self._ended_at - self._began)
        minutes = f"{took // 60}m {took % 60:02}s" if took >= 60 else f"{took}s"
        return f"{self._folder} is done after {minutes}"


def _without_title(settings: TerminalSettings) -> TerminalSettings:
    return TerminalSettings(
        notify=settings.notify, notify_seconds=settings.notify_seconds, theme=settings.theme, title=False
    )


_FRAME_SECONDS = 0.03
_TICK_SECONDS = 0.1
_MOST_DRAWS = 3
_STATUS_TICKS = 10
"""So many ticks pass until the status of an idle screen is looked at again."""
_MOST_INPUT_ROWS = 8
_LEAST_LIVE_ROWS = 3
_MODAL = ModalCursorShapeConfig()


_FRAME_BEGIN, _FRAME_END = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output: a terminal that knows it shows all between them at once; others ignore it."""


class _Held(Vt100_Output):
    """Keeps what is written until it is let go."""

    held = False

    def flush(self) -> None:
        if not self.held:
            if self._buffer:
                self._buffer = [_FRAME_BEGIN, *self._buffer, _FRAME_END]
            with contextlib.suppress(OSError):  # the terminal is gone; a signal or the end of input says so too
                super().flush()

    def erase_down(self) -> None:
        """Erase from the beginning of this row. From the first cell of a window, tmux would keep what is erased."""
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")


class _Application(Application[None]):
    """Prints before it draws, and gives rows back that it no longer needs."""

    def __init__(self, **options: Any) -> None:
        self._is_given_away = self.follows_focus = False
        super().__init__(**options)
        self.printing: list[str] = []
        self._drawn_size: Size | None = None
        self._reflows = _reflows()

    @property
    def _running_in_terminal(self) -> bool:
        return self._is_given_away

    @_running_in_terminal.setter
    def _running_in_terminal(self, value: bool) -> None:
        """A program gets the terminal, or gives it back: it must not hear whether somebody looks."""
        self._is_given_away = value
        if self.follows_focus:
            self.output.write_raw(FOCUS_OFF if value else FOCUS_ON)
            self.output.flush()

    def signal(self, sequence: str) -> bool:
        """Write a sequence that moves no cursor; false while somebody else has the terminal."""
        if self._is_given_away or not self.is_running:
            return False
        self.output.write_raw(sequence)
        self.output.flush()
        return True

    def _redraw(self, render_as_done: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of the original
        if self._running_in_terminal:
            return  # the terminal is somebody else's
        output = self.output
        if not isinstance(output, _Held):
            self._make_room()
            super()._redraw(render_as_done)
            return
        try:
            for _ in range(_MOST_DRAWS):
                before = dict(vars(output)), dict(vars(self.renderer)), self._drawn_size, self.printing.copy()
                output.held = True
                self._make_room()
                super()._redraw(render_as_done)
                output.held = False
                if render_as_done or output.get_size() == self._drawn_size:
                    break
                # The terminal got another size meanwhile: what was drawn for the old one would stay there as rubbish.
                vars(output).update(before[0], _buffer=[])
                vars(self.renderer).update(before[1])
                self._drawn_size, self.printing = before[2:]
        finally:
            output.held = False
            output.flush()

    def _make_room(self) -> None:
        size = self.output.get_size()
        if self._drawn_size is not None and size != self._drawn_size:
            self._erase_after_resize(size.columns)
        self._drawn_size = size
        last = self.renderer.last_rendered_screen
        wanted = self.layout.container.preferred_height(size.columns, size.rows).preferred
        if self.printing or (last is not None and min(wanted, size.rows) < last.height):
            self.renderer.erase(leave_alternate_screen=False)
            self.output.write_raw("".join(self.printing).replace("\n", "\r\n"))
            self.printing.clear()

    def _erase_after_resize(self, columns: int) -> None:
        """A narrower terminal has broken long rows in two: the cursor is further from the top than it was."""
        last = self.renderer.last_rendered_screen
        if last is None or columns <= 0:
            return
        if self._reflows:
            cursor = last.get_cursor_position(self.layout.current_window)
            more = 0
            for y in range(cursor.y + 1):
                row = last.data_buffer[y]
                used = max((x + 1 for x, cell in row.items() if cell.char.strip()), default=0)
                more += _breaks(row, used, columns) if y < cursor.y else _breaks(row, cursor.x + 1, columns)
            if more:
                self.output.cursor_up(more)
        self.renderer.erase(leave_alternate_screen=False)

    def _on_resize(self) -> None:
        self._redraw()  # which sees that the size is another one, also where no signal has said so yet


def _breaks(row: "Mapping[int, Char]", used: int, columns: int) -> int:
    """How many times a row of so many cells is broken where it has fewer columns."""
    breaks, x = 0, 0
    for at in range(used):
        cell = row[at]
        width = cell.width if cell.char else 0  # the second half of a wide character
        if x + width > columns:
            breaks, x = breaks + 1, 0
        x += width
    return breaks


def _reflows() -> bool:
    """Does the terminal break its rows anew when it gets narrower? Most do; these cut them off."""
    inside = os.environ.get("TMUX")
    return bool(inside) or not (
        os.environ.get("XTERM_VERSION") or os.environ.get("STY") or os.environ.get("TERM") == "linux"
    )


class ChatScreen:
    """What is seen and typed. Whoever talks gives it the live rows and the status, and hears lines and interrupts."""

    def __init__(
        self,
        *,
        keys: Callable[["ChatScreen"], "KeyBindings"],
        history: "History | None" = None,
        completer: "Completer | None" = None,
        colour: Theme | bool = True,
    ) -> None:
        self.colour: Theme = as_theme(colour)
        self.live: Callable[[int, int], list[str]] = lambda _width, _rows: []
        self.status: Callable[[int], list[Line]] = lambda _width: []
        self.working: Callable[[], bool] = lambda: False
        self.subject = ""
        """What is asked, for somebody who is called back to the terminal."""
        self.on_line: Callable[[str], object] = lambda _text: None
        self.on_interrupt: Callable[[], bool] = lambda: False
        """Stops what runs; false where nothing does."""
        self.on_rewind: Callable[[], object] = lambda: None
        """Offers earlier prompts to go back to."""
        self.on_mode: Callable[[], str] = str
        """Takes the next permission mode; what to say of it."""
        self.on_background: Callable[[], str] = str
        """Sends what runs to the background; what to say of it, and nothing where nothing runs."""
        self.is_focused: bool | None = None
        """Is the terminal looked at? None where it does not say."""
        self.on_expand: Callable[[], object] = lambda: None
        self.hint = ""
        """In the place of the status, until the next key."""
        self.offer: tuple[Line, ...] = ()
        """What a question wants to be pressed or typed."""
        self.wants: frozenset[str] = frozenset()
        """The keys that answer the question; empty where none is asked, or where words are wanted."""
        self.pressed: asyncio.Future[str] | None = None
        self.typed: asyncio.Future[str | None] | None = None
        self.picker: Picker | None = None
        """The list that is open; the input is its filter then."""
        self.input = Buffer(
            completer=completer,
            complete_while_typing=Condition(lambda: self.picker is None),
            history=history,
            multiline=True,
            name="input",
        )
        self._spaced = Spaced()
        self._ticking: asyncio.Task[None] | None = None
        self.application = _Application(
            layout=Layout(self._container()),
            key_bindings=keys(self),
            output=_output(),
            color_depth=lambda: None if self.colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            min_redraw_interval=_FRAME_SECONDS,
            enable_page_navigation_bindings=False,
            mouse_support=False,
            cursor=DynamicCursorShapeConfig(lambda: _MODAL if self.is_vim else None),
        )
        self.application.key_processor.after_key_press += self._echo
        # Over a network the bytes of one key come apart more easily.
        self.application.ttimeoutlen = 0.15 if os.environ.get("SSH_CONNECTION") else 0.05
        self.application.timeoutlen = 0.3
        self.notifier = Notifier(self.application.signal, time.monotonic)
        self.pressed_at = time.monotonic()
        """When a key was pressed last."""
        self._has_worked = False
        self.protocol = ""
        """How pictures are shown here; empty if they are not."""
        self._shown_status: list[Line] = []

    def adopt(self, settings: "TerminalSettings", folder: str) -> None:
        """Have the settings hold in this folder."""
        self.notifier.begin(settings, folder)
        self.protocol = find_protocol(settings.pictures)
        self.application.editing_mode = EditingMode.VI if settings.keys == "vim" else EditingMode.EMACS
        if self.notifier.follows_focus and not self.application.follows_focus and self.application.signal(FOCUS_ON):
            self.application.follows_focus = True

    @property
    def is_vim(self) -> bool:
        return self.application.editing_mode == EditingMode.VI

    @property
    def is_inserting(self) -> bool:
        """Do letters write, as they always do but in vim's normal and visual modes?"""
        return not self.is_vim or self.application.vi_state.input_mode == InputMode.INSERT

    def insert(self) -> None:
        """Let letters write again."""
        self.application.vi_state.input_mode = InputMode.INSERT

    def _echo(self, _: object) -> None:
        """A key is seen at once: it does not wait for the next frame of an answer that streams."""
        if not self.application.key_processor.input_queue:
            self.application._redraw()  # noqa: SLF001 - `invalidate` waits for the frame

    def print(self, text: str) -> None:
        """Into the scrollback, above the live part. Nothing but colour steers the terminal from here."""
        self._write(self._spaced.wrote(text))

    def _write(self, text: str) -> None:
        if self.application.is_running:
            self.application.printing.append(harmless(text))
            self.application.invalidate()
        else:
            print(harmless(text), end="", flush=True)

    def draw(self, image: "Image") -> None:
        if self.protocol and self.application.is_running:
            # Not through `print`: it is made here, of nothing but numbers and encoded bytes.
            self.application.printing.append(picture(image, self.protocol, self.width))
            self.application.invalidate()

    def print_lines(self, *lines: Line) -> None:
        rows = self._spaced.rows(lines)
        self._write(paint_lines(wrap_lines(rows, self.width), colour=self.colour))

    def refresh(self) -> None:
        self.application.invalidate()

    @property
    def width(self) -> int:
        return max(20, self.application.output.get_size().columns)

    def leave(self) -> None:
        """The user wants to go."""
        self.on_interrupt()
        if self.application.is_running:
            self.application.exit()

    async def page(self, pieces: Iterable[str]) -> None:
        """Give the terminal to a pager; what is printed meanwhile comes after it. Without one it is all printed."""
        if command := pager():
            await run_in_terminal(lambda: show(pieces, command), in_executor=True)
        else:
            self.print("".join(pieces))

    async def run_chat(self, talk: Callable[[], Awaitable[int]]) -> int:
        """Show the screen while `talk` goes on; it ends with it, and it ends it when the user leaves."""
        loop = asyncio.get_running_loop()
        before = loop.get_exception_handler()
        shown = asyncio.ensure_future(self.application.run_async(set_exception_handler=False))
        loop.set_exception_handler(self._broke)
        self._ticking = asyncio.ensure_future(self._tick())
        talking = asyncio.ensure_future(talk())
        try:
            await asyncio.wait({shown, talking}, return_when=asyncio.FIRST_COMPLETED)
            if not talking.done():
                talking.cancel()
                await asyncio.wait({talking})
        finally:
            self._unsignal()
            await self._stop(shown, talking)
            loop.set_exception_handler(before)
        if shown.done() and not shown.cancelled() and isinstance(error := shown.exception(), Exception):
            if not isinstance(error, EOFError | OSError):  # the terminal is gone: that is a way to leave
                raise error
            return 0
        return 0 if talking.cancelled() else talking.result()

    def _unsignal(self) -> None:
        """The terminal has its title again, and no longer says whether somebody looks."""
        output, pending = self.application.output, list[str]()
        self.notifier.end(pending.append)
        if self.application.follows_focus:
            self.application.follows_focus = False
            pending.append(FOCUS_OFF)
        output.write_raw("".join(pending))
        output.flush()

    async def _stop(self, shown: "asyncio.Future[None]", talking: "asyncio.Future[int]") -> None:
        """Nothing is left running, and the terminal is as it was."""
        assert self._ticking is not None
        self._ticking.cancel()
        if not talking.done():
            talking.cancel()
            await asyncio.wait({talking})
        if not shown.done():
            self.application.exit()
            await asyncio.wait({shown})
        for task in (shown, talking):
            if not task.cancelled():
                task.exception()  # looked at, so that nobody complains that it was not

    async def _tick(self) -> None:
        """Times go on, and so does whoever is at work."""
        for tick in itertools.count(1):
            await asyncio.sleep(_TICK_SECONDS)
            self._notify()
            is_stale = tick % _STATUS_TICKS == 0 and self.status(self.width - 3) != self._shown_status
            if is_stale or self.live(self.width, _LEAST_LIVE_ROWS):
                self.application.invalidate()

    def _notify(self) -> None:
        is_asked = bool(self.wants) or (self.typed is not None and not self.typed.done())
        is_working = self.working()
        self._has_worked = self._has_worked or is_working
        rests: State = "done" if self._has_worked else "idle"
        state: State = "asks" if is_asked else "working" if is_working else rests
        self.notifier.update(state, is_focused=self.is_focused, pressed_at=self.pressed_at, subject=self.subject)

    def _broke(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A bug in what the screen calls: it ends the conversation, and the command says so in a line."""
        error = context.get("exception")
        if self.application.is_running and isinstance(error, Exception):
            self.application.exit(exception=error)

    def _container(self) -> HSplit:
        def window(text: Callable[[], StyleAndTextTuples], **options: Any) -> Window:
            return Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=False, **options)

        looking = SearchToolbar(
            forward_search_prompt="  typed after: ", backward_search_prompt="  typed before: ", ignore_case=True
        )
        field = Window(
            BufferControl(
                self.input,
                input_processors=[TabsProcessor(char1=" ", char2=" ")],
                search_buffer_control=looking.control,
                preview_search=True,
            ),
            height=lambda: Dimension(min=1, max=max(1, min(_MOST_INPUT_ROWS, self._rows() - 4))),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=self._prefix,
        )
        completing = Condition(lambda: bool(self.input.complete_state and self.input.complete_state.completions))
        return HSplit(
            [
                ConditionalContainer(window(self._live_text), Condition(self._is_apart)),
                field,
                looking.container,
                ConditionalContainer(window(lambda: self._text(menu_lines(self.input.complete_state))), completing),
                ConditionalContainer(window(self._picker_text), Condition(lambda: self.picker is not None)),
                window(self._status_text, height=1),
            ],
            align=VerticalAlign.TOP,
        )

    def _rows(self) -> int:
        return self.application.output.get_size().rows

    @property
    def asks(self) -> bool:
        return bool(self.offer)

    def _is_apart(self) -> bool:
        """Does the input need rows above it: what goes on, or a blank one where none was printed?"""
        if not self._spaced.is_blank or self.offer or self.picker is not None:
            return True
        return bool(self.live(self.width - 1, _LEAST_LIVE_ROWS))

    def _live_text(self) -> StyleAndTextTuples:
        below = _MOST_INPUT_ROWS if self.picker is None else self._picker_rows()
        most = max(_LEAST_LIVE_ROWS, self._rows() - below - 4)
        rows = self.live(self.width - 1, most)
        offer = self.offer if self.picker is None else (self.picker.heading(),)
        if offer:
            offered = rows_of(offer, self.width - 1, "   ")
            text = paint_lines((fit_line(one, self.width - 1) for one in offered), colour=self.colour)
            # What comes right behind the command that asked for it comes behind a blank row.
            rows = [*rows, *([""] if rows or not self._spaced.is_blank else []), *text.split("\n")[:-1]]
        # A blank row parts it from the input; without anything live, from what was printed.
        return to_formatted_text(ANSI(harmless("\n".join([*rows, ""] if rows else []))))

    def _prefix(self, number: int, wrap: int) -> StyleAndTextTuples:
        if number or wrap:
            return [("", "  ")]
        mark = "> " if self.is_inserting else "N "
        return self._text([line(("dim" if self.wants else "cyan bold", mark))])

    def _picker_rows(self) -> int:
        return max(1, min(MOST_ROWS + 1, self._rows() - _LEAST_LIVE_ROWS - 4))

    def _picker_text(self) -> StyleAndTextTuples:
        return self._text([] if self.picker is None else self.picker.lines(self.width - 1, self._picker_rows()))

    def _status_text(self) -> StyleAndTextTuples:
        if self.hint:
            return self._text([line(("yellow", f"  {cut(self.hint, self.width - 3)}"))])
        if self.picker is not None:
            return self._text([self.picker.keys(self.width)])
        self._shown_status = kept = self.status(self.width - 3)
        joined = tuple(part for at, one in enumerate(kept) for part in ((("dim", " · "),) if at else ()) + one)
        return self._text([(("dim", "  "), *joined)])

    def _text(self, lines: list[Line]) -> StyleAndTextTuples:
        text = paint_lines((fit_line(one, self.width - 1) for one in lines), colour=self.colour).rstrip("\n")
        return to_formatted_text(ANSI(harmless(text)))


def _output() -> Output:
    """Standard output, which is never asked where its cursor is: the answer would come over the line as if typed."""
    if os.name == "nt":
        return create_output(stdout=sys.stdout)
    output = _Held.from_pty(sys.stdout, term=os.environ.get("TERM"))
    output.enable_cpr = False
    return output


TWICE_SECONDS = 3.0
"""Who presses ctrl-C twice in less than this, with nothing running, wants to leave."""


class TalkFrontend(Protocol):
    """Shows, and hears what is typed."""

    colour: Theme
    steer: bool
    """Does the terminal understand escape sequences at all?"""
    composes: bool
    """Does it tell a line that was composed from one of a paste? Only then may a line run a command."""
    live: Callable[[int, int], list[str]]
    """The rows of what goes on, for so many columns and at most so many rows."""
    status: Callable[[int], list[Line]]
    """What holds now, as parts that fit into so many columns."""
    working: Callable[[], bool]
    subject: str
    """What is asked, for somebody who is called back to the terminal."""
    on_line: Callable[[str], object]
    on_interrupt: Callable[[], bool]
    """Stops what runs; false where nothing does."""
    on_rewind: Callable[[], object]
    on_mode: Callable[[], str]
    on_background: Callable[[], str]

    on_expand: Callable[[], object]
    """Shows all that the last calls came to."""

    @property
    def width(self) -> int: ...

    @property
    def asks(self) -> bool:
        """Does a question stand above the input?"""
        ...

    def adopt(self, settings: TerminalSettings, folder: str) -> None:
        """Have the settings of the terminal hold, for a session in this folder."""

    def print(self, text: str) -> None: ...

    def draw(self, image: Image) -> None:
        """Show a picture, if the terminal can."""

    def print_lines(self, *lines: Line) -> None: ...

    def echo(self, text: str) -> None:
        """What the user has sent, as a part of the conversation."""

    def ready(self) -> None:
        """It is the user's turn."""

    def refresh(self) -> None: ...

    def leave(self) -> None: ...

    async def page(self, pieces: Iterable[str]) -> None:
        """Show a long text page by page, and come back."""

    def put_back(self, text: str, about: str = "Not sent") -> None:
        """What was sent and has not been heard, or is said no more; `about` is what it is, where it has no place."""

    async def key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool = False) -> str:
        """The key that is pressed of those that are offered, each with the rest of what it means.

        `again`: the question is the same as before, and was read then.
        """
        ...

    async def words(self, offer: str, start: str = "") -> str | None:
        """What is typed, or made of `start`; None where the person stops that."""
        ...

    async def edit(self, text: str, suffix: str) -> str | None:
        """The text as the person leaves it in their editor, or else where they type; None where they stop that."""
        ...

    async def pick(
        self, title: str, rows: Sequence[PickerRow], *, other: Scope | None = None, query: str = "", at: str = ""
    ) -> str | None:
        """The value of the row that is chosen, as `picker` says; None where the person goes back."""
        ...

    async def run_chat(self, talk: Callable[[], Awaitable[int]]) -> int:
        """Be there while `talk` goes on."""
        ...


def pager() -> list[str]:
    """The command that shows text page by page; empty where there is none."""
    chosen = shlex.split(os.environ.get("PAGER", "")) or ["less", "-R"]
    return chosen if shutil.which(chosen[0]) else []


def show(pieces: Iterable[str], command: list[str]) -> None:
    """Have the pager show a text, and wait until the user has seen it. Nothing but colour steers the terminal."""
    with subprocess.Popen(command, stdin=subprocess.PIPE) as shown:
        assert shown.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # left before its end
            for piece in pieces:
                shown.stdin.write(harmless(piece).encode(errors="replace"))
            shown.stdin.close()
