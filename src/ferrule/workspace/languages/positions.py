"""Positions and addresses as language servers count and write them, and as people do.

People count lines and characters from 1, and a character is one of Unicode's. A server counts from 0, in the units of
the encoding that it has agreed to, and for it a CR alone ends a line too.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Literal

from ferrule.workspace.textfile import line_mark

Encoding = Literal["utf-8", "utf-16", "utf-32"]
_LONG_CHARS = 1 << 18


def to_server(text: str, line: int, character: int, encoding: Encoding) -> dict[str, int]:
    """Where a server sees that character of that line. What lies behind the end means the end."""
    start, end = _line(text, line)
    start += max(0, min(character - 1, end - start))
    if "\r" in text:
        number, begin = _count(text, start)
    else:
        begin = text.rfind("\n", 0, start) + 1
        number = text.count("\n", 0, begin)
    return {"line": number, "character": _units(text[begin:start], encoding)}


def from_server(text: str, position: Mapping[str, Any], encoding: Encoding) -> tuple[int, int]:
    """The line and the character that a server means. What lies behind the end means the end."""
    return Layout(text, encoding).place(position)


class Layout:
    """Where the lines of a text begin, for many positions in it: a text is looked through once, whatever is asked."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self._text = text
        self._encoding = encoding
        mark = line_mark(text)
        self._people = [0, *(found.end() for found in re.finditer(mark, text))] if mark in text else [0]
        self._server = self._people
        if "\r" in text:
            self._server = [0, *(found.end() for found in re.finditer("\r\n?|\n", text))]

    def place(self, position: Mapping[str, Any]) -> tuple[int, int]:
        """The line and the character that a server means, as people count them."""
        offset = self._offset(max(0, int(position["line"])), max(0, int(position["character"])))
        number = bisect_right(self._people, offset)
        return number, offset - self._people[number - 1] + 1

    def _offset(self, line: int, units: int) -> int:
        if line >= len(self._server):
            return len(self._text)
        begin = self._server[line]
        end = self._server[line + 1] if line + 1 < len(self._server) else len(self._text)
        # No character has less than one unit, so that no more of a long line is looked at than lies before it.
        piece = self._text[begin : min(end, begin + units + 2)]
        if begin + len(piece) == end:
            piece = piece.removesuffix("\n").removesuffix("\r")
        return begin + _characters(piece, units, self._encoding)


def uri(path: str) -> str:
    """The address of an absolute path."""
    from urllib.parse import quote_from_bytes  # for sessions that ask language servers

    if os.name == "nt":
        path = "/" + path.replace("\\", "/")
    return "file://" + quote_from_bytes(os.fsencode(path), safe=b"/-._~")


def path_of(address: str) -> str | None:
    """The path that an address leads to; None where it leads to no file of this machine."""
    from urllib.parse import unquote_to_bytes, urlsplit  # as above

    try:
        split = urlsplit(address)
    except ValueError:
        return None
    if split.scheme != "file" or split.netloc not in {"", "localhost"}:
        return None
    # A `?` or `#` that a server forgot to write as an escape belongs to the name.
    try:
        found = os.fsdecode(unquote_to_bytes(address.partition("://")[2].removeprefix(split.netloc)))
    except UnicodeError:
        return None  # half of a character: no file has such a name
    if os.name == "nt":
        found = found.removeprefix("/").replace("/", "\\")
        found = found[:1].upper() + found[1:]
    return found if os.path.isabs(found) and "\0" not in found else None


def _line(text: str, line: int) -> tuple[int, int]:
    """Where a line begins and ends, as people count lines; the last one for those behind it."""
    mark = line_mark(text)
    start = 0
    for _ in range(max(1, line) - 1):
        at = text.find(mark, start)
        if at < 0:
            break
        start = at + 1
    end = text.find(mark, start)
    end = len(text) if end < 0 else end
    if mark == "\n" and end > start and text[end - 1] == "\r" and end < len(text):
        end -= 1
    return start, end


def _count(text: str, offset: int) -> tuple[int, int]:
    """How many lines a server sees end before the offset, and where the one with it begins."""
    head = text[:offset]
    pairs = head.count("\r\n")
    number = head.count("\n") + head.count("\r") - pairs
    begin = max(head.rfind("\n"), head.rfind("\r")) + 1
    if head.endswith("\r") and text[offset : offset + 1] == "\n":
        # Between the two characters of one line end: that is still the line which they end.
        number -= 1
        begin = max(head.rfind("\n", 0, offset - 1), head.rfind("\r", 0, offset - 1)) + 1
    return number, begin


def _units(text: str, encoding: Encoding) -> int:
    if encoding == "utf-32" or text.isascii():
        return len(text)
    return len(text.encode("utf-8")) if encoding == "utf-8" else len(text.encode("utf-16-le")) // 2


def _characters(text: str, units: int, encoding: Encoding) -> int:
    """How many characters have at most so many units: inside of one means before it."""
    # In a line as long as a book nobody needs the very character, and counting it for each of many takes long.
    if encoding == "utf-32" or text.isascii() or len(text) > _LONG_CHARS:
        return min(units, len(text))
    raw = text.encode(encoding if encoding == "utf-8" else "utf-16-le")
    cut = raw[: units if encoding == "utf-8" else 2 * units]
    return len(cut.decode("utf-8" if encoding == "utf-8" else "utf-16-le", errors="ignore"))
