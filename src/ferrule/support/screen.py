"""What a reader would see of a program's output: no control characters, and of a redrawn line its last state.

What goes: escape sequences as a whole, control characters but tab and newline, characters that turn the direction of
writing, tag characters, byte-order marks. However the text is cut into pieces, what comes out is the same; only where
a line longer than is held back is drawn again, its earlier state may be seen too.
"""

import re
from functools import cache

CONTROLS = bytes(number for number in range(32) if number not in b"\t\n") + b"\x7f"
"""Bytes of which none is in a text that is shown as it is, where that is ASCII."""
COMMON_CONTROLS = (b"\x1b", b"\r", b"\b", b"\0", b"\a", b"\f", b"\v", b"\x7f")
"""Of these, output that has any nearly always has one."""
_LINE_CHARS = 1 << 14
"""So much of a line is held back because it may be drawn again; a longer one is let go, and a return ends it."""

_HIDDEN = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f"
_SPECIAL = f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDDEN}]"
_STEERS = f"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f{_HIDDEN}]"
_PAYLOAD = "[^\x00-\x08\x0a-\x1f\x7f-\x9f]*+"
"""Ends at the terminator, which is taken out by itself, or with its line: one that never ends hides no other."""
_CSI = "[0-?]*+[ -/]*+"
_STEERING = (
    f"\x1b++(?:\\[{_CSI}[@-~]?|[PX\\]^_k]{_PAYLOAD}|[ -/]*+[0-~]?)|\x9b{_CSI}[@-~]?"
    f"|[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f{_HIDDEN}]++"
)
_UNFINISHED = f"\x1b(?:\\[{_CSI}|[PX\\]^_k]{_PAYLOAD}|[ -/]*+)|\x9b{_CSI}"
_EARLIER = "(?m:^)[^\n]*\r(?=[^\r\n])"
"""The earlier states of a line. It is tried once for each line, so a long one costs no more than its length."""
_compiled = cache(re.compile)
"""On first use: most output is plain."""


class Screen:
    """Takes a text piece by piece and gives back the lines as they are when nothing can change them any more."""

    def __init__(self) -> None:
        self.line = ""
        """The line that is being written, as it looks now."""
        self._rest = ""
        self._returned = False
        self._long = False

    def feed(self, text: str, *, plain: bool = False) -> str:
        """Take more of the text; what has become certain by it. `plain`: no character of it is special."""
        if self._rest or not (plain or is_plain(text)):
            if self._rest or _compiled(_STEERS).search(text):
                text = self._stripped(self._rest + text)
            if self._returned or "\r" in text or "\b" in text:
                return self._drawn(text)
        elif self._returned:
            return self._drawn(text)
        cut = text.rfind("\n") + 1
        if not cut:
            self.line += text
            return self._released()
        certain = self.line + text[:cut]
        self.line = text[cut:]
        self._long = False
        return certain + self._released()

    def end(self) -> str:
        """There is no more: the last line is certain now."""
        line, self.line, self._rest = self.line, "", ""
        return line

    def _released(self) -> str:
        if len(self.line) <= _LINE_CHARS:
            return ""
        line, self.line, self._long = self.line, "", True
        return line

    def _stripped(self, text: str) -> str:
        """The text without what steers; a sequence that is not finished yet waits for the next piece."""
        self._rest = ""
        begin = max(text.rfind("\x1b"), text.rfind("\x9b"))
        if begin >= 0 and _compiled(_UNFINISHED).fullmatch(text, begin):
            # What it carries is of no interest, only what has to follow.
            keep = 1 if text[begin] == "\x9b" else 2
            text, rest = text[:begin], text[begin:]
            self._rest = rest if len(rest) <= keep else rest[:keep] + _last(rest, keep)
        return _compiled(_STEERING).sub("", text)

    def _drawn(self, text: str) -> str:
        """What becomes certain of a text that goes back in its line."""
        if self._returned:
            text = "\r" + text
        body = text.rstrip("\r")
        self._returned = len(body) < len(text)
        body = _compiled("\r+\n").sub("\n", body)
        if not self._long and "\b" not in body:
            certain = _compiled(_EARLIER).sub("", self.line + body)
            cut = certain.rfind("\n") + 1
            self.line = certain[cut:]
            return certain[:cut] + self._released()
        pieces: list[str] = []
        *lines, last = body.split("\n")
        for line in lines:
            self._draw(line, pieces)
            pieces += (self.line, "\n")
            self.line, self._long = "", False
        self._draw(last, pieces)
        pieces.append(self._released())
        return "".join(pieces)

    def _draw(self, text: str, certain: list[str]) -> None:
        first, *states = text.split("\r")
        self.line = _erased(self.line, first)
        state = next(filter(None, reversed(states)), "")
        if state:
            if self._long:  # its beginning is out already: what follows begins a line of its own
                certain += (self.line, "\n")
                self._long = False
            self.line = _erased("", state)


def is_plain(text: str) -> bool:
    """Is it shown as it is?"""
    return _compiled(_SPECIAL).search(text) is None


def stripped(text: str) -> str:
    """A text that is at an end, without the control characters in it."""
    return text if is_plain(text) else _compiled(_SPECIAL).sub("", text)


def _last(rest: str, keep: int) -> str:
    """The last character of a sequence's parameters: it tells which ones may follow. A payload's does not."""
    return rest[-1] if rest[keep - 1] in "[\x9b" else ""


def _erased(line: str, text: str) -> str:
    """The line with the text behind it, where each backspace has taken one character."""
    if "\b" not in text:
        return line + text
    kept = list(line)
    for run in _compiled("\b+|[^\b]+").findall(text):
        if run[0] == "\b":
            del kept[max(0, len(kept) - len(run)) :]
        else:
            kept += run
    return "".join(kept)
