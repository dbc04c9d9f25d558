"""Manage a language server's open documents, positions and URIs, and hide values from unreadable files.

People count lines and characters from 1, and a character is a Unicode character. A server counts from 0, in the
units of the encoding that it has agreed to, and for it a CR alone ends a line too.

A server's message may quote values from files that may not be read. Names and types are quoted as well, and each
server uses its own marks: `Literal["x"]` in backticks, '"x"' in single quotes. A value is a quoted text inside
those, a long number, or a word that looks more like a key than like a name.
"""

import asyncio
import os
import re
import time
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from ferrule.core.errors import ToolFailure
from ferrule.files.guard import Guard
from ferrule.files.jail import Jail
from ferrule.files.text import Binary, line_mark, parse
from ferrule.system.folder import describe, is_regular, read_all

MOST_BYTES = 8 << 20
_SMALL_BYTES = 256 << 10
"""Up to this size a file is sooner read than handed to a thread."""
_RACY_SECONDS = 0.1
"""A file that was changed so shortly before it was read may be changed again without looking any different."""

Signature = tuple[int, int, int, int]


class OpenDocument(NamedTuple):
    """An open document as the server has it."""

    path: str
    uri: str
    language: str
    version: int
    text: str
    signature: Signature | None = None
    """How its file looked when it was read; None for a text that somebody gave, which no file changes."""
    since: int = 0
    """How many reports the server had sent when it was told this version."""


class DocumentText(NamedTuple):
    """What a file holds, and how it looked then."""

    text: str
    signature: Signature


def signature(path: str) -> Signature | None:
    """How a file looks from outside; None where there is none."""
    try:
        seen = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return (seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino)


class DocumentReader:
    """Reads files of the workspace for language servers: no secret, nothing too large, nothing but text."""

    def __init__(self, jail: Jail, guard: Guard) -> None:
        self._jail = jail
        self._guard = guard

    def real(self, path: str) -> str:
        """The path behind `path`. Raises for a secret file and for one outside the workspace."""
        real = self._jail.real(path)
        self._guard.check_read(real)
        self._jail.place(real)
        return real

    async def read(self, real: str) -> DocumentText:
        """The text of a file. Raises ToolFailure."""
        looks = signature(real)
        if looks is not None and looks[2] <= _SMALL_BYTES:
            return self._read(real)
        return await asyncio.to_thread(self._read, real)

    def _read(self, real: str) -> DocumentText:
        self._guard.check_read(real)
        place = self._jail.place(real)
        if not place.parts:
            raise ToolFailure(f"{real} is a folder.", code="is-folder", path=real)
        try:
            with place.folder() as folder:
                descriptor = folder.open(place.name)
                try:
                    return _text(real, descriptor)
                finally:
                    os.close(descriptor)
        except FileNotFoundError as error:
            raise ToolFailure(f"{real} does not exist.", code="not-found", path=real) from error
        except OSError as error:
            raise ToolFailure(f"{real} cannot be read: {describe(error)}.", path=real) from error


def _text(real: str, descriptor: int) -> DocumentText:
    if not is_regular(descriptor):
        raise ToolFailure(f"{real} is no file.", code="is-folder", path=real)
    seen = os.fstat(descriptor)
    racy = seen.st_mtime > time.time() - _RACY_SECONDS
    looks = (-1 if racy else seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino)
    raw = read_all(descriptor, MOST_BYTES)
    if len(raw) > MOST_BYTES:
        raise ToolFailure(
            f"{real} has more than {MOST_BYTES:,} bytes, which is too much for a language server.",
            code="too-large",
            path=real,
        )
    try:
        return DocumentText(parse(raw).text, looks)
    except Binary as error:
        raise ToolFailure(
            f"{real} is a binary file: a language server reads texts.", code="binary", path=real
        ) from error


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
    if os.name == "nt":
        path = "/" + path.replace("\\", "/")
    return "file://" + quote_from_bytes(os.fsencode(path), safe=b"/-._~")


def path_of(address: str) -> str | None:
    """The path that an address leads to; None where it leads to no file of this machine."""
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


_QUOTED = r"""(["'`])((?>(?:\\.|(?!\1)[^\\])*))\1"""
_NUMBER = r"\d{4,}"
_KEY = r"(?=\S*\d)(?=\S*[A-Za-z])[\w+/=.\-]{12,}"


def without_quoted(message: str, source: str) -> str:
    """The message with the values left out that do not stand in the source which it is about."""

    def inner(value: re.Match[str]) -> str:
        return value[0] if value[2] in source else f"{value[1]}…{value[1]}"

    def outer(part: re.Match[str]) -> str:
        mark, body = part[1], part[2]
        if body in source:
            return part[0]
        if re.fullmatch(_KEY, body):
            return f"{mark}…{mark}"
        return mark + re.sub(_QUOTED, inner, body) + mark

    shown = re.sub(_QUOTED, outer, message)
    # A mark without its partner, as of a message that was cut: nobody knows what it begins.
    shown = re.sub(r"""(\[["']|"'|'"|`["'])[^"'`]*$""", lambda rest: rest[1] + "…", shown)
    return re.sub(_NUMBER, lambda number: number[0] if number[0] in source else "…", shown)
