"""Hold a conversation with a model: its history, its prompts and rewinds, and the files that it has read.

Every call in the history has an answer. A rewind keeps what it leaves behind, so that it can be taken back. The
record of files read is kept with the turns, and forgets what the model no longer has in sight.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from ferrule.agent import AgentEvent, Limits, Reason, Spent, Steered, Warned
from ferrule.agent.attachments import PromptPart, names_of, without_sight, words_of_parts
from ferrule.agent.recall import NAME as RECALL
from ferrule.core.call import Call, Reply
from ferrule.core.content import Document, Image, Text, data_bytes
from ferrule.core.errors import ConfigError, ToolFailure
from ferrule.core.tool import Face
from ferrule.dialects import is_small
from ferrule.files.ledger import Ledger, Sights
from ferrule.models import Model, ModelError, has_vision
from ferrule.tools.threads import PROMPT
from ferrule.wire import (
    Definition,
    ModelRequest,
    ModelResponse,
    Part,
    Result,
    Thinking,
    ToolChoice,
    Turn,
    Use,
    definition_of,
)

if TYPE_CHECKING:
    from ferrule.agent.threads import Keeping, Resumed
    from ferrule.hooks import After


RESUMED = "error: tool execution was interrupted (session resumed)"
INTERRUPTED = "error: tool execution was interrupted by the user"
STOPPED_BEFORE = "[The user interrupted you before this message.]"
EMPTY = "[The user sent nothing.]"
SUMMED_UP = "[The conversation until here was summed up"
"""How the turn begins that stands for those that were summed up."""
LEFT_OFF = "left-off"
"""What the store calls the place where the user has interrupted a conversation."""

CHARS_PER_TOKEN = 3.5
_IMAGE_TOKENS = 1_600
_PAGE_TOKENS = 2_000
_PAGE_BYTES = 25_000
"""Of a PDF whose pages nobody has counted: the API says with its answer how many tokens they were."""
_MOST_PAGES = 100
_TURN_TOKENS = 4


class TurnHistory:
    """Turns in their order. Turns are never changed: what was encoded once need not be encoded again."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self.turns: list[Turn] = list(turns)
        self.ids = {part.id for turn in self.turns for part in turn.parts if isinstance(part, Use)}
        """Of all calls that there ever were, those that were summed up too."""
        self._measured = 0
        """Tokens that the API has counted, up to and with the turn `_upto - 1`."""
        self._upto = 0
        self._above = 0
        """About how many tokens the system prompt and the definitions take, where the API has not counted them."""

    def weigh_above(self, chars: int) -> None:
        """Say how long what stands above the conversation is."""
        self._above = int(chars / CHARS_PER_TOKEN)

    @property
    def above(self) -> int:
        """About how many tokens the system prompt and the tools take."""
        return self._above

    @property
    def tokens(self) -> int:
        """About how much of the window it fills: what the API has counted, and an estimate of what came since."""
        counted = self._measured or self._above
        return counted + sum(map(tokens_of, self.turns[self._upto :]))

    def add(self, turn: Turn) -> None:
        self.turns.append(turn)

    def hear(self, said: ModelResponse) -> Turn | None:
        """Take the model's answer; None where it said nothing at all."""
        turn = Turn("assistant", said.parts) if said.parts else None
        if turn is not None:
            self.turns.append(turn)
            self.ids.update(part.id for part in said.parts if isinstance(part, Use))
        # Where the API counts nothing, the estimate so far stands for it: no turn is estimated twice.
        self._measured = said.usage.input + max(0, said.usage.output) if said.usage.input > 0 else self.tokens
        self._upto = len(self.turns)
        return turn

    def replace(self, turns: Sequence[Turn]) -> None:
        """Have another, smaller conversation from now on."""
        before = sum(map(tokens_of, self.turns))
        above = max(self._above, self.tokens - before) if self._measured else self._above
        self.turns = list(turns)
        self._measured, self._upto, self._above = 0, 0, above

    def find_open_calls(self) -> list[Use]:
        """The calls of the last answer that have no result."""
        last = next((at for at in reversed(range(len(self.turns))) if self.turns[at].role == "assistant"), None)
        if last is None:
            return []
        behind = (part for turn in self.turns[last + 1 :] for part in turn.parts)
        answered = {part.id for part in behind if isinstance(part, Result)}
        return [part for part in self.turns[last].parts if isinstance(part, Use) and part.id not in answered]

    def mend(self, words: str) -> Turn | None:
        """Answer the calls that nobody has answered, so that any model API takes the conversation; the turn added."""
        missing = self.find_open_calls()
        if not missing:
            return None
        turn = Turn("user", tuple(build_failure(use, words) for use in missing))
        self.turns.append(turn)
        return turn


def build_failure(use: Use, words: str) -> Result:
    """The answer to a call that was not made, or of which nobody knows what came."""
    return Result(use.id, (Text(words),), failed=True, name=use.name)


def tokens_of(turn: Turn) -> int:
    """About how many tokens a turn takes."""
    return _TURN_TOKENS + sum(map(_part_tokens, turn.parts))


def _part_tokens(part: Part) -> int:
    match part:
        case Text():
            return int(len(part.text) / CHARS_PER_TOKEN) + 1
        case Thinking():
            return int((len(part.text) + len(part.sealed)) / CHARS_PER_TOKEN) + 1
        case Image():
            return _IMAGE_TOKENS
        case Document():
            return _document_tokens(part)
        case Use():
            size = len(part.input) if isinstance(part.input, str) else len(str(part.input))
            return int((size + len(part.name)) / CHARS_PER_TOKEN) + 8
        case Result():
            return 8 + sum(map(_part_tokens, part.parts))
        case _:
            return int(len(str(part.block)) / CHARS_PER_TOKEN)


def _document_tokens(document: Document) -> int:
    size = data_bytes(document)
    if document.media_type.startswith("text/"):
        return int(size / CHARS_PER_TOKEN) + 1
    return _PAGE_TOKENS * max(1, min(_MOST_PAGES, size // _PAGE_BYTES))


def words_of(turn: Turn) -> str:
    """What was said in words."""
    return "".join(part.text for part in turn.parts if isinstance(part, Text))


REWOUND = "rewound"
UNREWOUND = "unrewound"


class PromptMark(msgspec.Struct, frozen=True, array_like=True):
    """A prompt and its turn."""

    number: int
    at: int


class RewindStep(msgspec.Struct, frozen=True):
    """One rewind, as it is kept."""

    prompt: int
    turns: int
    """So many turns stay."""
    view: int = -1
    """Of which of the views that were left; of the conversation as it is where that is negative."""


class ConversationView(NamedTuple):
    """A conversation that a rewind has left."""

    turns: tuple[Turn, ...]
    marks: tuple[PromptMark, ...]
    is_left_off: bool = False


class Prompt(NamedTuple):
    """A prompt, as a person is shown it."""

    number: int
    text: str
    at: float
    """When it was said."""
    place: str = "here"
    """`here`, `rewound`, or `gone`, where it was summed up: the conversation cannot go back to it."""


class Past:
    """Numbers the prompts from 1, each number once, and goes back to before one of them."""

    def __init__(self) -> None:
        self.number = 0
        """Of the last prompt."""
        self.marks: list[PromptMark] = []
        """The prompts that are in the conversation as it is, in their order."""
        self.left: list[ConversationView] = []
        """What rewinds have left, the last one last."""
        self.written: frozenset[str] = frozenset()
        """What the user has written, as far as it was kept before the conversation went on here."""
        self._said: dict[int, tuple[str, float]] = {}

    def begin(self, number: int, at: int, turn: Turn, time: float, written: str = "") -> None:
        """A prompt is the turn at this place; `written` is what the user wrote for it, such as `/init`."""
        self.number = max(self.number, number)
        self.marks.append(PromptMark(number, at))
        self._said[number] = (written or prompt_text(turn), time)

    def prompts(self) -> list[Prompt]:
        """All that there ever were."""
        here = {mark.number for mark in self.marks}
        left = {mark.number for view in self.left for mark in view.marks}
        return [
            Prompt(number, text, at, "here" if number in here else "rewound" if number in left else "gone")
            for number, (text, at) in sorted(self._said.items())
        ]

    def text(self, number: int) -> str:
        return self._said[number][0]

    def shrunk(self, gone: int) -> None:
        """The first turns have become one."""
        self.marks = [PromptMark(mark.number, mark.at - gone + 1) for mark in self.marks if mark.at >= gone]

    def step(self, number: int) -> RewindStep:
        """The rewind to before a prompt. Raises `ConfigError` where the conversation cannot go there."""
        for view, marks in ((-1, self.marks), *reversed([(at, one.marks) for at, one in enumerate(self.left)])):
            for mark in marks:
                if mark.number == number:
                    return RewindStep(number, mark.at, view)
        if number in self._said:
            raise ConfigError(
                f"Prompt {number} was summed up: the conversation cannot go back to before it. Its files can."
            )
        known = f"they count from 1 to {self.number}" if self.number else "nothing was said yet"
        raise ConfigError(f"There is no prompt {number} in this conversation: {known}.")

    def rewind(self, step: RewindStep, now: ConversationView) -> ConversationView:
        """The conversation as it was before the prompt; `now` is how it is."""
        base = now if step.view < 0 or step.view >= len(self.left) else self.left[step.view]
        if base is now or not _begins(base, now):
            self.left.append(now)
        kept = base.turns[: step.turns]
        behind = base.turns[step.turns : step.turns + 1]
        self.marks = [mark for mark in base.marks if mark.at < step.turns]
        return ConversationView(kept, tuple(self.marks), bool(behind) and is_behind_a_stop(behind[0]))

    def unrewind(self, now: ConversationView) -> ConversationView | None:
        """What the last rewind has left; None where there is nothing. What was said since is left in turn."""
        if not self.left:
            return None
        view = self.left.pop()
        if not _begins(view, now):
            self.left.append(now)
        self.marks = list(view.marks)
        return view


def _begins(longer: ConversationView, view: ConversationView) -> bool:
    """Is all of a view the beginning of another one?"""
    return longer.turns[: len(view.turns)] == view.turns


def prompt_text(turn: Turn) -> str:
    """What the user typed, without what was said before and behind it."""
    texts = (part.text for part in turn.parts if isinstance(part, Text) and part.text != STOPPED_BEFORE)
    words = next((text for text in texts if text != EMPTY), "")
    return words or "; ".join(names_of(turn.parts))


def is_behind_a_stop(turn: Turn) -> bool:
    """Was the model told with it that it had been interrupted?"""
    return any(isinstance(part, Text) and part.text == STOPPED_BEFORE for part in turn.parts)


def move_marks(marks: Sequence[PromptMark], places: Sequence[int]) -> list[PromptMark]:
    """The marks after the turns were put to other places; a turn that is gone has a negative one."""
    return [
        PromptMark(mark.number, places[mark.at])
        for mark in marks
        if 0 <= mark.at < len(places) and places[mark.at] >= 0
    ]


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
        self.history = TurnHistory() if earlier is None else earlier.history
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

    def tool_definitions(self) -> tuple[Definition, ...]:
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
        return any(one.name == name for one in self.tool_definitions())

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

    def question(self, turns: Sequence[Turn], *, tools: bool = True, model: Model | None = None) -> ModelRequest:
        """What the model is asked. Without `tools` it is shown them, for the calls of before, and must not use any.

        `model` is given where another one than the conversation's is asked.
        """
        above = (Turn("system", (Text(self.setup.system),)),) if self.setup.system else ()
        reminder = self.setup.reminder() if tools else ""
        below = (Turn("user", (Text(reminder),)),) if reminder else ()
        # The model may be another than the one that was shown the pictures.
        seen = turns if has_vision(model or self.model) else without_sight(turns)
        return ModelRequest(
            model=self.model.model,
            turns=(*above, *seen, *below),
            definitions=self.tool_definitions(),
            choice=None if tools else ToolChoice("none"),
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

    def take_unheard(self) -> tuple[PromptPart, ...]:
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

    def _view(self) -> ConversationView:
        return ConversationView(tuple(self.history.turns), tuple(self.past.marks), self.is_left_off)

    def _show(self, view: ConversationView) -> None:
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


READ = "read"
"""What the store calls it."""


class Reads:
    """A ledger as a part of a conversation."""

    def __init__(self, ledger: Ledger, told: Iterable[Sights] = (), *, is_kept: bool = True) -> None:
        """`told` is what an earlier session of the conversation has kept."""
        self._ledger = ledger
        self._told = list(told)
        self._is_kept = is_kept

    def keep(self, note: Callable[[str, object], None]) -> None:
        """Have noted what was seen since."""
        if (news := self._ledger.take_news()) is not None:
            self._told.append(news)
            if self._is_kept:
                note(READ, news)

    def shrunk(self, before: Sequence[Turn], after: Sequence[Turn]) -> None:
        """The conversation was made smaller: forget what was read only where a result is not what it was."""
        was, still = _results(before), _results(after)
        self._ledger.forget_calls({key for key, one in was.items() if still.get(key) != one})

    def restore(self, turns: Sequence[Turn]) -> None:
        """The conversation is another one now: know what was read in it."""
        calls = {part.id for turn in turns for part in turn.parts if isinstance(part, Use)}
        self._ledger.restore(self._told, calls.__contains__)


def _results(turns: Sequence[Turn]) -> dict[str, Result]:
    return {part.id: part for turn in turns for part in turn.parts if isinstance(part, Result)}
