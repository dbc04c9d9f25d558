"""A conversation with a model: what stands above it, its history, who keeps it and who listens."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from ferrule.agent.attachments import PromptPart, names_of, without_sight, words_of_parts
from ferrule.agent.budget import Limits
from ferrule.agent.events import AgentEvent, Reason, Spent, Steered, Warned
from ferrule.agent.history import LEFT_OFF, History, words_of
from ferrule.agent.past import REWOUND, UNREWOUND, Past, View
from ferrule.agent.recall import NAME as RECALL
from ferrule.core.call import Call
from ferrule.core.errors import ToolFailure
from ferrule.core.face import Face
from ferrule.core.reply import Reply
from ferrule.dialects.pick import is_small
from ferrule.models.model import Model, ModelError, has_vision
from ferrule.wire.turn import Asked, Choice, Definition, Text, Turn
from ferrule.wire.wire import definition_of
from ferrule.workspace.thread import PROMPT

if TYPE_CHECKING:
    from ferrule.agent.keeping import Keeping
    from ferrule.agent.reads import Reads
    from ferrule.agent.stored import Resumed
    from ferrule.execute.hooks.hook import After


class Hands(Protocol):
    """What makes the calls: an engine, or a branch of one for a subagent."""

    async def run(self, calls: Sequence[Call]) -> list[Reply]: ...

    def cancel(self) -> None: ...

    def faces(self) -> list[Face]: ...

    def misfit(self, call: Call) -> ToolFailure | None: ...


class Setup:
    """What an agent is given beside its model and its hands; all but its thread has a default."""

    def __init__(
        self,
        *,
        thread: str,
        system: str = "",
        dialect: str = "",
        cwd: str = "",
        limits: Limits | None = None,
        max_tokens: int | None = None,
        thinking_tokens: int | None = None,
        permission_mode: Callable[[], str] = lambda: "default",
        reminder: Callable[[], str] = str,
        news: Callable[[], Sequence[str]] = tuple,
        heard: Callable[[str], None] = lambda _: None,
        on_answer: Callable[[str], object] = lambda _: None,
        tell_hooks: "Callable[..., Awaitable[After | None]] | None" = None,
        stop_event: str = "Stop",
        about: Mapping[str, str] = MappingProxyType({}),
        overdrawn: "Callable[[], Reason | None] | None" = None,
        on_prompt: Callable[[int], object] = lambda _: None,
        fallback: "Callable[[ModelError], Model | None]" = lambda _: None,
        interrupt: Callable[[], None] | None = None,
    ) -> None:
        """`reminder` is told before each turn and not remembered; `news` is told once, with the next replies.

        `heard` is given what the user writes, and nothing else that comes to stand in the conversation.
        `on_prompt` is told the number of each prompt before it is worked on, `on_answer` the words of each answer.
        `fallback` gives the model that is asked after one has failed, if there is one. `interrupt` interrupts whoever
        the user talks to, if that is not it.
        """
        self.thread = thread
        self.system = system
        self.dialect = dialect
        self.cwd = cwd
        self.limits = limits or Limits()
        self.max_tokens = max_tokens
        self.thinking_tokens = thinking_tokens
        self.permission_mode = permission_mode
        self.reminder = reminder
        self.news = news
        self.heard = heard
        self.tell_hooks = tell_hooks
        self.stop_event = stop_event
        """What hooks are told when it is done,"""
        self.about = dict(about)
        """and what they are told of it then."""
        self.overdrawn = overdrawn
        """Has whoever started it nothing left?"""
        self.on_prompt = on_prompt
        self.on_answer = on_answer
        self.fallback = fallback
        self.interrupt = interrupt
        self.is_done: Callable[[], bool] = lambda: False
        """Has the model given with its calls all that was wanted? Then it is not asked again."""


class Conversation:
    """What is said, and to whom."""

    def __init__(
        self,
        hands: Hands,
        model: Model,
        setup: Setup,
        *,
        earlier: "Resumed | None" = None,
        keeping: "Keeping | None" = None,
        reads: "Reads | None" = None,
        on_event: Callable[[AgentEvent], object] = lambda _: None,
    ) -> None:
        """`earlier` is the conversation that goes on; nothing where a new one begins. `reads` is what it has read."""
        self.hands = hands
        self.model = model
        self.setup = setup
        self.thread = setup.thread
        self.spent = Spent() if earlier is None else earlier.spent
        """Of the whole conversation, before the prompt that is worked on."""
        self.history = History() if earlier is None else earlier.history
        self.past = Past() if earlier is None else earlier.past
        self.reads = reads
        self.steering: list[tuple[PromptPart, ...]] = []
        self.unwritten: set[str] = set()
        """What of it no user wrote."""
        self.is_left_off = earlier is not None and earlier.is_left_off
        """Was the last prompt interrupted? The model is told with the next one."""
        self._keeping = keeping
        self._on_event = on_event
        self._definitions: tuple[Definition, ...] | None = None
        self._recalls = False
        """Has anything been left out that can be read back? Before that, a small model is not shown the tool for it."""
        if earlier is not None:
            self.keep(earlier.mended)

    @property
    def is_kept(self) -> bool:
        """Is every turn of it stored?"""
        return self._keeping is not None

    def tell(self, event: AgentEvent) -> None:
        """Tell whoever listens."""
        self._on_event(event)

    def warn(self, sentence: str) -> None:
        """Say something that the user should know."""
        self.tell(Warned(thread=self.thread, sentence=sentence))

    def tools_changed(self) -> None:
        """Show the model the tools anew."""
        self._definitions = None

    def shown(self) -> tuple[Definition, ...]:
        """The tools; the same object while they are the same, so that nobody encodes them anew."""
        if self._definitions is None:
            is_spared = not self._recalls and is_small(self.model.model, self.model.window)
            faces = [face for face in self.hands.faces() if not (is_spared and face.name == RECALL)]
            self._definitions = tuple(map(definition_of, faces))
            chars = sum(len(one.words) + len(str(one.schema)) for one in self._definitions)
            self.history.weigh_above(chars + len(self.setup.system))
        return self._definitions

    def shows(self, name: str) -> bool:
        """Has the model a tool of this name?"""
        return any(one.name == name for one in self.shown())

    def reads_output(self, output_id: str) -> str:
        """How the model reads back an output that was left out; empty where it cannot."""
        return f'{RECALL} {{"id": "{output_id}"}} reads it.' if self.offers_recall() else ""

    def offers_recall(self) -> bool:
        """Show the tool that reads back what was left out, where it is not shown yet; false where there is none."""
        if not self._recalls:
            self._recalls = True
            if is_small(self.model.model, self.model.window):
                self.tools_changed()
        return self.shows(RECALL)

    def question(self, turns: Sequence[Turn], *, tools: bool = True, model: Model | None = None) -> Asked:
        """What the model is asked. Without `tools` it is shown them, for the calls of before, and must not use any.

        `model` is given where another one than the conversation's is asked.
        """
        above = (Turn("system", (Text(self.setup.system),)),) if self.setup.system else ()
        reminder = self.setup.reminder() if tools else ""
        below = (Turn("user", (Text(reminder),)),) if reminder else ()
        # The model may be another than the one that was shown the pictures.
        seen = turns if has_vision(model or self.model) else without_sight(turns)
        return Asked(
            model=self.model.model,
            turns=(*above, *seen, *below),
            definitions=self.shown(),
            choice=None if tools else Choice("none"),
            max_tokens=self.setup.max_tokens,
            thinking_tokens=self.setup.thinking_tokens,
            stream=True,
        )

    def take_steering(self) -> tuple[PromptPart, ...]:
        """What the user wrote meanwhile, and what has happened behind the model's back."""
        steered, self.steering = self.steering, []
        for parts in steered:
            text = words_of_parts(parts)
            self.tell(Steered(thread=self.thread, text=text, attached=names_of(parts)))
            if text not in self.unwritten:
                self.setup.heard(text)
        return (*map(Text, self.setup.news()), *(part for parts in steered for part in parts))

    def unheard(self) -> tuple[PromptPart, ...]:
        """Take what was steered and came too late for the model to hear it: it is the next prompt."""
        steered, self.steering = self.steering, []
        return tuple(part for parts in steered for part in parts)

    def add(self, turn: Turn, files: tuple[str, ...] = ()) -> None:
        """One more turn of the user's side."""
        self.history.add(turn)
        self.keep(turn, files)

    def keep(self, turn: Turn | None, files: tuple[str, ...] = ()) -> None:
        """Have a turn stored that is in the history."""
        if self._keeping is not None and turn is not None:
            self._keeping.turn(turn, files)
        self.keep_reads()

    def keep_reads(self) -> None:
        """Have stored what was read since."""
        if self.reads is not None:
            self.reads.keep(self.note)

    def begin_prompt(self, turn: Turn, written: str = "") -> None:
        """One more turn of the user's side, which is a prompt: it has a number, and can be gone back to."""
        number = self.past.number + 1
        self.past.begin(number, len(self.history.turns), turn, time.time(), written)
        self.setup.on_prompt(number)
        self.note(PROMPT, number)
        self.add(turn)

    def note(self, kind: str, value: object) -> None:
        """Have something stored about it."""
        if self._keeping is not None:
            self._keeping.note(kind, value)

    def leave_off(self) -> None:
        """The user has interrupted it: whoever goes on with it, in another process too, tells the model."""
        self.is_left_off = True
        self.note(LEFT_OFF, None)

    def shrink_to(self, turns: Sequence[Turn], *, gone: int = 0) -> None:
        """It is these turns from now on; all that was said stays in the store. The first `gone` have become one."""
        if self.reads is not None:
            self.reads.shrunk(self.history.turns, turns)
        self.history.replace(turns)
        if gone:
            self.past.shrunk(gone)
        if self._keeping is not None:
            self._keeping.whole(self.history.turns, self.past.marks)
        self.keep_reads()

    def rewind(self, prompt: int) -> str:
        """Go back to before a prompt; its text. What is left stays in the store. Raises `ConfigError`."""
        step = self.past.step(prompt)
        self.keep_reads()
        self.note(REWOUND, step)
        self._show(self.past.rewind(step, self._view()))
        return self.past.text(prompt)

    def unrewind(self) -> bool:
        """Have again what the last rewind has left; false where there is nothing."""
        self.keep_reads()
        view = self.past.unrewind(self._view())
        if view is not None:
            self.note(UNREWOUND, None)
            self._show(view)
        return view is not None

    def _view(self) -> View:
        return View(tuple(self.history.turns), tuple(self.past.marks), self.is_left_off)

    def _show(self, view: View) -> None:
        self.history.replace(view.turns)
        self.is_left_off = view.is_left_off
        if self.reads is not None:
            self.reads.restore(self.history.turns)

    def last_words(self) -> str:
        """What the model said last."""
        said = (words_of(turn) for turn in reversed(self.history.turns) if turn.role == "assistant")
        return next((words for words in said if words.strip()), "")

    async def hooks(self, event: str, **fields: object) -> "After | None":
        """Tell the user's hooks; None where nobody is told."""
        return await self.setup.tell_hooks(event, **fields) if self.setup.tell_hooks is not None else None

    async def flush(self) -> None:
        """Wait until all of it is stored."""
        if self._keeping is not None:
            await self._keeping.flush()
