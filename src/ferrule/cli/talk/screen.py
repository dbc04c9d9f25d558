"""The screen: what is over goes into the terminal's own scrollback, what goes on stays below, above the input.

There is one application for the whole conversation. Printing, taking the live part away and drawing it again leave in
one write, so that nothing flickers. The terminal is never asked for anything, and its alternate screen is not used.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, VerticalAlign, Window
from prompt_toolkit.layout.containers import ConditionalContainer
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.processors import TabsProcessor
from prompt_toolkit.output import ColorDepth, Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.widgets import SearchToolbar

from ferrule.cli.talk.line import Line, Spaced, cut, fitted, harmless, laid, line, painted, rows_of, wide
from ferrule.cli.talk.menu import menu_lines

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings

_FRAME_SECONDS = 0.03
_TICK_SECONDS = 0.1
_MOST_INPUT_ROWS = 8
_LEAST_LIVE_ROWS = 3


class _Held(Vt100_Output):
    """Keeps what is written until it is let go."""

    held = False

    def flush(self) -> None:
        if not self.held:
            with contextlib.suppress(OSError):  # the terminal is gone; a signal or the end of input says so too
                super().flush()

    def erase_down(self) -> None:
        """Erase from the beginning of this row. From the first cell of a window, tmux would keep what is erased."""
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")


class _Application(Application[None]):
    """Prints before it draws, and gives rows back that it no longer needs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.printing: list[str] = []

    def _redraw(self, render_as_done: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of the original
        output = self.output
        if isinstance(output, _Held):
            output.held = True
        try:
            self._make_room()
            super()._redraw(render_as_done)
        finally:
            if isinstance(output, _Held):
                output.held = False
                output.flush()

    def _make_room(self) -> None:
        last = self.renderer.last_rendered_screen
        size = self.output.get_size()
        wanted = self.layout.container.preferred_height(size.columns, size.rows).preferred
        if self.printing or (last is not None and min(wanted, size.rows) < last.height):
            self.renderer.erase(leave_alternate_screen=False)
            self.output.write_raw("".join(self.printing).replace("\n", "\r\n"))
            self.printing.clear()

    def _on_resize(self) -> None:
        """A narrower terminal has broken long rows in two: the cursor is further from the top than it was."""
        last, columns = self.renderer.last_rendered_screen, self.output.get_size().columns
        if last is not None and columns > 0:
            cursor = last.get_cursor_position(self.layout.current_window)
            more = 0
            for y in range(cursor.y + 1):
                row = last.data_buffer[y]
                used = max((x + 1 for x, cell in row.items() if cell.char.strip()), default=0)
                more += max(0, (max(used, 1) - 1) // columns) if y < cursor.y else cursor.x // columns
            if more:
                self.output.cursor_up(more)
        super()._on_resize()


class Screen:
    """What is seen and typed. Whoever talks gives it the live rows and the status, and hears lines and interrupts."""

    def __init__(
        self,
        *,
        keys: Callable[["Screen"], "KeyBindings"],
        history: "History | None" = None,
        completer: "Completer | None" = None,
        colour: bool = True,
    ) -> None:
        self.colour = colour
        self.live: Callable[[int, int], list[str]] = lambda _width, _rows: []
        self.status: Callable[[], list[Line]] = list
        self.on_line: Callable[[str], object] = lambda _text: None
        self.on_interrupt: Callable[[], bool] = lambda: False
        """Stops what runs; false where nothing does."""
        self.hint = ""
        """In the place of the status, until the next key."""
        self.offer: tuple[Line, ...] = ()
        """What a question wants to be pressed or typed."""
        self.wants: frozenset[str] = frozenset()
        """The keys that answer the question; empty where none is asked, or where words are wanted."""
        self.pressed: asyncio.Future[str] | None = None
        self.typed: asyncio.Future[str | None] | None = None
        self.input = Buffer(
            completer=completer, complete_while_typing=True, history=history, multiline=True, name="input"
        )
        self._spaced = Spaced()
        self._ticking: asyncio.Task[None] | None = None
        self.application = _Application(
            layout=Layout(self._container()),
            key_bindings=keys(self),
            output=_output(),
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            erase_when_done=True,
            min_redraw_interval=_FRAME_SECONDS,
            enable_page_navigation_bindings=False,
            mouse_support=False,
        )
        self.application.ttimeoutlen = 0.05
        self.application.timeoutlen = 0.3

    def print(self, text: str) -> None:
        """Into the scrollback, above the live part. Nothing but colour steers the terminal from here."""
        self._write(self._spaced.wrote(text))

    def _write(self, text: str) -> None:
        if self.application.is_running:
            self.application.printing.append(harmless(text))
            self.application.invalidate()
        else:
            print(harmless(text), end="", flush=True)

    def print_lines(self, *lines: Line) -> None:
        rows = self._spaced.rows(lines)
        self._write(painted(laid(rows, self.width), colour=self.colour))

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

    async def during(self, talk: Callable[[], Awaitable[int]]) -> int:
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
            await self._stop(shown, talking)
            loop.set_exception_handler(before)
        if shown.done() and not shown.cancelled() and isinstance(error := shown.exception(), Exception):
            if not isinstance(error, EOFError | OSError):  # the terminal is gone: that is a way to leave
                raise error
            return 0
        return 0 if talking.cancelled() else talking.result()

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
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            if self.live(self.width, _LEAST_LIVE_ROWS):
                self.application.invalidate()

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
                window(self._live_text),
                field,
                looking.container,
                ConditionalContainer(window(lambda: self._text(menu_lines(self.input.complete_state))), completing),
                window(self._status_text, height=1),
            ],
            align=VerticalAlign.TOP,
        )

    def _rows(self) -> int:
        return self.application.output.get_size().rows

    def _live_text(self) -> StyleAndTextTuples:
        most = max(_LEAST_LIVE_ROWS, self._rows() - _MOST_INPUT_ROWS - 4)
        rows = self.live(self.width - 1, most)
        if self.offer:
            offered = rows_of(self.offer, self.width - 1, "   ")
            text = painted((fitted(one, self.width - 1) for one in offered), colour=self.colour)
            rows = [*rows, *([""] if not rows else []), *text.split("\n")[:-1]]
        # A blank row parts it from the input; without anything live, from what was printed.
        return to_formatted_text(ANSI(harmless("\n".join([*rows, ""] if rows else []))))

    def _prefix(self, number: int, wrap: int) -> StyleAndTextTuples:
        if number or wrap:
            return [("", "  ")]
        return [("ansicyan bold" if not self.wants else "ansibrightblack", "> ")]

    def _status_text(self) -> StyleAndTextTuples:
        if self.hint:
            return self._text([line(("yellow", f"  {cut(self.hint, self.width - 3)}"))])
        room, kept = self.width - 3, list[Line]()
        for one in self.status():
            size = sum(wide(text) for _, text in one) + 3
            if size > room + 3:
                break
            kept.append(one)
            room -= size
        joined = tuple(part for at, one in enumerate(kept) for part in ((("dim", " · "),) if at else ()) + one)
        return self._text([(("dim", "  "), *joined)])

    def _text(self, lines: list[Line]) -> StyleAndTextTuples:
        text = painted((fitted(one, self.width - 1) for one in lines), colour=self.colour).rstrip("\n")
        return to_formatted_text(ANSI(harmless(text)))


def _output() -> Output:
    """Standard output, which is never asked where its cursor is: the answer would come over the line as if typed."""
    if os.name == "nt":
        return create_output(stdout=sys.stdout)
    output = _Held.from_pty(sys.stdout, term=os.environ.get("TERM"))
    output.enable_cpr = False
    return output
