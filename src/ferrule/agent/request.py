"""One answer of the model: asked for, told piece by piece, and put together."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Container
from typing import NamedTuple

import msgspec

from ferrule.agent.events import AgentEvent, Calling, Retrying, Spoke, Thought
from ferrule.agent.text_calls import SpokenCalls, TextCalls
from ferrule.core.content import Text
from ferrule.core.errors import FerruleError
from ferrule.models.model import Model, ModelError, RetryNotice
from ferrule.wire.stream import Assembler, make_id
from ferrule.wire.text_calls import Holdback
from ferrule.wire.turn import (
    AnswerEnd,
    Delta,
    ModelRequest,
    ModelResponse,
    Part,
    TextPiece,
    ThinkingPiece,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)

_log = logging.getLogger("ferrule")

MOST_CHARS = 128 << 20
"""Of one answer. No model says so much; a host that sends without an end would fill the memory."""


class Answered(NamedTuple):
    """What came of asking."""

    said: ModelResponse
    whole: frozenset[str] = frozenset()
    """The ids of the calls whose input came to its end; no other may be run."""
    is_cut: bool = False
    """Was it stopped before its end? Then there are only words in it."""
    broken: TextCalls | None = None
    """A call that it wrote as text and that nobody could read."""


NOTHING = Answered(ModelResponse(id="", model="", parts=(), reason="end"), is_cut=True)


async def ask(
    model: Model,
    asked: ModelRequest,
    thread: str,
    tell: Callable[[AgentEvent], None],
    taken: Container[str] = frozenset(),
    *,
    spoken: SpokenCalls | None = None,
) -> Answered:
    """Ask, tell what is heard, and give the whole. Raises: ModelError.

    No two calls of a conversation have one id: one that is `taken`, or none at all, gets another.
    With `spoken`, calls that are written as text are calls as well.
    Cancelling it gives the words that were heard so far, where there are any; whoever cancels asks the task for it.
    """
    hearing = _Hearing(thread, tell, taken, spoken)
    answer = model.ask(asked)
    try:
        while (delta := await _next(answer, model)) is not None:
            hearing.hear(delta)
    except asyncio.CancelledError:
        return hearing.cut()
    finally:
        await _close(answer)
    return hearing.end()


async def _next(answer: AsyncIterator[Delta | RetryNotice], model: Model) -> Delta | RetryNotice | None:
    """One more piece, or None at the end. Raises: ModelError, whatever else went wrong in there."""
    try:
        return await anext(answer, None)
    except ModelError:
        raise
    except FerruleError as error:  # such as a recording that cannot be written
        raise ModelError(str(error), "bad") from error
    except Exception as error:  # a model may be anybody's code: its faults end a run as others do
        _log.exception("The model %s failed.", model.name)
        raise ModelError(f"The model {model.name} failed by a fault of its own: {_words(error)}", "server") from error


def _words(error: Exception) -> str:
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else f"{type(error).__name__}."


async def _close(answer: AsyncIterator[Delta | RetryNotice]) -> None:
    """A generator that was left in the middle lets go of its connection now, not when somebody collects it."""
    close = getattr(answer, "aclose", None)
    if close is not None:
        await close()


class _Hearing:
    """What was heard of one answer."""

    def __init__(
        self, thread: str, tell: Callable[[AgentEvent], None], taken: Container[str], spoken: SpokenCalls | None
    ) -> None:
        self._thread = thread
        self._tell = tell
        self._taken = taken
        self._spoken = spoken
        self._begin()

    def _begin(self) -> None:
        self._chars = 0
        self._assembler = Assembler()
        self._ids: dict[int, str] = {}
        self._given: set[str] = set()
        self._whole: set[str] = set()
        self._ended = False
        self._held = Holdback() if self._spoken is not None else None
        """Words since the last thought; none where a call was made: whoever makes calls does not write them."""

    def hear(self, delta: Delta | RetryNotice) -> None:
        match delta:
            case TextPiece():
                self._speak(delta.text if self._held is None else self._held.feed(delta.text))
            case ThinkingPiece():
                self._let_go()
                if self._spoken is not None:
                    self._held = Holdback()
                if delta.text:
                    self._tell(Thought(thread=self._thread, text=delta.text))
            case UseBegun():
                self._let_go()
                self._held = None
                delta = msgspec.structs.replace(delta, id=self._own_id(delta))
                self._ids[delta.at] = delta.id
                self._tell(Calling(thread=self._thread, id=delta.id, name=delta.name))
            case UseEnded():
                if not delta.cut and delta.at in self._ids:
                    self._whole.add(self._ids[delta.at])
            case AnswerEnd():
                self._ended = True
            case RetryNotice():
                self._begin()
                self._tell(Retrying(thread=self._thread, why=delta.why, seconds=delta.seconds, attempt=delta.attempt))
                return
            case _:
                pass
        self._bound(delta)
        self._assembler.put(delta)

    def _speak(self, text: str) -> None:
        if text:
            self._tell(Spoke(thread=self._thread, text=text))

    def _let_go(self) -> None:
        """What was held back are words after all."""
        if self._held is not None:
            self._speak(self._held.rest())

    def _bound(self, delta: Delta) -> None:
        if isinstance(delta, TextPiece | ThinkingPiece | UsePiece):
            self._chars += len(delta.text)
        if self._chars > MOST_CHARS:
            raise ModelError(f"The model's answer does not end: it has more than {MOST_CHARS:,} characters.", "cut")

    def _own_id(self, begun: UseBegun) -> str:
        if begun.at in self._ids:
            return self._ids[begun.at]
        name, own, number = begun.id or "call", begun.id, len(self._ids)
        while not own or own in self._taken or own in self._given:
            number += 1
            own = f"{name}_{number}"
        self._given.add(own)
        return own

    def cut(self) -> Answered:
        """Words only: thinking without its signature and calls without their end go back to no API."""
        self._let_go()
        said = self._assembler.said()
        texts = tuple(part for part in said.parts if isinstance(part, Text) and part.text.strip())
        return Answered(
            ModelResponse(id=said.id, model=said.model, parts=texts, reason="end", usage=said.usage), is_cut=True
        )

    def end(self) -> Answered:
        said = self._assembler.said()
        if not self._ended:
            raise ModelError("The model's answer broke off before its end. Ask again.", "cut")
        if self._assembler.broke is not None and not any(isinstance(part, Text | Use) for part in said.parts):
            raise ModelError(f"The model broke off: {self._assembler.broke.message}", "server")
        last = said.parts[-1] if said.parts else None
        if said.reason in {"length", "refused"} and isinstance(last, Use) and isinstance(last.input, str):
            # Out of tokens in the middle of an input that nobody can tell the end of.
            self._whole.discard(last.id)
        heard = self._parse_text_calls(said)
        if heard is not None and heard.calls:
            said = self._with_calls(said, heard)
        self._let_go()
        return Answered(said, frozenset(self._whole), broken=heard if heard is not None and heard.broken else None)

    def _parse_text_calls(self, said: ModelResponse) -> TextCalls | None:
        """What the last words amount to, where no call was made."""
        last = said.parts[-1] if said.parts else None
        if self._spoken is None or self._held is None or not isinstance(last, Text) or self._ids:
            return None
        return self._spoken.hear(last.text, is_whole=said.reason not in {"length", "refused"})

    def _with_calls(self, said: ModelResponse, heard: TextCalls) -> ModelResponse:
        """The answer with calls in the place of the text that they were written as."""
        last = said.parts[-1]
        assert isinstance(last, Text)
        assert self._held is not None
        before = last.text[: heard.start].rstrip()
        # The assembler may have joined words that came before a thought; only the last ones were held.
        offset = len(last.text) - self._held.length
        self._speak(self._held.rest(max(0, heard.start - offset)))
        self._held = None
        uses: list[Part] = []
        for at, call in enumerate(heard.calls):
            begun = UseBegun(at, make_id("call_"), call.name)
            own = self._own_id(begun)
            self._ids[at] = own
            self._whole.add(own)
            self._tell(Calling(thread=self._thread, id=own, name=call.name))
            uses.append(Use(own, call.name, call.values))
        parts = (*said.parts[:-1], *((Text(before),) if before else ()), *uses)
        return msgspec.structs.replace(said, parts=parts, reason="tools")
