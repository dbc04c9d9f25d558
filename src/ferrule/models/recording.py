"""Records a conversation while a model answers it; `scripted` plays it again.

Only what the model said is written, and the first words of each conversation, by which it is known: neither results
nor keys, addresses or headers. An answer that was interrupted is left out.
"""

import os
from collections.abc import AsyncGenerator, Iterator

from ferrule.core.errors import ConfigError
from ferrule.models.model import Again, Model, ModelError, has_vision
from ferrule.models.recorded import Broken, Cue, Failure, Header, Repeat, Spoken, Whom, line
from ferrule.models.scripted import beginning, heard, results_of
from ferrule.models.standins import Portable
from ferrule.support.threads import Threads
from ferrule.wire.assemble import Assembler
from ferrule.wire.delta import Delta, Ended, UseBegun, UseEnded
from ferrule.wire.turn import Asked, Part, Text, Thinking, Use

_PROMPT_CHARACTERS = 400
"""By so much of its first words a conversation is known, unless another one begins alike."""


class Tape:
    """The file that is recorded into; several models may share one. A line that is there is there for good."""

    def __init__(self, path: str, workspace: str = "") -> None:
        self.path = os.path.expanduser(path)
        self.portable = Portable(workspace or os.getcwd())
        self.wire = ""
        """Of the first model; thinking that came on another one says so."""
        self._threads = Threads(1)
        self._begun = False
        self._by_prompt: dict[str, Whom | None] = {}
        self._by_call: dict[str, Whom | None] = {}
        try:
            # What a model says may be private, and a recording that is there already is not written over.
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
            self._descriptor = os.open(self.path, flags, 0o600)
        except FileExistsError as error:
            raise ConfigError(f"{path} is there already. Name another file to record into, or delete it.") from error
        except OSError as error:
            raise ConfigError(f"{path} cannot be recorded into: {error.strerror}.") from error

    def whom(self, asked: Asked) -> Whom | None:
        """The conversation that is being asked for. The first one is the main one, which has no name.

        One that lost its beginning, because it was made smaller, is known by its calls.
        """
        prompt = beginning(asked)[1]
        if prompt not in self._by_prompt:
            uses = (part.id for turn in asked.turns for part in turn.parts if isinstance(part, Use))
            known = next((use for use in uses if use in self._by_call), None)
            self._by_prompt[prompt] = self._by_call[known] if known is not None else self._named(prompt)
        return self._by_prompt[prompt]

    def _named(self, prompt: str) -> Whom | None:
        if not self._by_prompt:
            return None
        short = prompt[:_PROMPT_CHARACTERS]
        is_alike = any(other.startswith(short) for other in self._by_prompt)
        return Whom(prompt=self.portable.made(prompt if is_alike else short))

    async def begin(self, model: Model) -> None:
        """The first line: it says what the model is that is asked first."""
        if not self._begun:
            self._begun = True
            self.wire = model.wire
            await self.put(
                Header(
                    model=model.model,
                    wire=model.wire,
                    window=model.window,
                    most_output=model.most_output,
                    prices=model.prices,
                    vision=has_vision(model),
                )
            )

    async def put(self, written: Header | Cue) -> None:
        """Write one line, to the disk: all of it, even where whoever asked goes away meanwhile."""
        if isinstance(written, Cue):
            self._by_call.update((part.id, written.whom) for part in written.parts if part.use is not None)
        await self._threads.finish(self._write, line(written))

    def _write(self, raw: bytes) -> None:
        try:
            while raw:
                raw = raw[os.write(self._descriptor, raw) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be recorded into: {error.strerror}.") from error

    async def close(self) -> None:
        await self._threads.finish(self._shut)
        self._threads.close()

    def _shut(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Recording:
    """A model whose answers are written down as they end."""

    def __init__(self, model: Model, tape: Tape | str, workspace: str = "") -> None:
        self.name = model.name
        self.model = model.model
        self.wire = model.wire
        self.window = model.window
        self.most_output = model.most_output
        self.prices = model.prices
        self.vision = has_vision(model)
        self._inner = model
        self._owns_tape = isinstance(tape, str)
        self.tape = Tape(tape, workspace) if isinstance(tape, str) else tape
        """For other models of the same session: `Recording(other, recording.tape)`."""
        self.tape.portable.hide(getattr(model, "secrets", ()))

    @property
    def conversation(self) -> str:
        """See `HttpModel`: that it is recorded changes nothing of what a host is told."""
        return str(getattr(self._inner, "conversation", ""))

    @conversation.setter
    def conversation(self, name: str) -> None:
        if hasattr(self._inner, "conversation"):
            self._inner.conversation = name

    def beside(self, conversation: str = "") -> "Recording":
        """The same model for another conversation, on the same tape."""
        beside = getattr(self._inner, "beside", None)
        return self if beside is None else Recording(beside(conversation), self.tape)

    async def ask(self, asked: Asked) -> AsyncGenerator[Delta | Again, None]:
        """What the model answers. An answer is on the disk before its end is passed on.

        Raises: ModelError.
        """
        await self.tape.begin(self)
        taken = Take(self.tape, asked)
        answer = self._inner.ask(asked)
        try:
            async for delta in answer:
                if isinstance(delta, Again):
                    await self.tape.put(taken.cue(again=Repeat(why=delta.why, seconds=delta.seconds)))
                    taken = Take(self.tape, asked)
                else:
                    taken.put(delta)
                    if isinstance(delta, Ended):
                        await self.tape.put(taken.cue())
                yield delta
        except ModelError as error:
            await self.tape.put(taken.cue(fail=Failure(kind=error.kind, message=str(error))))
            raise
        finally:
            if (close := getattr(answer, "aclose", None)) is not None:
                await close()

    async def close(self) -> None:
        """The model, and the tape where it was opened here."""
        try:
            await self._inner.close()
        finally:
            if self._owns_tape:
                await self.tape.close()


class Take:
    """One answer on its way to the tape."""

    def __init__(self, tape: Tape, asked: Asked) -> None:
        self._wire = tape.wire
        self._portable = tape.portable
        self._asked = asked
        self._whom = tape.whom(asked)
        self._assembler = Assembler()
        self._uses: list[int] = []
        self._cut: set[int] = set()

    def put(self, delta: Delta) -> None:
        self._assembler.put(delta)
        if isinstance(delta, UseBegun) and delta.at not in self._uses:
            self._uses.append(delta.at)
        elif isinstance(delta, UseEnded) and delta.cut:
            self._cut.add(delta.at)

    def cue(self, *, again: Repeat | None = None, fail: Failure | None = None) -> Cue:
        answer = self._assembler.said()
        broke = self._assembler.broke
        made = self._portable.made
        results = results_of(self._asked)
        order = iter(self._uses)
        return Cue(
            whom=self._whom,
            prompt="" if self._whom else made(_prompt(self._asked)),
            parts=tuple(self._part(part, order, results) for part in answer.parts),
            reason=answer.reason,
            usage=answer.usage,
            broke=Broken(message=made(broke.message), kind=broke.kind) if broke else None,
            again=Repeat(why=made(again.why), seconds=again.seconds) if again else None,
            fail=Failure(kind=fail.kind, message=made(fail.message)) if fail else None,
        )

    def _part(self, part: Part, order: Iterator[int], results: dict[str, str]) -> Spoken:
        made = self._portable.made
        if isinstance(part, Use):
            cut = next(order) in self._cut
            put = made(part.input, results)
            return Spoken(use=part.name, id=part.id, input=put, free=part.is_text, cut=cut)
        if isinstance(part, Thinking):
            wire = None if part.wire == self._wire else part.wire
            return Spoken(thinking=made(part.text), signature=part.signature, sealed=part.sealed, wire=wire)
        assert isinstance(part, Text)
        return Spoken(text=made(part.text))


def _prompt(asked: Asked) -> str:
    """What the user said since the model's last words; nothing while only results come."""
    return "\n".join(part.text for turn in heard(asked) for part in turn.parts if isinstance(part, Text))
