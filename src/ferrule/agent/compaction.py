"""Keeping a conversation inside its model's window: old outputs make room first, then its beginning is summed up.

Nothing is lost: outputs are in the store under an id, and the thread keeps every turn as it was.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from ferrule.agent import Compacted, Stopped
from ferrule.agent.attachments import find_attachments, names_of
from ferrule.agent.conversation import CHARS_PER_TOKEN, SUMMED_UP, tokens_of, words_of
from ferrule.agent.prompt import summary_prompt
from ferrule.agent.recall import NAME
from ferrule.core.content import Document, Image, Text
from ferrule.core.errors import FerruleError
from ferrule.models import Model, ModelError
from ferrule.settings import Loop
from ferrule.wire import Result, Thinking, Turn, Use

if TYPE_CHECKING:
    from ferrule.agent.agent import Agent
    from ferrule.agent.conversation import Conversation


_SMALL_CHARS = 600
"""Outputs up to this length stay: leaving them out would save next to nothing."""
_KEPT_PART = 0.25
"""Of the window: so much of the end of a conversation stays as it is when the rest is summed up."""
_FREED_PART = 0.75
"""Of the room: so full it may be after old outputs have gone."""
_LEAST_PART = 0.02
"""The same where the model itself says that it is too long."""
_ABOVE_PART = 0.5
"""Of the room: where the system prompt and the tools take more than this, the user is told."""
_SUMMARY_TOKENS = 8_000
"""The most that a summary takes, and no more than a quarter of the window."""
_ANSWER_TOKENS = 32_000
_LISTED = 40
_NAMED = 20
"""So many attachments are named that went with a summary."""

Keep = Callable[[str, str, str], Awaitable[str]]
"""Keeps a text of a call and a tool; its id."""


class Compacting:
    """Makes conversations smaller when it is time."""

    def __init__(self, loop: Loop, keep: Keep, small: Callable[[], Model | None]) -> None:
        """`keep` stores an output, `small` is a model for summaries, where there is one."""
        self._loop = loop
        self._keep = keep
        self._small = small
        self._warned: set[str] = set()

    def room(self, talk: "Conversation") -> int:
        """How many tokens a conversation may have before it is made smaller."""
        most, above = _most(talk.model), talk.history.above
        room = int(most * self._loop.compact_at)
        # In a window that the tools nearly fill, half of what they leave is for the conversation.
        return room if above < room * _FREED_PART else above + (most - above) // 2

    async def fit(self, agent: "Agent") -> None:
        """Make room where the conversation has outgrown it; mostly there is nothing to do."""
        talk = agent.talk
        self._warn(talk)
        if talk.history.tokens <= (room := self.room(talk)):
            return
        await self._leave_out(talk, self._loop.keep_turns)
        # Room for some turns: whoever makes a little of it each turn has nothing of what the model's host has cached.
        if talk.history.tokens <= room * _FREED_PART:
            return
        # What came last alone may be too much: it is no reason to sum up what it is about.
        is_cut = await self._cut_last(talk, (room - talk.history.above) // 2)
        if talk.history.tokens > room * (1 if is_cut else _FREED_PART):
            await self.sum_up(agent, "", trigger="auto", kept_part=_KEPT_PART)

    def _warn(self, talk: "Conversation") -> None:
        above, most = talk.history.above, _most(talk.model)
        if above <= most * _ABOVE_PART or talk.thread in self._warned:
            return
        self._warned.add(talk.thread)
        talk.warn(
            f"The system prompt and the tools take about {above:,} of the {talk.model.window:,} tokens of the model's "
            "window, and little is left to work in. Take a model with a larger one; if its window is larger, set it "
            f'as `window` under [models.known."{talk.model.model}"] in your settings.'
        )

    async def shrink(self, agent: "Agent") -> bool:
        """The model says that it is too long: make it much smaller, whatever was estimated. False where it cannot."""
        before = agent.talk.history.turns
        await self._leave_out(agent.talk, 1)
        await self.sum_up(agent, "", trigger="auto", kept_part=_LEAST_PART)
        await self._cut_last(agent.talk, (_most(agent.talk.model) - agent.talk.history.above) // 4)
        return agent.talk.history.turns != before

    async def _leave_out(self, talk: "Conversation", keep_turns: int) -> None:
        """Put the ids of old outputs in their place."""
        turns, before = talk.history.turns, talk.history.tokens
        answers = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
        recent = answers[-keep_turns] if len(answers) >= keep_turns else 0
        recall = _recall(talk)
        shorter = [await self._without_outputs(turn, recall) if at < recent else turn for at, turn in enumerate(turns)]
        if shorter == turns:
            return
        talk.shrink_to(shorter)
        talk.tell(Compacted(thread=talk.thread, kind="outputs", before_tokens=before, after_tokens=talk.history.tokens))

    async def _cut_last(self, talk: "Conversation", most_tokens: int) -> bool:
        """Cut the outputs that came last to one length, where they have more tokens together; were they cut?"""
        turns, before = talk.history.turns, talk.history.tokens
        last = max((at for at, turn in enumerate(turns) if turn.role == "assistant"), default=len(turns))
        outputs = [part for turn in turns[last + 1 :] for part in turn.parts if isinstance(part, Result)]
        sizes, most_chars = list(map(_chars, outputs)), int(max(0, most_tokens) * CHARS_PER_TOKEN)
        if sum(sizes) <= most_chars or max(sizes) <= (shown := _share(sizes, most_chars)):
            return False
        recall = _recall(talk)
        cut = [await self._without_outputs(turn, recall, shown) for turn in turns[last + 1 :]]
        talk.shrink_to([*turns[: last + 1], *cut])
        talk.tell(Compacted(thread=talk.thread, kind="outputs", before_tokens=before, after_tokens=talk.history.tokens))
        return True

    async def _without_outputs(self, turn: Turn, recall: str, shown: int = 0) -> Turn:
        if not any(isinstance(part, Result) and _is_long(part) for part in turn.parts):
            return turn
        parts = [await self._short(part, recall, shown) if isinstance(part, Result) else part for part in turn.parts]
        return Turn(turn.role, tuple(parts))

    async def _short(self, result: Result, recall: str, shown: int) -> Result:
        """Without its text, or with so many characters of it."""
        if not _is_long(result) or _chars(result) <= shown:
            return result
        whole = "\n".join(part.text for part in result.parts if isinstance(part, Text))
        pictures = tuple(part for part in result.parts if isinstance(part, Image | Document))
        where = ""
        if whole:
            try:
                kept = await self._keep(whole, result.id, result.name)
            except FerruleError:
                return result  # what cannot be read back stays
            read = f': {recall} {{"id": "{kept}"}} reads it.' if recall else "."
            where = f" It is kept as {kept}{read}"
        what = f"{len(whole):,} characters"
        if half := shown // 2:
            left = f"[The middle of this output of {what} was left out to save room.{where}]"
            words = f"{whole[:half]}\n{left}\n{whole[-half:]}"
            return Result(result.id, (Text(words), *pictures), result.failed, result.name)
        what += f" and {len(pictures)} pictures" if pictures else ""
        words = f"[This output of {what} was left out to save room.{where}]"
        return Result(result.id, (Text(words),), result.failed, result.name)

    async def sum_up(
        self, agent: "Agent", focus: str, *, trigger: str = "manual", kept_part: float | None = None
    ) -> Compacted:
        """Put a summary in the place of the conversation, or of all but its end."""
        talk = agent.talk
        before = talk.history.tokens
        as_it_was = Compacted(thread=talk.thread, kind="summary", before_tokens=before, after_tokens=before)
        try:
            await agent.hooks("PreCompact", trigger=trigger, custom_instructions=focus)
        except Stopped:
            return as_it_was
        turns = talk.history.turns
        at = len(turns) if kept_part is None else _cut(turns, int(talk.model.window * kept_part))
        if at == 0:
            return as_it_was
        summary = await self._summary(agent, turns[:at], focus)
        if not summary:  # it was interrupted
            return as_it_was
        opening = Turn("user", (Text(_render_opening(talk, summary, turns[:at])),))
        talk.shrink_to([opening, *turns[at:]], gone=at)
        done = Compacted(
            thread=talk.thread,
            kind="summary",
            before_tokens=before,
            after_tokens=talk.history.tokens,
            summary=summary,
        )
        talk.tell(done)
        return done

    async def _summary(self, agent: "Agent", turns: Sequence[Turn], focus: str) -> str:
        """The model's own, or, where it gives none, a list of what was asked and done; nothing where it was stopped."""
        talk = agent.talk
        closing = Turn("user", (Text(summary_prompt(focus)),))
        needed = talk.history.above + sum(map(tokens_of, turns))
        most_chars = int(_summary_tokens(talk.model) * CHARS_PER_TOKEN)
        for model in (self._small(), talk.model):
            if model is None or model.window < needed + _summary_tokens(model):
                continue
            asked = talk.question([*turns, closing], tools=False, model=model)
            try:
                answered = await agent.listen(asked, model, aloud=False)
            except ModelError as error:
                talk.warn(f"The model could not sum up the conversation: {error}")
                continue
            agent.pay(answered.said.usage, model)
            if answered.is_cut:
                return ""
            words = words_of(Turn("assistant", answered.said.parts)).strip()
            if words and answered.said.reason != "refused":
                return words if len(words) <= most_chars else words[: most_chars - 1] + "…"
        return _outline_turns(turns, most_chars)


def _most(model: Model) -> int:
    """The tokens of the window that the answer does not need."""
    return model.window - min(model.most_output, _ANSWER_TOKENS, model.window // 4)


def _summary_tokens(model: Model) -> int:
    return min(_SUMMARY_TOKENS, model.window // 4)


def _cut(turns: Sequence[Turn], most_tokens: int) -> int:
    """Where the end begins that stays, where no call is parted from its result; 0 where nothing can be summed up.

    What was said last stays in any case: it is what is being worked on.
    """
    room, at = most_tokens, 0
    for here in reversed(range(1, len(turns))):
        room -= tokens_of(turns[here])
        if room < 0 and at:
            break
        if not any(isinstance(part, Result) for part in turns[here].parts):
            at = here
    return at


def _chars(result: Result) -> int:
    return sum(len(part.text) for part in result.parts if isinstance(part, Text))


def _is_long(result: Result) -> bool:
    return _chars(result) > _SMALL_CHARS or any(isinstance(part, Image | Document) for part in result.parts)


def _share(sizes: Sequence[int], room: int) -> int:
    """The most that each may have so that all fit; what stays small in any case is not cut for the others."""
    left = sorted(sizes)
    while len(left) > 1 and left[0] * len(left) <= room:
        room -= left.pop(0)
    return max(_SMALL_CHARS, room // len(left))


def _recall(talk: "Conversation") -> str:
    """The tool that reads back what was left out; empty where the model has it not."""
    return NAME if talk.offers_recall() else ""


def _render_opening(talk: "Conversation", summary: str, turns: Sequence[Turn]) -> str:
    recall, kept = _recall(talk), ""
    if talk.is_kept:
        kept = f" All of it is kept as thread {talk.thread}."
        kept += f' {recall} {{"id": "{talk.thread}", "pattern": "..."}} reads it.' if recall else ""
    files = names_of(find_attachments(turns))
    more = f" and {len(files) - _NAMED} more" if len(files) > _NAMED else ""
    gone = f" You see no more what the user had attached: {'; '.join(files[:_NAMED])}{more}." if files else ""
    return f"{SUMMED_UP} to save room.{kept}{gone}]\n\n{summary}"


def _outline_turns(turns: Sequence[Turn], most_chars: int) -> str:
    """What was asked and done, without a model."""
    lines = []
    for turn in turns:
        for part in turn.parts:
            match part:
                case Text() if turn.role == "user":
                    lines.append(f"- The user: {_line(part.text)}")
                case Text():
                    lines.append(f"- You: {_line(part.text)}")
                case Image() | Document() if turn.role == "user":
                    lines.append(f"- The user attached: {part}")
                case Use():
                    lines.append(f"- You called {part.name} {_line(str(part.input))}")
                case Result() if part.failed:
                    lines.append(
                        f"- It failed: {_line(' '.join(one.text for one in part.parts if isinstance(one, Text)))}"
                    )
                case Thinking() | _:
                    pass
    if len(lines) > 2 * _LISTED:
        left = len(lines) - 2 * _LISTED
        lines = [*lines[:_LISTED], f"- … {left} more steps …", *lines[-_LISTED:]]
    return "What was asked and done so far:\n" + "\n".join(lines)[:most_chars]


def _line(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 300 else words[:299] + "…"
