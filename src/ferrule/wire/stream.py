"""What all streams share: an answer begins once, its calls are numbered and all of them end, and it ends once."""

import os
from collections.abc import Callable
from typing import Any

import msgspec

from ferrule.wire.delta import Begun, Block, Broke, Delta, Ended, TextPiece, ThinkingPiece, UseBegun, UseEnded, UsePiece
from ferrule.wire.mend import Mender
from ferrule.wire.order import Order
from ferrule.wire.sse import DONE, Event
from ferrule.wire.turn import Reason, Usage

_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
encode = msgspec.json.Encoder().encode
_Say = Callable[[Any, list[Event]], None]
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def made_id(prefix: str) -> str:
    """An id for what came without one."""
    return f"{prefix}{os.urandom(12).hex()}"


def json_text(value: Any) -> str:
    return encode(value).decode()


def is_object(text: str) -> bool:
    """Is this a whole JSON object? If so, nothing can be missing at its end."""
    try:
        return isinstance(_object(text), dict)
    except _UNREADABLE:
        return False


class StreamReader:
    """Reads one answer. What it gives is always complete: `Begun` first, every call ended, one `Ended`, and that last.

    An event that cannot be read is skipped and counted; `Ended` says how many there were. Events of kinds that are
    not known here are passed over in silence: the APIs promise to add some.
    """

    def __init__(self, decoder: msgspec.json.Decoder[Any]) -> None:
        self.skipped = 0
        self.odd = 0
        """Events that were no JSON: those that were mended, and those that nobody could read."""
        self._decode = decoder.decode
        self._mender = Mender()
        self._begun = False
        self._over = False
        self._calls = 0
        self._open: dict[int, None] = {}
        self._ids: set[str] = set()
        self._whole = 0
        self._reason: Reason | None = None
        self._usage = Usage()

    @property
    def is_over(self) -> bool:
        """Did `Ended` come?"""
        return self._over

    @property
    def is_told(self) -> bool:
        """Did the API say how the answer ends? Where it did not, the stream was cut."""
        return self._over or self._reason is not None

    def read(self, event: Event) -> list[Delta]:
        """What an event says. Nothing more is read after the end of the answer."""
        if self._over:
            return []
        try:
            value = self._decode(event.data)
        except _UNREADABLE:
            deltas = self._read_badly(event)
        else:
            deltas = self._take(value)
        if deltas and not self._begun:
            self._begin(deltas)
        return deltas

    def end(self) -> list[Delta]:
        """What is missing of the answer when the stream stops, wherever it stops."""
        if self._over:
            return []
        deltas = self._close(whole=self._reason is not None)
        if not self._begun:
            self._begin(deltas)
        return deltas

    def _take(self, value: Any) -> list[Delta]:
        raise NotImplementedError

    def _begin(self, deltas: list[Delta]) -> None:
        self._begun = True
        if type(deltas[0]) is not Begun:
            deltas.insert(0, Begun("", ""))

    def _read_badly(self, event: Event) -> list[Delta]:
        data = event.data.strip()
        if data == DONE.data:
            return self._close(whole=True)
        if not data:
            return []
        self.odd += 1
        try:
            value = self._decode(self._mender.mend(data))
        except _UNREADABLE:
            if event.name == "error":
                return [Broke(data.decode("utf-8", "replace"))]
            self.skipped += 1
            return []
        return self._take(value)

    def _use(self, name: str, call_id: str, *, is_text: bool = False, namespace: str = "") -> UseBegun:
        at = self._calls
        self._calls += 1
        self._open[at] = None
        # Some servers give all calls the same id; their results could not be told apart.
        if not call_id or call_id in self._ids:
            call_id = made_id("call_")
        self._ids.add(call_id)
        return UseBegun(at, call_id, name, is_text, namespace)

    def _used(self, at: int, *, whole: bool = True) -> list[Delta]:
        """The end of a call, unless it ended before."""
        if at not in self._open:
            return []
        del self._open[at]
        self._whole += whole
        return [UseEnded(at, cut=not whole)]

    def _close(self, *, whole: bool) -> list[Delta]:
        """The end of the answer. Calls that are still open are whole if the API itself said that all is said."""
        self._over = True
        deltas: list[Delta] = []
        for at in list(self._open):
            deltas += self._used(at, whole=whole and self._reason not in {"length", "refused"})
        reason = self._reason or ("tools" if self._whole else "end")
        deltas.append(Ended(reason, self._usage, self.skipped))
        return deltas


class StreamWriter:
    """Writes one answer. However the deltas come, the events that go out are legal; after `Ended` nothing does.

    `Broke` becomes the API's own error, and nothing is written behind it: no answer that broke ends as if it were
    whole.
    """

    def __init__(self, *, together: bool = False, free_text: bool = False) -> None:
        self._order = Order(together=together, free_text=free_text)
        self._by: dict[type, _Say] = {
            Begun: self._begin,
            TextPiece: self._text,
            ThinkingPiece: self._thinking,
            UseBegun: self._use,
            UsePiece: self._piece,
            UseEnded: self._used,
            Block: self._block,
            Broke: self._broke,
            Ended: self._end,
        }

    def write(self, delta: Delta) -> list[Event]:
        """The events that say so; none where it has to wait for an earlier call to end."""
        out: list[Event] = []
        for one in self._order.put(delta):
            self._by[type(one)](one, out)
        return out

    def _begin(self, delta: Begun, out: list[Event]) -> None:
        raise NotImplementedError

    def _text(self, delta: TextPiece, out: list[Event]) -> None:
        raise NotImplementedError

    def _thinking(self, delta: ThinkingPiece, out: list[Event]) -> None:
        raise NotImplementedError

    def _use(self, delta: UseBegun, out: list[Event]) -> None:
        raise NotImplementedError

    def _piece(self, delta: UsePiece, out: list[Event]) -> None:
        raise NotImplementedError

    def _used(self, delta: UseEnded, out: list[Event]) -> None:
        raise NotImplementedError

    def _block(self, delta: Block, out: list[Event]) -> None:
        """A block of another API has no place."""

    def _broke(self, delta: Broke, out: list[Event]) -> None:
        raise NotImplementedError

    def _end(self, delta: Ended, out: list[Event]) -> None:
        raise NotImplementedError
