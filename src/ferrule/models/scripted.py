"""A model that plays a recorded conversation: for the demo, for tests, and to see again what once was."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from ferrule.models.model import Again, ModelError, Prices
from ferrule.models.recorded import Cue, Header, Spoken, Whom, read
from ferrule.models.standins import NotFound, filled
from ferrule.wire.content import json_text
from ferrule.wire.conversation import system_words
from ferrule.wire.delta import Begun, Broke, Delta, Ended, TextPiece, ThinkingPiece, UseBegun, UseEnded, UsePiece
from ferrule.wire.turn import Asked, Result, Text, Turn, Use

_INPUT_PIECE = 32
"""How many characters of a call's input come at once, where nothing else is said."""
_SHOWN = 200

_Key = tuple[Whom | None, str]
"""For whom the cues are, and the first words of the conversation that hears them; none for the main one."""
Line = Cue | Callable[[Asked], Cue]
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
        self.asked: list[Asked] = []
        """All that it was asked, in order."""
        self._tracks: dict[Whom | None, list[Line]] = {}
        self._played: dict[_Key, int] = {}
        self._by_call: dict[str, _Key] = {}
        for cue in _numbered(cues):
            self._tracks.setdefault(cue.whom if isinstance(cue, Cue) else None, []).append(cue)

    @property
    def left(self) -> int:
        """How many cues nobody has heard yet."""
        heard: dict[Whom | None, int] = {}
        for (whom, _), count in self._played.items():
            heard[whom] = max(heard.get(whom, 0), count)
        return sum(len(cues) - heard.get(whom, 0) for whom, cues in self._tracks.items())

    async def ask(self, asked: Asked) -> AsyncGenerator[Delta | Again, None]:
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
            yield Again(cue.again.why, cue.again.seconds, attempt)

    async def close(self) -> None:
        """There is nothing to close."""

    def expects(self, system: str, prompt: str) -> bool:
        """Has it cues for a conversation of its own that begins so?"""
        asked = Asked(model="", turns=(Turn("system", (Text(system),)), Turn("user", (Text(prompt),))))
        return self._whom(asked, system, prompt) is not None

    def _next(self, asked: Asked) -> Cue:
        system, prompt = beginning(asked)
        key = self._known(asked, self._whom(asked, system, prompt), prompt)
        at = self._played.get(key, 0)
        cues = self._tracks.get(key[0], [])
        if not cues:
            raise self._astray(f"no cue is for the conversation that begins with {_shown(prompt)}")
        if at >= len(cues):
            raise ModelError(
                f"The recording is at its end: {self.name} has {len(cues)} answer{'s' * (len(cues) != 1)} for the "
                f"conversation that begins with {_shown(prompt)}, and was asked once more. "
                "Add a line to it, or record it again.",
                "bad",
            )
        self._played[key] = at + 1
        line = cues[at]
        cue = line if isinstance(line, Cue) else _with_ids(line(asked), f"c{len(self.asked)}_")
        self._by_call.update((part.id, key) for part in cue.parts if part.use is not None)
        return cue

    def _known(self, asked: Asked, whom: Whom | None, prompt: str) -> _Key:
        """A conversation that lost its beginning, because it was made smaller, is known by its calls."""
        key = (whom, "" if whom is None else prompt)
        if whom is not None and key in self._played:
            return key
        uses = (part.id for turn in asked.turns for part in turn.parts if isinstance(part, Use))
        return next((self._by_call[use] for use in uses if use in self._by_call), key)

    def _whom(self, asked: Asked, system: str, prompt: str) -> Whom | None:
        fitting = [
            whom
            for whom in self._tracks
            if whom is not None and self._now(whom.prompt, asked) in prompt and self._now(whom.system, asked) in system
        ]
        return max(fitting, key=lambda whom: len(whom.prompt) + len(whom.system), default=None)

    def _deltas(self, cue: Cue, asked: Asked, number: int) -> Iterator[Delta]:
        parts = (Spoken(text=cue.text), *cue.parts) if cue.text else cue.parts
        if parts or cue.fail is None:
            yield Begun(f"msg_{number}", self.model)
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
            yield Ended(cue.stops, cue.usage)

    def _use(self, part: Spoken, at: int, cue: Cue, asked: Asked) -> Iterator[Delta]:
        yield UseBegun(at, part.id, part.use or "", part.free)
        value = self._now(part.input, asked)
        text = value if isinstance(value, str) else json_text(value)
        size = _INPUT_PIECE if self._size(cue) is None else self._size(cue)
        yield from (UsePiece(at, piece) for piece in _chunks(text, size or 0))
        yield UseEnded(at, cut=part.cut)

    def _thinking(self, part: Spoken, cue: Cue, asked: Asked) -> Iterator[Delta]:
        wire = self.wire if part.wire is None else part.wire
        yield from (ThinkingPiece(piece, wire=wire) for piece in self._pieces(self._now(part.thinking, asked), cue))
        if part.signature or part.sealed:
            yield ThinkingPiece("", part.signature, part.sealed, wire)

    def _now(self, value: Any, asked: Asked) -> Any:
        try:
            return filled(value, self.workspace, lambda: results_of(asked))
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


def beginning(asked: Asked) -> tuple[str, str]:
    """The words of the system and the first words of the user: by them a conversation is known."""
    system = "\n\n".join(system_words(turn) for turn in asked.turns if turn.role == "system")
    return system, next((words for turn in asked.turns if turn.role == "user" and (words := _words(turn))), "")


def results_of(asked: Asked) -> dict[str, str]:
    """The text of every result, by the id of its call."""
    return {part.id: _words(part) for turn in asked.turns for part in turn.parts if isinstance(part, Result)}


def heard(asked: Asked) -> list[Turn]:
    """What came after the model's last words."""
    last = max((at for at, turn in enumerate(asked.turns) if turn.role == "assistant"), default=-1)
    return [turn for turn in asked.turns[last + 1 :] if turn.role == "user"]


def _words(holder: Turn | Result) -> str:
    return "\n".join(part.text for part in holder.parts if isinstance(part, Text))


def _check(cue: Cue, asked: Asked, name: str) -> None:
    if not cue.expect:
        return
    results = results_of(asked)
    last = "\n".join(
        _words(part) if isinstance(part, Result) else part.text
        for turn in heard(asked)
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
                    f"The conversation goes another way than {name}: {_shown(text)} is expected in {where}, "
                    f"which says {_shown(there)}.",
                    "bad",
                )


def _numbered(cues: tuple[Line, ...]) -> Iterator[Line]:
    """Calls without an id are counted through all cues."""
    count = 0
    for cue in cues:
        yield _with_ids(cue, "c", count) if isinstance(cue, Cue) else cue
        count += sum(part.use is not None for part in cue.parts) if isinstance(cue, Cue) else 0


def _with_ids(cue: Cue, prefix: str, count: int = 0) -> Cue:
    if all(part.use is None or part.id for part in cue.parts):
        return cue
    from msgspec.structs import replace  # for cues that people wrote

    parts = []
    for part in cue.parts:
        count += part.use is not None
        parts.append(replace(part, id=f"{prefix}{count}") if part.use is not None and not part.id else part)
    return replace(cue, parts=tuple(parts))


def _chunks(text: str, size: int) -> list[str]:
    if not text or size <= 0:
        return [text] if text else []
    return [text[at : at + size] for at in range(0, len(text), size)]


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
