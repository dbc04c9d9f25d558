"""The keys: Enter sends, esc Enter and ctrl-J begin a new line, esc and ctrl-C stop, ctrl-D leaves."""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition, Filter, is_searching
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys

from ferrule.cli.talk.front import TWICE_SECONDS

if TYPE_CHECKING:
    from ferrule.cli.talk.picker import Picker
    from ferrule.cli.talk.screen import Screen

FOCUS_IN = "\x1b[I"
FOCUS_OUT = "\x1b[O"
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")
EARLY = "This goes into your message. To answer, pause for a moment first."
_QUIET_SECONDS = 0.5
"""Who typed less than this before a question came up, or still types, has not read it: that goes into the input."""


class Presses:
    """Which keys answer a question: only those that were pressed after it was seen."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = float("-inf")
        self._is_armed = False
        self._count = 0

    def twice(self) -> Callable[[], bool]:
        """Whether a key is pressed the second time: soon after the first, and no other key between them."""
        before = -1, 0.0

        def is_second() -> bool:
            nonlocal before
            number, at = before
            before = self._count, self._clock()
            is_over = number == self._count - 1 and before[1] - at < TWICE_SECONDS
            before = (-1, 0.0) if is_over else before
            return is_over

        return is_second

    def ask(self) -> None:
        """A question is shown now."""
        self._is_armed = self._clock() - self._last >= _QUIET_SECONDS

    def press(self) -> None:
        """A key was pressed."""
        now = self._clock()
        self._count += 1
        self._is_armed = self._is_armed or now - self._last >= _QUIET_SECONDS
        self._last = now

    def typed(self) -> None:
        """A key was pressed that is no answer: whoever types words means none of their letters as one."""
        self._is_armed = False

    def sent(self) -> None:
        """A line was sent: what was typed before is over."""
        self._last = float("-inf")

    @property
    def is_armed(self) -> bool:
        return self._is_armed


def bindings(screen: "Screen", presses: Presses) -> KeyBindings:
    """The keys of this screen."""
    keys = KeyBindings()
    # Not the answer to a question of ours, but the one key that no handler takes for typing.
    ANSI_SEQUENCES.update({FOCUS_IN: Keys.CPRResponse, FOCUS_OUT: Keys.CPRResponse})
    asked = Condition(lambda: bool(screen.wants) and presses.is_armed)
    _answering(keys, screen, asked, presses.typed)
    _writing(keys, screen, ~asked & ~is_searching, presses.sent)
    _completing(keys, screen)
    _escaping(keys, screen, presses.twice())
    _steering(keys, screen)
    _stopping(keys, screen, presses.twice())
    keys.add("c-o", filter=~is_searching)(lambda _: screen.on_expand())
    _picking(keys, screen, presses)
    return keys


def _answering(keys: KeyBindings, screen: "Screen", asked: Filter, typed: Callable[[], None]) -> None:
    # Not eager: it would come before ctrl-C, before a paste, and before what the terminal itself says.
    @keys.add(Keys.Any, filter=asked)
    def _answer(event: KeyPressEvent) -> None:
        key = event.data.lower()
        if key in screen.wants and screen.pressed is not None and not screen.pressed.done():
            screen.pressed.set_result(key)
        elif len(key) == 1 and key.isprintable() and key not in screen.wants:
            typed()
            screen.input.insert_text(event.data)
            screen.hint = EARLY

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


def _escaping(keys: KeyBindings, screen: "Screen", is_second: Callable[[], bool]) -> None:
    """Esc takes back: completions, words that are asked for, what runs; twice at an idle prompt, a prompt.

    With vim's keys it ends insertion first, if there is something to edit or nothing to stop.
    """

    @keys.add("escape", filter=~is_searching)
    def _escape(event: KeyPressEvent) -> None:
        if screen.input.complete_state is not None:
            screen.input.cancel_completion()
        elif screen.is_vim and _ended_insertion(screen, event):
            screen.hint = ""
        elif screen.typed is not None and not screen.typed.done():
            screen.typed.set_result(None)
        elif screen.on_interrupt():
            screen.hint = ""
        elif is_second():
            screen.on_rewind()
        else:
            screen.hint = "Press esc again to go back to an earlier prompt."

    # A slow line may cut an arrow key in two: its first half is no escape, and its rest no words.
    @keys.add("escape", "[", Keys.Any, filter=~is_searching)
    @keys.add("escape", "O", Keys.Any, filter=~is_searching)
    def _torn(_: KeyPressEvent) -> None:
        """Neither stops anything nor writes anything."""


def _ended_insertion(screen: "Screen", event: KeyPressEvent) -> bool:
    """Go to vim's normal mode, as vim does; false if esc means something else here."""
    state, buffer = event.app.vi_state, screen.input
    if screen.wants or not (screen.input.text or not screen.working()):
        return False
    if state.input_mode == InputMode.NAVIGATION and buffer.selection_state is None and state.operator_func is None:
        return False
    if state.input_mode in {InputMode.INSERT, InputMode.REPLACE}:
        buffer.cursor_position += buffer.document.get_cursor_left_position()
    state.input_mode = InputMode.NAVIGATION
    buffer.exit_selection()
    return True


def _steering(keys: KeyBindings, screen: "Screen") -> None:
    """Keys that change how the session goes on, also while the agent works."""
    choosing = Condition(lambda: screen.input.complete_state is not None)

    @keys.add("s-tab", filter=~choosing & ~is_searching)
    def _mode(_: KeyPressEvent) -> None:
        screen.hint = screen.on_mode()

    @keys.add("c-b", filter=~is_searching)
    def _background(_: KeyPressEvent) -> None:
        hint = screen.on_background()
        if hint:
            screen.hint = hint
        else:
            screen.input.cursor_left()

    @keys.add("c-g", filter=~is_searching)
    def _edit(event: KeyPressEvent) -> None:
        screen.input.tempfile_suffix = ".md"
        event.app.create_background_task(_edited(screen))

    @keys.add(Keys.CPRResponse)
    def _focus(event: KeyPressEvent) -> None:
        """The terminal says whether it is looked at. As what it says itself, it counts as no key."""
        screen.is_focused = event.data == FOCUS_IN

    @keys.add(Keys.BracketedPaste, filter=~is_searching)
    def _paste(event: KeyPressEvent) -> None:
        screen.input.insert_text(pasted(event.data.replace("\r\n", "\n").replace("\r", "\n"), screen.input.text))


async def _edited(screen: "Screen") -> None:
    """Have the user's editor write the input; where it cannot, the input stays as it is."""
    if not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        screen.hint = "Set VISUAL or EDITOR to write in an editor."
        return
    try:
        await screen.input.open_in_editor()
    except OSError as error:
        screen.hint = f"The editor could not be started: {error}."


def pasted(text: str, before: str) -> str:
    """What a paste puts in: a path of a picture, as a dragged file gives it, is mentioned; all else stays."""
    name = text.strip().removeprefix("file://")
    if "\n" in name or before.startswith(("!", "/")):
        return text
    if name[:1] == name[-1:] and name[:1] in {"'", '"'}:
        name = name[1:-1]
    name = name.replace("\\ ", " ")
    if not os.path.isabs(os.path.expanduser(name)) or not name.lower().endswith(_PICTURES):
        return text
    if not os.path.isfile(os.path.expanduser(name)) or '"' in name:
        return text
    mention = f'@"{name}"' if " " in name else f"@{name}"
    return f"{mention} " if not before or before[-1].isspace() else f" {mention} "


def _stopping(keys: KeyBindings, screen: "Screen", is_second: Callable[[], bool]) -> None:
    @keys.add("c-c", filter=~is_searching)
    @keys.add("<sigint>")
    def _stop(_: KeyPressEvent) -> None:
        if screen.typed is not None and not screen.typed.done():
            screen.typed.set_result(None)
        elif screen.on_interrupt():
            screen.hint = ""
        elif screen.input.text:
            screen.input.reset()
        elif is_second():
            screen.leave()
        else:
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


def _picking(keys: KeyBindings, screen: "Screen", presses: Presses) -> None:
    """The keys of an open list. They are added last, so that they come before all others."""
    is_open = Condition(lambda: screen.picker is not None)

    def bind(act: Callable[["Picker"], None], *names: str) -> None:
        def press(_: KeyPressEvent) -> None:
            if screen.picker is not None:
                act(screen.picker)

        for name in names:
            keys.add(name, filter=is_open)(press)

    def take(picker: "Picker") -> None:
        if presses.is_armed:
            picker.want("take")
        else:  # it was typed before the list was seen
            screen.hint = "To choose, pause for a moment first."

    bind(lambda picker: picker.move(-1), "up", "c-p")
    bind(lambda picker: picker.move(1), "down", "c-n")
    bind(lambda picker: picker.page(-1), "pageup")
    bind(lambda picker: picker.page(1), "pagedown")
    bind(take, "enter")
    bind(lambda picker: picker.want("switch"), "tab")
    bind(lambda picker: picker.want("back"), "escape", "c-c", "<sigint>")
    # What else these do belongs to the input.
    bind(lambda _: None, "c-r", "c-s", "c-g", "c-j", "s-tab")

    @keys.add("c-d", filter=is_open)
    def _end(_: KeyPressEvent) -> None:
        if screen.input.text:
            screen.input.delete()
        elif screen.picker is not None:
            screen.picker.want("back")


def _submit(screen: "Screen") -> None:
    """The line goes to whoever waits for it: a question that wants words, or the conversation."""
    text = screen.input.text
    screen.insert()
    if screen.typed is not None and not screen.typed.done():
        screen.input.reset()
        screen.typed.set_result(text.strip())
        return
    if not text.strip():
        return
    screen.input.reset(append_to_history=True)
    screen.on_line(text.strip("\n"))
