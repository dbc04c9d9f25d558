"""Record a conversation while a model answers it, and play a recorded conversation with `scripted`.

A recording holds only the model's answers and the first words of each conversation, which identify it. It holds
no results, keys, addresses or headers. Interrupted answers are left out.

Recordings are played for demos, for tests, and to see an old conversation again.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from msgspec.structs import replace

from ferrule.core.content import Text
from ferrule.core.errors import ConfigError
from ferrule.models import Model, ModelError, Prices, RetryNotice, has_vision
from ferrule.models.cues import (
    Cue,
    Header,
    NotFound,
    Portable,
    RecordedError,
    RecordedFailure,
    Repeat,
    Spoken,
    Whom,
    fill_placeholders,
    line,
    read,
)
from ferrule.system import Threads
from ferrule.wire import (
    AnswerEnd,
    AnswerStart,
    Broke,
    Delta,
    ModelRequest,
    Part,
    Result,
    TextPiece,
    Thinking,
    ThinkingPiece,
    Turn,
    Use,
    UseBegun,
    UseEnded,
    UsePiece,
)
from ferrule.wire.conversation import json_text, system_words
from ferrule.wire.stream import Assembler

_INPUT_PIECE = 32
"""How many characters of a call's input come at once, where nothing else is said."""
_SHOWN = 200

_Key = tuple[Whom | None, str]
"""For whom the cues are, and the first words of the conversation that hears them; none for the main one."""
Line = Cue | Callable[[ModelRequest], Cue]
"""In Python a cue may also be worked out from what is asked."""


def load(path: str, workspace: str = "") -> "Scripted":
    """The model `scripted:PATH`. Raises: ConfigError."""
    path = os.path.expanduser(path)
    recorded = read(path)
    return Scripted(*recorded.cues, header=recorded.header, name=f"scripted:{path}", workspace=workspace)


class Scripted:
    """Answers with its cues, in their order, and with an error once the conversation goes another way.

    Cues that are for a conversation of their own (`for`) are played from the first to the last in every conversation
    that they fit: subagents that run at once get their own answers, in whatever order they ask.
    """

    def __init__(
        self, *cues: Line, header: Header | None = None, name: str = "scripted", workspace: str = "", pace: float = 1.0
    ) -> None:
        self.header = header or Header()
        self.name = name
        self.model = self.header.model
        self.wire = self.header.wire
        self.window = self.header.window
        self.most_output = self.header.most_output
        self.prices: Prices | None = self.header.prices
        self.vision = self.header.vision
        self.workspace = workspace or os.getcwd()
        """What `${workspace}` stands for."""
        self.pace = pace
        """By how much pauses are lengthened; 0 leaves them out."""
        self.asked: list[ModelRequest] = []
        """All that it was asked, in order."""
        self._tracks: dict[Whom | None, list[Line]] = {}
        self._played: dict[_Key, int] = {}
        self._by_call: dict[str, _Key] = {}
        for cue in _number_calls(cues):
            self._tracks.setdefault(cue.whom if isinstance(cue, Cue) else None, []).append(cue)

    @property
    def left(self) -> int:
        """How many cues nobody has heard yet."""
        heard: dict[Whom | None, int] = {}
        for (whom, _), count in self._played.items():
            heard[whom] = max(heard.get(whom, 0), count)
        return sum(len(cues) - heard.get(whom, 0) for whom, cues in self._tracks.items())

    async def ask(self, asked: ModelRequest) -> AsyncGenerator[Delta | RetryNotice, None]:
        """The next cue of the conversation. It pauses only where the recording does.

        Raises: ModelError.
        """
        self.asked.append(asked)
        number = len(self.asked)
        for attempt in range(1, 1 << 30):
            cue = self._next(asked)
            _check(cue, asked, self.name)
            for delta in self._deltas(cue, asked, number):
                await self._pause(cue, delta)
                yield delta
            if cue.hang:
                await asyncio.get_running_loop().create_future()
            if cue.fail is not None:
                raise ModelError(cue.fail.message, cue.fail.kind)
            if cue.again is None:
                return
            yield RetryNotice(cue.again.why, cue.again.seconds, attempt)

    async def close(self) -> None:
        """There is nothing to close."""

    def expects(self, system: str, prompt: str) -> bool:
        """Has it cues for a conversation of its own that begins so?"""
        asked = ModelRequest(model="", turns=(Turn("system", (Text(system),)), Turn("user", (Text(prompt),))))
        return self._whom(asked, system, prompt) is not None

    def _next(self, asked: ModelRequest) -> Cue:
        system, prompt = beginning(asked)
        key = self._find_key(asked, self._whom(asked, system, prompt), prompt)
        at = self._played.get(key, 0)
        cues = self._tracks.get(key[0], [])
        if not cues:
            raise self._astray(f"no cue is for the conversation that begins with {_quote(prompt)}")
        if at >= len(cues):
            raise ModelError(
                f"The recording is at its end: {self.name} has {len(cues)} answer{'s' * (len(cues) != 1)} for the "
                f"conversation that begins with {_quote(prompt)}, and was asked once more. "
                "Add a line to it, or record it again.",
                "bad",
            )
        self._played[key] = at + 1
        line = cues[at]
        cue = line if isinstance(line, Cue) else _with_ids(line(asked), f"c{len(self.asked)}_")
        self._by_call.update((part.id, key) for part in cue.parts if part.use is not None)
        return cue

    def _find_key(self, asked: ModelRequest, whom: Whom | None, prompt: str) -> _Key:
        """A conversation that lost its beginning, because it was made smaller, is known by its calls."""
        key = (whom, "" if whom is None else prompt)
        if whom is not None and key in self._played:
            return key
        uses = (part.id for turn in asked.turns for part in turn.parts if isinstance(part, Use))
        return next((self._by_call[use] for use in uses if use in self._by_call), key)

    def _whom(self, asked: ModelRequest, system: str, prompt: str) -> Whom | None:
        fitting = [
            whom
            for whom in self._tracks
            if whom is not None and self._now(whom.prompt, asked) in prompt and self._now(whom.system, asked) in system
        ]
        return max(fitting, key=lambda whom: len(whom.prompt) + len(whom.system), default=None)

    def _deltas(self, cue: Cue, asked: ModelRequest, number: int) -> Iterator[Delta]:
        parts = (Spoken(text=cue.text), *cue.parts) if cue.text else cue.parts
        if parts or cue.fail is None:
            yield AnswerStart(f"msg_{number}", self.model)
        uses = 0
        for part in parts:
            if part.use is not None:
                yield from self._use(part, uses, cue, asked)
                uses += 1
            elif part.thinking is not None:
                yield from self._thinking(part, cue, asked)
            else:
                yield from (TextPiece(piece) for piece in self._pieces(self._now(part.text, asked), cue))
        if cue.broke is not None:
            yield Broke(cue.broke.message, cue.broke.kind)
        if cue.fail is None and cue.again is None and not cue.hang:
            yield AnswerEnd(cue.stops, cue.usage)

    def _use(self, part: Spoken, at: int, cue: Cue, asked: ModelRequest) -> Iterator[Delta]:
        yield UseBegun(at, part.id, part.use or "", part.free)
        value = self._now(part.input, asked)
        text = value if isinstance(value, str) else json_text(value)
        size = _INPUT_PIECE if self._size(cue) is None else self._size(cue)
        yield from (UsePiece(at, piece) for piece in _chunks(text, size or 0))
        yield UseEnded(at, cut=part.cut)

    def _thinking(self, part: Spoken, cue: Cue, asked: ModelRequest) -> Iterator[Delta]:
        wire = self.wire if part.wire is None else part.wire
        yield from (ThinkingPiece(piece, wire=wire) for piece in self._pieces(self._now(part.thinking, asked), cue))
        if part.signature or part.sealed:
            yield ThinkingPiece("", part.signature, part.sealed, wire)

    def _now(self, value: Any, asked: ModelRequest) -> Any:
        try:
            return fill_placeholders(value, self.workspace, lambda: results_of(asked))
        except NotFound as error:
            raise self._astray(str(error).removesuffix(".")) from error

    def _astray(self, why: str) -> ModelError:
        return ModelError(f"The conversation goes another way than {self.name}: {why}.", "bad")

    def _size(self, cue: Cue) -> int | None:
        return self.header.piece if cue.piece is None else cue.piece

    def _pieces(self, text: str, cue: Cue) -> list[str]:
        size = self._size(cue)
        return re.findall(r"\S+\s*|\s+", text) if size is None else _chunks(text, size)

    async def _pause(self, cue: Cue, delta: Delta) -> None:
        seconds = (self.header.pause if cue.pause is None else cue.pause) * self.pace
        # Others have their turn between any two pieces, as with a model that is far away.
        await asyncio.sleep(seconds if isinstance(delta, TextPiece | ThinkingPiece | UsePiece) else 0)


def beginning(asked: ModelRequest) -> tuple[str, str]:
    """The words of the system and the first words of the user: by them a conversation is known."""
    system = "\n\n".join(system_words(turn) for turn in asked.turns if turn.role == "system")
    return system, next((words for turn in asked.turns if turn.role == "user" and (words := _words(turn))), "")


def results_of(asked: ModelRequest) -> dict[str, str]:
    """The text of every result, by the id of its call."""
    return {part.id: _words(part) for turn in asked.turns for part in turn.parts if isinstance(part, Result)}


def new_user_turns(asked: ModelRequest) -> list[Turn]:
    """What came after the model's last words."""
    last = max((at for at, turn in enumerate(asked.turns) if turn.role == "assistant"), default=-1)
    return [turn for turn in asked.turns[last + 1 :] if turn.role == "user"]


def _words(holder: Turn | Result) -> str:
    return "\n".join(part.text for part in holder.parts if isinstance(part, Text))


def _check(cue: Cue, asked: ModelRequest, name: str) -> None:
    if not cue.expect:
        return
    results = results_of(asked)
    last = "\n".join(
        _words(part) if isinstance(part, Result) else part.text
        for turn in new_user_turns(asked)
        for part in turn.parts
        if isinstance(part, Result | Text)
    )
    wanted = {"": cue.expect} if isinstance(cue.expect, str) else cue.expect
    for call_id, texts in wanted.items():
        where = f"the result of {call_id}" if call_id else "what came last"
        there = results.get(call_id) if call_id else last
        if there is None:
            raise ModelError(f"The conversation goes another way than {name}: it has no result of {call_id}.", "bad")
        for text in [texts] if isinstance(texts, str) else texts:
            if text not in there:
                raise ModelError(
                    f"The conversation goes another way than {name}: {_quote(text)} is expected in {where}, "
                    f"which says {_quote(there)}.",
                    "bad",
                )


def _number_calls(cues: tuple[Line, ...]) -> Iterator[Line]:
    """Calls without an id are counted through all cues."""
    count = 0
    for cue in cues:
        yield _with_ids(cue, "c", count) if isinstance(cue, Cue) else cue
        count += sum(part.use is not None for part in cue.parts) if isinstance(cue, Cue) else 0


def _with_ids(cue: Cue, prefix: str, count: int = 0) -> Cue:
    if all(part.use is None or part.id for part in cue.parts):
        return cue

    parts = []
    for part in cue.parts:
        count += part.use is not None
        parts.append(replace(part, id=f"{prefix}{count}") if part.use is not None and not part.id else part)
    return replace(cue, parts=tuple(parts))


def _chunks(text: str, size: int) -> list[str]:
    if not text or size <= 0:
        return [text] if text else []
    return [text[at : at + size] for at in range(0, len(text), size)]


def _quote(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


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

    def whom(self, asked: ModelRequest) -> Whom | None:
        """The conversation that is being asked for. The first one is the main one, which has no name.

        One that lost its beginning, because it was made smaller, is known by its calls.
        """
        prompt = beginning(asked)[1]
        if prompt not in self._by_prompt:
            uses = (part.id for turn in asked.turns for part in turn.parts if isinstance(part, Use))
            known = next((use for use in uses if use in self._by_call), None)
            self._by_prompt[prompt] = self._by_call[known] if known is not None else self._name_conversation(prompt)
        return self._by_prompt[prompt]

    def _name_conversation(self, prompt: str) -> Whom | None:
        if not self._by_prompt:
            return None
        short = prompt[:_PROMPT_CHARACTERS]
        is_alike = any(other.startswith(short) for other in self._by_prompt)
        return Whom(prompt=self.portable.insert_placeholders(prompt if is_alike else short))

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

    async def ask(self, asked: ModelRequest) -> AsyncGenerator[Delta | RetryNotice, None]:
        """What the model answers. An answer is on the disk before its end is passed on.

        Raises: ModelError.
        """
        await self.tape.begin(self)
        taken = Take(self.tape, asked)
        answer = self._inner.ask(asked)
        try:
            async for delta in answer:
                if isinstance(delta, RetryNotice):
                    await self.tape.put(taken.cue(again=Repeat(why=delta.why, seconds=delta.seconds)))
                    taken = Take(self.tape, asked)
                else:
                    taken.put(delta)
                    if isinstance(delta, AnswerEnd):
                        await self.tape.put(taken.cue())
                yield delta
        except ModelError as error:
            await self.tape.put(taken.cue(fail=RecordedFailure(kind=error.kind, message=str(error))))
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

    def __init__(self, tape: Tape, asked: ModelRequest) -> None:
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

    def cue(self, *, again: Repeat | None = None, fail: RecordedFailure | None = None) -> Cue:
        answer = self._assembler.said()
        broke = self._assembler.broke
        made = self._portable.insert_placeholders
        results = results_of(self._asked)
        order = iter(self._uses)
        return Cue(
            whom=self._whom,
            prompt="" if self._whom else made(_prompt(self._asked)),
            parts=tuple(self._part(part, order, results) for part in answer.parts),
            reason=answer.reason,
            usage=answer.usage,
            broke=RecordedError(message=made(broke.message), kind=broke.kind) if broke else None,
            again=Repeat(why=made(again.why), seconds=again.seconds) if again else None,
            fail=RecordedFailure(kind=fail.kind, message=made(fail.message)) if fail else None,
        )

    def _part(self, part: Part, order: Iterator[int], results: dict[str, str]) -> Spoken:
        made = self._portable.insert_placeholders
        if isinstance(part, Use):
            cut = next(order) in self._cut
            put = made(part.input, results)
            return Spoken(use=part.name, id=part.id, input=put, free=part.is_text, cut=cut)
        if isinstance(part, Thinking):
            wire = None if part.wire == self._wire else part.wire
            return Spoken(thinking=made(part.text), signature=part.signature, sealed=part.sealed, wire=wire)
        assert isinstance(part, Text)
        return Spoken(text=made(part.text))


def _prompt(asked: ModelRequest) -> str:
    """What the user said since the model's last words; nothing while only results come."""
    return "\n".join(part.text for turn in new_user_turns(asked) for part in turn.parts if isinstance(part, Text))
