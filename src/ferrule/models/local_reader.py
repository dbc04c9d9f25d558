"""What a local model writes, as deltas: words, and the calls in them."""

import re

import msgspec

from ferrule.models.local_grammar import OPEN, TAIL
from ferrule.wire.delta import Delta, Ended, TextPiece, UseBegun, UseEnded, UsePiece
from ferrule.wire.stream import made_id
from ferrule.wire.turn import Reason, Usage

_HEAD = r'\s*\{"name": ("(?:[^"\\]|\\.)*"), "arguments": (?=\{)'


class LocalReader:
    """Reads one answer piece by piece. Without tools all of it is words."""

    def __init__(self, *, has_tools: bool) -> None:
        self._has_tools = has_tools
        self._text = ""
        """What came and was not said yet."""
        self._step = self._words
        """What is expected now. False where more has to come first."""
        self._at = -1
        self._whole = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> list[Delta]:
        if not self._has_tools:
            return [TextPiece(text)] if text else []
        self._text += text
        out: list[Delta] = []
        while self._text and self._step(out):
            pass
        return out

    def end(self, finish: str, usage: Usage) -> list[Delta]:
        """What is left, and the end; a call that is not complete is said to be cut."""
        out: list[Delta] = []
        if self._at >= self._whole:
            out.append(UseEnded(self._at, cut=True))
        elif self._text and self._step == self._words:
            out.append(TextPiece(self._text))
        reason: Reason = "length" if finish == "length" else "tools" if self._whole else "end"
        return [*out, Ended(reason, usage)]

    def _words(self, out: list[Delta]) -> bool:
        words, mark, rest = self._text.partition(OPEN)
        if not mark:
            kept = _overlap(words)
            words, rest = words[: len(words) - kept], words[len(words) - kept :]
        if words:
            out.append(TextPiece(words))
        self._text = rest
        if mark:
            self._step = self._head
        return bool(mark)

    def _head(self, out: list[Delta]) -> bool:
        match = re.match(_HEAD, self._text)
        if match is None:
            return False
        self._at += 1
        self._text = self._text[match.end() :]
        out.append(UseBegun(self._at, made_id("call_"), str(msgspec.json.decode(match[1]))))
        self._step = self._arguments
        return True

    def _arguments(self, out: list[Delta]) -> bool:
        length = self._object()
        piece = self._text if length is None else self._text[:length]
        self._text = self._text[len(piece) :]
        out.append(UsePiece(self._at, piece))
        if length is None:
            return False
        self._whole += 1
        out.append(UseEnded(self._at))
        self._step = self._tail
        return True

    def _tail(self, out: list[Delta]) -> bool:  # noqa: ARG002 - a step like the others; the end of a call is no delta
        if len(self._text) < len(TAIL):
            return False
        self._text = self._text.removeprefix(TAIL)
        self._step = self._gap
        return True

    def _gap(self, out: list[Delta]) -> bool:  # noqa: ARG002 - the same
        """Line breaks between two calls are no words."""
        self._text = self._text.lstrip("\n")
        if self._text:
            self._step = self._words
        return bool(self._text)

    def _object(self) -> int | None:
        """How far the object goes that is being read; None where it goes on."""
        for at, character in enumerate(self._text, 1):
            if self._in_string:
                self._in_string = self._escaped or character != '"'
                self._escaped = character == "\\" and not self._escaped
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if not self._depth:
                    return at
        return None


def _overlap(text: str) -> int:
    """How much at the end of a text may be the beginning of a call."""
    return next((size for size in range(min(len(text), len(OPEN) - 1), 0, -1) if OPEN.startswith(text[-size:])), 0)
