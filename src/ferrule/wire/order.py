"""Deltas in an order that every API can be told: one thing after the other, and nothing left open."""

from collections import deque
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ferrule.wire.delta import Begun, Block, Broke, Delta, Ended, TextPiece, ThinkingPiece, UseBegun, UseEnded, UsePiece

_encode = msgspec.json.Encoder().encode


class Order:
    """Holds back what cannot be said yet, and loses none of it.

    Most APIs say one thing at a time, while calls may arrive interleaved: whatever begins during a call waits for
    the end of that call, in the order of begin. `together` is for an API that lets calls be interleaved.
    After `Broke` nothing is said any more: neither what was held back nor the end of a call is. An answer that seems to
    be whole and holds a call that is not, is said to have been too long.
    Without `free_text`, the text of a call that takes free text becomes the one parameter, `input`, of a JSON object.
    """

    def __init__(self, *, together: bool = False, free_text: bool = False) -> None:
        self._together = together
        self._free_text = free_text
        self._begun = False
        self._over = False
        self._was_cut = False
        self.flowing = -1
        """The call whose pieces go out as they come; -1 where there is none, or where they are still being changed."""
        self._open: dict[int, bool] = {}
        """The calls that were said to begin and not to end, and whether their text has to be put into JSON."""
        self._silent: set[int] = set()
        """Those of them that have said nothing yet."""
        self._waiting: dict[int, list[Delta]] = {}
        self._queue: deque[list[Delta]] = deque()

    def put(self, delta: Delta) -> Sequence[Delta]:
        """What can be said now."""
        if type(delta) is UsePiece and delta.at == self.flowing and delta.text:
            return (delta,)
        out: list[Delta] = []
        if self._over:
            return out
        if not self._begun:
            self._begun = True
            out.append(delta if isinstance(delta, Begun) else Begun("", ""))
        match delta:
            case Begun():
                pass
            case Broke():
                self._over = True
                self.flowing = -1
                out.append(delta)
            case Ended():
                self._end(delta, out)
            case TextPiece() | ThinkingPiece() | Block():
                self._words(delta, out)
            case UseBegun():
                self._use(delta, out)
            case UsePiece() | UseEnded():
                self._more(delta, out)
        return out

    def _words(self, delta: TextPiece | ThinkingPiece | Block, out: list[Delta]) -> None:
        if _is_empty(delta):
            return
        if self._together or not self._open:
            out.append(delta)
        elif self._queue and not isinstance(self._queue[-1][0], UseBegun):
            self._queue[-1].append(delta)
        else:
            self._queue.append([delta])

    def _use(self, delta: UseBegun, out: list[Delta]) -> None:
        if delta.at in self._open or delta.at in self._waiting:
            return
        if self._together or not self._open:
            self._say(delta, out)
        else:
            self._waiting[delta.at] = [delta]
            self._queue.append(self._waiting[delta.at])

    def _more(self, delta: UsePiece | UseEnded, out: list[Delta]) -> None:
        if delta.at in self._open:
            self._say(delta, out)
            self._drain(out)
        elif (waiting := self._waiting.get(delta.at)) and not isinstance(waiting[-1], UseEnded):
            waiting.append(delta)

    def _drain(self, out: list[Delta]) -> None:
        while self._queue and not self._open:
            for delta in self._queue.popleft():
                if isinstance(delta, UseBegun):
                    del self._waiting[delta.at]
                self._say(delta, out)

    def _end(self, delta: Ended, out: list[Delta]) -> None:
        while self._open:
            self._say(UseEnded(next(iter(self._open)), cut=True), out)
            self._drain(out)
        self._over = True
        is_whole = delta.reason in {"end", "tools"}
        out.append(replace(delta, reason="length") if self._was_cut and is_whole else delta)

    def _say(self, delta: Delta, out: list[Delta]) -> None:
        match delta:
            case UseBegun(at=at):
                in_json = delta.is_text and not self._free_text
                self._open[at] = in_json
                if in_json:
                    out += (replace(delta, is_text=False), UsePiece(at, '{"input":"'))
                    return
                if not delta.is_text:
                    self._silent.add(at)
            case UsePiece(at=at, text=text):
                if not text:
                    return
                self._silent.discard(at)
                if self._open[at]:
                    out.append(UsePiece(at, _encode(text)[1:-1].decode()))
                    return
                self.flowing = at
            case UseEnded(at=at, cut=cut):
                if not cut and self._open[at]:
                    out.append(UsePiece(at, '"}'))
                elif not cut and at in self._silent:
                    out.append(UsePiece(at, "{}"))
                self._was_cut = self._was_cut or cut
                del self._open[at]
                self._silent.discard(at)
                self.flowing = -1
        out.append(delta)


def _is_empty(delta: TextPiece | ThinkingPiece | Block) -> bool:
    if isinstance(delta, Block) or delta.text:
        return False
    return not (isinstance(delta, ThinkingPiece) and (delta.signature or delta.sealed))
