"""Calls that Grok writes into its text as XML, taken out of the text. Off unless somebody asks for it."""

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from ferrule.wire.delta import Delta, Ended, TextPiece, UseBegun, UseEnded, UsePiece

_OPEN = "<xai:function_call"
_CLOSE = "</xai:function_call>"
_NAME = re.compile(r"""\s+name\s*=\s*(?:"([^"]*)"|'([^']*)')\s*>""")
_PARAMETER = re.compile(r"""<xai:parameter\s+name\s*=\s*(?:"([^"]*)"|'([^']*)')\s*>""")
_END = "</xai:parameter>"

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class GrokCalls:
    """Deltas on their way: text goes through, calls inside of it become calls.

    Text is held back only while it may be the beginning of a call. What never becomes one is given out as text.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        """Text that begins with `<xai:function_call` and whose end has not come."""
        self._tail = ""
        """The last characters of what was looked through, in which the end may have begun."""
        self._maybe = ""
        """The end of the text, where it may be the beginning of a call."""
        self._found = 0
        self._ats: dict[int, int] = {}
        self._calls = 0

    def put(self, delta: Delta) -> list[Delta]:
        """What this delta becomes."""
        out: list[Delta] = []
        if isinstance(delta, TextPiece):
            self._text(delta.text, out)
            return out
        self._let_go(out)
        match delta:
            case UseBegun():
                self._ats[delta.at] = self._calls
                self._calls += 1
                out.append(replace(delta, at=self._ats[delta.at]))
            case UsePiece():
                out.append(UsePiece(self._ats.get(delta.at, delta.at), delta.text))
            case UseEnded():
                out.append(UseEnded(self._ats.get(delta.at, delta.at), delta.cut))
            case Ended() if delta.reason == "end" and self._found:
                out.append(Ended("tools", delta.usage, delta.skipped))
            case _:
                out.append(delta)
        return out

    def _text(self, text: str, out: list[Delta]) -> None:
        text, self._maybe = self._maybe + text, ""
        at = 0
        while at < len(text):
            at = self._inside(text, at, out) if self._held else self._outside(text, at, out)

    def _outside(self, text: str, at: int, out: list[Delta]) -> int:
        """Where the text of a call begins; what stands before it is said."""
        start = text.find(_OPEN, at)
        if start >= 0:
            _say(text[at:start], out)
            self._held = [_OPEN]
            return start + len(_OPEN)
        end = len(text) - _beginning(text, at)
        _say(text[at:end], out)
        self._maybe = text[end:]
        return len(text)

    def _inside(self, text: str, at: int, out: list[Delta]) -> int:
        """Where the text after a call begins."""
        # The end may have begun in the piece before.
        seam = (self._tail + text[at : at + len(_CLOSE) - 1]).find(_CLOSE)
        found = text.find(_CLOSE, at) if seam < 0 else at + seam - len(self._tail)
        if seam < 0 and found < 0:
            self._held.append(text[at:])
            self._tail = (self._tail + text[at:][-len(_CLOSE) :])[-len(_CLOSE) + 1 :]
            return len(text)
        stop = found + len(_CLOSE)
        whole = "".join(self._held) + text[at:stop]
        self._held, self._tail = [], ""
        self._call(whole, out)
        return stop

    def _call(self, xml: str, out: list[Delta]) -> None:
        head = _NAME.match(xml, len(_OPEN))
        if head is None or not (head[1] or head[2]):
            _say(xml, out)
            return
        values = _parameters(xml, head.end())
        self._found += 1
        at = self._calls
        self._calls += 1
        out.append(UseBegun(at, f"toolu_grok_{self._found}", head[1] or head[2]))
        out.append(UsePiece(at, _encode(values).decode()))
        out.append(UseEnded(at))

    def _let_go(self, out: list[Delta]) -> None:
        _say("".join(self._held) + self._maybe, out)
        self._held, self._tail, self._maybe = [], "", ""


def _say(text: str, out: list[Delta]) -> None:
    if text:
        out.append(TextPiece(text))


def _beginning(text: str, at: int) -> int:
    """How many characters at the end of a text are the beginning of a call, as far as one can see."""
    most = min(len(_OPEN) - 1, len(text) - at)
    return next((size for size in range(most, 0, -1) if text.endswith(_OPEN[:size])), 0)


def _parameters(xml: str, at: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    while (head := _PARAMETER.search(xml, at)) is not None:
        end = xml.find(_END, head.end())
        if end < 0:
            break
        values[head[1] or head[2]] = _value(xml[head.end() : end])
        at = end + len(_END)
    return values


def _value(text: str) -> Any:
    """A parameter: JSON where it is JSON, otherwise the text itself."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text
