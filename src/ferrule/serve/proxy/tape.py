"""The traffic of the proxy as one of our recordings, which can be played again."""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

from ferrule.models.model import Again, Model, ModelError
from ferrule.models.recorded import Failure, Repeat
from ferrule.models.recording import Take, Tape
from ferrule.wire.delta import Begun, Delta, Ended, TextPiece, ThinkingPiece, UseBegun, UseEnded, UsePiece
from ferrule.wire.stream import json_text
from ferrule.wire.turn import Asked, Said, Text, Thinking, Use


class TrafficTape:
    """Writes every answer down as it ends. The file is the user's alone and holds no key."""

    def __init__(self, path: str, secrets: Iterable[str]) -> None:
        self._tape = Tape(path)
        self._tape.portable.hide(tuple(secrets))

    async def recorded(
        self, model: Model, asked: Asked, answer: AsyncGenerator[list[Delta] | Again, None]
    ) -> AsyncGenerator[list[Delta] | Again, None]:
        """The same answer; its end is passed on when it is on the disk."""
        await self._begin(model)
        take = Take(self._tape, asked)
        try:
            async with aclosing(answer):
                async for batch in answer:
                    if isinstance(batch, Again):
                        await self._tape.put(take.cue(again=Repeat(why=batch.why, seconds=batch.seconds)))
                        take = Take(self._tape, asked)
                    else:
                        await self._take(take, batch)
                    yield batch
        except ModelError as error:
            await self._tape.put(take.cue(fail=Failure(kind=error.kind, message=str(error))))
            raise

    async def put_said(self, model: Model, asked: Asked, said: Said) -> None:
        """Write down an answer that came in one piece."""
        await self._begin(model)
        await self._take(Take(self._tape, asked), deltas_of(said))

    async def close(self) -> None:
        await self._tape.close()

    async def _begin(self, model: Model) -> None:
        self._tape.portable.hide(getattr(model, "secrets", ()))
        await self._tape.begin(model)

    async def _take(self, take: Take, batch: Iterable[Delta]) -> None:
        for delta in batch:
            take.put(delta)
            if isinstance(delta, Ended):
                await self._tape.put(take.cue())


def deltas_of(said: Said) -> Iterator[Delta]:
    """A whole answer as a stream would have brought it."""
    yield Begun(said.id, said.model)
    at = 0
    for part in said.parts:
        if isinstance(part, Text):
            yield TextPiece(part.text)
        elif isinstance(part, Thinking):
            yield ThinkingPiece(part.text, part.signature, part.sealed, part.wire)
        elif isinstance(part, Use):
            yield UseBegun(at, part.id, part.name, part.is_text)
            yield UsePiece(at, part.input if isinstance(part.input, str) else json_text(part.input))
            yield UseEnded(at)
            at += 1
    yield Ended(said.reason, said.usage)
