"""What every model keeps, whatever is behind it: how its deltas come, how it is given up, and that it can be closed."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from ferrule.core.content import Text
from ferrule.models import Model, RetryNotice
from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Definition,
    Delta,
    ModelRequest,
    ModelResponse,
    Part,
    TextPiece,
    ThinkingPiece,
    Turn,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.stream import assemble

_SECONDS = 120
"""Only a model that does not keep its word takes so long."""


def user(text: str) -> Turn:
    return Turn("user", (Text(text),))


def model_turn(*parts: Part) -> Turn:
    return Turn("assistant", parts)


def asked(*turns: Turn | str, definitions: Sequence[Definition] = (), system: str = "", **options) -> ModelRequest:
    """What is asked; plain text is what the user says."""
    made = [user(turn) if isinstance(turn, str) else turn for turn in turns]
    if system:
        made.insert(0, Turn("system", (Text(system),)))
    return ModelRequest(model="", turns=tuple(made), definitions=tuple(definitions), stream=True, **options)


async def heard(model: Model, given: ModelRequest) -> list[Delta | RetryNotice]:
    """All that comes, within bounds."""
    async with asyncio.timeout(_SECONDS):
        return [delta async for delta in model.ask(given)]


async def answer(model: Model, given: ModelRequest) -> ModelResponse:
    """The whole answer, after a look at how it came."""
    deltas = await heard(model, given)
    check_answer(deltas)
    return assemble(kept(deltas))


def kept(deltas: Sequence[Delta | RetryNotice]) -> list[Delta]:
    """What came after the last repetition; all before it is void."""
    out: list[Delta] = []
    for delta in deltas:
        if isinstance(delta, RetryNotice):
            out.clear()
        else:
            out.append(delta)
    return out


def check_answer(deltas: Sequence[Delta | RetryNotice]) -> None:
    """Raises unless the deltas are in order: one begin, whole calls counted from 0, one end, and that last."""
    attempts = [delta.attempt for delta in deltas if isinstance(delta, RetryNotice)]
    assert attempts == list(range(1, len(attempts) + 1))
    rest = kept(deltas)
    assert isinstance(rest[0], AnswerStart)
    assert isinstance(rest[-1], AnswerEnd)
    open_calls: set[int] = set()
    ids: list[str] = []
    for delta in rest[1:-1]:
        match delta:
            case UseBegun():
                assert delta.at == len(ids)
                assert delta.id
                assert delta.name
                ids.append(delta.id)
                open_calls.add(delta.at)
            case UsePiece():
                assert delta.at in open_calls
                assert delta.text
            case UseEnded():
                open_calls.remove(delta.at)
            case TextPiece():
                assert delta.text
            case _:
                assert isinstance(delta, ThinkingPiece | Broke)
    assert not open_calls
    assert len(set(ids)) == len(ids)
    assert rest[-1].usage.input >= rest[-1].usage.cache_read >= 0


async def check_given_up(model: Model, given: ModelRequest) -> None:
    """Raises unless an answer can be given up, by whoever reads it and by a cancellation, and the next one is whole."""
    stream = model.ask(given)
    async with asyncio.timeout(_SECONDS):
        assert isinstance(await anext(stream), AnswerStart)
        await stream.aclose()  # type: ignore[attr-defined]  # all of them are generators
        task = asyncio.create_task(_drain(model.ask(given), begun := asyncio.Event()))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


async def _drain(stream: AsyncIterator[Delta | RetryNotice], begun: asyncio.Event) -> None:
    async for _ in stream:
        begun.set()
        # A reader that has more to do: it is still reading when it is cancelled.
        await asyncio.sleep(0)


async def check_closing(model: Model) -> None:
    """Raises unless closing it a second time does nothing."""
    async with asyncio.timeout(_SECONDS):
        await model.close()
        await model.close()
