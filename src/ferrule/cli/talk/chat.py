"""Run the chat: send input to the agent or to a command, show what happens, and say goodbye at the end.

The goodbye names the conversation, its cost, the files that it changed, and how to continue it.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from ferrule.agent import AgentEvent
from ferrule.agent.attachments import Prompt, names_of, with_contents, words_of_parts
from ferrule.checkpoints.undo import files_of
from ferrule.cli.talk import commands, own_commands
from ferrule.cli.talk import own_commands as bang
from ferrule.cli.talk.commands import Leave, Next, SessionRestart
from ferrule.cli.talk.events import ChatTranscript, FullOutput, Piece, Prose, TerminalPicture, dollars, tokens
from ferrule.cli.talk.markdown import Drawer
from ferrule.cli.talk.screen import TalkFrontend, pager
from ferrule.cli.talk.status import MOST_COLUMNS, OPENING, Beside, Live, Tally, home_short, status, tail
from ferrule.cli.talk.text import PLAIN, Line, Theme, find_theme, last_theme, line, rows_of, sentence, wide, wrap_text
from ferrule.cli.tasks import describe_running, left_running
from ferrule.core import __version__
from ferrule.core.content import Image
from ferrule.core.errors import FerruleError
from ferrule.core.services import Planning
from ferrule.files.journal import Journal
from ferrule.models.catalog import about
from ferrule.tools.skills import Skills

if TYPE_CHECKING:
    from ferrule.files.journal import JournalEntry
    from ferrule.models import Prices
    from ferrule.output.store import Stored


_HEAD_COLUMNS = 12


class Farewell(msgspec.Struct, frozen=True):
    """What is known of the conversation that is left."""

    thread: str = ""
    """Empty if nothing was said."""
    is_kept: bool = True
    cost: float | None = None
    used_tokens: int = 0
    files: tuple[str, ...] = ()
    stopped: str = ""
    """What ran in the background and was stopped."""

    def after(self, session: Any, *, is_said: bool) -> "Farewell":
        """The farewell behind a session. `is_said`: the user has said something in it."""
        agent, engine = session.agent, session.engine
        if not is_said and agent.thread != self.thread:
            return Farewell()

        journal = engine.need(Journal)
        own = (entry for entry in journal.entries() if journal.wrote(entry))
        usage = agent.spent.usage
        return Farewell(
            thread=str(agent.thread),
            is_kept=bool(engine.settings.threads.keep),
            cost=agent.spent.cost,
            used_tokens=usage.input + usage.output,
            files=tuple(map(engine.jail.display_path, find_changed_files(own))),
            stopped=describe_running(engine),
        )

    def lines(self, width: int) -> list[Line]:
        """It in rows of so many columns; none if nothing was said."""
        if not self.thread:
            return []
        used = f"{tokens(self.used_tokens)} tokens" if self.used_tokens else ""
        cost = " · ".join(fact for fact in (dollars(self.cost), used) if fact)
        rows = [("thread", self.thread), *([("cost", cost)] if cost else [])]
        if self.files:
            rows.append(("changed", _names(self.files, width - _HEAD_COLUMNS)))
        if self.stopped:
            rows.append(("stopped", self.stopped))
        on = f"ferrule --continue, or ferrule --resume {self.thread}" if self.is_kept else "not kept (threads.keep)"
        rows.append(("go on", on))
        return [sentence(("dim", f"  {head:<{_HEAD_COLUMNS - 2}}"), words) for head, words in rows]


def find_changed_files(entries: "Iterable[JournalEntry]") -> list[str]:
    """The files that these writes together have left another than they found it, in the order of the first write."""
    first: dict[str, object] = {}
    last: dict[str, object] = {}
    for entry in entries:
        named = frozenset(files_of(entry))
        sides: list[tuple[str, object, object]] = [(one.path, one.before, one.after) for one in entry.files]
        sides += [(one.path, one.before, one.after) for one in entry.nodes if one.path in named]
        for path, before, after in sides:
            first.setdefault(path, _content(before))
            last[path] = _content(after)
    return [path for path, before in first.items() if before != last[path]]


def _content(side: Any) -> object:
    """What tells one content from another; None for no file."""
    content = getattr(side, "content", None)
    return content or side


def _names(files: tuple[str, ...], width: int) -> str:
    """How many there are, and their names as far as they fit into a row."""
    words = f"{len(files):,} file{'s' * (len(files) > 1)}"
    for at, name in enumerate(files):
        more = f" and {len(files) - at - 1} more" if at + 1 < len(files) else ""
        longer = f"{words}{', ' if at else ': '}{name}"
        if wide(longer + more) > width:
            left = len(files) - at
            return words if not at else f"{words} and {left} more"
        words = longer
    return words


_MODES = ("default", "acceptEdits", "plan")
"""Those that shift-tab goes through; the others are named with `/permissions`."""


class ChatSession(Protocol):
    """What an open session gives."""

    @property
    def agent(self) -> Any: ...

    @property
    def engine(self) -> Any: ...

    def load(self, name: str) -> Any:
        """A model by its name."""
        ...

    def set_mode(self, name: str) -> str:
        """Have another permission mode hold; which one does."""
        ...

    def rename(self, title: str) -> None:
        """Give the conversation the user's own title."""
        ...

    async def copy(self) -> str:
        """Copy the conversation; the id of the copy."""
        ...


Opening = Callable[[SessionRestart, Callable[[AgentEvent], None]], AbstractAsyncContextManager[ChatSession]]
"""Opens a session as the last one was but for what is said, and tells what happens in it."""


class Chat:
    """One place to talk; the sessions behind it may change."""

    session: ChatSession

    def __init__(self, front: TalkFrontend, opening: Opening, *, first: SessionRestart) -> None:
        self.front = front
        self.lines = ChatTranscript(time.monotonic)
        self.lines.expands = front.steer
        self._opening = opening
        self._next = first
        self._typed: asyncio.Queue[tuple[str, bool]] = asyncio.Queue()
        """Lines, each with whether it came from the composer as it is: only those may run commands."""
        self.typed_calls = 0
        self.tally = Tally(time.monotonic, self._prices)
        self._working: asyncio.Future[Any] | None = None
        self._asides: set[asyncio.Task[None]] = set()
        self._early: list[AgentEvent] = []
        self._thread = ""
        self._chosen = first.dialect
        """The dialect that the user has asked for, if any."""
        self.named_mode = first.permission_mode
        """The permission mode that they have named, if any."""
        self._was: SessionRestart | None = None
        """How the last session was when it was left; None for the first one."""
        self._stopped = ""
        """What was stopped with the last session, as a sentence."""
        self._said = False
        """Was anything said in this conversation, here?"""
        self.answer = ""
        """`yes` or `deny`, if the user has answered all questions about calls beforehand."""
        self.farewell = Farewell()
        self._beside_us = Beside(time.monotonic)
        self._prompts_before = 0
        self._is_open = self._is_paging = False
        self._live = Live(self.lines, self._tail, time.monotonic, colour=front.colour)
        front.live = self._live.rows
        self._live.is_asked = lambda: front.asks
        front.status = self._status
        front.working = self._is_working
        front.on_line = self._on_line
        front.on_interrupt = self._interrupt
        front.on_rewind = self._rewind
        front.on_mode = self._next_mode
        front.on_background = self._send_back
        front.on_expand = self._expand

    async def talk(self) -> int:
        """Until the user leaves."""
        held: SessionRestart | None = None
        while True:
            entered = False
            try:
                async with self._opening(self._next, self.show) as self.session:
                    entered = True
                    again = await self._with_session()
                    held = self._was
            except FerruleError as error:
                if held is None or entered:
                    raise
                # It was only the change that could not be made: on with what was.
                self.note(str(error))
                again, held = held, None
            if again is None:
                return 0
            self._next = again

    async def _with_session(self) -> SessionRestart | None:
        self._is_open = True
        settings = self.session.engine.settings.chat
        self.use_theme(last_theme(settings.theme))
        self.front.adopt(settings, self.session.engine.jail.folder)
        self.lines.cwd = self.session.engine.jail.folder
        again: SessionRestart | None = None
        try:
            self._greet()
            again = await self._converse()
        finally:
            self._is_open = False  # before it is closed: nobody looks into it from here on
            self._stopped = left_running(self.session.engine, "")
            self.farewell = self.farewell.after(self.session, is_said=self._has_said())
            if self._stopped and (again is not None or not self.farewell.thread):
                self.note(self._stopped)
        return again

    def say(self, *lines: Line) -> None:
        self.front.print_lines(*lines)
        self.lines.mark_printed("blank" if lines and not lines[-1] else "note")

    def note(self, sentence: str) -> None:
        """Something to know, in as many rows as it takes."""
        self.say(*(line(("dim", f"  {row}")) for row in wrap_text(sentence, self.front.width - 4)))

    @cached_property
    def _drawer(self) -> "Drawer":

        return Drawer(colour=self.front.colour, steer=self.front.steer)

    def _tail(self, source: str, width: int, most_rows: int) -> list[str]:
        return self._drawer.tail(source, width, most_rows)

    def markdown(self, source: str, *, dim: bool = False) -> str:
        return self._drawer.markdown(source, min(self.front.width - 1, MOST_COLUMNS), dim=dim)

    def mode(self) -> str:
        """The permission mode, as the user calls it."""
        engine = self.session.engine
        return "plan" if engine.need(Planning).is_on else str(engine.policy.standing.name)

    def resume_id(self) -> str:
        """What a session that is opened again goes on with: this conversation, if anything was said."""
        agent = self.session.agent
        # One that was rewound to its beginning still has what it has left.
        return str(agent.thread) if agent.turns or agent.talk.past.number else ""

    def move(self, thread: str) -> None:
        """What was said here is in this thread too: it is not shown again when the session goes on there."""
        self._thread = thread

    async def stoppable(self, work: Awaitable[Any], doing: str = "") -> Any:
        """Wait for something that ctrl-C stops; None where it did."""
        self._working = asyncio.ensure_future(work)
        try:
            with self._live.show_activity(doing):
                await asyncio.wait({self._working})
            return None if self._working.cancelled() else self._working.result()
        finally:
            if not self._working.done():
                self._working.cancel()
                await asyncio.wait({self._working})
            self._working = None

    def show(self, event: AgentEvent) -> None:
        """Something happened."""
        if not self._is_open:
            self._early.append(event)  # the greeting comes first
            return
        if bang.is_aside(event):
            return
        pieces = self.lines.feed(event)
        if not bang.is_typed(event):
            self._print(pieces)
        if alarm := self.tally.feed(event):
            self._print(self.lines.render_warning(alarm))
        self.front.refresh()

    def _print(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, Prose):
                self.front.print(self.markdown(piece.source, dim=piece.dim))
            elif isinstance(piece, TerminalPicture):
                self.front.draw(piece.image)
            else:
                self.front.print_lines(piece)

    def _greet(self) -> None:
        agent, engine, was = self.session.agent, self.session.engine, self._was
        if not self._thread:
            head = [line(("bold", "Ferrule "), ("dim", __version__), ("dim", " · "), agent.model.name)]
            if why := self._why_model():
                head.append(line(("dim", why)))
            self.say(
                *rows_of(head, self.front.width, " "),
                sentence(
                    ("dim", f"{home_short(engine.jail.folder)} · /help lists commands, ctrl-C stops, ctrl-D leaves")
                ),
            )
        if was is not None and was.dialect != engine.dialect.name:
            self.note(f"The dialect is {engine.dialect.name} from now on.")
        if was is not None and was.permission_mode != self.mode():
            self.note(f"The permission mode is {self.mode()} from now on.")
        if agent.turns and agent.thread != self._thread:
            past = agent.talk.past
            typed = {mark.at: past.text(mark.number) for mark in past.marks}
            self._print(tail(agent.turns, engine.jail.folder, typed, past.written))
        elif not agent.turns and self._said and self._thread not in {"", agent.thread}:
            self.note("A new conversation.")
        if self._stopped and agent.thread == self._thread:
            agent.steer(f"[The session was opened again. {self._stopped}]", by_user=False)
        self._thread, self._said = agent.thread, False
        self._prompts_before = agent.talk.past.number
        early, self._early = self._early, []
        for event in early:
            self.show(event)

    def _why_model(self) -> str:
        why = getattr(self.session, "why_model", "")
        return f" ({why})" if why else ""

    async def _converse(self) -> SessionRestart | None:
        """Lines of the user, until one of them leads elsewhere; None where they go."""
        while True:
            self.front.ready()
            text, is_typed = await self._typed.get()
            self._live.ahead.remove(text)
            if is_typed and (own := bang.split(text)) is not None:
                await self.stoppable(self._bang(text, *own), "running it; esc stops it")
            elif (asked := commands.split(text)) is not None:
                led = await self._command(*asked)
                if isinstance(led, Leave):
                    return None
                if led is not None:
                    return self._complete_restart(led)
            else:
                self.front.echo(text)
                self.lines.mark_printed()
                self._said = True
                await self.stoppable(self.session.agent.run(await self._prompt(text), written=text))
                self._put_back()

    async def _bang(self, text: str, command: str, outside: bool) -> None:  # noqa: FBT001 - `bang.split` gives both
        self.front.echo(text)
        self.lines.mark_printed()
        await bang.run(self, command, outside=outside)

    async def _prompt(self, text: str) -> Prompt:
        """What the user typed, with what it mentions. What cannot be put in is only named."""
        found = await with_contents(text, self.session.engine, self.session.agent.model)
        for refused in found.refused:
            self.note(refused)
        files = () if isinstance(found.prompt, str) else names_of(found.prompt)
        if files:
            self.note(f"Shown to the model: {'; '.join(files)}.")
            self._print([TerminalPicture(part) for part in found.prompt if isinstance(part, Image)])
        return found.prompt

    async def ask(self, prompt: str, typed: str) -> None:
        """Have the agent work on a prompt of ours, for which the user has typed this."""
        self._said = True
        await self.stoppable(self.session.agent.run(prompt, written=typed))
        self._put_back()

    def _prices(self, model: str) -> "Prices | None":
        """What is known of a model's prices, by its whole name."""
        if not self._is_open:
            return None
        if model == self.session.agent.model.name:
            return cast("Prices | None", self.session.agent.model.prices)
        return about(model.partition(":")[2], self.session.engine.settings.models.known).prices

    def _put_back(self) -> None:
        """What the model has not heard goes back to whoever wrote it: it may not be meant any more."""
        talk, unheard = self.session.agent.talk, self.lines.queued
        if unheard:
            talk.steering = [parts for parts in talk.steering if words_of_parts(parts) not in unheard]
            self.lines.queued = []
            self.front.put_back("\n".join(unheard))

    def _complete_restart(self, led: SessionRestart) -> SessionRestart:
        """What was not said stays as it was."""
        spoken, model = self.session.engine.dialect.name, self.session.agent.model.name
        self._was = SessionRestart(self.resume_id(), spoken, self.mode(), model)
        self._chosen = led.dialect or self._chosen
        # A new conversation speaks what its model knows best, unless the user has said otherwise. Plan mode stays on.
        dialect = led.dialect or (spoken if led.resume else self._chosen)
        self.named_mode = led.permission_mode or self.named_mode
        goes_elsewhere = bool(led.resume) and led.resume != self.resume_id()
        # Where the user has named no mode, another conversation that was left in plan mode plans on.
        is_open = goes_elsewhere and self.named_mode is None and self.mode() != "plan"
        return SessionRestart(led.resume, dialect, led.permission_mode or (None if is_open else self.mode()), model)

    async def _command(self, name: str, rest: str) -> Next:
        self.front.echo(f"/{name} {rest}".rstrip())
        self.lines.mark_printed()
        # A file's name stands before the beginning of a command of ours, never before its whole name.
        is_own = name not in commands.commands() and name in dict(own_commands.completions(self))
        found = None if is_own else commands.find_command(name)
        try:
            if found is None:
                await self._unknown(name, rest)
            elif rest and not found.takes:
                self.note(f"/{name} takes nothing behind it, so nothing was done.")
            else:
                return await found.run(self, rest)
        except FerruleError as error:
            self.note(str(error))
        return None

    async def _unknown(self, name: str, rest: str) -> None:
        if await own_commands.start(self, name, rest):
            self._put_back()
        elif any(one == name for one, _ in self.skills()):
            self.submit_line(f"Use the skill {name}{': ' if rest else '.'}{rest}")
        elif file := own_commands.find_untrusted(self, name):
            self.note(f"/{name} is in {file}, which is not trusted: look at it, then `ferrule permissions trust`.")
        else:
            self.note(commands.unknown(name))

    def skills(self) -> list[tuple[str, str]]:
        """The skills that a user may start by name, with what each is for."""
        if not self._is_open:
            return []

        try:
            found = self.session.engine.need(Skills).all()
        except (TypeError, FerruleError):
            return []
        return [(one.name, one.description) for one in found if one.for_user and one.for_model]

    def _on_line(self, text: str) -> None:
        """The user has sent this from the composer."""
        own = bang.split(text) if self.front.composes else None
        if own is not None and self._is_open and self.session.agent.is_running:
            self._beside_it(self._bang(text, *own))
        else:
            self.submit_line(text, is_typed=self.front.composes)

    def submit_line(self, text: str, *, is_typed: bool = False) -> None:
        """A line was sent, or stands for what was."""
        if not self._is_open or not self.session.agent.is_running:
            self._typed.put_nowait((text, is_typed))
            self._live.ahead.append(text)
        elif (asked := commands.split(text)) is not None:
            self._beside(*asked)
        else:
            self.lines.queued.append(text)
            self.session.agent.steer(text)
            self.front.refresh()

    def _beside(self, name: str, rest: str) -> None:
        """A command while the agent works."""
        found = commands.find_command(name)
        if found is not None and found.run is commands.leave:
            self.front.leave()
        elif found is None or found.while_running or (found.looks_alone and not rest):
            self._beside_it(self._aside(name, rest))
        else:
            self.note(f"/{name} can be used when the agent is done; ctrl-C stops it.")

    def _beside_it(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    def _rewind(self) -> None:
        if self._is_open and not self.session.agent.is_running:
            self.submit_line("/rewind")

    def _next_mode(self) -> str:
        """The permission mode after this one, inside the running session."""
        if not self._is_open:
            return ""
        now = self.mode()
        wanted = _MODES[(_MODES.index(now) + 1) % len(_MODES)] if now in _MODES else _MODES[0]
        try:
            holds = self.session.set_mode(wanted)
        except FerruleError as error:
            return str(error)
        self.named_mode = wanted
        return f"The permission mode is {holds} from now on."

    def _send_back(self) -> str:
        count = self.session.engine.background() if self._is_open else 0
        return f"{count} command{'s' * (count > 1)} went to the background: /tasks lists them." if count else ""

    async def _aside(self, name: str, rest: str) -> None:
        await self._command(name, rest)

    def _expand(self) -> None:
        """All that the last calls came to, in a pager."""
        if self.lines.wholes and not self._is_paging:
            task = asyncio.ensure_future(self._page(self.lines.wholes))
            self._asides.add(task)
            task.add_done_callback(self._asides.discard)

    async def _page(self, wholes: list[FullOutput]) -> None:
        self._is_paging = True
        try:
            every = [await self._pieces(one) for one in (wholes if pager() else wholes[:1])]
            await self.front.page(itertools.chain.from_iterable(every))
        finally:
            self._is_paging = False

    async def _pieces(self, whole: FullOutput) -> Iterable[str]:
        """The call, and all that is kept of what it came to."""
        try:
            stored = await self.session.engine.output(whole.output_id) if whole.output_id and self._is_open else None
        except FerruleError as error:
            return f"{whole.head}\n\n", whole.text, f"\n{error}\n\n"
        return itertools.chain([f"{whole.head}\n\n"], [whole.text] if stored is None else _pages(stored), ["\n\n"])

    def _interrupt(self) -> bool:
        if self._is_open and self.session.agent.is_running:
            self.session.agent.interrupt()
            return True
        if self._working is not None and not self._working.done():
            self._working.cancel()
            return True
        return False

    def _status(self, width: int) -> list[Line]:
        if not self._is_open:
            return OPENING
        agent, engine = self.session.agent, self.session.engine
        return status(agent, engine, self.mode(), answer=self.answer, beside=self._beside_us, width=width)

    def _has_said(self) -> bool:
        """Has the user said something in this session?"""
        return bool(self.session.agent.talk.past.number > self._prompts_before)

    def _is_working(self) -> bool:
        is_waited_for = self._working is not None and not self._working.done()
        return is_waited_for or (self._is_open and self.session.agent.is_running)

    def use_theme(self, name: str) -> Theme:
        """Draw in the colours of this theme from now on; which one it came to be."""
        found = find_theme(name) if self.front.steer else PLAIN
        self.front.colour = self._live.colour = found
        self.__dict__.pop("_drawer", None)  # made anew, in the new colours
        return found


def _pages(stored: "Stored") -> Iterator[str]:
    offset: int | None = 0
    while offset is not None:
        page = stored.read(offset, 1 << 20)
        yield page.text
        offset = page.next_offset
