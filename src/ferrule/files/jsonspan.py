"""Where the parts of a JSON text stand, byte for byte, so that one of them can be changed and all others stay.

Nothing is decoded that is not asked for, and nothing recurses: how deep and how long a text is was chosen by whoever
wrote it. NaN and Infinity pass, because Python writes them.
"""

import json
import re
from typing import NamedTuple

MOST_DEEP = 200
"""No program that people use nests deeper, and decoders that recurse would fall."""
MOST_PARTS = 100_000
"""Members of one object or items of one array that are told apart."""
MOST_STEPS = 5_000_000
"""Brackets after which a text is not worth the time."""
_REMEMBERED_DEEP = 8
_REMEMBERED_BYTES = 1024
"""The ends of boxes that are not deeper and not smaller are kept, so that looking into a box is not a search again."""

_GAP = rb"[ \t\r\n]*+"
_STRING = rb'"[^"\\\x00-\x1f]*+(?>(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*)"'
_NUMBER = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_PLAIN = rb"(?:%b|%b|true|false|null|NaN|-?Infinity|\[%b\]|\{%b\})" % (_STRING, _NUMBER, _GAP, _GAP)
"""A value with nothing inside."""
_KEY = _STRING + _GAP + rb":" + _GAP

_IS_GAP = re.compile(_GAP)
_IS_STRING = re.compile(_STRING)
_IS_KEY = re.compile(_KEY)
_IS_PLAIN = re.compile(_PLAIN)
_IS_OPEN = re.compile(rb"\[%b|\{%b%b" % (_GAP, _GAP, _KEY))
_IS_COMMA = re.compile(rb"%b,?%b" % (_GAP, _GAP))
# Long rows of plain values are passed in bounded strides: an unbounded repetition would keep a mark for each of them.
_STRIDE = rb"%b(?:,%b%b%b){0,1000}"
_PASSES = {
    ord("]"): re.compile(_STRIDE % (_GAP, _GAP, _PLAIN, _GAP)),
    ord("}"): re.compile(_STRIDE % (_GAP, _GAP + _KEY, _PLAIN, _GAP)),
}
_NEXT = {ord("]"): re.compile(rb"," + _GAP), ord("}"): re.compile(rb"," + _GAP + _KEY)}
_PASSES_STRINGS = re.compile(_STRIDE % (_GAP, _GAP, _STRING, _GAP))
_CLOSER = {ord("["): ord("]"), ord("{"): ord("}")}


class BadJson(ValueError):  # noqa: N818 - the state of the text, as a tool reports it
    """The text is no JSON, or more of it than anybody needs."""


class Span(NamedTuple):
    """A value: its bytes from `start` up to `end`, without the blanks around it."""

    start: int
    end: int


class Member(NamedTuple):
    """A member of an object."""

    name: str
    key: Span
    value: Span


class Json:
    """A JSON text and where its value is, every byte of it checked. Making one raises `BadJson`."""

    def __init__(self, raw: bytes, start: int = 0) -> None:
        self.raw = raw
        self._ends: dict[int, int] = {}
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            raise BadJson(f"It is not UTF-8: byte {error.start:,} cannot be decoded.") from error
        self.root = self._value_at(self._past(start))
        end = self._past(self.root.end)
        if end != len(raw):
            raise _wrong(raw, end)

    def is_object(self, span: Span) -> bool:
        return self.raw[span.start] == ord("{")

    def is_array(self, span: Span) -> bool:
        return self.raw[span.start] == ord("[")

    def is_string(self, span: Span) -> bool:
        return self.raw[span.start] == ord('"')

    def bytes_of(self, span: Span) -> bytes:
        return self.raw[span.start : span.end]

    def members(self, span: Span) -> list[Member]:
        """The members of an object, in order; a name may come twice. Raises `BadJson` where there are too many."""
        found: list[Member] = []
        at = self._past(span.start + 1)
        while at < span.end - 1:
            key, colon = _IS_STRING.match(self.raw, at), _IS_KEY.match(self.raw, at)
            assert key is not None
            assert colon is not None
            named, value = Span(at, key.end()), self._value_at(colon.end())
            found.append(Member(self._string(named), named, value))
            at = self._behind(value, len(found))
        return found

    def items(self, span: Span) -> list[Span]:
        """The items of an array. Raises `BadJson` where there are too many."""
        found: list[Span] = []
        at = self._past(span.start + 1)
        while at < span.end - 1:
            found.append(self._value_at(at))
            at = self._behind(found[-1], len(found))
        return found

    def text(self, span: Span) -> str | None:
        """A string, or an array of strings put together, as notebooks write texts; None for anything else."""
        if self.is_string(span):
            return self._string(span)
        if not self.is_array(span):
            return None
        # Looked through before it is decoded, and decoded in strides: many small values take many times their size.
        pieces: list[str] = []
        at, last = self._past(span.start + 1), span.end - 1
        while at < last:
            first = _IS_STRING.match(self.raw, at)
            if first is None:
                return None
            passed = _PASSES_STRINGS.match(self.raw, first.end())
            assert passed is not None
            pieces.append("".join(json.loads(f"[{self.raw[at : passed.end()].decode()}]")))
            comma = _IS_COMMA.match(self.raw, passed.end())
            assert comma is not None
            at = comma.end()
        return "".join(pieces)

    def _string(self, span: Span) -> str:
        inside = self.raw[span.start + 1 : span.end - 1]
        if b"\\" not in inside:
            return inside.decode()
        text: str = json.loads(self.bytes_of(span).decode())
        return text

    def _value_at(self, start: int) -> Span:
        """The value that begins at `start`, checked to its end."""
        if start in self._ends:
            return Span(start, self._ends[start])
        at = start
        opened: list[int] = []  # where the boxes began that are open, the innermost last
        for _ in range(MOST_STEPS):
            plain = _IS_PLAIN.match(self.raw, at)
            if plain is not None:
                at = self._close_boxes(plain.end(), opened)
                if not opened:
                    return Span(start, at)
                continue
            box = _IS_OPEN.match(self.raw, at)
            if box is None:
                raise _wrong(self.raw, at)
            opened.append(at)
            if len(opened) > MOST_DEEP:
                raise BadJson(f"It is nested more than {MOST_DEEP} levels deep.")
            at = box.end()
        raise BadJson(f"It has more than {MOST_STEPS:,} brackets.")

    def _close_boxes(self, at: int, opened: list[int]) -> int:
        """Behind a value: close the boxes that end there. Where the next value begins, or the outermost box ended."""
        raw = self.raw
        while opened:
            closer = _CLOSER[raw[opened[-1]]]
            passed = _PASSES[closer].match(raw, at)
            assert passed is not None
            at = passed.end()
            if at >= len(raw) or raw[at] != closer:
                following = _NEXT[closer].match(raw, at)
                if following is None:
                    raise _wrong(raw, at)
                return following.end()
            at += 1
            start = opened.pop()
            if at - start >= _REMEMBERED_BYTES and len(opened) < _REMEMBERED_DEEP:
                self._ends[start] = at
        return at

    def _past(self, at: int) -> int:
        """Where the blanks end that may be there."""
        gap = _IS_GAP.match(self.raw, at)
        assert gap is not None
        return gap.end()

    def _behind(self, value: Span, count: int) -> int:
        if count > MOST_PARTS:
            raise BadJson(f"It has more than {MOST_PARTS:,} parts side by side.")
        comma = _IS_COMMA.match(self.raw, value.end)
        assert comma is not None
        return comma.end()


def _wrong(raw: bytes, at: int) -> BadJson:
    line = raw.count(b"\n", 0, at) + 1
    if at >= len(raw):
        return BadJson(f"It is not valid JSON: it ends too early, in line {line}.")
    column = at - raw.rfind(b"\n", 0, at)
    return BadJson(f"It is not valid JSON: something is wrong in line {line}, at byte {column} of it.")
