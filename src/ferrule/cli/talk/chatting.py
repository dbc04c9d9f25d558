"""The conversation itself: what is typed goes to the agent or is a command, what happens is shown."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from ferrule.agent.attachments import Prompt, with_mentions, words_of_parts
from ferrule.agent.events import AgentEvent
from ferrule.cli.leaving import left_running
from ferrule.cli.talk import commands
from ferrule.cli.talk.commands import Again, Leave, Next
from ferrule.cli.talk.front import Front
from ferrule.cli.talk.line import Line, line, sentence, wrapped
from ferrule.cli.talk.lines import Lines, Piece, Prose
from ferrule.cli.talk.live import MOST_COLUMNS, Live
from ferrule.cli.talk.status import OPENING, home_short, status
from ferrule.cli.talk.tail import tail
from ferrule.core.errors import ConfigError, FerruleError
from ferrule.core.planning import Planning

if TYPE_CHECKING:
    from ferrule.cli.talk.markdown import Drawer


class Session(Protocol):
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


Opening = Callable[[Again, Callable[[AgentEvent], None]], AbstractAsyncContextManager[Session]]
"""Opens a session as the last one was but for what is said, and tells what happens in it."""


class Chat:
    """One place to talk; the sessions behind it may change."""

    session: Session

    def __init__(self, front: Front, opening: Opening, *, first: Again) -> None:
        self.front = front
        self.lines = Lines(time.monotonic)
        self._opening = opening
        self._next = first
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._working: asyncio.Future[Any] | None = None
        self._asides: set[asyncio.Task[None]] = set()
        self._early: list[AgentEvent] = []
        self._thread = ""
        self._chosen = first.dialect
        """The dialect that the user has asked for, if any."""
        self.named_mode = first.permission_mode
        """The permission mode that they have named, if any."""
        self._was: Again | None = None
        """How the last session was when it was left; None for the first one."""
        self._stopped = ""
        """What was stopped with the last session, as a sentence."""
        self._said = False
        """Was anything said in this conversation, here?"""
        self._is_open = False
        self._live = Live(self.lines, self._tail, time.monotonic, colour=front.colour)
        front.live = self._live.rows
        front.status = self._status
        front.on_line = self.heard
        front.on_interrupt = self._interrupt

    async def talk(self) -> int:
        """Until the user leaves."""
        held: Again | None = None
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

    async def _with_session(self) -> Again | None:
        self._is_open = True
        try:
            self._greet()
            return await self._converse()
        finally:
            self._is_open = False  # before it is closed: nobody looks into it from here on
            self._stopped = left_running(self.session.engine, "")
            if self._stopped:
                self.note(self._stopped)

    def say(self, *lines: Line) -> None:
        self.front.print_lines(*lines)
        self.lines.printed("blank" if lines and not lines[-1] else "note")

    def note(self, sentence: str) -> None:
        """Something to know, in as many rows as it takes."""
        self.say(*(line(("dim", f"  {row}")) for row in wrapped(sentence, self.front.width - 4)))

    @cached_property
    def _drawer(self) -> "Drawer":
        from ferrule.cli.talk.markdown import Drawer  # which takes as long to load as the prompt does without it

        return Drawer(colour=self.front.colour, steer=self.front.steer)

    def _tail(self, source: str, width: int, most_rows: int) -> list[str]:
        return self._drawer.tail(source, width, most_rows)

    def markdown(self, source: str, *, dim: bool = False) -> str:
        return self._drawer.markdown(source, min(self.front.width - 1, MOST_COLUMNS), dim=dim)

    def mode(self) -> str:
        """The permission mode, as the user calls it."""
        engine = self.session.engine
        return "plan" if engine.need(Planning).is_on else str(engine.policy.standing.name)

    def going_on(self) -> str:
        """What a session that is opened again goes on with: this conversation, if anything was said."""
        agent = self.session.agent
        # One that was rewound to its beginning still has what it has left.
        return str(agent.thread) if agent.turns or agent.talk.past.number else ""

    async def stoppable(self, work: Awaitable[Any], doing: str = "") -> Any:
        """Wait for something that ctrl-C stops; None where it did."""
        self._working = asyncio.ensure_future(work)
        try:
            with self._live.doing(doing):
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
        self._print(self.lines.feed(event))
        self.front.refresh()

    def _print(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, Prose):
                self.front.print(self.markdown(piece.source, dim=piece.dim))
            else:
                self.front.print_lines(piece)

    def _greet(self) -> None:
        agent, engine, was = self.session.agent, self.session.engine, self._was
        if not self._thread:
            from ferrule.core.version import __version__

            self.say(
                line(("bold", "Ferrule "), ("dim", __version__), ("dim", " · "), agent.model.name),
                sentence(
                    ("dim", f"{home_short(engine.jail.folder)} · /help lists commands, ctrl-C stops, ctrl-D leaves")
                ),
            )
        if was is not None and was.dialect != engine.dialect.name:
            self.note(f"The dialect is {engine.dialect.name} from now on.")
        if was is not None and was.permission_mode != self.mode():
            self.note(f"The permission mode is {self.mode()} from now on.")
        if agent.turns and agent.thread != self._thread:
            self._print(tail(agent.turns, engine.jail.folder))
        elif not agent.turns and self._said and self._thread not in {"", agent.thread}:
            self.note("A new conversation.")
        if self._stopped and agent.thread == self._thread:
            agent.steer(f"[The session was opened again. {self._stopped}]", by_user=False)
        self._thread, self._said = agent.thread, False
        early, self._early = self._early, []
        for event in early:
            self.show(event)

    async def _converse(self) -> Again | None:
        """Lines of the user, until one of them leads elsewhere; None where they go."""
        while True:
            self.front.ready()
            text = await self._typed.get()
            self._live.ahead.remove(text)
            if (asked := commands.split(text)) is not None:
                led = await self._command(*asked)
                if isinstance(led, Leave):
                    return None
                if led is not None:
                    return self._meant(led)
            else:
                self.front.echo(text)
                self.lines.printed()
                self._said = True
                await self.stoppable(self.session.agent.run(await self._prompt(text), written=text))
                self._put_back()

    async def _prompt(self, text: str) -> Prompt:
        """What the user typed, with the pictures that it mentions. One that cannot be shown is only named."""
        try:
            prompt = await with_mentions(text, self.session.engine.jail.folder, self.session.agent.model)
        except ConfigError as error:
            self.note(f"{error} It is not shown to the model.")
            return text
        if not isinstance(prompt, str):
            self.note(f"Shown to the model: {'; '.join(map(str, prompt[1:]))}.")
        return prompt

    def _put_back(self) -> None:
        """What the model has not heard goes back to whoever wrote it: it may not be meant any more."""
        talk, unheard = self.session.agent.talk, self.lines.queued
        if unheard:
            talk.steering = [parts for parts in talk.steering if words_of_parts(parts) not in unheard]
            self.lines.queued = []
            self.front.put_back("\n".join(unheard))

    def _meant(self, led: Again) -> Again:
        """What was not said stays as it was."""
        spoken, model = self.session.engine.dialect.name, self.session.agent.model.name
        self._was = Again(self.going_on(), spoken, self.mode(), model)
        self._chosen = led.dialect or self._chosen
        # A new conversation speaks what its model knows best, unless the user has said otherwise. Plan mode stays on.
        dialect = led.dialect or (spoken if led.resume else self._chosen)
        self.named_mode = led.permission_mode or self.named_mode
        goes_elsewhere = bool(led.resume) and led.resume != self.going_on()
        # Where the user has named no mode, another conversation that was left in plan mode plans on.
        is_open = goes_elsewhere and self.named_mode is None and self.mode() != "plan"
        return Again(led.resume, dialect, led.permission_mode or (None if is_open else self.mode()), model)

    async def _command(self, name: str, rest: str) -> Next:
        self.front.echo(f"/{name} {rest}".rstrip())
        self.lines.printed()
        found = commands.found(name)
        try:
            if found is None:
                self._unknown(name, rest)
            elif rest and not found.takes:
                self.note(f"/{name} takes nothing behind it, so nothing was done.")
            else:
                return await found.run(self, rest)
        except FerruleError as error:
            self.note(str(error))
        return None

    def _unknown(self, name: str, rest: str) -> None:
        if any(one == name for one, _ in self.skills()):
            self.heard(f"Use the skill {name}{': ' if rest else '.'}{rest}")
        else:
            self.note(commands.unknown(name))

    def skills(self) -> list[tuple[str, str]]:
        """The skills that a user may start by name, with what each is for."""
        if not self._is_open:
            return []
        from ferrule.workspace.skills import Skills

        try:
            found = self.session.engine.need(Skills).all()
        except (TypeError, FerruleError):
            return []
        return [(one.name, one.description) for one in found if one.for_user and one.for_model]

    def heard(self, text: str) -> None:
        """A line was sent."""
        if not self._is_open or not self.session.agent.is_running:
            self._typed.put_nowait(text)
            self._live.ahead.append(text)
        elif (asked := commands.split(text)) is not None:
            self._beside(*asked)
        else:
            self.lines.queued.append(text)
            self.session.agent.steer(text)
            self.front.refresh()

    def _beside(self, name: str, rest: str) -> None:
        """A command while the agent works."""
        found = commands.found(name)
        if found is not None and found.run is commands.leave:
            self.front.leave()
        elif found is None or found.while_running or (found.looks_alone and not rest):
            task = asyncio.ensure_future(self._aside(name, rest))
            self._asides.add(task)
            task.add_done_callback(self._asides.discard)
        else:
            self.note(f"/{name} can be used when the agent is done; ctrl-C stops it.")

    async def _aside(self, name: str, rest: str) -> None:
        await self._command(name, rest)

    def _interrupt(self) -> bool:
        if self._is_open and self.session.agent.is_running:
            self.session.agent.interrupt()
            return True
        if self._working is not None and not self._working.done():
            self._working.cancel()
            return True
        return False

    def _status(self) -> list[Line]:
        return status(self.session.agent, self.session.engine, self.mode()) if self._is_open else OPENING
