"""Positions and addresses as language servers count and write them, and as people do.

People count lines and characters from 1, and a character is one of Unicode's. A server counts from 0, in the units of
the encoding that it has agreed to, and for it a CR alone ends a line too.
"""

import os
from collections.abc import Mapping
from typing import Any, Literal

from ferrule.workspace.textfile import line_mark

Encoding = Literal["utf-8", "utf-16", "utf-32"]


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
    begin, end = _server_line(text, max(0, int(position["line"])))
    offset = begin + _characters(text[begin:end], max(0, int(position["character"])), encoding)
    mark = line_mark(text)
    before = text.rfind(mark, 0, offset) + 1
    return text.count(mark, 0, before) + 1, offset - before + 1


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
    found = os.fsdecode(unquote_to_bytes(address.partition("://")[2].removeprefix(split.netloc)))
    if os.name == "nt":
        found = found.removeprefix("/").replace("/", "\\")
        found = found[:1].upper() + found[1:]
    return found if found and "\0" not in found else None


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


def _server_line(text: str, line: int) -> tuple[int, int]:
    """Where a line begins and ends, as a server counts lines; the end of the text for those behind the last."""
    start = 0
    if "\r" not in text:
        for _ in range(line):
            at = text.find("\n", start)
            if at < 0:
                return len(text), len(text)
            start = at + 1
        end = text.find("\n", start)
        return start, len(text) if end < 0 else end
    for _ in range(line):
        end = _server_end(text, start)
        if end == len(text):
            return end, end
        start = end + (2 if text.startswith("\r\n", end) else 1)
    return start, _server_end(text, start)


def _server_end(text: str, start: int) -> int:
    ends = [at for at in (text.find("\n", start), text.find("\r", start)) if at >= 0]
    return min(ends, default=len(text))


def _units(text: str, encoding: Encoding) -> int:
    if encoding == "utf-32" or text.isascii():
        return len(text)
    return len(text.encode("utf-8")) if encoding == "utf-8" else len(text.encode("utf-16-le")) // 2


def _characters(text: str, units: int, encoding: Encoding) -> int:
    """How many characters have at most so many units: inside of one means before it."""
    if encoding == "utf-32" or text.isascii():
        return min(units, len(text))
    raw = text.encode(encoding if encoding == "utf-8" else "utf-16-le")
    cut = raw[: units if encoding == "utf-8" else 2 * units]
    return len(cut.decode("utf-8" if encoding == "utf-8" else "utf-16-le", errors="ignore"))
