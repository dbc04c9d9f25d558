"""Read the keyboard in the chat: key bindings, answers to questions, completion and input history.

Enter sends, esc Enter and ctrl-J begin a new line, esc and ctrl-C stop, ctrl-D leaves. Commands are completed
after a slash, and files of the workspace after an @. The history is a file that only the user can read.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, Filter, is_searching
from prompt_toolkit.history import History
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys

from ferrule.cli.prompts import edit, editor
from ferrule.cli.talk.picker import Picker, PickerRow, Scope
from ferrule.cli.talk.screen import TWICE_SECONDS, ChatScreen
from ferrule.cli.talk.text import BLANK, line, visible_rows, wrap_text
from ferrule.permissions import visible

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent

    from ferrule.cli.talk.text import Theme


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

    def on_key(self) -> None:
        """A key was pressed that is no answer: whoever types words means none of their letters as one."""
        self._is_armed = False

    def on_send(self) -> None:
        """A line was sent: what was typed before is over."""
        self._last = float("-inf")

    @property
    def is_armed(self) -> bool:
        return self._is_armed


def bindings(screen: "ChatScreen", presses: Presses) -> KeyBindings:
    """The keys of this screen."""
    keys = KeyBindings()
    # Not the answer to a question of ours, but the one key that no handler takes for typing.
    ANSI_SEQUENCES.update({FOCUS_IN: Keys.CPRResponse, FOCUS_OUT: Keys.CPRResponse})
    asked = Condition(lambda: bool(screen.wants) and presses.is_armed)
    _bind_answers(keys, screen, asked, presses.on_key)
    _bind_input(keys, screen, ~asked & ~is_searching, presses.on_send)
    _bind_completion(keys, screen)
    _bind_escape(keys, screen, presses.twice())
    _bind_controls(keys, screen)
    _bind_stop(keys, screen, presses.twice())
    keys.add("c-o", filter=~is_searching)(lambda _: screen.on_expand())
    _bind_picker(keys, screen, presses)
    return keys


def _bind_answers(keys: KeyBindings, screen: "ChatScreen", asked: Filter, typed: Callable[[], None]) -> None:
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


def _bind_input(keys: KeyBindings, screen: "ChatScreen", free: Filter, sent: Callable[[], None]) -> None:
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


def _bind_completion(keys: KeyBindings, screen: "ChatScreen") -> None:
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


def _bind_escape(keys: KeyBindings, screen: "ChatScreen", is_second: Callable[[], bool]) -> None:
    """Esc takes back: completions, words that are asked for, what runs; twice at an idle prompt, a prompt.

    With vim's keys it ends insertion first, if there is something to edit or nothing to stop.
    """

    @keys.add("escape", filter=~is_searching)
    def _escape(event: KeyPressEvent) -> None:
        if screen.input.complete_state is not None:
            screen.input.cancel_completion()
        elif screen.is_vim and _end_insertion(screen, event):
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


def _end_insertion(screen: "ChatScreen", event: KeyPressEvent) -> bool:
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


def _bind_controls(keys: KeyBindings, screen: "ChatScreen") -> None:
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
        event.app.create_background_task(_edit_input(screen))

    @keys.add(Keys.CPRResponse)
    def _focus(event: KeyPressEvent) -> None:
        """The terminal says whether it is looked at. As what it says itself, it counts as no key."""
        screen.is_focused = event.data == FOCUS_IN

    @keys.add(Keys.BracketedPaste, filter=~is_searching)
    def _paste(event: KeyPressEvent) -> None:
        screen.input.insert_text(expand_paste(event.data.replace("\r\n", "\n").replace("\r", "\n"), screen.input.text))


async def _edit_input(screen: "ChatScreen") -> None:
    """Have the user's editor write the input; where it cannot, the input stays as it is."""
    if not (os.environ.get("VISUAL") or os.environ.get("EDITOR")):
        screen.hint = "Set VISUAL or EDITOR to write in an editor."
        return
    try:
        await screen.input.open_in_editor()
    except OSError as error:
        screen.hint = f"The editor could not be started: {error}."


def expand_paste(text: str, before: str) -> str:
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


def _bind_stop(keys: KeyBindings, screen: "ChatScreen", is_second: Callable[[], bool]) -> None:
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


def _bind_picker(keys: KeyBindings, screen: "ChatScreen", presses: Presses) -> None:
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


def _submit(screen: "ChatScreen") -> None:
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


_MOST_ECHOED_ROWS = 40
"""Of a long paste that was sent, more would only push the conversation off the screen."""


class Keyboard(ChatScreen):
    """A screen, and who sits at it."""

    steer = True
    composes = True

    def __init__(
        self, *, history: "History | None" = None, completer: "Completer | None" = None, colour: "Theme | bool" = True
    ) -> None:
        self._presses = Presses()
        self._one_at_a_time = asyncio.Lock()
        """A list that is open is not in the way of a question, nor does what filters it answer one."""
        self._aside: Document | None = None
        """What was in the input before a question took it."""
        super().__init__(
            keys=lambda screen: bindings(screen, self._presses), history=history, completer=completer, colour=colour
        )
        self.application.key_processor.before_key_press += lambda _: self._press()

    def _press(self) -> None:
        self._presses.press()
        self.pressed_at = time.monotonic()
        is_early = bool(self.wants) and not self._presses.is_armed
        self.hint = EARLY if is_early else ""

    def echo(self, text: str) -> None:
        first, *rest = wrap_text(visible_rows(text, strict=False), self.width - 3)
        shown = rest if len(rest) <= _MOST_ECHOED_ROWS else rest[: _MOST_ECHOED_ROWS - 1]
        more = [line(("dim", f"  … {len(rest) - len(shown):,} more rows"))] if len(shown) < len(rest) else []
        rows = [line("  ", ("bold", row)) for row in shown]
        self.print_lines(BLANK, line(("cyan bold", "> "), ("bold", first)), *rows, *more, BLANK)

    def ready(self) -> None:
        """The input is always there; what stands below it may be new."""
        self.refresh()

    def put_back(self, text: str, about: str = "") -> None:  # noqa: ARG002 - a terminal without an input needs it
        """Into the input again, before what is being typed."""
        below = self.input.text if self._aside is None else self._aside.text
        document = Document(f"{text}\n{below}" if below else text)
        if self._aside is None:
            self.input.document = document
        else:
            self._aside = document
        self.refresh()

    async def key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool = False) -> str:
        async with self._one_at_a_time:
            return await self._key(words, keys, again=again)

    async def _key(self, words: str, keys: Sequence[tuple[str, str]], *, again: bool) -> str:
        pressed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if not again:
            _forget_typed()
        self.offer = (line(("yellow bold", f"  {words}")), *(line(("bold", f"  [{key}]"), rest) for key, rest in keys))
        self.insert()  # in vim's normal mode, letters would edit and answer nothing
        self.pressed, self.wants = pressed, frozenset(key for key, _ in keys)
        if not again:
            self._presses.ask()
        self.refresh()
        try:
            return await pressed
        finally:
            self.offer, self.pressed, self.wants = (), None, frozenset()
            self.refresh()

    async def words(self, offer: str, start: str = "") -> str | None:
        async with self._one_at_a_time:
            return await self._in_words(offer, start)

    async def _in_words(self, offer: str, start: str) -> str | None:
        typed: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        with self._other_input(start):
            self.offer = (line(("yellow bold", f"  {offer.strip()}")),)
            self.typed = typed
            self.refresh()
            try:
                return await typed
            finally:
                self.offer, self.typed = (), None

    async def pick(
        self, title: str, rows: Sequence[PickerRow], *, other: Scope | None = None, query: str = "", at: str = ""
    ) -> str | None:
        async with self._one_at_a_time:
            return await self._run_picker(Picker(title, rows, other=other, query=query, at=at), query)

    async def _run_picker(self, picker: Picker, query: str) -> str | None:
        _forget_typed()

        def sift(_: object) -> None:
            picker.filter(self.input.text)

        with self._other_input(query):
            self.picker = picker
            picker.on_change = self.refresh
            self.input.on_text_changed += sift
            self._presses.ask()
            self.refresh()
            try:
                return await picker.wait_for_choice()
            finally:
                self.input.on_text_changed -= sift
                self.picker = None

    @contextlib.contextmanager
    def _other_input(self, text: str = "") -> Iterator[None]:
        """The input is for something else meanwhile; what was in it comes back."""
        self._aside = self.input.document
        self.input.reset(Document(text))
        self.insert()
        try:
            yield
        finally:
            before, self._aside = self._aside, None
            self.input.reset(before)
            self.refresh()

    async def edit(self, text: str, suffix: str) -> str | None:

        if command := editor():
            try:
                return await run_in_terminal(lambda: edit(text, suffix, command), in_executor=True)
            except OSError as error:
                self.print_lines(line(("yellow", f"  The editor could not be started: {error}.")))
        return await self.words("Edit it. Enter is done, esc Enter is a new line, ctrl-C goes back:", text.rstrip("\n"))


def _forget_typed() -> None:
    """What was typed before a question was shown is no answer to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # Windows; no terminal
        import termios

        if sys.stdin.isatty():
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


_MOST = 40
_MOST_FILES = 50_000
_FRESH_SECONDS = 5.0
_FRESH_VALUES_SECONDS = 2.0


class InputCompleter(Completer):
    """Names after a slash at the beginning, files after an @ anywhere."""

    def __init__(
        self,
        commands: Callable[[], Sequence[tuple[str, str]]],
        values: Callable[[str], Sequence[str]],
        files: Callable[[], Awaitable[Sequence[str]]],
    ) -> None:
        """`commands` with what each does, `values` that a command takes, `files` of the workspace."""
        self._commands = commands
        self._values = values
        self._files = files
        self._listed: Sequence[str] = ()
        self._listed_at = -_FRESH_SECONDS
        self._last: tuple[str, float, Sequence[str]] = ("", 0.0, ())

    def get_completions(self, document: "Document", complete_event: "CompleteEvent") -> Iterable[Completion]:  # noqa: ARG002 - the original's
        """Only those that need no waiting."""
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        name, blank, rest = text[1:].partition(" ")
        if blank:
            for value in self._fetch_values(name):
                if value.startswith(rest) and value != rest:
                    yield Completion(value, start_position=-len(rest), display=visible(value))
            return
        seen = {name}
        for one, about in self._commands():
            if one.startswith(name) and one not in seen:
                seen.add(one)
                yield Completion(f"/{one}", start_position=-len(text), display=f"/{one}", display_meta=about)

    def _fetch_values(self, name: str) -> Sequence[str]:
        """What a command takes; some of it is read from files, which is not done for every key."""
        now = time.monotonic()
        known, at, found = self._last
        if known != name or now - at >= _FRESH_VALUES_SECONDS:
            found = self._values(name)
            self._last = (name, now, found)
        return found

    async def get_completions_async(
        self, document: "Document", complete_event: "CompleteEvent"
    ) -> AsyncGenerator[Completion, None]:
        for one in self.get_completions(document, complete_event):
            yield one
        wanted = find_mention(document.text_before_cursor)
        if wanted is None:
            return
        now = time.monotonic()
        if now - self._listed_at >= _FRESH_SECONDS:
            self._listed, self._listed_at = (await self._files())[:_MOST_FILES], now
        for path in rank_paths(wanted, self._listed):
            yield Completion(f"@{path}", start_position=-len(wanted) - 1, display=visible(path))


def find_mention(text: str) -> str | None:
    """The beginning of a path after the last @, where the cursor is still in it."""
    word = text.rsplit(None, 1)[-1] if text and not text[-1].isspace() else ""
    return word[1:] if word.startswith("@") else None


def rank_paths(wanted: str, paths: Sequence[str]) -> list[str]:
    """The paths that begin so, or whose names do, or that have it in them; short ones first."""
    low = wanted.lower()
    found: list[tuple[int, int, str]] = []
    for path in paths:
        lower = path.lower()
        if not path.isprintable() or low not in lower or path == wanted:
            continue
        name = lower.rsplit("/", 1)[-1]
        rank = 0 if lower.startswith(low) else 1 if name.startswith(low) else 2
        found.append((rank, len(path), path))
    return [path for _, _, path in sorted(found)[:_MOST]]


_MOST_LINES = 2000
_MOST_BYTES = 1 << 20
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Typed(History):
    """One JSON text a line, so that several lines stay one. Where the file cannot be used, nothing is remembered."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._path = os.path.join(folder, "typed.jsonl")

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        found: list[str] = []
        for raw in self._rows():
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                found.append(msgspec.json.decode(raw, type=str))
        return reversed(found[-_MOST_LINES:])

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            self._shorten()
            descriptor = os.open(self._path, _APPEND, 0o600)
            try:
                os.write(descriptor, msgspec.json.encode(string.encode(errors="replace").decode()) + b"\n")
            finally:
                os.close(descriptor)

    def _rows(self) -> list[bytes]:
        try:
            descriptor = os.open(self._path, _READ)
        except OSError:
            return []
        with os.fdopen(descriptor, "rb") as file, contextlib.suppress(OSError):
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _MOST_BYTES))
            return file.read(_MOST_BYTES).splitlines()
        return []

    def _shorten(self) -> None:
        """Keep the newer half of a file that has grown too long."""
        try:
            if os.stat(self._path).st_size <= _MOST_BYTES:
                return
        except FileNotFoundError:
            return
        rows = self._rows()
        draft = f"{self._path}.{os.getpid()}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(b"".join(row + b"\n" for row in rows[len(rows) // 2 :]))
        os.replace(draft, self._path)
