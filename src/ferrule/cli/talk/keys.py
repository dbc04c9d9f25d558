"""The keys: Enter sends, esc Enter and ctrl-J begin a new line, ctrl-R looks back, ctrl-C stops, ctrl-D leaves."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition, Filter, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from ferrule.cli.talk.front import TWICE_SECONDS

if TYPE_CHECKING:
    from ferrule.cli.talk.screen import Screen

_QUIET_SECONDS = 0.5
"""Who typed less than this before a question came up, or still types, has not read it: that goes into the input."""


class Presses:
    """Which keys answer a question: only those that were pressed after it was seen."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = float("-inf")
        self._is_armed = False

    def ask(self) -> None:
        """A question is shown now."""
        self._is_armed = self._clock() - self._last >= _QUIET_SECONDS

    def press(self) -> None:
        """A key was pressed."""
        now = self._clock()
        self._is_armed = self._is_armed or now - self._last >= _QUIET_SECONDS
        self._last = now

    def sent(self) -> None:
        """A line was sent: what was typed before is over."""
        self._last = float("-inf")

    @property
    def is_armed(self) -> bool:
        return self._is_armed


def bindings(screen: "Screen", presses: Presses) -> KeyBindings:
    """The keys of this screen."""
    keys = KeyBindings()
    asked = Condition(lambda: bool(screen.wants) and presses.is_armed)
    _answering(keys, screen, asked)
    _writing(keys, screen, ~asked & ~is_searching, presses.sent)
    _completing(keys, screen)
    _stopping(keys, screen)
    return keys


def _answering(keys: KeyBindings, screen: "Screen", asked: Filter) -> None:
    # Not eager: it would come before ctrl-C, before a paste, and before what the terminal itself says.
    @keys.add(Keys.Any, filter=asked)
    def _answer(event: KeyPressEvent) -> None:
        key = event.data.lower()
        if key in screen.wants and screen.pressed is not None and not screen.pressed.done():
            screen.pressed.set_result(key)

    @keys.add("enter", filter=asked)
    def _nothing(_: KeyPressEvent) -> None:
        """Enter is no answer: it is too easily pressed."""


def _writing(keys: KeyBindings, screen: "Screen", free: Filter, sent: Callable[[], None]) -> None:
    chosen = Condition(
        lambda: screen.input.complete_state is not None and screen.input.complete_state.current_completion is not None
    )

    @keys.add("enter", filter=chosen & free)
    def _choose(_: KeyPressEvent) -> None:
        screen.input.complete_state = None

    @keys.add("enter", filter=~chosen & free)
    def _send(event: KeyPressEvent) -> None:
        if event.app.key_processor.input_queue:
            # More follows in the same breath: a paste, in a terminal that does not say so.
            screen.input.insert_text("\n")
            return
        sent()
        _submit(screen)

    @keys.add("escape", "enter", filter=~is_searching)
    @keys.add("c-j", filter=~is_searching)
    def _newline(_: KeyPressEvent) -> None:
        screen.input.insert_text("\n")


def _completing(keys: KeyBindings, screen: "Screen") -> None:
    choosing = Condition(lambda: screen.input.complete_state is not None)

    @keys.add("tab", filter=~choosing)
    def _complete(_: KeyPressEvent) -> None:
        screen.input.start_completion(select_first=True)

    @keys.add("tab", filter=choosing)
    def _next(_: KeyPressEvent) -> None:
        screen.input.complete_next()

    @keys.add("s-tab", filter=choosing)
    def _previous(_: KeyPressEvent) -> None:
        screen.input.complete_previous()

    @keys.add("escape", filter=~is_searching)
    def _escape(_: KeyPressEvent) -> None:
        """It stops nothing: a slow line may cut an arrow key in two, and its first half is an escape."""
        if screen.input.complete_state is not None:
            screen.input.cancel_completion()
        elif screen.live(screen.width, 1):
            screen.hint = "ctrl-C stops what runs."


def _stopping(keys: KeyBindings, screen: "Screen") -> None:
    stopped_at = [-TWICE_SECONDS]

    @keys.add("c-c", filter=~is_searching)
    @keys.add("<sigint>")
    def _stop(_: KeyPressEvent) -> None:
        if screen.typed is not None and not screen.typed.done():
            screen.typed.set_result(None)
        elif screen.on_interrupt():
            screen.hint = ""
        elif screen.input.text:
            screen.input.reset()
        elif time.monotonic() - stopped_at[0] < TWICE_SECONDS:
            screen.leave()
        else:
            stopped_at[0] = time.monotonic()
            screen.hint = "Press ctrl-C again to leave."

    @keys.add("c-d", filter=~is_searching)
    def _end(_: KeyPressEvent) -> None:
        if screen.input.text:
            screen.input.delete()
        elif screen.typed is not None and not screen.typed.done():
            screen.typed.set_result(None)
        else:
            screen.leave()

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()


def _submit(screen: "Screen") -> None:
    """The line goes to whoever waits for it: a question that wants words, or the conversation."""
    text = screen.input.text
    if screen.typed is not None and not screen.typed.done():
        screen.input.reset()
        screen.typed.set_result(text.strip())
        return
    if not text.strip():
        return
    screen.input.reset(append_to_history=True)
    screen.on_line(text.strip("\n"))
