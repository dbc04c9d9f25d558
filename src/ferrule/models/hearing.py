"""Hearing one answer: bytes into deltas, and whatever goes wrong on the way into a fault."""

from collections.abc import Callable
from typing import Any

from ferrule.models.errors import Fault, broke, called
from ferrule.models.hosts import Host
from ferrule.models.line import Incoming
from ferrule.models.model import Trouble
from ferrule.models.sockets import Broken, Silent
from ferrule.models.speech import SPEECH, reader_of
from ferrule.wire.delta import Begun, Broke, Delta, Ended
from ferrule.wire.sse import Event, EventReader, EventTooLongError

Tap = Callable[[Event], object]
"""Whoever wants the events of an answer as they came."""
MOST_SILENT_BYTES = 64 * 1024 * 1024
"""So much may come that is nothing of an answer: comments, and events of kinds that are not known."""


class Hearing:
    """One answer as it arrives."""

    def __init__(
        self, incoming: Incoming, host: Host, model: str, quiet_seconds: float, tap: Tap | None = None
    ) -> None:
        self._tap = tap
        self._incoming = incoming
        self._host = host
        self._model = model
        self._quiet_seconds = quiet_seconds
        self._events = EventReader()
        self._reader = reader_of(host.api)
        self._is_done = False
        self._silent_bytes = 0
        self._has_said = False

    async def more(self) -> list[Delta] | None:
        """What the next piece says; None when all is said. Raises Fault."""
        if self._is_done:
            return None
        piece = await self._piece()
        try:
            if piece is None:
                return self._last()
            deltas = self._read(self._events.feed(piece))
        except EventTooLongError as error:
            advice = f"sent what is no answer: {error}"
            raise fault(self._host, self._model, "bad", advice, passing=False, is_nonsense=True) from error
        self._silent_bytes = 0 if deltas else self._silent_bytes + len(piece)
        if self._silent_bytes > MOST_SILENT_BYTES:
            advice = f"sent {MOST_SILENT_BYTES:,} bytes that are nothing of an answer"
            raise fault(self._host, self._model, "bad", advice, passing=False, is_nonsense=True)
        if self._reader.is_over:
            self._is_done = True
            await self._incoming.finish()
        return deltas

    async def _piece(self) -> bytes | None:
        try:
            return await self._incoming.piece()
        except Silent:
            raise silent(self._host, self._model, self._quiet_seconds) from None
        except Broken:
            # A line that breaks behind the last word takes nothing with it.
            self._incoming.close()
            return None

    def _last(self) -> list[Delta]:
        """The line is at its end: either that is the end of the answer, or the answer was cut."""
        self._is_done = True
        deltas = self._read(self._events.end())
        if not self._reader.is_told:
            message = "broke off in the middle of its answer"
            raise fault(self._host, self._model, "cut", message, "the answer broke off")
        deltas += self._reader.end()
        if SPEECH[self._host.api].forgets and not self._has_said and deltas and _is_plain_end(deltas[-1]):
            message = "gave an answer with nothing in it; ask again, or in other words"
            raise fault(self._host, self._model, "server", message, "the answer was empty")
        return deltas

    def _read(self, events: list[Event]) -> list[Delta]:
        deltas: list[Delta] = []
        reader, tap = self._reader, self._tap
        for event in events:
            odd = reader.odd
            deltas += reader.read(event)
            if tap is None:
                continue
            if reader.odd != odd:
                # It can neither be passed on as it is nor be left out.
                raise fault(self._host, self._model, "server", "sent an event that is no JSON", "an event was no JSON")
            if not (deltas and type(deltas[-1]) is Broke):
                tap(event)
        for delta in deltas:
            if type(delta) is Broke:
                raise broke(delta.message, delta.kind, self._host, self._model)
            if type(delta) is not Begun:
                self._has_said = True
        return deltas


def _is_plain_end(delta: Delta) -> bool:
    return isinstance(delta, Ended) and delta.reason == "end"


def fault(host: Host, model: str, kind: Trouble, advice: str, why: str = "", **how: Any) -> Fault:
    """A fault that no status tells of."""
    message = f"{called(host, model)} {advice}" + ("" if advice.endswith("?") else ".")
    return Fault(kind, message, why, **{"passing": True, **how})


def silent(host: Host, model: str, quiet_seconds: float) -> Fault:
    advice = f"said nothing for {in_words(quiet_seconds)} and is taken to have broken off"
    return fault(host, model, "cut", advice, "the host fell silent")


def in_words(seconds: float) -> str:
    """A time in words."""
    if seconds < 120:
        return f"{seconds:g} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"
