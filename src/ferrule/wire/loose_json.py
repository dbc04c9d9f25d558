"""JSON as small models write it: single quotes, trailing commas, line ends in texts, Python's constants, no end."""

import json
import re
from typing import Any, NamedTuple

_DEPTH_LIMIT = 64
_STRICT = json.JSONDecoder(strict=False)
_BLANKS = re.compile(r"\s*")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?")
_CONSTANTS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_FOLLOWING = re.compile(r"\s*(?:,\s*[\"'][\w-]+[\"']\s*:|[}\]]\s*(?:[}\]]\s*)*(?:\Z|```|</|<\||,\s*\{))")
"""What stands behind the end of a text, where there may be quotes in it."""
_UNICODE = re.compile(r"u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?")


class LooseError(ValueError):
    """The text is no JSON, not even nearly; the message says where and why."""

    def __init__(self, why: str, at: int) -> None:
        super().__init__(why)
        self.at = at


class Loose(NamedTuple):
    """A value, where it ends, and whether braces at its end are missing."""

    value: Any
    end: int
    is_open: bool = False


def read(text: str, at: int = 0) -> Loose:
    """Read the value that begins at a place; what follows it does not matter. Raises: LooseError."""
    at = _skip(text, at)
    try:
        value, end = _STRICT.raw_decode(text, at)
        return Loose(value, end)
    except (ValueError, RecursionError):
        pass
    reading = _Reading(text)
    try:
        value, end = reading.value(at, 0)
    except LooseError:
        # Code in a text has quotes of its own, and not every model escapes them.
        reading = _Reading(text, inner_quotes=True)
        try:
            value, end = reading.value(at, 0)
        except LooseError:
            value, end = _Reading(text).value(at, 0)  # what is wrong with it as it stands
    return Loose(value, end, reading.is_open)


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


class _Reading:
    """Reads by recursive descent, and forgives."""

    def __init__(self, text: str, *, inner_quotes: bool = False) -> None:
        """With `inner_quotes` only those end a text that a name, a brace or a bracket follows."""
        self._text = text
        self._inner_quotes = inner_quotes
        self.is_open = False

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        if depth > _DEPTH_LIMIT:
            raise LooseError("it is nested too deeply", at)
        first = self._text[at : at + 1]
        if first == "{":
            return self._object(at + 1, depth)
        if first == "[":
            return self._array(at + 1, depth)
        if first in {'"', "'"}:
            return self._string(at)
        if number := _NUMBER.match(self._text, at):
            digits = number[0]
            return (float(digits) if re.search(r"[.eE]", digits) else int(digits[:300])), number.end()
        if (word := _WORD.match(self._text, at)) and word[0] in _CONSTANTS:
            return _CONSTANTS[word[0]], word.end()
        raise LooseError("it stops in the middle" if not first else f"{first!r} stands where a value belongs", at)

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        out: dict[str, Any] = {}
        while True:
            at = _skip(self._text, at)
            if (end := self._end(at, "}")) is not None:
                return out, end
            key, at = self._key(at)
            at = _skip(self._text, at)
            if self._text[at : at + 1] != ":":
                raise LooseError(f"a colon is missing behind {key!r}", at)
            out[key], at = self.value(_skip(self._text, at + 1), depth + 1)
            at = self._comma(at, "}")

    def _array(self, at: int, depth: int) -> tuple[list[Any], int]:
        out: list[Any] = []
        while True:
            at = _skip(self._text, at)
            if (end := self._end(at, "]")) is not None:
                return out, end
            one, at = self.value(at, depth + 1)
            out.append(one)
            at = self._comma(at, "]")

    def _end(self, at: int, closing: str) -> int | None:
        """Where the container is over: behind its brace, or where the text or the tag around it ends without one."""
        if self._text.startswith(closing, at):
            return at + 1
        if at >= len(self._text) or self._text.startswith(("</", "< /", "```", "<|"), at):
            self.is_open = True
            return at
        return None

    def _comma(self, at: int, closing: str) -> int:
        at = _skip(self._text, at)
        if self._text.startswith(",", at):
            return at + 1
        if self._text.startswith(closing, at) or self._end(at, closing) is not None:
            return at
        raise LooseError(f"a comma or {closing!r} is missing", at)

    def _key(self, at: int) -> tuple[str, int]:
        if self._text[at : at + 1] in {'"', "'"}:
            return self._string(at, is_key=True)
        if word := _WORD.match(self._text, at):
            return word[0], word.end()
        raise LooseError("a name in quotes is missing", at)

    def _string(self, at: int, *, is_key: bool = False) -> tuple[str, int]:
        quote = self._text[at]
        if self._text.startswith(quote * 3, at) and not self._inner_quotes:
            end = self._text.find(quote * 3, at + 3)
            if end >= 0:
                return self._text[at + 3 : end], end + 3
        pieces: list[str] = []
        start = at = at + 1
        while at < len(self._text):
            char = self._text[at]
            if char == "\\":
                pieces.append(self._text[start:at])
                piece, at = self._escape(at + 1)
                pieces.append(piece)
                start = at
            elif char == quote and (is_key or self._is_last(at, quote)):
                return "".join([*pieces, self._text[start:at]]), at + 1
            else:
                at += 1
        raise LooseError("a text in quotes has no end", len(self._text))

    def _is_last(self, at: int, quote: str) -> bool:
        """Does this quote end a text? An apostrophe in the middle of it does not."""
        if self._inner_quotes:
            return _FOLLOWING.match(self._text, at + 1) is not None
        if quote == '"':
            return True
        behind = _skip(self._text, at + 1)
        return behind >= len(self._text) or self._text[behind] in ",:}]" or self._text.startswith("</", behind)

    def _escape(self, at: int) -> tuple[str, int]:
        char = self._text[at : at + 1]
        if found := _UNICODE.match(self._text, at):
            high = int(found[1], 16)
            if found[2] and 0xD800 <= high < 0xDC00:
                return chr(0x10000 + ((high - 0xD800) << 10) + int(found[2], 16) - 0xDC00), found.end()
            return chr(high), at + 5
        # A backslash that escapes nothing is one of the text, as in an expression that was not escaped.
        return _ESCAPES.get(char, "\\" + char), at + len(char)
