"""Read text files as bytes, splice them, and cut windows and blocks of lines out of them.

A text keeps its encoding, byte-order mark and line ends, and a splice changes nothing else. Only CR LF and LF end
a line, and CR in a file that has no LF; no other break that Unicode knows does.

A window of lines can come from a file of any size, without reading more of it than has to be read.

A block is the lines around one line that belong together by their indentation. A line is enclosed by the nearest
one above it that is indented less. A line that goes on with what one above it has begun (`else:`, `}`, a `{` of
its own) encloses nothing itself: it belongs to what it goes on with.

What encloses a line is the nearest one above it that is indented less. A line that goes on with what one above it has
begun (`else:`, `}`, a `{` of its own) encloses nothing itself: it belongs to what it goes on with.
"""

import codecs
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

SAMPLE_BYTES = 65536
"""How much of a file is looked at for control characters."""

_UTF8_BOM = codecs.BOM_UTF8
_WIDE_BOMS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# Backspace, tab, LF, VT, FF, CR and ESC occur in texts; the other controls hardly ever do.
_CONTROLS = bytes(code for code in (*range(1, 8), *range(14, 27), *range(28, 32), 127))
_FEW_CONTROLS = 8

_DECLARED = re.compile(rb"coding[:=][ \t]*[\"']?([-\w.]+)")
# Splicing needs codecs whose bytes for a piece of text do not depend on what stands around it, and in which
# ASCII stays ASCII. Escapes, shift states and composed sequences are not of that kind.
_STATELESS = re.compile(
    r"ascii|utf-8|iso8859-\d+|cp125\d|cp(?:437|720|737|775|85\d|86[0-35-9]|874|932|949|950|1006)|koi8-[rtu]|kz1048|ptcp154"
    r"|tis-620|mac-(?!arabic|farsi)\w+|hp-roman8|shift_jis|euc_jp|euc_kr|johab|big5|gb2312|gbk|gb18030"
)


class Binary(ValueError):  # noqa: N818 - the state of the file, as a tool reports it
    """The bytes are not a text."""


class Unencodable(ValueError):  # noqa: N818 - the state of the new text, as a tool reports it
    """The file's encoding has no such character."""

    def __init__(self, character: str, encoding: str) -> None:
        shown = character if character.isprintable() else f"U+{ord(character):04X}"
        super().__init__(f"The file is encoded as {encoding}, which has no character {shown!r}.")
        self.character = character
        self.encoding = encoding


class TextFile(NamedTuple):
    """A text and the bytes that it came from: `bom + text.encode(encoding) == raw`."""

    raw: bytes
    text: str
    encoding: str
    bom: bytes


class Splice(NamedTuple):
    """Put `new` in place of the characters from `start` up to `end`."""

    start: int
    end: int
    new: str


def is_binary(raw: bytes) -> bool:
    """Do the bytes look like anything but a text?"""
    if _wide(raw) is not None:
        return False
    if b"\0" in raw:
        return True
    sample = raw[:SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return controls > _FEW_CONTROLS + len(sample) // 20


def parse(raw: bytes) -> TextFile:
    """Decode without losing a bit: every decoding is proven by encoding it again. Raises `Binary`."""
    wide = _wide(raw)
    if wide is not None:
        return wide
    if is_binary(raw):
        raise Binary("The file is binary, not text.")
    bom = _UTF8_BOM if raw.startswith(_UTF8_BOM) else b""
    body = raw[len(bom) :]
    declared = () if bom else _find_declaration(body)
    # Plain ASCII says nothing about the encoding: there the declaration decides what new characters become.
    encodings = (*declared, "utf-8") if body.isascii() else ("utf-8", *declared, "cp1252", "latin-1")
    for encoding in encodings:
        text = _decode(body, encoding)
        if text is not None:
            return TextFile(raw, text, encoding, bom)
    raise Binary("The file is in no encoding that can be written back unchanged.")


def splice(file: TextFile, splices: Iterable[Splice]) -> bytes:
    """The file's bytes with the splices done; they come in order and do not overlap.

    Bytes outside of them are copied, never encoded again. Raises `Unencodable`.
    """
    parts: list[bytes] = []
    place = _Offsets(file)
    done = 0
    for start, end, new in splices:
        first, last = place.of(start), place.of(end)
        parts += (file.raw[done:first], _encode(new, file.encoding))
        done = last
    parts.append(file.raw[done:])
    return b"".join(parts)


def line_mark(text: str) -> str:
    """The character that ends every line of the text; a CR before an LF belongs to the line end too."""
    return "\r" if "\r" in text and "\n" not in text else "\n"


def flat(text: str, mark: str) -> str:
    """The text with LF for every line end, read as in a file with that mark."""
    if "\r" not in text:
        return text
    text = text.replace("\r\n", "\n")
    return text.replace("\r", "\n") if mark == "\r" else text


def lines(text: str) -> list[str]:
    """The lines without their ends. A text that ends with a line end has no empty line after it."""
    pieces = flat(text, line_mark(text)).split("\n")
    if not pieces[-1]:
        pieces.pop()
    return pieces


class TextLines:
    """A text as lines, split when they are asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.mark = line_mark(text)
        self._marked_from = self._marked_at = -1

    @cached_property
    def wholes(self) -> list[str]:
        """The lines without the mark; where CR LF ends a line, its CR is still there."""
        return self.text.split(self.mark)

    @cached_property
    def flats(self) -> list[str]:
        """The lines without their ends."""
        return flat(self.text, self.mark).split("\n")

    @cached_property
    def _last_mark(self) -> int:
        return self.text.rfind(self.mark)

    def line_end(self, offset: int) -> str:
        """What ends the line at `offset`; on the last line, what ends the one before it."""
        # The last answer holds up to where it was found: many places on one long line stay cheap.
        if not self._marked_from <= offset <= self._marked_at:
            self._marked_from = offset
            self._marked_at = self.text.find(self.mark, offset) if offset <= self._last_mark else self._last_mark
        at = self._marked_at
        return "\r\n" if self.mark == "\n" and at > 0 and self.text[at - 1] == "\r" else self.mark


class PositionMapper:
    """Carries positions of a text whose lines were shortened at their ends back into the whole one, going forward."""

    def __init__(self, wholes: list[str], bares: list[str]) -> None:
        self.wholes = wholes
        self.bares = bares
        self.line = self.start = self._bare_start = 0

    def column(self, position: int) -> int:
        """Go to the line with that position of the shortened text; where in that line it is."""
        while position > self._bare_start + len(self.bares[self.line]):
            self._next()
        return position - self._bare_start

    def to(self, line: int) -> int:
        """Go to that line; where it begins in the whole text."""
        while self.line < line:
            self._next()
        return self.start

    def _next(self) -> None:
        self.start += len(self.wholes[self.line]) + 1
        self._bare_start += len(self.bares[self.line]) + 1
        self.line += 1


class _Offsets:
    """Where characters stand among the bytes; asked in rising order, so that the whole walk is linear."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.character = 0
        self.byte = len(file.bom)
        body = len(file.raw) - len(file.bom)
        narrowest = 2 if file.encoding.startswith("utf-16") else 1
        # When the total is the least possible, each character has the least possible width.
        self.width = narrowest if body == narrowest * len(file.text) else 0

    def of(self, offset: int) -> int:
        if not self.character <= offset <= len(self.file.text):
            raise ValueError("Splices overlap, are out of order or lie outside of the text.")
        passed = offset - self.character
        if self.width:
            self.byte += passed * self.width
        elif passed:
            self.byte += len(self.file.text[self.character : offset].encode(self.file.encoding))
        self.character = offset
        return self.byte


def _wide(raw: bytes) -> TextFile | None:
    for bom, encoding in _WIDE_BOMS:
        if raw.startswith(bom):
            text = _decode(raw[len(bom) :], encoding)
            # With NUL characters in it, it is UTF-32 or no text at all.
            if text is not None and "\0" not in text:
                return TextFile(raw, text, encoding, bom)
    return None


def _find_declaration(body: bytes) -> tuple[str, ...]:
    for line in body[:1024].splitlines()[:2]:
        named = _DECLARED.search(line)
        if named is not None:
            try:
                name = codecs.lookup(named[1].decode("ascii")).name
            except LookupError:
                return ()
            return (name,) if _STATELESS.fullmatch(name) else ()
    return ()


def _decode(body: bytes, encoding: str) -> str | None:
    try:
        text = body.decode(encoding)
        return text if text.encode(encoding) == body else None
    except UnicodeError:
        return None


def _encode(new: str, encoding: str) -> bytes:
    try:
        return new.encode(encoding)
    except UnicodeEncodeError as error:
        raise Unencodable(new[error.start], encoding) from error


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


_TAB_COLUMNS = 4
_REMARK = re.compile(
    r"#+(?:\s|\Z)|#\s*(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma|region|endregion)\b"
    r"|//|/\*|\*(?=[\s/]|\Z)|--(?=\s|\Z)|<!--"
)
"""How a comment begins, or a line for a preprocessor."""
_MARK = re.compile(r"@|#!?\[|\[\w")
"""How a decorator or an attribute begins."""
_GOES_ON = re.compile(
    r"[)\]}]|(?:else|elif|elsif|elseif|except|finally|catch|rescue|ensure)\b(?!\s*[=.])"
    r"|(?:then|do|end|endif|fi|done|esac)[),;\s]*(?:[|<>&#].*)?\Z"
)
_LABEL = re.compile(r"case\b[^=]*:|(?:default|(?:public|private|protected)(?:\s+\w+)?)\s*:\Z")
"""Stands as deep as what it is part of in some styles, and deeper in others."""


def block(
    lines: Sequence[str], anchor: int, *, levels: int, siblings: bool, header: bool, most: int
) -> tuple[int, int]:
    """First and last line, from 1, of the block that holds line `anchor`.

    It reaches `levels` levels out, or to the outermost one where that is 0: from the line that opens that level to the
    one that closes it. With `siblings` it is all that stands around the anchor on that level or deeper. With `header`,
    comments and decorators right above belong to it. When it has more than `most` lines, those nearest to the anchor
    are given. A blank anchor stands for the line above it, and one on a comment for the line below that.
    """
    page = _LineDepths(lines)
    at = page.resolve_anchor(anchor - 1)
    top = page.head(at)
    reached = 0
    while (levels == 0 or reached < levels) and (outer := page.outer(top)) is not None:
        top = page.head(outer)
        reached += 1
    first, last = page.level(at, page.depths[top]) if siblings else (top, page.end(at, top))
    if header:
        first = page.above(first)
    first, last = _nearest(first, last, min(max(anchor - 1, first), last), most)
    return first + 1, last + 1


def _nearest(first: int, last: int, at: int, most: int) -> tuple[int, int]:
    """At most so many lines around the anchor, as evenly as the ends allow."""
    if last - first + 1 <= most:
        return first, last
    start = max(first, min(at - most // 2, last - most + 1))
    return start, start + most - 1


class _LineDepths:
    """Lines with how deep each of them is."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.texts = [line.strip() for line in lines]
        self.depths = [0] * len(lines)
        self._code = list(range(len(lines)))
        """For each line itself; for a comment, the line of code below it."""
        code, below = -1, 0
        for at in range(len(lines) - 1, -1, -1):
            line = lines[at]
            depth = len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(_TAB_COLUMNS))
            if _REMARK.match(self.texts[at]):
                # A comment at the margin does not end the block that it stands in.
                depth = max(depth, below)
                self._code[at] = code if code >= 0 else at
            elif self.texts[at]:
                code, below = at, depth
            self.depths[at] = depth

    def resolve_anchor(self, at: int) -> int:
        """The line that an anchor stands for."""
        while at > 0 and not self.texts[at]:
            at -= 1
        while not self.texts[at] and at + 1 < len(self.texts):
            at += 1
        while self._is_about(at):
            below = self.end(at, at) + 1
            if below >= len(self.texts) or not self.texts[below]:
                break
            if self.depths[below] != self.depths[at] and not self.texts[at].startswith("*"):
                break
            at = below
        return at

    def head(self, at: int) -> int:
        """The line that begins what this one goes on with."""
        found = at
        while self._goes_on(found) or _LABEL.match(self.texts[found]):
            above = self._above_at_depth(found)
            if above is None:
                return at
            found = above
        return found

    def outer(self, at: int) -> int | None:
        """The nearest line above that is indented less."""
        for above in range(at - 1, -1, -1):
            if self.texts[above] and self.depths[above] < self.depths[at] and not _REMARK.match(self.texts[above]):
                return above
        return None

    def end(self, at: int, top: int) -> int:
        """The last line of what `top` begins."""
        floor, labels = self.depths[top], not _LABEL.match(self.texts[top])
        last = at
        for below in range(at + 1, len(self.texts)):
            if not self.texts[below]:
                continue
            if self.depths[below] <= floor:
                goes_on = self._goes_on(below) or (labels and _LABEL.match(self.texts[below]))
                if self.depths[below] < floor or not goes_on:
                    break
            last = below
        return last

    def level(self, at: int, floor: int) -> tuple[int, int]:
        """All lines around this one that are at least so deep."""
        first = last = at
        for above in range(at - 1, -1, -1):
            if self.texts[above]:
                if self.depths[above] < floor:
                    break
                first = above
        for below in range(at + 1, len(self.texts)):
            if self.texts[below]:
                if self.depths[below] < floor:
                    break
                last = below
        return first, last

    def above(self, first: int) -> int:
        """The first of the comments and decorators that stand right above."""
        floor = self.depths[first]
        at = first - 1
        while at >= 0 and self.texts[at]:
            start = at
            if self.texts[at][0] in ")]":
                start = self._above_at_depth(at) or 0
            fits = self.depths[start] == floor or self.texts[start].startswith("*")
            if not fits or not self._is_about(start):
                break
            first, at = start, start - 1
        return first

    def _is_about(self, at: int) -> bool:
        """Is it a comment or a decorator?"""
        return bool(_REMARK.match(self.texts[at]) or _MARK.match(self.texts[at]))

    def _goes_on(self, at: int) -> bool:
        at = self._code[at]
        text = self.texts[at]
        if not text.startswith("{"):
            return bool(_GOES_ON.match(text))
        # A brace by itself opens the body of the line above, unless that is complete.
        above = at - 1
        return above >= 0 and self.depths[above] == self.depths[at] and self.texts[above][-1:] not in (*",;{}[(", "")

    def _above_at_depth(self, at: int) -> int | None:
        """The nearest line above that is as deep; None where one that is less deep comes first."""
        for above in range(at - 1, -1, -1):
            if self.texts[above] and self.depths[above] <= self.depths[at]:
                return above if self.depths[above] == self.depths[at] else None
        return None
