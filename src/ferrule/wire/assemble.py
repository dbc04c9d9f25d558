"""A streamed answer as if it had come at once."""

from collections.abc import Iterable
from typing import Any

import msgspec

from ferrule.wire.delta import Begun, Block, Broke, Delta, Ended, TextPiece, ThinkingPiece, UseBegun, UseEnded, UsePiece
from ferrule.wire.turn import Foreign, Part, Reason, Said, Text, Thinking, Usage, Use

_decode = msgspec.json.Decoder().decode


class _Open:
    """A part that is being said."""

    def __init__(self, begun: UseBegun | None = None, *, is_thinking: bool = False, wire: str = "") -> None:
        self.begun = begun
        self.is_thinking = is_thinking
        self.wire = wire
        self.pieces: list[str] = []
        self.signature = ""
        self.sealed = ""
        self.cut = False

    @property
    def is_said(self) -> bool:
        return bool(self.begun or any(self.pieces) or self.signature or self.sealed)


class Assembler:
    """Takes deltas and keeps what they make together. Parts stand in the order of their begin, each call once."""

    def __init__(self) -> None:
        self.broke: Broke | None = None
        """The first error that the API reported. What had been said until then is still there."""
        self._id = ""
        self._model = ""
        self._parts: list[_Open | Foreign] = []
        self._uses: dict[int, _Open] = {}
        self._reason: Reason = "end"
        self._usage = Usage()

    def put(self, delta: Delta) -> None:
        match delta:
            case TextPiece():
                self._words(is_thinking=False).pieces.append(delta.text)
            case ThinkingPiece():
                self._think(delta)
            case UseBegun() | UsePiece() | UseEnded():
                self._use(delta)
            case Block():
                self._parts.append(Foreign(delta.wire, str(delta.block.get("type") or ""), delta.block))
            case Begun():
                self._id, self._model = delta.id, delta.model
            case Broke():
                self.broke = self.broke or delta
            case Ended():
                self._reason, self._usage = delta.reason, delta.usage

    def _use(self, delta: UseBegun | UsePiece | UseEnded) -> None:
        use = self._uses.get(delta.at)
        if isinstance(delta, UseBegun):
            if use is None:
                use = self._uses[delta.at] = _Open(delta)
                self._parts.append(use)
        elif use is not None and isinstance(delta, UsePiece):
            use.pieces.append(delta.text)
        elif use is not None and isinstance(delta, UseEnded):
            use.cut = delta.cut

    def said(self) -> Said:
        """The answer so far; after `Ended` the whole of it."""
        parts = [part for part in self._parts if isinstance(part, Foreign) or part.is_said]
        made = tuple(self._part(part, is_last=part is parts[-1]) for part in parts)
        return Said(id=self._id, model=self._model, parts=made, reason=self._reason, usage=self._usage)

    def _words(self, *, is_thinking: bool, wire: str = "") -> _Open:
        last = self._parts[-1] if self._parts else None
        if (
            not isinstance(last, _Open)
            or last.begun is not None
            or last.is_thinking is not is_thinking
            or last.wire != wire
        ):
            last = _Open(is_thinking=is_thinking, wire=wire)
            self._parts.append(last)
        return last

    def _think(self, delta: ThinkingPiece) -> None:
        part = self._words(is_thinking=True, wire=delta.wire)
        # A signature and a seal end the thinking that they stand for.
        if part.signature or part.sealed:
            part = _Open(is_thinking=True, wire=delta.wire)
            self._parts.append(part)
        part.pieces.append(delta.text)
        part.signature, part.sealed = delta.signature, delta.sealed

    def _part(self, part: _Open | Foreign, *, is_last: bool) -> Part:
        if isinstance(part, Foreign):
            return part
        text = "".join(part.pieces)
        if part.begun is None:
            return Thinking(text, part.signature, part.sealed, part.wire) if part.is_thinking else Text(text)
        # Out of tokens before the first piece of input is no call without arguments.
        stopped_short = is_last and (self._reason in {"length", "refused"} or self.broke is not None)
        keeps_text = part.begun.is_text or part.cut or (stopped_short and not text)
        values = text if keeps_text else _input(text)
        return Use(part.begun.id, part.begun.name, values, part.begun.is_text, namespace=part.begun.namespace)


def _input(text: str) -> dict[str, Any] | str:
    """The object that was written; anything else stays the text that it is, for the engine to complain about."""
    if not text.strip():
        return {}
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def assemble(deltas: Iterable[Delta]) -> Said:
    """The answer that all deltas of a stream make."""
    assembler = Assembler()
    for delta in deltas:
        assembler.put(delta)
    return assembler.said()
