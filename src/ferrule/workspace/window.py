"""A window of lines from a file of any size, without reading more of it than has to be read."""

import codecs
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ferrule.workspace.textfile import Binary, is_binary, lines, parse

WHOLE_BYTES = 8 << 20
"""Files up to this size are read and decoded as a whole; larger ones are streamed and taken for UTF-8."""
_CHUNK = 1 << 20
LIMIT_SCAN_BYTES = 1 << 30
"""How far a file is read to find a line; a reader that is not wanted any more must come to an end."""


class TooFarError(ValueError):
    """The window lies too deep in the file."""


class Window(NamedTuple):
    """Lines `first` and following of a file."""

    first: int
    lines: list[str]
    total: int | None
    """How many lines the file has; None where the end was not reached."""
    clipped: tuple[int, ...]
    """The numbers of the lines that were cut because they are too long."""


def window_of(raw: bytes, first: int, last: int, *, line_bytes: int) -> Window:
    """Lines `first` to `last` of a content. Raises `Binary`."""
    every = lines(parse(raw).text)
    return _clip(first, every[first - 1 : last], len(every), line_bytes)


def window_in(
    descriptor: int, first: int, last: int, *, line_bytes: int, most_bytes: int, over: Callable[[], bool]
) -> Window:
    """The same from an open file that is too large to hold; stops reading where the window ends."""
    head = os.pread(descriptor, 8192, 0)
    if is_binary(head) or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Binary("The file is binary, or too large for its encoding.")
    os.lseek(descriptor, len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0, os.SEEK_SET)
    out: list[str] = []
    size, at, ended = 0, 0, True
    for line in _lines(descriptor, line_bytes, over):
        at += 1
        if at < first:
            continue
        if at > last or size > most_bytes:
            ended = False
            break
        out.append(line.removesuffix(b"\r").decode(errors="replace"))
        size += len(line)
    return _clip(first, out, at if ended else None, line_bytes)


def _lines(descriptor: int, line_bytes: int, over: Callable[[], bool]) -> Iterator[bytes]:
    """Lines at LF; of a line that is too long only the beginning, so that one line cannot fill the memory."""
    rest, keep, read = b"", line_bytes + 8, 0
    while chunk := os.read(descriptor, _CHUNK):
        read += len(chunk)
        if read > LIMIT_SCAN_BYTES or over():
            raise TooFarError(f"The lines lie beyond the first {LIMIT_SCAN_BYTES >> 20} MiB of the file.")
        pieces = (rest + chunk).split(b"\n")
        rest = pieces.pop()[:keep]
        for piece in pieces:
            yield piece[:keep]
    if rest:
        yield rest


def _clip(first: int, some: list[str], total: int | None, line_bytes: int) -> Window:
    clipped: list[int] = []
    for at, line in enumerate(some):
        if len(line) * 4 > line_bytes and len(raw := line.encode(errors="replace")) > line_bytes:
            some[at] = raw[:line_bytes].decode(errors="ignore")
            clipped.append(first + at)
    return Window(first, some, total, tuple(clipped))
